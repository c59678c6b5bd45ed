"""What a cell leaves behind for the next ones, and what it says when it fails."""

import re

import pytest


@pytest.mark.parametrize(
    ("define", "use", "expected"),
    [
        ("struct Point { x: i32 }", "Point { x: 3 }.x", "3"),
        ("enum Colour { Red, Blue }", "matches!(Colour::Red, Colour::Red)", "true"),
        ("fn twice(x: i32) -> i32 { 2 * x }", "twice(4)", "8"),
        ("const LIMIT: usize = 7;", "LIMIT", "7"),
        ("trait Speak { fn speak(&self) -> String; }\n"
         "impl Speak for i32 { fn speak(&self) -> String { format!(\"I am {self}\") } }",
         "5.speak()", '"I am 5"'),
        ("use std::collections::BTreeMap;", "BTreeMap::from([(1, 2)])", "{1: 2}"),
        ("macro_rules! square { ($x:expr) => { $x * $x } }", "square!(6)", "36"),
        ("mod inner { pub fn one() -> i32 { 1 } }", "inner::one()", "1"),
        ("#[derive(Debug, Clone)]\nstruct Pair<T>(T, T);", "Pair(1, 2).clone()", "Pair(1, 2)"),
    ],
)  # fmt: skip
def test_items_of_one_cell_are_there_in_the_next(kernel, define, use, expected):
    kernel.ok(define)
    assert kernel.ok(use).shown("text/plain") == [expected]


def test_an_impl_may_come_in_a_later_cell_than_its_struct(kernel):
    kernel.ok("struct Counter { n: i32 }")
    kernel.ok("impl Counter { fn up(&mut self) -> i32 { self.n += 1; self.n } }")
    kernel.ok("let mut counter = Counter { n: 1 };")
    assert kernel.ok("counter.up()").shown("text/plain") == ["2"]
    assert kernel.ok("counter.up()").shown("text/plain") == ["3"]


def test_an_item_defined_again_replaces_the_old_one(kernel):
    kernel.ok("fn answer() -> i32 { 1 }")
    kernel.ok("fn answer() -> &'static str { \"two\" }")
    assert kernel.ok("answer()").shown("text/plain") == ['"two"']


def test_a_cell_with_an_impl_can_be_run_again(kernel):
    cell = "struct Net { width: usize }\nimpl Net { fn width(&self) -> usize { self.width } }"
    kernel.ok(cell)
    kernel.ok(cell)
    assert kernel.ok("Net { width: 9 }.width()").shown("text/plain") == ["9"]


def test_a_variable_defined_again_may_change_its_type(kernel):
    kernel.ok("let value = 1;")
    kernel.ok('let value = "one";')
    assert kernel.ok("value.len()").shown("text/plain") == ["3"]


def test_a_mutable_variable_keeps_its_changes(kernel):
    kernel.ok("let mut losses = vec![1.0];")
    kernel.ok("losses.push(0.5);")
    assert kernel.ok("losses").shown("text/plain") == ["[1.0, 0.5]"]


def test_a_moved_variable_is_gone_and_the_others_stay(kernel):
    kernel.ok('let kept = 1usize; let given = String::from("away");')
    kernel.ok("let taken = given;")
    assert "given" in kernel.fails("given.len()")
    assert kernel.ok("taken.len() + kept").shown("text/plain") == ["5"]


def test_a_cell_that_does_not_compile_changes_nothing(kernel):
    kernel.ok("let mut count = 1;")
    kernel.fails("count += 1; let other: i32 = \"text\";")
    assert kernel.ok("count").shown("text/plain") == ["1"]


def test_a_compile_error_shows_the_cells_line_and_column(kernel):
    error = kernel.fails('let fine = 1;\nlet wrong: i32 = "text";')
    assert "mismatched types" in error
    assert 'let wrong: i32 = "text";' in error
    # The string literal begins in line 2, column 18.
    assert re.search(r"\b2:18\b|line 2,? column 18", error), error


def test_a_syntax_error_shows_the_cells_line(kernel):
    error = kernel.fails("let fine = 1;\nlet = 2;")
    assert "let = 2;" in error


def test_a_failing_question_mark_shows_the_error_and_keeps_the_variables(kernel):
    kernel.ok("let kept = vec![1, 2, 3];")
    error = kernel.fails('println!("{}", kept.len());\n"x".parse::<i32>()?;')
    assert "invalid digit found in string" in error
    assert kernel.ok("kept").shown("text/plain") == ["[1, 2, 3]"]


def test_a_panic_shows_its_message_and_keeps_the_variables(kernel):
    kernel.ok("let kept = vec![1, 2, 3];\nlet untouched = 4;")
    cell = kernel.run("let index = kept.len();\nkept[index]")
    assert cell.reply["status"] == "error"
    assert "index out of bounds" in cell.stderr + cell.error
    assert kernel.ok("(kept, untouched)").shown("text/plain") == ["([1, 2, 3], 4)"]


def test_an_error_stops_the_cells_that_wait_behind_it(kernel):
    failing = kernel.client.execute('panic!("stop here")', allow_stdin=False)
    waiting = kernel.client.execute('println!("must not run")', allow_stdin=False)
    replies = {}
    while len(replies) < 2:
        message = kernel.client.get_shell_msg(timeout=60)
        replies[message["parent_header"]["msg_id"]] = message["content"]["status"]
    assert replies == {failing: "error", waiting: "aborted"}


def test_closures_and_generic_values_live_across_cells(kernel):
    kernel.ok("let scale = 3;\nlet boxed: Box<dyn Fn(i32) -> i32> = Box::new(move |x| scale * x);")
    assert kernel.ok("boxed(5)").shown("text/plain") == ["15"]


def test_a_type_annotation_is_not_needed(kernel):
    kernel.ok("let pairs = (0..3).map(|i| (i, i as f32 * 0.5)).collect::<Vec<_>>();")
    assert kernel.ok("pairs[2]").shown("text/plain") == ["(2, 1.0)"]


def test_a_value_that_cannot_be_kept_works_in_its_cell_and_a_later_use_says_why(kernel):
    kernel.ok("let double = |x: i32| 2 * x;\nassert_eq!(double(4), 8);")
    error = kernel.fails("double(5)")
    assert "closure" in error and "box it" in error
    kernel.ok("let text = String::from(\"a b\");\nlet words = text.split(' ');\nassert_eq!(words.count(), 2);")
    kernel.ok("let v = vec![1, 2];\nlet first = &v[0];\nassert_eq!(*first, 1);")
    assert kernel.ok("v.len()").shown("text/plain") == ["2"]
    assert "borrows" in kernel.fails("first")



def test_a_later_use_of_a_moved_variable_says_which_cell_moved_it(kernel):
    kernel.ok("let s = String::from(\"a\");")
    kernel.ok("drop(s);")
    assert "moved away by In [2]" in kernel.fails("s")


def test_a_panic_in_the_last_expression_shows_its_place(kernel):
    assert "In [1], line 2, column 1" in kernel.fails("let zero = std::hint::black_box(0);\n1 / zero")


def test_what_rust_forbids_is_an_error_and_an_ignored_result_a_warning(kernel):
    assert "out of range" in kernel.fails("let w: u8 = 300;")
    cell = kernel.ok('fn step() -> Result<(), String> { Err("no".into()) }\nstep();')
    assert "unused" in cell.stderr and "Result" in cell.stderr


def test_an_error_of_candle_is_one_line(kernel):
    error = kernel.fails(
        "let t = Tensor::zeros((2, 2), DType::F32, &Device::Cpu)?;\n"
        "let bad = t.matmul(&Tensor::zeros((3, 2), DType::F32, &Device::Cpu)?)?;"
    )
    assert "shape mismatch in matmul" in error and "__libc_start_main" not in error
