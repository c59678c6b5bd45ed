//! Tells Jupyter about the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

/// The name under which Jupyter knows the kernel.
pub const NAME: &str = "candle-accelerate";

/// Where the kernelspec goes.
#[derive(Args, Clone, Debug, Default)]
#[group(multiple = false)]
pub struct Location {
    /// For this user (the default)
    #[arg(long)]
    user: bool,
    /// Into the Python environment that is active
    #[arg(long)]
    sys_prefix: bool,
    /// Into the environment at this folder
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<PathBuf>,
}

impl Location {
    /// The folder of the kernelspec.
    pub fn directory(&self) -> Result<PathBuf> {
        let data = match (&self.prefix, self.sys_prefix) {
            (Some(prefix), _) => prefix.join("share").join("jupyter"),
            (None, true) => python_prefix()?.join("share").join("jupyter"),
            (None, false) => user_data_dir()?,
        };
        Ok(data.join("kernels").join(NAME))
    }
}

fn python_prefix() -> Result<PathBuf> {
    if let Some(environment) = std::env::var_os("VIRTUAL_ENV") {
        return Ok(PathBuf::from(environment));
    }
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.prefix)"])
        .output()
        .context("python3 is not there, so --sys-prefix has no meaning; use --prefix")?;
    if !output.status.success() {
        bail!("python3 does not say its prefix; use --prefix");
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn user_data_dir() -> Result<PathBuf> {
    if let Some(directory) = std::env::var_os("JUPYTER_DATA_DIR") {
        return Ok(PathBuf::from(directory));
    }
    let home = std::env::home_dir().context("HOME is not set; use --prefix")?;
    if cfg!(target_os = "macos") {
        return Ok(home.join("Library").join("Jupyter"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    Ok(data.unwrap_or_else(|| home.join(".local").join("share")).join("jupyter"))
}

/// Writes the kernelspec for this very binary and the library described in `manifest`.
pub fn install(directory: &Path, manifest: &Path) -> Result<()> {
    let binary = std::env::current_exe()?;
    let spec = json!({
        "argv": [binary, "run", "--library", manifest, "{connection_file}"],
        "display_name": "Rust (candle-accelerate)",
        "language": "rust",
        "interrupt_mode": "message",
        "metadata": { "debugger": false },
    });
    fs::create_dir_all(directory)
        .with_context(|| format!("{} cannot be made", directory.display()))?;
    let path = directory.join("kernel.json");
    fs::write(&path, serde_json::to_vec_pretty(&spec)?)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Removes the kernelspec. Says whether there was one.
pub fn uninstall(directory: &Path) -> Result<bool> {
    if !directory.join("kernel.json").exists() {
        return Ok(false);
    }
    fs::remove_dir_all(directory)
        .with_context(|| format!("{} cannot be removed", directory.display()))?;
    Ok(true)
}
