"""Errors that show the way: PyTorch's sentences first, then the operator, the user's own line, and what to do.

Also anomaly mode: whose turn it was when the failing node was made.
"""

import gc
import inspect
import linecache
import traceback
import warnings

import pytest

from library import IS_GRADIRON, Square, T, leaf, python, python_ok

ours = pytest.mark.skipif(not IS_GRADIRON, reason="what is ours alone")
AG = T.autograd
both = pytest.mark.parametrize("lines", [True, False], ids=["lines", "plain"])


class Keep:
    """Keeps source lines for a block, or does not."""

    def __init__(self, on):
        self.on = on

    def __enter__(self):
        self.mode = AG.set_source_lines(self.on)

    def __exit__(self, *_):
        self.mode.__exit__(None, None, None)


def code(marker):
    """`file:line: text` of the line of this file that ends in a comment with this marker."""
    for number, text in enumerate(inspect.getsource(inspect.getmodule(code)).splitlines(), 1):
        if text.rstrip().endswith(f"# {marker}"):
            return f"{__file__}:{number}: {linecache.getline(__file__, number).strip()}"
    raise LookupError(marker)


def notes(text):
    """The label and the text of each line after the message."""
    return dict(line.strip().split(": ", 1) for line in text.splitlines()[1:])


def raised(work, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        work()
    return str(caught.value)


def check(text, sentence, lines, **expected):
    """`expected`: for each label (`_` for a space) what it tells, and the marker of its line."""
    assert text.startswith(sentence), text
    found = notes(text)
    assert ("where" in found) == (not lines), text
    if not lines:
        assert "set_source_lines(True)" in found["where"] and "GRADIRON_SOURCE_LINES" in found["where"]
    for label, (what, marker) in expected.items():
        told = found[label.replace("_", " ")]
        assert told.startswith(what), text
        assert told.endswith(code(marker)) if lines and marker else ".py:" not in told, text
    return found


# --- the errors ---


@ours
@both
def test_a_freed_graph(lines):
    with Keep(lines):
        x = leaf([1.0, 2.0])
        y = (x * x).sum()  # freed
        y.backward()
        text = raised(y.backward)
    found = check(text, "Trying to backward through the graph a second time", lines, operator=("MulBackward0", "freed"))
    assert "retain_graph=True" in found["what to do"] and "detach()" in found["what to do"]


@ours
@both
def test_a_freed_context(lines):
    with Keep(lines):
        y = Square.apply(leaf(3.0))  # freed context
        y.backward()
        text = raised(y.backward)
        check(text, "Trying to backward", lines, operator=("SquareBackward", "freed context"))
        check(
            raised(lambda: y.grad_fn.saved_tensors), "Trying to backward", lines, operator=("SquareBackward", "freed context")
        )


@ours
@both
def test_a_freed_attribute_of_a_node(lines):
    with Keep(lines):
        x = leaf([2.0])
        y = x.exp()  # freed attribute
        y.sum().backward()
        text = raised(lambda: y.grad_fn._saved_result)
    check(text, "Trying to backward", lines, operator=("ExpBackward0", "freed attribute"))


@ours
@both
def test_a_saved_value_changed_in_place(lines):
    with Keep(lines):
        x = leaf([1.0, 2.0])
        w = x.exp()  # changed value
        y = w * w  # its operator
        w.add_(1)  # the write
        w.add_(2)
        text = raised(y.sum().backward)
    found = check(
        text,
        "one of the variables needed for gradient computation has been modified by an inplace operation: ",
        lines,
        operator=("MulBackward0", "its operator"),
        changed_value=("ExpBackward0", "changed value"),
    )
    assert found["last recorded write"] == "Add"
    assert found.get("written") == (f"in place at {code('the write')}" if lines else None)
    assert "clone()" in found["what to do"]


@ours
def test_the_write_that_did_it_is_told_where_nothing_was_recorded():
    with Keep(True):
        x = leaf([1.0, 2.0])
        z = leaf([1.0])
        z.detach().add_(1)
        x.detach().add_(1)
        y = (x * x).sum()
        z.detach().add_(1)
        with T.no_grad():
            x[0] = 7.0  # quiet write
        x.detach().add_(1)
        text = raised(y.backward)
    assert notes(text)["written"] == f"in place at {code('quiet write')}"


@ours
@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.add_(1),
        lambda w: w.__imul__(2),
        lambda w: w.zero_(),
        lambda w: w.copy_(T.ones(3)),
        lambda w: w.fill_(2.0),
        lambda w: w.__setitem__(0, 1.0),
        lambda w: w.__setitem__(T.tensor([0]), T.ones(1)),
        lambda w: w[1:].mul_(2),
        lambda w: w.index_fill_(0, T.tensor([0]), 1.0),
        lambda w: w.scatter_(0, T.tensor([0]), 1.0),
        lambda w: w.masked_fill_(w > 0, 1.0),
        lambda w: w.normal_(),
        lambda w: T.exp(T.ones(3), out=w),
        lambda w: w.detach().sqrt_(),
    ],
)
def test_each_way_of_writing_is_remembered(write):
    with Keep(True):
        w = leaf([1.0, 2.0, 3.0]).exp()
        y = (w * w).sum()
        with T.no_grad():
            write(w)
        text = raised(y.backward)
    assert notes(text)["written"].startswith(f"in place at {__file__}:")


@ours
@both
def test_hooks_that_return_the_wrong_thing(lines):
    with Keep(lines):
        y = leaf([1.0, 2.0]) * 2  # hooked
        y.register_hook(lambda g: T.ones(5))
        text = raised(y.sum().backward)
        check(text, "hook '<lambda>' has changed the size of value", lines, operator=("MulBackward0", "hooked"))
        y = leaf([1.0, 2.0]) * 2  # hooked node
        y.grad_fn.register_hook(lambda inputs, outputs: (None, None, None))
        text = raised(y.sum().backward)
        check(text, "hook '<lambda>' has returned an incorrect number", lines, operator=("MulBackward0", "hooked node"))


@ours
def test_a_hook_s_own_exception_gains_a_note():
    class Mine(ValueError):
        pass

    def broken(g):
        raise Mine("as it was")

    with Keep(True):
        y = leaf([1.0]) * 2  # under a hook
        y.register_hook(broken)
        with pytest.raises(Mine) as caught:
            y.backward()
    assert str(caught.value) == "as it was"
    if hasattr(caught.value, "add_note"):
        assert caught.value.__notes__ == [f"in the backward of MulBackward0, made at {code('under a hook')}"]


@ours
@both
def test_a_saved_output_changed_in_place(lines):
    with Keep(lines):
        y = leaf([1.0]).exp()  # own output
        y.detach().zero_()
        text = raised(y.sum().backward)
    found = check(text, "one of the variables needed", lines, operator=("ExpBackward0", "own output"))
    assert found["changed value"] == "output 0 of the operator"


@ours
@both
def test_a_saved_leaf_changed_in_place(lines):
    with Keep(lines):
        x = leaf([1.0])  # the leaf
        y = x * x  # times itself
        with T.no_grad():
            x.add_(1)
        text = raised(y.sum().backward)
    shown = check(text, "one of the variables needed", lines, operator=("MulBackward0", "times itself"))
    assert shown["changed value"].startswith("a leaf of shape [1]")


@ours
@both
def test_no_history(lines):
    with Keep(lines):
        text = raised(lambda: T.ones(2).sum().backward())
    found = check(
        text,
        "element 0 of tensors does not require grad and does not have a grad_fn",
        lines,
        output=("a tensor of shape []", None),
    )
    assert "requires_grad_()" in found["what to do"]


@ours
def test_no_history_says_why():
    x = leaf([1.0])
    with T.no_grad():
        assert "leave no_grad()" in raised(lambda: (x * 2).backward())
    assert "floating point" in raised(lambda: T.tensor(1).backward())
    assert "detach()" in raised(lambda: (x.detach() * 2).backward())


@ours
@both
def test_an_output_that_is_no_scalar(lines):
    with Keep(lines):
        y = leaf([1.0, 2.0]) * 2  # no scalar
        text = raised(y.backward)
    sentence = "grad can be implicitly created only for scalar outputs"
    found = check(text, sentence, lines, output=("the result of MulBackward0", "no scalar"))
    assert "y.sum().backward()" in found["what to do"] and "[2]" in found["what to do"]


@ours
@both
def test_a_gradient_of_another_shape(lines):
    with Keep(lines):
        y = leaf([1.0, 2.0]) * 2  # wrong gradient
        text = raised(lambda: y.backward(T.ones(3)))
    found = check(text, "Mismatch in shape: grad_output[0]", lines, output=("the result of MulBackward0", "wrong gradient"))
    assert "[2]" in found["what to do"]


@ours
@both
def test_a_leaf_written_in_place(lines):
    with Keep(lines):
        x = T.ones(3).requires_grad_()  # written leaf
        text = raised(lambda: x.add_(1))
    sentence = "a leaf Variable that requires grad is being used in an in-place operation."
    found = check(text, sentence, lines)
    assert "no_grad()" in found["what to do"]
    if lines:
        assert found["written"] == f"a leaf of shape [3], first seen at {code('written leaf')}"
    else:
        assert found["written"].endswith("shape [3]")


@ours
@both
def test_a_view_of_a_leaf_written_in_place(lines):
    with Keep(lines):
        v = leaf([1.0, 2.0])[:1]  # view of a leaf
        text = raised(lambda: v.mul_(2))
    sentence = "a view of a leaf Variable that requires grad is being used in an in-place operation."
    check(text, sentence, lines, written=("the result of SliceBackward0", "view of a leaf"))


@ours
@both
def test_one_of_several_views_written_in_place(lines):
    with Keep(lines):
        base = leaf([1.0, 2.0]) * 1  # the base
        a, _ = base.unbind()  # several views
        text = raised(lambda: a.mul_(2))
    found = check(
        text,
        "Output 0 of Unbind is a view and is being modified inplace.",
        lines,
        view=("the result of UnbindBackward0", "several views"),
        of=("the result of MulBackward0", "the base"),
    )
    assert "clone()" in found["what to do"]


@ours
@both
def test_a_view_made_under_no_grad(lines):
    with Keep(lines):
        base = leaf([1.0, 2.0]) * 1  # base of a quiet view
        with T.no_grad():
            v = base[:1]
        text = raised(lambda: v.mul_(2))
    check(text, "A view was created in no_grad mode", lines, of=("the result of MulBackward0", "base of a quiet view"))


@ours
@both
def test_an_input_that_was_not_used(lines):
    with Keep(lines):
        x, unused = leaf([1.0]), leaf([2.0, 3.0])
        text = raised(lambda: AG.grad((x * 2).sum(), [x, unused]))
    found = notes(text)
    assert text.startswith("The differentiated Tensor at index 1 appears to not have been used in the graph.")
    assert found["input"].startswith("a leaf of shape [2]")
    assert "materialize_grads=True" in found["what to do"]


@ours
@both
def test_an_input_without_gradient(lines):
    with Keep(lines):
        x = leaf([1.0])
        text = raised(lambda: AG.grad((x * 2).sum(), T.ones(3)))
    found = check(text, "One of the differentiated Tensors does not require grad", lines, input=("a tensor of shape [3]", None))
    assert "requires_grad_()" in found["what to do"]


def function(returned):
    class Given(AG.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return returned(g)

    return Given


@ours
@both
@pytest.mark.parametrize(
    "returned, sentence, advice",
    [
        (lambda g: g, "function GivenBackward returned an incorrect number of gradients (expected 2, got 1)", "one gradient"),
        (lambda g: (g, g), "function GivenBackward returned a gradient different than None at position 2", "return None"),
        (
            lambda g: (T.ones(5), None),
            "Function GivenBackward returned an invalid gradient at index 0 - got [5]",
            "of that input's shape",
        ),
        (lambda g: (1.0, None), "expected Variable or None (got float)", "tensors"),
    ],
    ids=["count", "not None", "shape", "kind"],
)
def test_what_a_function_s_backward_returns(lines, returned, sentence, advice):
    Given = function(returned)
    with Keep(lines):
        y = Given.apply(leaf([1.0, 2.0]), 3.0)  # given
        text = raised(y.sum().backward)
    found = check(text, sentence, lines, operator=("GivenBackward", "given"))
    assert advice in found["what to do"]


@ours
@both
def test_what_a_function_marks_as_written(lines):
    class Writes(AG.Function):
        @staticmethod
        def forward(ctx, x, returns):
            ctx.mark_dirty(x)
            return x if returns else x * 2

        @staticmethod
        def backward(ctx, g):
            return g, None

    with Keep(lines):
        x = T.ones(2).requires_grad_()  # marked leaf
        text = raised(lambda: Writes.apply(x, True))
        sentence = "a leaf Variable that requires grad has been used in an in-place operation."
        check(text, sentence, lines, operator=("Writes", None), written=("a leaf of shape [2]", "marked leaf"))
        y = leaf([1.0]) * 2  # not returned
        text = raised(lambda: Writes.apply(y, False))
    sentence = "Some elements marked as dirty during the forward method were not returned as output."
    check(text, sentence, lines, operator=("Writes", None), written=("the result of MulBackward0", "not returned"))


@ours
def test_what_a_function_s_jvp_returns():
    from gradiron.autograd import forward_ad

    class Given(AG.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            return t, t

    with forward_ad.dual_level():
        text = raised(lambda: Given.apply(forward_ad.make_dual(T.ones(2), T.ones(2))))
    assert text.startswith("Function's jvp returned an invalid number of forward gradients (expected 1 but got 2)")
    assert notes(text) == {"operator": "Given.jvp"}


@ours
@both
def test_hooks_on_what_has_no_gradient(lines):
    with Keep(lines):
        text = raised(lambda: T.ones(3).register_hook(print))
        check(
            text,
            "cannot register a hook on a tensor that doesn't require gradient",
            lines,
            tensor=("a tensor of shape [3]", None),
        )
        y = leaf([1.0]) * 2  # no leaf
        text = raised(lambda: y.register_post_accumulate_grad_hook(print))
        check(
            text,
            "post accumulate grad hooks cannot be registered on non-leaf tensors",
            lines,
            tensor=("the result of MulBackward0", "no leaf"),
        )


@ours
@both
def test_flags(lines):
    with Keep(lines):
        check(raised(T.ones(3).retain_grad), "can't retain_grad on Tensor", lines, tensor=("a tensor of shape [3]", None))
        y = leaf([1.0]) * 2  # flagged
        text = raised(lambda: y.requires_grad_(False))
    check(text, "you can only change requires_grad flags of leaf", lines, tensor=("the result of MulBackward0", "flagged"))


@ours
@both
def test_a_view_detached_in_place(lines):
    with Keep(lines):
        v = (leaf([1.0, 2.0]) * 1)[:1]  # detached view
        text = raised(v.detach_)
    check(text, "Can't detach views in-place.", lines, view=("the result of SliceBackward0", "detached view"))


@ours
def test_a_value_of_inference_mode_saved():
    with T.inference_mode():
        c = T.ones(2)
    text = raised(lambda: leaf([1.0, 2.0]) * c)
    assert text.startswith("Inference tensors cannot be saved for backward.")
    assert notes(text) == {"operator": "MulBackward0"}


@ours
def test_a_function_differentiated_twice_that_must_not_be():
    class Once(AG.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @AG.function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(3.0)
    (g,) = AG.grad(Once.apply(x) ** 2, x, create_graph=True)
    text = raised(g.backward)
    assert text.startswith("trying to differentiate twice a function that was marked with @once_differentiable")
    found = notes(text)
    assert found["operator"] == "OnceBackward" and "create_graph=True" in found["what to do"]


@ours
def test_notes_come_after_the_whole_message_of_pytorch():
    x = leaf([1.0])
    y = (x * x).sum()
    y.backward()
    first, *rest = raised(y.backward).splitlines()
    assert first.endswith("to access saved tensors after calling backward.")
    assert rest and all(line.startswith("  ") for line in rest)


# --- lines ---


@ours
def test_the_line_is_the_user_s_not_ours():
    """Parts of gradiron are written in Python."""
    with Keep(True):
        x = leaf([[1.0, 2.0]])
        y = AG.functional.vjp(lambda z: z.exp(), x, T.ones(1, 2), create_graph=True)[1]  # through Python
        y.sum().backward()
        assert code("through Python") in raised(y.sum().backward)


@ours
def test_lines_on_as_a_call_and_as_a_context():
    x = leaf([1.0])
    AG.set_source_lines(True)
    try:
        y = x * x  # by call
        y.backward()
        assert code("by call") in raised(y.backward)
        with AG.set_source_lines(False):
            y = x * x
            y.backward()
            assert ".py:" not in raised(y.backward)
        y = x * x  # after
        y.backward()
        assert code("after") in raised(y.backward)
    finally:
        AG.set_source_lines(False)
    z = x * x
    z.backward()
    assert ".py:" not in raised(z.backward)


@ours
def test_anomaly_mode_includes_lines():
    x = leaf([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with AG.detect_anomaly():
            y = x * x  # in anomaly mode
            y.backward()
            assert code("in anomaly mode") in raised(y.backward)
        with Keep(True), AG.detect_anomaly():
            pass
        with Keep(True):
            with AG.detect_anomaly():
                pass
            y = x * x  # after anomaly mode
            y.backward()
            assert code("after anomaly mode") in raised(y.backward)


@ours
def test_what_was_made_before_has_no_line():
    x = leaf([1.0])
    y = x * x
    with Keep(True):
        y.backward()
        text = raised(y.backward)
    assert notes(text)["operator"] == "MulBackward0"


@ours
def test_lines_from_the_environment(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import gradiron as T\nx = T.ones(2, requires_grad=True)\n\n\ny = (x * x).sum()\ny.backward()\ny.backward()\n"
    )
    run = f"exec(compile(open({str(path)!r}).read(), {str(path)!r}, 'exec'))"
    assert f"MulBackward0, made at {path}:5: y = (x * x).sum()" in python(run, env={"GRADIRON_SOURCE_LINES": "1"}).stderr
    for off in ("0", ""):
        err = python(run, env={"GRADIRON_SOURCE_LINES": off}).stderr
        assert "MulBackward0\n" in err and "set_source_lines(True)" in err


@ours
def test_a_file_that_cannot_be_read():
    space = {"x": leaf([1.0])}
    with Keep(True):
        exec(compile("\n\ny = x * x", "<nowhere>", "exec"), space)
    space["y"].backward()
    text = raised(space["y"].backward)
    assert notes(text)["operator"] == "MulBackward0, made at <nowhere>:3"


@ours
def test_an_exception_of_the_user_s_keeps_its_text_and_gains_a_note():
    class Mine(ValueError):
        pass

    def broken(g):
        raise Mine("as it was")

    Given = function(broken)
    for lines in (True, False):
        with Keep(lines):
            y = Given.apply(leaf([1.0]), 2.0)  # raises
            with pytest.raises(Mine) as caught:
                y.backward()
        assert str(caught.value) == "as it was"
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"
        if hasattr(caught.value, "add_note"):
            told = getattr(caught.value, "__notes__", [])
            assert told == ([f"in the backward of GivenBackward, made at {code('raises')}"] if lines else [])


@ours
def test_long_operators_find_the_line_too():
    """They run without the interpreter."""
    with Keep(True):
        x = T.ones(300, 300, requires_grad=True)
        y = (x * x).sum()  # long
        y.backward()
        assert code("long") in raised(y.backward)


@ours
def test_lines_keep_nothing_alive():
    out = python_ok(
        """
import resource
T.autograd.set_source_lines(True)
x = T.ones(4, requires_grad=True)
def round_():
    for _ in range(100):
        (x * 2).exp().sum().backward()
for _ in range(20):
    round_()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(200):
    round_()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print(T._core.live_nodes())
"""
    )
    grown, nodes = map(int, out.split())
    assert grown < 2048 and nodes <= 1


@ours
@pytest.mark.parametrize("create", [False, True])
def test_threads_with_lines_do_not_wait_for_one_another(create):
    """A sum into a shared leaf asks for the interpreter, while others that hold it read and set its gradient."""
    python_ok(
        f"""
import threading
T.autograd.set_source_lines(True)
x = T.ones(20000, requires_grad=True)
def add():
    for _ in range(60):
        (x * 2).sum().backward(create_graph={create})
def look():
    for i in range(3000):
        x.grad
        if i % 100 == 0:
            x.grad = None
threads = [threading.Thread(target=f) for f in (add, add, look, look)]
for t in threads: t.start()
for t in threads: t.join()
""",
        timeout=60,
    )


@ours
def test_threads_that_use_a_leaf_first_at_once():
    python_ok(
        """
import threading
leaves = [T.ones(20000, requires_grad=True) for _ in range(100)]
T.autograd.set_source_lines(True)
start = threading.Barrier(4)
def use():
    start.wait()
    for x in leaves:
        x * 2
threads = [threading.Thread(target=use) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
""",
        timeout=60,
    )


# --- anomaly mode, as PyTorch has it ---


def told(work, kind=RuntimeError):
    """The warnings of a call that fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(kind) as error:
            work()
    # PyTorch adds where its own source gave the warning.
    return str(error.value), [str(w.message).split(" (Triggered internally")[0] for w in caught]


def test_anomaly_tells_the_forward_call():
    x = leaf([-1.0])
    with AG.set_detect_anomaly(True):
        y = x.sqrt()  # nan
        message, (warning,) = told(y.backward)
    assert message.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.")
    assert warning.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert "line " in warning and "y = x.sqrt()  # nan" in warning


def test_anomaly_without_a_forward_pass():
    y = leaf([-1.0]).sqrt()
    with AG.set_detect_anomaly(True):
        _, (warning,) = told(y.backward)
    assert warning == (
        "Error detected in SqrtBackward0. No forward pass information available. Enable detect anomaly during forward pass "
        "for more information."
    )


def test_anomaly_tells_in_whose_turn_a_node_was_made():
    x = leaf([0.0, 1.0])
    with AG.set_detect_anomaly(True):
        y = (x**1.5).sum()  # induces
        (g,) = AG.grad(y, x, create_graph=True)  # induced
        message, warned = told(lambda: (g * 0).sum().backward())
    assert message.startswith("Function 'PowBackward0' returned nan values")
    assert len(warned) == 2
    assert warned[0].startswith("Error detected in PowBackward0. Traceback of forward call that caused the error:\n")
    assert "# induced" in warned[0]
    head = "\n\nPrevious calculation was induced by PowBackward0. Traceback of forward call that induced the previous calculation:\n"
    assert warned[1].startswith(head)
    assert "# induces" in warned[1]


def test_anomaly_three_levels_deep():
    x = leaf([0.0, 1.0])
    with AG.set_detect_anomaly(True):
        y = (x**2.5).sum()
        (g,) = AG.grad(y, x, create_graph=True)
        (h,) = AG.grad(g.sum(), x, create_graph=True)
        _, warned = told(lambda: (h * 0).sum().backward())
    assert len(warned) == 3
    assert all("Previous calculation was induced by PowBackward0." in w for w in warned[1:])


def test_anomaly_parent_without_a_forward_pass():
    x = leaf([0.0, 1.0])
    y = (x**1.5).sum()
    with AG.set_detect_anomaly(True):
        (g,) = AG.grad(y, x, create_graph=True)
        _, warned = told(lambda: (g * 0).sum().backward())
    assert warned[1].startswith("Error detected in PowBackward0. No forward pass information available.")


def test_anomaly_with_an_exception_of_the_user_s():
    def broken(g):
        raise ValueError("mine")

    Given = function(broken)
    with AG.set_detect_anomaly(True):
        y = Given.apply(leaf([1.0]), 2.0)
        message, (warning,) = told(y.backward, ValueError)
    assert message == "mine"
    assert warning.startswith("Error detected in GivenBackward. Traceback of forward call")


def test_anomaly_does_not_look_for_nan_unless_asked():
    x = leaf([-1.0])
    with AG.set_detect_anomaly(True, check_nan=False):
        x.sqrt().backward()
    assert x.grad.isnan().all()


@ours
def test_a_chain_of_parents_is_freed():
    """What a node remembers of its parents does not grow without bound, and goes with it."""
    out = python_ok(
        """
x = T.tensor([0.5], requires_grad=True)
with T.autograd.set_detect_anomaly(True):
    y = x.sin()
    for _ in range(12):
        (y,) = T.autograd.grad(y, x, create_graph=True)
    print(y.item())
del y
gc.collect()
print(T._core.live_nodes())
"""
    )
    assert int(out.split()[1]) <= 1
    gc.collect()
