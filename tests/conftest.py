"""Fixtures and markers that all topics share."""

import gc
import random

import pytest
from hypothesis import HealthCheck, settings

import library

settings.register_profile(
    "default",
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


def pytest_configure(config):
    config.addinivalue_line("markers", "gradiron: a promise of gradiron's own, which PyTorch does not make")
    config.addinivalue_line("filterwarnings", "error")
    # PyTorch leaks the cycle that it warns of here; gradiron has none.
    config.addinivalue_line("filterwarnings", "ignore:Using backward.. with create_graph=True")
    # It has been for years, and is told once: whichever test calls it first.
    config.addinivalue_line("filterwarnings", "ignore:index_reduce.. is in beta")


def pytest_collection_modifyitems(config, items):
    if not library.IS_GRADIRON:
        skip = pytest.mark.skip(reason="a promise of gradiron's own")
        for item in items:
            if item.get_closest_marker("gradiron"):
                item.add_marker(skip)


def pytest_collection_finish():
    """The tests themselves are millions of objects, which no collection need look at."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", library.devices(), indirect=True)


@pytest.fixture
def device(request):
    """Each device in turn. A GPU that is not there is a failure, not a skip."""
    name = getattr(request, "param", "cpu")
    if name == "cuda" and not library.T.cuda.is_available():
        pytest.fail("no GPU adapter: install a Vulkan driver (Mesa's software one will do) or set GRADIRON_TEST_NO_GPU=1")
    return name


@pytest.fixture(autouse=True)
def same_start():
    """Every test starts from the same seed and leaves the default dtype and the grad mode as they were."""
    T = library.T
    random.seed(0)
    T.manual_seed(0)
    yield
    T.set_default_dtype(T.float32)
    T.set_grad_enabled(True)
