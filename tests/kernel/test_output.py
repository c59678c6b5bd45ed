"""What a cell prints is shown at once, complete and in order."""

import pytest


def test_stdout_and_stderr_go_to_their_streams(kernel):
    cell = kernel.ok('println!("out");\neprintln!("err");')
    assert (cell.stdout, cell.stderr) == ("out\n", "err\n")


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ('print!("loading")', "loading"),
        ('print!("\\r 50 %")', "\r 50 %"),
        ('eprint!("loading")', "loading"),
    ],
)
def test_text_without_a_newline_shows_while_the_cell_runs(kernel, statement, text):
    cell = kernel.ok(f"{statement};\nstd::thread::sleep(std::time::Duration::from_secs(2));")
    times = {
        message["msg_type"]: time for message, time in zip(cell.messages, cell.times, strict=True)
    }
    assert text in cell.stdout + cell.stderr
    # The last status is "idle": the end of the cell.
    assert times["status"] - times["stream"] > 1.5


def test_a_hundred_thousand_lines_all_arrive_in_order(kernel):
    cell = kernel.ok('for i in 0..100_000 {\n    println!("{i}");\n}')
    assert cell.stdout.split() == [str(i) for i in range(100_000)]


def test_text_that_is_not_ascii_arrives_whole(kernel):
    cell = kernel.ok('for _ in 0..10_000 {\n    print!("perché 学習 🕯");\n}')
    assert cell.stdout == "perché 学習 🕯" * 10_000


def test_output_of_threads_is_shown(kernel):
    cell = kernel.ok('std::thread::spawn(|| println!("from a thread")).join().unwrap();')
    assert cell.stdout == "from a thread\n"


def test_output_before_a_panic_is_not_lost(kernel):
    cell = kernel.run('print!("before");\npanic!("now");')
    assert "before" in cell.stdout


def test_the_last_expression_is_the_result(kernel):
    cell = kernel.ok("let x = 40;\nx + 2")
    assert [content["data"] for content in cell.contents("execute_result")] == [
        {"text/plain": "42"}
    ]


@pytest.mark.parametrize("code", ["let x = 1;", "let mut x = 1;\nx += 1;", "()", "fn f() {}", ""])
def test_a_cell_without_a_value_shows_nothing(kernel, code):
    cell = kernel.ok(code)
    assert not cell.contents("execute_result") and not cell.contents("display_data")
    assert cell.stdout == ""


def test_rich_content_is_shown_by_its_type_and_in_its_place(kernel):
    cell = kernel.ok(
        'println!("before");\n'
        'println!("EVCXR_BEGIN_CONTENT text/html\\n<b>bold</b>\\nEVCXR_END_CONTENT");\n'
        'println!("after");'
    )
    assert [html.strip() for html in cell.shown("text/html")] == ["<b>bold</b>"]
    assert cell.stdout == "before\nafter\n"
    kinds = [
        message["msg_type"]
        for message in cell.messages
        if message["msg_type"] in ("stream", "display_data", "execute_result")
    ]
    assert kinds[0] == "stream" and kinds[-1] == "stream" and len(kinds) >= 3


def test_a_type_may_show_itself(kernel):
    kernel.ok(
        "struct Bold(&'static str);\n"
        "impl Bold {\n"
        "    fn evcxr_display(&self) {\n"
        '        println!("EVCXR_BEGIN_CONTENT text/html\\n<b>{}</b>\\nEVCXR_END_CONTENT", self.0);\n'
        "    }\n"
        "}"
    )
    assert [html.strip() for html in kernel.ok('Bold("x")').shown("text/html")] == ["<b>x</b>"]
