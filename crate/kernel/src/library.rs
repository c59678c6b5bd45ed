//! The notebook library: candle and candle-accelerate, built once, linked by every cell.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::documentation;
use crate::session::Session;

/// The package whose dylib the cells link.
const PACKAGE: &str = "candle-accelerate-dylib";

/// The name under which cells see that package.
const CELL_NAME: &str = "candle_accelerate";

/// The cargo profile that the library is built with.
pub const PROFILE: &str = "notebook";

/// What it takes to compile a cell against the library, as found when the library was built.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Library {
    /// The compiler itself, not rustup's proxy, which costs a tenth of a second per call.
    pub rustc: PathBuf,
    /// `rustc -vV` of that compiler.
    pub rustc_version: String,
    /// The shared object.
    pub dylib: PathBuf,
    /// Crates that cells can name: name and file.
    pub externs: Vec<(String, PathBuf)>,
    /// Folders with the metadata of all other crates.
    pub search: Vec<PathBuf>,
    /// Folders that the loader must search: the library's and the standard library's.
    pub loader_path: Vec<PathBuf>,
    /// The flags that the library was compiled with.
    pub rustflags: Vec<String>,
    /// The workspace it was built from.
    pub workspace: PathBuf,
    /// The linker for cells: `mold`, `lld` or none for the system's.
    pub linker: Option<String>,
}

impl Library {
    /// Where [`build`](Self::build) writes the description of the library of `workspace`.
    pub fn manifest(workspace: &Path) -> PathBuf {
        target_dir(workspace).join("library.json")
    }

    /// Reads what [`build`](Self::build) has written.
    pub fn load(manifest: &Path) -> Result<Self> {
        let what_to_do = "run 'cargo xtask setup', or 'candle-accelerate-kernel install'";
        let text = fs::read_to_string(manifest).with_context(|| {
            format!("the notebook library is not built ({}): {what_to_do}", manifest.display())
        })?;
        let library: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged: {what_to_do}", manifest.display()))?;
        if !library.dylib.exists() {
            bail!("{} is missing: {what_to_do}", library.dylib.display());
        }
        if !library.rustc.exists() {
            bail!("the compiler {} is gone: {what_to_do}", library.rustc.display());
        }
        Ok(library)
    }

    /// The same library by private hard links, so that building it anew does not pull it away from
    /// under a running notebook. Where no links can be made (a read-only installation), the library
    /// itself, which nobody builds anew there.
    pub fn link_for_session(self) -> (Self, Option<Session>) {
        match self.link() {
            Ok((linked, links)) => (linked, Some(links)),
            Err(error) => {
                tracing::info!("the library is used in place: {error:#}");
                (self, None)
            }
        }
    }

    fn link(&self) -> Result<(Self, Session)> {
        let parent = target_dir(&self.workspace).join("sessions");
        fs::create_dir_all(&parent)?;
        let links = Session::new_in(&parent)?;
        let folder = links.directory();
        let link = |path: &Path| -> Result<PathBuf> {
            let link = folder.join(path.file_name().context("a library without a name")?);
            // A file may be listed twice.
            if !link.exists() {
                fs::hard_link(path, &link)?;
            }
            Ok(link)
        };
        let mut linked = self.clone();
        linked.dylib = link(&self.dylib)?;
        for (_, path) in &mut linked.externs {
            *path = link(path)?;
        }
        for directory in &self.search {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                let is_library = path.extension().is_some_and(|kind| {
                    ["rlib", "rmeta", "so", "dylib"].iter().any(|k| kind == *k)
                });
                if is_library {
                    link(&path)?;
                }
            }
        }
        linked.search = vec![folder.to_path_buf()];
        linked.loader_path.insert(0, folder.to_path_buf());
        Ok((linked, links))
    }

    /// Builds the library of `workspace`; fast when nothing changed. Writes cargo's progress to
    /// stderr.
    pub fn build(workspace: &Path, native: bool) -> Result<Self> {
        let workspace = workspace
            .canonicalize()
            .with_context(|| format!("there is no workspace at {}", workspace.display()))?;
        let (rustc, rustc_version) = compiler(&workspace)?;
        let mut rustflags = vec!["-Cprefer-dynamic".to_owned()];
        if native {
            rustflags.push("-Ctarget-cpu=native".to_owned());
        }
        let output = Command::new(cargo())
            .current_dir(&workspace)
            .args(["build", "--package", PACKAGE, "--profile", PROFILE])
            .arg("--message-format=json-render-diagnostics")
            .arg("--target-dir")
            .arg(target_dir(&workspace))
            .env("CARGO_ENCODED_RUSTFLAGS", rustflags.join("\x1f"))
            .env("RUSTC", &rustc)
            // Incremental state is of no use here and doubles the folder.
            .env("CARGO_INCREMENTAL", "0")
            .stderr(Stdio::inherit())
            .output()
            .context("cargo cannot be started: install Rust from https://rustup.rs")?;
        if !output.status.success() {
            bail!("building {PACKAGE} failed, see cargo's output above");
        }
        let artifacts = artifacts(&String::from_utf8_lossy(&output.stdout));
        let metadata = Metadata::of(&workspace, &rustc_version)?;
        let package = metadata.package(PACKAGE)?;
        let dylib = artifacts
            .get(&package.id)
            .cloned()
            .ok_or_else(|| anyhow!("cargo did not say where it put {PACKAGE}"))?;
        let mut externs =
            vec![(CELL_NAME.to_owned(), dylib.clone()), (PACKAGE.replace('-', "_"), dylib.clone())];
        for (name, id) in package.dependencies {
            if let Some(path) = artifacts.get(&id).filter(|_| name != CELL_NAME) {
                externs.push((name, path.clone()));
            }
        }
        let output_dir = dylib.parent().unwrap_or(&workspace).to_path_buf();
        let library = Self {
            search: vec![output_dir.join("deps")],
            loader_path: vec![output_dir, standard_library_dir(&rustc)?],
            linker: ["mold", "ld.lld"]
                .into_iter()
                .find(|linker| on_path(linker))
                .map(|linker| linker.trim_start_matches("ld.").to_owned()),
            rustc,
            rustc_version,
            dylib,
            externs,
            rustflags,
            workspace: workspace.clone(),
        };
        let manifest = Self::manifest(&workspace);
        fs::write(&manifest, serde_json::to_vec_pretty(&library)?)
            .with_context(|| format!("{} cannot be written", manifest.display()))?;
        // Notebooks work without documentation, if this compiler writes it in another format.
        if let Err(error) = documentation::build(&library, &metadata, &artifacts) {
            eprintln!("warning: completion will not know the library: {error:#}");
        }
        Ok(library)
    }
}

/// Where the library of `workspace` is built: its own folder, since the flags differ from those of an ordinary build.
pub fn target_dir(workspace: &Path) -> PathBuf {
    workspace.join("target").join("library")
}

/// The cargo to call.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Whether a program of this name is on the PATH.
pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// The compiler that `rustc` stands for in `directory`, and its version.
pub fn compiler(directory: &Path) -> Result<(PathBuf, String)> {
    let ask = |program: &Path, arguments: &[&str]| -> Result<String> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .output()
            .context("rustc cannot be started: install Rust from https://rustup.rs")?;
        if !output.status.success() {
            bail!("rustc does not work: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let sysroot = ask(Path::new("rustc"), &["--print", "sysroot"])?;
    let direct = Path::new(&sysroot).join("bin").join("rustc");
    let rustc = if direct.exists() { direct } else { PathBuf::from("rustc") };
    let version = ask(&rustc, &["-vV"])?;
    Ok((rustc, version))
}

fn standard_library_dir(rustc: &Path) -> Result<PathBuf> {
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output()?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The file of each library that cargo reports, by package id.
pub fn artifacts(messages: &str) -> HashMap<String, PathBuf> {
    let mut found = HashMap::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if message["reason"] != "compiler-artifact" {
            continue;
        }
        let is_library = message["target"]["kind"].as_array().is_some_and(|kinds| {
            kinds.iter().any(|kind| kind == "lib" || kind == "rlib" || kind == "dylib")
        });
        let file = message["filenames"].as_array().into_iter().flatten().find_map(|name| {
            name.as_str()
                .filter(|name| [".rlib", ".so", ".dylib"].iter().any(|e| name.ends_with(e)))
        });
        if let (true, Some(id), Some(file)) = (is_library, message["package_id"].as_str(), file) {
            found.insert(id.to_owned(), PathBuf::from(file));
        }
    }
    found
}

/// What cargo knows about a workspace.
pub struct Metadata(Value);

/// A package and what it depends on.
pub struct Package {
    /// The package's id.
    pub id: String,
    /// The library's root file.
    pub source: PathBuf,
    /// The edition of Rust that it is written in.
    pub edition: String,
    /// The features that are on.
    pub features: Vec<String>,
    /// What it depends on directly: crate name and package id.
    pub dependencies: Vec<(String, String)>,
}

impl Metadata {
    /// Asks cargo about `workspace`, as the compiler with this `rustc -vV` builds it.
    pub fn of(workspace: &Path, rustc_version: &str) -> Result<Self> {
        let host = rustc_version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("rustc does not say its host")?;
        let output = Command::new(cargo())
            .current_dir(workspace)
            // Without the filter, cargo downloads what only other systems need.
            .args(["metadata", "--format-version=1", "--filter-platform", host])
            .stderr(Stdio::inherit())
            .output()?;
        serde_json::from_slice(&output.stdout).map(Self).context("cargo metadata gave no JSON")
    }

    /// The package called `name`.
    pub fn package(&self, name: &str) -> Result<Package> {
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let package = array(&self.0["packages"])
            .into_iter()
            .find(|package| package["name"] == name)
            .ok_or_else(|| anyhow!("cargo knows no package {name}"))?;
        let id = text(&package["id"]).context("cargo metadata has a package without id")?;
        let node = array(&self.0["resolve"]["nodes"])
            .into_iter()
            .find(|node| node["id"] == id.as_str())
            .unwrap_or_default();
        let is_library = |target: &Value| {
            array(&target["kind"]).iter().any(|kind| matches!(kind.as_str(), Some("lib" | "dylib")))
        };
        let target = array(&package["targets"]).into_iter().find(is_library).unwrap_or_default();
        Ok(Package {
            id,
            source: text(&target["src_path"]).unwrap_or_default().into(),
            edition: text(&package["edition"]).unwrap_or_default(),
            features: array(&node["features"]).iter().filter_map(text).collect(),
            dependencies: array(&node["deps"])
                .iter()
                .filter_map(|dependency| {
                    Some((text(&dependency["name"])?, text(&dependency["pkg"])?))
                })
                .collect(),
        })
    }
}
