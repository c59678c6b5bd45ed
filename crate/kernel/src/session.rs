//! A kernel's private folder, gone when the kernel ends.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// The start of the name of every session's folder.
const PREFIX: &str = "candle-accelerate-kernel-";

/// Held locked by a living kernel.
const LOCK: &str = "lock";

/// The folder that a kernel compiles its cells in.
pub struct Session {
    directory: TempDir,
    _lock: File,
}

impl Session {
    /// Makes the folder in `parent`, and removes those of kernels that crashed.
    pub fn new_in(parent: &Path) -> Result<Self> {
        remove_leftovers(parent);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(parent)
            .with_context(|| format!("no folder can be made in {}", parent.display()))?;
        // Locked before it has its name, or another kernel could take it for a leftover.
        let unfinished = directory.path().join("lock.new");
        let lock = File::create(&unfinished)?;
        lock.lock()?;
        fs::rename(unfinished, directory.path().join(LOCK))?;
        Ok(Self { directory, _lock: lock })
    }

    /// The folder.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the folders of kernels that no longer hold their lock.
pub fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // Another user's folder, or one that is just being made, cannot be locked: it stays.
        let is_left = File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if is_left {
            // Whatever cannot be removed is tried again by the next kernel.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_and_living_sessions_stay() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let directory = parent.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&directory).unwrap();
            (File::create(directory.join(LOCK)).unwrap(), directory)
        };
        let (_crashed, left) = make("crashed");
        let (living, kept) = make("living");
        living.lock().unwrap();
        remove_leftovers(parent.path());
        assert!(!left.exists());
        assert!(kept.exists());
    }
}
