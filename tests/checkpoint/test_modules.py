"""Whole modules in files: by PyTorch's names, and from PyTorch's own files."""

import copy
import inspect
import io
import pickle

import golden_file
import pytest
from test_formats import FILES

from library import T

from checkpoint_cases import network  # isort: skip (found by way of test_formats)

PYTORCHS = golden_file.read(golden_file.NAMES)


def saved(obj):
    file = io.BytesIO()
    T.save(obj, file)
    file.seek(0)
    return file


def loaded(file):
    return T.load(file, weights_only=False)


@pytest.mark.gradiron
def test_names_in_files_are_pytorchs():
    from gradiron.serialization._names import to_torch

    wrong = []
    for name in dir(T.nn):
        found = getattr(T.nn, name)
        if inspect.isclass(found) and issubclass(found, (T.nn.Module, T.Tensor)):
            module, inside = to_torch(found.__module__, found.__qualname__)
            if inside not in PYTORCHS.get(module.removeprefix("torch."), ()):
                wrong.append((name, module))
    assert wrong == []


def test_a_module_of_pytorchs():
    found, made = loaded(io.BytesIO(FILES["network"])), network(T)
    assert repr(found) == repr(made) and type(found) is T.nn.Sequential
    assert [name for name, _ in found.named_parameters()] == [name for name, _ in made.named_parameters()]
    for name, tensor in made.state_dict().items():
        assert found.state_dict()[name].tolist() == tensor.tolist(), name
    assert set(vars(found)) == set(vars(made))
    x = T.ones(1, 2)
    assert found[0](x).tolist() == made[0](x).tolist()
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL torch.nn.modules.container.Sequential"):
        T.load(io.BytesIO(FILES["network"]))


def test_round_trips():
    made = network(T)
    made.eval()
    made[0].note = "kept"
    for found in (loaded(saved(made)), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert repr(found) == repr(made) and not found[1].training and found[0].note == "kept"
        for name, tensor in made.state_dict().items():
            assert found.state_dict()[name].tolist() == tensor.tolist(), name
        assert all(isinstance(p, T.nn.Parameter) and p.requires_grad for p in found.parameters())
        found.double()
        assert {w.dtype for w in found[4].all_weights[0]} == {T.float64}


def test_state_of_a_module():
    made = network(T)
    state = T.load(saved(made.state_dict()))
    assert state._metadata == made.state_dict()._metadata
    other = network(T)
    with T.no_grad():
        for p in other.parameters():
            p.zero_()
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert all((a == b).all() for a, b in zip(other.parameters(), made.parameters()))


def test_tied_weights_stay_tied():
    made = T.nn.ModuleList([T.nn.Linear(2, 2), T.nn.Linear(2, 2)])
    made[1].weight = made[0].weight
    found = loaded(saved(made))
    assert found[0].weight is found[1].weight
    state = T.load(saved(made.state_dict()))
    state["0.weight"].zero_()
    assert state["1.weight"].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_parameters_without_a_shape():
    made = T.nn.parameter.UninitializedParameter(requires_grad=False)
    found = loaded(saved(made))
    assert type(found) is T.nn.parameter.UninitializedParameter and not found.requires_grad
