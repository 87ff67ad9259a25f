"""The pictures of a graph: what they tell, that their boxes keep apart, that their files are well formed."""

import random
import struct
import weakref
import zlib
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.dom.minidom import parseString

import pytest

from library import IS_GRADIRON, T

if not IS_GRADIRON:
    pytest.skip("a promise of gradiron's own", allow_module_level=True)

from gradiron import viz
from gradiron.viz.layout import place
from gradiron.viz.model import Link, Model, Vertex


def shared_subexpression() -> viz.Graph:
    a = T.tensor(2.0, requires_grad=True)
    b = T.ones(3, requires_grad=True)
    s = (a * b).sin()
    y = s * s + s.exp()
    return viz.graph(y)


def test_tree_names_leaves_and_tells_shared_parts_once() -> None:
    assert str(shared_subexpression()).splitlines() == [
        "y (3,) ← AddBackward0",
        "├─ MulBackward0",
        "│  ├─ #1 SinBackward0 [= s] ← MulBackward0",
        "│  │  ├─ a ()",
        "│  │  └─ b (3,)",
        "│  └─ #1 SinBackward0 (above)",
        "└─ ExpBackward0 ← #1 SinBackward0 (above)",
    ]


def test_names_come_from_dicts_lists_objects_and_modules() -> None:
    class Module:
        def __init__(self) -> None:
            self.weight = T.ones(1, requires_grad=True)

        def named_parameters(self) -> list[tuple[str, Any]]:
            return [("0.weight", self.weight)]

    class Plain:
        def __init__(self) -> None:
            self.bias = T.ones(1, requires_grad=True)

    module, plain = Module(), Plain()
    rows = [T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)]
    parts = {"k": T.ones(1, requires_grad=True)}
    total = module.weight * plain.bias * rows[1] * parts["k"]
    text = str(viz.graph(total))
    for name in ("module.0.weight (1,)", "plain.bias (1,)", "rows[1] (1,)", "parts['k'] (1,)", "total (1,)"):
        assert name in text
    assert "entry (1,)" in str(viz.graph(total, names={"entry": rows[1]}))
    assert "result (1,)" in str(viz.graph(total, names={}))


def test_saved_values_on_request() -> None:
    x = T.ones(2, 3, requires_grad=True)
    y = x.exp()
    assert "(2, 3)" not in str(viz.graph(y)).split("Exp")[1].split("x")[0]
    assert "result: (2, 3)" in str(viz.graph(y, saved=True))
    y.sum().backward()
    assert "ExpBackward0" in str(viz.graph(y, saved=True))


def test_custom_functions_and_writes_in_place_stand_out() -> None:
    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    m = T.ones(3, requires_grad=True)
    n = T.zeros(3)
    n[0] = Twice.apply(m)[0]
    kinds = {vertex.title: vertex.kind for vertex in viz.graph(n)._model.vertices}
    assert kinds["TwiceBackward"] == "custom"
    assert kinds["CopySlices"] == "inplace"
    assert kinds["m"] == "leaf"


def test_several_results_and_results_without_a_history() -> None:
    a = T.ones(2, requires_grad=True)
    c = T.ones(2)
    y, z = a * 2, a.exp()
    assert str(viz.graph(y, z)).splitlines() == ["y (2,) ← MulBackward0 ← a (2,)", "z (2,) ← ExpBackward0 ← a (2,)"]
    assert str(viz.graph(a, c)).splitlines() == ["a (2,)", "c (2,) no history"]
    for wrong in ((), (3,)):
        with pytest.raises(TypeError):
            viz.graph(*wrong)  # type: ignore[arg-type]


def test_outputs_are_numbered_where_there_are_several() -> None:
    x = T.ones(3, requires_grad=True)
    p, _, r = x.unbind()
    shown = viz.graph(p * r)
    assert ">0<" in shown.svg() and ">2<" in shown.svg()
    assert '[label="2"]' in shown.dot()


def test_a_long_chain_is_cut_with_a_note() -> None:
    x = y = T.ones(1, requires_grad=True)
    for _ in range(20_000):
        y = y * x
    shown = viz.graph(y)
    assert "only the last 2000 operators are shown" in str(shown)
    assert "only the last 2000 operators are shown" in shown.svg()
    assert max(map(len, str(shown).splitlines())) < 200


def test_files(tmp_path: Path) -> None:
    shown = shared_subexpression()
    document = parseString(shown.svg(tmp_path / "y.svg"))
    assert document.documentElement.tagName == "svg"
    texts = [node.firstChild.data for node in document.getElementsByTagName("text")]
    assert texts.count("MulBackward0") == 2 and "b" in texts and "(3,)" in texts
    assert (tmp_path / "y.svg").read_text(encoding="utf-8") == shown._repr_svg_()
    assert shown._repr_svg_() in shown._repr_html_()
    dot = shown.dot(tmp_path / "y.dot")
    assert dot.startswith("digraph {") and dot.count("->") == len(shown._model.links)
    assert (tmp_path / "y.dot").read_text(encoding="utf-8") == dot
    assert shown.png(tmp_path / "y.png") == (tmp_path / "y.png").read_bytes()


def test_png_is_well_formed_and_in_colour() -> None:
    data = shared_subexpression().png(scale=1)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == height * (1 + 3 * width)
    pixels = {rows[i : i + 3] for y in range(height) for i in range(y * (1 + 3 * width) + 1, (y + 1) * (1 + 3 * width), 3)}
    assert {bytes.fromhex("ffffff"), bytes.fromhex("e3f4ea"), bytes.fromhex("dfeaff")} <= pixels


def test_quotes_and_angles_in_names_are_escaped() -> None:
    parts = {'<a & "b">': T.ones(1, requires_grad=True)}
    y = parts['<a & "b">'] * 2
    shown = viz.graph(y)
    parseString(shown.svg())
    assert r"\"b\"" in shown.dot()


def test_a_graph_keeps_no_tensor_alive() -> None:
    x = T.ones(1, requires_grad=True)
    shown = viz.graph(x * 2, names={"x": x})
    gone = weakref.ref(x)
    del x
    assert gone() is None
    assert "x (1,)" in str(shown)


@pytest.mark.parametrize("seed", range(20))
def test_boxes_of_random_graphs_keep_apart_and_lines_go_down(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 60)
    vertices = [Vertex("result", "y"), *(Vertex("operator", f"v{i}") for i in range(1, count))]
    links = [
        Link(source, rng.randrange(max(0, source - rng.choice([2, 5, 40])), source))
        for source in range(1, count)
        for _ in range(rng.choice([1, 1, 1, 2, 3]))
    ]
    sizes = [(rng.uniform(40, 200), rng.uniform(20, 60)) for _ in vertices]
    layout = place(Model(vertices, links, [0]), sizes)
    for row in layout.layers:
        ordered = sorted((layout.boxes[box] for box in row), key=lambda box: box.x)
        for a, b in zip(ordered, ordered[1:], strict=False):
            assert b.x - b.width / 2 - (a.x + a.width / 2) > 20
    for line in layout.lines:
        upper, lower = layout.boxes[line.upper], layout.boxes[line.lower]
        assert upper.y + upper.height < lower.y
        assert abs(line.start - upper.x) <= upper.width / 2 and abs(line.end - lower.x) <= lower.width / 2
    for box in layout.boxes:
        assert box.x - box.width / 2 >= -1e-6 and box.x + box.width / 2 <= layout.width + 1e-6
        assert 0 <= box.y and box.y + box.height <= layout.height + 1e-6


def test_the_shortest_way_to_a_tensor_is_its_name() -> None:
    class Box:
        pass

    box = Box()
    box.inner = Box()  # type: ignore[attr-defined]
    box.inner.weight = box.weight = weight = T.ones(1, requires_grad=True)  # type: ignore[attr-defined]
    box.inner._secret = secret = T.ones(2, requires_grad=True)  # type: ignore[attr-defined]
    scope = {"box": box, "_secret": secret, "parts": {"_k": secret}, "weight": weight}
    assert str(viz.graph(weight * secret, names=scope)).splitlines()[1:] == ["├─ weight (1,)", "└─ leaf (2,)"]
    del scope["weight"]
    assert "box.weight (1,)" in str(viz.graph(weight * secret, names=scope))


def test_objects_that_have_any_attribute_name_nothing() -> None:
    mock, a = Mock(), T.ones(1, requires_grad=True)
    assert "a (1,)" in str(viz.graph(a * 2, names={"mock": mock, "aten": T.ops.aten, "a": a}))


def test_names_of_a_module() -> None:
    model = T.nn.Sequential(T.nn.Linear(2, 1), T.nn.Tanh())
    text = str(viz.graph(model(T.ones(1, 2)), names=model))
    assert "0.weight (1, 2)" in text and "0.bias (1,)" in text
    for wrong in ([model], "model", model[0].weight, T.nn.Linear):
        with pytest.raises(
            TypeError, match=r"names is a dict of names and tensors, or a module, not (list|str|Parameter|type)"
        ):
            viz.graph(model[0].weight, names=wrong)  # type: ignore[arg-type]


def test_a_picture_higher_than_its_box_shows_its_result() -> None:
    # A reversed column is scrolled to its end before anybody scrolls it.
    box = parseString(shared_subexpression()._repr_html_()).documentElement
    style = dict(rule.split(":") for rule in box.getAttribute("style").split(";"))
    assert (style["display"], style["flex-direction"], style["overflow"]) == ("flex", "column-reverse", "auto")
