"""How ranks find one another by a URL, and what is said of URLs that are wrong."""

import itertools
import os
import socket
import subprocess
import sys
from datetime import timedelta

import pytest

from library import IS_GRADIRON, NAME, T

D = T.distributed
NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
SHORT = timedelta(milliseconds=300)
handlers = itertools.count()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def meet(url, *arguments, **options):
    return next(iter(D.rendezvous(url, *arguments, **options)))


def expected(scheme, text):
    return f"^Error initializing torch.distributed using {scheme}:// rendezvous: {text}$"


def test_environment(monkeypatch, port):
    values = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for name, value in values.items():
        words = expected("env", f"environment variable {name} expected, but not set")
        with pytest.raises(ValueError, match=words):
            meet("env://")
        monkeypatch.setenv(name, "")
        with pytest.raises(ValueError, match=words):
            meet("env://")
        monkeypatch.setenv(name, value)
    store, rank, size = meet("env://")
    assert (rank, size, store.port) == (0, 1, port)
    store.set("a", "b")
    assert D.TCPStore("127.0.0.1", port).get("a") == b"b"


def test_arguments_stand_for_variables(monkeypatch, port):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    assert meet("env://", 0, 1)[1:] == (0, 1)
    assert meet("env://?rank=0&world_size=1")[1:] == (0, 1)
    with pytest.raises(AssertionError, match=r"^The url: env://\?rank=1&world_size=4 has node-specific arguments"):
        meet("env://?rank=1&world_size=4", 0, 1)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "MASTER_PORT"])
def test_variables_that_are_no_numbers(monkeypatch, name):
    for other, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(other, "x" if other == name else value)
    with pytest.raises(ValueError, match=r"^invalid literal for int\(\) with base 10: 'x'$"):
        meet("env://")


def test_ports_out_of_range(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "70000")
    with pytest.raises(ValueError, match=r"^port must have value from 0 to 65535 but was 70000\.$"):
        meet("env://", 0, 1)
    with pytest.raises(ValueError, match="^Port out of range 0-65535$"):
        meet("tcp://127.0.0.1:70000", 0, 1)


def test_tcp(port):
    url = f"tcp://127.0.0.1:{port}"
    with pytest.raises(ValueError, match=expected("tcp", "rank parameter missing")):
        meet(url)
    with pytest.raises(ValueError, match=expected("tcp", "world size parameter missing")):
        meet(f"{url}?rank=0")
    with pytest.raises(ValueError, match=expected("tcp", "port number missing")):
        meet("tcp://127.0.0.1", 0, 1)
    with pytest.raises(AssertionError, match="^hostname cannot be None$"):
        meet(f"tcp://:{port}", 0, 1)
    assert meet(f"{url}?rank=0&world_size=1")[1:] == (0, 1)
    again = D.rendezvous(url, 0, 1)
    next(again)
    with pytest.raises(RuntimeError, match="^Unable to perform re-rendezvous using tcp:// method$"):
        next(again)


def test_a_rank_without_its_master(port):
    with pytest.raises(D.DistNetworkError, match="^The client socket has timed out after 300ms"):
        meet(f"tcp://127.0.0.1:{port}", 1, 2, timeout=SHORT)


def test_file(tmp_path):
    url = f"file://{tmp_path}/store"
    with pytest.raises(ValueError, match=expected("file", "rank parameter missing")):
        meet(url)
    with pytest.raises(ValueError, match=expected("file", "world size parameter missing")):
        meet(f"{url}?rank=0")
    with pytest.raises(ValueError, match=expected("file", "path missing")):
        meet("file://", 0, 1)
    first, rank, size = meet(url, 0, 2)
    second = meet(f"{url}?rank=1&world_size=2")[0]
    third = meet(f"file:///{tmp_path}/store?rank=1&world_size=2")[0]
    assert (rank, size) == (0, 2)
    first.set("a", "b")
    assert second.get("a") == third.get("a") == b"b"


def test_urls_that_nobody_answers():
    for url, scheme in (("abc://x", "abc"), ("x", ""), ("", "")):
        with pytest.raises(RuntimeError, match=f"^No rendezvous handler for {scheme}://$"):
            meet(url, 0, 1)
    with pytest.raises(RuntimeError, match=r"^`url` must be a string. <class 'int'>: 3$"):
        meet(3)
    with pytest.raises(RuntimeError, match=r"^`rank` must be an integer. 0.5$"):
        meet("env://", 0.5, 1)
    with pytest.raises(RuntimeError, match=r"^`world_size` must be an integer. 1.0$"):
        meet("env://", 0, 1.0)


def test_a_handler_of_ones_own():
    scheme, seen = f"own{next(handlers)}", []

    def handler(url, timeout=None, **options):
        seen.append((url, timeout, options))
        yield "store", 5, 6

    D.register_rendezvous_handler(scheme, handler)
    assert meet(f"{scheme}://a?b=1", 1, 2, timeout=3, more=4) == ("store", 5, 6)
    assert seen == [(f"{scheme}://a?b=1&rank=1&world_size=2", 3, {"more": 4})]
    for taken in (scheme, "tcp"):
        with pytest.raises(RuntimeError, match=f"^Rendezvous handler for {taken}:// already registered$"):
            D.register_rendezvous_handler(taken, handler)


def test_the_launcher_hosts_the_store(monkeypatch, port):
    values = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(D.DistNetworkError, match="^The client socket has timed out"):
        meet("env://", 0, 1, timeout=SHORT)
    launcher = D.TCPStore("127.0.0.1", port, is_master=True)
    store, rank, size = meet("env://", 0, 2, timeout=timedelta(seconds=20))
    store.set("a", "b")
    assert [key.rpartition("/")[2] for key in launcher.list_keys()] == ["a"]
    assert (rank, size) == (0, 2)
    # Only the environment tells of a launcher: a URL with an address of its own needs a store of its own.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        other = probe.getsockname()[1]
    assert meet(f"tcp://127.0.0.1:{other}", 0, 1, timeout=timedelta(seconds=20))[0].port == other


@pytest.mark.parametrize("kind", ["env", "tcp", "file"])
def test_processes_meet(tmp_path, port, kind):
    url = {"env": "env://", "tcp": f"tcp://127.0.0.1:{port}", "file": f"file://{tmp_path}/store"}[kind]
    program = f"""
import os
from datetime import timedelta
import {NAME} as torch
given = () if {kind!r} == "env" else (int(os.environ["RANK"]), 3)
options = {{}} if {kind!r} == "file" else dict(timeout=timedelta(seconds=60))
store, rank, size = next(torch.distributed.rendezvous({url!r}, *given, **options))
store.set_timeout(timedelta(seconds=60))
store.set(f"from {{rank}}", str(rank * 10))
print(rank, [int(store.get(f"from {{other}}")) for other in range(size)])
store.add("seen", 1)
while store.add("seen", 0) < size:
    pass
"""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
        )
        for rank in (2, 1, 0)
    ]
    for rank, process in zip((2, 1, 0), ranks):
        assert process.communicate(timeout=60)[0] == f"{rank} [0, 10, 20]\n"
    if IS_GRADIRON:
        assert not (tmp_path / "store").exists()


def test_default_timeouts():
    from importlib import import_module

    constants = import_module(f"{NAME}.distributed.constants")
    assert constants.default_pg_timeout == timedelta(minutes=30)
    assert constants.default_pg_nccl_timeout == timedelta(minutes=10)
