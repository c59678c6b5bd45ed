"""Jupyter's own test suite for kernels."""

from jupyter_kernel_test import KernelTests


class TestProtocol(KernelTests):
    kernel_name = "candle-accelerate"
    language_name = "rust"
    file_extension = ".rs"
    code_hello_world = 'println!("hello, world");'
    code_stderr = 'eprintln!("trouble");'
    code_generate_error = "let wrong: i32 = \"text\";"
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": '"a".repeat(3)', "result": '"aaa"'},
    ]
    code_display_data = [
        {
            "code": 'candle_accelerate::notebook::display(&candle_accelerate::notebook::Content::plain("a"))?;',
            "mime": "text/plain",
        }
    ]
    code_clear_output = "candle_accelerate::notebook::clear_output(false)?;"
    complete_code_samples = ["let x = 1;", "fn f() { 1; }", "1 + 1", 'println!("a");']
    incomplete_code_samples = ["fn f() {", "let x = (1,", 'let s = "open', "if true {"]
    invalid_code_samples = ["let x = );", "fn f() }"]
    completion_samples = [{"text": "ParaphraseD", "matches": ["ParaphraseDataset"]}]
    code_inspect_sample = "Accelerator"
    supported_history_operations = ("tail", "range")


def test_history_is_searched_by_pattern(kernel):
    for code in ("let a = 1;", "6 * 7", "let b = 2;"):
        kernel.ok(code)
    kernel.client.history(hist_access_type="search", pattern="let *", n=10, unique=False)
    reply = kernel.client.get_shell_msg(timeout=10)
    assert [source for _, _, source in reply["content"]["history"]] == ["let a = 1;", "let b = 2;"]


# The suite's base class would be collected, and run against Python's kernel.
del KernelTests
