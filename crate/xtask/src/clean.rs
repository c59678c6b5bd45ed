//! `cargo xtask clean`: back to a fresh clone.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Removes `.venv` and the target folder, which hold everything that these commands made.
pub fn clean(workspace: &Workspace) -> Result<()> {
    for folder in [workspace.venv(), workspace.target().to_path_buf()] {
        if folder.exists() {
            println!("Removing {}", folder.display());
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    Ok(())
}
