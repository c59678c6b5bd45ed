"""The kernel's own commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNEL = Path(sys.executable).parent / "candle-accelerate-kernel"


def command(*arguments, **environment):
    return subprocess.run(
        [str(KERNEL), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_version_names_the_program(tmp_path):
    result = command("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("candle-accelerate-kernel ")


def test_install_writes_a_kernelspec_that_starts_this_program_and_uninstall_removes_it(tmp_path):
    result = command("install", "--prefix", tmp_path, "--workspace", ROOT)
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "share/jupyter/kernels/candle-accelerate"
    specification = json.loads((folder / "kernel.json").read_text())
    assert Path(specification["argv"][0]).samefile(KERNEL)
    assert "{connection_file}" in specification["argv"]
    assert specification["language"] == "rust"

    assert command("uninstall", "--prefix", tmp_path).returncode == 0
    assert not folder.exists()


def test_install_for_a_user_stays_in_jupyters_data_folder(tmp_path):
    result = command(
        "install", "--user", "--workspace", ROOT, JUPYTER_DATA_DIR=str(tmp_path / "data")
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "data/kernels/candle-accelerate/kernel.json").exists()


def test_doctor_finds_nothing_wrong_here():
    result = command("doctor", "--workspace", ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_doctor_names_a_missing_compiler(tmp_path):
    result = command("doctor", "--workspace", ROOT, PATH=str(tmp_path))
    assert result.returncode != 0
    assert "rustc" in result.stdout + result.stderr


@pytest.mark.parametrize("arguments", [["install", "--user", "--prefix", "x"], ["frobnicate"]])
def test_wrong_arguments_are_refused(arguments):
    assert command(*arguments).returncode == 2
