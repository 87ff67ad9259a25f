"""`utils.benchmark`: what is measured, how it prints, and tables of it."""

import re

import pytest

from library import T

B = __import__(f"{T.__name__}.utils.benchmark", fromlist=["Timer"])


def task(stmt="x + y", **named):
    return B.Timer(stmt, "x = 1; y = 2", **named)


def test_a_number_of_runs():
    made = task(label="sums", sub_label="small", description="plain").timeit(50)
    assert made.number_per_run == 50 and len(made.times) == 1 and made.median == made.mean > 0 and made.iqr == 0
    assert made.title == "sums: small" and made.as_row_name == "small" and made.significant_figures == 1
    head, *rest = repr(made).splitlines()
    assert head.startswith("<torch.utils.benchmark.utils.common.Measurement object at 0x")
    assert rest[:3] == ["sums: small", "plain", "setup: x = 1; y = 2"]
    assert re.fullmatch(r"  \d+\.\d\d (n|u)s", rest[3]) and rest[4] == "  1 measurement, 50 runs , 1 thread"


def test_as_long_as_need_be():
    made = task().blocked_autorange(min_run_time=0.01)
    assert sum(made.raw_times) >= 0.01 and made.number_per_run >= 10
    made = task().adaptive_autorange(min_run_time=0.001, max_run_time=0.01)
    assert made.median > 0


def test_globals_and_threads():
    seen = []
    with pytest.raises(ValueError, match="from within"):
        B.Timer("f()", globals={"f": lambda: (_ for _ in ()).throw(ValueError("from within"))}).timeit(1)
    before = T.get_num_threads()
    B.Timer("note(torch.get_num_threads())", globals={"note": seen.append}, num_threads=2).timeit(3)
    assert set(seen) == {2} and T.get_num_threads() == before


def test_a_table():
    times = [
        B.Measurement(
            1, [seconds], B.Timer(name, label="sums", sub_label=name, description=column, num_threads=threads)._task_spec
        )
        for name, column, threads, seconds in (("a", "ours", 1, 5e-8), ("bc", "ours", 1, 4e-8), ("bc", "other", 2, 5e-8))
    ]
    table = B.Compare(times)
    table.trim_significant_figures()
    assert str(table).splitlines() == [
        "[---------- sums ---------]",
        "          |  ours  |  other",
        "1 threads: ----------------",
        "      a   |   50   |       ",
        "      bc  |   40   |       ",
        "2 threads: ----------------",
        "      bc  |        |    50 ",
        "",
        "Times are in nanoseconds (ns).",
    ]
    (both,) = B.Measurement.merge(times[:1] * 2)
    assert both.raw_times == [5e-8, 5e-8]


def test_what_is_refused():
    with pytest.raises(ValueError, match="Invalid language `zz`."):
        B.Timer("x", language="zz")
    with pytest.raises(ValueError, match="Currently only a `str` stmt is supported."):
        B.Timer(3)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`, got <class 'int'> instead."):
        B.Compare([3])
    with pytest.raises(TypeError):
        B.Timer("x", globals=3)


def test_numbers_of_people():
    assert B.trim_sigfig(1234.5, 2) == 1200 and B.unit_to_english("us") == "microsecond"
    assert B.select_unit(1e-5) == ("us", 1e-6) and B.select_unit(2.0) == ("s", 1.0)
