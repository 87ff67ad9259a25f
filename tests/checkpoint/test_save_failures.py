"""A `save` that fails leaves the file as it was."""

import io
import os
import pickle
import signal
import stat
import subprocess
import sys
import time

import pytest

from library import NAME, T

pytestmark = pytest.mark.gradiron


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "x.pt"
    T.save(T.arange(3.0), path)
    return path


def untouched(path):
    assert T.load(path).tolist() == [0.0, 1.0, 2.0]
    assert os.listdir(path.parent) == [path.name]


class Unwilling:
    def __reduce__(self):
        raise ValueError("not me")


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}])
def test_what_cannot_be_pickled(old, options):
    with pytest.raises(ValueError, match="not me"):
        T.save([T.ones(2), Unwilling()], old, **options)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        T.save([T.ones(2), lambda: 0], old, **options)
    untouched(old)


def test_storages_that_cannot_be_read(old, monkeypatch):
    monkeypatch.setattr(T.UntypedStorage, "cpu", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        T.save(T.ones(2), old)
    monkeypatch.undo()
    untouched(old)


def test_long_content_is_whole(old):
    content = {"a": T.arange(3_000_001), "b": T.ones(3), "c": T.arange(1 << 20, dtype=T.float32)}
    T.save(content, old)
    loaded = T.load(old)
    assert all(T.equal(loaded[name], content[name]) for name in content)
    assert os.listdir(old.parent) == [old.name]


def test_a_full_disk(old):
    code = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try: T.save(T.zeros(1 << 20), {str(old)!r})
except RuntimeError as error: print(error)
"""
    script = f"import importlib\nT = importlib.import_module({NAME!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "file write failed" in done.stdout and "File too large" in done.stdout
    untouched(old)
    with pytest.raises(RuntimeError, match="No space left on device"):
        T.save(T.ones(1), "/dev/full")


def test_killed_while_writing(old):
    script = f"""
import importlib, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
T = importlib.import_module({NAME!r})
write = T.serialization._archive.Writer.record
def slowly(self, name, data, **options):
    write(self, name, data, **options)
    if name == "data/0":
        print("now", flush=True)
        sys.stdin.read()
T.serialization._archive.Writer.record = slowly
T.save([T.zeros(100_000), T.ones(2)], {str(old)!r})
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for number, leaves in ((signal.SIGINT, False), (signal.SIGKILL, True)):
        with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, **pipes) as child:
            assert child.stdout.readline() == b"now\n"
            child.send_signal(number)
            assert child.wait(30) != 0
        left = [name for name in os.listdir(old.parent) if name != old.name]
        assert bool(left) == leaves and all(name.startswith(".x.pt.") and name.endswith(".tmp") for name in left)
        assert T.load(old).tolist() == [0.0, 1.0, 2.0]


def test_readers_find_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "x.pt"
    T.save(T.zeros(50_000), path)
    script = f"""
import importlib
T = importlib.import_module({NAME!r})
for i in range(40): T.save(T.full((50_000,), float(i)), {str(path)!r})
"""
    with subprocess.Popen([sys.executable, "-c", script]) as child:
        reads = 0
        while child.poll() is None or reads < 3:
            x = T.load(path)
            assert (x == x[0]).all()
            reads += 1
            time.sleep(0.002)
    assert child.returncode == 0


def test_places_that_are_not_there(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .*/no does not exist\."):
        T.save(T.ones(1), tmp_path / "no" / "x.pt")
    with pytest.raises(RuntimeError, match="open file failed with strerror: Is a directory"):
        T.save(T.ones(1), tmp_path)
    assert os.listdir(tmp_path) == []


def test_links_rights_and_pipes(tmp_path):
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    T.save(T.ones(1), real)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~os.umask(os.umask(0o022))
    real.chmod(0o640)
    link.symlink_to(real)
    T.save(T.zeros(2), link)
    assert link.is_symlink() and T.load(real).tolist() == [0.0, 0.0] and stat.S_IMODE(real.stat().st_mode) == 0o640
    read, write = os.pipe()
    T.save(T.ones(1), f"/dev/fd/{write}")
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert T.load(io.BytesIO(file.read())).tolist() == [1.0]


def test_a_target_that_fails_gives_its_own_error():
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "no room")

    with pytest.raises(OSError, match="no room"):
        T.save(T.ones(1), Full())
