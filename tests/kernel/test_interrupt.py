"""Interrupts stop what runs and keep what was made."""

import threading
import time

from client import FIRST_CELL


def test_code_that_looks_at_the_flag_ends_by_itself_and_variables_stay(kernel):
    kernel.ok(FIRST_CELL)
    kernel.ok("let mut steps = vec![0];")
    cell = kernel.ok(
        'println!("started");\n'
        "while !candle_accelerate::interrupt::take() {\n"
        "    steps.push(1);\n"
        "    std::thread::sleep(std::time::Duration::from_millis(5));\n"
        "}\n"
        'println!("stopped");',
        on_message=kernel.interrupt_at("started"),
    )
    assert "stopped" in cell.stdout
    assert kernel.ok("steps.len() > 1").shown("text/plain") == ["true"]


def test_an_interrupt_between_cells_does_not_stop_the_next_one(kernel):
    kernel.ok("let kept = 1;")
    kernel.interrupt()
    time.sleep(0.5)
    assert kernel.ok("kept + 1").shown("text/plain") == ["2"]


def test_a_loop_that_never_looks_is_stopped_and_the_loss_is_said(kernel):
    kernel.ok("let lost = 1;")

    def press_again_and_again():
        for _ in range(3):
            time.sleep(1)
            kernel.interrupt()

    presses = threading.Thread(target=press_again_and_again)
    presses.start()
    error = kernel.fails("loop {}")
    presses.join()
    assert "interrupt" in error.lower() and "variables" in error.lower()
    kernel.fails("lost")
    assert kernel.ok("1 + 1").shown("text/plain") == ["2"]


def test_an_interrupt_while_a_cell_compiles_stops_only_that(kernel):
    kernel.ok("let kept = 5;")
    slow_to_compile = (
        "#[allow(long_running_const_eval)]\n"
        "const SLOW: u64 = {\n"
        "    let mut i = 0u64;\n"
        "    while i < 10_000_000_000 { i += 1; }\n"
        "    i\n"
        "};\n"
        "SLOW"
    )
    timer = threading.Timer(2, kernel.interrupt)
    timer.start()
    start = time.monotonic()
    assert "interrupt" in kernel.fails(slow_to_compile).lower()
    assert time.monotonic() - start < 10
    assert kernel.ok("kept").shown("text/plain") == ["5"]


TRAINING = """\
let mut steps = 0;
println!("started");
loop {
    for batch in &dataloader {
        batch.get("x")?.sqr()?;
        steps += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}"""


def test_an_interrupted_training_loop_says_its_step_and_can_go_on(kernel):
    kernel.ok(FIRST_CELL)
    kernel.ok(
        'let dataset = TensorDataset::new([("x", Tensor::arange(0f32, 1000.0, &Device::Cpu)?)])?;\n'
        "let dataloader = DataLoader::builder(dataset).batch_size(2).build()?;\n"
        "let weights = Var::zeros(3, DType::F32, &Device::Cpu)?;"
    )
    error = kernel.fails(TRAINING, on_message=kernel.interrupt_at("started"))
    assert "interrupted at step" in error
    assert kernel.ok("weights.dims()").shown("text/plain") == ["[3]"]
    cell = kernel.ok('for batch in &dataloader {\n    batch.get("x")?;\n}\nprintln!("done");')
    assert cell.stdout == "done\n"
