"""`torch.utils.tensorboard`: writes logs for TensorBoard, by the user's own package of that name."""

from __future__ import annotations

try:
    import tensorboard  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "No module named 'tensorboard': torch.utils.tensorboard writes through that package; pip install tensorboard",
        name="tensorboard",
    ) from error

from tensorboard.summary.writer.record_writer import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    RecordWriter,
)

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
