//! A Jupyter kernel that trains models: cells link one prebuilt library, so they start fast and
//! candle's autograd is right.

mod cell;
mod child;
mod commands;
mod compile;
mod complete;
mod dependencies;
mod diagnostics;
mod doctor;
mod documentation;
mod explain;
mod generate;
mod index;
mod interrupts;
mod items;
mod kernelspec;
mod library;
mod notebook;
mod output;
mod publish;
mod server;
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::kernelspec::Location;
use crate::library::Library;

/// A Jupyter kernel for training with candle-accelerate in Rust notebooks
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Build the notebook library and tell Jupyter about the kernel
    Install {
        #[command(flatten)]
        location: Location,
        /// The folder with candle-accelerate's Cargo.toml
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        workspace: PathBuf,
        /// Do not use instructions that only this machine's processor has
        #[arg(long)]
        portable: bool,
    },
    /// Remove the kernel from Jupyter
    Uninstall {
        #[command(flatten)]
        location: Location,
    },
    /// Check the toolchain, the linker, the library and the disk, and say what to do
    Doctor {
        /// The folder with candle-accelerate's Cargo.toml
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        workspace: PathBuf,
    },
    /// Run the kernel; Jupyter calls this
    Run {
        /// The description of the notebook library
        #[arg(long, value_name = "FILE")]
        library: PathBuf,
        /// What Jupyter wrote about its sockets
        connection_file: PathBuf,
    },
    /// The process that runs cells; the kernel calls this
    #[command(name = child::SUBCOMMAND, hide = true)]
    RunCells {
        /// The notebook library
        dylib: PathBuf,
    },
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Subcommands) -> Result<ExitCode> {
    match command {
        Subcommands::Install { location, workspace, portable } => {
            Library::build(&workspace, !portable)?;
            let directory = location.directory()?;
            kernelspec::install(&directory, &manifest(&workspace)?)?;
            println!("installed kernel '{}' in {}", kernelspec::NAME, directory.display());
        }
        Subcommands::Uninstall { location } => {
            let directory = location.directory()?;
            if kernelspec::uninstall(&directory)? {
                println!("removed {}", directory.display());
            } else {
                println!("there is no kernel in {}", directory.display());
            }
        }
        Subcommands::Doctor { workspace } => {
            let well = doctor::run(&manifest(&workspace)?);
            return Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Subcommands::Run { library, connection_file } => server::run(&connection_file, &library)?,
        Subcommands::RunCells { dylib } => {
            let code = child::main(&dylib)?;
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn manifest(workspace: &Path) -> Result<PathBuf> {
    let workspace = workspace
        .canonicalize()
        .with_context(|| format!("there is no folder {}", workspace.display()))?;
    Ok(Library::manifest(&workspace))
}
