"""Executes notebooks from top to bottom and saves each with its outputs, and as a web page."""

import argparse
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter

CELL_TIMEOUT_SECONDS = 1800


class Progress:
    """Prints which cell runs: over one line in a terminal, else a line for each cell."""

    def __init__(self, name, cells):
        self.name = name
        self.numbers = {}
        for index, cell in enumerate(cells):
            if cell.cell_type == "code" and cell.source.strip():
                self.numbers[index] = len(self.numbers) + 1
        self.current = None
        self.start = time.monotonic()
        self.in_place = sys.stdout.isatty()

    def cell_starts(self, cell, cell_index):
        if cell_index in self.numbers:
            self.current = cell_index
            if self.in_place:
                self._show(end="")

    def cell_ends(self, cell, cell_index):
        if cell_index in self.numbers and not self.in_place:
            self._show(end="\n")

    def close(self, outcome):
        clear = "\r\x1b[K" if self.in_place else ""
        print(f"{clear}{self.name}: {outcome} ({self._seconds()})", flush=True)

    def failing_cell(self):
        return "before the first cell" if self.current is None else f"in cell {self._cell()}"

    def _show(self, end):
        clear = "\r\x1b[K" if self.in_place else ""
        print(f"{clear}{self.name}: cell {self._cell()} ({self._seconds()})", end=end, flush=True)

    def _cell(self):
        return f"{self.numbers[self.current]}/{len(self.numbers)}"

    def _seconds(self):
        return f"{time.monotonic() - self.start:.1f} s"


def execute(path, output, update):
    """Runs one notebook; returns whether it ran to its end."""
    notebook = nbformat.read(path, as_version=4)
    progress = Progress(path.stem, notebook.cells)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_SECONDS,
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        coalesce_streams=True,
        on_cell_start=progress.cell_starts,
        on_cell_complete=progress.cell_ends,
    )
    error = None
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as problem:
        error = problem
    nbformat.write(notebook, output / path.name)
    page, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    (output / f"{path.stem}.html").write_text(page, encoding="utf-8")
    if error is None:
        progress.close("done")
        if update:
            nbformat.write(notebook, path)
        return True
    progress.close(f"FAILED {progress.failing_cell()}")
    source = "" if progress.current is None else notebook.cells[progress.current].source
    # Most of nbclient's errors show the cell's source; one for a dead kernel does not.
    print(error if source in str(error) else f"{source}\n{error}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path, help="folder for the results")
    parser.add_argument("--update", action="store_true", help="write outputs into the notebooks too")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    failed = [
        path.name
        for path in arguments.notebooks
        if not execute(path.resolve(), arguments.output, arguments.update)
    ]
    print(f"Results are in {arguments.output}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
