"""Worlds for the tests of several processes."""

import pytest
from pool import Pool


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
