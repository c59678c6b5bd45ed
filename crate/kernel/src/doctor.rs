//! `doctor`: is everything there that a notebook needs, and what to do if not.

use std::path::Path;
use std::process::Command;

use crate::library::{self, Library};

/// Less free space than this and builds start to fail.
const DISK_NEEDED: u64 = 2 << 30;

/// Prints one line per check. Returns whether all is well.
pub fn run(manifest: &Path) -> bool {
    let mut well = true;
    let mut check = |name: &str, result: Result<String, String>| match result {
        Ok(found) => println!("ok    {name}: {found}"),
        Err(problem) => {
            well = false;
            println!("FAIL  {name}: {problem}");
        }
    };
    let compiler = library::compiler(Path::new("."));
    let version = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    check("kernel", Ok(env!("CARGO_PKG_VERSION").to_owned()));
    check(
        "Rust toolchain",
        compiler.as_ref().map(|(_, v)| version(v)).map_err(|error| format!("{error:#}")),
    );
    check(
        "C compiler (links cells)",
        if library::on_path("cc") {
            Ok("cc".to_owned())
        } else {
            Err("there is no 'cc'; install gcc or clang (Debian: apt install gcc)".to_owned())
        },
    );
    let fast = ["mold", "ld.lld"].into_iter().find(|linker| library::on_path(linker));
    println!(
        "ok    fast linker: {}",
        fast.unwrap_or("none; mold or lld make cells a little faster (Debian: apt install mold)")
    );
    println!("ok    rust-src: not needed, this kernel takes types from the compiler itself");
    let library = Library::load(manifest);
    check(
        "notebook library",
        library
            .as_ref()
            .map(|library| library.dylib.display().to_string())
            .map_err(|error| format!("{error:#}")),
    );
    if let (Ok(library), Ok((_, found))) = (&library, &compiler) {
        check(
            "versions",
            if library.rustc_version == *found {
                Ok("the library was built with this toolchain".to_owned())
            } else {
                Err(format!(
                    "the library was built with {}, the toolchain is {}; run 'cargo xtask setup'",
                    version(&library.rustc_version),
                    version(found)
                ))
            },
        );
        check("compiling a cell", compile_nothing(library));
    }
    check("disk", free_space(&std::env::temp_dir()));
    well
}

fn compile_nothing(library: &Library) -> Result<String, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let source = directory.path().join("cell.rs");
    std::fs::write(&source, "pub use candle_accelerate::candle_core::Tensor;")
        .map_err(|error| error.to_string())?;
    let mut command = Command::new(&library.rustc);
    command
        .args(["--crate-type", "lib", "--emit=metadata", "--edition", "2024", "--out-dir"])
        .args([directory.path(), &source]);
    for (name, path) in &library.externs {
        command.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    for path in &library.search {
        command.arg("-L").arg(format!("dependency={}", path.display()));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok("works".to_owned())
    } else {
        let reason = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}; run 'cargo xtask setup'", reason.lines().next().unwrap_or_default()))
    }
}

fn free_space(directory: &Path) -> Result<String, String> {
    let output = Command::new("df")
        .args(["-Pk"])
        .arg(directory)
        .output()
        .map_err(|error| format!("df does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kibibytes: u64 = text
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().nth(3))
        .and_then(|field| field.parse().ok())
        .ok_or("df says nothing that can be read")?;
    let free = kibibytes * 1024;
    let shown =
        format!("{:.1} GiB free in {}", free as f64 / (1u64 << 30) as f64, directory.display());
    if free < DISK_NEEDED { Err(format!("{shown}; 2 GiB are needed")) } else { Ok(shown) }
}
