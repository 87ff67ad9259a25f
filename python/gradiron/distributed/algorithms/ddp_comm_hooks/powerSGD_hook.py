"""PowerSGD (Vogels, Karimireddy and Jaggi, 2019): gradients travel as products of two thin matrices."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any

from .... import _core
from ...._core import Generator, Tensor
from ....autograd.grad_mode import no_grad
from ....futures import Future
from ... import distributed_c10d as c10d
from ..._grad_bucket import GradBucket
from ...options import AllreduceOptions
from . import default_hooks

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """How gradients are compressed, and what is kept from one backward to the next.

    Args:
        matrix_approximation_rank: columns of the thin matrices.
        start_powerSGD_iter: until this backward gradients are averaged as they are.
        min_compression_rate: matrices that would not shrink by this factor are averaged as they are.
        use_error_feedback: whether what compression has lost is added to the next gradient.
        warm_start: whether the thin matrix of the last backward is the start of the next.
        orthogonalization_epsilon: added to lengths of columns, for gradients that are zero.
    """

    __slots__ = [
        "batch_tensors_with_same_shape",
        "compression_stats_logging_frequency",
        "error_dict",
        "iter",
        "matrix_approximation_rank",
        "min_compression_rate",
        "next_stats_report",
        "orthogonalization_epsilon",
        "p_memory_dict",
        "process_group",
        "q_memory_dict",
        "rng",
        "start_powerSGD_iter",
        "total_numel_after_compression",
        "total_numel_before_compression",
        "use_error_feedback",
        "warm_start",
    ]

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                "only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        logger.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = c10d._get_default_group()
        logger.warning("NOTE: Process group will be set to a default group (i.e. the world size).")
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts a backward with its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_powerSGD_iter:
            logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers have travelled, and how many there were before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after


class _Steps(Future):
    """A result in steps, each of which yields a work that the next one waits for.

    They run in the thread that waits, so that all ranks start their collectives in the same order.
    """

    def __init__(self, steps: Iterator[Any], result: Tensor) -> None:
        super().__init__()
        self._steps, self._of = steps, result
        self._work = self._advance()

    def _advance(self) -> Any:
        with no_grad():
            return next(self._steps, None)

    def wait(self) -> Any:
        while self._work is not None:
            self._work.wait()
            self._work = self._advance()
        if not self.done():
            self.set_result(self._of)
        return super().wait()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        before = self

        class After(Future):
            def wait(self) -> Any:
                if not self.done():
                    before.wait()
                    self.set_result(callback(before))
                return super().wait()

        return After()


def _orthogonalize(matrix: Tensor, epsilon: float) -> None:
    """Makes columns orthonormal, in place, by Gram and Schmidt."""
    for at in range(matrix.shape[1]):
        column = matrix[:, at : at + 1]
        column /= column.norm() + epsilon
        if epsilon == 0:
            column.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)  # A gradient of zeros has no direction.
        if at + 1 < matrix.shape[1]:
            rest = matrix[:, at + 1 :]
            rest -= column @ (column.t() @ rest)


def _start(group: Any, tensor: Tensor) -> Any:
    return group.allreduce([tensor], AllreduceOptions(asyncOp=True))


def _parts(flat: Tensor, shapes: list[tuple[int, int]]) -> list[Tensor]:
    parts, at = [], 0
    for rows, columns in shapes:
        parts.append(flat[at : at + rows * columns].view(rows, columns))
        at += rows * columns
    return parts


def _flat(state: PowerSGDState, memory: dict[int, Tensor], index: int, numel: int, like: Tensor) -> tuple[Tensor, bool]:
    """The memory of thin matrices, and whether it is that of the last backward."""
    kept = memory.get(index)
    if kept is not None and kept.numel() == numel and state.warm_start:
        return kept, True
    memory[index] = _core.empty(numel, dtype=like.dtype, device=like.device)
    return memory[index], False


def _compress(state: PowerSGDState, group: Any, index: int, matrices: list[Tensor], others: Tensor | None) -> Iterator[Any]:
    """Replaces matrices by the products that all ranks agree on; `others` are averaged as they are."""
    size = group.size()
    ranks = [min(*matrix.shape, state.matrix_approximation_rank) for matrix in matrices]
    p_shapes = [(matrix.shape[0], rank) for matrix, rank in zip(matrices, ranks, strict=True)]
    q_shapes = [(matrix.shape[1], rank) for matrix, rank in zip(matrices, ranks, strict=True)]
    p_flat, _ = _flat(state, state.p_memory_dict, index, sum(map(math.prod, p_shapes)), matrices[0])
    q_flat, is_warm = _flat(state, state.q_memory_dict, index, sum(map(math.prod, q_shapes)), matrices[0])
    ps, qs = _parts(p_flat, p_shapes), _parts(q_flat, q_shapes)
    if not is_warm:
        q_flat.copy_(_core.randn(q_flat.numel(), generator=state.rng))  # The same numbers on all ranks.
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        _orthogonalize(q, state.orthogonalization_epsilon)
        _core.matmul(matrix, q, out=p)
    rest = None if others is None else _start(group, others)
    yield _start(group, p_flat)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        _orthogonalize(p, state.orthogonalization_epsilon)
        _core.matmul(matrix.t(), p, out=q)
    yield _start(group, q_flat)
    q_flat.div_(size)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        _core.matmul(p, q.t(), out=matrix)
    if rest is not None:
        yield rest


def _averaged(work: Any) -> Iterator[Any]:
    yield work


def _add_error(state: PowerSGDState, index: int, buffer: Tensor) -> Tensor | None:
    """Adds what the last compression has lost; a copy of the sum, to find out what this one loses."""
    if not state.use_error_feedback:
        return None
    error = state.error_dict.get(index)
    if error is not None and error.numel() == buffer.numel():
        buffer.add_(error)
    return buffer.clone()


def _with_error(state: PowerSGDState, index: int, steps: Iterator[Any], buffer: Tensor, before: Tensor | None) -> Iterator[Any]:
    yield from steps
    if before is not None:
        state.error_dict[index] = before.sub_(buffer)


def _report(state: PowerSGDState, bucket: GradBucket) -> None:
    if bucket.is_last() and state.iter >= state.next_stats_report:
        rate, before, after = state.compression_stats()
        logger.info(
            "Compression stats: iter %s, total before compression %s, total after compression %s, rate %s",
            state.iter,
            before,
            after,
            rate,
        )
        state.next_stats_report = state.iter + state.compression_stats_logging_frequency


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Averages matrices by products of thin ones; vectors, and matrices that would not shrink enough, as they are."""
    group = state.process_group if state.process_group is not None else c10d._get_default_group()
    buffer, index = bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(group, bucket)
    before = _add_error(state, index, buffer)
    matrices, others = [], []
    for gradient in bucket.gradients():
        matrix = gradient.reshape(gradient.shape[0], -1) if gradient.dim() > 1 else gradient
        numel = matrix.numel()
        state.total_numel_before_compression += numel
        columns = min(*matrix.shape, state.matrix_approximation_rank) if matrix.dim() > 1 else 0
        compressed = sum(matrix.shape) * columns
        if matrix.dim() > 1 and compressed * state.min_compression_rate < numel:
            matrices.append((gradient, matrix))
            state.total_numel_after_compression += compressed
        else:
            others.append(gradient)
            state.total_numel_after_compression += numel
    _report(state, bucket)
    rest = _core.cat([gradient.reshape(-1) for gradient in others]).div_(group.size()) if others else None
    steps = _compress_bucket(state, group, index, matrices, others, rest)
    state.maybe_increase_iter(bucket)
    return _Steps(_with_error(state, index, steps, buffer, before), buffer)


def _compress_bucket(
    state: PowerSGDState,
    group: Any,
    index: int,
    matrices: list[tuple[Tensor, Tensor]],
    others: list[Tensor],
    rest: Tensor | None,
) -> Iterator[Any]:
    if matrices:
        yield from _compress(state, group, index, [matrix for _, matrix in matrices], rest)
    elif rest is not None:
        yield _start(group, rest)
    for gradient, matrix in matrices:
        if matrix.data_ptr() != gradient.data_ptr():  # A copy, since the gradient's elements lie in another order.
            gradient.copy_(matrix.view(gradient.shape))
    at = 0
    for gradient in others:
        assert rest is not None
        gradient.copy_(rest[at : at + gradient.numel()].view(gradient.shape))
        at += gradient.numel()


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Averages a whole bucket as one square matrix: faster than `powerSGD_hook`, and less exact."""
    group = state.process_group if state.process_group is not None else c10d._get_default_group()
    buffer, index = bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(group, bucket)
    side = math.isqrt(max(buffer.numel() - 1, 0)) + 1
    before = _add_error(state, index, buffer)
    square = _core.zeros(side * side, dtype=buffer.dtype, device=buffer.device)
    square[: buffer.numel()].copy_(buffer)
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += 2 * side * state.matrix_approximation_rank
    _report(state, bucket)
    steps = _compress_square(state, group, index, square.view(side, side), buffer)
    state.maybe_increase_iter(bucket)
    return _Steps(_with_error(state, index, steps, buffer, before), buffer)


def _compress_square(state: PowerSGDState, group: Any, index: int, square: Tensor, buffer: Tensor) -> Iterator[Any]:
    yield from _compress(state, group, index, [square], None)
    buffer.copy_(square.view(-1)[: buffer.numel()])
