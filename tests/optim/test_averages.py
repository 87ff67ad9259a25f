"""Averaged models, and the statistics that are computed for them anew."""

import copy
import importlib
import pickle

import pytest

from library import T

W = T.optim.swa_utils


class Small(T.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = T.nn.Parameter(T.tensor([1.0, 2.0]))
        self.register_buffer("seen", T.tensor([0.0]))
        self.register_buffer("count", T.tensor(0))

    def forward(self, x):
        return x * self.weight


def moved(model, average, times=4):
    for k in range(times):
        with T.no_grad():
            model.weight.add_(T.tensor([1.0, -1.0]))
            model.seen.fill_(k)
            model.count.fill_(2 * k)
        average.update_parameters(model)
    return average


def test_equal_averages():
    model = Small()
    average = moved(model, W.AveragedModel(model))
    assert average.module.weight.tolist() == [3.5, -0.5]
    assert average.n_averaged.item() == 4 and average.n_averaged.dtype == T.int64
    assert average.module.seen.item() == 3.0 and average.module.count.item() == 6
    assert average(T.tensor([2.0, 2.0])).tolist() == [7.0, -1.0]
    assert model.weight.tolist() == [5.0, -2.0]


def test_averages_of_buffers():
    model = Small()
    average = moved(model, W.AveragedModel(model, use_buffers=True))
    assert average.module.seen.item() == 1.5 and average.module.count.item() == 3
    assert average.n_averaged.item() == 4


@pytest.mark.parametrize("many", [False, True])
def test_exponential_averages(many):
    model = Small()
    options = {"multi_avg_fn": W.get_ema_multi_avg_fn(0.5)} if many else {"avg_fn": W.get_ema_avg_fn(0.5)}
    average = moved(model, W.AveragedModel(model, use_buffers=many, **options))
    assert average.module.weight.tolist() == [2.0 / 8 + 3.0 / 8 + 4.0 / 4 + 5.0 / 2, 1.0 / 8 + 0.0 - 1.0 / 4 - 2.0 / 2]


def test_functions_of_averages():
    model = Small()
    average = moved(model, W.AveragedModel(model, multi_avg_fn=W.get_swa_multi_avg_fn()))
    assert average.module.weight.tolist() == pytest.approx([3.5, -0.5])
    seen = []

    def keep(averaged, current, count):
        seen.append((type(averaged).__name__, count.item()))
        return averaged

    assert moved(Small(), W.AveragedModel(Small(), avg_fn=keep)).module.weight.tolist() == [2.0, 1.0]
    assert [count for _, count in seen] == [1, 2, 3]
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        W.AveragedModel(model, avg_fn=keep, multi_avg_fn=keep)


def test_states_of_averages():
    average = moved(Small(), W.AveragedModel(Small()))
    state = average.state_dict()
    assert list(state) == ["n_averaged", "module.weight", "module.seen", "module.count"]
    other = W.AveragedModel(Small())
    other.load_state_dict(copy.deepcopy(state))
    assert other.module.weight.tolist() == [3.5, -0.5] and other.n_averaged.item() == 4


def test_complex_and_whole_parameters():
    for dtype in (T.complex64, T.float64):
        ours, theirs = T.tensor([1.0, 2.0]).to(dtype), T.tensor([3.0, 6.0]).to(dtype)
        W.get_ema_multi_avg_fn(0.75)([ours], [theirs], 1)
        assert ours.real.tolist() == [1.5, 3.0]
    ours, theirs = T.tensor([4]), T.tensor([8])
    W.get_ema_multi_avg_fn(0.5)([ours], [theirs], 1)
    assert ours.tolist() == [6]


class Statistics(T.nn.BatchNorm1d):
    """The running mean only: that of all batches where there is no momentum."""

    def forward(self, x):
        assert self.training
        self.num_batches_tracked += 1
        weight = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        self.running_mean.lerp_(x.mean(0), weight)
        return x


def test_update_bn():
    model = T.nn.Sequential(Statistics(2), T.nn.Linear(2, 1))
    bn = model[0]
    bn.momentum = 0.3
    bn.running_mean.fill_(5.0)
    model.eval()
    data = T.tensor([[1.0, 10.0], [3.0, 30.0], [5.0, 50.0], [7.0, 70.0]])
    W.update_bn([(data[:2], None), (data[2:], None)], model)
    assert bn.running_mean.tolist() == pytest.approx([4.0, 40.0])
    assert bn.momentum == 0.3 and not model.training and bn.num_batches_tracked.item() == 2
    W.update_bn([data[:1]], model)
    assert bn.running_mean.tolist() == pytest.approx([1.0, 10.0])
    W.update_bn(None, T.nn.Linear(2, 2))


@pytest.mark.parametrize("training", [True, False])
def test_update_bn_of_layers_and_loaders(training):
    data = importlib.import_module(T.__name__ + ".utils.data")
    x = T.arange(60.0).reshape(20, 3) % 7
    model = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4, momentum=0.3)).train(training)
    expected = model[0](x).detach()
    for batches in (data.TensorDataset(x), data.TensorDataset(x, T.arange(20))):
        W.update_bn(data.DataLoader(batches, 5, shuffle=True), model, device="cpu")
        assert T.allclose(model[1].running_mean, expected.mean(0), atol=1e-6)
        assert model[1].momentum == 0.3 and model.training == training and model[1].num_batches_tracked == 4


def test_averages_are_copied_and_pickled():
    model = T.nn.Linear(2, 2).half()
    average = W.AveragedModel(model, multi_avg_fn=W.get_ema_multi_avg_fn(0.9))
    average.update_parameters(model), average.update_parameters(model)
    assert average.module.weight.dtype == T.float16 and average.n_averaged == 2
    for other in (copy.deepcopy(average), pickle.loads(pickle.dumps(W.AveragedModel(model)))):
        assert type(other) is W.AveragedModel and T.equal(other.module.weight, model.weight)
    assert W.AveragedModel(model, device="meta").module.weight.is_meta
    average.eval()
    assert model.training and not average.module.training
