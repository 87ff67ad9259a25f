"""After the same `manual_seed` the CPU draws PyTorch's own numbers, bit for bit; the GPU draws its own, the same everywhere."""

import golden_file
import pytest
import random_cases

from library import T, assert_values

TABLE = golden_file.read("random.json")


@pytest.mark.parametrize("code", TABLE)
def test_draws(code):
    row = TABLE[code]
    for n, expected in row["shown"].items():
        actual = random_cases.draw(code, int(n), 0, T)
        assert actual == expected, f"n = {n}, first differences: {difference(actual, expected)}"
    for n, expected in zip(random_cases.SIZES, row["digests"]):
        assert random_cases.digest(random_cases.draw(code, n, 0, T)) == expected, f"n = {n}"
    for seed, expected in zip(random_cases.SEEDS, row["seeds"]):
        assert random_cases.digest(random_cases.draw(code, 21, seed, T)) == expected, f"seed {seed}"


def difference(actual, expected):
    return [(k, a, e) for k, (a, e) in enumerate(zip(actual, expected)) if a != e][:3]


def test_table_is_what_the_cases_say():
    assert list(TABLE) == random_cases.CASES.strip().splitlines()


def test_manual_seed_returns_the_generator_and_initial_seed_tells():
    generator = T.manual_seed(1234)
    assert generator is T.default_generator
    assert T.initial_seed() == 1234


def test_the_state_can_be_saved_and_restored():
    T.manual_seed(3)
    T.randn(5)
    state = T.get_rng_state()
    assert state.dtype == T.uint8 and state.numel() == 5056
    a = T.cat([T.randn(7), T.rand(20)])
    T.set_rng_state(state)
    assert T.equal(T.cat([T.randn(7), T.rand(20)]), a)


def test_a_seed_of_its_own():
    first, second = T.seed(), T.seed()
    assert isinstance(first, int) and first != second


def test_generators_are_independent():
    g = T.Generator()
    g.manual_seed(5)
    a = T.rand(4, generator=g)
    T.manual_seed(0)
    b = T.rand(4)
    g.manual_seed(5)
    T.rand(100)
    assert T.equal(T.rand(4, generator=g), a)
    T.manual_seed(0)
    assert T.equal(T.rand(4), b)
    assert g.initial_seed() == 5
    assert str(g.device) == "cpu"


def test_generator_state():
    g = T.Generator().manual_seed(9)
    T.randn(3, generator=g)
    state = g.get_state()
    a = T.randn(20, generator=g)
    g.set_state(state)
    assert T.equal(T.randn(20, generator=g), a)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: T.rand(3, generator=g),
        lambda g: T.randn(3, generator=g),
        lambda g: T.randint(9, (3,), generator=g),
        lambda g: T.randperm(9, generator=g),
        lambda g: T.empty(3).uniform_(generator=g),
        lambda g: T.empty(3).normal_(generator=g),
        lambda g: T.bernoulli(T.full((30,), 0.5), generator=g),
        lambda g: T.empty(30).bernoulli_(0.5, generator=g),
        lambda g: T.normal(0.0, 1.0, (3,), generator=g),
    ],
)
def test_generator_argument(draw):
    g = T.Generator()
    first = draw(g.manual_seed(1))
    assert T.equal(draw(g.manual_seed(1)), first)
    assert not T.equal(draw(g.manual_seed(2)), first)


def test_seeding_the_device(device):
    def draw():
        T.manual_seed(7)
        return [
            T.rand(50, device=device),
            T.randn(51, device=device),
            T.randint(100, (5,), device=device),
            T.bernoulli(T.full((40,), 0.5, device=device)),
            T.randperm(20, device=device),
        ]

    for a, b in zip(draw(), draw()):
        assert a.tolist() == b.tolist()
        assert str(a.device).startswith(device)
    assert T.rand(50, device=device).tolist() != T.rand(50, device=device).tolist()


def test_distributions(device):
    T.manual_seed(11)
    n = 20_000
    u = T.rand(n, device=device)
    assert 0 <= u.min().item() and u.max().item() < 1
    assert abs(u.mean().item() - 0.5) < 0.01 and abs(u.var().item() - 1 / 12) < 0.005
    z = T.randn(n, device=device)
    assert abs(z.mean().item()) < 0.03 and abs(z.std().item() - 1) < 0.03
    assert abs((z.abs() < 1).float().mean().item() - 0.6827) < 0.015
    i = T.randint(3, 7, (n,), device=device)
    assert sorted(set(i.tolist())) == [3, 4, 5, 6]
    p = T.bernoulli(T.full((n,), 0.25, device=device))
    assert abs(p.mean().item() - 0.25) < 0.015
    assert sorted(T.randperm(100, device=device).tolist()) == list(range(100))


def test_random_in_place_keeps_the_tensor_and_counts_a_write():
    x = T.zeros(4)
    assert x.uniform_() is x and x.normal_() is x and x._version == 2


def test_random_through_views_leaves_the_rest():
    x = T.zeros(3, 4)
    x[:, 1].uniform_(1, 2)
    assert (x[:, 1] >= 1).all()
    x[:, 1] = 0
    assert_values(x, [[0.0] * 4] * 3)


@pytest.mark.parametrize("kind, most", [("float32", 3.4e38), ("float64", 1.7e308), ("float16", 65504.0), ("bfloat16", 3.3e38)])
def test_a_range_beyond_the_numbers_is_refused(kind, most):
    x = T.ones(2, dtype=getattr(T, kind))
    with pytest.raises(RuntimeError, match="which result in to-from to exceed the limit"):
        x.uniform_(-most, most)
    assert x.tolist() == [1.0, 1.0] and x.uniform_(0, most).isfinite().all()


def test_numbers_from_one_on():
    def draw(start, kind):
        T.manual_seed(3)
        return T.empty(4, dtype=kind).random_(start, None).tolist()

    assert draw(5, T.int8) == [114, 7, 66, 80]
    assert draw(0, T.bool) == [False, False, True, True]
    assert draw(5, T.float16) == [843.0, 169.0, 1786.0, 2004.0]
    assert draw(5, T.float32) == [72099.0, 1771237.0, 4796370.0, 453092.0]
    assert draw(-5, T.int64)[:2] == [937055941807507086, 3839649608876091001]
    assert draw(-(2**63), T.int64)[:2] == [-8286316095047268712, -5383722427978684797]
    assert draw(2**62, T.int64)[:2] == [5548741960234895000, 8451335627303478915]
    T.manual_seed(3)
    assert T.empty(4, dtype=T.int64).random_(5).tolist() == [1, 3, 2, 2]
    with pytest.raises(RuntimeError, match="^from is out of bounds for unsigned char"):
        T.empty(1, dtype=T.uint8).random_(-5, None)
    with pytest.raises(TypeError):
        T.empty(1).random_(0, "a")


def test_empty_draws():
    for x in (T.rand(0), T.randn(0, 3), T.randint(5, (0,)), T.randperm(0)):
        assert x.numel() == 0


def test_requires_grad_of_draws():
    assert T.rand(2, requires_grad=True).is_leaf
    assert T.randn(2, requires_grad=True).requires_grad


def test_gradient_of_in_place_draws_is_zero():
    x = T.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    y.sum().backward()
    assert_values(x.grad, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "draw, name",
    [
        (lambda x: T.normal(x, 1.0), "NormalBackward1"),
        (lambda x: T.normal(0.0, x), "NormalBackward2"),
        (lambda x: T.normal(x, x), "NormalBackward3"),
        (lambda x: T.normal(x.detach(), x), "NormalBackward3"),
        (lambda x: T.normal(x, T.ones(2, 3)), "NormalBackward3"),
    ],
)
def test_draws_about_recorded_means_are_recorded(draw, name):
    x = T.ones(3, requires_grad=True)
    y = draw(x)
    assert y.grad_fn.name() == name
    y.sum().backward()
    assert_values(x.grad, [0.0, 0.0, 0.0])
    with T.no_grad():
        assert not draw(x).requires_grad


def test_what_multinomial_refuses():
    for replacement, words in {
        False: ["probability tensor contains either `inf`, `nan` or element < 0"] * 2,
        True: [
            "invalid multinomial distribution \\(encountering probability entry < 0\\)",
            "invalid multinomial distribution \\(encountering probability entry = infinity or NaN\\)",
        ],
    }.items():
        for wrong, text in zip((-1.0, float("inf")), words):
            with pytest.raises(RuntimeError, match=text):
                T.multinomial(T.tensor([1.0, wrong, 1.0]), 2, replacement)


def test_complex_normal_numbers_share_mean_and_variance():
    T.manual_seed(0)
    plain = T.zeros(40, dtype=T.complex64).normal_()
    T.manual_seed(0)
    moved = T.zeros(40, dtype=T.complex64).normal_(-2, 0.5)
    assert T.allclose(moved, plain * 0.5 + T.tensor(-2 - 2j), atol=1e-6)


def test_dropout_of_complex_numbers():
    x = T.full((1000,), 1 + 2j, dtype=T.complex64, requires_grad=True)
    T.manual_seed(0)
    made = T.nn.functional.dropout(x, 0.25)
    T.manual_seed(0)
    kept = T.nn.functional.dropout(T.ones(1000), 0.25)
    assert T.equal(made, kept * x)
    made.real.sum().backward()
    assert T.equal(x.grad, kept.to(T.complex64))
    assert not T.nn.functional.dropout(x, 1.0).any()


def test_the_last_whole_number_is_drawn(device):
    last = 2**63 - 1
    drawn = T.empty(4, dtype=T.int64, device=device)
    assert drawn.random_(last, None).tolist() == [last] * 4
    assert drawn.random_(-(last + 1), None).unique().numel() == 4
