"""A kernel survives its cells, and leaves nothing behind."""

import concurrent.futures
import json
from pathlib import Path

import psutil
import pytest
from client import FIRST_CELL, wait_until

LIBRARY = Path(__file__).resolve().parents[2] / "target" / "library" / "library.json"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("std::process::exit(3)", ["exit", "3"]),
        ("std::process::abort()", ["aborted"]),
        ("#[allow(unconditional_recursion)]\n"
         "fn deeper(n: u64) -> u64 { let a = [n; 512]; deeper(n + 1) + std::hint::black_box(a)[7] }\n"
         "deeper(0)", ["stack"]),
        ("std::hint::black_box(Vec::<u8>::with_capacity(1 << 62));", ["memory"]),
    ],
    ids=["exit", "abort", "stack overflow", "out of memory"],
)  # fmt: skip
def test_after_a_cell_ends_its_process_the_notebook_goes_on(kernel, code, words):
    kernel.ok("let lost = 1;")
    cell = kernel.run(code)
    assert cell.reply["status"] == "error"
    for word in [*words, "variables"]:
        assert word in cell.error + cell.stderr, cell.error
    kernel.fails("lost")
    kernel.ok(FIRST_CELL)
    assert kernel.ok("1 + 1").shown("text/plain") == ["2"]


def test_a_killed_cell_process_is_replaced(kernel):
    kernel.ok("let lost = 1;")

    def kill_children(message):
        if message["msg_type"] == "stream":
            for child in kernel.process.children(recursive=True):
                child.kill()

    error = kernel.fails('println!("running");\nloop {}', on_message=kill_children)
    assert "killed" in error
    assert kernel.ok("1 + 1").shown("text/plain") == ["2"]


def test_shutdown_leaves_no_process_and_no_temporary_file(kernel):
    kernel.ok("let x = 1;")
    processes = kernel.processes()
    kernel.shut_down()
    assert wait_until(lambda: not any(process.is_running() for process in processes))
    assert wait_until(lambda: not list(kernel.temporary.iterdir()))


def test_shutdown_ends_a_cell_that_still_runs(kernel):
    kernel.ok("let x = 1;")
    processes = kernel.processes()
    kernel.client.execute("loop {}")
    kernel.shut_down()
    assert wait_until(lambda: not any(process.is_running() for process in processes))


def test_a_killed_kernel_leaves_no_process_and_the_next_one_clears_its_files(start_kernel):
    killed = start_kernel()
    killed.ok("let x = 1;")
    processes = killed.processes()
    killed.kill()
    assert wait_until(lambda: not any(process.is_running() for process in processes))

    following = start_kernel()
    following.ok("let x = 1;")
    following.shut_down()
    assert wait_until(lambda: not list(following.temporary.iterdir()))


def test_a_kernel_does_not_clear_the_files_of_another_that_runs(start_kernel):
    first = start_kernel()
    first.ok("let x = 1;")
    second = start_kernel()
    second.ok("let x = 2;")
    second.shut_down()
    assert first.ok("x").shown("text/plain") == ["1"]


def test_two_kernels_at_once_keep_apart(start_kernel):
    kernels = [start_kernel(), start_kernel()]

    def count(kernel, step):
        kernel.ok("let mut total = 0;")
        for _ in range(5):
            kernel.ok(f"total += {step};")
        return kernel.ok("total").shown("text/plain")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        totals = list(pool.map(count, kernels, [1, 10]))
    assert totals == [["5"], ["50"]]


def test_a_restart_forgets_variables(kernel):
    kernel.ok("let gone = 1;")
    kernel.manager.restart_kernel(now=False)
    kernel.client.wait_for_ready(timeout=60)
    kernel.process = psutil.Process(kernel.manager.provisioner.pid)
    kernel.fails("gone")
    assert kernel.ok("2").shown("text/plain") == ["2"]


def test_ten_kernels_at_once_work(start_kernel):
    kernels = [start_kernel() for _ in range(10)]

    def train(kernel):
        kernel.ok("let w = Var::new(3f32, &Device::Cpu)?;")
        return kernel.ok("w.as_tensor().sqr()?.backward()?.get(&w).unwrap().to_scalar::<f32>()?")

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        cells = list(pool.map(train, kernels))
    assert [cell.shown("text/plain") for cell in cells] == [["6.0"]] * 10


def test_building_the_library_anew_does_not_touch_a_running_notebook(kernel):
    kernel.ok("let t = Tensor::zeros(2, DType::F32, &Device::Cpu)?;")
    library = json.loads(LIBRARY.read_text())
    dylib = Path(library["dylib"])
    moved = dylib.with_suffix(".moved")
    # What cargo does before it writes the new one.
    dylib.rename(moved)
    try:
        assert kernel.ok("t.dims()").shown("text/plain") == ["[2]"]
    finally:
        moved.rename(dylib)
