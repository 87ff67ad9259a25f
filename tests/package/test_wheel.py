"""The wheel in `dist/`, which `make wheel` builds and `make pytest` tests: what a stranger's pip and lawyer look at."""

import base64
import email
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

from library import T

pytestmark = pytest.mark.gradiron

ROOT = pathlib.Path(__file__).parent.parent.parent
CARGO = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
NEWEST_GLIBC = (2, 17)
LARGEST = 10_500_000


@pytest.fixture(scope="module")
def wheel():
    found = sorted((ROOT / "dist").glob("gradiron-*.whl"))
    if not found:
        pytest.skip("`make wheel` has not been run")
    return found[-1]


@pytest.fixture(scope="module")
def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(files):
    (text,) = (content for name, content in files.items() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(text)


def tool(*words):
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_small(wheel):
    assert wheel.stat().st_size <= LARGEST


def test_no_path_of_the_builder_is_in_it(files):
    paths = {str(ROOT), str(CARGO), str(pathlib.Path.home() / ".rustup"), ".cargo/registry"}
    found = {(name, path) for name, content in files.items() for path in paths if path.encode() in content}
    assert found == set()


def test_panics_name_the_source(files):
    (library,) = (content for name, content in files.items() if pathlib.Path(name).suffix in (".so", ".pyd"))
    assert b"src/python/" in library


def test_every_file_is_recorded(files):
    (record,) = (content.decode() for name, content in files.items() if name.endswith(".dist-info/RECORD"))
    recorded = {}
    for line in record.splitlines():
        name, digest, size = line.rsplit(",", 2)
        recorded[name] = digest, size
    assert set(recorded) == set(files)
    for name, (digest, size) in recorded.items():
        if not name.endswith("/RECORD"):
            own = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={own}", str(len(files[name]))), name


def test_licences_are_in_it(files, metadata):
    assert metadata.get_all("License-File") == ["LICENSE", "THIRD-PARTY-LICENSES"]
    (text,) = (content.decode() for name, content in files.items() if name.endswith("/THIRD-PARTY-LICENSES"))
    crates = re.findall(r"^(\S+) \d\S* \(.*\) https?://", text, re.MULTILINE)
    assert len(crates) >= 80 and {"pyo3", "wgpu", "gemm", "rustfft"} <= set(crates)
    for words in ("Permission is hereby granted", "Apache License", "Rust's standard library"):
        assert words in text


def test_its_page_on_the_index_is_whole(metadata):
    assert metadata["Version"] == T.version.gradiron and metadata["Author"] and metadata["License-Expression"] == "MIT"
    assert {entry.split(",")[0] for entry in metadata.get_all("Project-URL")} >= {
        "Changelog",
        "Documentation",
        "Issues",
        "Source",
    }
    links = re.findall(r"\]\(([^)]*)\)", metadata.get_payload())
    assert links and [link for link in links if not link.startswith("https://")] == []


def test_twine_finds_nothing(wheel):
    tool("twine", "check", "--strict", str(wheel))


def test_it_keeps_to_the_stable_abi(wheel):
    if "abi3" not in wheel.name:
        pytest.skip("a wheel for one version of Python")
    tool("abi3audit", "--strict", "--assume-minimum-abi3", "3.10", str(wheel))


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel is for Linux")
def test_an_old_linux_runs_it(wheel, files, tmp_path):
    told = " ".join(tool("auditwheel", "show", str(wheel)).split())
    assert re.search(r'is consistent with the following platform tag: "manylinux_2_17_', told), told
    (library,) = (content for name, content in files.items() if name.endswith(".so"))
    needed = {tuple(map(int, version.split(b"."))) for version in re.findall(rb"\0GLIBC_([\d.]+)(?=\0)", library)}
    assert needed and max(needed) <= NEWEST_GLIBC
