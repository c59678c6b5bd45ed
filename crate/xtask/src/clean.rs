//! `cargo xtask clean`: back to a fresh clone.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Removes the folders that hold everything that these commands made.
pub fn clean(workspace: &Workspace) -> Result<()> {
    // The notebook library is in the workspace's own target folder, wherever Cargo's is.
    let library = workspace.root().join("target/library");
    for folder in [workspace.venv(), workspace.target().to_path_buf(), library] {
        if folder.exists() {
            println!("Removing {}", folder.display());
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    Ok(())
}
