"""Builds the wheel that is published, into `dist/`: `wheel.py [--target TRIPLE] [--interpreter PYTHON]`.

On Linux zig links it: the wheel then asks for no newer C library than `LINUX` says, whatever the builder has, and is
built for other processors and for musl as well. No path of the builder's machine stays in it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from unittest import mock

from zopfli import zlib  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
# The oldest that Rust's standard library runs on.
LINUX = {"gnu": "manylinux_2_17", "musl": "musllinux_1_2"}

# What Rust's standard library calls of an unwinder.
UNWINDER = """
    Backtrace DeleteException FindEnclosingFunction GetCFA GetDataRelBase GetIP GetIPInfo GetLanguageSpecificData GetRegionStart
    GetTextRelBase RaiseException Resume SetGR SetIP
""".split()

FILES = "https://github.com/gradiron/gradiron/{}/main/"


def said(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def host() -> str:
    """The target that rustc builds for by itself."""
    return next(line.split()[1] for line in said("rustc", "-vV").splitlines() if line.startswith("host:"))


def remapped_paths() -> list[str]:
    """The compiler's options by which panics name a file below the repository or its crate, wherever these lie."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # The last that matches counts.
    places = {ROOT: "", cargo: "cargo", Path(said("rustc", "--print", "sysroot")): "rust"}
    registries = {registry: "" for registry in (cargo / "registry" / "src").glob("*")}
    return [f"--remap-path-prefix={path}={name}" for path, name in {**places, **registries}.items()]


def make_unwinder(target: str) -> Path:
    """A stand-in for libgcc's shared unwinder, for the linker alone.

    Zig would put an unwinder of its own into the wheel. A thread that Python ends while it exits is unwound by libgcc's, and
    crashes where the two meet.
    """
    folder = ROOT / "target" / "unwinder" / target
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "unwinder.c", folder / "libgcc_s.so.1"
    source.write_text("".join(f"void _Unwind_{name}(void) {{}}\n" for name in UNWINDER))
    processor = target.partition("-")[0]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{processor}-linux-gnu", "-shared", "-nostdlib"]
    subprocess.run([*command, f"-Wl,-soname,{library.name}", "-o", str(library), str(source)], check=True)
    return library


class Zopfli:
    """Compresses a file of a zip as zlib would, into 3 % less, in over a hundred times its time."""

    def __init__(self) -> None:
        self.content = b""

    def compress(self, content: bytes) -> bytes:
        self.content += content
        return b""

    def flush(self) -> bytes:
        header, checksum = 2, 4
        return zlib.compress(self.content, numiterations=5)[header:-checksum]


def finish(built: Path, wheel: Path) -> None:
    """Writes the wheel from what maturin has built, with `edited` files."""
    with zipfile.ZipFile(built) as archive:
        files = [(info, archive.read(info)) for info in archive.infolist()]
    changed: dict[str, bytes] = {}
    with mock.patch.object(zipfile, "_get_compressor", lambda *_: Zopfli()), zipfile.ZipFile(wheel, "w") as archive:
        for info, content in files:  # RECORD comes last.
            if info.filename.endswith(".dist-info/RECORD"):
                content = "".join(record_line(line, changed) for line in content.decode().splitlines()).encode()
            elif (new := edited(info.filename, content)) != content:
                changed[info.filename] = content = new
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)


def edited(name: str, content: bytes) -> bytes:
    """A file without the repository's place, which maturin notes in the SBOM, and the README with links that work anywhere."""
    if name.endswith(".cyclonedx.json"):
        return content.replace(ROOT.as_posix().lstrip("/").encode(), b"gradiron")
    if name.endswith(".dist-info/METADATA"):
        text = re.sub(r"(!\[[^]]*\]\()(?!https:)", rf"\1{FILES.format('raw')}", content.decode())
        return re.sub(r"(\]\()(?!https:|#)", rf"\1{FILES.format('blob')}", text).encode()
    return content


def record_line(line: str, changed: dict[str, bytes]) -> str:
    """A line of RECORD, with the checksum and size of what was changed."""
    name = line.split(",")[0]
    if name in changed:
        digest = base64.urlsafe_b64encode(hashlib.sha256(changed[name]).digest()).rstrip(b"=").decode()
        line = f"{name},sha256={digest},{len(changed[name])}"
    return line + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the wheel that is published, into dist/.")
    parser.add_argument("--target", default=host(), help="as rustc names it; by default this machine's")
    parser.add_argument("--interpreter", default=sys.executable, help="a free-threaded Python gets a wheel of its own")
    chosen = parser.parse_args()
    said("cargo", "fetch", "--locked", "--target", chosen.target)  # Before the registries' folders are looked up.
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--target", chosen.target]
    command += ["--interpreter", chosen.interpreter]
    (ROOT / "dist").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        flags = remapped_paths()
        if "-linux-" in chosen.target:
            library = chosen.target.rpartition("-")[2]
            command += ["--zig", "--compatibility", LINUX[library]]
            if library == "gnu":
                flags.append(f"-Clink-arg={make_unwinder(chosen.target)}")
        environment = {
            **os.environ,
            "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
            "CARGO_ZIGBUILD_PYTHON_PATH": sys.executable,
        }
        subprocess.run([*command, "--out", folder], cwd=ROOT, env=environment, check=True)
        for built in Path(folder).glob("*.whl"):
            finish(built, ROOT / "dist" / built.name)
            print(f"{built.name}: {(ROOT / 'dist' / built.name).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
