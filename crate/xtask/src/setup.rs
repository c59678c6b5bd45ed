//! `cargo xtask setup`: everything the notebooks need, inside the workspace.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::run;
use crate::python::{Environment, notebook_environment};
use crate::workspace::Workspace;

const KERNEL: &str = "candle-accelerate-kernel";

/// The command: prepares the environment and says how to go on.
pub fn setup(workspace: &Workspace) -> Result<()> {
    prepare(workspace)?;
    println!(
        "Ready. Open the notebooks with `cargo xtask lab`, or execute them with `cargo xtask run`."
    );
    Ok(())
}

/// Makes `.venv` with Jupyter, the kernel and its notebook library; fast when all is there.
pub fn prepare(workspace: &Workspace) -> Result<Environment> {
    check_linker()?;
    let environment = notebook_environment(workspace)?;
    keep_jupyterlab_offline(&environment)?;
    install_kernel(workspace, &environment)?;
    Ok(environment)
}

fn check_linker() -> Result<()> {
    if which::which("cc").is_err() {
        bail!(
            "no C compiler: `cc`, which Rust links with, was not found \
             (Debian and Ubuntu: apt install gcc; macOS: xcode-select --install)"
        );
    }
    Ok(())
}

/// Without this, JupyterLab asks each new user whether it may fetch news.
fn keep_jupyterlab_offline(environment: &Environment) -> Result<()> {
    let folder = environment.folder().join("etc/jupyter/labconfig");
    fs::create_dir_all(&folder)?;
    let settings = serde_json::json!({
        "disabledExtensions": { "@jupyterlab/apputils-extension:announcements": true }
    });
    fs::write(folder.join("page_config.json"), settings.to_string())?;
    Ok(())
}

fn install_kernel(workspace: &Workspace, environment: &Environment) -> Result<()> {
    run(workspace.cargo().args([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--package",
        KERNEL,
    ]))?;
    let installed = environment.folder().join("bin").join(KERNEL);
    copy_if_different(&workspace.target().join("release").join(KERNEL), &installed)?;
    run(environment
        .program(KERNEL)
        .env("CARGO_TARGET_DIR", workspace.target())
        .arg("install")
        .arg("--prefix")
        .arg(environment.folder())
        .arg("--workspace")
        .arg(workspace.root()))
}

/// A running kernel's file cannot be written to, but it can be replaced.
fn copy_if_different(from: &Path, to: &Path) -> Result<()> {
    let new = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    let beside = to.with_extension("new");
    fs::copy(from, &beside)?;
    fs::rename(&beside, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn an_equal_file_is_left_alone_and_another_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "one").unwrap();
        copy_if_different(&from, &to).unwrap();
        let first = fs::metadata(&to).unwrap().ino();
        copy_if_different(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().ino(), first);

        fs::write(&from, "two").unwrap();
        copy_if_different(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
