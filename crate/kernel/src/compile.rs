//! One call of rustc turns a cell's generated source into a shared object.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::diagnostics::Diagnostic;
use crate::generate::Source;
use crate::interrupts::Interrupts;
use crate::library::Library;

/// Cells share one crate name and disambiguator, so that a struct of one cell is the same type in
/// the next.
const CRATE_NAME: &str = "notebook";

/// What came of compiling a cell.
pub enum Compiled {
    /// It can be loaded.
    Object {
        /// The shared object.
        path: PathBuf,
        /// The type of each variable that the cell defines, as Rust source.
        types: BTreeMap<String, String>,
        /// What the compiler warned about.
        warnings: Vec<Diagnostic>,
    },
    /// It is wrong.
    Errors(Vec<Diagnostic>),
    /// The compiler was stopped.
    Interrupted,
}

/// Compiles cells in one folder.
pub struct Compiler {
    library: Library,
    directory: PathBuf,
    /// How much the code of cells is optimised: `0` to `3`.
    pub opt_level: String,
    /// More crates that cells can name, from `:dep`.
    pub externs: Vec<(String, PathBuf)>,
    /// Folders with the metadata of what they depend on.
    pub search: Vec<PathBuf>,
    /// Crates that must be linked even when a cell does not name them, since they hold the one
    /// copy of what `externs` describe: name and file.
    pub linked: Vec<(String, PathBuf)>,
    builds: usize,
}

impl Compiler {
    /// A compiler that puts its files into `directory`.
    pub fn new(library: Library, directory: &Path) -> Self {
        Self {
            library,
            directory: directory.to_path_buf(),
            // The library's own code is fully optimised, and cells mostly call it. Optimising a
            // cell as well takes three times as long.
            opt_level: "0".to_owned(),
            externs: Vec::new(),
            search: Vec::new(),
            linked: Vec::new(),
            builds: 0,
        }
    }

    /// The library that cells are linked to.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Compiles `source`, to be known as `file` in messages.
    pub fn compile(
        &mut self,
        source: &Source,
        file: &str,
        interrupts: &Interrupts,
    ) -> Result<Compiled> {
        // Each object keeps its own file, since a loaded one must not be overwritten.
        self.builds += 1;
        let object = self.directory.join(format!("cell_{}.so", self.builds));
        let mir = object.with_extension("mir");
        let path = self.directory.join(file);
        fs::write(&path, source.text())
            .with_context(|| format!("{} cannot be written", path.display()))?;
        let mut command = self.command(file, &object, &mir);
        let mut rustc = command
            .spawn()
            .with_context(|| format!("{} cannot be started", self.library.rustc.display()))?;
        let mut stderr = String::new();
        let pipe = rustc.stderr.take();
        let finished = interrupts.while_compiling(rustc, || {
            if let Some(mut pipe) = pipe {
                // What cannot be read shows up as a failed compilation without a message.
                let _ = pipe.read_to_string(&mut stderr);
            }
        })?;
        let Some(status) = finished else { return Ok(Compiled::Interrupted) };
        let diagnostics = Diagnostic::parse_all(&stderr);
        if !status.success() {
            let errors: Vec<_> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
            if errors.is_empty() {
                anyhow::bail!("rustc failed without a message ({status}): {stderr}");
            }
            return Ok(Compiled::Errors(errors));
        }
        let mir_text = fs::read_to_string(&mir).unwrap_or_default();
        // Only the object is needed from here on.
        let _ = fs::remove_file(&mir);
        Ok(Compiled::Object {
            path: object,
            types: variable_types(&mir_text),
            warnings: diagnostics,
        })
    }

    fn command(&self, file: &str, object: &Path, mir: &Path) -> Command {
        let library = &self.library;
        let mut command = Command::new(&library.rustc);
        command
            .current_dir(&self.directory)
            .args(["--crate-name", CRATE_NAME, "--edition", "2024", "--crate-type", "cdylib", file])
            .args(["-Cmetadata=notebook", "-Ccodegen-units=1", "-Cdebug-assertions=yes"])
            .arg(format!("-Copt-level={}", self.opt_level))
            .arg("--error-format=json")
            // The types of variables are read off the MIR. Full paths in it are a nightly flag,
            // which the environment variable below allows for this one crate.
            .arg(format!("--emit=link={},mir={}", object.display(), mir.display()))
            .arg("-Ztrim-diagnostic-paths=no")
            .env("RUSTC_BOOTSTRAP", CRATE_NAME)
            .args(&library.rustflags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(linker) = &library.linker {
            command.arg(format!("-Clink-arg=-fuse-ld={linker}"));
        }
        for directory in library.loader_path.iter().chain(&self.search) {
            command.arg(format!("-Clink-arg=-Wl,-rpath,{}", directory.display()));
        }
        for (name, path) in library.externs.iter().chain(&self.externs).chain(&self.linked) {
            command.arg("--extern").arg(format!("{name}={}", path.display()));
        }
        for directory in library.search.iter().chain(&self.search) {
            command.arg("-L").arg(format!("dependency={}", directory.display()));
        }
        command
    }
}

/// The start of the name of the generated function that stores a variable.
pub const KEEP: &str = "__candle_accelerate_keep_";

/// Reads the types of variables off the calls to the functions that store them.
fn variable_types(mir: &str) -> BTreeMap<String, String> {
    let mut types = BTreeMap::new();
    for (at, _) in mir.match_indices(KEEP) {
        let rest = &mir[at + KEEP.len()..];
        let Some((name, rest)) = rest.split_once("::<") else { continue };
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if let (true, Some(ty)) = (is_name, until_closing_angle(rest)) {
            types.insert(name.to_owned(), ty.to_owned());
        }
    }
    types
}

/// The text up to the `>` that closes an already open `<`.
fn until_closing_angle(text: &str) -> Option<&str> {
    let mut depth = 1;
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // Not the arrow of a function type.
            '>' if previous != '-' => depth -= 1,
            '\n' => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[..at]);
        }
        previous = character;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_off_the_mir() {
        let mir = "\
            _1 = __candle_accelerate_keep_v::<std::vec::Vec<i32>>(move _2, move _3) -> [return: bb1];\n\
            _4 = __candle_accelerate_keep_f::<std::boxed::Box<dyn std::ops::Fn(i32) -> i32>>(move _5) -> x;\n\
            fn __candle_accelerate_keep_g(_1: &mut Variables, _2: T) -> () {\n";
        let types = variable_types(mir);
        assert_eq!(types["v"], "std::vec::Vec<i32>");
        assert_eq!(types["f"], "std::boxed::Box<dyn std::ops::Fn(i32) -> i32>");
        assert_eq!(types.len(), 2);
    }
}
