"""A real kernel, spoken to as a notebook does."""

import os
import re
import time
from pathlib import Path

import psutil
from jupyter_client.manager import KernelManager

KERNEL_NAME = "candle-accelerate"
NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FIRST_CELL = """\
:dep candle_accelerate = { package = "candle-accelerate-dylib", path = "../crate/dylib" }
use candle_accelerate::prelude::*;"""


class Cell:
    """What came back for one execute request."""

    def __init__(self):
        self.reply = None
        self.messages = []
        self.times = []

    def add(self, message):
        self.messages.append(message)
        self.times.append(time.monotonic())

    def contents(self, kind):
        return [message["content"] for message in self.messages if message["msg_type"] == kind]

    def stream(self, name):
        return "".join(part["text"] for part in self.contents("stream") if part["name"] == name)

    @property
    def stdout(self):
        return self.stream("stdout")

    @property
    def stderr(self):
        return self.stream("stderr")

    @property
    def error(self):
        """The error's whole text without colours, or None."""
        for content in self.contents("error"):
            text = "\n".join([content["ename"], content["evalue"], *content["traceback"]])
            return re.sub(r"\x1b\[[0-9;]*m", "", text)
        return None

    def shown(self, mime):
        """The rich outputs of this type, in order."""
        return [
            message["content"]["data"][mime]
            for message in self.messages
            if message["msg_type"] in ("display_data", "execute_result")
            and mime in message["content"]["data"]
        ]


class Kernel:
    """A running kernel with its own temporary folder."""

    def __init__(self, temporary):
        self.temporary = temporary
        self.manager = KernelManager(kernel_name=KERNEL_NAME)
        self.manager.start_kernel(
            cwd=str(NOTEBOOKS),
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.process = psutil.Process(self.manager.provisioner.pid)

    def run(self, code, on_message=lambda message: None, timeout=120):
        """Runs a cell to its end, whether it fails or not."""
        cell = Cell()

        def keep(message):
            cell.add(message)
            on_message(message)

        cell.reply = self.client.execute_interactive(
            code, allow_stdin=False, output_hook=keep, timeout=timeout
        )["content"]
        return cell

    def ok(self, code, **options):
        """Runs a cell that must not fail."""
        cell = self.run(code, **options)
        assert cell.error is None, cell.error
        assert cell.reply["status"] == "ok"
        return cell

    def fails(self, code, **options):
        """Runs a cell that must fail; returns the error's text."""
        cell = self.run(code, **options)
        assert cell.reply["status"] == "error"
        assert cell.error is not None
        return cell.error

    def interrupt(self):
        self.manager.interrupt_kernel()

    def interrupt_at(self, marker):
        """For run's on_message: interrupts half a second after the cell has printed the marker."""

        def hook(message):
            if message["msg_type"] == "stream" and marker in message["content"]["text"]:
                time.sleep(0.5)
                self.interrupt()

        return hook

    def processes(self):
        return [self.process, *self.process.children(recursive=True)]

    def kill(self):
        """Ends the kernel as the operating system would: with no chance to clean up."""
        self.process.kill()
        self.process.wait(10)
        self.client.stop_channels()

    def shut_down(self):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel()


def wait_until(condition, seconds=10):
    """Whether the condition comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()
