"""The pages of documentation quote the source and name its files: `scripts/examples.py` notices where they no longer do."""

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gradiron

ROOT = pathlib.Path(__file__).parent.parent.parent
ROW = """```rust
#[operator(function, sample = "random")]
pub fn dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    …
    apply_dropout(input, p, train, %s)
}
```
"""


def complaints(path, text):
    page = path / "page.md"
    page.write_text(text, encoding="utf-8")
    command = [sys.executable, str(ROOT / "scripts" / "examples.py"), str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == int(bool(done.stderr)), done.stderr
    return [line.removeprefix(f"{page}:") for line in done.stderr.splitlines()]


def test_what_is_true_passes(tmp_path):
    text = "`run` in `src/backward/mod.rs`, `tests/` and\n" + ROW % "false" + "```python\nprint(1 + 1)\n```\n```text\n2\n```\n"
    assert complaints(tmp_path, text) == []


@pytest.mark.parametrize(
    "text, complaint",
    [
        (ROW % "true", "2: the source no longer has"),
        ("See `src/backward/nowhere.rs`.\n", " there is no src/backward/nowhere.rs"),
        ("`walks` in `src/backward/mod.rs`\n", " src/backward/mod.rs has no walks"),
        ("```python\nprint(1 + 1)\n```\n```text\n3\n```\n", "5: the example printed"),
    ],
)
def test_what_is_no_longer_true_is_told(tmp_path, text, complaint):
    assert complaint in complaints(tmp_path, text)
