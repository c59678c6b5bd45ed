//! `cargo xtask bench`: how long a notebook keeps its reader waiting, against other kernels.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run};
use crate::python::Environment;
use crate::setup::prepare;
use crate::workspace::Workspace;

const STOCK: &str = "evcxr_jupyter";
const STOCK_VERSION: &str = "0.22.0";

/// What the command takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// An installed evcxr_jupyter 0.22; built into target/stock if not given
    #[arg(long, value_name = "BINARY")]
    stock: Option<PathBuf>,
    /// A Python environment with torch, transformers, accelerate and ipykernel; made in
    /// target/venv-torch if not given
    #[arg(long, value_name = "FOLDER")]
    torch: Option<PathBuf>,
    /// How many times each kernel is started, cold and warm
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The same for evcxr_jupyter, which takes minutes each time
    #[arg(long, default_value_t = 1)]
    stock_rounds: u32,
}

/// Measures all kernels in one run; the table goes to the screen, the figures to target/bench/.
pub fn bench(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    check_library_sources()?;
    let environment = prepare(workspace)?;
    let stock = match &arguments.stock {
        Some(binary) => binary.clone(),
        None => stock_kernel(workspace)?,
    };
    let torch = match &arguments.torch {
        Some(folder) => folder.clone(),
        None => torch_environment(workspace)?,
    };
    run(environment
        .python()
        .arg(workspace.tests().join("bench_waiting.py"))
        .arg("--stock")
        .arg(stock)
        .arg("--torch")
        .arg(torch)
        .arg(format!("--rounds={}", arguments.rounds))
        .arg(format!("--stock-rounds={}", arguments.stock_rounds))
        .arg("--output")
        .arg(workspace.target().join("bench/waiting.json")))
}

/// Without these, evcxr cannot tell the types of variables: cells that define any fail.
fn check_library_sources() -> Result<()> {
    let library = match std::env::var_os("RUST_SRC_PATH") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let sysroot = output_of(Command::new("rustc").args(["--print", "sysroot"]))
                .context("rustc does not run")?;
            Path::new(&sysroot).join("lib/rustlib/src/rust/library")
        }
    };
    if !library.join("core").is_dir() {
        bail!(
            "{STOCK} needs the standard library's sources, and {} does not hold them: \
             `rustup component add rust-src`, or set RUST_SRC_PATH to a folder that does",
            library.display()
        );
    }
    Ok(())
}

fn stock_kernel(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("stock");
    let binary = folder.join("bin").join(STOCK);
    if !binary.exists() {
        println!("Building {STOCK} {STOCK_VERSION} to compare with; this takes about ten minutes");
        run(workspace
            .cargo()
            .args(["install", STOCK, "--version", STOCK_VERSION, "--locked", "--root"])
            .arg(folder))?;
    }
    Ok(binary)
}

fn torch_environment(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target().join("venv-torch");
    let requirements = workspace.tests().join("requirements-torch.txt");
    Ok(Environment::ensure(&folder, &requirements)?.folder().to_path_buf())
}
