"""Calls of `nn.functional`: make_nn_functions.py records what PyTorch gives for them, values, gradients and nodes."""

import math
import random

# `r(2, 3)` is a leaf of that shape with values between -2 and 2, `p(2, 3)` one with values between 0.1 and 0.9; `i(5, 2, 3)` has
# whole numbers below 5, `signs(2, 3)` is 1 or -1. `edge` has values where activations bend.
CALLS = """
F.threshold(r(4, 3), 0.1, 20)
T.threshold(r(4, 3), 0.1, 20)
F.threshold(r(4, 3) * 1, 0.1, 20, inplace=True)
T.threshold_(r(3) * 1, 0.1, 2)
F.threshold(i(5, 3), 2, 7)
F.threshold(edge(), 1, 5.)
F.rrelu(r(4, 3))
F.rrelu(r(4, 3), training=True)
F.rrelu(r(4, 3), 0.2, 0.9, True)
F.rrelu(r(4, 3).double(), 0.2, 0.9, True)
T.rrelu(r(4, 3), 0.5, 0.5, True)
F.rrelu(r(4, 3) * 1, 0.2, 0.9, True, True)
T.rrelu_(r(4, 3) * 1, 0.2, 0.9, True)
F.rrelu_(r(4, 3) * 1)
F.hardtanh(r(4, 3))
F.hardtanh(r(4, 3), -0.5, 1.5)
F.hardtanh(r(4, 3) * 1, -0.5, 1.5, True)
F.hardtanh_(r(4, 3) * 1)
F.hardtanh(i(9, 4))
F.hardtanh(edge())
F.relu6(r(4, 3) * 5)
F.relu6(edge())
F.relu6(r(4, 3) * 5, True)
F.hardsigmoid(r(4, 3) * 3)
F.hardsigmoid(edge())
F.hardsigmoid(r(4, 3) * 3, inplace=True)
F.mish(r(4, 3))
F.mish(edge())
F.mish(r(4, 3) * 1, inplace=True)
F.hardswish(r(4, 3) * 3)
F.hardswish(edge())
F.hardswish(r(4, 3) * 3, inplace=True)
F.celu(r(4, 3))
F.celu(r(4, 3), 0.4)
T.celu(r(4, 3), 0.4)
F.celu(edge(), 2.)
F.celu(r(4, 3) * 1, 0.4, inplace=True)
T.celu_(r(4, 3) * 1, 0.4)
F.selu(r(4, 3))
T.selu(r(4, 3))
F.selu(edge())
F.selu(r(4, 3) * 1, True)
T.selu_(r(4, 3) * 1)
F.elu(edge(), 0.7)
F.elu_(r(4, 3) * 1, 0.7)
F.leaky_relu_(r(4, 3) * 1, 0.2)
F.relu_(r(4, 3) * 1)
F.glu(r(4, 6))
F.glu(r(4, 3), 0)
F.glu(r(2, 4, 3), -2)
F.hardshrink(r(4, 3))
T.hardshrink(r(4, 3), 0.3)
r(4, 3).hardshrink(0.3)
F.hardshrink(edge())
F.softshrink(r(4, 3))
F.softshrink(r(4, 3), 0.3)
F.softshrink(edge())
F.prelu(r(4, 3), p(1))
F.prelu(r(4, 3), p(3))
F.prelu(r(2, 3, 2), p(3))
T.prelu(r(4), p(1))
r(()).prelu(p(1))
F.softsign(r(4, 3))
F.softsign(i(5, 3))
F.tanhshrink(r(4, 3))
F.gumbel_softmax(r(4, 3))
F.gumbel_softmax(r(4, 3), 0.5, True, dim=0)
F.hardswish(r(4, 3).half() * 3)
F.mish(r(4, 3).bfloat16())
F.poisson_nll_loss(r(3, 4), p(3, 4))
F.poisson_nll_loss(r(3, 4), p(3, 4) * 5, full=True, reduction='none')
F.poisson_nll_loss(p(3, 4), p(3, 4), log_input=False, reduction='sum')
F.poisson_nll_loss(p(3, 4), p(3, 4), log_input=False, full=True, eps=0.1)
F.kl_div(r(3, 4), p(3, 4), reduction='batchmean')
F.kl_div(r(3, 4), p(3, 4), reduction='sum')
F.kl_div(r(3, 4), r(3, 4), reduction='none', log_target=True)
F.hinge_embedding_loss(r(3, 4), signs(3, 4))
F.hinge_embedding_loss(r(3, 4), signs(3, 4), 0.3, reduction='none')
F.cosine_embedding_loss(r(3, 4), r(3, 4), signs(3), 0.2)
F.cosine_embedding_loss(r(4), r(4), signs(()), reduction='sum')
F.margin_ranking_loss(r(3, 4), r(3, 4), signs(3, 4), 0.3)
F.margin_ranking_loss(r(3), r(3), signs(3), reduction='none')
F.triplet_margin_loss(r(3, 4), r(3, 4), r(3, 4))
F.triplet_margin_loss(r(3, 4), r(3, 4), r(3, 4), 0.5, 1, swap=True, reduction='none')
F.triplet_margin_with_distance_loss(r(3, 4), r(3, 4), r(3, 4), swap=True)
F.multi_margin_loss(r(3, 4), i(4, 3))
F.multi_margin_loss(r(3, 4), i(4, 3), p=2, margin=0.5, weight=p(4).detach(), reduction='sum')
F.multi_margin_loss(r(3, 4), i(4, 3), reduction='none')
F.multi_margin_loss(r(4), i(4, ()), reduction='none')
F.multi_margin_loss(r(4), i(4, 1), p=2, reduction='none')
F.multilabel_margin_loss(r(3, 4), T.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]]))
F.multilabel_margin_loss(r(3, 4), T.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3]]), reduction='none')
F.multilabel_margin_loss(r(4), T.tensor([1, 0, -1, 2]), reduction='sum')
F.multilabel_soft_margin_loss(r(3, 4), p(3, 4), p(4))
F.soft_margin_loss(r(3, 4), signs(3, 4))
F.soft_margin_loss(r(3, 4), signs(3, 4), reduction='none')
F.soft_margin_loss(r(3, 4), signs(4), reduction='sum')
F.ctc_loss(r(6, 2, 5).log_softmax(-1), T.tensor([[1, 2, 2], [3, 4, 1]]), T.tensor([6, 5]), T.tensor([3, 2]))
F.ctc_loss(r(6, 2, 5).log_softmax(-1), T.tensor([[1, 2, 2], [3, 4, 1]]), (6, 5), (3, 2), reduction='none')
F.ctc_loss(r(6, 2, 5).log_softmax(-1), T.tensor([1, 2, 2, 3, 4]), (6, 5), (3, 2), reduction='sum')
F.ctc_loss(r(6, 2, 5).log_softmax(-1), T.tensor([[1, 2, 2], [3, 4, 1]]), (6, 1), (3, 2), zero_infinity=True)
F.ctc_loss(r(6, 2, 5).log_softmax(-1), T.tensor([[1, 2, 2], [3, 4, 1]]), (6, 3), (3, 0), blank=0, reduction='none')
F.ctc_loss(r(6, 2, 5).double().log_softmax(-1), T.tensor([[1, 2, 2], [3, 0, 1]]), (6, 5), (3, 2), blank=4, reduction='none')
F.ctc_loss(r(6, 5).log_softmax(-1), T.tensor([1, 2, 2]), T.tensor(6), T.tensor(3), reduction='none')
F.pdist(r(4, 3))
F.pdist(r(4, 3), 1)
F.pdist(r(4, 3), 0)
F.pdist(r(4, 3), 2.5)
F.pdist(r(4, 3), math.inf)
T.pdist(r(1, 3))
T.cdist(r(2, 3), r(4, 3))
T.cdist(r(2, 3), r(4, 3), 1)
T.cdist(r(2, 3), r(4, 3), 0.)
T.cdist(r(2, 3), r(4, 3), 2.5)
T.cdist(r(2, 3), r(4, 3), 0.5)
T.cdist(r(2, 3), r(4, 3), math.inf)
T.cdist(r(2, 1, 2, 3), r(3, 4, 3), 3.)
T.cdist(r(2, 3), r(4, 3), compute_mode='use_mm_for_euclid_dist')
T.cdist(r(30, 3), r(2, 3))
T.cdist(r(30, 3), r(2, 3), compute_mode='donot_use_mm_for_euclid_dist')
F.pairwise_distance(r(4, 3), r(4, 3), 3, keepdim=True)
T.pairwise_distance(r(4, 3), r(3))
F.cosine_similarity(r(4, 3), r(4, 3))
T.cosine_similarity(r(4, 3), r(3), -1)
F.normalize(r(4, 3), 3, 0)
F.local_response_norm(r(2, 5, 3), 3, 0.5, 0.6, 2.)
F.pixel_shuffle(r(2, 8, 2, 3), 2)
T.pixel_unshuffle(r(2, 2, 4, 6), 2)
T.channel_shuffle(r(2, 6, 2), 3)
F.one_hot(i(4, 5), 6)
F.dropout(r(4, 5), 0.4)
F.alpha_dropout(r(4, 5), 0.4, True)
T.alpha_dropout(r(4, 5), 0.4, True)
T.feature_alpha_dropout(r(4, 5, 2), 0.4, True)
T.feature_dropout(r(4, 5, 2), 0.4, True)
T.dropout_(r(4, 5) * 1, 0.4, True)
T.alpha_dropout_(r(4, 5) * 1, 0.4, True)
F.dropout2d(r(2, 5, 2, 2), 0.4)
"""

RESIZES = (
    [
        f"F.interpolate(r({', '.join(map(str, shape))}), {how}, mode='{mode}'{more})"
        for shape, modes in (
            ((2, 3, 5), ["nearest", "nearest-exact", "linear"]),
            ((2, 2, 5, 4), ["nearest", "nearest-exact", "bilinear", "bicubic"]),
            ((1, 2, 3, 4, 3), ["nearest", "nearest-exact", "trilinear"]),
        )
        for mode in modes
        for how in (
            "7",
            "scale_factor=2",
            "scale_factor=1.7",
            "scale_factor=0.6",
            "scale_factor=1.7, recompute_scale_factor=True",
            "3",
        )
        for more in (["", ", align_corners=True"] if "linear" in mode or "cubic" in mode else [""])
    ]
    + [
        f"F.interpolate(r(2, 2, 7, 6), {how}, mode='{mode}', antialias=True{more})"
        for mode in ("bilinear", "bicubic", "lanczos")
        for how in ("3", "(4, 9)", "scale_factor=0.4", "scale_factor=1.3")
        for more in (["", ", align_corners=True"] if mode != "lanczos" else [""])
    ]
    + [
        "F.interpolate(r(1, 2, 5, 4).double(), (3, 7), mode='bicubic')",
        "F.interpolate(r(1, 2, 5, 4).half(), (3, 7), mode='bilinear')",
        "F.interpolate(r(1, 2, 5, 4).to(memory_format=T.channels_last), (3, 7), mode='bilinear')",
        "F.interpolate(i(200, 1, 2, 5, 4).to(T.uint8), (3, 7))",
        "F.interpolate(r(0, 2, 5), 3)",
        "F.upsample(r(1, 2, 5), 7)",
        "F.interpolate(r(1, 2, 5, 4), (3, 7), mode='area')",
        "F.interpolate(r(1, 2, 5, 4), scale_factor=0.5, mode='area')",
    ]
)

GRIDS = [
    f"F.grid_sample(r({shape}), r({points}) * 0.7, '{mode}', '{pad}', {align})"
    for shape, points in (("2, 2, 5, 4", "2, 3, 4, 2"), ("1, 2, 3, 4, 3", "1, 2, 3, 2, 3"))
    for mode in ("bilinear", "nearest", "bicubic")
    for pad in ("zeros", "border", "reflection")
    for align in (True, False)
] + [
    "F.grid_sample(r(1, 1, 1, 1), r(1, 2, 2, 2), 'bilinear', 'reflection', True)",
    "F.grid_sample(r(2, 3, 4, 4).double(), r(2, 0, 3, 2).double(), align_corners=False)",
    "F.grid_sample(r(1, 2, 4, 4).half(), r(1, 3, 3, 2).half(), align_corners=False)",
    "T.grid_sampler(r(1, 2, 4, 4), r(1, 3, 3, 2), 0, 1, True)",
    "F.affine_grid(r(2, 2, 3), (2, 3, 4, 5), align_corners=True)",
    "F.affine_grid(r(2, 2, 3), (2, 3, 4, 1), align_corners=False)",
    "F.affine_grid(r(2, 3, 4), (2, 3, 4, 5, 2), align_corners=False)",
    "F.affine_grid(r(1, 3, 4), (1, 3, 1, 3, 2), align_corners=True)",
    "T.affine_grid_generator(r(2, 2, 3), (2, 3, 4, 5), True)",
]

ERRORS = """
F.glu(r(3))
F.glu(r(()))
F.glu(r(2, 4), 5)
F.glu(i(5, 4))
F.hardtanh(r(3), 2, 1)
F.hardtanh(r(3) > 0)
F.threshold(r(3) > 0, 1, 1)
F.softshrink(r(3), -1)
F.softshrink(i(5, 3))
F.hardshrink(i(5, 3))
F.celu(r(3), 0.)
F.celu(i(5, 3))
F.selu(i(5, 3))
F.mish(i(5, 3))
F.hardswish(i(5, 3))
F.hardsigmoid(i(5, 3))
F.rrelu(r(3), 0.5, 0.2)
F.rrelu(i(5, 3))
F.rrelu(i(5, 3), training=True)
F.prelu(r(2, 3), p(2))
F.prelu(r(2, 3), p(2, 2))
F.prelu(r(2, 3), p(3).double())
F.prelu(r(()), p(3))
F.elu_(r(3))
F.selu(r(3), True)
F.kl_div(r(3), r(3), reduction='x')
F.kl_div(r(3), i(5, 3))
F.poisson_nll_loss(r(3), r(3), reduction='x')
F.hinge_embedding_loss(r(3), r(3), reduction='x')
F.cosine_embedding_loss(r(3, 4), r(3, 4), r(3, 1))
F.cosine_embedding_loss(r(4), r(4), r(3))
F.margin_ranking_loss(r(3, 4), r(4), r(3, 4))
F.triplet_margin_loss(r(3, 4), r(3, 4), r(3, 4), margin=-1)
F.triplet_margin_loss(r(3, 4), r(3, 4), r(4))
F.multi_margin_loss(r(3, 4), i(4, 3), p=3)
F.multi_margin_loss(r(3, 4), i(4, 3), weight=p(2))
F.multi_margin_loss(r(3, 4), i(4, 3), weight=p(4, 1))
F.multi_margin_loss(r(3, 4), i(4, 2))
F.multi_margin_loss(r(3, 4), i(4, 3) + 4)
F.multi_margin_loss(r(3, 4), i(4, 3).int())
F.multi_margin_loss(r(2, 3, 4), i(4, 2))
F.multi_margin_loss(r(3, 4).half(), i(4, 3))
F.multi_margin_loss(r(3, 4), i(4, 3), reduction='x')
F.multilabel_margin_loss(r(3, 4), i(4, 3))
F.multilabel_margin_loss(r(3, 4), i(4, 3, 4) + 4)
F.multilabel_margin_loss(r(3, 4), i(4, 3, 4) - 9)
F.multilabel_margin_loss(r(3, 4), r(3, 4))
F.multilabel_margin_loss(r(3, 4).half(), i(4, 3, 4))
F.soft_margin_loss(r(3, 4), r(3))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6, 7]), T.tensor([2, 2]))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6]), T.tensor([2, 2]))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6, 6]), T.tensor([2, 3]))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6, 6]), T.tensor([2]))
F.ctc_loss(r(6, 2, 5), T.tensor([1, 2, 3]), T.tensor([6, 6]), T.tensor([2, 2]))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6., 6.]), T.tensor([2, 2]))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6, 6]), T.tensor([2, 2]), blank=5)
F.ctc_loss(r(6, 2, 5).half(), T.tensor([[1, 2], [3, 4]]), T.tensor([6, 6]), T.tensor([2, 2]))
F.ctc_loss(r(6, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([6, 6]), T.tensor([2, -2]))
F.ctc_loss(r(0, 2, 5), T.tensor([[1, 2], [3, 4]]), T.tensor([0, 0]), T.tensor([2, 2]))
F.ctc_loss(r(6, 2, 5), T.ones(2, 2, 2).long(), T.tensor([6, 6]), T.tensor([2, 2]))
F.pdist(r(3))
F.pdist(r(3, 2), -1)
F.pdist(i(5, 3, 2))
T.cdist(r(3, 5), r(3, 3))
T.cdist(r(3), r(3, 3))
T.cdist(r(3, 3), r(3))
T.cdist(r(3, 3), r(3, 3), -1)
T.cdist(r(3, 3), r(3, 3), 2, 'foo')
T.cdist(i(5, 3, 3), r(3, 3))
T.cdist(r(3, 3), i(5, 3, 3))
T.cdist(r(3, 3), r(3, 3).double())
T.cdist(r(2, 3, 4), r(3, 3, 4))
F.grid_sample(r(2, 3, 5, 4), r(2, 3, 3, 3), align_corners=True)
F.grid_sample(r(2, 3, 5, 4), r(3, 3, 3, 2), align_corners=True)
F.grid_sample(r(2, 3, 5, 4), r(2, 3, 3, 3, 3), align_corners=True)
F.grid_sample(r(2, 3, 5, 4), r(2, 3, 3, 2), 'x', align_corners=True)
F.grid_sample(r(2, 3, 5, 4), r(2, 3, 3, 2), 'nearest', 'x', align_corners=True)
F.grid_sample(r(2, 3, 5, 4).double(), r(2, 3, 3, 2), align_corners=True)
F.grid_sample(r(3, 5, 4), r(2, 3, 3, 2), align_corners=True)
F.grid_sample(r(2, 3, 0, 4), r(2, 3, 3, 2), align_corners=True)
F.affine_grid(r(2, 2, 2), (2, 3, 4, 5), align_corners=True)
F.affine_grid(r(2, 2, 3), (2, 3, 4), align_corners=True)
F.affine_grid(i(5, 2, 2, 3), (2, 3, 4, 5), align_corners=True)
F.affine_grid(r(2, 2, 3), (2, 3, 4, 0), align_corners=True)
F.affine_grid(r(2, 2, 3), (2, 3, 4, 5, 6), align_corners=True)
F.interpolate(r(2, 3, 5, 4))
F.interpolate(r(2, 3, 5, 4), 3, 2.)
F.interpolate(r(2, 3, 5, 4), (3,))
F.interpolate(r(2, 3, 5, 4), scale_factor=(2.,))
F.interpolate(r(2, 3, 5, 4), 3, align_corners=True)
F.interpolate(r(2, 3, 5, 4), 3, mode='zz')
F.interpolate(r(2, 3, 5, 4), 3, mode='linear')
F.interpolate(r(2, 3, 5), 3, mode='bilinear')
F.interpolate(r(2, 3, 5), 3, mode='bicubic')
F.interpolate(r(2, 3, 5, 4), 3, mode='trilinear')
F.interpolate(r(2, 3, 5, 4), 3, recompute_scale_factor=True)
F.interpolate(r(2, 3, 5, 4), 0)
F.interpolate(r(2, 3, 5, 4), -1)
F.interpolate(r(3, 4), 3)
F.interpolate(r(2, 0, 3, 3), 3)
F.interpolate(r(2, 2, 0, 3), 3)
F.interpolate(r(2, 3, 5, 4), scale_factor=0.1)
F.interpolate(r(2, 3, 5, 4), (3, 4.5))
F.interpolate(r(2, 3, 5), 3, mode='linear', antialias=True)
F.interpolate(r(2, 3, 5, 4), 3, mode='lanczos')
F.interpolate(r(2, 3, 5, 4), 3, mode='lanczos', antialias=True, align_corners=True)
"""


def lines(table):
    return table.strip().splitlines() if isinstance(table, str) else table


EDGES = [-math.inf, -6.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, math.inf, math.nan]


class Scope:
    """The names that calls use; every leaf that they made."""

    def __init__(self, T, seed):
        self.T, self.leaves, self.random = T, [], random.Random(seed)

    def _made(self, shape, low, high, grad=True):
        shape = shape[0] if shape and isinstance(shape[0], tuple) else shape
        numbers = [round(self.random.uniform(low, high), 3) for _ in range(math.prod(shape))]
        t = self.T.tensor(numbers, dtype=self.T.float32).reshape(shape)
        if grad:
            self.leaves.append(t.requires_grad_())
        return t

    def names(self):
        T = self.T
        return {
            "T": T,
            "F": T.nn.functional,
            "math": math,
            "r": lambda *shape: self._made(shape, -2.0, 2.0),
            "p": lambda *shape: self._made(shape, 0.1, 0.9),
            "i": lambda n, *shape: (self._made(shape, 0, n - 0.01, False)).floor().long(),
            "signs": lambda *shape: (self._made(shape, -1, 1, False) > 0).float() * 2 - 1,
            "edge": lambda: self.leaves.append(T.tensor(EDGES, requires_grad=True)) or self.leaves[-1],
        }


def evaluate(code, T):
    scope = Scope(T, code)
    T.manual_seed(3)
    return eval(code, scope.names()), scope.leaves


def numbers(t):
    return [float(f"{x:.5g}") for x in t.detach().double().reshape(-1).tolist()]


def weighted(T, y):
    weights = T.tensor([math.cos(k) for k in range(y.numel())], dtype=T.float64).reshape(y.shape)
    return (y.double() * weights).sum()


def saved(node):
    """The numbers and names that the node shows."""
    found = {a[7:]: getattr(node, a) for a in dir(node) if a.startswith("_saved_")}
    plain = {k: v for k, v in found.items() if isinstance(v, (bool, int, float, str, tuple, type(None)))}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in sorted(plain.items())}


def record(code, T, second=True):
    """What a call gives: its result, gradients, and the gradients of their squares."""
    y, leaves = evaluate(code, T)
    made = {"shape": list(y.shape), "dtype": str(y.dtype), "strides": list(y.stride()), "values": numbers(y)}
    if not y.requires_grad:
        return made
    made["node"] = y.grad_fn.name()
    # A node says what it saved while it still has it.
    made["saved"] = saved(y.grad_fn)
    grads = T.autograd.grad(weighted(T, y), leaves, create_graph=second, allow_unused=True)
    made["grads"] = [None if g is None else numbers(g) for g in grads]
    if second:
        moved = [weighted(T, g * g) for g in grads if g is not None and g.requires_grad]
        again = T.autograd.grad(sum(moved), leaves, allow_unused=True) if moved else [None] * len(leaves)
        made["again"] = [None if g is None else numbers(g) for g in again]
    return made


def error(code, T):
    """The kind and the first sentence of what the call raises."""
    try:
        evaluate(code, T)
    except Exception as e:
        return [type(e).__name__, str(e).split("\n")[0].split(". ")[0].rstrip(".")]
    return None
