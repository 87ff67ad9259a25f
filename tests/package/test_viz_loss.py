"""The curve of a loss: its scale, its numbers, and that nothing of it is cut off."""

import math
from pathlib import Path
from xml.dom.minidom import parseString

import pytest

from library import IS_GRADIRON, T

if not IS_GRADIRON:
    pytest.skip("a promise of gradiron's own", allow_module_level=True)

from gradiron import viz
from gradiron.viz.picture import ADVANCE, Polyline, Text

FALLING = [10 ** (-6 * step / 600) for step in range(601)]


def texts(drawn: viz.Loss) -> list[str]:
    return [node.firstChild.data for node in parseString(drawn.svg()).getElementsByTagName("text")]


def curves(drawn: viz.Loss) -> list[Polyline]:
    return [shape for shape in drawn._picture.shapes if isinstance(shape, Polyline) and shape.width in (2.0, 4.0)]


def test_a_loss_that_falls_far_is_drawn_on_a_logarithmic_scale() -> None:
    drawn = viz.loss(FALLING, title="pinn")
    assert {"1", "0.1", "0.01", "0.001", "1e-4", "1e-5", "1e-6"} <= {*texts(drawn)}
    assert "pinn" in texts(drawn) and "step, logarithmic scale" in texts(drawn)
    ((points, _, _),) = [(curve.points, curve.colour, curve.width) for curve in curves(drawn)]
    # What falls by the same factor in each step is a straight line.
    falls = [y1 - y0 for (_, y0), (_, y1) in zip(points[200:-200], points[201:-200], strict=False)]
    assert max(falls) - min(falls) < 1e-3


def test_other_losses_are_drawn_on_a_linear_scale() -> None:
    drawn = viz.loss([2.0, 1.5, 1.0, 0.5])
    assert {"2", "1.5", "1", "0.5", "step"} <= {*texts(drawn)}
    assert "step" in texts(viz.loss([2.0, -1.0, 1e-9])) and "step" in texts(viz.loss([0.0, 0.0]))


def test_the_axis_of_steps_has_numbers() -> None:
    assert {"100", "300", "600"} <= {*texts(viz.loss(FALLING))}
    assert {"1", "2", "3", "4"} <= {*texts(viz.loss([2.0, 1.5, 1.0, 0.5]))}
    assert "1" in texts(viz.loss([0.5]))


@pytest.mark.parametrize(
    "values",
    [
        [2.0, 1.0],
        FALLING,
        [1.26e-6, 3.0, 1.0],
        [1e20] * 3,
        [0.5],
        [-1e299, 1e299],
        [1.0 + 1e-9, 1.0],
        range(123_456),
        [1, 1e-3, 0],
    ],
)
def test_nothing_is_cut_off(values: list[float]) -> None:
    picture = viz.loss(values)._picture
    for shape in picture.shapes:
        if isinstance(shape, Text):
            half = len(shape.text) * shape.size * ADVANCE / 2
            assert 0 <= shape.x - half and shape.x + half <= picture.width and shape.size <= shape.y <= picture.height
        else:
            assert isinstance(shape, Polyline)
            assert all(0 <= x <= picture.width and 0 <= y <= picture.height for x, y in shape.points)


def test_values_that_are_not_finite_leave_a_gap() -> None:
    drawn = viz.loss([5.0, 4.0, math.nan, 3.0, 2.0, math.inf, 1.0])
    assert [len(curve.points) for curve in curves(drawn)] == [2, 2, 2]
    assert "step; not finite at step 3 and others" in texts(drawn)
    assert "nan" not in drawn.svg() and "inf" not in drawn.svg()
    for nothing in ([], [math.nan]):
        with pytest.raises(ValueError, match="needs at least one finite value"):
            viz.loss(nothing)


def test_the_running_mean_does_not_lag() -> None:
    drawn = viz.loss([400.0 - step for step in range(401)])
    (mean,) = curves(drawn)
    middle = mean.points[190:210]
    thin = next(shape for shape in drawn._picture.shapes if isinstance(shape, Polyline) and shape.colour == "#9bc4e2")
    assert all(abs(y - exact) < 0.5 for (_, y), (_, exact) in zip(middle, thin.points[190:210], strict=True))


def test_many_values_keep_their_peaks() -> None:
    values = [1.0] * 100_000
    values[54_321] = 5.0
    drawn = viz.loss(values)
    thin = [shape for shape in drawn._picture.shapes if isinstance(shape, Polyline) and shape.colour == "#9bc4e2"]
    assert len(thin[0].points) < 1000 and min(y for _, y in thin[0].points) == 44.0


def test_it_shows_itself_and_writes_files(tmp_path: Path) -> None:
    drawn = viz.loss([T.tensor(2.3, requires_grad=True), 1.9, T.tensor([1.2]), 0.8, 0.7])
    assert repr(drawn) == "loss in 5 steps: 2.3 █▇▃▁▁ 0.7"
    assert repr(viz.loss(T.ones(1))) == "loss in 1 step: 1 ▁ 1"
    assert drawn._repr_svg_() == drawn.svg(tmp_path / "loss.svg") == (tmp_path / "loss.svg").read_text(encoding="utf-8")
    data = drawn.png(tmp_path / "loss.png", scale=1)
    assert data == (tmp_path / "loss.png").read_bytes() and data.startswith(b"\x89PNG")
