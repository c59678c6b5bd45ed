//! The Python environment `.venv`, which Jupyter and the kernel live in.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run};
use crate::workspace::Workspace;

/// The oldest Python that the pinned packages run on.
const OLDEST: (u32, u32) = (3, 11);

/// Jupyter's and IPython's folders, which would otherwise be in the home folder.
const PRIVATE_FOLDERS: [(&str, &str); 4] = [
    ("JUPYTER_CONFIG_DIR", "config"),
    ("JUPYTER_DATA_DIR", "data"),
    ("JUPYTER_RUNTIME_DIR", "runtime"),
    ("IPYTHONDIR", "ipython"),
];

/// A virtual environment with the packages of one requirements file.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment in `folder`, or brings it up to date; does nothing if it has the
    /// packages of `requirements` already.
    pub fn ensure(folder: &Path, requirements: &Path) -> Result<Self> {
        let environment = Self { folder: folder.to_path_buf() };
        let wanted = fs::read_to_string(requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let stamp = folder.join("installed-requirements.txt");
        if environment.works() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(environment);
        }
        let python = system_python()?;
        println!("Installing {} into {}", requirements.display(), folder.display());
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(folder))?;
        run(environment
            .python()
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .arg("--requirement")
            .arg(requirements))?;
        fs::write(stamp, wanted)?;
        Ok(environment)
    }

    /// The folder of the environment.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The environment's Python, with Jupyter's folders inside the environment.
    pub fn python(&self) -> Command {
        self.program("python")
    }

    /// A program of the environment, with Jupyter's folders inside the environment.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(self.folder.join("bin").join(name.as_ref()));
        for (variable, folder) in PRIVATE_FOLDERS {
            command.env(variable, self.folder.join("jupyter").join(folder));
        }
        // A path that leads elsewhere would bring in packages that are not pinned.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env_remove("JUPYTER_PATH");
        command
    }

    fn works(&self) -> bool {
        output_of(self.python().args(["-c", "import pip"])).is_some()
    }
}

/// The environment that the notebooks run in.
pub fn notebook_environment(workspace: &Workspace) -> Result<Environment> {
    Environment::ensure(&workspace.venv(), &workspace.root().join("binder/requirements.txt"))
}

/// The machine's Python, if it can make the environment.
fn system_python() -> Result<PathBuf> {
    let (major, minor) = OLDEST;
    let Ok(python) = which::which("python3") else {
        bail!(
            "python3 was not found; install Python {major}.{minor} or newer \
             (Debian and Ubuntu: apt install python3 python3-venv)"
        );
    };
    let version =
        output_of(Command::new(&python).args(["-c", "import sys; print(*sys.version_info[:2])"]))
            .with_context(|| format!("{} does not run", python.display()))?;
    if parse_version(&version).is_none_or(|found| found < OLDEST) {
        bail!(
            "{} is Python {}; the notebooks need {major}.{minor} or newer first on the PATH",
            python.display(),
            version.replace(' ', ".")
        );
    }
    if output_of(Command::new(&python).args(["-c", "import venv, ensurepip"])).is_none() {
        bail!(
            "{} lacks the module venv or ensurepip (Debian and Ubuntu: apt install python3-venv)",
            python.display()
        );
    }
    Ok(python)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(parse_version("3 13"), Some((3, 13)));
        assert!(parse_version("3 9").is_some_and(|version| version < OLDEST));
        assert_eq!(parse_version("three"), None);
    }
}
