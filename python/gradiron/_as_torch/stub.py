"""`gradiron-as-torch`: a distribution named `torch` which tells packages that require PyTorch that it is there."""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.machinery
import importlib.metadata
import shutil
import site
import sys
import sysconfig
import zipfile
from pathlib import Path

import gradiron

_MODULE = '''\
"""This is not PyTorch: `gradiron-as-torch install` wrote it, so that `import torch` gives gradiron."""

try:
    import gradiron
except ModuleNotFoundError as error:
    if error.name != "gradiron":
        raise
    raise ModuleNotFoundError(
        "torch is only a second name of gradiron here, and gradiron is not installed: "
        "`pip install gradiron` brings it back, `pip uninstall torch` removes the name",
        name="gradiron",
    ) from None

gradiron.as_torch()  # Puts gradiron into `sys.modules`, where the import under way takes it from.
'''
_METADATA = f"""\
Metadata-Version: 2.1
Name: torch
Version: {gradiron.__version__}
Summary: This is not PyTorch: it makes `import torch` give gradiron
Project-URL: Homepage, https://github.com/gradiron/gradiron
License: MIT
Requires-Python: >=3.10
Requires-Dist: gradiron

`gradiron-as-torch install` wrote this distribution, so that packages which require torch find it installed and run on
gradiron. `gradiron-as-torch uninstall` or `pip uninstall torch` removes it.
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: gradiron-as-torch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class StubError(Exception):
    """What keeps the command from doing its work, in words for its user."""


def _files(**more: str) -> dict[str, bytes]:
    """Return the distribution's files by their paths in `site-packages`, `more` in its `.dist-info` among them."""
    info = f"torch-{gradiron.__version__}.dist-info"
    texts = {"METADATA": _METADATA, "WHEEL": _WHEEL, "top_level.txt": "torch\n", **more}
    files = {"torch/__init__.py": _MODULE.encode(), **{f"{info}/{name}": text.encode() for name, text in texts.items()}}
    record = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(content)}\n")
    return {**files, f"{info}/RECORD": "".join([*record, f"{info}/RECORD,,\n"]).encode()}


def _distributions(name: str) -> list[importlib.metadata.Distribution]:
    """Return the distributions of that name on the disk: `as_torch` adds one to what `importlib.metadata` finds."""
    path = list(dict.fromkeys([str(site_packages()) if name == "torch" else "", *sys.path]))
    context = importlib.metadata.DistributionFinder.Context(name=name, path=path)
    return list(importlib.metadata.MetadataPathFinder.find_distributions(context))


def _folder(distribution: importlib.metadata.Distribution) -> Path:
    return Path(str(distribution.locate_file("")))


def site_packages() -> Path:
    """Return where the stub belongs: the user's `site-packages` if gradiron lies there, else the environment's own."""
    user = Path(site.getusersitepackages())
    if any(_folder(found) == user for found in _distributions("gradiron")):
        return user
    return Path(sysconfig.get_path("purelib"))


def _is_stub(distribution: importlib.metadata.Distribution) -> bool:
    return distribution.version.partition("+")[2].startswith("gradiron")


def _told(distribution: importlib.metadata.Distribution) -> str:
    return f"torch {distribution.version} in {_folder(distribution)}"


def _stubs() -> list[importlib.metadata.Distribution]:
    """Return the stubs that are installed; raise where there is a real PyTorch."""
    found = _distributions("torch")
    real = [_told(one) for one in found if not _is_stub(one)]
    if not found:
        # A source tree of PyTorch's on `PYTHONPATH` is no distribution.
        spec = importlib.machinery.PathFinder.find_spec("torch", [str(site_packages()), *sys.path])
        real = [str(spec.origin)] if spec is not None and spec.origin else []
    if real:
        raise StubError(
            f"{real[0]} is PyTorch, which gradiron leaves alone. To go on with gradiron, use an environment without PyTorch\n"
            "or `pip uninstall torch` first. Beside PyTorch, `python -m gradiron script.py` runs a script on gradiron."
        )
    return found


def _remove(distribution: importlib.metadata.Distribution) -> None:
    folder = _folder(distribution)
    paths = [folder / str(file) for file in distribution.files or []]
    for path in paths:
        path.unlink(missing_ok=True)
    for parent in sorted({path.parent for path in paths}, reverse=True):
        shutil.rmtree(parent / "__pycache__", ignore_errors=True)
        if parent.is_dir() and not any(parent.iterdir()):  # Another's file may lie there.
            parent.rmdir()


def install() -> str:
    """Install the stub, or renew that of another version of gradiron."""
    stubs, folder = _stubs(), site_packages()
    if [one.version for one in stubs] == [gradiron.__version__]:
        return f"{_told(stubs[0])} is there already."
    for stub in stubs:
        _remove(stub)
    files = _files(INSTALLER="gradiron-as-torch\n")
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError:
        for name in files:
            (folder / name).unlink(missing_ok=True)
        raise
    return f"Installed torch {gradiron.__version__} in {folder}: `import torch` gives gradiron."


def uninstall() -> str:
    """Remove the stub."""
    removed = []
    for stub in _stubs():
        removed.append(f"Removed {_told(stub)}.")
        _remove(stub)
    return "\n".join(removed) or "torch is not installed: there is nothing to remove."


def status() -> str:
    """Say what `torch` is in this environment; raise where it is not this gradiron."""
    stubs = _stubs()
    if not stubs:
        raise StubError("torch is not installed: `gradiron-as-torch install` makes gradiron answer to its name.")
    if stubs[0].version != gradiron.__version__:
        raise StubError(
            f"{_told(stubs[0])} is from another version than this gradiron {gradiron.version.gradiron}: "
            "`gradiron-as-torch install` renews it."
        )
    return f"{_told(stubs[0])} is gradiron {gradiron.version.gradiron}."


def wheel(folder: Path) -> str:
    """Write the stub as a wheel, which any installer of packages takes."""
    path = folder / f"torch-{gradiron.__version__}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _files().items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return str(path)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(
        prog="gradiron-as-torch",
        description="Make packages that require torch run on gradiron, by a distribution of that name in this environment.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for verb, meaning in (
        ("install", "put it into this environment's site-packages; refuses where PyTorch is installed"),
        ("status", "say what torch is here; the exit status is 0 if it is this gradiron"),
        ("uninstall", "remove it; never removes PyTorch"),
    ):
        verbs.add_parser(verb, help=meaning, description=f"{meaning[0].upper()}{meaning[1:]}.")
    meaning = "write it as a wheel, for installers that keep an environment by a list"
    verbs.add_parser("wheel", help=meaning, description=f"{meaning[0].upper()}{meaning[1:]}.").add_argument(
        "folder", nargs="?", type=Path, default=Path()
    )
    chosen = parser.parse_args(arguments)
    try:
        match chosen.verb:
            case "install":
                print(install())
            case "uninstall":
                print(uninstall())
            case "status":
                print(status())
            case _:
                print(wheel(chosen.folder))
    except StubError as error:
        print(f"gradiron-as-torch: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"gradiron-as-torch: cannot write {error.filename or site_packages()}: {error.strerror}. "
            "Use a virtual environment of your own.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
