"""What `__config__` says to programs that look for flags in it."""

from library import T


def test_flags_can_be_looked_for():
    told = T.__config__.show()
    assert isinstance(told, str) and "PyTorch built with" in told and ("USE_MKL=O" in told)
    assert "get_num_threads() : " in T.__config__.parallel_info() or "mkl" in T.__config__.parallel_info()
