"""Losses that stand at the top take a number for the reduction, and reduce nothing by default."""

import pytest

from library import T

A, B = T.tensor([0.5, 1.0]), T.tensor([1.0, 0.0])
LOSSES = {
    "kl_div": (A, B),
    "hinge_embedding_loss": (A, B),
    "margin_ranking_loss": (A, B, B),
    "cosine_embedding_loss": (A[None], B[None], T.ones(1)),
    "triplet_margin_loss": (A[None], B[None], A[None] * 2),
    "ctc_loss": (T.zeros(3, 2, 3).log_softmax(-1), T.tensor([[1], [2]]), T.tensor([3, 3]), T.tensor([1, 1])),
}


@pytest.mark.parametrize("name", LOSSES)
def test_reductions(name):
    loss, arguments = getattr(T, name), LOSSES[name]
    each = loss(*arguments)
    assert each.dim() == 1
    assert T.equal(loss(*arguments, reduction=0), each)
    assert T.allclose(loss(*arguments, reduction=2), each.sum())
    if name != "ctc_loss":  # its mean is by the targets' lengths, too
        assert T.allclose(loss(*arguments, reduction=1), each.mean())
    for wrong in ("mean", 1.0, True, None):
        with pytest.raises(
            TypeError, match=f"argument 'reduction' must be int, not {type(wrong).__name__}|invalid combination"
        ):
            loss(*arguments, reduction=wrong)
