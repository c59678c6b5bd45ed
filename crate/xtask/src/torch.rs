//! A Python environment with PyTorch, transformers and Accelerate, to compare with.

use std::path::PathBuf;

use anyhow::Result;

use crate::python::Environment;
use crate::workspace::Workspace;

/// Which environment to take.
#[derive(clap::Args)]
pub struct TorchOption {
    /// A Python environment with torch, transformers, accelerate and ipykernel; made in
    /// target/venv-torch if not given
    #[arg(long, value_name = "FOLDER")]
    torch: Option<PathBuf>,
}

impl TorchOption {
    /// The folder of the environment; makes one if none is given.
    pub fn folder(&self, workspace: &Workspace) -> Result<PathBuf> {
        if let Some(folder) = &self.torch {
            return Ok(folder.clone());
        }
        let folder = workspace.target().join("venv-torch");
        let requirements = workspace.tests().join("requirements-torch.txt");
        Ok(Environment::ensure(&folder, &requirements)?.folder().to_path_buf())
    }
}
