"""Two hosts: network namespaces of this machine, with a cable between them. Ranks talk by TCP, since the PMI mapping says so."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from worlds import HEAD

import library

pytestmark = pytest.mark.gradiron

PROGRAM = HEAD.format(name=library.NAME) + textwrap.dedent(
    """
    from gradiron.distributed import engine
    engine._machine = lambda: os.environ["HOST"]  # Namespaces share the machine's memory; two machines would not.
    dist.init_process_group(timeout=datetime.timedelta(seconds=40))
    x = torch.full((1_500_000,), float(rank + 1))
    dist.all_reduce(x)
    assert (x == sum(range(1, size + 1))).all()
    parts = [None] * size
    dist.all_gather_object(parts, os.environ["HOST"])
    assert parts == ["a"] * (size // 2) + ["b"] * (size // 2), parts
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
    model(torch.full((3, 8), float(rank))).sum().backward()
    print(model.module.weight.grad.sum().item(), flush=True)
    dist.destroy_process_group()
    """
)


def command(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


@pytest.fixture
def hosts():
    """The names of two namespaces, in which 10.93.7.1 and 10.93.7.2 reach each other."""
    if os.environ.get("GRADIRON_TEST_NO_HOSTS") == "1":
        pytest.skip("GRADIRON_TEST_NO_HOSTS is set")
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.fail("two hosts need root and iproute2; GRADIRON_TEST_NO_HOSTS=1 leaves these tests out")
    names = [f"gradiron{os.getpid()}a", f"gradiron{os.getpid()}b"]
    try:
        for name in names:
            command("ip", "netns", "add", name)
        command("ip", "link", "add", "va", "netns", names[0], "type", "veth", "peer", "name", "vb", "netns", names[1])
        for name, cable, address in zip(names, ("va", "vb"), ("10.93.7.1", "10.93.7.2"), strict=True):
            command("ip", "-n", name, "addr", "add", f"{address}/24", "dev", cable)
            command("ip", "-n", name, "link", "set", cable, "up")
            command("ip", "-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.parametrize("each", [1, 2])
def test_ranks_on_two_hosts(hosts, each):
    ranks = []
    for rank in range(2 * each):
        host = rank // each
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(2 * each),
            "MASTER_ADDR": "10.93.7.1",
            "MASTER_PORT": "29517",
            "HOST": "ab"[host],
        }
        words = ["ip", "netns", "exec", hosts[host], sys.executable, "-c", PROGRAM]
        ranks.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        ends = [(process.communicate(timeout=60), process.returncode) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert all(code == 0 for _, code in ends), "\n".join(err for (_, err), _ in ends)
    assert len({out for (out, _), _ in ends}) == 1


FULL = """
mount -t tmpfs -o size=1m tmpfs /dev/shm
exec "$0" -m gradiron.distributed.run --nproc-per-node 2 --no-python "$0" -c "
import os
import gradiron as torch
try:
    torch.distributed.init_process_group()
except RuntimeError as error:
    os.write(2, f'refused: {error}'.encode())  # At once, so that the ranks' words do not mix.
    raise SystemExit(1)"
"""


def test_full_shared_memory(hosts):
    run = ["unshare", "--mount", "sh", "-c", FULL, sys.executable]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    text = "the 2 ranks on the machine of rank 0 need 12 MB of shared memory, but /dev/shm has 1.0 MB left"
    # The launcher may end the second rank before it has said the same.
    assert f"refused: {text}" in done.stderr, done.stderr
