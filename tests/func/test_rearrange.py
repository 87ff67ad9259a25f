"""`func.rearrange`: dimensions reordered, taken apart and joined by their names."""

import pytest

from library import T, assert_values

rearrange = T.func.rearrange
X = T.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "lengths", "expected"),
    [
        ("a b c -> c b a", {}, X.permute(2, 1, 0)),
        ("a b c->(a b) c", {}, X.reshape(6, 4)),
        (" a  b   c  ->  c a b ", {}, X.permute(2, 0, 1)),
        ("a b c -> (c a) b", {}, X.permute(2, 0, 1).reshape(8, 3)),
        ("a ... -> ... a", {}, X.permute(1, 2, 0)),
        ("... c -> c ...", {}, X.permute(2, 0, 1)),
        ("... -> (...)", {}, X.reshape(24)),
        ("a ... -> a (...)", {}, X.reshape(2, 12)),
        ("a b c ... -> ... a b c", {}, X),
        ("a b … -> b a …", {}, X.permute(1, 0, 2)),
        ("a b c -> a 1 b c ()", {}, X.reshape(2, 1, 3, 4, 1)),
        ("(a 1) (b) c -> a b c", {}, X),
        ("(a b) c d -> a b c d", {"a": 2}, X.reshape(2, 1, 3, 4)),
        ("a b (c d) -> d a b c", {"c": 2}, X.reshape(2, 3, 2, 2).permute(3, 0, 1, 2)),
        ("a b (c d) -> a b c d", {"c": 1, "d": 4}, X.reshape(2, 3, 1, 4)),
        ("a b c -> a b c", {"a": 2}, X),
        ("é B c2 -> B é c2", {}, X.permute(1, 0, 2)),
    ],
)
def test_patterns(pattern, lengths, expected):
    assert_values(rearrange(X, pattern, **lengths), expected)


def test_images():
    images = T.arange(720.0).reshape(2, 30, 4, 3)
    assert rearrange(images, "b (h1 h) (w1 w) c -> (b h1 w1) h w c", h1=2, w1=2).shape == (8, 15, 2, 3)
    deep = rearrange(images, "b (h h1) (w w1) c -> b h w (c h1 w1)", h1=2, w1=2)
    assert deep.shape == (2, 15, 2, 12)
    assert_values(deep[1, 3, 1], images[1, 6:8, 2:4].permute(2, 0, 1).reshape(12))


def test_several_tensors_are_stacked():
    assert_values(rearrange([X, X + 1], "n a b c -> a b (n c)"), T.cat([X, X + 1], -1))
    assert_values(rearrange((X, X), "n ... -> ... n"), T.stack([X, X], -1))


def test_a_number_stays_one():
    x = T.tensor(3.0)
    for pattern in ("->", "-> 1", "... -> ..."):
        assert_values(rearrange(x, pattern), 3.0)


def test_gradients_batches_and_memory():
    x = X.clone().requires_grad_()
    (rearrange(x, "a b c -> (b a) c") * T.arange(6.0)[:, None]).sum().backward()
    assert_values(x.grad, T.arange(6.0).reshape(3, 2).t()[:, :, None].expand(2, 3, 4))
    assert_values(T.func.vmap(lambda t: rearrange(t, "b c -> c b"))(X), X.transpose(1, 2))
    turned = rearrange(X, "a b c -> c a b")
    assert turned.data_ptr() == X.data_ptr() and turned.stride() == (1, 12, 4)


@pytest.mark.filterwarnings("error")
def test_a_keyword_is_discouraged():
    with pytest.raises(RuntimeWarning, match="discouraged to use axes names that are keywords: for"):
        rearrange(X, "for b c -> b c for")


@pytest.mark.parametrize(
    ("pattern", "lengths", "error", "message"),
    [
        ("a b c", {}, ValueError, "Pattern must contain a single '->' separator"),
        ("a b c -> a b -> c", {}, ValueError, "Pattern must contain a single '->' separator"),
        ("a b c -> a b", {}, ValueError, r"Identifiers only on one side of rearrange expression .*: \{'c'\}"),
        ("a b c -> a b c d", {}, ValueError, r"Identifiers only on one side of rearrange expression .*: \{'d'\}"),
        ("... ->", {}, ValueError, "Identifiers only on one side"),
        ("a b -> a b", {}, ValueError, r"dimensions in pattern \(2\) must be equal to .* in the tensor \(3\)"),
        ("a () b c -> a b c", {}, ValueError, r"dimensions in pattern \(4\) must be equal to .* in the tensor \(3\)"),
        ("a b c d ... -> a b c d ...", {}, ValueError, r"pattern \(4\) must be less than or equal to .* tensor \(3\)"),
        ("a b c -> ...", {}, ValueError, "Ellipsis found in right side, but not left side of a pattern a b c -> ..."),
        ("(a ...) -> a ...", {}, ValueError, r"Ellipsis is parenthesis in the left side is not allowed: \(a \.\.\.\)"),
        ("(...) -> ...", {}, ValueError, "Ellipsis is parenthesis in the left side"),
        ("a ... ... -> a ...", {}, ValueError, "only one ellipsis for tensor"),
        ("a b . -> a", {}, ValueError, "dots only inside ellipsis"),
        ("a a c -> a c", {}, ValueError, "Indexing expression contains duplicate dimension 'a'"),
        ("a b c -> (a (b c))", {}, ValueError, "Axis composition is one-level"),
        ("a b c -> (a b c", {}, ValueError, r"Imbalanced parentheses in expression: ' \(a b c'"),
        ("a b c -> a b) c", {}, ValueError, "Brackets are not balanced"),
        ("a b 2 -> a b", {}, ValueError, "rearrange only supports unnamed axes of size 1"),
        ("_ b c -> b c", {}, ValueError, "(?s)Invalid axis identifier: _.axis name should should not start or end"),
        ("a b c_ -> a b c_", {}, ValueError, "Invalid axis identifier: c_"),
        ("1a b c -> b c", {}, ValueError, "(?s)Invalid axis identifier: 1a.not a valid python identifier"),
        ("a,b c d-> a b", {}, ValueError, "Unknown character ','"),
        ("a b c -> a b c", {"z": 3}, ValueError, r"Identifiers not found in rearrange expression: \{'z'\}"),
        ("(a b) c d -> a b c d", {"a": 1.0}, TypeError, "axis lengths must be integers, got: <class 'float'>"),
        ("(a b) c d -> a b c d", {}, Exception, "cannot infer the sizes of two dimensions at once d0 and d1"),
        ("(a b e) c d -> a b c d e", {"a": 1}, Exception, "cannot infer the sizes of two dimensions at once d1 and d2"),
        ("(a b) c d -> a b c d", {"a": 3}, Exception, r"does not evenly fit into larger dimension: 2 vs \(3, '\?'\)"),
        ("(a b) c d -> a b c d", {"a": 1, "b": 3}, Exception, r"\(2 != 3\) when matching dimension pack \(d0, d1\)"),
        ("a b c -> a b c", {"a": 3}, Exception, r"\(2 != 3\) when matching dimension pack \(d0,\)"),
    ],
)
def test_errors(pattern, lengths, error, message):
    with pytest.raises(error, match=message):
        rearrange(X, pattern, **lengths)


@pytest.mark.gradiron
def test_a_longer_dimension_is_not_1():
    """PyTorch takes the first row."""
    with pytest.raises(Exception, match=r"\(2 != 1\) when matching dimension pack \(\)"):
        rearrange(X, "1 b c -> b c")


def test_what_is_no_tensor():
    with pytest.raises(TypeError):
        rearrange(3, "a -> a")
    with pytest.raises(RuntimeError, match="stack expects a non-empty TensorList"):
        rearrange([], "a -> a")
