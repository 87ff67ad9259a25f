"""What autocast makes of the operands of operators on the CPU: PyTorch's lists, by the operators' names."""

from __future__ import annotations

from .. import _core

# Products: computed in the dtype that was asked for.
LOWER = """
    addbmm addmm baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    einsum inner linear lstm matmul mm multi_dot prelu rnn_relu rnn_tanh scaled_dot_product_attention tensordot vecdot
""".split()
# Sums over many and what is steep: computed in float32.
SINGLE = """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist cholesky
    cholesky_ex cholesky_inverse cholesky_solve cosine_embedding_loss cross_entropy ctc_loss fractional_max_pool2d
    fractional_max_pool3d geqrf grid_sample grid_sampler grid_sampler_2d grid_sampler_3d hinge_embedding_loss huber_loss inv
    inv_ex inverse kl_div l1_loss lu lu_solve margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss
    multi_margin_loss multilabel_margin_loss nanquantile nll_loss orgqr ormqr pinverse poisson_nll_loss polar prod qr quantile
    smooth_l1_loss soft_margin_loss solve stft svd svdvals trace triangular_solve triplet_margin_loss view_as_complex
""".split()
# What joins tensors: in the widest dtype among them.
WIDEST = ("cat", "concat", "concatenate", "stack", "index_copy")

_told = False


def tell() -> None:
    """Gives the lists to the operators, once."""
    global _told
    if not _told:
        for policy, names in (("lower", LOWER), ("single", SINGLE), ("widest", WIDEST)):
            _core.set_autocast_policy(policy, list(names))
        _told = True
