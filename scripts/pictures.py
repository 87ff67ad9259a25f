"""Draws the pictures of the documentation into docs/pictures: `pictures.py [--examples]`.

In a page, an image that follows a Python block is the `picture` that the block has made. The losses of examples/ are drawn
by the examples themselves, which takes minutes: `--examples`.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "start.md", ROOT / "docs" / "gallery.md")
PART = re.compile(r"^```python\n(.*?)^```$|pictures/([\w-]+\.svg)", re.MULTILINE | re.DOTALL)
EXAMPLES = ("demo", "convnet", "transformer", "lstm", "neural_ode", "pinn")


def draw(page: Path) -> None:
    space: dict[str, object] = {"__name__": "__main__"}
    for code, name in PART.findall(page.read_text(encoding="utf-8")):
        if code:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(page), "exec"), space)
        elif name.removesuffix(".svg") not in EXAMPLES:
            space["picture"].svg(PICTURES / name)


def run_examples(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in EXAMPLES:
        subprocess.run([sys.executable, str(ROOT / "examples" / f"{name}.py")], cwd=folder, env=environment, check=True)
        drawn = folder / "demo-output" / f"{'graph' if name == 'demo' else name}.svg"
        (PICTURES / f"{name}.svg").write_bytes(drawn.read_bytes())


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in PAGES:
            draw(page)
        if "--examples" in sys.argv:
            run_examples(Path(folder))


if __name__ == "__main__":
    main()
