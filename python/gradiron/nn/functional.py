"""Layers and losses as functions."""

from __future__ import annotations

import importlib
from typing import Any

from .. import _core
from . import _activations, _pooling
from ._attention import (
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    multi_head_attention_forward,
)
from ._compositions import (
    alpha_dropout,
    conv_tbc,
    cosine_similarity,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gaussian_nll_loss,
    gumbel_softmax,
    linear_cross_entropy,
    local_response_norm,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    multilabel_soft_margin_loss,
    normalize,
    one_hot,
    pairwise_distance,
    softsign,
    tanhshrink,
    triplet_margin_with_distance_loss,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from ._embedding import embedding, embedding_bag
from ._losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    kl_div,
    margin_ranking_loss,
    poisson_nll_loss,
    triplet_margin_loss,
)
from ._normalization import batch_norm, group_norm, instance_norm, rms_norm
from ._resizing import affine_grid, grid_sample, interpolate


def __getattr__(name: str) -> Any:
    if name == "grad":  # loaded when it is first asked for
        return importlib.import_module(".grad", __package__)
    raise AttributeError(f"module 'gradiron.nn.functional' has no attribute '{name}'")


# Functions that are in the top-level namespace, too.
_SHARED = (
    *(_core.softmax, _core.log_softmax, _core.dropout, _core.layer_norm),
    *(_core.conv1d, _core.conv2d, _core.conv3d, _core.conv_transpose1d, _core.conv_transpose2d, _core.conv_transpose3d),
    _core.avg_pool1d,
)
# Functions of the core that are wrapped here, or renamed.
_WRAPPED = {*_pooling.__all__, *_pooling.RENAMED, *_activations.__all__}

# A row of the core comes before a composition of the same name.
globals().update({function.__name__: function for function in _SHARED})
globals().update({name: getattr(_core._nn, name) for name in dir(_core._nn) if name[0] != "_" and name not in _WRAPPED})
globals().update({name: getattr(part, name) for part in (_pooling, _activations) for name in part.__all__})
