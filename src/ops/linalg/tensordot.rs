//! Sums of products over chosen dimensions, each computed as one matrix product: `tensordot`, `inner`, and `einsum` with two
//! operands.

use crate::base::Dims;
use crate::operator::primitives::views::{ints, reshaped};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::linalg::matmul::{bmm, dot, mm};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::sum;
use crate::ops::shape::view::permute;

fn over(t: &Tensor, dim: usize) -> Result<Tensor> {
    sum(t, Some(smallvec::smallvec![dim as i64]), true, None)
}

fn sizes(t: &Tensor, dims: &[usize]) -> Dims {
    let shape = t.shape();
    dims.iter().map(|&d| shape[d]).collect()
}

/// `left * right`, summed over some dimensions, which are kept with size 1. Both operands have the same number of dimensions, and
/// dimensions of size 1 broadcast.
pub fn pair(left: Tensor, right: Tensor, summed: &[usize]) -> Result<Tensor> {
    if summed.is_empty() {
        return a::mul(&left, &right);
    }
    let (l, r) = (left.shape(), right.shape());
    let kept = |keep: &dyn Fn(usize) -> bool| -> Dims {
        (0..l.len()).filter(|d| !summed.contains(d) && keep(*d)).collect()
    };
    let both = kept(&|d| l[d] != 1 && r[d] != 1);
    let rows = kept(&|d| l[d] != 1 && r[d] == 1);
    let columns = kept(&|d| l[d] == 1);
    let order = |groups: &[&[usize]]| groups.concat().iter().map(|&d| d as i64).collect::<Ints>();
    let flat = |t: &Tensor, groups: &[&[usize]], rest: &[usize]| -> Result<Tensor> {
        let shape: Dims = groups.iter().map(|dims| sizes(t, dims).iter().product()).collect();
        reshaped(&permute(t, order(&[&groups.concat(), rest]))?, &shape)
    };
    let x = flat(&left, &[&both, &rows, summed], &columns)?;
    let y = flat(&right, &[&both, summed, &columns], &rows)?;
    let mut shape: Dims = sizes(&left, &[&both[..], &rows].concat());
    shape.extend(summed.iter().map(|_| 1));
    shape.extend(sizes(&right, &columns));
    let placed = [&both[..], &rows, summed, &columns].concat();
    let back = (0..l.len()).map(|d| placed.iter().position(|&p| p == d).unwrap_or(d) as i64).collect();
    permute(&reshaped(&bmm(&x, &y)?, &shape)?, back)
}

/// Compute dot products over the last dimension of both tensors, for all pairs of the others.
///
/// Args:
///     input: first factor.
///     other: second factor, whose last dimension has the same size.
///
/// Examples:
///     >>> torch.inner(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
///     tensor([3, 7])
#[operator(
    function,
    method,
    out(
        message = "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype {target}",
        early
    ),
    composite,
    autocast = lower,
    sample = "product(name, lambda i, j, k, b: [(i, j), (k, j)])"
)]
pub fn inner(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    if input.ndim() == 0 || other.ndim() == 0 {
        return a::mul(input, other);
    }
    let (sa, sb) = (input.shape(), other.shape());
    if sa[sa.len() - 1] != sb[sb.len() - 1] {
        return Err(Error::runtime(format!(
            "inner() the last dimension must match on both input tensors but got shapes {:?} and {:?}",
            sa.as_slice(),
            sb.as_slice()
        )));
    }
    tensordot(input, other, smallvec::smallvec![-1], smallvec::smallvec![-1])
}

/// Sum products over several dimensions of two tensors.
///
/// Args:
///     input: first factor.
///     other: second factor.
///     dims_self: dimensions of `input` to sum over.
///     dims_other: dimensions of `other` that go with them.
#[operator(
    function,
    out(
        message = "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype {target}",
        early
    ),
    autocast = lower,
    sample = "fixed([(2, 3, 4), (4, 3)], lambda a, b: T.tensordot(a, b, ([1, 2], [1, 0])))"
)]
pub fn tensordot(
    input: &Tensor,
    other: &Tensor,
    #[strict] dims_self: Ints,
    #[strict] dims_other: Ints,
) -> Result<Tensor> {
    if dims_self.len() != dims_other.len() {
        return Err(Error::runtime(format!(
            "both dimension lists should have same length, got {} and {}",
            dims_self.len(),
            dims_other.len()
        )));
    }
    if input.dtype() != other.dtype() {
        return Err(Error::runtime("both inputs should have same dtype"));
    }
    for (t, dims) in [(input, &dims_self), (other, &dims_other)] {
        if let (0, Some(dim)) = (t.ndim(), dims.first()) {
            return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
        }
    }
    let wrap =
        |t: &Tensor, dims: &Ints| dims.iter().map(|&d| wrap_dim(d, t.ndim())).collect::<Result<Dims>>();
    let (da, db) = (wrap(input, &dims_self)?, wrap(other, &dims_other)?);
    let (mut left, mut right) = (input.clone(), other.clone());
    for (i, (&x, &y)) in da.iter().zip(&db).enumerate() {
        match (left.shape()[x], right.shape()[y]) {
            (p, q) if p == q => {}
            (1, _) => right = over(&right, y)?,
            (_, 1) => left = over(&left, x)?,
            (p, q) => {
                return Err(Error::runtime(format!(
                    "contracted dimensions need to match, but first has size {p} in dim {} and second has size {q} in dim {}",
                    dims_self[i], dims_other[i]
                )));
            }
        }
    }
    let free = |t: &Tensor, used: &Dims| (0..t.ndim()).filter(|d| !used.contains(d)).collect::<Dims>();
    let (fa, fb) = (free(&left, &da), free(&right, &db));
    let (rows, columns) = (sizes(&left, &fa), sizes(&right, &fb));
    let inner: usize = sizes(&left, &da).iter().product();
    let shape = [&rows[..], &columns].concat();
    let x = permute(&left, ints(&[&fa[..], &da].concat()))?;
    let y = permute(&right, ints(&[&db[..], &fb].concat()))?;
    if shape.iter().all(|&n| n == 1) {
        let line = |t: Tensor| if t.ndim() == 1 { Ok(t) } else { reshaped(&t, &[inner]) };
        return reshaped(&dot(&line(x)?, &line(y)?)?, &shape);
    }
    let x = reshaped(&x, &[rows.iter().product(), inner])?;
    let y = reshaped(&y, &[inner, columns.iter().product()])?;
    reshaped(&mm(&x, &y)?, &shape)
}
