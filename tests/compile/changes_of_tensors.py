"""Changes of `nn` modules, tensors, optimizers and modes that a compiled function reads."""

import gradiron as torch
from changes import CASES, Plain, case, setter
from gradiron import nn

# Modules.


def layer_case(change_of):
    def build():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.0), nn.Linear(3, 3))

        def f(x):
            y = model(x)
            return y.detach() * (2 if y.requires_grad else 3)

        return f, *change_of(model)

    build.__name__ = "module_" + change_of.__name__
    CASES.append(build)
    return build


@layer_case
def parameter_replaced(model):
    return setter(model[0], "weight", nn.Parameter(torch.eye(3))), setter(model[0], "bias", None)


@layer_case
def parameter_filled(model):
    return lambda: model[0].weight.data.fill_(0.5), lambda: model[0].bias.detach().mul_(2)


@layer_case
def data_replaced(model):
    return setter(model[0].weight, "data", torch.eye(3) * 2), setter(model[3].weight, "data", torch.eye(3).t())


@layer_case
def data_of_another_dtype(model):
    return (lambda: model.double(),)


@layer_case
def layer_replaced(model):
    return lambda: model.__setitem__(1, nn.Tanh()), lambda: model.append(nn.Sigmoid()), lambda: model.__delitem__(2)


@layer_case
def forward_replaced(model):
    return setter(nn.ReLU, "forward", lambda self, x: x * 3), lambda: setattr(nn.ReLU, "forward", _relu_forward)


_relu_forward = nn.ReLU.forward


@layer_case
def forward_of_an_instance(model):
    return (setter(model[1], "forward", lambda x: x * 3),)


@layer_case
def training_mode(model):
    return model.eval, model.train


@layer_case
def forward_hook(model):
    handles = []
    return lambda: handles.append(model[0].register_forward_hook(lambda m, a, out: out * 2)), lambda: handles[0].remove()


@layer_case
def forward_pre_hook(model):
    return (lambda: model[3].register_forward_pre_hook(lambda m, args: (args[0] + 1,)),)


@layer_case
def global_forward_hook(model):
    handles = []
    register = nn.modules.module.register_module_forward_hook
    return lambda: handles.append(register(lambda m, a, out: out * 2)), lambda: handles[0].remove()


@layer_case
def state_loaded(model):
    other = {name: value + 1 for name, value in model.state_dict().items()}
    return lambda: model.load_state_dict(other), lambda: model.load_state_dict(other, assign=True)


@layer_case
def gradients_off(model):
    return lambda: model.requires_grad_(False), lambda: model[0].requires_grad_(True)


@layer_case
def class_of_a_layer(model):
    return (setter(model[1], "__class__", nn.Tanh),)


@layer_case
def call_replaced(model):
    old = nn.Module.__call__
    return setter(nn.Module, "__call__", lambda self, x: x * 2), setter(nn.Module, "__call__", old)


@case
def dropout_rate():
    layer = nn.Dropout(0.0)

    def f(x):
        return layer(x)

    return f, setter(layer, "p", 1.0), layer.eval


@case
def batch_norm():
    layer = nn.BatchNorm1d(3)
    layer.eval()

    def f(x):
        return layer(x.expand(2, 3)).detach()

    return (
        f,
        lambda: layer.running_mean.fill_(0.5),
        setter(layer, "eps", 0.1),
        setter(layer, "running_var", torch.full((3,), 4.0)),
    )


@case
def buffer_replaced():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(3))

        def forward(self, x):
            return x * self.scale

    model = Model()

    def f(x):
        return model(x)

    return f, setter(model, "scale", torch.full((3,), 3.0)), setter(model, "scale", torch.full((1,), 4.0))


@case
def module_list():
    layers = nn.ModuleList([nn.Tanh()])

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.append(nn.Sigmoid()), lambda: layers.__setitem__(0, nn.ReLU())


@case
def parametrized():
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)

    def f(x):
        return layer(x).detach()

    class Double(nn.Module):
        def forward(self, w):
            return w * 2

    return f, lambda: nn.utils.parametrize.register_parametrization(layer, "weight", Double())


@case
def config_dict_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = {"act": "relu", "scale": 2}

        def forward(self, x):
            x = x.relu() if self.config["act"] == "relu" else x.tanh()
            return x * self.config["scale"]

    model = Model()

    def f(x):
        return model(x)

    return f, lambda: model.config.update(act="tanh"), lambda: model.config.update(scale=3)


# Tensors.


@case
def tensor_reshaped_in_place():
    own = torch.arange(3.0)

    def f(x):
        return x * own.sum() + own.shape[0]

    return f, lambda: own.unsqueeze_(0), lambda: own.squeeze_()


@case
def tensor_shape_read():
    own = Plain(t=torch.ones(3))

    def f(x):
        return x * own.t.shape[0]

    return f, setter(own, "t", torch.ones(5)), setter(own, "t", torch.ones(5, 2))


@case
def tensor_requires_grad_read():
    own = torch.ones(3)

    def f(x):
        return x + 1 if own.requires_grad else x - 1

    return f, lambda: own.requires_grad_(True), lambda: own.requires_grad_(False)


@case
def tensor_grad_read():
    own = torch.ones(3, requires_grad=True)

    def f(x):
        return x + 1 if own.grad is None else x - 1

    return f, setter(own, "grad", torch.ones(3)), setter(own, "grad", None)


@case
def tensor_attribute():
    own = torch.ones(3)
    own.tag = 2

    def f(x):
        return x * own.tag

    return f, setter(own, "tag", 3)


@case
def tensor_identity():
    one, two = torch.ones(3), torch.ones(3)
    own = Plain(a=one, b=one)

    def f(x):
        return x + 1 if own.a is own.b else x - 1

    return f, setter(own, "b", two), setter(own, "a", two)


@case
def tensors_begin_to_share_memory():
    own = Plain(a=torch.ones(3), b=torch.ones(3))

    def f(x):
        own.a.mul_(1.0).add_(0.0)
        return x * own.b

    return f, setter(own, "b", own.a)


@case
def tensor_strides():
    own = Plain(t=torch.arange(9.0).reshape(3, 3))

    def f(x):
        return own.t @ x

    return f, setter(own, "t", torch.arange(9.0).reshape(3, 3).t())


# The thread.


@case
def grad_mode():
    own = torch.ones(3, requires_grad=True)

    def f(x):
        y = x * own
        return y.detach() * (2 if y.requires_grad else 3)

    return f, lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)


@case
def default_dtype():
    def f(x):
        return torch.ones(3) * 0.1 + x

    return f, lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)


@case
def autocast():
    own = torch.ones(3, 3)

    def f(x):
        return own @ (x * 1.001)

    switch = torch.set_autocast_enabled
    return f, lambda: switch("cpu", True), lambda: switch("cpu", False)


@case
def default_device():
    def f(x):
        return torch.zeros(3) + x

    return f, lambda: torch.set_default_device("cpu"), lambda: torch.set_default_device(None)


@case
def optimizer_options():
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)

    def f(x):
        p.data.fill_(1.0)
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach().clone()

    group = optimizer.param_groups[0]
    return (
        f,
        lambda: group.update(lr=0.25),
        lambda: group.update(weight_decay=0.5),
        lambda: group.update(maximize=True),
        lambda: optimizer.register_step_post_hook(lambda *_: p.data.add_(1)),
    )


@case
def optimizer_gets_another_parameter():
    p, q = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)

    def f(x):
        p.data.fill_(1.0)
        q.data.fill_(1.0)
        optimizer.zero_grad()
        (p * q * x).sum().backward()
        q.grad = q.grad.clone()
        optimizer.step()
        q.grad = None
        return p.detach() + q.detach()

    return f, lambda: optimizer.add_param_group({"params": [q]})


@case
def scheduler():
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def f(x):
        p.data.fill_(1.0)
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach().clone()

    return f, schedule.step, schedule.step


@case
def adam_state_loaded():
    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([p], lr=0.5)
    p.grad = torch.ones(3)
    optimizer.step()
    saved = optimizer.state_dict()

    def f(x):
        optimizer.zero_grad()
        (p * x).sum().backward()
        before = p.detach().clone()
        optimizer.step()
        return (p.detach() - before).sign()

    return f, lambda: optimizer.load_state_dict(saved), lambda: optimizer.state.clear()


def used_tensor_case(change_of):
    def build():
        p = torch.full((3,), 2.0, requires_grad=True)

        def f(x):
            y = (x * p).detach()
            if p.grad is not None:
                y = y + 1
            if p.requires_grad:
                y = y * 3
            if p.is_contiguous():
                y = y - 5
            return y + p.dim()

        return f, *change_of(p)

    build.__name__ = "used_tensor_" + change_of.__name__
    CASES.append(build)
    return build


@used_tensor_case
def gets_a_gradient(p):
    return setter(p, "grad", torch.ones(3)), setter(p, "grad", None), lambda: (p * 2).sum().backward(), lambda: p.grad.zero_()


@used_tensor_case
def stops_to_require_one(p):
    return lambda: p.requires_grad_(False), lambda: p.requires_grad_(True)


@used_tensor_case
def gets_another_shape(p):
    return lambda: p.requires_grad_(False).unsqueeze_(0), lambda: p.squeeze_(0)


@used_tensor_case
def gets_other_strides(p):
    return setter(p, "data", torch.full((6,), 3.0)[::2]), setter(p, "data", torch.full((3,), 4.0))


@used_tensor_case
def gets_another_dtype(p):
    return (setter(p, "data", torch.full((3,), 3.0, dtype=torch.float64)),)
