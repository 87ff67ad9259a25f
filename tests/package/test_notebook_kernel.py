"""The graph's picture in a real IPython kernel, as a notebook shows it."""

import pytest

from library import IS_GRADIRON

if not IS_GRADIRON:
    pytest.skip("a promise of gradiron's own", allow_module_level=True)

from jupyter_client.manager import KernelManager

TIMEOUT = 120


@pytest.fixture(scope="module")
def kernel():
    """A kernel of this Python with `gradiron` as `torch`."""
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=TIMEOUT)
        show(client, "import gradiron as torch")
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def show(client, cell):
    """What the cell's last line shows, by kind."""
    shown = {}

    def listen(message):
        content = message["content"]
        assert message["msg_type"] != "error", "\n".join(content["traceback"])
        if message["msg_type"] == "execute_result":
            shown.update(content["data"])

    client.execute_interactive(cell, timeout=TIMEOUT, output_hook=listen)
    return shown


def test_variables_of_cells_have_their_names(kernel):
    show(kernel, "a = torch.tensor(2.0, requires_grad=True)")
    assert show(kernel, "a * a") != {}  # the notebook keeps it as `_`, and as `Out[3]`
    shown = show(kernel, "torch.viz.graph(a * a)")
    assert shown["text/plain"] == "result () ← MulBackward0\n├─ a ()\n└─ a ()"
    show(kernel, "b = a * a; b")
    assert show(kernel, "torch.viz.graph(b)")["text/plain"].startswith("b () ← MulBackward0")
    assert show(kernel, "torch.viz.graph(_3)")["text/plain"].startswith("result () ← MulBackward0")


def test_variables_come_before_what_lies_in_objects(kernel):
    show(
        kernel,
        "class Box: pass\n"
        "box = Box(); box._inner = Box(); model = torch.nn.Linear(2, 1)\n"
        "box.weight = w = model.weight; box._inner.hidden = torch.ones(1, requires_grad=True)",
    )
    text = show(kernel, "torch.viz.graph(model(w) * box._inner.hidden)")["text/plain"]
    assert "w (1, 2)" in text and "model.bias (1,)" in text and "leaf (1,)" in text


def test_a_notebook_gets_a_drawing(kernel):
    shown = show(kernel, "torch.viz.graph(a * a)")
    assert shown["image/svg+xml"].startswith("<svg ") and shown["image/svg+xml"] in shown["text/html"]
