"""What a transform's function may not do, and the small helpers beside the transforms."""

import pytest

from library import T, assert_values

func = T.func
X = T.tensor([1.0, 2.0])

TRANSFORMS = {
    "grad": lambda f: func.grad(f)(X),
    "vmap": lambda f: func.vmap(f)(X),
    "jvp": lambda f: func.jvp(f, (X,), (X,)),
    "jacrev": lambda f: func.jacrev(f)(X),
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "vjp": lambda f: func.vjp(f, X),
    "hessian": lambda f: func.hessian(f)(X),
}
by_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


@by_transform
@pytest.mark.parametrize("change", [lambda x: x.requires_grad_(), lambda x: T.ones(2).requires_grad_(False)])
def test_who_wants_gradients_is_the_transforms_affair(transform, change):
    with pytest.raises(RuntimeError, match=r"^You are attempting to call Tensor.requires_grad_\(\) \(or perhaps using torch"):
        transform(lambda x: change(x).sum())
    x = T.ones(2).requires_grad_()
    assert x.requires_grad


@by_transform
def test_no_backward_inside(transform):
    leaf = T.ones(2, requires_grad=True)
    for call in (lambda: leaf.sum().backward(), lambda: T.autograd.backward(leaf.sum())):
        with pytest.raises(RuntimeError, match=r"^backward\(\) called inside a functorch transform."):
            transform(lambda x: (call(), x.sum())[1])
    leaf.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]


def test_no_retained_gradient_inside():
    with pytest.raises(RuntimeError, match=r"^You are attempting to call Tensor.retain_grad\(\) inside of a function being"):
        func.grad(lambda x: (x * 2).retain_grad() or x.sum())(X)


@by_transform
def test_new_leaves_may_be_made_inside(transform):
    transform(lambda x: (T.ones(2, requires_grad=True) * x.sum()).sum())


@by_transform
def test_a_function_that_raises_leaves_its_transform(transform):
    def fails(x):
        raise KeyError

    with pytest.raises(KeyError):
        transform(fails)
    assert T.ones(2).requires_grad_().requires_grad


def test_a_function_without_outputs():
    with pytest.raises(RuntimeError, match=r"^vjp\(f, \*primals\): Expected f to be a function that has non-empty output"):
        func.vjp(lambda x: (), X)


# --- helpers ---


def test_functionalize():
    def add(x):
        y = x.view(-1)
        y.add_(1)
        return y * 2

    x = T.ones(2)
    assert func.functionalize(add)(x).tolist() == [4.0, 4.0] and x.tolist() == [2.0, 2.0]
    assert func.functionalize(add, remove="mutations_and_views")(x).tolist() == [6.0, 6.0]
    assert_values(func.vmap(func.functionalize(lambda x: x.clone().add_(1)))(X), X + 1)
    with pytest.raises(
        RuntimeError, match=r"^functionalize\(f, remove='mutations'\): received invalid argument for remove=all."
    ):
        func.functionalize(add, remove="all")


def test_debug_unwrap():
    seen = []

    def look(x):
        seen.append((tuple(func.debug_unwrap(x).shape), tuple(func.debug_unwrap(x, recurse=False).shape)))
        return x

    func.vmap(func.vmap(look))(T.ones(2, 3))
    func.vmap(look)(T.ones(2, 3))
    look(T.ones(3))
    assert seen == [((2, 3), (3,) if seen[0][1] == (3,) else (2,)), ((2, 3), (2, 3)), ((3,), (3,))]


class Scale:
    """As much of a module as the helpers ask for."""

    training = True

    def __init__(self, weight):
        self.weight = weight

    def named_parameters(self):
        yield "weight", self.weight

    def named_buffers(self):
        return iter(())


def test_stacked_state():
    models = [Scale(T.ones(2, requires_grad=True)), Scale(T.zeros(2, requires_grad=True))]
    params, buffers = func.stack_module_state(models)
    assert list(params) == ["weight"] and buffers == {}
    assert params["weight"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert params["weight"].is_leaf and params["weight"].requires_grad


def test_what_does_not_stack():
    with pytest.raises(RuntimeError, match="^stack_module_state: Expected at least one model, got 0."):
        func.stack_module_state([])
    models = [Scale(T.ones(2, requires_grad=True)), Scale(T.ones(2))]
    with pytest.raises(RuntimeError, match="to have the same .requires_grad"):
        func.stack_module_state(models)
    models[0].training = False
    with pytest.raises(RuntimeError, match="^stack_module_state: Expected all models to have the same training/eval mode."):
        func.stack_module_state(models)


def test_normalisations_without_running_statistics():
    class Norm:
        track_running_stats = True

        def __init__(self):
            self.running_mean, self.running_var, self.num_batches_tracked = T.zeros(2), T.ones(2), T.tensor(0)

    class Model:
        def __init__(self):
            self.norm = Norm()

        def modules(self):
            return iter((self, self.norm))

    if T.__name__ == "torch":
        Norm = T.nn.BatchNorm1d  # noqa: F811
        model = T.nn.Sequential(Norm(2))
        norm = model[0]
    else:
        model = Model()
        norm = model.norm
    assert func.replace_all_batch_norm_modules_(model) is model
    assert norm.running_mean is norm.running_var is norm.num_batches_tracked is None
    assert norm.track_running_stats is False
