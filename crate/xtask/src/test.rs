//! `cargo xtask test`: every test there is.

use std::process::{Command, ExitStatus};

use anyhow::{Result, bail};

use crate::process::run_and_keep_output;
use crate::python::Environment;
use crate::real_inputs::RealInputs;
use crate::setup::prepare;
use crate::tally::{Tally, closing_lines, counts};
use crate::workspace::Workspace;

/// Runs all steps, whether or not an earlier one failed, and ends with all counts and their sum.
pub fn test(workspace: &Workspace) -> Result<()> {
    let mut report = Report::default();
    report.step("formatting", workspace.cargo().args(["fmt", "--all", "--check"]));
    report.step(
        "lints",
        workspace
            .cargo()
            .args(["clippy", "--quiet", "--locked", "--workspace", "--all-targets"])
            .args(["--", "--deny", "warnings"]),
    );
    report.step(
        "documentation",
        workspace
            .cargo()
            .args(["doc", "--quiet", "--locked", "--no-deps", "--package", "candle-accelerate"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    );
    report.step(
        "Rust",
        workspace.cargo().args(["test", "--locked", "--workspace", "--no-fail-fast"]),
    );

    match prepare(workspace) {
        Ok(environment) => test_notebook_side(workspace, &environment, &mut report),
        Err(error) => report.fail("setup", &error),
    }
    report.close()
}

fn test_notebook_side(workspace: &Workspace, environment: &Environment, report: &mut Report) {
    match RealInputs::ensure(workspace, environment) {
        Ok(real) => report.step(
            "Rust on real inputs",
            workspace
                .cargo()
                // The whole workspace as in the step before, or candle would be built once more.
                .args(["test", "--locked", "--workspace", "--no-fail-fast"])
                .args(["--test", "mini_lm", "--test", "real_mails", "--", "--ignored"])
                .env("CANDLE_ACCELERATE_MINILM", &real.encoder)
                .env("CANDLE_ACCELERATE_MAILS", &real.mails),
        ),
        Err(error) => report.fail("real inputs", &error),
    }
    report.step("kernel", pytest(workspace, environment).arg(workspace.tests()));
    report.step(
        "notebooks",
        pytest(workspace, environment)
            .arg("--nbval")
            .arg("--nbval-sanitize-with")
            .arg(workspace.tests().join("nbval_sanitize.cfg"))
            .arg("--nbval-cell-timeout=600")
            // The time limit of pytest-timeout is for one test; a cell has nbval's.
            .arg("--timeout=0")
            .arg(workspace.notebooks()),
    );
}

fn pytest(workspace: &Workspace, environment: &Environment) -> Command {
    let mut pytest = environment.python();
    pytest
        .current_dir(workspace.root())
        .args(["-m", "pytest", "--color=no", "-p", "no:cacheprovider", "--config-file"])
        .arg(workspace.tests().join("pytest.ini"));
    pytest
}

/// What the steps said.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    tally: Tally,
}

impl Report {
    fn step(&mut self, name: &str, command: &mut Command) {
        println!("\n=== {name}");
        match run_and_keep_output(command) {
            Ok((status, output)) => self.record(name, status, &output),
            Err(error) => self.fail(name, &error),
        }
    }

    /// Adds a step's counts. One that fails without naming a failed test counts as one failure.
    fn record(&mut self, name: &str, status: ExitStatus, output: &str) {
        let mut tally = Tally::default();
        let lines = closing_lines(output);
        for line in &lines {
            tally += counts(line);
            self.lines.push(format!("{name}: {line}"));
        }
        if !status.success() && tally.failed == 0 {
            tally.failed = 1;
            self.lines.push(format!("{name}: failed, {status}"));
        } else if lines.is_empty() {
            self.lines.push(format!("{name}: ok"));
        }
        self.tally += tally;
    }

    fn fail(&mut self, name: &str, error: &anyhow::Error) {
        eprintln!("error: {name}: {error:#}");
        self.lines.push(format!("{name}: {error:#}"));
        self.tally.failed += 1;
    }

    fn close(self) -> Result<()> {
        println!("\n=== all tests");
        for line in &self.lines {
            println!("{line}");
        }
        println!("{} passed, {} failed", self.tally.passed, self.tally.failed);
        if self.tally.failed > 0 {
            bail!("some tests failed");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const SUCCESS: i32 = 0;
    const FAILURE: i32 = 1 << 8;

    fn report_of(status: i32, output: &str) -> Report {
        let mut report = Report::default();
        report.record("step", ExitStatus::from_raw(status), output);
        report
    }

    #[test]
    fn a_step_that_breaks_before_its_tests_is_one_failure() {
        let report = report_of(FAILURE, "error: could not compile\n");
        assert_eq!(report.tally, Tally { passed: 0, failed: 1 });
        assert!(report.close().is_err());
    }

    #[test]
    fn a_broken_test_binary_counts_beside_tests_that_passed() {
        let report = report_of(FAILURE, "test result: ok. 2 passed; 0 failed; 0 ignored\n");
        assert_eq!(report.tally, Tally { passed: 2, failed: 1 });
    }

    #[test]
    fn a_program_that_cannot_be_started_is_a_failure() {
        let mut report = Report::default();
        report.step("missing", &mut Command::new("no-such-program"));
        assert_eq!(report.tally.failed, 1);
    }

    #[test]
    fn counts_of_all_lines_are_added() {
        let report = report_of(
            SUCCESS,
            "test result: ok. 2 passed; 0 failed; 0 ignored\n== 3 passed in 0.1s ==\n",
        );
        assert_eq!(report.tally, Tally { passed: 5, failed: 0 });
        assert!(report.close().is_ok());
    }
}
