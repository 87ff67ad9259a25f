"""Changes of what a compiled function reads and replaces itself: of tensors and numbers that its calls leave for later ones."""

import gradiron as torch
from changes import Plain, case, setter


def stateful(h, **values):
    """A function that replaces `net.h`, and its `net`."""
    net = Plain(h=h, **values)

    def f(x):
        net.h = net.h * 0.5 + x
        return net.h * 2

    return f, net


@case
def state_replaced():
    f, net = stateful(torch.zeros(3))
    shared = torch.ones(3)
    return (
        f,
        setter(net, "h", torch.ones(3)),
        setter(net, "h", torch.ones(3, dtype=torch.float64)),
        setter(net, "h", torch.ones(2, 3)),
        setter(net, "h", torch.ones(3, 3).t()[0]),
        setter(net, "h", torch.ones(6)[::2]),
        setter(net, "h", shared),
        setter(net, "h", torch.zeros(())),
        setter(net, "h", 2.0),
        setter(net, "h", 2),
        setter(net, "h", True),
        setter(net, "h", torch.nn.Parameter(torch.ones(3))),
        setter(net, "h", torch.ones(3, requires_grad=True)),
        setter(net, "h", None),
        setter(net, "h", torch.ones(3)),
    )


@case
def state_that_is_the_input():
    net = Plain(last=torch.zeros(3))

    def f(x):
        y = x - net.last
        net.last = x
        return y

    return f, setter(net, "last", torch.ones(3)), setter(net, "last", torch.zeros(3))


@case
def state_seen_by_two_names():
    net = Plain(a=torch.zeros(3), b=torch.ones(3))

    def f(x):
        net.a = net.a + x
        net.b = net.b * 0.5 + net.a
        return net.a.add(net.b)

    def join():
        net.a = net.b

    def share():
        net.a, net.b = net.b[:], net.b

    return f, join, share, lambda: setattr(net, "b", torch.ones(3))


@case
def state_written_in_place_by_two_names():
    net = Plain(a=torch.zeros(3), b=torch.ones(3))

    def f(x):
        net.a.add_(x)
        net.a, net.b = net.b * 1.0, net.a + net.b
        return net.a + net.b

    def join():
        net.a = net.b

    def overlap():
        whole = torch.arange(4.0)
        net.a, net.b = whole[:3], whole[1:]

    return f, join, overlap


@case
def state_with_a_gradient():
    net = Plain(h=torch.zeros(3), seen=torch.zeros(3))

    def f(x):
        net.seen = net.seen + (net.h.grad if net.h.grad is not None else 1.0)
        return net.seen * 2

    def give():
        net.h = torch.ones(3, requires_grad=True)
        net.h.square().sum().backward()

    return f, give, give, setter(net, "h", torch.zeros(3))


@case
def state_with_a_hook():
    net = Plain(h=torch.zeros(3), w=torch.ones(3, requires_grad=True))

    def f(x):
        net.h = (net.h * 0.5 + x).detach().requires_grad_()
        (net.h * 3).sum().backward()
        return net.h.grad * 1

    def hook():
        net.h.register_hook(lambda grad: grad * 2)

    return f, hook, setter(net, "h", torch.ones(3))


@case
def state_compared_by_identity():
    net = Plain(h=torch.zeros(3), other=None)

    def f(x):
        same = net.h is net.other
        net.h = net.h + x
        return net.h if same else net.h * 2

    def join():
        net.other = net.h

    return f, join, join


@case
def state_of_another_kind_is_asked_for():
    net = Plain(h=torch.zeros(3, 3))

    def f(x):
        strides, device = net.h.stride(), net.h.device
        net.h = net.h + x.to(device)
        return net.h * strides[0]

    return f, setter(net, "h", torch.ones(3, 3).t()), setter(net, "h", torch.ones(3, 3))


@case
def tuple_of_states_replaced():
    net = Plain(state=(torch.zeros(3), torch.ones(3)))

    def f(x):
        h, *rest = net.state
        net.state = (h + x, *[each * 0.5 for each in rest])
        return net.state[0] + len(net.state)

    return (
        f,
        setter(net, "state", (torch.ones(3), torch.zeros(3))),
        setter(net, "state", (torch.ones(3),)),
        setter(net, "state", [torch.ones(3), torch.zeros(3)]),
        setter(net, "state", (torch.ones(3), torch.zeros(3), torch.zeros(3))),
    )


@case
def elements_of_a_list_of_states():
    layers = [torch.zeros(3), torch.ones(3)]

    def f(x):
        for i in range(len(layers)):
            layers[i] = x = layers[i] * 0.5 + x
        return x * 2

    def put(at, value):
        return lambda: layers.__setitem__(at, value)

    return f, put(0, torch.ones(3)), lambda: layers.append(torch.ones(3)), lambda: layers.pop(0), put(-1, torch.zeros(3))


@case
def last_of_a_growing_list():
    history = [torch.zeros(3)]

    def f(x):
        history.append(history[-1] * 0.5 + x)
        return history[0] + x

    return f, lambda: history.append(torch.ones(3)), history.clear, lambda: history.append(torch.ones(3))


@case
def item_of_a_dict_of_states():
    state = {"h": torch.zeros(3), "n": 0}

    def f(x):
        state["n"] += 1
        state["h"] = state["h"] + x * state["n"]
        return state["h"] * 1

    def put(key, value):
        return lambda: state.__setitem__(key, value)

    return f, put("h", torch.ones(3)), put("n", 0), put("n", 1.5), put("n", True), lambda: state.pop("h"), put("h", x_like())


def x_like():
    return torch.full((3,), 2.0)


@case
def count_replaced():
    net = Plain(count=0)

    def f(x):
        net.count += 1
        return x * net.count

    return (
        f,
        setter(net, "count", 0),
        setter(net, "count", 2.5),
        setter(net, "count", 2**60),
        setter(net, "count", True),
        setter(net, "count", torch.tensor(3.0)),
        setter(net, "count", "no number"),
        setter(net, "count", 1),
    )


@case
def count_of_a_class():
    class Counted(Plain):
        count = 5

    net = Counted()

    def f(x):
        net.count += 1
        return x * net.count

    return f, setter(Counted, "count", 9), lambda: delattr(net, "count"), setter(Counted, "count", 9)


@case
def number_of_a_class():
    class Rated(Plain):
        rate = 0.5

    net = Rated()
    return lambda x: x * net.rate, setter(Rated, "rate", 0.25), setter(Rated, "rate", 4.0), setter(net, "rate", 2.0)


@case
def number_of_a_module():
    from gradiron import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.step = 0.5, 0

        def forward(self, x):
            self.step += 1
            return x * self.scale if self.step % 2 else x / (self.scale + self.step)

    net = Scaled()
    return net.__call__, setter(net, "scale", 0.25), setter(net, "scale", 3), setter(net, "step", 7), setter(net, "scale", 1e-3)


@case
def variables_replaced():
    h, count, rate = torch.zeros(3), 0, 0.5

    def f(x):
        nonlocal h, count
        count += 2
        h = h * rate + x
        return h + count

    def change(new_h=None, new_count=None, new_rate=None):
        def act():
            nonlocal h, count, rate
            h = h if new_h is None else new_h
            count = count if new_count is None else new_count
            rate = rate if new_rate is None else new_rate

        return act

    return f, change(torch.ones(3)), change(new_count=0), change(new_rate=0.25), change(new_rate=0.125), change(new_count=0.5)


@case
def decision_by_a_count():
    net = Plain(count=0, every=3)

    def f(x):
        net.count += 1
        if net.count % net.every == 0 or net.count > 40:
            return x + 1
        return x * 2

    return f, setter(net, "every", 2), setter(net, "count", 39), setter(net, "count", 0), setter(net, "every", 0)


@case
def truth_of_a_number():
    net = Plain(left=2, rate=0.0)

    def f(x):
        if net.left:
            net.left -= 1
        return x * (net.rate or 3.0) + (1 if not net.left else 2)

    return f, setter(net, "left", 5), setter(net, "rate", 0.5), setter(net, "rate", 0.0), setter(net, "left", 1)


@case
def error_that_is_caught():
    net = Plain(count=-2, rate=0.0)

    def f(x):
        net.count += 1
        try:
            scale = 1.0 / net.count
        except ZeroDivisionError:
            scale = 5.0
        try:
            x = x * (2.0 // net.rate)
        except ZeroDivisionError:
            x = x + 1
        return x * scale

    return f, setter(net, "rate", 0.5), setter(net, "rate", 0.0), setter(net, "count", -1), setter(net, "rate", 1.0)


@case
def number_that_shows():
    net = Plain(count=0, words="")

    def f(x):
        net.count += 1
        net.words = f"{net.count:3d}"
        return x * len(net.words.strip())

    return f, setter(net, "count", 8), setter(net, "count", 98)
