"""Stores: what every kind does alike, and what is each one's own."""

import errno
import os
import pickle
import socket
import threading
import time
from datetime import timedelta

import pytest

from library import IS_GRADIRON, T

D = T.distributed
SHORT = timedelta(milliseconds=200)
needs_gradiron = pytest.mark.gradiron


def tcp(**options):
    return D.TCPStore("127.0.0.1", 0, is_master=True, **options)


@pytest.fixture(params=["tcp", "file", "hash", "prefix-tcp", "prefix-file", "prefix-hash"])
def store(request, tmp_path):
    kind = request.param.rpartition("-")[2]
    made = {"tcp": tcp, "file": lambda: D.FileStore(str(tmp_path / "store"), 1), "hash": D.HashStore}[kind]()
    if "-" in request.param:
        made = D.PrefixStore("pre", made)
    made.set_timeout(SHORT)
    return made


def test_values(store):
    store.set("a", "one")
    store.set("b", b"\xff\x00")
    assert (store.get("a"), store.get("b")) == (b"one", b"\xff\x00")
    store.set("a", "é")
    assert store.get("a") == "é".encode()
    store.set("", "nothing")
    assert store.get("") == b"nothing"
    big = os.urandom(3 << 20)
    store.set("big", big)
    assert store.get("big") == big


def test_add(store):
    assert [store.add("n", 3), store.add("n", -5), store.add("n", 0)] == [3, -2, -2]
    assert store.get("n") == b"-2"
    store.set("n", "40")
    assert store.add("n", 2) == 42
    assert store.add("most", 2**63 - 1) == 2**63 - 1
    assert store.add("most", 1) == -(2**63)


@needs_gradiron
def test_add_to_what_is_no_number(store):
    store.set("word", "xy")
    with pytest.raises((ValueError, D.DistNetworkError), match=r"^add: .*is (no whole number|not an integer)$"):
        store.add("word", 1)
    assert store.get("word") == b"xy"


def test_compare_set(store):
    assert store.compare_set("c", "", "first") == b"first"
    assert store.compare_set("c", "other", "second") == b"first"
    assert store.compare_set("c", "first", "second") == b"second"
    assert store.get("c") == b"second"
    assert store.compare_set("missing", "expected", "desired") == b"expected"
    assert not store.check(["missing"])


def test_check_delete_and_counts(store):
    before = store.num_keys()
    store.multi_set(["x", "y"], ["1", b"2"])
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    assert store.check(["x", "y"]) and not store.check(["x", "z"]) and store.check([])
    assert store.num_keys() == before + 2
    assert sorted(store.list_keys())[-2:] == ["x", "y"]
    assert store.delete_key("x")
    assert not store.check(["x"])
    assert store.num_keys() == before + 1
    if IS_GRADIRON:  # PyTorch's FileStore says True
        assert not store.delete_key("x")
    store.set("x", "again")
    assert store.get("x") == b"again"


def test_append(store):
    store.append("log", "one")
    store.append("log", ",two")
    assert store.get("log") == b"one,two"


def test_waits_end_in_errors(store):
    for call in (
        lambda: store.get("missing"),
        lambda: store.wait(["missing"]),
        lambda: store.wait(["missing", "other"], SHORT),
    ):
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match="[Tt]imeout"):
            call()
        assert 0.15 < time.monotonic() - begin < 2
    store.wait([])
    if IS_GRADIRON:  # PyTorch may not see it in no time
        store.set("here", "")
        store.wait(["here"], timedelta(0))


@pytest.mark.parametrize("wait", [lambda s: s.get("late"), lambda s: s.wait(["early", "late"])])
def test_waits_end_with_the_key(store, wait):
    store.set_timeout(timedelta(seconds=20))
    other = store.clone()
    timer = threading.Timer(0.1, lambda: (other.set("early", "1"), other.set("late", "2")))
    timer.start()
    begin = time.monotonic()
    assert wait(store) in (b"2", None)
    assert time.monotonic() - begin < 5
    timer.join()
    assert store.get("late") == b"2"


@needs_gradiron
def test_a_wait_does_not_stop_others(store):
    store.set_timeout(timedelta(seconds=20))
    got = []
    waiting = threading.Thread(target=lambda: got.append(store.get("answer")))
    waiting.start()
    time.sleep(0.05)
    store.set("answer", "42")
    waiting.join(10)
    assert got == [b"42"]


def test_threads_count_together(store):
    def count():
        for _ in range(50):
            store.add("count", 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.add("count", 0) == 200


def test_barrier(store):
    store.barrier("alone", 1)
    if IS_GRADIRON:  # PyTorch's waits for ever behind a prefix
        with pytest.raises(RuntimeError, match="[Tt]imeout"):
            store.barrier("two", 2)
    store.set_timeout(timedelta(seconds=20))
    other = store.clone()
    thread = threading.Thread(target=lambda: other.barrier("both", 2, timedelta(seconds=20)))
    thread.start()
    store.barrier("both", 2, timedelta(seconds=20))
    thread.join(10)
    assert not thread.is_alive()


def test_clones_share_keys_not_timeouts(store):
    other = store.clone()
    other.set("k", "v")
    assert store.get("k") == b"v"
    if IS_GRADIRON:  # PyTorch's HashStore is its own clone, its FileStore forgets the timeout
        assert other.timeout == SHORT
        other.set_timeout(timedelta(seconds=7))
        assert (store.timeout, other.timeout) == (SHORT, timedelta(seconds=7))


def test_queues(store):
    if "FileStore" in repr(getattr(store, "underlying_store", store)):
        for call in (lambda: store.queue_push("q", "1"), lambda: store.queue_pop("q"), lambda: store.queue_len("q")):
            with pytest.raises(NotImplementedError, match=r"^queue support is not implemented\.$"):
                call()
        return
    for value in ("1", "2"):
        store.queue_push("q", value)
    assert store.queue_len("q") == 2
    assert (store.queue_pop("q"), store.queue_pop("q", False)) == (b"1", b"2")
    assert store.queue_len("q") == 0
    with pytest.raises(D.QueueEmptyError, match="^queue is empty$"):
        store.queue_pop("q", False)
    with pytest.raises(D.DistStoreError, match="[Ww]ait timeout"):
        store.queue_pop("q")
    store.set_timeout(timedelta(seconds=20))
    other, got = store.clone(), []
    threads = [threading.Thread(target=lambda: got.append(other.queue_pop("q"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in "abc":
        store.queue_push("q", value)
    for thread in threads:
        thread.join(10)
    assert sorted(got) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.set("a", 3),
        lambda s: s.set(3, "a"),
        lambda s: s.get(None),
        lambda s: s.add("a", "x"),
        lambda s: s.add("a", 2**63),
        lambda s: s.set_timeout(2),
        lambda s: s.wait(["a"], 3),
        lambda s: s.wait("a"),
        lambda s: s.check([3]),
    ],
)
def test_wrong_types(store, call):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(store)


def test_stores_are_not_pickled(store):
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(store)


def test_errors_of_tcp_name_keys_and_time():
    store = tcp()
    store.set_timeout(SHORT)
    with pytest.raises(D.DistStoreError, match="^wait timeout after 200ms, keys: /a$"):
        store.get("a")
    with pytest.raises(D.DistStoreError, match="^wait timeout after 100ms, keys: /a, /b$"):
        store.wait(["a", "b"], timedelta(milliseconds=100))
    prefixed = D.PrefixStore("p", store)
    with pytest.raises(D.DistStoreError, match="^wait timeout after 200ms, keys: /p/a$"):
        prefixed.get("a")
    with pytest.raises(D.DistStoreError, match=r"^barrier timeout after 200ms, key: b$"):
        store.barrier("b", 2)
    with pytest.raises(D.DistStoreError, match="^multiSet keys and values vectors must be of same size$"):
        store.multi_set(["a", "b"], ["1"])


def test_error_classes():
    assert issubclass(D.DistError, RuntimeError)
    for error in (D.DistBackendError, D.DistNetworkError, D.DistStoreError):
        assert error.__bases__ == (D.DistError,)
    assert D.QueueEmptyError.__bases__ == (D.DistStoreError,)
    assert D.DistError.__module__ == T.__name__ + ".distributed"


def test_tcp_properties():
    store = tcp()
    assert store.host == "127.0.0.1"
    assert store.port > 0
    assert store.libuvBackend and not tcp(use_libuv=False).libuvBackend
    assert store.timeout == timedelta(seconds=300)
    assert f"TCPServer(port={store.port})" in repr(store)
    client = D.TCPStore("127.0.0.1", store.port)
    assert "server=<nullptr>" in repr(client)
    client.set("a", "b")
    assert store.get("a") == b"b"
    assert store.has_extended_api()


def test_the_master_waits_for_its_workers():
    with pytest.raises(D.DistStoreError, match=r"^Timed out after \d seconds waiting for clients. 1/2 clients joined.$"):
        tcp(world_size=2, timeout=timedelta(seconds=1))
    assert tcp(world_size=2, wait_for_workers=False).num_keys() == 0
    assert tcp(world_size=1).num_keys() == 1
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    stores = {}

    def join(rank):
        stores[rank] = D.TCPStore("127.0.0.1", port, 3, rank == 0, timedelta(seconds=20))

    threads = [threading.Thread(target=join, args=(rank,)) for rank in (2, 1, 0)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join(20)
    assert set(stores) == {0, 1, 2}
    stores[1].set("from", "1")
    assert stores[2].get("from") == b"1"


def test_no_server():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        words = rf"^The client socket has timed out after 300ms while trying to connect to \(127.0.0.1, {port}\)\."
        with pytest.raises(D.DistNetworkError, match=words):
            D.TCPStore("127.0.0.1", port, timeout=timedelta(milliseconds=300))


def test_a_port_that_is_taken():
    store = tcp()
    words = f"^The server socket has failed to listen on any local network address. port: {store.port}, .*name: EADDRINUSE"
    with pytest.raises(D.DistNetworkError, match=words):
        D.TCPStore("127.0.0.1", store.port, is_master=True)


def test_tenants_share_a_server():
    first = tcp(multi_tenant=True)
    second = D.TCPStore("127.0.0.1", first.port, is_master=True, multi_tenant=True)
    second.set("a", "1")
    assert first.get("a") == b"1"
    del first
    assert second.get("a") == b"1"


def test_a_socket_that_listens_already():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    port = listening.getsockname()[1]
    store = D.TCPStore("127.0.0.1", port, is_master=True, master_listen_fd=listening.detach())
    assert store.port == port
    D.TCPStore("127.0.0.1", port).set("a", "b")
    assert store.get("a") == b"b"


@pytest.mark.parametrize("port", [70000, -1])
def test_ports_out_of_range(port):
    with pytest.raises(TypeError, match="incompatible"):
        D.TCPStore("127.0.0.1", port, is_master=True)


def test_bad_arguments_of_tcp():
    with pytest.raises(ValueError, match="^TCPStore world size cannot be 0$"):
        tcp(world_size=0)
    with pytest.raises(TypeError, match="incompatible"):
        tcp(timeout=3)
    with pytest.raises(TypeError, match="incompatible"):
        D.TCPStore(None, 0, is_master=True)


def test_the_end_of_a_server_gives_its_port_back():
    store = tcp()
    port = store.port
    client = D.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=5))
    del store
    with pytest.raises(D.DistNetworkError):
        client.get("a")
    assert D.TCPStore("127.0.0.1", port, is_master=True).port == port


def test_prefixes():
    under = D.HashStore()
    store = D.PrefixStore("a", D.PrefixStore("b", under))
    store.set("k", "v")
    assert under.get("b/a/k") == b"v"
    assert store.list_keys() == ["k"]
    assert isinstance(store.underlying_store, D.PrefixStore)
    assert store._underlying_non_prefix_store is under
    store.set_timeout(timedelta(seconds=3))
    assert under.timeout == timedelta(seconds=3)
    assert store.has_extended_api()
    with pytest.raises(ValueError, match="^store argument cannot be None$"):
        D.PrefixStore("a", None)


class Dictionary(D.Store):
    """A store in Python."""

    def __init__(self):
        super().__init__()
        self.values = {}

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        value = self.values[key]
        return value if isinstance(value, bytes) else value.encode()

    def add(self, key, amount):
        self.values[key] = str(int(self.values.get(key, 0)) + amount)
        return int(self.values[key])


def test_a_store_in_python():
    own = Dictionary()
    store = D.PrefixStore("x", own)
    store.set("a", "b")
    assert store.get("a") == b"b"
    assert store.add("n", 2) == 2
    assert list(own.values) == ["x/a", "x/n"]
    assert own.timeout == timedelta(seconds=300)
    assert not own.has_extended_api()
    with pytest.raises(RuntimeError):
        own.delete_key("a")


def test_the_last_user_removes_the_file(tmp_path):
    path = tmp_path / "store"
    first, second = D.FileStore(str(path), 2), D.FileStore(str(path), 2)
    assert first.path == str(path)
    first.set("a", "b")
    assert second.get("a") == b"b"
    del first
    assert path.exists()
    del second
    assert not path.exists()
    one_of_two = D.FileStore(str(path), 2)
    del one_of_two
    assert path.exists()
    path.unlink()
    unknown = D.FileStore(str(path))
    unknown.set("a", "b")
    del unknown
    assert path.exists()


@needs_gradiron
def test_what_a_killed_process_has_half_written(tmp_path):
    path = tmp_path / "store"
    store = D.FileStore(str(path), 1)
    store.set("a", "b")
    with open(path, "ab") as file:
        file.write(b"\x05\0\0\0\0\0\0\0\xff")
    assert store.get("a") == b"b"
    store.set("c", "d")
    assert D.FileStore(str(path), 2).get("c") == b"d"


@needs_gradiron
def test_a_file_is_removed_by_stores_that_close_at_once(tmp_path):
    for count in range(100):
        path = tmp_path / str(count)
        stores = [D.FileStore(str(path), 3) for _ in range(3)]
        start = threading.Barrier(3)

        def close(store):
            start.wait()
            store._end()

        threads = [threading.Thread(target=close, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not path.exists()


def test_a_file_in_no_folder(tmp_path):
    with pytest.raises(D.DistStoreError, match="cannot be opened"):
        D.FileStore(str(tmp_path / "no" / "store"), 1)


def _fork(run):
    """The exit status of a forked child that runs this."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_gradiron
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_connections_of_its_own():
    master = tcp()
    client = D.TCPStore("127.0.0.1", master.port)
    client.set("before", "1")

    def run():
        assert client.get("before") == b"1"
        client.set("child", "2")
        assert master.get("child") == b"2"

    assert _fork(run) == 0
    assert client.get("child") == b"2"


@needs_gradiron
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_keep_the_server_open():
    master = tcp()
    client = D.TCPStore("127.0.0.1", master.port, timeout=timedelta(seconds=20))
    client.set("a", "b")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)  # until the parent is done
        os._exit(0)
    try:
        port = master.port
        del master
        begin = time.monotonic()
        with pytest.raises(D.DistNetworkError):
            client.get("a")
        assert time.monotonic() - begin < 5
        while time.monotonic() - begin < 5:  # The child closes its copies when it comes to run.
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("a forked child keeps the server's port open")
    finally:
        os.close(writer)
        os.waitpid(child, 0)


@needs_gradiron
def test_the_listening_host():
    store = D.TCPStore("localhost", 0, is_master=True)
    other = D.TCPStore("127.0.0.2", store.port, is_master=True)  # an address of its own
    assert other.port == store.port
    with pytest.raises(D.DistNetworkError, match=errno.errorcode[errno.EADDRINUSE]):
        D.TCPStore("127.0.0.2", store.port, is_master=True)
