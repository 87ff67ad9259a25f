"""`profile.export_memory_timeline`: how much memory operators held at which time."""

import gzip
import importlib
import json

import pytest

from library import NAME, T, devices

P = importlib.import_module(f"{NAME}.profiler")
pytestmark = pytest.mark.filterwarnings("ignore:`export_memory_timeline` is deprecated")
ASKED = {"record_shapes": True, "profile_memory": True, "with_stack": True}
CREATE, WRITE, DESTROY = 2, 3, 4


def recorded(device="cpu", **options):
    with P.profile(**options) as p:
        x = T.ones(1000, device=device)
        y = x * 2
        del x
        y.exp_().sum()
    return p


@pytest.fixture(scope="module")
def profile():
    return recorded(**ASKED)


def read(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return json.load(file)


@pytest.mark.parametrize("name", ["memory.json", "memory.json.gz", "memory"])
def test_sums_over_time(profile, tmp_path, name):
    path = str(tmp_path / name)
    assert profile.export_memory_timeline(path) is None
    times, sums = read(path)
    assert len(times) == len(sums) and times == sorted(times)
    assert {len(row) for row in sums} == {9}
    totals = [sum(row) for row in sums]
    assert 4000 in totals and max(totals) >= 8000 and totals[-1] <= 4008


def test_each_change(profile, tmp_path):
    path = str(tmp_path / "memory.raw.json.gz")
    profile.export_memory_timeline(path, "cpu")
    changes = [change for change in read(path) if change[0] >= 0 and change[1] != WRITE]
    assert [time for time, *_ in changes] == sorted(time for time, *_ in changes)
    assert all(action == (CREATE if count > 0 else DESTROY) for _, action, count, _ in changes)
    assert [count for _, _, count, _ in changes if abs(count) == 4000] == [4000, 4000, -4000]


def test_devices_apart(profile, tmp_path):
    path = str(tmp_path / "memory.json")
    profile.export_memory_timeline(path, "cuda:0")
    assert read(path) == [[], []]
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda.* device type at start of device string: zz"):
        profile.export_memory_timeline(path, "zz")


@pytest.mark.parametrize("missing", ASKED)
def test_what_must_have_been_recorded(tmp_path, missing):
    p = recorded(**{**ASKED, missing: False})
    with pytest.raises(ValueError, match=f"{missing}=True required for memory profiling."):
        p.export_memory_timeline(str(tmp_path / "memory.json"))
    with pytest.raises(ValueError, match="record_shapes=True, profile_memory=True, with_stack=True required"):
        recorded().export_memory_timeline(str(tmp_path / "memory.json"))


@pytest.mark.gradiron
def test_no_pictures(profile, tmp_path):
    with pytest.raises(NotImplementedError, match="written as JSON"):
        profile.export_memory_timeline(str(tmp_path / "memory.html"))


@pytest.mark.gradiron
@pytest.mark.skipif("cuda" not in devices(), reason="needs a GPU, or Mesa's software one")
def test_the_gpu_s_memory(tmp_path):
    path = str(tmp_path / "memory.json")
    recorded("cuda", **ASKED).export_memory_timeline(path)
    assert max(sum(row) for row in read(path)[1]) >= 8000
