"""Who counts writes together: a tensor, its views and what was detached of it, whatever memory each of them shows later."""

import pytest

from library import T


def plain(*values):
    return T.tensor(values or (1.0, 2.0, 3.0), dtype=T.float64)


def versions(*tensors):
    return [t._version for t in tensors]


def test_a_base_with_other_data_still_counts_with_its_views():
    x = plain()
    whole, part = x.view(3, 1), x[:2]
    x.data = plain(5.0, 6.0, 7.0)
    x.add_(1)
    whole.add_(1)
    part.mul_(2)
    assert versions(x, whole, part) == [3, 3, 3]
    assert x.tolist() == [6.0, 7.0, 8.0] and whole.flatten().tolist() == [4.0, 6.0, 4.0]
    assert part._base is x and part._is_view()
    later = x[1:]
    later.add_(1)
    assert versions(x, whole, later) == [4, 4, 4] and x.tolist() == [6.0, 8.0, 9.0]


def test_a_view_with_other_data_still_counts_with_its_base():
    x = plain()
    view = x[:2]
    view.data = T.zeros(2, dtype=T.float64)
    view.add_(1)
    assert versions(x, view) == [1, 1] and x.tolist() == [1.0, 2.0, 3.0]
    x.add_(1)
    assert versions(x, view) == [2, 2] and view.tolist() == [1.0, 1.0]


def test_who_gave_the_data_counts_alone():
    x, y = plain(), plain(4.0, 5.0, 6.0)
    y.add_(1)
    x.data = y
    assert versions(x, y) == [0, 1]
    y.add_(1)
    assert versions(x, y) == [0, 2] and x.tolist() == [6.0, 7.0, 8.0]
    x.add_(1)
    assert versions(x, y) == [1, 2] and y.tolist() == [7.0, 8.0, 9.0]


def test_detached_tensors_count_together_for_good():
    x = plain()
    x.add_(1)
    before = x.detach()
    x.data = T.ones(3, dtype=T.float64)
    before.add_(1)
    after = x.detach()
    after.add_(1)
    assert versions(x, before, after) == [3, 3, 3]
    assert x.tolist() == [2.0, 2.0, 2.0] and before.tolist() == [3.0, 4.0, 5.0]


def test_data_counts_from_zero():
    x = plain()
    x.add_(1)
    data = x.data
    data.add_(1)
    again = data.detach()
    again.add_(1)
    assert versions(x, data, again) == [1, 2, 2] and x.tolist() == [4.0, 5.0, 6.0]


def test_data_given_again_and_again():
    x = plain()
    view, data = x.view(3), plain(4.0, 5.0, 6.0)
    for round in range(1, 4):
        x.data = data
        x.data = x.data
        x.add_(1)
        view.add_(1)
        assert versions(x, view, data) == [2 * round, 2 * round, 0]
    assert data.tolist() == [7.0, 8.0, 9.0] and view.tolist() == [4.0, 5.0, 6.0]


def test_swapped_data():
    x, y = plain(1.0), plain(2.0)
    views = x.view(1, 1), y.view(1, 1)
    x.data, y.data = y.data, x.data
    x.add_(10)
    assert versions(x, y, *views) == [1, 0, 1, 0]
    assert [t.item() for t in (x, y, *views)] == [12.0, 1.0, 1.0, 12.0]


def test_set_is_a_write():
    x, y = plain(), T.zeros(3, dtype=T.float64)
    view = x[:2]
    y.add_(1).add_(1)
    assert x.set_(y) is x
    assert versions(x, view, y) == [1, 1, 2]
    view.add_(1)
    y.add_(1)
    assert versions(x, view, y) == [2, 2, 3] and x.tolist() == [3.0, 3.0, 3.0] and view.tolist() == [2.0, 3.0]


def test_a_view_that_is_set_counts_with_its_base():
    x = plain()
    view = x[:2]
    view.set_(T.zeros(2, dtype=T.float64))
    assert versions(x, view) == [1, 1] and view._base is x
    view.add_(1)
    assert versions(x, view) == [2, 2] and x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("size", [2, 10])
def test_resizing_is_a_write(size):
    x = plain()
    view = x[:2]
    x.resize_(size)
    assert versions(x, view) == [1, 1]
    x.zero_()
    assert versions(x, view) == [2, 2]


def test_a_view_of_a_base_with_other_data_follows_writes():
    x = plain().requires_grad_()
    base = x * 2
    view = base.view(3)
    base.data = T.ones(3, dtype=T.float64)
    view.mul_(3)
    assert versions(base, view) == [1, 1]
    assert base.tolist() == [1.0, 1.0, 1.0] and view.tolist() == [6.0, 12.0, 18.0]
    assert type(base.grad_fn).__name__ == "CopySlices" and type(view.grad_fn).__name__ == "AsStridedBackward0"
    view.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_a_view_with_other_data_has_its_bases_new_history():
    x = plain().requires_grad_()
    base = x * 2
    view = base[:2]
    view.data = T.tensor([10.0, 20.0], dtype=T.float64)
    base.mul_(3)
    (view * view).sum().backward()
    assert x.grad.tolist() == [120.0, 240.0, 0.0]


def test_a_view_larger_than_what_its_base_shows_cannot_be_differentiated():
    x = T.ones(2, 2, dtype=T.float64, requires_grad=True)
    base = x * 1
    view = base.t()
    base.data = T.ones(2, dtype=T.float64)
    view.add_(1)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    with pytest.raises(RuntimeError, match="setStorage"):
        view.sum().backward()


def test_the_history_of_a_written_view_is_of_what_it_shows_then():
    x = T.tensor([1.0, 2.0, 3.0], dtype=T.float64, requires_grad=True)
    view = (x * 1).expand(2, 3)
    view[1].squeeze_()
    view.data = T.ones(2, 3, dtype=T.float64)
    view.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_view_whose_base_was_detached_and_written_leads_nowhere():
    x = plain().requires_grad_()
    base = x * 2
    view = base[:2]
    called = []
    view.register_hook(called.append)
    with T.no_grad():
        base.mul_(2)
    view.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2.0, 2.0, 0.0] and not called
    base.detach_()
    base.mul_(2)
    assert view.requires_grad and type(view.grad_fn).__name__ == "AsStridedBackward0"
    assert view.grad_fn.next_functions == ((None, 0),)
    view.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0]


def test_inference_follows_the_bytes_and_the_count_stays():
    with T.inference_mode():
        made = T.ones(3)
        assert made.data.is_inference()
    assert made.data.is_inference() and made.detach().is_inference()
    x = T.zeros(3)
    x.data = made
    assert x.is_inference() and x._version == 0
    x.add_(1)
    assert x._version == 1 and made.tolist() == [2.0, 2.0, 2.0]
    made.data = T.zeros(3)
    assert not made.is_inference()
    y = T.zeros(3)
    with T.inference_mode():
        assert not y.data.is_inference() and not y.detach().is_inference() and not y.view(3).is_inference()
    y.set_(made)
    assert not y.is_inference() and y._version == 1


def test_versions_seen_by_several_threads():
    import threading

    x = plain()
    views = [x.view(3) for _ in range(4)]
    x.data = T.zeros(3, dtype=T.float64)

    def write(view):
        for _ in range(200):
            view.add_(0)

    threads = [threading.Thread(target=write, args=(view,)) for view in views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions(x, *views) == [800] * 5


def test_writes_that_leave_the_versions_as_they_were():
    x, y = T.ones(2), T.ones(2)
    x.add_(1)
    with T.autograd._unsafe_preserve_version_counter(x):
        x.mul_(2)
    with T.autograd._unsafe_preserve_version_counter((x, y)):
        x.mul_(2)
        y.mul_(2)
    assert (x._version, y._version) == (1, 0) and x.tolist() == [8.0, 8.0]


def test_empty_writes_nothing_into_out():
    x = T.ones(2)
    assert T.empty(2, out=x) is x and x._version == 0 and x.tolist() == [1.0, 1.0]
    x = T.ones(0)
    assert T.empty(3, out=x).shape == (3,) and x._version == 1
    assert T.zeros(3, out=x)._version == 2
