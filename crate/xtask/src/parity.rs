//! `cargo xtask parity`: the tests that compare with the Python packages while they run.

use anyhow::Result;

use crate::process::run;
use crate::torch::TorchOption;
use crate::workspace::Workspace;

/// Runs them with a Python that has torch and transformers.
pub fn parity(workspace: &Workspace, torch: &TorchOption) -> Result<()> {
    let python = torch.folder(workspace)?.join("bin/python");
    run(workspace
        .cargo()
        .args(["test", "--locked", "--package", "candle-accelerate", "--test", "pytorch_parity"])
        .args(["--", "--include-ignored"])
        .env("CANDLE_ACCELERATE_PYTHON", python))
}
