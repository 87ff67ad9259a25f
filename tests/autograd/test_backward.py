"""`backward` and `autograd.grad`: what is computed, where it accumulates, what is kept and what is freed."""

import weakref

import pytest

from library import T, assert_values, leaf, tensor


def test_a_scalar_needs_no_gradient(device):
    x = leaf([1.0, 2.0, 3.0], device)
    (x * x).sum().backward()
    assert_values(x.grad, [2.0, 4.0, 6.0])
    assert x.grad.device == x.device and not x.grad.requires_grad and x.grad.is_leaf


def test_a_vector_takes_the_gradient_that_it_is_given(device):
    x = leaf([1.0, 2.0, 3.0], device)
    (x * x).backward(tensor([1.0, 0.1, 10.0], device=device))
    assert_values(x.grad, [2.0, 0.4, 60.0])


def test_gradient_by_keyword_and_for_one_element():
    x = leaf([2.0])
    (x**3).backward()
    assert_values(x.grad, [12.0])
    x.grad = None
    (x**3).backward(gradient=T.tensor([0.5]))
    assert_values(x.grad, [6.0])


def test_gradients_accumulate(device):
    x = leaf([1.0, 2.0], device)
    for _ in range(3):
        (x * 2).sum().backward()
    assert_values(x.grad, [6.0, 6.0])


def test_accumulation_keeps_the_tensor():
    x = leaf([1.0])
    (x * 2).backward()
    first = x.grad
    (x * 2).backward()
    assert x.grad is first
    assert_values(first, [4.0])


def test_every_path_counts(device):
    x = leaf([3.0], device)
    y = x * x
    z = y + y * x + x
    z.backward()
    assert_values(x.grad, [2 * 3 + 3 * 9 + 1.0])


def test_diamonds_stay_linear():
    x = leaf([1.0])
    y = x
    for _ in range(60):  # 2**60 paths, 60 nodes
        y = y + y
    y.backward()
    assert_values(x.grad, [2.0**60])


def test_retain_graph_lets_a_graph_be_used_again(device):
    x = leaf([1.0, 2.0], device)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_values(x.grad, (2 * x.detach().exp()))
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_graph_without_saved_values_may_be_used_twice():
    x = leaf([1.0, 2.0])
    y = (x + 1).mean()
    y.backward()
    y.backward()
    assert_values(x.grad, [1.0, 1.0])


def test_the_part_that_was_freed_fails_and_the_other_part_works():
    x = leaf([2.0])
    shared = x * x
    a, b = shared * 2, shared + 1
    a.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        b.backward()


def test_create_graph_gives_second_derivatives(device):
    x = leaf([1.0, 2.0], device)
    (x**3).sum().backward(create_graph=True, retain_graph=True)
    assert x.grad.requires_grad
    first = x.grad
    x.grad = None
    first.sum().backward()
    assert_values(x.grad, [6.0, 12.0])


def test_third_derivative():
    x = leaf([0.5], kind="float64")
    y = x.exp() * x.sin()
    for _ in range(3):
        (y,) = T.autograd.grad(y, x, create_graph=True)
    expected = 2 * x.exp() * (x.cos() - x.sin())
    assert_values(y, expected, rtol=1e-12)


def test_inputs_restricts_where_gradients_go():
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    y.backward(inputs=[w])
    assert x.grad is None
    assert_values(w.grad, [1.0])


def test_inputs_may_name_one_tensor_or_a_non_leaf():
    x = leaf([3.0])
    y = x * 2
    z = y * y
    z.backward(inputs=y)
    assert x.grad is None
    assert_values(y.grad, [12.0])


def test_several_roots():
    x = leaf([1.0, 2.0])
    a, b = (x * 2).sum(), x * x
    T.autograd.backward([a, b], [None, T.tensor([1.0, 10.0])])
    assert_values(x.grad, [2 + 2.0, 2 + 40.0])


def test_a_root_given_twice_counts_twice():
    x = leaf([1.0])
    y = x * 3
    T.autograd.backward([y, y], [T.ones(1), T.ones(1)])
    assert_values(x.grad, [6.0])


def test_a_leaf_may_be_the_root():
    x = leaf([1.0, 2.0])
    x.backward(T.tensor([3.0, 4.0]))
    assert_values(x.grad, [3.0, 4.0])


def test_grad_returns_and_touches_nothing(device):
    x, w = leaf([1.0, 2.0], device), leaf([3.0, 4.0], device)
    result = T.autograd.grad((x * w).sum(), [x, w])
    assert isinstance(result, tuple)
    assert_values(result[0], [3.0, 4.0])
    assert_values(result[1], [1.0, 2.0])
    assert x.grad is None and w.grad is None


def test_grad_of_a_single_input_is_a_tuple():
    x = leaf([1.0])
    (g,) = T.autograd.grad(x * 2, x)
    assert_values(g, [2.0])


def test_grad_allow_unused_and_materialize():
    x, other = leaf([1.0, 2.0]), leaf([[1.0]])
    y = (x * x).sum()
    g, none = T.autograd.grad(y, [x, other], allow_unused=True, retain_graph=True)
    assert none is None
    g, zero = T.autograd.grad(y, [x, other], materialize_grads=True)
    assert_values(zero, [[0.0]])


def test_grad_with_respect_to_the_output_itself():
    x = leaf([2.0])
    y = x * x
    gy, gx = T.autograd.grad(y, [y, x])
    assert_values(gy, [1.0])
    assert_values(gx, [4.0])


def test_grad_of_an_intermediate_does_not_go_further():
    x = leaf([2.0])
    seen = []
    x.register_hook(lambda g: seen.append(g))
    y = x * 2
    (g,) = T.autograd.grad((y * y).sum(), y)
    assert_values(g, [8.0])
    assert seen == []


def test_grad_outputs():
    x = leaf([1.0, 2.0])
    (g,) = T.autograd.grad([x * 2, x * x], x, grad_outputs=[T.tensor([1.0, 1.0]), T.tensor([0.0, 1.0])])
    assert_values(g, [2.0, 6.0])


def test_broadcast_gradients_have_the_inputs_shape(device):
    a, b, c = leaf([[1.0, 2.0, 3.0]], device), leaf([[1.0], [2.0]], device), leaf(2.0, device)
    (a * b + c).sum().backward()
    assert_values(a.grad, [[3.0, 3.0, 3.0]])
    assert_values(b.grad, [[6.0], [6.0]])
    assert_values(c.grad, 6.0)


def test_non_leaves_keep_no_gradient_and_say_so():
    x = leaf([1.0])
    y = x * 2
    y.backward()
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_retain_grad(device):
    x = leaf([1.0, 2.0], device)
    y = x * 2
    assert y.retains_grad is False
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad is True
    assert y.grad is None
    (y * y).sum().backward()
    assert_values(y.grad, [4.0, 8.0])
    assert x.retains_grad is False
    x.retain_grad()
    assert x.retains_grad is False


def test_retained_gradients_accumulate():
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    for _ in range(2):
        (y * 3).sum().backward(retain_graph=True)
    assert_values(y.grad, [6.0])


def test_the_gradient_that_was_passed_in_is_not_aliased():
    x = leaf([1.0, 2.0])
    seed = T.ones(2)
    (x * 1).backward(seed)
    seed.fill_(9.0)
    x.clone().backward(T.ones(2))
    assert_values(x.grad, [2.0, 2.0])


def test_two_leaves_do_not_share_one_gradient():
    a, b = leaf([1.0]), leaf([1.0])
    (a + b).sum().backward()
    a.grad.zero_()
    assert_values(b.grad, [1.0])


def test_grad_may_be_set_and_cleared():
    x = leaf([1.0, 2.0])
    x.grad = T.tensor([5.0, 5.0])
    (x * 2).sum().backward()
    assert_values(x.grad, [7.0, 7.0])
    x.grad = None
    assert x.grad is None
    x.grad = T.ones(2)
    del x.grad
    assert x.grad is None


def test_leaves():
    x = leaf([1.0])
    assert x.is_leaf and x.grad_fn is None
    y = x + 1
    assert not y.is_leaf and y.requires_grad
    assert T.ones(1).is_leaf and (T.ones(1) + 1).is_leaf
    assert y.detach().is_leaf and not y.detach().requires_grad
    z = T.ones(1).requires_grad_()
    assert z.is_leaf and z.requires_grad
    z.requires_grad = False
    assert not z.requires_grad


def test_detach_cuts_and_shares():
    x = leaf([1.0, 2.0])
    y = x * 2
    d = y.detach()
    assert d.grad_fn is None and d.data_ptr() == y.data_ptr()
    (y * d).sum().backward()
    assert_values(x.grad, [4.0, 8.0])


def test_detach_in_place():
    x = leaf([1.0])
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None


def test_data_is_a_detached_alias_with_its_own_version():
    x = leaf([1.0, 2.0])
    y = x * x
    x.data.mul_(10)
    assert x.tolist() == [10.0, 20.0] and x._version == 0
    y.sum().backward()
    assert_values(x.grad, [20.0, 40.0])


def test_data_may_be_replaced():
    x = leaf([1.0, 2.0])
    x.data = T.tensor([5.0, 6.0, 7.0])
    assert x.tolist() == [5.0, 6.0, 7.0] and x.requires_grad and x.is_leaf


def test_grad_fn_tells_its_name_and_its_next_functions():
    x, w = leaf([1.0]), T.ones(1)
    y = x * w
    z = y.exp()
    assert z.grad_fn.name() == "ExpBackward0"
    ((node, index),) = z.grad_fn.next_functions
    assert node is y.grad_fn and index == 0
    (first, second) = y.grad_fn.next_functions
    assert first[0].name() == "torch::autograd::AccumulateGrad" and first[0].variable is x
    assert second == (None, 0)
    assert y.grad_fn is y.grad_fn
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
    assert type(y.grad_fn).__name__ == "MulBackward0"


NODES = """
x + 1                          AddBackward0
1 - x                          RsubBackward1
x - 1                          SubBackward0
x / 2                          DivBackward0
2 / x                          MulBackward0
x**2                           PowBackward0
2**x                           PowBackward2
x**x                           PowBackward1
-x                             NegBackward0
x @ x.t()                      MmBackward0
x.sum()                        SumBackward0
x.sum(0)                       SumBackward1
x.mean()                       MeanBackward0
x.mean(0)                      MeanBackward1
x.max()                        MaxBackward1
x.max(0)[0]                    MaxBackward0
x.t()                          TBackward0
x.view(4)                      ViewBackward0
x.transpose(0, 1)              TransposeBackward0
x[0]                           SelectBackward0
x[0:1]                         SliceBackward0
x[:, None]                     UnsqueezeBackward0
x[T.tensor([0, 1])]            IndexBackward0
x.clone()                      CloneBackward0
T.cat([x, x])                  CatBackward0
T.stack([x, x])                StackBackward0
x.relu()                       ReluBackward0
x.sigmoid()                    SigmoidBackward0
x.tanh()                       TanhBackward0
x.log()                        LogBackward0
x.sqrt()                       SqrtBackward0
x.abs()                        AbsBackward0
x.softmax(0)                   SoftmaxBackward0
x.log_softmax(0)               LogSoftmaxBackward0
x.clamp(0)                     ClampBackward1
x.to(T.float64)                ToCopyBackward0
x.expand(3, 2, 2)              ExpandBackward0
x.permute(1, 0)                PermuteBackward0
x.squeeze(0)                   SqueezeBackward1
x.unsqueeze(0)                 UnsqueezeBackward0
T.where(x > 0, x, -x)          WhereBackward0
T.maximum(x, -x)               MaximumBackward0
x.norm()                       LinalgVectorNormBackward0
x.prod()                       ProdBackward0
x.std()                        StdBackward0
x.cumsum(0)                    CumsumBackward0
x.logsumexp(0)                 LogsumexpBackward0
x.clone().add_(1)              AddBackward0
"""


@pytest.mark.parametrize("line", NODES.strip().splitlines(), ids=lambda line: line.rsplit(None, 1)[0])
def test_names_of_nodes(line):
    code, name = line.rsplit(None, 1)
    assert eval(code, {"T": T, "x": leaf([[1.0, 2.0], [3.0, 4.0]])}).grad_fn.name() == name


def test_a_freed_graph_says_so_before_it_touches_a_gradient():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    before = x.grad.clone()
    with pytest.raises(RuntimeError):
        y.backward()
    assert_values(x.grad, before)


def test_integer_results_are_not_differentiable():
    x = leaf([1.0, 5.0, 2.0])
    values, indices = x.max(0)
    assert values.requires_grad and not indices.requires_grad
    assert not x.argmax().requires_grad and not (x > 1).requires_grad
    assert not x.to(T.int64).requires_grad


def test_a_gradient_of_another_dtype_is_converted_where_the_conversion_was():
    x = leaf([1.0, 2.0])
    (x.double() * 3).sum().backward()
    assert x.grad.dtype == T.float32
    assert_values(x.grad, [3.0, 3.0])


def test_mixed_dtypes_give_each_leaf_its_own_dtype():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0], kind="float64")
    (a * b).sum().backward()
    assert a.grad.dtype == T.float32 and b.grad.dtype == T.float64


def test_empty_tensors_have_empty_gradients(device):
    x = T.zeros(0, 3, device=device, requires_grad=True)
    (x * 2).sum().backward()
    assert tuple(x.grad.shape) == (0, 3)


def test_an_exception_in_backward_leaves_the_graph_usable():
    x = leaf([1.0])
    y = x * x
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    assert_values(x.grad, [2.0])


def test_results_are_freed_when_nobody_holds_them():
    x = leaf([1.0])
    y = x * 2
    ghost = weakref.ref(y)
    z = y.exp()
    del y
    assert ghost() is None
    z.backward()
    assert x.grad is not None


def test_backward_inside_no_grad_works():
    x = leaf([3.0])
    y = x * x
    with T.no_grad():
        y.backward()
    assert_values(x.grad, [6.0])
    assert not x.grad.requires_grad


def test_the_same_program_gives_the_same_bits(device):
    def run():
        T.manual_seed(1)
        w = T.randn(20, 20, device=device, requires_grad=True)
        h = w
        for _ in range(5):
            h = (h @ w + h * 0.1).tanh()
        h.sum().backward()
        return w.grad.cpu().tolist()

    assert run() == run()


def test_a_network_learns(device):
    T.manual_seed(0)
    x = T.linspace(-1, 1, 64, device=device).reshape(64, 1)
    target = x**2
    w1, b1 = T.randn(1, 16).to(device), T.zeros(16, device=device)
    w2, b2 = T.randn(16, 1).to(device) * 0.3, T.zeros(1, device=device)
    parameters = [p.requires_grad_() for p in (w1, b1, w2, b2)]
    losses = []
    for _ in range(60):
        loss = (((x @ w1 + b1).tanh() @ w2 + b2 - target) ** 2).mean()
        loss.backward()
        with T.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad
                p.grad.zero_()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_zeros_for_unused_inputs_are_recorded_as_gradients_are():
    x, y = leaf([1.0]), leaf([2.0])
    for recorded in (True, False):
        found = T.autograd.grad(x * 2, (x, y), T.ones(1), create_graph=recorded, materialize_grads=True)
        assert_values(found[1], [0.0])
        assert found[1].requires_grad == recorded


def test_what_a_node_switches_ends_with_its_turn():
    modes = []

    class Switch(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            modes.append(T.is_grad_enabled())
            T.set_grad_enabled(not T.is_grad_enabled())
            return g

    x = leaf([1.0])
    Switch.apply(Switch.apply(x)).backward()
    T.autograd.grad(Switch.apply(Switch.apply(x)), x, create_graph=True)
    assert modes == [False, False, True, True] and T.is_grad_enabled()


def test_a_product_of_several_zeros_has_no_second_derivative_here():
    x = T.ones(1, dtype=T.float64, requires_grad=True)
    src = T.tensor([0.0, 0.0], dtype=T.float64, requires_grad=True)
    y = T.scatter_reduce(x, 0, T.tensor([0, 0]), src, "prod")
    (g,) = T.autograd.grad(y.sum(), src, create_graph=True)
    assert_values(g, [0.0, 0.0])
    with pytest.raises(RuntimeError, match="Double backward is unsupported for src when >1 zeros in src are scattered"):
        T.autograd.grad(g.sum(), src)
    # A single zero has one.
    src = T.tensor([0.0, 3.0], dtype=T.float64, requires_grad=True)
    (g,) = T.autograd.grad(T.scatter_reduce(x, 0, T.tensor([0, 0]), src, "prod").sum(), src, create_graph=True)
    assert_values(g, [3.0, 0.0])
    assert_values(T.autograd.grad(g.sum(), src)[0], [1.0, 1.0])


def test_a_gradient_left_out_has_no_batch():
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0"):
        T.autograd.grad((x * x).sum(), x, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        T.autograd.grad(x * x, x, is_grads_batched=True)
