"""JupyterLab with notebook 06 in a real browser, used as a person does."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
NOTEBOOK = "06-accelerated-loop.ipynb"
WORK = ROOT / "target" / "browser"


def program(*names):
    found = next(filter(None, map(shutil.which, names)), None)
    return found or pytest.skip(f"{names[0]} is not installed")


@pytest.fixture
def driver():
    """The folder with the script that drives the browser, and what it needs."""
    npm = program("npm")
    WORK.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "lab.mjs"):
        shutil.copy(HERE / name, WORK / name)
    if not (WORK / "node_modules" / "playwright-core").exists():
        subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund"], cwd=WORK, check=True)
    return WORK / "lab.mjs"


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab on a copy of the notebook, so that saving changes no file here."""
    shutil.copy(ROOT / "notebooks" / NOTEBOOK, tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
         "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
         f"--ServerApp.root_dir={tmp_path}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=1)
            break
        except OSError:
            assert time.monotonic() < deadline, "JupyterLab does not answer"
            time.sleep(0.2)
    yield address
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(timeout=20)


@pytest.mark.timeout(400)
def test_a_person_trains_interrupts_and_goes_on_in_jupyterlab(driver, lab):
    chromium = program("chromium", "chromium-browser", "google-chrome")
    outcome = subprocess.run(
        [program("node"), driver, lab, NOTEBOOK, WORK / "screenshots"],
        env={**os.environ, "CHROMIUM": chromium}, capture_output=True, text=True, timeout=360,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
