"""Checkpoints of replicated state, alone and with several ranks."""

import pytest

import library

T = library.T
dist = T.distributed

pytestmark = pytest.mark.gradiron


def dcp():
    import importlib

    return importlib.import_module(f"{library.NAME}.distributed.checkpoint")


def trained(seed):
    T.manual_seed(seed)
    model = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Linear(4, 1))
    optimizer = T.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(T.randn(8, 3)).square().mean().backward()
        optimizer.step()
    return model, optimizer


def states_equal(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(states_equal(one[key], other[key]) for key in one)
    return T.equal(one, other) if isinstance(one, T.Tensor) else one == other


def do_save_and_load(rank, folder):
    model, optimizer = trained(0)
    wrapped = T.nn.parallel.DistributedDataParallel(model)
    state = dcp().state_dict
    names = state.get_state_dict(wrapped, optimizer)
    assert set(names[0]) == set(model.state_dict())
    assert "0.weight" in names[1]["state"]
    dcp().save({"model": names[0], "optim": names[1], "epoch": 7}, checkpoint_id=folder)

    other, its = trained(rank + 1)
    into = {"model": state.get_model_state_dict(other), "optim": state.get_optimizer_state_dict(other, its), "epoch": 0}
    dcp().load(into, checkpoint_id=folder)
    assert into["epoch"] == 7
    state.set_state_dict(other, its, model_state_dict=into["model"], optim_state_dict=into["optim"])
    assert states_equal(other.state_dict(), model.state_dict())
    assert states_equal(its.state_dict(), optimizer.state_dict())


def test_save_and_load(two, tmp_path):
    two.run(do_save_and_load, str(tmp_path / "checkpoint"))


def do_fail(rank, path):
    with pytest.raises(RuntimeError, match="rank 0 could not write the checkpoint"):
        dcp().save({"x": T.ones(1)}, checkpoint_id=path)


def test_a_folder_that_cannot_be_made_fails_on_all_ranks(two, tmp_path):
    (tmp_path / "file").write_text("")
    two.run(do_fail, str(tmp_path / "file" / "below"))


def test_without_a_group(tmp_path):
    x = T.arange(3.0)
    dcp().async_save({"x": x, "more": {"y": T.ones(2)}}, checkpoint_id=tmp_path).result(30)
    into = {"x": T.zeros(3), "more": {"y": T.zeros(2)}}
    kept = into["x"]
    dcp().load(into, checkpoint_id=tmp_path)
    assert kept is into["x"] and kept.tolist() == [0, 1, 2] and into["more"]["y"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: z"):
        dcp().load({"z": T.ones(1)}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="Size mismatch"):
        dcp().load({"x": T.zeros(4)}, checkpoint_id=tmp_path)
    with pytest.raises(FileNotFoundError, match="no checkpoint in"):
        dcp().load({"x": x}, checkpoint_id=tmp_path / "none")


def test_files_of_torch_save(tmp_path):
    import importlib

    utils = importlib.import_module(f"{library.NAME}.distributed.checkpoint.format_utils")
    T.save({"x": T.ones(2)}, tmp_path / "a.pt")
    utils.torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "folder")
    utils.dcp_to_torch_save(tmp_path / "folder", tmp_path / "b.pt")
    assert T.load(tmp_path / "b.pt")["x"].tolist() == [1, 1]


def test_what_is_spread_over_ranks_is_refused():
    import importlib

    storage = importlib.import_module(f"{library.NAME}.distributed.checkpoint.hf_storage")
    with pytest.raises(NotImplementedError, match="safetensors"):
        storage.HuggingFaceStorageReader("folder")
