//! The project's commands: `cargo xtask lab`, `run`, `test` and so on.
//!
//! Everything they make lies in `.venv` and in Cargo's target folder; nothing outside the
//! workspace is written, caches of cargo, pip and npm apart.

mod bench;
mod clean;
mod lab;
mod parity;
mod process;
mod python;
mod real_inputs;
mod run;
mod setup;
mod tally;
mod test;
mod torch;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's commands", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prepare everything the notebooks need: `.venv`, the kernel, the notebook library
    Setup,
    /// Open JupyterLab on notebooks/
    Lab(lab::Arguments),
    /// Execute notebooks from top to bottom; the results go to target/notebooks/
    Run(run::Arguments),
    /// Run every test: formatting, lints, Rust, kernel, notebooks
    Test,
    /// Compare with PyTorch and transformers while they run
    Parity(torch::TorchOption),
    /// Measure how fast this is, against what else there is
    Bench(bench::Arguments),
    /// Remove everything that these commands made
    Clean,
}

fn main() -> ExitCode {
    let outcome = Workspace::find().and_then(|workspace| match Arguments::parse().command {
        Command::Setup => setup::setup(&workspace),
        Command::Lab(arguments) => lab::lab(&workspace, &arguments),
        Command::Run(arguments) => run::run(&workspace, &arguments),
        Command::Test => test::test(&workspace),
        Command::Parity(torch) => parity::parity(&workspace, &torch),
        Command::Bench(arguments) => bench::bench(&workspace, &arguments),
        Command::Clean => clean::clean(&workspace),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
