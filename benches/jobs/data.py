"""Around the steps: batches from a loader, and checkpoints in files and in memory."""

from __future__ import annotations

import atexit
import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import Names, group

job = group("data")


def loader(workers: int = 0, **options: Any) -> Callable[[Any], Names]:
    """4096 pictures of 28x28 with their classes."""

    def setup(T: Any) -> Names:
        data = T.utils.data
        dataset = data.TensorDataset(T.rand(4096, 1, 28, 28), T.randint(0, 10, (4096,)))
        batches = data.DataLoader(dataset, num_workers=workers, persistent_workers=workers > 0, **options)

        def epoch() -> None:
            for _x, _y in batches:
                pass

        epoch()
        return {"epoch": epoch}

    return setup


def collated(T: Any) -> Names:
    samples = [{"x": T.rand(3, 32, 32), "y": i, "weight": 0.5} for i in range(64)]
    return {"collate": T.utils.data.default_collate, "samples": samples}


def many(T: Any) -> dict[str, Any]:
    """Of a network with many small parameters."""
    return {f"blocks.{i}.weight": T.rand(64, 64) for i in range(500)}


def few(T: Any) -> dict[str, Any]:
    """40 MB in ten tensors."""
    return {f"blocks.{i}.weight": T.rand(1000, 1000) for i in range(10)}


def in_memory(state: Callable[[Any], Any]) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        content = state(T)
        written = io.BytesIO()
        T.save(content, written)
        return {"T": T, "io": io, "state": content, "written": written}

    return setup


def in_file(state: Callable[[Any], Any]) -> Callable[[Any], Names]:
    def setup(T: Any) -> Names:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "state.pt"
        content = state(T)
        T.save(content, path)
        return {"T": T, "state": content, "path": path}

    return setup


job("loader, 4096 of 1x28x28 in batches of 64", "epoch()", loader(batch_size=64), 1)
job("loader, 4096 of 1x28x28 in batches of 64, shuffled", "epoch()", loader(batch_size=64, shuffle=True), 1)
job("loader, the same with 2 workers", "epoch()", loader(2, batch_size=64, shuffle=True), 1)
job("collate 64 dictionaries", "collate(samples)", collated, 1)
job("save 500 tensors of 64x64 to memory", "T.save(state, io.BytesIO())", in_memory(many), 1)
job("load 500 tensors of 64x64 from memory", "written.seek(0); T.load(written)", in_memory(many), 1)
job("save 40 MB to a file", "T.save(state, path)", in_file(few), 1)
job("load 40 MB from a file", "T.load(path)", in_file(few), 1)
job("load 40 MB from a file, mapped", "T.load(path, mmap=True)", in_file(few), 1)
