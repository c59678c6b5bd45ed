//! `cargo xtask bench`: how fast this is, against what else there is.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run};
use crate::setup::prepare;
use crate::torch::TorchOption;
use crate::workspace::Workspace;

const STOCK: &str = "evcxr_jupyter";
const STOCK_VERSION: &str = "0.22.0";

/// What is measured.
#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// How long a notebook keeps its reader waiting, against stock evcxr and Python
    Waiting,
    /// A training step, against PyTorch
    Training,
}

/// What the command takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// Everything if not given
    what: Option<What>,
    /// An installed evcxr_jupyter 0.22; built into target/stock if not given
    #[arg(long, value_name = "BINARY")]
    stock: Option<PathBuf>,
    #[command(flatten)]
    torch: TorchOption,
    /// How many times each kernel is started, cold and warm
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The same for evcxr_jupyter, which takes minutes each time
    #[arg(long, default_value_t = 1)]
    stock_rounds: u32,
}

/// Measures in one run; tables go to the screen, the kernels' figures to target/bench/ too.
pub fn bench(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let torch = arguments.torch.folder(workspace)?;
    if !matches!(arguments.what, Some(What::Training)) {
        waiting(workspace, arguments, &torch)?;
    }
    if !matches!(arguments.what, Some(What::Waiting)) {
        training(workspace, &torch)?;
    }
    Ok(())
}

fn waiting(workspace: &Workspace, arguments: &Arguments, torch: &Path) -> Result<()> {
    check_library_sources()?;
    let environment = prepare(workspace)?;
    let stock = match &arguments.stock {
        Some(binary) => binary.clone(),
        None => stock_kernel(workspace)?,
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

fn training(workspace: &Workspace, torch: &Path) -> Result<()> {
    run(workspace
        .cargo()
        .args(["bench", "--locked", "--package", "candle-accelerate", "--bench", "training_step"])
        .env("CANDLE_ACCELERATE_PYTHON", torch.join("bin/python")))
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
