"""`SummaryWriter` writes what TensorBoard reads, through the user's own package; without it the error says so."""

import glob
import importlib.util

import pytest

from library import T

HERE = importlib.util.find_spec("tensorboard") is not None


def test_without_the_package_the_error_says_what_is_missing():
    if HERE:
        pytest.skip("tensorboard is installed")
    with pytest.raises(ModuleNotFoundError, match="No module named 'tensorboard'"):
        from gradiron.utils.tensorboard import SummaryWriter  # noqa: F401


def values(folder):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    return [
        (event.step, value)
        for path in sorted(glob.glob(f"{folder}/**/events*", recursive=True))
        for event in EventFileLoader(path).Load()
        for value in event.summary.value
    ]


@pytest.mark.skipif(not HERE, reason="tensorboard is not installed")
def test_what_is_written_is_read(tmp_path):
    from importlib import import_module

    tensorboard = import_module(f"{T.__name__}.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", T.tensor(1.5, requires_grad=True), 3)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 4)
        writer.add_histogram("weights", T.tensor([1.0, 2.0, 2.0, 3.0]), 5, bins=3)
        writer.add_image("picture", T.rand(3, 4, 5), 6)
        writer.add_text("note", "words", 7)
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, run_name="run")
        with pytest.raises(ValueError, match="The input has no element"):
            writer.add_histogram("none", T.tensor([]))
    found = values(tmp_path)
    told = {value.tag: (step, value) for step, value in found}
    assert told["loss"][0] == 3
    assert sorted(value.tensor.float_val[0] for _, value in found if value.tag == "both") == [1.0, 2.0]
    assert told["note/text_summary"][1].tensor.string_val[0] == b"words"
    assert {"_hparams_/experiment", "_hparams_/session_start_info", "accuracy", "picture", "weights"} <= told.keys()
