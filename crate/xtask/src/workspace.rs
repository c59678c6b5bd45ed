//! Where things lie.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The folders that the commands read and write.
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// The workspace that this program was started from through cargo.
    pub fn find() -> Result<Self> {
        let manifest =
            env::var_os("CARGO_MANIFEST_DIR").context("start this through `cargo xtask`")?;
        let root = Path::new(&manifest)
            .ancestors()
            .nth(2)
            .context("crate/xtask is not two folders below the workspace")?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            // Cargo takes a relative folder from where it is started: for us, the root.
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// The folder of the workspace's `Cargo.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder; results of commands go to folders below it.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The folder of the notebooks.
    pub fn notebooks(&self) -> PathBuf {
        self.root.join("notebooks")
    }

    /// The folder of the Python tests and drivers.
    pub fn tests(&self) -> PathBuf {
        self.root.join("tests")
    }

    /// The Python environment that holds Jupyter and the kernel.
    pub fn venv(&self) -> PathBuf {
        self.root.join(".venv")
    }

    /// Cargo, ready to be given arguments, started in the root of the workspace.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        cargo
    }
}
