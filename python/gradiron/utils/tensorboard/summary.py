"""Summaries: what TensorBoard's protocol holds of numbers, histograms, pictures, sounds, texts and curves."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]
from tensorboard.compat.proto.summary_pb2 import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    HistogramProto,
    Summary,
    SummaryMetadata,
)
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # type: ignore[import-not-found,import-untyped,unused-ignore]
from tensorboard.compat.proto.tensor_shape_pb2 import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    TensorShapeProto,
)
from tensorboard.plugins.pr_curve.plugin_data_pb2 import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    PrCurvePluginData,
)
from tensorboard.plugins.text.plugin_data_pb2 import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    TextPluginData,
)

from ..._core import Tensor


def as_numpy(value: Any) -> Any:
    """An array of a tensor, an array, a list or a number."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, (np.ndarray, list)) or np.isscalar(value):
        return np.asarray(value)
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def _one(tag: str, **content: Any) -> Any:
    return Summary(value=[Summary.Value(tag=tag, **content)])


def _shape(*sizes: int) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])


def _metadata(plugin: str, content: bytes) -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def scalar(tag: str, value: Any, *, new_style: bool = False, double_precision: bool = False) -> Any:
    """A number; in the new style as a tensor."""
    array = as_numpy(value).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and {array.ndim} dimensions."
        )
    number = float(array)
    if not new_style:
        return _one(tag, simple_value=number)
    if double_precision:
        tensor = TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        tensor = TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _one(tag, tensor=tensor, metadata=SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars")))


def tensor(tag: str, value: Tensor) -> Any:
    """Numbers of any shape."""
    if value.numel() == 1:
        shape = _shape()
    else:
        shape = _shape(*value.shape)
    proto = TensorProto(float_val=[float(x) for x in value.reshape(-1).tolist()], dtype="DT_FLOAT", tensor_shape=shape)
    return _one(tag, tensor=proto, metadata=SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="tensor")))


def _default_bins() -> list[float]:
    """Edges that grow by a tenth each, on both sides of zero."""
    edges = []
    edge = 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0] + edges


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How many values fall between which edges."""
    edges = _default_bins() if bins == "tensorflow" else bins
    values = as_numpy(values).astype(float).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=edges)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        short = len(counts) % step
        if short:
            counts = np.pad(counts, (0, step - short))
        counts = counts.reshape(-1, step).sum(axis=-1)
        limits = np.append(limits[:-1:step], limits[-1])
    if counts.sum() == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    # Empty ends are left out, but for one on the left.
    filled = np.nonzero(counts)[0]
    first, last = filled[0], filled[-1] + 1
    if first > 0:
        counts, limits = counts[first - 1 : last], limits[first : last + 1]
    else:
        counts, limits = np.concatenate([[0], counts[:last]]), limits[: last + 1]
    return histogram_raw(
        tag, values.min(), values.max(), len(values), values.sum(), values.dot(values), limits.tolist(), counts.tolist()
    )


def histogram_raw(
    tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram that was counted elsewhere."""
    histo = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _one(tag, histo=histo)


def _grid(images: Any, columns: int = 8) -> Any:
    """Pictures (NCHW) side by side, in one (CHW)."""
    n, channels, height, width = images.shape
    across = min(n, columns)
    down = -(-n // across)
    grid = np.zeros((channels, height * down, width * across), dtype=images.dtype)
    for i, image in enumerate(images):
        y, x = i // across * height, i % across * width
        grid[:, y : y + height, x : x + width] = image
    return grid


def as_hwc(array: Any, order: str) -> Any:
    """A picture of three channels or one, whatever order its dimensions have."""
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {order}")
    if len(array.shape) != len(order):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {order}"
        )
    order = order.upper()
    if len(order) == 4:
        grid = _grid(array.transpose([order.find(c) for c in "NCHW"]))
        array = grid.transpose(1, 2, 0)
    elif len(order) == 3:
        array = array.transpose([order.find(c) for c in "HWC"])
    else:
        array = array.transpose([order.find(c) for c in "HW"])[..., None]
    return np.concatenate([array] * 3, 2) if array.shape[2] == 1 else array


def _png(pixels: Any) -> bytes:
    """The bytes of a PNG file of height, width and channels (3 or 4), a byte each."""
    height, width, channels = pixels.shape
    if channels not in (3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 channels, not {channels}")
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * channels)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(lines.tobytes()))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def image(tag: str, picture: Any, order: str = "NCHW") -> Any:
    """A picture; bytes are taken as they are, other numbers go from 0 to 1."""
    array = as_numpy(picture)
    scale = 1 if array.dtype == np.uint8 else 255
    pixels = as_hwc(array, order).astype(np.float32)
    pixels = np.ascontiguousarray((pixels * scale).clip(0, 255).astype(np.uint8))
    height, width, channels = pixels.shape
    content = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=_png(pixels))
    return _one(tag, image=content)


def audio(tag: str, sound: Any, sample_rate: int = 44100) -> Any:
    """A sound of one channel, from -1 to 1."""
    array = as_numpy(sound).squeeze()
    if abs(array).max() > 1:
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((array * np.iinfo(np.int16).max).astype("<i2").tobytes())
    content = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=array.shape[-1],
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _one(tag, audio=content)


def text(tag: str, words: str) -> Any:
    """A text, which is shown as Markdown."""
    proto = TensorProto(dtype="DT_STRING", string_val=[words.encode()], tensor_shape=_shape(1))
    metadata = _metadata("text", TextPluginData(version=0).SerializeToString())
    return _one(f"{tag}/text_summary", metadata=metadata, tensor=proto)


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall over thresholds, counted from labels and predicted probabilities."""
    num_thresholds = min(num_thresholds, 127)
    labels, predictions = as_numpy(labels).reshape(-1), as_numpy(predictions).reshape(-1)
    weights = 1.0 if weights is None else as_numpy(weights).reshape(-1)
    bucket = np.int32(np.floor(predictions * (num_thresholds - 1)))
    span = (0, num_thresholds - 1)
    true, _ = np.histogram(bucket, bins=num_thresholds, range=span, weights=labels.astype(float) * weights)
    false, _ = np.histogram(bucket, bins=num_thresholds, range=span, weights=(1.0 - labels.astype(float)) * weights)
    tp, fp = true[::-1].cumsum()[::-1], false[::-1].cumsum()[::-1]
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(1e-7, tp + fp)
    recall = tp / np.maximum(1e-7, tp + fn)
    return pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds)


def pr_curve_raw(tag: str, *curves: Any) -> Any:
    """The same from counts: true and false positives, true and false negatives, precision, recall, how many."""
    *rows, num_thresholds = curves
    num_thresholds = min(num_thresholds, 127)
    data = np.stack([as_numpy(row) for row in rows])
    metadata = _metadata("pr_curves", PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString())
    proto = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(*data.shape))
    return _one(tag, metadata=metadata, tensor=proto)


def hparams(values: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None = None) -> list[Any]:
    """Three summaries: which settings there are, what they were, and that the run ended."""
    from google.protobuf.struct_pb2 import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        ListValue,
        Value,
    )
    from tensorboard.plugins.hparams import api_pb2 as api  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from tensorboard.plugins.hparams import plugin_data_pb2 as data

    for name, given in (("hparam_dict", values), ("metric_dict", metrics)):
        if not isinstance(given, dict):
            raise TypeError(f"{name} should be a dictionary")
    started = data.SessionStartInfo()
    infos = []
    for key, value in values.items():
        if value is None:
            continue
        # Truth values are numbers, as for PyTorch.
        if isinstance(value, str):
            kind, held = api.DATA_TYPE_STRING, Value(string_value=value)
        elif isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.numel() == 1):
            kind, held = api.DATA_TYPE_FLOAT64, Value(number_value=float(value))
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        started.hparams[key].CopyFrom(held)
        domain = None
        if domains and key in domains:
            field = "string_value" if kind == api.DATA_TYPE_STRING else "number_value"
            domain = ListValue(values=[Value(**{field: v}) for v in domains[key]])
        infos.append(api.HParamInfo(name=key, type=kind, domain_discrete=domain))
    metric_infos = [api.MetricInfo(name=api.MetricName(tag=name)) for name in metrics]
    experiment = api.Experiment(hparam_infos=infos, metric_infos=metric_infos)
    parts = [
        ("_hparams_/experiment", data.HParamsPluginData(experiment=experiment, version=0)),
        ("_hparams_/session_start_info", data.HParamsPluginData(session_start_info=started, version=0)),
        (
            "_hparams_/session_end_info",
            data.HParamsPluginData(session_end_info=data.SessionEndInfo(status=api.STATUS_SUCCESS), version=0),
        ),
    ]
    return [_one(tag, metadata=_metadata("hparams", content.SerializeToString())) for tag, content in parts]
