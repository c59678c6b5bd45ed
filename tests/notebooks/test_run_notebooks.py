"""The driver behind `cargo xtask run`, on notebooks that it must run or refuse."""

import subprocess
import sys
from pathlib import Path

import nbformat

DRIVER = Path(__file__).resolve().parents[1] / "run_notebooks.py"


def write_notebook(path, *sources):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# A title"), *map(nbformat.v4.new_code_cell, sources)],
        metadata={"kernelspec": {"name": "candle-accelerate", "display_name": "Rust"}},
    )
    nbformat.write(notebook, path)
    return path


def drive(folder, *arguments):
    return subprocess.run(
        [sys.executable, str(DRIVER), "--output", str(folder / "results"), *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def printed(path):
    cells = nbformat.read(path, as_version=4).cells
    return [out.text for cell in cells for out in cell.get("outputs", []) if "text" in out]


def test_outputs_go_to_the_results_and_the_notebook_stays_as_it_was(tmp_path):
    notebook = write_notebook(tmp_path / "good.ipynb", "let x = 6;", 'println!("{}", x * 7);')
    before = notebook.read_bytes()
    result = drive(tmp_path, notebook)
    assert result.returncode == 0, result.stdout
    assert "good: cell 2/2" in result.stdout
    assert printed(tmp_path / "results/good.ipynb") == ["42\n"]
    assert "42" in (tmp_path / "results/good.html").read_text()
    assert notebook.read_bytes() == before


def test_update_puts_outputs_into_the_notebook(tmp_path):
    notebook = write_notebook(tmp_path / "good.ipynb", 'println!("fresh");')
    assert drive(tmp_path, "--update", notebook).returncode == 0
    assert printed(notebook) == ["fresh\n"]


def test_a_failing_cell_is_named_with_its_source_and_error_and_the_others_still_run(tmp_path):
    bad = write_notebook(tmp_path / "bad.ipynb", "let x = 1;", 'panic!("out of luck")', "let y = 2;")
    good = write_notebook(tmp_path / "good.ipynb", 'println!("ran");')
    before = bad.read_bytes()
    result = drive(tmp_path, "--update", bad, good)
    assert result.returncode != 0
    assert "bad: FAILED in cell 2/3" in result.stdout
    assert 'panic!("out of luck")' in result.stdout
    assert "failed: bad.ipynb" in result.stderr
    assert printed(good) == ["ran\n"]
    assert bad.read_bytes() == before


def test_a_kernel_that_dies_is_a_failure(tmp_path):
    kill = (
        'let status = std::fs::read_to_string("/proc/self/status")?;\n'
        'let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\\t")).unwrap();\n'
        'std::process::Command::new("kill").args(["-9", parent]).status()?;\n'
        "std::thread::sleep(std::time::Duration::from_secs(60));"
    )
    result = drive(tmp_path, write_notebook(tmp_path / "dead.ipynb", kill))
    assert result.returncode != 0
    assert "dead: FAILED in cell 1/1" in result.stdout
