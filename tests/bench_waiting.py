"""How long a notebook keeps its reader waiting: our kernel, stock evcxr, and Python with PyTorch.

Measures the time from starting a kernel to the first tensor on the screen, with a cold and with a
warm page cache, and the time of later cells. Kernels take turns, so that a change of the machine's
load meets all of them.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parents[1]
LONGEST_CELL_SECONDS = 1800

RUST_FIRST = f"""\
:dep candle_accelerate = {{ package = "candle-accelerate-dylib", path = "{ROOT}/crate/dylib" }}
use candle_accelerate::candle_core::{{Device, Tensor, Var}};
println!("{{}}", Tensor::new(&[1f32, 2.0], &Device::Cpu)?);"""
RUST_CELLS = [
    "let a = Tensor::arange(0f32, 12.0, &Device::Cpu)?.reshape((3, 4))?;",
    'println!("{a}");',
    "let b = a.t()?.contiguous()?;",
    "let product = a.matmul(&b)?;",
    'println!("{:?}", product.to_vec2::<f32>()?);',
    "fn scaled(x: &Tensor, by: f64) -> candle_accelerate::candle_core::Result<Tensor> {\n"
    "    x.affine(by, 0.0)\n"
    "}",
    "let c = scaled(&product, 0.5)?;",
    "let w = Var::from_tensor(&Tensor::new(&[2f32, 3.0], &Device::Cpu)?)?;",
    "let gradients = w.as_tensor().sqr()?.sum_all()?.backward()?;",
    'println!("{:?}", gradients.get(&w).map(|g| g.to_vec1::<f32>()));',
    "let mut losses: Vec<f32> = Vec::new();\n"
    "for step in 0..5 {\n"
    "    losses.push(1.0 / (step as f32 + 1.0));\n"
    "}",
    'println!("{losses:?} {}", c.sum_all()?.to_scalar::<f32>()?);',
]
PYTHON_FIRST = """\
import torch, transformers
from accelerate import Accelerator
print(torch.tensor([1.0, 2.0]))"""
PYTHON_CELLS = [
    "a = torch.arange(0.0, 12.0).reshape(3, 4)",
    "print(a)",
    "b = a.t().contiguous()",
    "product = a @ b",
    "print(product.tolist())",
    "def scaled(x, by):\n    return x * by",
    "c = scaled(product, 0.5)",
    "w = torch.tensor([2.0, 3.0], requires_grad=True)",
    "w.square().sum().backward()",
    "print(w.grad.tolist())",
    "losses = []\nfor step in range(5):\n    losses.append(1 / (step + 1))",
    "print(losses, c.sum().item())",
]


@dataclass
class Contender:
    """One kernel, and what it was seen to need."""

    name: str
    argv: list
    first: str
    cells: list
    rounds: int
    environment: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=lambda: {"cold": [], "warm": [], "later cells": []})

    def measure(self, condition):
        with tempfile.TemporaryDirectory() as folder:
            manager = KernelManager()
            manager._kernel_spec = KernelSpec(argv=self.argv, display_name=self.name)
            start = time.monotonic()
            manager.start_kernel(
                cwd=folder, env={**os.environ, **self.environment, "TMPDIR": folder}
            )
            client = manager.blocking_client()
            try:
                client.start_channels()
                client.wait_for_ready(timeout=LONGEST_CELL_SECONDS)
                shown = self._run(client, self.first)
                self.seconds[condition].append(shown - start)
                for cell in self.cells:
                    start = time.monotonic()
                    self._run(client, cell)
                    self.seconds["later cells"].append(time.monotonic() - start)
            finally:
                client.stop_channels()
                manager.shutdown_kernel(now=True)

    def _run(self, client, code):
        """Runs a cell; returns when its first output came, or when it ended if it had none."""
        shown = []

        def hook(message):
            if message["msg_type"] == "error":
                sys.exit(f"{self.name} failed on:\n{code}\n{message['content']['evalue']}")
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                shown.append(time.monotonic())

        client.execute_interactive(
            code, allow_stdin=False, output_hook=hook, timeout=LONGEST_CELL_SECONDS
        )
        return shown[0] if shown else time.monotonic()


def drop_page_cache():
    """Makes the next start read from disk, as after a boot; returns whether that was allowed."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def measure_all(contenders):
    can_be_cold = True
    for round_number in range(max(contender.rounds for contender in contenders)):
        for condition in ("cold", "warm"):
            for contender in contenders[round_number % 3 :] + contenders[: round_number % 3]:
                if round_number >= contender.rounds:
                    continue
                if condition == "cold":
                    can_be_cold = can_be_cold and drop_page_cache()
                    if not can_be_cold:
                        continue
                contender.measure(condition)
                last = contender.seconds[condition][-1]
                print(f"{contender.name}, {condition}: {last:.2f} s", flush=True)
    if not can_be_cold:
        print("No cold starts: emptying the page cache needs root.")


def table(contenders):
    """Medians in seconds; in brackets how many times as long as ours."""
    columns = ["cold", "warm", "later cells"]
    ours = contenders[0]
    lines = [["seconds (× ours)", "first tensor, cold", "first tensor, warm", "later cells"]]
    for contender in contenders:
        line = [contender.name]
        for column in columns:
            if contender.seconds[column] and ours.seconds[column]:
                median = statistics.median(contender.seconds[column])
                ratio = median / statistics.median(ours.seconds[column])
                line.append(f"{median:.2f} ({ratio:.3g})")
            else:
                line.append("not measured")
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    rows.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stock", required=True, type=Path, help="the program evcxr_jupyter")
    parser.add_argument("--torch", required=True, type=Path, help="environment with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stock-rounds", type=int, default=1)
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()

    ours = KernelSpecManager().get_kernel_spec("candle-accelerate")
    stock = [str(arguments.stock), "--control_file", "{connection_file}"]
    torch = [str(arguments.torch / "bin/python"), "-m", "ipykernel_launcher", "-f"]
    contenders = [
        Contender("candle-accelerate", ours.argv, RUST_FIRST, RUST_CELLS, arguments.rounds, ours.env),
        Contender(
            "Python, torch and accelerate",
            [*torch, "{connection_file}"],
            PYTHON_FIRST,
            PYTHON_CELLS,
            arguments.rounds,
        ),
        Contender(
            "stock evcxr_jupyter",
            stock,
            RUST_FIRST,
            RUST_CELLS,
            arguments.stock_rounds,
            # Its rust-analyzer would otherwise add components to the user's toolchain.
            {"RUSTUP_DIST_SERVER": "http://127.0.0.1:9"},
        ),
    ]
    measure_all(contenders)
    print(table(contenders))

    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
        "seconds": {contender.name: contender.seconds for contender in contenders},
    }
    arguments.output.write_text(json.dumps(record, indent=2))
    print(f"All figures are in {arguments.output}")


if __name__ == "__main__":
    main()
