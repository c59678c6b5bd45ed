//! Starting other programs: one clear sentence when one is missing or fails.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// Runs the command to its end, its output going where ours goes; fails if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs the command to its end, shows its standard output as it comes, and returns it too.
pub fn run_and_keep_output(command: &mut Command) -> Result<(ExitStatus, String)> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
    let mut kept = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(io::stdout(), "{line}")?;
            kept.push_str(&line);
            kept.push('\n');
        }
    }
    Ok((child.wait()?, kept))
}

/// Runs the command and returns its standard output without surrounding space, or nothing if it
/// cannot be started or fails.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn cannot_start(command: &Command) -> String {
    format!("`{}` could not be started", command.get_program().to_string_lossy())
}

fn shown(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}
