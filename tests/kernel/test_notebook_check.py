"""The check of the committed notebooks can fail: a changed number is noticed."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from client import KERNEL_NAME

TESTS = Path(__file__).resolve().parents[1]


def check(folder, printed):
    """Runs nbval, as `cargo xtask test` does, over a notebook that claims to have printed this."""
    cell = nbformat.v4.new_code_cell(
        'let loss = 0.25f32 * 3.0;\nprintln!("loss {loss:.4} after 1.2 s");',
        execution_count=1,
        outputs=[nbformat.v4.new_output("stream", name="stdout", text=printed)],
    )
    kernel = {"name": KERNEL_NAME, "display_name": KERNEL_NAME, "language": "rust"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    path = folder / "checked.ipynb"
    nbformat.write(notebook, path)
    sanitize = TESTS / "nbval_sanitize.cfg"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", f"--nbval-sanitize-with={sanitize}", str(path)],
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("seconds", ["1.2", "37.05"])
def test_equal_results_pass_whatever_the_time(tmp_path, seconds):
    result = check(tmp_path, f"loss 0.7500 after {seconds} s\n")
    assert result.returncode == 0, result.stdout


def test_an_edited_number_fails(tmp_path):
    result = check(tmp_path, "loss 0.7501 after 1.2 s\n")
    assert result.returncode == 1
    assert "Cell outputs differ" in result.stdout
