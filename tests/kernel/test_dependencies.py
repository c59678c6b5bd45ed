"""`:dep` lines: what the library has is free, the rest is built once and linked once."""

import time


def test_a_crate_of_the_library_costs_nothing(kernel):
    kernel.ok("let warm = 1;")
    start = time.monotonic()
    kernel.ok(':dep candle-core = "0.11"')
    assert time.monotonic() - start < 0.2


def test_a_crate_from_the_registry_has_one_copy_of_its_statics(kernel, tmp_path):
    counter = tmp_path / "counter"
    (counter / "src").mkdir(parents=True)
    (counter / "Cargo.toml").write_text(
        '[package]\nname = "counter"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n'
    )
    (counter / "src" / "lib.rs").write_text(
        "use std::sync::atomic::{AtomicUsize, Ordering};\n"
        "static COUNT: AtomicUsize = AtomicUsize::new(0);\n"
        "pub fn next() -> usize { COUNT.fetch_add(1, Ordering::Relaxed) }\n"
    )
    kernel.ok(f':dep counter = {{ path = "{counter}" }}\ncounter::next();')
    kernel.ok("counter::next();")
    assert kernel.ok("counter::next()").shown("text/plain") == ["2"]


def test_a_crate_that_does_not_exist_is_named(kernel):
    error = kernel.fails(':dep no-such-crate = { path = "nowhere" }')
    assert "nowhere" in error
    assert "not of the form" in kernel.fails(":dep = 3")
    assert kernel.ok("1 + 1").shown("text/plain") == ["2"]
