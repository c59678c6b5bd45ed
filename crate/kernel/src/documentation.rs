//! Runs rustdoc over the library, so that completion and inspection know it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::index::Index;
use crate::library::{Library, Metadata};

/// The crates that students call.
const CRATES: [&str; 3] = ["candle-core", "candle-nn", "candle-accelerate"];

/// Where the index of the library described in `manifest` is.
pub fn index_path(manifest: &Path) -> PathBuf {
    manifest.with_file_name("index.json")
}

/// Documents the library's crates and writes the index.
pub fn build(
    library: &Library,
    metadata: &Metadata,
    artifacts: &HashMap<String, PathBuf>,
) -> Result<()> {
    let path = index_path(&Library::manifest(&library.workspace));
    if is_newer(&path, &library.dylib) {
        return Ok(());
    }
    let directory = path.with_file_name("documentation");
    fs::create_dir_all(&directory)?;
    let mut index = Index::default();
    for name in CRATES {
        let package = metadata.package(name)?;
        let crate_name = name.replace('-', "_");
        let mut rustdoc = Command::new(library.rustc.with_file_name("rustdoc"));
        rustdoc
            .arg(&package.source)
            .args(["--crate-name", &crate_name, "--edition", &package.edition])
            .args(["--cap-lints", "allow"])
            .args(["-Zunstable-options", "--output-format", "json", "--out-dir"])
            .arg(&directory)
            // rustdoc's JSON is a nightly format, which this allows for this one call.
            .env("RUSTC_BOOTSTRAP", "1")
            .stderr(Stdio::piped());
        for feature in &package.features {
            rustdoc.arg("--cfg").arg(format!("feature=\"{feature}\""));
        }
        for search in &library.search {
            rustdoc.arg("-L").arg(format!("dependency={}", search.display()));
        }
        for (name, id) in &package.dependencies {
            if let Some(path) = artifacts.get(id) {
                rustdoc.arg("--extern").arg(format!("{name}={}", path.display()));
            }
        }
        let output = rustdoc.output().context("rustdoc cannot be started")?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("rustdoc fails on {name}: {}", reason.lines().next().unwrap_or_default());
        }
        index.add(&directory.join(format!("{crate_name}.json")))?;
    }
    fs::write(&path, serde_json::to_vec(&index)?)
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    matches!((time(file), time(than)), (Some(file), Some(than)) if file > than)
}
