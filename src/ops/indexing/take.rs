//! `take` and `put`, which index a flattened tensor, and `take_along_dim`.

use crate::base::{Put, broadcast};
use crate::operator::bodies::index::{Bounds, By, get};
use crate::operator::bodies::overlap::check_writable;
use crate::operator::bodies::{copy, duplicate};
use crate::operator::primitives::constant;
use crate::operator::primitives::views::{self, View, reshape};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::index::{Gather, IndexSelect};
use crate::ops::indexing::index_put;
use crate::ops::indexing::scatter::{into_zeros, place};
use crate::ops::prelude::*;
use crate::ops::shape::view::expand;
use smallvec::smallvec;

/// The flattened body.
fn line(body: &Body) -> Result<Body> {
    let dense = if body.layout.is_contiguous() { body.clone() } else { duplicate(body)? };
    let layout = Layout { offset: dense.layout.offset, ..Layout::contiguous(&[dense.numel()]) };
    Ok(dense.with_layout(layout))
}

fn check_line(op: &str, index: &Tensor, body: &Body) -> Result<()> {
    if index.dtype() != DType::I64 {
        return Err(Error::runtime(format!(
            "{op}(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_name()
        )));
    }
    if body.numel() == 0 && index.numel() > 0 {
        return Err(Error::index(format!("{op}(): tried to take from an empty tensor")));
    }
    Ok(())
}

/// PyTorch's error of `take` for an index out of bounds.
fn beyond(error: Error, size: usize) -> Error {
    let Fault::Beyond { index: Some((index, _)), .. } = error.fault() else { return error };
    Error::index(format!("out of range: tried to access index {index} on a tensor of {size} elements."))
}

/// Writes `values` at the index positions of the flattened tensor.
fn put_line(out: &Body, index: &Tensor, values: &Tensor, accumulate: bool) -> Result<()> {
    let whole = line(out)?;
    let values = reshape(values, &index.shape())?;
    index_put::write(&whole, &[Some(index.clone())], &values, accumulate)?;
    if whole.storage.same(&out.storage) { Ok(()) } else { copy(out, &with_shape(whole, out.shape())) }
}

#[primitive(tangent = linear)]
impl Take {
    fn forward(input: &Tensor, index: &Tensor) -> Result<Body> {
        let body = input.body();
        check_line("take", index, &body)?;
        let (from, by) = (line(&body)?, index.body());
        let out = Body::new(by.shape(), body.dtype, body.device())?;
        if out.numel() > 0 {
            let still = Layout {
                shape: Dims::from_slice(by.shape()),
                strides: smallvec![0; by.layout.ndim()],
                offset: from.layout.offset,
            };
            let by = By { index: &by, size: from.numel(), stride: 1, dim: 0 };
            get("take", &out, &from.with_layout(still), &[by], Bounds::Wrapped)
                .map_err(|error| beyond(error, from.numel()))?;
        }
        Ok(out)
    }
    fn d_input(g: &Tensor, at: Meta, index: &Tensor, input: Unread) -> Result<Tensor> {
        let Unread = input;
        into_zeros!(at, [g, index], PutAt(index, g, true))
    }
    fn batch(b: &Batch, input: &Tensor, index: &Tensor) -> Result<Tensor> {
        let line = b.k() as i64;
        let flat = reshape(&b.full(input)?, &b.shape(&[input.numel()]))?;
        let n = input.numel().max(1) as i64;
        let made = if index.is_batched() {
            let by = reshape(&b.full(index)?, &b.shape(&[index.numel()]))?;
            Gather::call(&flat, line, &a::remainder(&by, n)?)?
        } else {
            IndexSelect::call(&flat, line, &a::remainder(&reshape(index, &[index.numel()])?, n)?)?
        };
        Ok(b.wrap(reshape(&made, &b.shape(&index.shape()))?))
    }
}

/// Pick elements by their index in the flattened tensor.
///
/// Args:
///     index: the indices (int64); the result has their shape.
///
/// Examples:
///     >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
///     tensor([1, 4])
#[operator(
    function,
    method,
    out(
        message = "take(): self and out expected to have the same dtype, but got self.dtype = {result} and out.dtype = {target}",
        apart
    ),
    sample = "fixed([(2, 3)], lambda x: x.take(T.tensor([5, 0, 0], device=x.device)))"
)]
pub fn take(input: &Tensor, index: &Tensor) -> Result<Tensor> {
    Take::call(input, index)
}

/// Pick elements along a dimension by index, as `argmax` and `argsort` give them.
///
/// As `torch.gather`, but `input` and `indices` are broadcast.
///
/// Args:
///     indices: the indices (int64).
///     dim: dimension along which to index; without it, both tensors are flattened.
///
/// Examples:
///     >>> x = torch.tensor([[30, 10, 20]])
///     >>> torch.take_along_dim(x, torch.argsort(x, dim=1), dim=1)
///     tensor([[10, 20, 30]])
#[operator(
    function,
    method,
    composite,
    out(declared, called = "gather"),
    sample = "over_dim(lambda x, dim: T.take_along_dim(x, T.argsort(x.detach(), dim), dim))"
)]
pub fn take_along_dim(input: &Tensor, indices: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let Some(dim) = dim else {
        let n = (input.numel(), indices.numel());
        return Gather::call(&reshape(input, &[n.0])?, 0, &reshape(indices, &[n.1])?);
    };
    if indices.dtype() != DType::I64 {
        return Err(Error::runtime(format!(
            "torch.take_along_dim(): dtype of indices should be Long but got {}",
            indices.dtype().scalar_name()
        )));
    }
    if input.ndim() == 0 {
        return Err(Error::index(format!(
            "Dimension specified as {} but tensor has no dimensions",
            dim.max(0)
        )));
    }
    let at = wrap_dim(dim, input.ndim())?;
    if input.ndim() != indices.ndim() {
        return Err(Error::runtime(format!(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
             dimensions for input, and {} dimensions for indices",
            input.ndim(),
            indices.ndim()
        )));
    }
    // The sizes may differ along the dimension; the others broadcast.
    let expanded = |t: &Tensor, other: &Tensor| {
        let (mut own, mut beside) = (t.shape(), other.shape());
        let size = std::mem::replace(&mut own[at], 1);
        beside[at] = 1;
        let mut wide = broadcast(&own, &beside)?;
        wide[at] = size;
        expand(t, views::ints(&wide))
    };
    let (from, by) = (expanded(input, indices)?, expanded(indices, input)?);
    // Negative indices count from the end.
    let by = a::remainder(&by, input.shape()[at].max(1) as i64)?;
    Gather::call(&from, at as i64, &by)
}

/// The flattened `input` with the elements of `source` at `index`.
#[primitive(node = "PutBackward0", tangent = linear, dense)]
impl PutAt {
    fn check(input: &Body, index: &Tensor, source: &Tensor, _: bool) -> Result<()> {
        check_line("put_", index, input)?;
        if input.dtype != source.dtype() {
            return Err(Error::runtime(format!(
                "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
                input.dtype.scalar_name(),
                source.dtype().scalar_name()
            )));
        }
        if index.numel() != source.numel() {
            return Err(Error::index(format!(
                "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
                 index.numel() = {}",
                source.numel(),
                index.numel()
            )));
        }
        check_writable(input)
    }
    fn write(input: &Body, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<()> {
        put_line(input, index, source, accumulate)
    }
    fn d_input(g: &Tensor, index: &Tensor, accumulate: bool) -> Result<Tensor> {
        if accumulate {
            return Ok(g.clone());
        }
        let zeros = constant::zeros(&index.shape(), g.dtype(), g.device())?;
        PutAt::call(g, index, &zeros, false)
    }
    fn d_source(g: &Tensor, at: Meta, index: &Tensor, source: Unread) -> Result<Tensor> {
        let Unread = source;
        reshape(&Take::call(g, index)?, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        let (shape, n) = (input.shape(), input.numel());
        let flat = b.wrap(reshape(&b.full(input)?, &b.shape(&[n]))?);
        let line = a::remainder(&reshape(index, &[index.numel()])?, n.max(1) as i64)?;
        let source = reshape(source, &[index.numel()])?;
        let how = if accumulate { Put::Add } else { Put::Assign };
        View::call(&place(b, &flat, 0, &line, &source, how)?, shape)
    }
}

/// Return a copy of `input` with values at indices of the flattened tensor.
///
/// Args:
///     index: indices in the flattened tensor (int64).
///     source: the values, as many as indices.
///     accumulate: whether to add to the elements rather than to replace them.
///
/// Examples:
///     >>> torch.tensor([[1, 2], [3, 4]]).put(torch.tensor([0, 3]), torch.tensor([9, 8]))
///     tensor([[9, 2],
///             [3, 8]])
#[operator(
    function,
    method,
    sample = "fixed([(2, 3), (2,)], lambda x, y: T.put(x, T.tensor([5, 1], device=x.device), y))"
)]
pub fn put(
    input: &Tensor,
    index: &Tensor,
    source: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<Tensor> {
    PutAt::call(input, index, source, accumulate)
}

/// Write values into the tensor itself at indices of the flattened tensor.
#[inplace(put)]
pub fn put_(
    input: &Tensor,
    index: &Tensor,
    source: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<()> {
    PutAt::over(input, index, source, accumulate)
}
