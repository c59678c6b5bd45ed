//! `:dep` lines: crates beyond those that the notebook library brings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::explain::Failure;
use crate::library::{Library, Metadata, PROFILE, artifacts, cargo, target_dir};
use crate::notebook::Notebook;

/// The package that collects a notebook's own dependencies.
const COLLECTOR: &str = "notebook-dependencies";

/// Adds what stands behind `:dep`. Costs nothing for what the library has already.
pub fn add(notebook: &mut Notebook, arguments: &str) -> Result<(), Failure> {
    let failure = |error: anyhow::Error| Failure::new("DependencyError", format!("{error:#}"));
    let dependency = Dependency::parse(arguments).map_err(failure)?;
    let library = notebook.compiler.library().clone();
    let is_known = library.externs.iter().any(|(name, _)| *name == dependency.crate_name());
    if is_known || notebook.dependencies.contains(&dependency) {
        return Ok(());
    }
    let dependency = dependency.with_absolute_path().map_err(failure)?;
    let mut wanted = notebook.dependencies.clone();
    wanted.retain(|old| old.name != dependency.name);
    wanted.push(dependency);
    let directory = notebook.session.directory().join(COLLECTOR);
    let number = notebook.compiler.linked.len() + 1;
    let built =
        build(&library, &wanted, &directory, number, &notebook.compiler.linked).map_err(failure)?;
    notebook.dependencies = wanted;
    notebook.compiler.externs = built.externs;
    notebook.compiler.search = vec![directory];
    notebook.compiler.linked.push((built.name, built.object));
    Ok(())
}

/// One `:dep` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    name: String,
    /// What stands in Cargo.toml behind the equals sign.
    requirement: String,
}

impl Dependency {
    fn parse(arguments: &str) -> Result<Self> {
        let (name, requirement) = match arguments.split_once('=') {
            Some((name, requirement)) => (name.trim(), requirement.trim()),
            None => (arguments.trim(), "\"*\""),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || requirement.is_empty() {
            bail!("':dep {arguments}' is not of the form ':dep name = \"version\"'");
        }
        Ok(Self { name: name.to_owned(), requirement: requirement.to_owned() })
    }

    /// A path in a notebook is relative to the notebook, which is where the kernel runs.
    fn with_absolute_path(mut self) -> Result<Self> {
        let pattern = regex::Regex::new(r#"\bpath\s*=\s*"([^"]*)""#)?;
        if let Some(found) = pattern.captures(&self.requirement) {
            let path = Path::new(&found[1]);
            let absolute =
                path.canonicalize().with_context(|| format!("{} in ':dep'", path.display()))?;
            let replacement = format!("path = {:?}", absolute.display().to_string());
            let replaced = pattern.replace(&self.requirement, regex::NoExpand(&replacement));
            self.requirement = replaced.into_owned();
        }
        Ok(self)
    }

    fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }
}

struct Built {
    /// The crate that holds the code.
    name: String,
    object: PathBuf,
    externs: Vec<(String, PathBuf)>,
}

fn build(
    library: &Library,
    dependencies: &[Dependency],
    directory: &Path,
    number: usize,
    earlier: &[(String, PathBuf)],
) -> Result<Built> {
    write_package(library, dependencies, directory)?;
    let output = Command::new(cargo())
        .current_dir(directory)
        .args(["build", "--profile", PROFILE, "--message-format=json-render-diagnostics"])
        .arg("--target-dir")
        .arg(target_dir(&library.workspace))
        .env("CARGO_ENCODED_RUSTFLAGS", library.rustflags.join("\x1f"))
        .env("RUSTC", &library.rustc)
        .env("CARGO_INCREMENTAL", "0")
        .stdin(Stdio::null())
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let artifacts = artifacts(&String::from_utf8_lossy(&output.stdout));
    let metadata = Metadata::of(directory, &library.rustc_version)?;
    let collector = metadata.package(COLLECTOR)?;
    refuse_second_copy(library, artifacts.values())?;
    let mut externs = Vec::new();
    for (name, id) in collector.dependencies {
        let file = artifacts.get(&id).ok_or_else(|| anyhow!("{name} has no library"))?;
        externs.push((name, bring(file, library, directory)?));
    }
    // What they depend on is found by its name in the folder.
    for file in artifacts.values() {
        bring(file, library, directory)?;
    }

    // One shared object for them all, so that their statics exist once too.
    let name = format!("notebook_dependencies_{number}");
    let object = directory.join(format!("lib{name}.so"));
    let mut source = String::from("extern crate candle_accelerate_dylib as _;\n");
    for (name, _) in earlier {
        source.push_str(&format!("extern crate {name} as _;\n"));
    }
    for (name, _) in &externs {
        source.push_str(&format!("pub use {name};\n"));
    }
    let root = directory.join(format!("{name}.rs"));
    fs::write(&root, source)?;
    let mut rustc = Command::new(&library.rustc);
    rustc
        .current_dir(directory)
        .args(["--crate-type", "dylib", "--edition", "2024", "--crate-name", &name])
        .arg(&root)
        .arg("-o")
        .arg(&object)
        .args(&library.rustflags);
    for (name, path) in library.externs.iter().chain(&externs).chain(earlier) {
        rustc.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    for search in library.search.iter().map(PathBuf::as_path).chain([directory]) {
        rustc.arg("-L").arg(format!("dependency={}", search.display()));
    }
    for path in library.loader_path.iter().map(PathBuf::as_path).chain([directory]) {
        rustc.arg(format!("-Clink-arg=-Wl,-rpath,{}", path.display()));
    }
    let output = rustc.output()?;
    if !output.status.success() {
        bail!("linking failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(Built { name, object, externs })
}

fn write_package(library: &Library, dependencies: &[Dependency], directory: &Path) -> Result<()> {
    fs::create_dir_all(directory.join("src"))?;
    fs::write(directory.join("src").join("lib.rs"), "")?;
    let lines: String = dependencies
        .iter()
        .map(|dependency| format!("{} = {}\n", dependency.name, dependency.requirement))
        .collect();
    fs::write(
        directory.join("Cargo.toml"),
        format!(
            "[package]\nname = \"{COLLECTOR}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{lines}\n[workspace]\n\n[profile.{PROFILE}]\ninherits = \"release\"\n\
             panic = \"unwind\"\nstrip = \"debuginfo\"\n"
        ),
    )?;
    // The same versions as in the library, so that common crates are shared and not built again.
    let lock = directory.join("Cargo.lock");
    if !lock.exists() {
        let _ = fs::copy(library.workspace.join("Cargo.lock"), lock);
    }
    Ok(())
}

/// Puts a library next to the notebook's others, unless candle-accelerate's has it already.
fn bring(file: &Path, library: &Library, directory: &Path) -> Result<PathBuf> {
    let name = file.file_name().context("a library without a name")?;
    let known = library.search.iter().map(|folder| folder.join(name)).find(|path| path.exists());
    if let Some(known) = known {
        return Ok(known);
    }
    let own = directory.join(name);
    if !own.exists() && fs::hard_link(file, &own).is_err() {
        // Another file system.
        fs::copy(file, &own)?;
    }
    Ok(own)
}

/// Two copies of candle in one notebook give wrong gradients without an error.
fn refuse_second_copy<'a>(
    library: &Library,
    artifacts: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    let file = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let ours = library.externs.iter().find(|(name, _)| name == "candle_core");
    let ours = ours.and_then(|(_, path)| file(path));
    for path in artifacts {
        let name = file(path).unwrap_or_default();
        if name.starts_with("libcandle_core-") && Some(&name) != ours.as_ref() {
            bail!(
                "this crate brings a second copy of candle-core, with which gradients would be \
                 wrong; use a version that depends on the same candle as candle-accelerate"
            );
        }
    }
    Ok(())
}
