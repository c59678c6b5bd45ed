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
            "code": 'println!("EVCXR_BEGIN_CONTENT text/html\\n<b>b</b>\\nEVCXR_END_CONTENT");',
            "mime": "text/html",
        }
    ]
    complete_code_samples = ["let x = 1;", "fn f() { 1; }", "1 + 1", 'println!("a");']
    incomplete_code_samples = ["fn f() {", "let x = (1,", 'let s = "open', "if true {"]
    invalid_code_samples = ["let x = );", "fn f() }"]
    completion_samples = [{"text": "Accelera", "matches": ["Accelerator"]}]
    code_inspect_sample = "Accelerator"
    code_history_pattern = "6 * *"
    supported_history_operations = ("tail", "range", "search")


# The suite's base class would be collected, and run against Python's kernel.
del KernelTests
