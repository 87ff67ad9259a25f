"""The documentation site: what of it is generated, before `make docs` builds it."""

import pathlib
import subprocess
import sys

import pytest

from library import T

pytestmark = pytest.mark.gradiron

SITE = pathlib.Path(__file__).parent.parent.parent / "scripts" / "site"


def python(code):
    """What a program prints that may import the modules of the site."""
    code = f"import sys; sys.path[:0] = [{str(SITE)!r}, {str(pathlib.Path(T.__file__).parent.parent)!r}]\n{code}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_has_an_entry():
    out = python("from reference import Reference\nr = Reference(); n = len(r.pages()); print(n, r.count, r.without)")
    pages, count, without = out.split(maxsplit=2)
    assert int(pages) > 150 and int(count) > 3500 and without.strip() == "[]"


def test_entries_link_to_each_other():
    out = python(
        "from reference import Reference\nr = Reference(); pages = r.pages()\n"
        "print(pages['reference/torch/reduction.md'].partition('#torch.softmax }')[2][:400])"
    )
    assert "torch.softmax(input, dim, dtype=None, *, out=None) -> Tensor" in out
    assert "[`Tensor.softmax`](../Tensor.md#torch.Tensor.softmax)" in out


def test_every_name_that_is_missing_has_a_reason():
    page = python("from missing import comparison\nprint(comparison())")
    assert "## What is missing, and why" in page and "`torch.linalg`" in page.partition("The others:")[0]


DOCSTRING = """Add `a` to `b`: x*y_z [1].

For the gradient `g`::

    m = 2 * g

Args:
    a, b: numbers, or
        tensors of `int`. Default: `1`

Examples:
    >>> 1 + 1
    2
"""
MARKDOWN = r"""Add `a` to `b`: x\*y\_z \[1\].

For the gradient `g`:

```text
m = 2 * g
```

**Parameters**

- **`a`, `b`**: numbers, or tensors of `int`. Default: `1`

```pycon
>>> 1 + 1
2
```
"""


def test_docstrings_become_markdown():
    assert python(f"from docstring import markdown\nprint(markdown({DOCSTRING!r}, str))") == MARKDOWN
