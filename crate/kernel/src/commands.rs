//! Lines of a cell that are meant for the kernel: `:help`, `:vars`, `!ls` …

use std::process::Command;

use crate::dependencies;
use crate::explain::Failure;
use crate::notebook::Notebook;

const HELP: &str = "\
:dep NAME = \"VERSION\"   adds a crate; candle and candle-accelerate are there already
:vars                   lists the variables and their types
:type NAME              shows a variable's type
:opt [LEVEL]            shows or sets how much cells are optimised, 0 to 3 (the library always is)
:timing                 switches the report of compile and run times on or off
:clear                  forgets all variables and items
:version                shows the versions of kernel and compiler
!COMMAND                runs a shell command
";

/// Runs `:name arguments`; returns what to show.
pub fn run(
    notebook: &mut Notebook,
    name: &str,
    arguments: &str,
) -> Result<Option<String>, Failure> {
    match name {
        "help" => Ok(Some(HELP.to_owned())),
        "dep" => dependencies::add(notebook, arguments).map(|()| None),
        "vars" => Ok(Some(variables(notebook))),
        "type" => match notebook.variables.get(arguments) {
            Some(variable) => Ok(Some(format!("{arguments}: {}\n", variable.shown_type()))),
            None => Err(Failure::new("KernelError", format!("there is no variable '{arguments}'"))),
        },
        "opt" if arguments.is_empty() => Ok(Some(format!("{}\n", notebook.compiler.opt_level))),
        "opt" if matches!(arguments, "0" | "1" | "2" | "3") => {
            notebook.compiler.opt_level = arguments.to_owned();
            Ok(None)
        }
        "opt" => Err(Failure::new("KernelError", "':opt' takes a level from 0 to 3")),
        "timing" => {
            notebook.timing = !notebook.timing;
            Ok(Some(format!("timing is {}\n", if notebook.timing { "on" } else { "off" })))
        }
        "clear" => {
            let cleared = notebook.clear();
            cleared.map(|()| None).map_err(|e| Failure::new("KernelError", format!("{e:#}")))
        }
        "version" => Ok(Some(format!(
            "candle-accelerate-kernel {}\n{}\n",
            env!("CARGO_PKG_VERSION"),
            notebook.compiler.library().rustc_version
        ))),
        // These tune how evcxr builds its dependencies; here they are built already.
        "cache" | "sccache" | "linker" | "offline" | "preserve_vars_on_panic" | "load_config" => {
            Ok(None)
        }
        _ => {
            Err(Failure::new("KernelError", format!("there is no command ':{name}'; see ':help'")))
        }
    }
}

fn variables(notebook: &Notebook) -> String {
    let lines = notebook.variables.iter();
    lines.map(|(name, variable)| format!("{name}: {}\n", variable.shown_type())).collect()
}

/// Runs a shell command; returns what it printed.
pub fn shell(command: &str) -> Result<String, Failure> {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .map_err(|error| Failure::new("ShellError", format!("sh cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(text)
    } else {
        Err(Failure::new("ShellError", format!("'{command}' failed ({}): {text}", output.status)))
    }
}
