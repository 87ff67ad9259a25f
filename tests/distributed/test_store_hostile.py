"""The store's server among clients that are broken, slow, many, or no clients at all."""

import os
import random
import resource
import socket
import struct
import threading
import time

import pytest

from library import IS_GRADIRON, T

pytestmark = pytest.mark.gradiron
if IS_GRADIRON:
    from gradiron._core import _distributed as core

HELLO = b"gradiron1"
SET, GET, DONE = 0, 1, 15


@pytest.fixture
def server():
    server = core.StoreServer("127.0.0.1", 0)
    yield server
    lives = core.StoreClient("127.0.0.1", server.port, 10.0)
    lives.set("alive", b"yes")
    assert lives.get("alive") == b"yes"
    server.stop()


def connected(server, hello=True):
    peer = socket.create_connection(("127.0.0.1", server.port), 10)
    if hello:
        peer.sendall(HELLO)
        assert peer.recv(9) == HELLO
    return peer


def message(code, *parts):
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return bytes([code]) + struct.pack("<I", len(body)) + body


def is_closed(peer, seconds=10):
    peer.settimeout(seconds)
    try:
        while peer.recv(1 << 16):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.parametrize("hello", [False, True])
def test_random_bytes(server, hello):
    random.seed(0)
    for _ in range(100):
        with connected(server, hello) as peer:
            try:
                peer.sendall(random.randbytes(random.randrange(1, 3000)))
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                continue
            assert is_closed(peer)


def test_random_parts_of_known_codes(server):
    """Messages that are whole, and mean nothing."""
    random.seed(1)
    for code in range(30):
        for _ in range(8):
            parts = [random.randbytes(random.choice((0, 1, 8, 20))) for _ in range(random.randrange(4))]
            with connected(server) as peer:
                try:
                    peer.sendall(message(code, *parts))
                    peer.shutdown(socket.SHUT_WR)
                except OSError:
                    continue
                assert is_closed(peer)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 5,
        bytes([SET]) + b"\xff" * 4,
        bytes([SET]) + struct.pack("<I", 8) + b"\xff" * 8,
        bytes([SET]) + struct.pack("<I", 3) + b"abc",
        bytes([200]) + struct.pack("<I", 0),
        message(SET),
        message(SET, b"key"),
        message(GET, b"short", b"key"),
    ],
)
def test_lengths_and_codes_that_are_wrong(server, data):
    with connected(server) as peer:
        peer.sendall(data)
        assert is_closed(peer)


def test_a_huge_length_allocates_nothing(server):
    before = resident()
    peers = [connected(server) for _ in range(20)]
    for peer in peers:
        peer.sendall(bytes([SET]) + struct.pack("<I", 200 << 20) + b"x")
    time.sleep(0.5)
    assert resident() - before < 100 << 20
    for peer in peers:
        peer.close()


def test_no_hello_is_cut_off(server):
    with connected(server, hello=False) as silent, connected(server, hello=False) as slow:
        slow.sendall(HELLO[:4])
        begin = time.monotonic()
        assert is_closed(silent) and is_closed(slow)
        assert 3 < time.monotonic() - begin < 9


def test_another_server_is_no_store():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def answer():
            peer, _ = other.accept()
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            time.sleep(1)
            peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match="^the server at .* is not a gradiron store of this version$"):
            core.StoreClient("127.0.0.1", other.getsockname()[1], 10.0)
        thread.join()


def test_half_messages_and_slow_clients_stop_nobody(server):
    halves = [connected(server) for _ in range(20)]
    for peer in halves:
        peer.sendall(message(SET, b"key", b"value")[:9])
    client = core.StoreClient("127.0.0.1", server.port, 10.0)
    begin = time.monotonic()
    for number in range(200):
        client.set(f"k{number}", b"v")
    assert time.monotonic() - begin < 5
    # One that sends a byte at a time is served, too.
    with connected(server) as slow:
        for byte in message(SET, b"slow", b"but steady"):
            slow.sendall(bytes([byte]))
            time.sleep(0.01)
        assert slow.recv(5) == message(DONE)
    assert client.get("slow") == b"but steady"
    for peer in halves:
        peer.close()
    assert not any(client.check([key]) for key in ("key", "value"))


def test_a_client_that_never_reads(server):
    client = core.StoreClient("127.0.0.1", server.port, 10.0)
    client.set("big", bytes(8 << 20))
    with connected(server) as deaf:
        request = message(GET, struct.pack("<q", 1000), b"big")
        deaf.sendall(request * 4)
        client.set("other", b"1")
        assert client.get("other") == b"1"


def test_bounds(server):
    client = core.StoreClient("127.0.0.1", server.port, 30.0)
    client.set("k" * 4096, b"longest")
    assert client.get("k" * 4096) == b"longest"
    for call in (
        lambda: client.set("k" * 4097, b""),
        lambda: client.get("k" * 4097),
        lambda: client.wait(["k" * 4097]),
        lambda: client.check(["a", "k" * 4097]),
        lambda: client.queue_push("k" * 4097, b""),
        lambda: client.multi_set(["a", "k" * 4097], [b"", b""]),
    ):
        with pytest.raises(ValueError, match="a key of 4097 bytes is longer than the 4096 that a store takes"):
            call()
    most = bytes(64 << 20)
    client.set("most", most)
    assert len(client.get("most")) == len(most)
    with pytest.raises(ValueError, match="a value of 67108865 bytes is longer than the 67108864"):
        client.set("more", most + b"x")
    with pytest.raises(ValueError, match="is longer"):
        client.append("most", b"x")
    with pytest.raises(ValueError, match="a message of .* bytes is longer"):
        client.multi_set(list("abcde"), [most] * 5)
    assert len(client.get("most")) == len(most)
    assert client.delete_key("most")


def test_what_waits_for_a_client_that_is_gone_ends(server):
    before = threads_of_process()
    for _ in range(50):
        with connected(server) as peer:
            peer.sendall(message(GET, struct.pack("<q", 10**9), b"never"))
    deadline = time.monotonic() + 10
    while threads_of_process() > before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert threads_of_process() <= before


def test_thousands_of_connections(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2200
    if hard != resource.RLIM_INFINITY and hard < 2 * wanted + 200:
        pytest.skip("too few descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * wanted + 200), hard))
    before, memory = threads_of_process(), resident()
    try:
        peers = [connected(server) for _ in range(wanted)]
        assert resident() - memory < wanted * (64 << 10)
        for number in range(0, wanted, 100):
            peers[number].sendall(message(SET, b"n%d" % number, b"v"))
            assert peers[number].recv(5) == message(DONE)
        client = core.StoreClient("127.0.0.1", server.port, 10.0)
        assert client.num_keys() == wanted // 100
        for peer in peers:
            peer.close()
        deadline = time.monotonic() + 20
        while threads_of_process() > before + 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert threads_of_process() <= before + 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_without_descriptors_recovers(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    peers = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, hard))
    try:
        with pytest.raises(OSError):
            for _ in range(40):
                peers.append(socket.create_connection(("127.0.0.1", server.port), 5))
        processor = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - processor < 0.25  # it does not spin
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for peer in peers:
            peer.close()


def test_ctrl_c_ends_a_wait(server):
    import signal

    client = core.StoreClient("127.0.0.1", server.port, 60.0)
    for wait in (
        lambda: client.get("never"),
        lambda: client.wait(["never"]),
        lambda: client.queue_pop("never"),
        lambda: core.StoreClient("127.0.0.1", 1, 60.0),
    ):
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            wait()
        assert time.monotonic() - begin < 1
        timer.join()


def test_a_stopped_server_ends_waits():
    server = core.StoreServer("127.0.0.1", 0)
    clients = [core.StoreClient("127.0.0.1", server.port, 60.0) for _ in range(20)]
    errors = []

    def wait(client):
        try:
            client.get("never")
        except ConnectionError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=wait, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    begin = time.monotonic()
    server.stop()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - begin < 2
    assert len(errors) == 20
    server.stop()
    for client in clients:
        with pytest.raises(ConnectionError, match="cannot be reached"):
            client.set("a", b"")


def test_two_jobs_on_one_port(server):
    one, two = (T.distributed.TCPStore("127.0.0.1", server.port) for _ in range(2))
    first, second = T.distributed.PrefixStore("one", one), T.distributed.PrefixStore("two", two)
    first.set("rank", "1")
    second.set("rank", "2")
    assert (first.get("rank"), second.get("rank")) == (b"1", b"2")
    watches = [core.Watch("127.0.0.1", server.port, job, rank, 2) for job in ("one", "two") for rank in (0, 1)]
    watches[0].fail("only here")
    deadline = time.monotonic() + 5
    while watches[1].failure() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert watches[1].failure() == "rank 0: only here"
    time.sleep(0.1)
    assert watches[2].failure() is None and watches[3].failure() is None
