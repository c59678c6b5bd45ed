"""Completion and inspection know the library and what the notebook defines, at once."""

import time

import pytest

# Jupyter shows nothing useful when an answer takes longer.
SECONDS = 0.3


def complete(kernel, code):
    start = time.monotonic()
    kernel.client.complete(code)
    matches = kernel.client.get_shell_msg(timeout=10)["content"]["matches"]
    return matches, time.monotonic() - start


def inspect(kernel, code):
    start = time.monotonic()
    kernel.client.inspect(code)
    data = kernel.client.get_shell_msg(timeout=10)["content"]["data"]
    return data.get("text/plain", ""), time.monotonic() - start


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("accelerator.pre", "prepare"),
        ("tensor.matmul(&tensor)?.sum_", "sum_all"),
        ("AutoModelForSequenceClassification::from_p", "from_pretrained"),
        ("for batch in &loader {\n    batch.ge", "get"),
        ("net.for", "forward"),
        ("use candle_accelerate::da", "data"),
        ("Device::Cp", "Cpu"),
    ],
)
def test_names_of_the_library_and_of_the_notebook_are_completed_at_once(kernel, code, expected):
    kernel.ok(
        "struct Net { weight: Tensor }\n"
        "impl Net { fn forward(&self) -> Tensor { self.weight.clone() } }\n"
        "let accelerator = Accelerator::new()?;\n"
        "let tensor = Tensor::zeros((2, 2), DType::F32, &Device::Cpu)?;\n"
        "let net = Net { weight: tensor.clone() };\n"
        'let loader = DataLoader::builder(TensorDataset::new([("x", tensor.clone())])?).build()?;'
    )
    complete(kernel, "a")
    matches, seconds = complete(kernel, code)
    assert expected in matches
    assert seconds < SECONDS


def test_inspection_shows_types_signatures_and_docs_at_once(kernel):
    kernel.ok("let accelerator = Accelerator::new()?;\nlet numbers = vec![1.5f64];")
    inspect(kernel, "Tensor")
    text, seconds = inspect(kernel, "accelerator.backward")
    assert "fn backward(&self" in text and "gradients" in text
    assert seconds < SECONDS
    assert "numbers: std::vec::Vec<f64>" in inspect(kernel, "numbers")[0]
    assert "torch.optim.Adam" in inspect(kernel, "Adam")[0]
