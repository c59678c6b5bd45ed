"""What a running cell shows, redraws, clears and asks."""

import time

from client import FIRST_CELL


def test_a_display_is_updated_in_place(kernel):
    kernel.ok(FIRST_CELL + "\nuse candle_accelerate::notebook::{Content, clear_output, display};")
    cell = kernel.ok(
        'let shown = display(&Content::plain("first").with("text/html", "<b>1</b>"))?;\n'
        'shown.update(&Content::plain("second"))?;'
    )
    [display] = cell.contents("display_data")
    [update] = cell.contents("update_display_data")
    assert display["data"] == {"text/plain": "first", "text/html": "<b>1</b>"}
    assert update["data"]["text/plain"] == "second"
    assert update["transient"]["display_id"] == display["transient"]["display_id"]


def test_output_is_cleared_between_what_came_before_and_after(kernel):
    cell = kernel.ok(
        'println!("old");\n'
        "candle_accelerate::notebook::clear_output(true)?;\n"
        'println!("new");'
    )
    kinds = [
        message["msg_type"]
        for message in cell.messages
        if message["msg_type"] in ("stream", "clear_output")
    ]
    assert kinds == ["stream", "clear_output", "stream"]
    assert cell.contents("clear_output") == [{"wait": True}]


def test_progress_moves_while_the_loop_runs_and_ends_complete(kernel):
    cell = kernel.ok(
        "let accelerator = Accelerator::new()?;\n"
        "for _ in accelerator.progress(0..20) {\n"
        "    std::thread::sleep(std::time::Duration::from_millis(100));\n"
        "}"
    )
    drawn = [
        message["content"]["data"]["text/plain"]
        for message in cell.messages
        if message["msg_type"] in ("display_data", "update_display_data")
    ]
    # Drawn at most four times a second, and the loop takes two seconds.
    assert 3 <= len(drawn) <= 12
    assert "20/20" in drawn[-1]


def test_a_prompt_is_answered(kernel):
    prompts = []

    def answer(message):
        prompts.append((message["content"]["prompt"], message["content"]["password"]))
        kernel.client.input("Ada")

    shown = []
    reply = kernel.client.execute_interactive(
        'let name = candle_accelerate::notebook::input("Your name? ")?;\nprintln!("Hello {name}");',
        allow_stdin=True,
        stdin_hook=answer,
        output_hook=lambda message: shown.append(message["content"].get("text", "")),
        timeout=60,
    )
    assert reply["content"]["status"] == "ok"
    assert prompts == [("Your name? ", False)]
    assert "".join(shown) == "Hello Ada\n"


def test_a_prompt_where_nobody_can_answer_is_an_error(kernel):
    start = time.monotonic()
    error = kernel.fails('candle_accelerate::notebook::input("Your name? ")?;')
    assert "input" in error
    assert time.monotonic() - start < 30
