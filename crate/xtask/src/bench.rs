//! `cargo xtask bench`: how long a notebook keeps its reader waiting, against other kernels.

use std::path::PathBuf;

use anyhow::Result;

use crate::process::run;
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
    /// How many times each kernel is started
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// Measures all kernels in one run; the table goes to the screen, the figures to target/bench/.
pub fn bench(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
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
        .arg("--output")
        .arg(workspace.target().join("bench/waiting.json")))
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
