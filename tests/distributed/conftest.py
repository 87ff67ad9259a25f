"""Worlds for the tests of several processes."""

import os

import pytest
from launches import Launches
from pool import Pool
from worlds import orphans, stay_after


@pytest.fixture(scope="session")
def four():
    """Four ranks, which all tests of a session share."""
    pool = Pool(4)
    yield pool
    pool.stop()


@pytest.fixture(scope="session")
def two():
    """Two ranks."""
    pool = Pool(2)
    yield pool
    pool.stop()


@pytest.fixture(scope="session")
def checked():
    """Two ranks that compare each call before it begins."""
    pool = Pool(2, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    yield pool
    pool.stop()


@pytest.fixture
def launches(tmp_path):
    """After the test no process, no file of the launcher, and no shared memory is left."""
    before = orphans()
    made = Launches(tmp_path)
    try:
        yield made
        assert not made.wait_for_the_last()
        if all(launcher.returncode != -9 for launcher in made.started):  # A launcher that is killed leaves its folder.
            assert not [path for path in made.temporary.iterdir() if "gradiron" in path.name]
        assert not stay_after(before)
    finally:
        for launcher in made.started:
            launcher.kill()
            launcher.communicate()
        for number in made.processes():
            os.kill(number, 9)
