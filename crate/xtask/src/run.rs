//! `cargo xtask run`: notebooks from top to bottom, without a browser.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::run as run_process;
use crate::setup::prepare;
use crate::workspace::Workspace;

/// What the command takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// A file, or the beginning of a notebook's name ("05"); all notebooks if none is given
    notebooks: Vec<String>,
    /// Also put the new outputs into the notebooks themselves, to be committed
    #[arg(long)]
    update: bool,
}

/// Executes the notebooks; the executed notebook and a web page of it go to target/notebooks/.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let notebooks = choose(&workspace.notebooks(), &arguments.notebooks)?;
    let environment = prepare(workspace)?;
    let mut driver = environment.python();
    driver
        .arg(workspace.tests().join("run_notebooks.py"))
        .arg("--output")
        .arg(workspace.target().join("notebooks"));
    if arguments.update {
        driver.arg("--update");
    }
    run_process(driver.args(notebooks)).context("not every notebook ran to its end")
}

/// The files that the arguments mean, in order.
fn choose(folder: &Path, wanted: &[String]) -> Result<Vec<PathBuf>> {
    let all = notebooks_in(folder)?;
    if wanted.is_empty() {
        return Ok(all);
    }
    let mut chosen = Vec::new();
    for name in wanted {
        if Path::new(name).is_file() {
            chosen.push(PathBuf::from(name));
            continue;
        }
        let before = chosen.len();
        chosen.extend(all.iter().filter(|path| stem(path).starts_with(name.as_str())).cloned());
        if chosen.len() == before {
            let known: Vec<_> = all.iter().map(|path| stem(path)).collect();
            bail!("no notebook is called '{name}'; there are: {}", known.join(", "));
        }
    }
    Ok(chosen)
}

fn notebooks_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "ipynb") {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("{} has no notebooks", folder.display());
    }
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        folder
    }

    #[test]
    fn all_notebooks_are_taken_in_order_and_nothing_else() {
        let folder = folder_with(&["06-b.ipynb", "05-a.ipynb", "readme.md"]);
        let chosen = choose(folder.path(), &[]).unwrap();
        assert_eq!(chosen.iter().map(|path| stem(path)).collect::<Vec<_>>(), ["05-a", "06-b"]);
    }

    #[test]
    fn a_notebook_is_found_by_number_name_or_path() {
        let folder = folder_with(&["06-b.ipynb", "05-a.ipynb"]);
        let path = folder.path().join("06-b.ipynb");
        for name in ["06", "06-b", path.to_str().unwrap()] {
            let chosen = choose(folder.path(), &[name.to_string()]).unwrap();
            assert_eq!(chosen, std::slice::from_ref(&path));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_that_work() {
        let folder = folder_with(&["05-a.ipynb"]);
        let error = choose(folder.path(), &["07".to_string()]).unwrap_err();
        assert_eq!(error.to_string(), "no notebook is called '07'; there are: 05-a");
    }
}
