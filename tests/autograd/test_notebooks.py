"""What five public notebooks on autograd do and print, end to end."""

import pytest

from library import T, assert_values

Variable = T.autograd.Variable


def shown(capsys, *things):
    print(*things)
    return capsys.readouterr().out


def powers():
    """a, b and e = sum((a b)^2), with the steps between."""
    a = T.tensor((1.0, 2.0, 3.0), requires_grad=True)
    b = T.tensor((2.0, 4.0, 6.0), requires_grad=True)
    c = a * b
    d = c**2
    return a, b, c, d, T.sum(d)


class TestExplained:
    """The pipeline, hooks, Function, no_grad, retain_grad."""

    def test_backward_prints(self, capsys):
        a, b, c, d, e = powers()
        e.backward()
        assert shown(capsys, a.data, b.data) == "tensor([1., 2., 3.]) tensor([2., 4., 6.])\n"
        assert shown(capsys, a.grad, b.grad) == "tensor([  8.,  64., 216.]) tensor([  4.,  32., 108.])\n"
        for result, name in [(c, "Mul"), (d, "Pow"), (e, "Sum")]:
            assert shown(capsys, result.grad_fn).startswith(f"<{name}Backward0 object at 0x")

    def test_twice(self, capsys):
        a, b, *_, e = powers()
        e.backward(retain_graph=True)
        e.backward()
        assert shown(capsys, a.grad, b.grad) == "tensor([ 16., 128., 432.]) tensor([  8.,  64., 216.])\n"

    def test_from_the_middle(self, capsys):
        a, b, c, d, _ = powers()
        d.backward(T.ones(c.shape[0]))
        assert shown(capsys, a.grad, b.grad) == "tensor([  8.,  64., 216.]) tensor([  4.,  32., 108.])\n"

    def test_detached(self):
        one = T.tensor((1.0, 1.0, 1.0), requires_grad=True)
        c = one.detach()
        with pytest.raises(RuntimeError) as caught:
            T.sum(c**2).backward()
        assert str(caught.value).splitlines()[0] == "element 0 of tensors does not require grad and does not have a grad_fn"
        assert (c.requires_grad, c.grad_fn) == (False, None)

    def test_hook(self, capsys):
        a, b, c, d, e = powers()

        def flip(grad):
            print(grad)
            return -grad

        d.register_hook(flip)
        e.backward()
        assert capsys.readouterr().out == "tensor([1., 1., 1.])\n"
        assert shown(capsys, a.grad, b.grad) == "tensor([  -8.,  -64., -216.]) tensor([  -4.,  -32., -108.])\n"

    def test_custom_function(self, capsys):
        class custom_function(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.x = x
                ctx.y = y
                return x * y

            @staticmethod
            def backward(ctx, grad_output):
                print(f"bp_grad : {grad_output}")
                return -ctx.x * grad_output, -ctx.y * grad_output

        a, b, *_ = powers()
        c = custom_function.apply(a, b)
        T.sum(c).backward()
        assert capsys.readouterr().out == "bp_grad : tensor([1., 1., 1.])\n"
        assert shown(capsys, a.grad, b.grad) == "tensor([-1., -2., -3.]) tensor([-2., -4., -6.])\n"
        assert "custom_functionBackward object at 0x" in repr(c.grad_fn)

    def test_no_grad(self, capsys):
        a, b, c, d, _ = powers()
        with T.no_grad():
            d.mul_(2)
        assert repr(d.grad_fn).startswith("<PowBackward0 object at 0x")
        T.sum(d).backward()
        assert_values(d, [8.0, 128.0, 648.0])
        assert shown(capsys, a.grad, b.grad) == "tensor([  8.,  64., 216.]) tensor([  4.,  32., 108.])\n"

    def test_retain_grad(self, capsys):
        *_, d, e = powers()
        d.retain_grad()
        assert shown(capsys, d.grad) == "None\n"
        e.backward()
        assert shown(capsys, d.grad) == "tensor([1., 1., 1.])\n"


class TestBlitz:
    """Tensors, gradients, Jacobian-vector products, element writes."""

    def test_print(self, capsys):
        x = T.ones(2, 2, requires_grad=True)
        assert shown(capsys, x) == "tensor([[1., 1.],\n        [1., 1.]], requires_grad=True)\n"
        y = x + 2
        assert shown(capsys, y) == "tensor([[3., 3.],\n        [3., 3.]], grad_fn=<AddBackward0>)\n"
        z = y * y * 3
        out = z.mean()
        assert shown(capsys, z, out) == (
            "tensor([[27., 27.],\n        [27., 27.]], grad_fn=<MulBackward0>) tensor(27., grad_fn=<MeanBackward0>)\n"
        )
        out.backward()
        assert shown(capsys, x.grad) == "tensor([[4.5000, 4.5000],\n        [4.5000, 4.5000]])\n"

    def test_requires_grad_in_place(self):
        a = T.randn(2, 2)
        a = (a * 3) / (a - 1)
        assert a.requires_grad is False
        assert a.requires_grad_(True) is a
        assert a.requires_grad is True
        assert (a * a).sum().grad_fn.name() == "SumBackward0"

    def test_jacobian_vector_product(self, capsys):
        x = T.tensor([0.4454, -0.4552, 1.3971], requires_grad=True)
        y = x * 2
        steps = 1
        while y.data.norm() < 1000:
            y, steps = y * 2, steps + 1
        assert shown(capsys, y) == "tensor([ 456.0896, -466.1248, 1430.6304], grad_fn=<MulBackward0>)\n"
        y.backward(T.tensor([0.1, 1.0, 0.0001], dtype=T.float))
        assert steps == 10
        assert shown(capsys, x.grad) == "tensor([1.0240e+02, 1.0240e+03, 1.0240e-01])\n"
        with pytest.raises(RuntimeError) as caught:
            y.backward()
        assert str(caught.value).splitlines()[0] == "grad can be implicitly created only for scalar outputs"

    def test_a_simple_gradient(self, capsys):
        a = T.tensor([2.0, 3.0], requires_grad=True)
        b = a + 3
        out = (b * b * 3).mean()
        out.backward()
        assert shown(capsys, "input: ", a.data) == "input:  tensor([2., 3.])\n"
        assert shown(capsys, "result is", out.data) == "result is tensor(91.5000)\n"
        assert shown(capsys, "gradients:", a.grad.data) == "gradients: tensor([15., 18.])\n"

    def test_element_writes(self, capsys):
        m = T.tensor([[2.0, 3.0]], requires_grad=True)
        n = T.zeros((1, 2))
        assert shown(capsys, n) == "tensor([[0., 0.]])\n"
        n[0, 0] = m[0, 0] ** 2
        n[0, 1] = m[0, 1] ** 3
        n.backward(m.data, retain_graph=True)
        assert repr(m.grad) == "tensor([[ 8., 81.]])"
        n.backward(T.tensor([[1.0, 1]]))
        assert repr(m.grad) == "tensor([[ 12., 108.]])"


NOT_A_LEAF = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


class TestGraph:
    """Leaves, non-leaves, hooks, in-place writes and their errors, on whichever device there is."""

    def network(self, data=1.0, requires_grad=True):
        inp = T.full([2, 2], data, requires_grad=requires_grad)
        w1, w2, w3 = (T.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
        l1 = inp * w1
        l2 = l1 + w2
        l3 = l1 * w3
        l4 = l2 * l3
        return inp, (w1, w2, w3), (l1, l2, l3, l4, l4.mean())

    def test_random_numbers_on_a_device(self, device):
        x = T.randn(2, requires_grad=True, device=device)
        assert [type(v) for v in x.tolist()] == [float, float]
        assert ("device='cuda:0'" in repr(x)) == (device == "cuda")
        assert repr(x).endswith("requires_grad=True)")

    def test_exp(self):
        assert repr(T.tensor(2.0, requires_grad=True).exp()) == "tensor(7.3891, grad_fn=<ExpBackward0>)"

    def test_before_backward(self, capsys):
        inp, (w1, _, _), (l1, *_, loss) = self.network()
        assert shown(capsys, w1.data, w1.grad, w1.grad_fn) == "tensor(2.) None None\n"
        with pytest.warns(UserWarning, match=NOT_A_LEAF):
            text = shown(capsys, l1.data, l1.grad, l1.grad_fn)
        assert text.startswith("tensor([[2., 2.],\n        [2., 2.]]) None <MulBackward0 object at 0x")
        with pytest.warns(UserWarning, match=NOT_A_LEAF):
            assert shown(capsys, loss.data, loss.grad, loss.grad_fn).startswith("tensor(40.) None <MeanBackward0 object")
        assert inp.grad is None

    def test_after_backward(self, capsys):
        inp, weights, layers = self.network()
        layers[-1].backward()
        assert shown(capsys, *(w.grad for w in weights)) == "tensor(28.) tensor(8.) tensor(10.)\n"
        with pytest.warns(UserWarning, match=NOT_A_LEAF):
            assert [layer.grad for layer in layers] == [None] * 5
        assert shown(capsys, inp.grad) == "tensor([[14., 14.],\n        [14., 14.]])\n"
        assert T.ones([2, 2]).is_leaf

    def test_retained(self):
        _, _, (l1, _, _, l4, loss) = self.network(requires_grad=False)
        for t in (l1, l4, loss):
            t.retain_grad()
        loss.backward()
        assert repr(loss.grad) == "tensor(1.)"
        assert repr(l4.grad) == "tensor([[0.2500, 0.2500],\n        [0.2500, 0.2500]])"
        assert repr(l1.grad) == "tensor([[7., 7.],\n        [7., 7.]])"

    def test_hooks(self, capsys):
        _, _, (l1, _, _, l4, loss) = self.network(requires_grad=False)
        l1.register_hook(lambda grad: print("l1 grad: ", grad))
        l4.register_hook(lambda grad: print("l4 grad: ", grad))
        loss.register_hook(lambda grad: print("loss grad: ", grad))
        loss.backward()
        assert capsys.readouterr().out == (
            "loss grad:  tensor(1.)\nl4 grad:  tensor([[0.2500, 0.2500],\n        [0.2500, 0.2500]])\n"
            "l1 grad:  tensor([[7., 7.],\n        [7., 7.]])\n"
        )
        with pytest.warns(UserWarning, match=NOT_A_LEAF):
            assert loss.grad is None

    def test_identity(self):
        a = T.tensor([3.0, 1.0])
        first = a
        a = a.exp()
        assert a is not first
        a = first
        a[0] = 10
        assert a is first and repr(a) == "tensor([10.,  1.])"

    def test_versions_and_the_error(self):
        a = T.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        assert b._version == 0
        loss = (b * b).mean()
        b[0] = 1000.0
        assert b._version == 1
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
        message = str(caught.value)
        assert message.startswith(
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [torch.FloatTensor [2]], which is output 0 of "
        )
        assert "is at version 1; expected version 0 instead. Hint: enable anomaly detection" in message

    def test_a_leaf(self):
        a = T.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        with pytest.raises(RuntimeError) as caught:
            a.add_(10.0)
        assert str(caught.value).splitlines()[0] == "a leaf Variable that requires grad is being used in an in-place operation."


class TestFunctions:
    """Default dtype, requires_grad, no_grad as a decorator, detach, Variable."""

    @pytest.fixture
    def pair(self):
        T.set_default_dtype(T.float32)
        first = T.tensor([[1, 2, 3], [4, 5, 6]], dtype=T.float32)
        return first.requires_grad_(), T.tensor([[10, 20, 30], [40, 50, 60]], dtype=T.float32)

    def test_default_dtype(self):
        T.set_default_dtype(T.float32)
        assert repr(T.get_default_dtype()) == "torch.float32"

    def test_prints(self, pair):
        first, second = pair
        assert repr(first) == "tensor([[1., 2., 3.],\n        [4., 5., 6.]], requires_grad=True)"
        assert repr(second) == "tensor([[10., 20., 30.],\n        [40., 50., 60.]])"
        assert repr(first * second) == ("tensor([[ 10.,  40.,  90.],\n        [160., 250., 360.]], grad_fn=<MulBackward0>)")

    def test_gradients(self, pair, capsys):
        first, second = pair
        output = (first * second).mean()
        assert first.grad is None and second.grad_fn is None
        output.backward()
        assert shown(capsys, first.grad) == "tensor([[ 1.6667,  3.3333,  5.0000],\n        [ 6.6667,  8.3333, 10.0000]])\n"
        (first * second).mean().backward()
        assert shown(capsys, first.grad) == "tensor([[ 3.3333,  6.6667, 10.0000],\n        [13.3333, 16.6667, 20.0000]])\n"
        assert repr((first.grad.shape, first.shape)) == "(torch.Size([2, 3]), torch.Size([2, 3]))"
        assert second.grad is None
        with pytest.warns(UserWarning, match=NOT_A_LEAF):
            assert output.grad is None

    def test_no_grad(self, pair, capsys):
        first, _ = pair
        assert (first * 3).requires_grad

        @T.no_grad()
        def double(t):
            return t * 2

        with T.no_grad():
            quiet = first * 3
            with T.enable_grad():
                loud = first * 3
        assert shown(capsys, "new tensor = ", quiet) == "new tensor =  tensor([[ 3.,  6.,  9.],\n        [12., 15., 18.]])\n"
        assert repr(loud) == "tensor([[ 3.,  6.,  9.],\n        [12., 15., 18.]], grad_fn=<MulBackward0>)"
        assert repr(double(first)) == "tensor([[ 2.,  4.,  6.],\n        [ 8., 10., 12.]])"
        assert (first.requires_grad, quiet.requires_grad, double(first).requires_grad) == (True, False, False)

    def test_detach_in_a_sum(self):
        one = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        two = T.Tensor([[5, 6], [7, 8]])
        assert (one.requires_grad, two.requires_grad) == (True, False)
        assert repr(two.requires_grad_()) == "tensor([[5., 6.],\n        [7., 8.]], requires_grad=True)"
        final = (one + two).mean()
        assert repr(final) == "tensor(9., grad_fn=<MeanBackward0>)"
        final.backward()
        assert repr(one.grad) == repr(two.grad) == "tensor([[0.2500, 0.2500],\n        [0.2500, 0.2500]])"
        cut = one.detach()
        assert repr(cut) == "tensor([[1., 2.],\n        [3., 4.]])"
        mean = (one + cut).mean()
        mean.backward()
        assert repr(one.grad) == "tensor([[0.5000, 0.5000],\n        [0.5000, 0.5000]])"
        mean.backward()  # a sum saves nothing, so nothing was freed
        assert repr(one.grad) == "tensor([[0.7500, 0.7500],\n        [0.7500, 0.7500]])"
        assert cut.grad is None

    def test_variable(self):
        var = Variable(T.FloatTensor([9]))
        assert repr((var, var.requires_grad)) == "(tensor([9.]), False)"
        assert repr(var.requires_grad_()) == "tensor([9.], requires_grad=True)"
        w1 = Variable(T.FloatTensor([3]), requires_grad=True)
        w2 = Variable(T.FloatTensor([10]), requires_grad=True)
        result = var * w1
        assert repr(result) == "tensor([27.], grad_fn=<MulBackward0>)"
        result.backward()
        assert repr((w1.grad, w2.grad, var.grad)) == "(tensor([9.]), None, tensor([3.]))"

    def test_a_recurrent_step(self):
        x = T.rand(1, 10, requires_grad=True)
        h, w_h, w_x = T.rand(1, 20), T.rand(20, 20), T.rand(20, 10)
        step = (T.mm(w_x, x.t()) + T.mm(w_h, h.t())).tanh()
        assert x.requires_grad and step.requires_grad and tuple(step.shape) == (20, 1)
        with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
            step.backward()


class TestTour:
    """The tensor, its grad_fn, and a product that grows until it is large."""

    def test_a_tensor_of_ones(self, device):
        x = T.ones(2, 2, requires_grad=True, device=device)
        assert x.grad_fn is None
        y = x + 3.0
        assert y.grad_fn.name() == "AddBackward0"
        out = (y * y * 3).mean()
        assert_values(out, 48.0)
        out.backward()
        assert_values(x.grad, [[6.0, 6.0], [6.0, 6.0]])

    def test_large_numbers_print(self):
        x = T.tensor([0.3033, 0.7658, 0.4103], requires_grad=True)
        y = x * 2048
        assert repr(y) == "tensor([ 621.1584, 1568.3584,  840.2944], grad_fn=<MulBackward0>)"
        assert repr(y.data.norm()) == "tensor(1884.5903)"
        y.backward(gradient=T.tensor([0.5, 5.0, 0.0005], dtype=T.float))
        assert repr(x.grad) == "tensor([1.0240e+03, 1.0240e+04, 1.0240e+00])"
        assert x.requires_grad and (x**2).requires_grad
        with T.no_grad():
            assert not (x**2).requires_grad
        assert repr(x) == "tensor([0.3033, 0.7658, 0.4103], requires_grad=True)"
        c = x.detach()
        assert repr(c) == "tensor([0.3033, 0.7658, 0.4103])" and c.grad is None


def test_a_tutorial_that_was_seeded_prints_the_same_numbers():
    T.manual_seed(0)
    assert repr(T.rand(2, 2)) == "tensor([[0.4963, 0.7682],\n        [0.0885, 0.1320]])"
    assert repr(T.randn(3)) == "tensor([-2.1788,  0.5684, -1.0845])"
