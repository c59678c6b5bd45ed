//! `cargo xtask lab`: JupyterLab on the notebooks.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;

use anyhow::{Context, Result};

use crate::setup::prepare;
use crate::workspace::Workspace;

/// What the command takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print the address instead of opening a browser
    #[arg(long)]
    no_browser: bool,
    /// The port to listen on; Jupyter picks the next free one if it is taken
    #[arg(long)]
    port: Option<u16>,
}

/// Starts JupyterLab in place of this process, so that Ctrl-C reaches it alone.
pub fn lab(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let environment = prepare(workspace)?;
    let mut lab = environment.python();
    lab.args(["-m", "jupyterlab"]).arg("--notebook-dir").arg(workspace.notebooks());
    lab.arg("--MultiKernelManager.default_kernel_name=candle-accelerate");
    if arguments.no_browser {
        lab.arg("--no-browser");
    }
    if let Some(port) = arguments.port {
        lab.arg(format!("--port={port}"));
    }
    // Jupyter refuses to run for root, whom a container often has as its only user.
    if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        lab.arg("--allow-root");
    }
    Err(lab.exec()).context("JupyterLab could not be started")
}
