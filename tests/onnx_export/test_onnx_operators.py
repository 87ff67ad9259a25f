"""Each operator that has a form, alone: its own numbers here and in onnxruntime, with a batch of another size."""

import onnx
import pytest
from test_onnx_models import check

from library import T

F = T.nn.functional
pytestmark = pytest.mark.gradiron

ORDER = T.tensor([0, 2, 1])
WEIGHT = T.linspace(-1, 1, 108).reshape(4, 3, 3, 3)
TURNED = WEIGHT.transpose(0, 1).contiguous()
TABLE = T.arange(100.0).reshape(50, 2)


class Function(T.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def written(x):
    y = x.clone()
    y[:, 0] = 1.0
    y[..., 1] += 2
    y[:, 1, ORDER] = x[:, 0, :3]
    z = x * 1
    z[z > 0] = 0.0
    w = T.zeros_like(x)
    w[:, :2] = x[:, 1:]
    v = x * 1
    v[:, ORDER] *= 2
    mask = T.ones(8)
    mask[3] = 0
    u = x.relu().add_(1).mul_(mask)
    u.masked_fill_(u > 2, 3.0).clamp_(max=2.5)
    x = x + 1
    x[0] += 1
    x[:, 1:][..., 0].zero_()
    part = x[:, 1]
    part.mul_(3)
    x[0, 1] = x[1, 1]
    t = T.empty_like(x)
    t.copy_(x[0])
    return x, y, z, w, v, u, t.zero_() + t.fill_(2)


OPERATORS = {
    "rounding": lambda x: (x.round(), x.floor(), x.ceil(), x.trunc(), x.frac(), x.int().floor(), x.round(decimals=1)),
    "powers": lambda x: (x.abs().sqrt(), x.abs().rsqrt(), x**2, 2**x, x.square(), x.exp2(), x.reciprocal(), abs(x), -x),
    "logarithms": lambda x: (x.exp(), x.expm1(), *(getattr(x.abs() + 1, f"log{name}")() for name in ("", "2", "10", "1p"))),
    "trigonometry": lambda x: (x.sin(), x.cos(), x.tan(), x.atan(), x.sinh(), x.cosh(), x.asinh(), x.tanh(), x.sinc()),
    "angles": lambda x: (T.atan2(x, x + 1), T.hypot(x, x), x.deg2rad(), x.rad2deg(), x.clamp(-1, 1).acos(), x.erf(), x.erfc()),
    "arithmetic": lambda x: (x % 2, x // 2, x / 3, 3 / x, 3 - x, T.div(x, 0.3, rounding_mode="trunc"), x.fmod(0.7), 1 + x),
    "integers": lambda x: (x.int() + 1.5, (x * 5).int() // 2, (x * 5).int() % 3, (x * 9).int() << 2, (x * 9).int() >> 1),
    "three": lambda x: (x.lerp(x * 2, 0.3), T.addcmul(x, x, x, value=2), T.addcdiv(x, x, x.abs() + 1), T.where(x > 0, x, 0.0)),
    "comparisons": lambda x: (x == 0, x != 0, x < 0, x <= x.mean(), x > 1, x >= 1, T.isclose(x, x + 1e-9), x.eq(x.int())),
    "logic": lambda x: ((x > 0) & (x < 1), (x > 0) | (x < -1), (x > 0) ^ (x > 1), ~(x > 0), T.logical_not(x), T.logical_and(x, x)),
    "extrema": lambda x: (T.maximum(x, x * 2), T.minimum(x, -x), x.clamp(0, 1), x.clamp(min=x * 0.5), x.clamp_min(0), x.clamp_max(0)),
    "no numbers": lambda x: (x.log().isnan(), (1 / (x * 0)).isinf(), x.log().nan_to_num(1.0), (1 / x).isfinite(), x.log().nansum(1)),
    "special": lambda x: (T.xlogy(x.abs(), x.abs()), T.logaddexp(x, x * 2), T.heaviside(x, x), x.sigmoid().logit(), T.special.expit(x)),
    "dtypes": lambda x: (x.half().float(), x.double().mean(), x.type(T.int32), x.to("cpu"), (x > 0).to(x), x.long(), x.bool()),
    "sums": lambda x: (x.sum(), x.sum((1, 2)), x.mean((2, 3), keepdim=True), x.prod(1), (x > 0).sum(), x.logsumexp(1), x.cumsum(2)),
    "variances": lambda x: (x.var(1), x.std(), x.std(0), T.var_mean(x, (1, 2)), T.std_mean(x, 1), x.var(1, unbiased=False)),
    "norms": lambda x: (x.norm(dim=1), x.norm(), F.normalize(x), T.linalg.vector_norm(x, 3, -1), T.linalg.norm(x, dim=1)),
    "distances": lambda x: (F.cosine_similarity(x, x + 1), F.pairwise_distance(x, x + 1), T.cdist(x, x * 2), x.norm(1, dim=1)),
    "places": lambda x: (x.max(1), x.min(-1)[0], x.max(), x.argmax(1), x.argmin(), x.amax((1, 2)), x.amin(0), x.aminmax(dim=1)),
    "order": lambda x: (x.topk(3, -1), x.sort(1), x.argsort(1, descending=True), (x > 0).any(1), (x > 0).all(), x.count_nonzero(1)),
    "softmax": lambda x: (x.softmax(1), x.log_softmax(-1), F.softmin(x, 1), x.softmax(1, dtype=T.float64)),
    "views": lambda x: (x.flatten(1), x.view(x.size(0), 3, -1), x.reshape(-1, 8), x.unflatten(3, (2, 4)), x.view_as(x), x.ravel()),
    "permutations": lambda x: (x.permute(0, 2, 3, 1), x.transpose(1, 2), x.mT, x.movedim(1, -1), x[0, 0].T, x[0, 0].t()),
    "repeated": lambda x: (x.expand(2, *x.shape), x.repeat(1, 2, 1, 1), x.tile(2), x.repeat_interleave(2, 1), x[:, :1].expand_as(x)),
    "joined": lambda x: (T.cat([x, x.int()], 1), T.stack([x, x], -1), T.hstack([x, x]), T.vstack([x, x]), T.column_stack([x, x])),
    "split": lambda x: (x.split(2, 1), x.chunk(2, 2), x.unbind(1), x.narrow(1, 0, 2), x.hsplit(3), x.tensor_split(3, 2)),
    "turned": lambda x: (x.flip(1), x.roll(2, 2), x.roll((1, -1), (2, 3)), x.rot90(1, (2, 3)), x.rot90(2, (2, 3)), x.fliplr()),
    "dimensions": lambda x: (x[:, None].squeeze(1), x.unsqueeze(-1), T.atleast_3d(x[0, 0]), T.broadcast_tensors(x, x[:, :1])),
    "triangles": lambda x: (x.tril(), x.triu(1), x.diagonal(0, 2, 3), x[0, 0].trace(), x.diff(), x.diff(prepend=x[..., :1]), T.eye(x.size(0)), x.unfold(2, 3, 2)),
    "grids": lambda x: (T.meshgrid(x[0, 0, 0], x[0, 0, 1], indexing="xy"), T.meshgrid(x[0, 0, 0], x[0, 0, 1], indexing="ij")),
    "read": lambda x: (x[:, 0], x[..., 1:], x[:, None], x[:, ::2, 1:-1], x[:, ORDER], x[:, :, ORDER, ORDER], x[:, -1, ..., 2]),
    "read more": lambda x: (x[0], x[-1, :, ORDER], x[:, [0, 2]], x[:, T.tensor([True, False, True])], x[ORDER[0]], x[..., None]),
    "written": written,
    "gathered": lambda x: (x.gather(1, (x > 0).long()), x.index_select(1, ORDER), x.take(ORDER), T.take_along_dim(x, (x > 0).long(), 1)),
    "scattered": lambda x: (x.scatter(1, (x > 0).long(), 5.0), x.scatter_add(1, (x > 0).long(), x), x.scatter_reduce(1, (x > 0).long(), x, "amax")),
    "by index": lambda x: (x.index_fill(1, ORDER[:2], 3.0), x.index_copy(1, ORDER, x * 2), x.index_add(1, ORDER, x, alpha=2)),
    "embedded": lambda x: (F.embedding((x * 3).abs().long(), TABLE), F.one_hot((x * 3).abs().long(), 50)),
    "new": lambda x: (T.zeros(x.shape[0], 3), x.new_ones(x.size(0), 2), T.full((x.shape[0],), 3.0), T.zeros_like(x), T.full_like(x, 2)),
    "ranges": lambda x: (T.arange(x.shape[0] * 2), T.arange(0, x.shape[0], 0.5), T.linspace(0, 1, 5), T.ones(x.shape[0], x.shape[0]).triu(1)),
    "tensors": lambda x: (T.tensor([x[0, 0, 0, 0], 2.0]), x + T.tensor([1.0]), T.as_tensor(x), T.stack(list(x[0])), sum(x[0])),
    "sizes": lambda x: (x.sum() / x.shape[0], x.mean() * x.numel(), T.zeros(-(-x.shape[0] // 2)), T.ones(x.shape[0] % 4 + 1), x.shape[0] * x),
    "products": lambda x: (x @ x, T.matmul(x, x.mT), T.bmm(x[:, 0], x[:, 1]), T.mv(x[0, 0], x[0, 0, 0]), T.dot(x[0, 0, 0], x[0, 0, 1])),
    "more products": lambda x: (T.outer(x[0, 0, 0], x[0, 0, 1]), T.addmm(x[0, 0], x[0, 0], x[0, 0], alpha=2), T.baddbmm(x[:, 0], x[:, 0], x[:, 1], beta=0.5)),
    "einsum": lambda x: (T.einsum("bchw,bdhw->bcd", x, x), T.einsum("b c h w -> b c", x), T.tensordot(x, x, ([1, 3], [1, 3]))),
    "linalg": lambda x: (T.linalg.vecdot(x, x), T.linalg.det(x / 3), T.linalg.cross(x, x.flip(1), dim=1), T.linalg.multi_dot([x[0, 0]] * 3)),
    "convolutions": lambda x: (F.conv2d(x, WEIGHT, padding="same"), F.conv2d(x, WEIGHT, stride=2, padding=1, dilation=2), F.conv1d(x[:, :, 0], WEIGHT[:, :, 0])),
    "more convolutions": lambda x: (F.conv2d(x[0], WEIGHT), F.conv3d(x[:, :, None], WEIGHT[:, :, None]), F.conv_transpose2d(x, TURNED, stride=2, output_padding=1)),
    "pooling": lambda x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool2d(x, 2, return_indices=True), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "adaptive pooling": lambda x: (F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_max_pool2d(x, 2), F.avg_pool2d(x, 2, divisor_override=3), F.lp_pool2d(x, 2, 2)),
    "padding": lambda x: (F.pad(x, (1, 2, 0, 1), value=2.0), F.pad(x[0], (1, 2), "replicate"), F.pad(x, (1, 2, 0, 1), "circular"), F.pad(x > 0, (1, 1))),
    "normalized": lambda x: (F.layer_norm(x, (8, 8)), F.group_norm(x, 3), F.instance_norm(x), F.batch_norm(x, None, None, training=True), F.rms_norm(x, (8,))),
    "resized": lambda x: (F.interpolate(x, scale_factor=1.7, mode="bilinear"), F.interpolate(x, (13, 5), mode="bilinear", align_corners=True)),
    "resized more": lambda x: (F.interpolate(x, (5, 5), mode="bilinear", antialias=True), F.interpolate(x, (3, 3), mode="area"), F.interpolate(x, (13, 17), mode="bicubic")),
    "folded": lambda x: (F.fold(F.unfold(x, 2, stride=2), (8, 8), 2, stride=2), F.channel_shuffle(x, 3), F.affine_grid(x[:, 0, :2, :3], (x.size(0), 1, 4, 4), align_corners=False)),
    "hidden keys": lambda x: F.scaled_dot_product_attention(x, x, x, x > 1.5),
    "attention": lambda x: (F.scaled_dot_product_attention(x, x, x, T.ones(8, 8, dtype=T.bool).tril()), F.scaled_dot_product_attention(x, x, x, T.ones(8, 8), scale=0.3)),
    "grouped attention": lambda x: F.scaled_dot_product_attention(x.repeat(1, 2, 1, 1), x, x, is_causal=True, enable_gqa=True),
    "losses": lambda x: (F.mse_loss(x, x * 2), F.l1_loss(x, x * 2), F.smooth_l1_loss(x, x * 2), F.huber_loss(x, x * 2), F.triplet_margin_loss(x, x + 1, x - 1)),
    "class losses": lambda x: (F.cross_entropy(x, (x[:, 0] > 0).long()), F.nll_loss(x, (x[:, 0] > 0).long()), F.kl_div(x, x.softmax(1), reduction="batchmean")),
    "binary losses": lambda x: (F.binary_cross_entropy_with_logits(x, (x > 0).float()), F.binary_cross_entropy(x.sigmoid(), (x > 0).float())),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_computes_the_same_in_onnxruntime(name):
    T.manual_seed(0)
    x = T.randn(2, 3, 8, 8)
    module = Function(OPERATORS[name]).eval()
    program = T.onnx.export(module, (x,), input_names=["x"], dynamic_axes={"x": {0: "batch"}}, opset_version=21)
    onnx.checker.check_model(program.model_proto, full_check=True)
    check(program, module, (x,))
    check(program, module, (T.randn(5, 3, 8, 8),), 2e-5)
