"""Warnings of operators: which call warns of what, every time or once in a process."""

import warnings

import pytest

from library import T, leaf, python_ok, tensor

F = T.nn.functional
V, M = tensor([1.0, 2.0]), tensor([[1.0, 2.0], [3.0, 4.0]])
BYTES = T.tensor([1, 0], dtype=T.uint8)

ALWAYS = [
    (lambda: T.range(1, 4), "torch.range is deprecated and will be removed in a future release"),
    (lambda: tensor([1.0]).std(), "std\\(\\): degrees of freedom is <= 0. Correction should be strictly less than"),
    (lambda: T.var(M, 0, correction=2), "var\\(\\): degrees of freedom is <= 0"),
    (lambda: T.var_mean(tensor([1.0])), "var_mean\\(\\): degrees of freedom is <= 0"),
    (lambda: T.std_mean(M, 1, correction=3), "std_mean\\(\\): degrees of freedom is <= 0"),
    (lambda: F.softmax(V), "Implicit dimension choice for softmax has been deprecated. Change the call to include dim=X"),
    (lambda: F.log_softmax(V), "Implicit dimension choice for log_softmax has been deprecated"),
    (lambda: V[BYTES], "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."),
    (lambda: M[BYTES, BYTES], "indexing with dtype torch.uint8 is now deprecated"),
    (lambda: F.softmin(V), "Implicit dimension choice for softmin has been deprecated"),
    (
        lambda: V.new_tensor(V),
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach\\(\\).clone\\(\\)",
    ),
    *(
        (
            lambda loss=loss: getattr(F, loss)(V, V[:1]),
            "Using a target size \\(torch.Size\\(\\[1\\]\\)\\) that is different to the input size \\(torch.Size\\(\\[2\\]\\)\\). This will",
        )
        for loss in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    ),
]


@pytest.mark.parametrize("call, words", ALWAYS)
def test_warned_each_time(call, words):
    for _ in range(2):
        with pytest.warns(UserWarning, match=words):
            call()


ONCE = {
    "T.meshgrid(x, x)": "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
    "T.cross(T.ones(3), T.ones(3))": "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim",
    "T.where(T.tensor([1, 0], dtype=T.uint8), x, x)": "where received a uint8 condition tensor. This behavior is deprecated",
    "T.chain_matmul(T.ones(2, 2), T.ones(2, 2))": "torch.chain_matmul is deprecated and will be removed in a future",
    "T.tensor([T.ones((), requires_grad=True)])": "Converting a tensor with requires_grad=True to a scalar may lead to",
    "float(T.ones(1, requires_grad=True))": "Converting a tensor with requires_grad=True to a scalar may lead to unexpected",
    "T.stft(T.ones(20), 8, return_complex=True)": "A window was not provided. A rectangular window will be applied,which is known",
    "T.istft(T.ones(5, 6) + 0j, 8)": "A window was not provided. A rectangular window will be applied.Please provide the same",
    "T.ones(3).scatter(0, i, T.ones(1), reduce='add')": "The reduce argument of torch.scatter with Tensor src is deprecated",
}


@pytest.mark.parametrize("call", ONCE)
def test_warned_once(call):
    done = python_ok(
        "import warnings\n"
        "x, i = T.ones(2), T.tensor([0])\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    for _ in range(3): {call}\n"
        f"assert len(caught) == 1 and str(caught[0].message).startswith({ONCE[call]!r}), [str(w.message) for w in caught]\n"
        "print('told')"
    )
    assert done.strip() == "told"


def test_numbers_are_taken_freely_where_nothing_is_recorded():
    done = python_ok(
        "import warnings\n"
        "warnings.simplefilter('error')\n"
        "x = T.ones((), requires_grad=True)\n"
        "with T.no_grad(): print(float(x), T.tensor([x * 2]))\n"
    )
    assert done.strip() == "1.0 tensor([2.])"


def test_no_warning_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        T.var(M), M.std(0), tensor([1.0]).std(unbiased=False), T.cross(T.ones(3), T.ones(3), dim=0)
        T.meshgrid(V, V, indexing="ij"), F.softmax(V, 0), F.mse_loss(V, V)
        T.ones(3).scatter(0, T.tensor([0]), 2.0, reduce="add")


def test_a_warning_made_an_error_is_raised_and_nothing_is_recorded():
    x = leaf([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="degrees of freedom"):
            x.std()
        with pytest.raises(UserWarning, match="Implicit dimension choice"):
            F.softmax(x)


@pytest.mark.parametrize("shape, dim", [((), 0), ((2,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((1, 2, 3, 4), 1)])
def test_the_dimension_that_is_guessed(shape, dim):
    x = T.arange(T.ones(shape).numel() * 1.0).reshape(shape)
    with pytest.warns(UserWarning, match="Implicit"):
        assert T.equal(F.softmax(x), F.softmax(x, dim))
