"""Properties of functions of `nn.functional`: what undoes what, sums that stay, definitions by plain loops, both devices."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import IS_GRADIRON, T, assert_values, devices

F = T.nn.functional
SEEDS = st.integers(0, 2**16)


def values(*shape, seed=0, kind=T.float64):
    T.manual_seed(seed)
    return T.rand(shape, dtype=kind) * 4 - 2


IN_PLACE = {
    "threshold": lambda x, **o: F.threshold(x, 0.1, 2.0, **o),
    "rrelu": lambda x, **o: F.rrelu(x, **o),
    "hardtanh": lambda x, **o: F.hardtanh(x, -0.5, 0.7, **o),
    "relu6": lambda x, **o: F.relu6(x, **o),
    "hardsigmoid": lambda x, **o: F.hardsigmoid(x, **o),
    "hardswish": lambda x, **o: F.hardswish(x, **o),
    "mish": lambda x, **o: F.mish(x, **o),
    "celu": lambda x, **o: F.celu(x, 0.7, **o),
    "selu": lambda x, **o: F.selu(x, **o),
}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(IN_PLACE)), st.permutations(range(3)), SEEDS)
def test_in_place_they_write_what_they_would_make(name, order, seed):
    f = IN_PLACE[name]
    x = values(2, 3, 4, seed=seed).permute(order)
    expected, version = f(x.clone()), x._version
    assert f(x, inplace=True) is x and x._version == version + 1
    assert T.equal(x, expected)


@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_in_place_gradients_are_those_of_the_other_form(name):
    f, x = IN_PLACE[name], values(3, 4).requires_grad_()
    (expected,) = T.autograd.grad((f(x * 2) ** 2).sum(), x)
    (found,) = T.autograd.grad((f(x * 2, inplace=True) ** 2).sum(), x)
    # (PyTorch keeps 1 / alpha of celu in single precision.)
    assert_values(found, expected, 1e-6, 1e-7)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        f(x, inplace=True)


@pytest.mark.parametrize("training", [False, True])
def test_slopes_of_rrelu_lie_between_its_bounds(training):
    x = -T.ones(1000)
    y = -F.rrelu(x, 0.2, 0.4, training)
    assert (0.2 <= y).all() and (y <= 0.4).all() and (bool((y != y[0]).any()) == training)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_shuffles_are_undone(seed):
    x = values(2, 12, 4, 6, seed=seed)
    assert T.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert T.equal(F.channel_shuffle(F.channel_shuffle(x, 3), 4), x)


RULES = {
    3: [("nearest", {}), ("nearest-exact", {}), ("linear", {}), ("linear", {"align_corners": True})],
    4: [("nearest", {}), ("nearest-exact", {}), ("bilinear", {}), ("bicubic", {}), ("bicubic", {"align_corners": True}),
        ("bilinear", {"antialias": True}), ("bicubic", {"antialias": True}), ("lanczos", {"antialias": True})],
    5: [("nearest", {}), ("nearest-exact", {}), ("trilinear", {}), ("trilinear", {"align_corners": True})],
}  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(rank, *rule) for rank, rules in RULES.items() for rule in rules]), st.data())
def test_resizing_keeps_what_is_alike(case, data):
    rank, mode, options = case
    shape = [2, 1] + [data.draw(st.integers(1, 9)) for _ in range(rank - 2)]
    size = [data.draw(st.integers(1, 9)) for _ in range(rank - 2)]
    y = F.interpolate(T.full(shape, 1.5, dtype=T.float64), size, mode=mode, **options)
    assert list(y.shape) == [2, 1, *size]
    assert_values(y, T.full_like(y, 1.5), 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("dims", "mode", "kernel"),
    [
        (1, "nearest", "compute_indices_weights_nearest"),
        (3, "nearest-exact", "compute_indices_weights_nearest"),
        (1, "linear", "compute_indices_weights_linear"),
        (3, "trilinear", "compute_indices_weights_linear"),
        (2, "bicubic", "compute_indices_weights_cubic"),
        (2, "bicubic antialias", "compute_index_ranges_weights"),
    ],
)
def test_interpolation_of_whole_numbers_is_refused(dims, mode, kernel):
    mode, *antialias = mode.split()
    with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Long'"):
        F.interpolate(T.ones(1, 2, *[4] * dims, dtype=T.int64), 7, mode=mode, antialias=bool(antialias))


@pytest.mark.parametrize("size", [(2, 3), (4, 3), (2, 6), (4, 6), (1, 1)])
def test_nearest_elements_are_copied_whole(size):
    """Signs of zeros, infinities and NaNs too; of more lines than are resized together, and to the same size."""
    x = T.randn(9, 2, 2, 3)
    x[0, 0] = T.tensor([[-0.0, float("inf"), float("nan")], [0.0, -float("inf"), -0.0]])
    y = F.interpolate(x, size)
    rows, columns = (T.arange(n) * had // n for n, had in zip(size, (2, 3), strict=True))
    chosen = x[:, :, rows][..., columns]
    assert T.equal(y.view(T.int32), chosen.view(T.int32))
    assert y.data_ptr() != x.data_ptr()


def test_lines_stay_lines_between_corners():
    x = T.linspace(-3, 5, 7, dtype=T.float64).reshape(1, 1, 7)
    y = F.interpolate(x, 11, mode="linear", align_corners=True)
    assert_values(y, T.linspace(-3, 5, 11, dtype=T.float64).reshape(1, 1, 11))


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["bilinear", "nearest", "bicubic"]),
    st.sampled_from(["zeros", "border", "reflection"]),
    st.booleans(),
    SEEDS,
)
def test_the_grid_of_the_identity_changes_nothing(mode, padding, align, seed):
    for dims in (2, 3):
        x = values(2, 3, *range(3, 3 + dims), seed=seed)
        theta = T.eye(dims, dims + 1, dtype=T.float64).expand(2, dims, dims + 1)
        grid = F.affine_grid(theta, x.shape, align_corners=align)
        assert_values(F.grid_sample(x, grid, mode, padding, align), x, 1e-9, 1e-9)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, math.inf]), SEEDS)
def test_distances_are_norms_of_differences(p, seed):
    x, y = values(4, 3, seed=seed), values(5, 3, seed=seed + 1)
    expected = T.stack([T.stack([T.linalg.vector_norm(a - b, p) for b in y]) for a in x]) if hasattr(T, "linalg") else None
    found = T.cdist(x, y, p)
    if expected is None:
        expected = T.stack([T.stack([T.norm(a - b, p) for b in y]) for a in x])
    assert_values(found, expected)
    own = T.cdist(x, x, p)
    assert_values(F.pdist(x, p), T.stack([own[i, j] for i in range(4) for j in range(i + 1, 4)]))


def test_a_matrix_product_gives_the_same_distances():
    x, y = values(30, 4), values(7, 4, seed=1)
    exact = T.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    assert_values(T.cdist(x, y), exact, 1e-7, 1e-7)


def test_equal_vectors_have_no_slope():
    x = T.zeros(3, 2, dtype=T.float64, requires_grad=True)
    for p in (0.5, 1.0, 2.0, 3.0, math.inf):
        (g,) = T.autograd.grad(T.cdist(x, x, p).sum() + F.pdist(x, p).sum(), x)
        assert g.tolist() == [[0.0, 0.0]] * 3


def spelled(path, blank):
    return [c for c, _ in itertools.groupby(path) if c != blank]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 2), max_size=3), st.integers(1, 4), SEEDS)
def test_ctc_is_the_sum_over_all_alignments(target, steps, seed):
    p = values(steps, 1, 3, seed=seed).log_softmax(-1)
    paths = (path for path in itertools.product(range(3), repeat=steps) if spelled(path, 0) == target)
    total = sum(math.exp(sum(p[t, 0, c].item() for t, c in enumerate(path))) for path in paths)
    labels = T.tensor([target + [1] * (3 - len(target))])
    loss = F.ctc_loss(p, labels, (steps,), (len(target),), reduction="none").item()
    assert math.isclose(math.exp(-loss), total, rel_tol=1e-9, abs_tol=1e-12)
    if math.isfinite(loss):
        logits = values(steps, 1, 3, seed=seed).requires_grad_()
        call = lambda x: F.ctc_loss(x.log_softmax(-1), labels, (steps,), (len(target),), reduction="sum")  # noqa: E731
        assert T.autograd.gradcheck(call, (logits,))


def test_ctc_has_no_second_derivative_and_no_loss_without_end():
    p = values(3, 1, 3).requires_grad_()
    (g,) = T.autograd.grad(F.ctc_loss(p.log_softmax(-1), T.tensor([[1, 2]]), (3,), (2,)), p, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_ctc_loss_backward is not implemented"):
        g.sum().backward()
    far = lambda zero: F.ctc_loss(p.log_softmax(-1), T.tensor([[1, 1, 2]]), (2,), (3,), zero_infinity=zero)  # noqa: E731
    assert math.isinf(far(False).item()) and far(True).item() == 0.0
    assert T.autograd.grad(far(True), p)[0].tolist() == [[[0.0] * 3]] * 3


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([1, 2]), SEEDS)
def test_margins_by_their_definitions(p, seed):
    x = values(3, 4, seed=seed)
    T.manual_seed(seed)
    t = T.randint(0, 4, (3,))
    lacks = lambda n, y, i: max(0.0, 1.0 - x[n, y].item() + x[n, i].item())  # noqa: E731
    expected = [sum(lacks(n, y, i) ** p for i in range(4) if i != y) / 4 for n, y in enumerate(t.tolist())]
    assert_values(F.multi_margin_loss(x, t, p, reduction="none"), expected)
    lists = T.randint(-1, 4, (3, 4))
    expected = []
    for n, row in enumerate(lists.tolist()):
        own = list(itertools.takewhile(lambda y: y >= 0, row))
        expected.append(sum(lacks(n, y, i) for y in own for i in range(4) if i not in own) / 4)
    assert_values(F.multilabel_margin_loss(x, lists, reduction="none"), expected)


def on(device):
    """Calls whose results both devices have."""
    x, y, s = (values(3, 4, seed=k, kind=T.float32).to(device).requires_grad_() for k in range(3))
    signs, t = s.detach().sign(), T.tensor([1, 0, 3], device=device)
    image = values(1, 2, 5, 4, kind=T.float32).to(device).requires_grad_()
    grid = (values(1, 3, 3, 2, seed=5, kind=T.float32) * 0.6).to(device).requires_grad_()
    yield from (
        F.multi_margin_loss(x, t, 2),
        F.multilabel_margin_loss(x, T.tensor([[3, 0, -1, 1]] * 3, device=device)),
        F.soft_margin_loss(x, signs),
        F.hinge_embedding_loss(x, signs),
        F.cosine_embedding_loss(x, y, signs[:, 0]),
        F.margin_ranking_loss(x, y, signs),
        F.poisson_nll_loss(x, y.detach().abs(), full=True),
        F.kl_div(x, y.detach().softmax(-1), reduction="batchmean"),
        F.triplet_margin_loss(x, y, s, swap=True),
        F.rrelu(x),
        F.prelu(x, y[0]),
        F.glu(x),
        F.pdist(x, 3.0),
        T.cdist(x, y, 1.0),
        T.cdist(x, y),
        F.pixel_shuffle(x.reshape(1, 12, 1, 1), 2),
        *(F.interpolate(image, (7, 3), mode=mode) for mode in ("nearest", "bilinear", "bicubic")),
        F.interpolate(image, (3, 3), mode="bicubic", antialias=True),
        *(F.grid_sample(image, grid, mode, "reflection", False) for mode in ("bilinear", "nearest", "bicubic")),
        F.affine_grid(values(2, 2, 3, kind=T.float32).to(device), (2, 1, 3, 4), align_corners=False),
    )


@pytest.mark.skipif("cuda" not in devices(), reason="no GPU")
def test_both_devices_agree():
    for k, (own, other) in enumerate(zip(on("cpu"), on("cuda"))):
        assert other.device.type == "cuda", k
        assert_values(other.cpu(), own, 1e-4, 1e-5)


ALIGNED = {
    "rows": ((5, 3, 4), [[1, 2, 2], [3, 1, 1], [2, 2, 2]], (5, 4, 5), (2, 3, 1), {}),
    "one after the other": ((6, 2, 3), [1, 1, 2], (6, 5), (2, 1), {"reduction": "sum"}),
    "another blank": ((6, 2, 3), [[0, 1], [1, 0]], (6, 6), (2, 2), {"blank": 2, "reduction": "none"}),
    "no labels": ((3, 2, 3), [[1], [1]], (3, 2), (0, 1), {"reduction": "none"}),
    "no labels at all": ((3, 2, 3), [], (3, 2), (0, 0), {"reduction": "none"}),
    "without end": ((3, 2, 4), [[1, 1, 1], [1, 2, 3]], (3, 3), (3, 3), {"reduction": "none"}),
    "without end, as zero": ((3, 2, 4), [[1, 1, 1], [1, 2, 3]], (3, 3), (3, 3), {"zero_infinity": True}),
    "no steps": ((3, 2, 3), [[1], [1]], (0, 3), (0, 1), {"reduction": "none"}),
    "one sample": ((4, 3), [1, 2], (4,), (2,), {}),
    "many places": ((300, 1, 5), [[1 + k % 4 for k in range(140)]], (300,), (140,), {}),
}


@pytest.mark.skipif("cuda" not in devices(), reason="no GPU")
@pytest.mark.parametrize("name", ALIGNED)
def test_ctc_on_both_devices(name):
    shape, labels, *lengths, options = ALIGNED[name]
    found = []
    for device in ("cpu", "cuda"):
        x = (T.arange(math.prod(shape)).sin() * 2).reshape(shape).to(device).requires_grad_()
        targets = T.tensor(labels, dtype=T.int64, device=device)
        loss = F.ctc_loss(x.log_softmax(-1), targets, *lengths, **options)
        loss.nan_to_num(posinf=7.0).sum().backward()
        assert loss.device.type == x.grad.device.type == device
        found.append((loss.detach().cpu(), x.grad.cpu()))
    for own, other in zip(*found):
        assert_values(other, own, 2e-4, 1e-5)


@pytest.mark.skipif("cuda" not in devices(), reason="no GPU")
def test_ctc_on_the_gpu_refuses_labels_that_are_no_classes():
    x = T.zeros(2, 1, 2, device="cuda")
    with pytest.raises(IndexError, match="2 classes"):
        F.ctc_loss(x, T.tensor([[5]], device="cuda"), (2,), (1,))


@pytest.mark.skipif(T.__name__ == "torch", reason="what PyTorch does with these differs by version")
def test_sizes_that_there_is_no_room_for_are_refused():
    x, none = T.zeros(1, 1, 2, 2), T.zeros(1, 0, 2, 2)
    calls = (
        lambda: F.interpolate(x, 2**40),
        lambda: F.interpolate(x, scale_factor=1e30),
        lambda: F.interpolate(x, scale_factor=math.nan),
        lambda: F.pixel_shuffle(none, 2**40),
        lambda: F.pixel_unshuffle(T.zeros(1, 1, 0, 0), 2**40),
        lambda: T._core._nn._resample(T.zeros(3), 0, [3]),
    )
    for k, call in enumerate(calls):
        with pytest.raises(RuntimeError):
            call()
            pytest.fail(f"call {k}")
    y = T.zeros(1, 0, 2, requires_grad=True)
    F.channel_shuffle(y, 2**40).sum().backward()
    assert y.grad.shape == (1, 0, 2)
    # A factor that does not fit the size looks beyond the end.
    assert T._core._nn._resample(T.ones(1, 1, 3, 3), 4, [2, 2], None, 0.001, 0.001).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("name", ["l1_loss", "huber_loss", "mse_loss"])
def test_losses_by_weights(name):
    """The mean is by the sum of the weights; that of the Huber loss by their number."""
    x, weight = T.tensor([1.0, -1.0], requires_grad=True), T.tensor([1.0, 3.0])
    half = 0.5 if name == "huber_loss" else 1.0
    for reduction, expected in (("none", [half, 3 * half]), ("sum", 4 * half), ("mean", 1.0)):
        loss = getattr(F, name)(x, T.zeros(2), reduction=reduction, weight=weight)
        assert_values(loss, expected, 1e-6)
    (gradient,) = T.autograd.grad(loss, x)
    assert_values(gradient, {"mse_loss": [0.5, -1.5], "l1_loss": [0.25, -0.75], "huber_loss": [0.5, -1.5]}[name], 1e-6)
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        getattr(F, name)(x, T.zeros(2), weight=T.ones(1))


@pytest.mark.parametrize("target", [-0.5, 1.5])
def test_targets_that_are_no_probabilities(target):
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        F.binary_cross_entropy(T.tensor([0.5]), T.tensor([target]))


def test_what_is_said_of_operands_that_do_not_fit():
    ones = T.ones
    for error, message, call in (
        (RuntimeError, "mat1 and mat2 must have the same dtype, but got Double and Float",
         lambda: F.linear(ones(2, 3).double(), ones(4, 3), ones(4))),
        (RuntimeError, "both arguments to linear need to be at least 1D, but they are 0D and 2D",
         lambda: F.linear(ones(()), ones(2, 3))),
        (RuntimeError, "bilinear.*: input1 size does not match weight size: got 4 but expected 3",
         lambda: F.bilinear(ones(2, 4), ones(2, 3), ones(5, 3, 3))),
        (RuntimeError, "sliding blocks as .-1, -1., which is too small .non-positive.",
         lambda: F.fold(ones(1, 9, 1), (1, 1), (3, 3))),
        (RuntimeError, "Negative padding value is resulting in an empty dimension",
         lambda: F.pad(ones(1, 1, 3), (-2, -2), mode="circular")),
        (ValueError, "for size [a-z]+.Size..1, 1, 2, 2... Got [a-z]+.Size..1, 3, 4..",
         lambda: F.affine_grid(ones(1, 3, 4), T.Size((1, 1, 2, 2)), align_corners=False)),
        (ValueError, "requested an output size of .29., but valid sizes range from .30. to .32.",
         lambda: T.nn.ConvTranspose1d(4, 2, 3, stride=3)(ones(3, 4, 10), output_size=[3, 2, 29])),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


def test_grids_of_one_place_warn():
    with pytest.warns(UserWarning, match="unit-size grids when align_corners=True"):
        assert F.affine_grid(T.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True).tolist() == [[[[-1, 0], [1, 0]]]]


@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
def test_shuffles_keep_the_memory_format(name):
    x = T.arange(64.0).reshape(1, 4, 4, 4)
    call = getattr(F, name)
    made = call(x.contiguous(memory_format=T.channels_last), 2)
    assert made.is_contiguous(memory_format=T.channels_last) and T.equal(made, call(x, 2)) and call(x, 2).is_contiguous()


def test_negative_slopes_of_rrelu_in_place():
    x = T.tensor([-1.0, 1.0], requires_grad=True)
    cases = [(-2.0, -2.0, True), (-3.0, -1.0, True)]
    if IS_GRADIRON:  # PyTorch refuses the derivative.
        cases += [(-3.0, -1.0, False), (-3.0, 1.0, False)]
    for low, high, training in cases:
        y = F.rrelu(x.clone(), low, high, training, inplace=True)
        (g,) = T.autograd.grad(y.sum(), x)
        assert g[0] == -y[0] and low <= g[0] <= high and g[1] == 1


def test_rrelu_over_expanded_memory():
    with pytest.raises(RuntimeError, match="unsupported operation"):
        F.rrelu(T.ones(1).expand(3), training=True, inplace=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_dropout_of_complex_numbers(dtype):
    x = T.full((64,), 1 + 2j, dtype=getattr(T, dtype), requires_grad=True)
    T.manual_seed(0)
    made = F.dropout(x)
    made.backward(T.ones_like(x))
    assert made.dtype is x.dtype and set(made.tolist()) == {0, 2 + 4j}
    assert T.equal(x.grad, made / (1 + 2j))
    kept, mask = T.native_dropout(x.detach(), 0.5, True)
    assert T.equal(kept != 0, mask) and mask.any() and not mask.all()


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"])
def test_operators_and_functions_refuse_probabilities_by_their_own_errors(name):
    for p in (-0.1, 1.1):
        with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1, but got"):
            getattr(T, name)(T.ones(2, 2), p, True)
        if hasattr(F, name):
            with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got"):
                getattr(F, name)(T.ones(2, 2), p, True)


def test_native_dropout_draws_even_when_it_keeps_everything():
    T.manual_seed(0)
    made, kept = T.native_dropout(T.ones(4), 0.0, True)
    assert made.tolist() == [1] * 4 and kept.all()
    after = T.rand(1)
    T.manual_seed(0)
    T.empty(4).bernoulli_(1.0)
    assert T.equal(after, T.rand(1))
