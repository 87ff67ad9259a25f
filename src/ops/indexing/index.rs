//! Indexing along one dimension: `index_select`, `gather`, and helpers for all indexing operators.

use crate::base::{Put, try_alloc, warn};
use crate::capture;
use crate::operator::bodies::duplicate;
use crate::operator::bodies::index::{Bounds, By, get};
use crate::operator::primitives::views::{ints, reshape};
use crate::operator::primitives::{copies, detached};
use crate::ops::indexing::scatter::{IndexAdd, Scatter, into_zeros};
use crate::ops::indexing::slice_checks::check_index;
use crate::ops::prelude::*;
use crate::ops::shape::squeeze::{squeeze_one, unsqueeze};
use crate::ops::shape::view::expand;

/// Converts an index error to a `RuntimeError`, as operators along one dimension raise it.
pub(crate) fn as_runtime(error: Error) -> Error {
    match error.into_fault() {
        Fault::Beyond { index, size, .. } => Fault::Beyond { index, size, along: true }.into(),
        other => other.into(),
    }
}

/// The int64 range `start, start + step, …` of `count` numbers, computed on the device.
pub fn numbers(start: i64, step: i64, count: usize, device: Device) -> Result<Body> {
    crate::ops::creation::ranges::range(Scalar::Int(start), Scalar::Int(step), count, DType::I64, device)
}

pub fn from_i64(values: &[i64], shape: &[usize], device: Device) -> Result<Tensor> {
    let host = Body::new(shape, DType::I64, Device::Cpu)?;
    capture::constant(&host, |start| {
        for (i, &v) in values.iter().enumerate().take(host.numel()) {
            // SAFETY: the body has `numel` int64 elements.
            unsafe { start.cast::<i64>().add(i).write(v) };
        }
        Ok::<(), Error>(())
    })?;
    copies::to_device(&Tensor::new(host), device)
}

/// The elements of an integer tensor, copied to the host.
pub fn to_i64(t: &Tensor) -> Result<Vec<i64>> {
    let host = copies::to_device(&detached::shallow(t), Device::Cpu)?;
    let body = duplicate(&copies::to_dtype(&host, DType::I64)?.body())?;
    let start = body.host()?.ptr.cast::<i64>();
    // SAFETY: the body is contiguous and has `numel` int64 elements.
    try_alloc::all((0..body.numel()).map(|i| unsafe { start.add(i).read() }))
}

/// Converts an index to int64 on the device of `t`. Masks become the indices of their true elements.
pub fn expand_masks(t: &Tensor, dim: usize, index: Tensor) -> Result<Vec<Tensor>> {
    if t.device().is_cpu() && !index.device().is_cpu() {
        return Err(Error::runtime(
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
        ));
    }
    match index.dtype() {
        DType::Bool | DType::U8 if index.is_batched() => Err(crate::operator::batch::refuse::refuse_mask()),
        DType::Bool | DType::U8 => {
            if index.dtype() == DType::U8 {
                warn(
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                )?;
            }
            let (have, want) = (t.shape(), index.shape());
            if dim + want.len() > have.len() {
                return Err(Error::index(format!(
                    "too many indices for tensor of dimension {} (got {})",
                    have.len(),
                    dim + want.len()
                )));
            }
            for (i, &n) in want.iter().enumerate() {
                if have[dim + i] != n {
                    return Err(Error::index(format!(
                        "The shape of the mask {:?} at index {i} does not match the shape of the indexed tensor {:?} at \
                         index {}",
                        want.as_slice(),
                        have.as_slice(),
                        dim + i
                    )));
                }
            }
            crate::ops::indexing::nonzero::nonzero_columns(&copies::to_device(&index, t.device())?)
        }
        DType::I64 | DType::I32 => {
            let index = copies::to_dtype(&index, DType::I64)?;
            Ok(vec![copies::to_device(&index, t.device())?])
        }
        _ => Err(Error::index("tensors used as indices must be long, int, byte or bool tensors")),
    }
}

/// The layout of `body` over `shape`, with stride 0 along `dim`, whose position comes from an index.
pub(crate) fn along(body: &Body, dim: usize, shape: &[usize]) -> Layout {
    let mut layout = body.layout.clone();
    layout.shape = Dims::from_slice(shape);
    if dim < layout.strides.len() {
        layout.strides[dim] = 0;
    }
    layout
}

/// A 0-d tensor as a vector with one element.
pub(super) fn as_line(body: &Body) -> Body {
    match body.layout.ndim() {
        0 => body.with_layout(Layout { offset: body.layout.offset, ..Layout::contiguous(&[1]) }),
        _ => body.clone(),
    }
}

pub(crate) fn size_and_stride(body: &Body, dim: usize) -> (usize, usize) {
    if body.layout.ndim() == 0 { (1, 1) } else { (body.shape()[dim], body.layout.strides[dim]) }
}

/// The batching rule of an operator along `dim` of `x` and index tensors. 0-d examples get a dimension for the call.
pub(crate) fn on_lines(
    b: &Batch,
    x: &Tensor,
    others: &[&Tensor],
    dim: i64,
    f: impl FnOnce(&Tensor, &[Tensor], i64) -> Result<Tensor>,
) -> Result<Tensor> {
    let at = b.dim(dim, x.ndim())?;
    let line = |t: &Tensor| {
        let full = b.full(t)?;
        if t.ndim() == 0 { unsqueeze(&full, -1) } else { Ok(full) }
    };
    let others = others.iter().map(|t| line(t)).collect::<Result<Vec<_>>>()?;
    f(&line(x)?, &others, at)
}

/// Wraps the result, without the dimension that `on_lines` added.
pub(crate) fn from_lines(b: &Batch, made: Tensor, seen: &Tensor) -> Result<Tensor> {
    Ok(b.wrap(if seen.ndim() == 0 { squeeze_one(&made, -1)? } else { made }))
}

/// Broadcasts each example's vector of positions over the dimensions of `shape` (which includes the batch dimensions) other than
/// `at`.
pub(crate) fn spread_positions(b: &Batch, index: &Tensor, at: i64, shape: &[usize]) -> Result<Tensor> {
    let mut narrow: Dims = smallvec::smallvec![1; shape.len()];
    narrow[..b.k()].copy_from_slice(&b.sizes);
    narrow[at as usize] = index.numel();
    let by = reshape(&b.full(index)?, &narrow)?;
    let mut wide = Dims::from_slice(shape);
    wide[at as usize] = index.numel();
    expand(&copies::to_dtype(&by, DType::I64)?, ints(&wide))
}

pub(crate) fn check_vector(op: &str, index: &Tensor) -> Result<()> {
    match index.ndim() {
        0 | 1 => Ok(()),
        _ => Err(Error::index(format!("{op}(): Index is supposed to be a vector"))),
    }
}

#[primitive(tangent = linear, shows(sparse_grad = false))]
impl Gather {
    fn forward(input: &Tensor, dim: i64, index: &Tensor) -> Result<Body> {
        check_index("gather", index)?;
        let (body, by) = (input.body(), index.body());
        let dim = wrap_dim(dim, body.layout.ndim())?;
        if by.numel() == 0 {
            return Body::new(by.shape(), body.dtype, body.device());
        }
        if body.layout.ndim().max(1) != by.layout.ndim().max(1) {
            return Err(Error::runtime(
                "Index tensor must have the same number of dimensions as input tensor",
            ));
        }
        for d in (0..by.layout.ndim()).filter(|&d| d != dim) {
            if by.shape()[d] > body.shape().get(d).copied().unwrap_or(1) {
                return Err(Error::runtime(format!(
                    "Size does not match at dimension {d} expected index {:?} to be no larger than self {:?} apart from \
                     dimension {dim}",
                    by.shape(),
                    body.shape()
                )));
            }
        }
        let out = Body::new(by.shape(), body.dtype, body.device())?;
        let (from, by) = (as_line(&body), as_line(&by));
        let (size, stride) = size_and_stride(&from, dim);
        let source = from.with_layout(along(&from, dim, by.shape()));
        get("gather", &as_line(&out), &source, &[By { index: &by, size, stride, dim }], Bounds::OfElements)
            .map_err(as_runtime)?;
        Ok(out)
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, index: &Tensor, input: Unread) -> Result<Tensor> {
        let Unread = input;
        into_zeros!(at, [g, index], Scatter(dim, index, g, Put::Add))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        if input.ndim().max(1) != index.ndim().max(1) {
            return Err(Error::runtime(
                "Index tensor must have the same number of dimensions as input tensor",
            ));
        }
        let made = on_lines(b, input, &[index], dim, |x, by, at| Gather::call(x, at, &by[0]))?;
        from_lines(b, made, index)
    }
}

/// Pick elements along a dimension by index: for `dim=0`, `out[i][j] = input[index[i][j]][j]`.
///
/// Args:
///     dim: dimension along which to index.
///     index: the indices, with as many dimensions as `input`; the result has their shape.
///     sparse_grad: not supported; the gradient is dense.
///
/// Examples:
///     >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
///     tensor([[1, 1],
///             [4, 3]])
#[operator(function, method, out(declared, resizes), sample = "indexed(named(name))")]
pub fn gather(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    #[keyword]
    #[default(false)]
    sparse_grad: bool,
) -> Result<Tensor> {
    if sparse_grad {
        return Err(Error::not_implemented(
            "gather: gradients are dense here, so sparse_grad=True is refused; pass sparse_grad=False",
        ));
    }
    Gather::call(input, dim, index)
}

#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl IndexSelect {
    fn forward(input: &Tensor, dim: i64, index: &Tensor) -> Result<Body> {
        if !matches!(index.dtype(), DType::I64 | DType::I32) {
            return Err(Error::runtime("index_select(): Expected dtype int32 or int64 for index"));
        }
        if index.ndim() > 1 {
            return Err(Error::index("index_select(): Index is supposed to be a vector"));
        }
        let (body, by) = (input.body(), index.body());
        let dim = wrap_dim(dim, body.layout.ndim())?;
        let mut shape = Dims::from_slice(body.shape());
        match shape.get_mut(dim) {
            Some(0) if by.numel() > 0 && body.layout.ndim() > 1 => {
                return Err(Error::runtime("index_select(): self indexing axis dim should be positive"));
            }
            Some(n) => *n = by.numel(),
            None if by.numel() != 1 => {
                return Err(Error::runtime(format!(
                    "index_select(): Index to scalar can have only 1 value, got {} value(s)",
                    by.numel()
                )));
            }
            None => {}
        }
        let out = Body::new(&shape, body.dtype, body.device())?;
        if out.numel() > 0 {
            let (size, stride) = size_and_stride(&body, dim);
            let index = by.with_layout(down(&by, dim, &shape));
            let source = body.with_layout(along(&body, dim, &shape));
            get("index_select", &out, &source, &[By { index: &index, size, stride, dim }], Bounds::Strict)
                .map_err(|error| match error.fault() {
                    Fault::Beyond { .. } => Error::index("index out of range in self"),
                    _ => error,
                })?;
        }
        Ok(out)
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, index: &Tensor) -> Result<Tensor> {
        into_zeros!(at, [g, index], IndexAdd(dim, index, g, Scalar::Int(1)))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        check_vector("index_select", index)?;
        let made = on_lines(b, input, &[], dim, |x, _, at| match index.is_batched() {
            false => IndexSelect::call(x, at, index),
            true => Gather::call(x, at, &spread_positions(b, index, at, &x.shape())?),
        })?;
        from_lines(b, made, input)
    }
}

/// Return the slices along a dimension that a vector of indices names (a copy).
///
/// Args:
///     dim: dimension along which to index.
///     index: vector of indices (int32 or int64).
///
/// Examples:
///     >>> torch.index_select(torch.tensor([[1, 2], [3, 4], [5, 6]]), 0, torch.tensor([2, 0]))
///     tensor([[5, 6],
///             [1, 2]])
#[operator(
    function,
    method,
    out(message = "index_select(): self and result must have the same scalar type", apart),
    sample = "listed(named(name))"
)]
pub fn index_select(input: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    IndexSelect::call(input, dim, index)
}

/// The layout of an index vector along `dim` of `shape`.
pub(crate) fn down(by: &Body, dim: usize, shape: &[usize]) -> Layout {
    let mut layout = Layout {
        shape: Dims::from_slice(shape),
        strides: smallvec::smallvec![0; shape.len()],
        offset: by.layout.offset,
    };
    if let Some(s) = layout.strides.get_mut(dim) {
        *s = by.layout.strides.first().copied().unwrap_or(0);
    }
    layout
}
