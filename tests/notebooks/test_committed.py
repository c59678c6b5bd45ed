"""Committed notebooks read well without being run: they carry their outputs, in order.

Whether these outputs are still what the code gives is nbval's part; it skips cells that were
never run, which is why this is checked here.
"""

from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_every_cell_was_run_once_from_top_to_bottom(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_no_cell_ended_with_an_error(notebook):
    for cell in code_cells(notebook):
        if "raises-exception" not in cell.metadata.get("tags", []):
            assert not [output for output in cell.outputs if output.output_type == "error"]


def test_the_notebook_shows_a_chart(notebook):
    types = [mime for cell in code_cells(notebook) for out in cell.outputs for mime in out.get("data", {})]
    assert "image/svg+xml" in types or "text/html" in types


def test_the_kernel_is_the_course_kernel(notebook):
    assert notebook.metadata.kernelspec.name == "candle-accelerate"


def test_the_first_cell_has_the_one_dep_line(notebook):
    lines = [line for cell in code_cells(notebook) for line in cell.source.splitlines()]
    dependencies = [line for line in lines if line.startswith(":dep")]
    assert dependencies == lines[:1]
    assert 'path = "../crate/dylib"' in dependencies[0]
