//! Other shapes and orders of the same elements: compositions of views, and operators that copy.

use crate::base::views::{dense_like, infer_shape};
use crate::base::{MemoryFormat, Put, Reduction, try_alloc, warn_once};
use crate::operator::bodies::{copy, duplicate, preserved};
use crate::operator::primitives::copies::{clone_dense, clone_preserved, to_device, to_dtype};
use crate::operator::primitives::views::{self, View, dims_of, ints, reshape};
use crate::operator::primitives::{constant, sums};
use crate::ops::complex;
use crate::ops::creation::create::clone_in;
use crate::ops::indexing::index::{from_i64, index_select, numbers, to_i64};
use crate::ops::prelude::*;
use crate::ops::shape::squeeze::unsqueeze;
use crate::ops::shape::view::{expand, permute, transpose};
use crate::ops::shape::{slices, view};
use crate::tensor::mode;
use smallvec::smallvec;
use std::sync::atomic::AtomicBool;

/// Wraps the dimensions of a list, and rejects duplicates.
fn distinct(dims: &[i64], ndim: usize) -> Result<Dims> {
    let mut out = Dims::new();
    for &d in dims {
        let d = wrap_dim(d, ndim)?;
        if out.contains(&d) {
            return Err(Error::runtime(format!("dim {d} appears multiple times in the list of dims")));
        }
        out.push(d);
    }
    Ok(out)
}

/// The layout of `repeat`: each dimension is split into its copies and its elements.
fn tiles(shape: &[usize], repeats: &[i64]) -> Result<(Dims, Dims, Dims)> {
    if repeats.len() < shape.len() {
        return Err(Error::runtime(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let lead = repeats.len() - shape.len();
    let size = |i: usize| if i < lead { 1 } else { shape[i - lead] as i64 };
    let sizes: Ints = repeats.iter().enumerate().map(|(i, r)| r.saturating_mul(size(i))).collect();
    dims_of(&sizes)?;
    let times = dims_of(repeats)?;
    let (mut pairs, mut whole) = (Dims::new(), Dims::new());
    for (i, &r) in times.iter().enumerate() {
        let n = if i < lead { 1 } else { shape[i - lead] };
        pairs.extend([r, n]);
        whole.push(r.checked_mul(n).ok_or_else(|| Error::runtime("repeat: the result is too large"))?);
    }
    Ok((times, pairs, whole))
}

/// Rolls one dimension by `shift`, as two copies.
fn roll_dim(body: &Body, dim: usize, shift: i64) -> Result<Body> {
    let n = body.shape()[dim] as i64;
    let out = Body::new(body.shape(), body.dtype, body.device())?;
    if n == 0 {
        return Ok(out);
    }
    let shift = shift.rem_euclid(n);
    for (to, from, length) in [(shift, 0, n - shift), (0, n - shift, shift)] {
        let part = |b: &Body, at| -> Result<Body> {
            Ok(b.with_layout(b.layout.slice(dim as i64, Some(at), Some(at + length), 1)?))
        };
        copy(&part(&out, to)?, &part(body, from)?)?;
    }
    Ok(out)
}

/// Writes `x` into `out` with `dims` reversed. The bodies must not be empty.
fn flip_into(out: &Body, x: &Body, dims: &[usize]) -> Result<()> {
    if x.dtype.is_stored_only() {
        return flip_into(&out.as_bits(), &x.as_bits(), dims);
    }
    fork!(over [out, x], with [dims],
    cpu: done(crate::cpu::flip::flip(out.host()?, x.host()?, dims)),
    gpu: crate::operator::bodies::part_by_part(out, x, |out, x| crate::gpu::flip(out.gpu()?, x.gpu()?, dims)))
}

/// The number of quarter turns and the two dimensions of `rot90`.
fn quarter_turns(k: i64, dims: &[i64], ndim: usize) -> Result<(i64, [i64; 2])> {
    if dims.len() != 2 {
        return Err(Error::runtime(format!(
            "expected total rotation dims == 2, but got dims = {}",
            dims.len()
        )));
    }
    if ndim < 2 {
        return Err(Error::runtime(format!("expected total dims >= 2, but got total dims = {ndim}")));
    }
    let (a, b) = (wrap_dim(dims[0], ndim)? as i64, wrap_dim(dims[1], ndim)? as i64);
    if a == b {
        return Err(Error::runtime(format!(
            "expected rotation dims to be different, but got dim0 = {} and dim1 = {}",
            dims[0], dims[1]
        )));
    }
    Ok((k.rem_euclid(4), [a, b]))
}

#[primitive(tangent = linear)]
impl Flip {
    fn forward(input: &Tensor, dims: &[i64]) -> Result<Body> {
        let body = input.body();
        let dims = distinct(dims, body.layout.ndim())?;
        let mut out = Body::new(body.shape(), body.dtype, body.device())?;
        if body.device().is_cpu() {
            out.layout = dense_like(&body.layout);
        }
        if dims.is_empty() || body.layout.ndim() == 0 || out.numel() == 0 {
            copy(&out, &body)?;
            return Ok(out);
        }
        flip_into(&out, &body, &dims)?;
        Ok(out)
    }
    fn d_input(g: &Tensor, dims: &Ints) -> Result<Tensor> {
        Flip::call(g, dims)
    }
    fn batch(b: &Batch, input: &Tensor, dims: &[i64]) -> Result<Tensor> {
        let x = b.full(input)?;
        Flip::call(&x, &b.dims(dims, b.rank(&x))?).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = linear)]
impl Roll {
    fn forward(input: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Body> {
        let body = input.body();
        if shifts.is_empty() {
            return Err(Error::runtime("`shifts` required"));
        }
        if dims.is_empty() && shifts.len() == 1 {
            let flat = if body.layout.is_contiguous() { body.clone() } else { duplicate(&body)? };
            let line = Layout { offset: flat.layout.offset, ..Layout::contiguous(&[flat.numel()]) };
            let rolled = roll_dim(&flat.with_layout(line), 0, shifts[0])?;
            return Ok(rolled.with_layout(Layout::contiguous(body.shape())));
        }
        if shifts.len() != dims.len() {
            return Err(Error::runtime(format!(
                "shifts and dimensions must align. shifts: {}, dims:{}",
                shifts.len(),
                dims.len()
            )));
        }
        if body.layout.ndim() == 0 {
            return Err(Error::index("Dimension specified as 0 but tensor has no dimensions"));
        }
        let mut out = duplicate(&body)?;
        for (&shift, &dim) in shifts.iter().zip(dims) {
            out = roll_dim(&out, wrap_dim(dim, body.layout.ndim())?, shift)?;
        }
        Ok(out)
    }
    fn d_input(g: &Tensor, shifts: &Ints, dims: &Ints) -> Result<Tensor> {
        let back: Ints = shifts.iter().rev().map(|s| s.wrapping_neg()).collect();
        let dims: Ints = dims.iter().rev().copied().collect();
        Roll::call(g, &back, &dims)
    }
    fn batch(b: &Batch, input: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
        let x = b.full(input)?;
        let made = if dims.is_empty() && shifts.len() == 1 {
            let shape = x.shape();
            let line = reshape(&x, &b.shape(&[shape[b.k()..].iter().product()]))?;
            reshape(&Roll::call(&line, shifts, &[b.k() as i64])?, &shape)
        } else {
            Roll::call(&x, shifts, &b.dims(dims, b.rank(&x))?)
        };
        made.map(|t| b.wrap(t))
    }
}

#[primitive(node = "Rot90Backward0", tangent = linear)]
impl Rot90 {
    fn forward(input: &Tensor, k: i64, dims: &[i64]) -> Result<Body> {
        let rotated = mode::with_grad(false, || rotate(input, k, dims))?;
        preserved(&rotated.body())
    }
    fn d_input(g: &Tensor, k: i64, dims: &Ints) -> Result<Tensor> {
        Rot90::call(g, k.wrapping_neg(), dims)
    }
    fn batch(_: &Batch, input: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
        rotate(input, k, dims)
    }
}

#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Repeat {
    fn forward(input: &Tensor, repeats: &[i64]) -> Result<Body> {
        let body = input.body();
        let (_, pairs, whole) = tiles(body.shape(), repeats)?;
        let out = Body::new(&whole, body.dtype, body.device())?;
        let mut source =
            Layout { shape: pairs.clone(), strides: smallvec![0; pairs.len()], offset: body.layout.offset };
        let lead = whole.len() - body.layout.ndim();
        for (i, &s) in body.layout.strides.iter().enumerate() {
            source.strides[2 * (lead + i) + 1] = s;
        }
        copy(&out.with_layout(Layout::contiguous(&pairs)), &body.with_layout(source))?;
        Ok(out)
    }
    fn d_input(g: V, at: Meta, repeats: &Ints) -> Result<V> {
        let lead = repeats.len() - at.shape.len();
        let (mut sizes, mut dims) = (Dims::new(), Ints::new());
        for (i, times) in dims_of(repeats)?.into_iter().enumerate() {
            if i < lead || times != 1 {
                dims.push(sizes.len() as i64);
                sizes.push(times);
            }
            if i >= lead {
                sizes.push(at.shape[i - lead]);
            }
        }
        Ok(if dims.is_empty() { g } else { g.reshape(&sizes).sum(&dims, false) })
    }
    fn batch(b: &Batch, input: &Tensor, repeats: &[i64]) -> Result<Tensor> {
        let x = b.full(input)?;
        // The primitive itself rejects too few repeats.
        let x = if repeats.len() > b.rank(&x) { b.widened(&x, repeats.len())? } else { x };
        let mut all: Ints = smallvec![1; b.k()];
        all.extend_from_slice(repeats);
        Repeat::call(&x, &all).map(|t| b.wrap(t))
    }
}

/// `rot90` as a composition of flips and transposes.
fn rotate(input: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
    let (k, [a, b]) = quarter_turns(k, dims, input.ndim())?;
    match k {
        1 => transpose(&Flip::call(input, &[b])?, a, b),
        2 => Flip::call(input, &[a, b]),
        3 => transpose(&Flip::call(input, &[a])?, a, b),
        _ => Ok(input.clone()),
    }
}

/// The permutation that moves `source` dimensions to `destination`.
fn movement(ndim: usize, source: &[i64], destination: &[i64]) -> Result<Ints> {
    if source.len() != destination.len() {
        return Err(Error::runtime(format!(
            "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of dims \
             as destination ({destination:?} dims)"
        )));
    }
    let wrap = |dims: &[i64], what: &str| -> Result<Dims> {
        let out = dims.iter().map(|&d| wrap_dim(d, ndim)).collect::<Result<Dims>>()?;
        if (1..out.len()).any(|i| out[..i].contains(&out[i])) {
            return Err(Error::runtime(format!("movedim: repeated dim in `{what}` ({dims:?})")));
        }
        Ok(out)
    };
    let (from, to) = (wrap(source, "source")?, wrap(destination, "destination")?);
    let mut order: Ints = smallvec![-1; ndim];
    if ndim == 0 {
        return Ok(order);
    }
    for (&f, &t) in from.iter().zip(&to) {
        order[t] = f as i64;
    }
    let mut rest = (0..ndim).filter(|d| !from.contains(d));
    for place in order.iter_mut().filter(|p| **p < 0) {
        *place = rest.next().unwrap_or(0) as i64;
    }
    Ok(order)
}

/// The index of the source for each element of the result, computed on the device of the counts: the number of cumulative sums of
/// the counts that do not exceed the element's position.
fn places(repeats: &Tensor, size: Option<i64>) -> Result<Tensor> {
    let repeats = to_dtype(repeats, DType::I64)?;
    let device = repeats.device();
    let numbers = |n: usize, value: i64| constant::full(&[n], Scalar::Int(value), DType::I64, device);
    let ends = crate::ops::reduction::scan::Cumsum::call(&repeats, 0)?;
    let total = match size {
        Some(size) => size,
        None if repeats.numel() == 0 => 0,
        None => {
            let least = kernel_min(&repeats)?;
            let last = slices::narrow(&ends, 0, ends.numel() as i64 - 1, 1)?;
            let both = to_device(&crate::ops::shape::join::cat(&[last, least], 0)?, Device::Cpu)?;
            let number = |i| slices::select(&both, 0, i)?.item().map(Scalar::as_i64);
            if number(1)? < 0 {
                return Err(Error::runtime("repeats can not be negative"));
            }
            number(0)?
        }
    };
    let total = dims_of(&[total])?[0];
    let marks = numbers(total + 1, 0)?;
    crate::ops::indexing::scatter::scatter_over(
        &marks.body(),
        &numbers(ends.numel(), 1)?.body(),
        0,
        &ends,
        Put::Add,
    )?;
    slices::narrow(&crate::ops::reduction::scan::Cumsum::call(&marks, 0)?, 0, 0, total as i64)
}

/// The minimum of integers, as a vector with one element.
fn kernel_min(x: &Tensor) -> Result<Tensor> {
    crate::operator::bodies::reduce(Reduction::Min, &x.body(), &[0], DType::I64).map(Tensor::new)
}

fn check_counts(repeats: &Tensor) -> Result<()> {
    if repeats.ndim() > 1 {
        return Err(Error::runtime("repeats must be 0-dim or 1-dim tensor"));
    }
    let dtype = repeats.dtype();
    if !matches!(dtype, DType::I64 | DType::I32) {
        let op = if repeats.device().is_cpu() { "repeat_interleave_cpu" } else { "repeat_interleave_cuda" };
        return Err(Fault::NoKernel { op, dtype }.into());
    }
    Ok(())
}

fn counts(repeats: &Tensor) -> Result<Vec<i64>> {
    check_counts(repeats)?;
    let list = to_i64(repeats)?;
    if list.iter().any(|&n| n < 0) {
        return Err(Error::runtime("repeats can not be negative"));
    }
    Ok(list)
}

/// A view of `length` slices from `start` on.
pub fn part(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    input.body().layout.narrow(dim, start, length)?;
    let size = input.shape()[wrap_dim(dim, input.ndim())?] as i64;
    let start = if start < 0 { start + size } else { start };
    slices::slice(input, dim, Some(start), Some(start + length), 1)
}

/// Return `length` slices along a dimension, from index `start` on (a view).
///
/// Args:
///     dim: dimension along which to narrow.
///     start: index of the first slice; a number or a tensor that holds one.
///     length: number of slices.
///
/// Examples:
///     >>> torch.narrow(torch.arange(6), 0, 2, 3)
///     tensor([2, 3, 4])
#[operator(
    function,
    method,
    composite,
    name = "narrow",
    int_args = narrow_by_ints,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.narrow(d, shape[d] // 2, shape[d] - shape[d] // 2))(dim_of(draw, shape)), 1)"
)]
pub fn narrow_at(input: &Tensor, dim: i64, #[elsewhere] start: &Tensor, length: i64) -> Result<Tensor> {
    if start.ndim() > 0 || !start.dtype().is_int() {
        return Err(Error::runtime("start must be an 0-dim integral Tensor."));
    }
    part(input, dim, start.item()?.as_index(), length)
}

/// `length` slices from `start` on (a view).
#[overload(narrow_at.default)]
pub fn narrow_from(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    part(input, dim, start, length)
}

fn narrow_by_ints(input: &Tensor, ints: &[i64]) -> Option<Result<Tensor>> {
    if let [dim, start, length] = *ints { Some(part(input, dim, start, length)) } else { None }
}

/// Return a copy of the tensor in memory of its own.
///
/// Gradients flow through the copy to `input`; `detach()` stops them.
///
/// Args:
///     memory_format: memory format of the copy; that of `input` if not given.
///
/// Examples:
///     >>> x = torch.zeros(2)
///     >>> y = torch.clone(x)
///     >>> y[0] = 1.0
///     >>> x
///     tensor([0., 0.])
#[operator(function, method, sample = "pointwise(named(name), 1, WIDE)")]
pub fn clone(input: &Tensor, #[keyword] memory_format: Option<MemoryFormat>) -> Result<Tensor> {
    match memory_format.unwrap_or(MemoryFormat::Preserve) {
        MemoryFormat::Preserve => clone_preserved(input),
        MemoryFormat::Contiguous => clone_dense(input),
        format => clone_in(input, format),
    }
}

fn contiguous_by_ints(input: &Tensor, none: &[i64]) -> Option<Result<Tensor>> {
    (none.is_empty() && input.body().layout.is_contiguous()).then(|| Ok(input.clone()))
}

/// Return the tensor with its elements in order in memory: itself if they are already, else a copy.
///
/// Args:
///     memory_format: the order that is asked for; `torch.contiguous_format` if not given.
///
/// Examples:
///     >>> x = torch.zeros(2, 3).t()
///     >>> x.is_contiguous(), x.contiguous().is_contiguous()
///     (False, True)
#[operator(method, int_args = contiguous_by_ints, sample = "view(lambda draw, shape: lambda x: x.contiguous())")]
pub fn contiguous(input: &Tensor, #[keyword] memory_format: Option<MemoryFormat>) -> Result<Tensor> {
    match memory_format.unwrap_or(MemoryFormat::Contiguous) {
        format if format.holds(&input.body().layout) => Ok(input.clone()),
        MemoryFormat::Preserve => {
            Err(Error::runtime("preserve memory format is unsupported by the contiguous operator"))
        }
        MemoryFormat::Contiguous => clone_dense(input),
        format => clone_in(input, format),
    }
}

/// Reverse the order of the elements along the given dimensions (a copy).
///
/// Args:
///     dims: dimensions to reverse.
///
/// Examples:
///     >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), [0])
///     tensor([[3, 4],
///             [1, 2]])
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.flip(d))(dim_of(draw, shape)), 1)"
)]
pub fn flip(input: &Tensor, dims: Sizes) -> Result<Tensor> {
    Flip::call(input, &dims.0)
}

/// Reverse the order of the columns, the second dimension (a copy).
///
/// Examples:
///     >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
///     tensor([[2, 1],
///             [4, 3]])
#[operator(function, method, sample = "view(lambda draw, shape: T.fliplr, 2)")]
pub fn fliplr(input: &Tensor) -> Result<Tensor> {
    if input.ndim() < 2 {
        return Err(Error::runtime("Input must be >= 2-d."));
    }
    Flip::call(input, &[1])
}

/// Reverse the order of the rows, the first dimension (a copy).
///
/// Examples:
///     >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
///     tensor([[3, 4],
///             [1, 2]])
#[operator(function, method, sample = "view(lambda draw, shape: T.flipud, 1)")]
pub fn flipud(input: &Tensor) -> Result<Tensor> {
    if input.ndim() < 1 {
        return Err(Error::runtime("Input must be >= 1-d."));
    }
    Flip::call(input, &[0])
}

/// Shift the elements along dimensions; those shifted out at the end come in at the start.
///
/// Args:
///     shifts: by how many places, one number for each of `dims`.
///     dims: dimensions along which to shift; without them, the flattened tensor is shifted.
///
/// Examples:
///     >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
///     tensor([4, 1, 2, 3])
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: (lambda n, d: lambda x: x.roll(n, d))(draw(st.integers(-3, 3)), dim_of(draw, shape)), 1)"
)]
pub fn roll(input: &Tensor, shifts: Ints, dims: Option<Ints>) -> Result<Tensor> {
    Roll::call(input, &shifts, &dims.unwrap_or_default())
}

/// Rotate by 90 degrees in the plane of two dimensions, from the first towards the second.
///
/// Args:
///     k: number of quarter turns; negative ones turn back.
///     dims: the two dimensions.
///
/// Examples:
///     >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
///     tensor([[2, 4],
///             [1, 3]])
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: (lambda k: lambda x: x.rot90(k, (0, -1)))(draw(st.integers(-1, 4))), 2)"
)]
pub fn rot90(
    input: &Tensor,
    #[default(1)] k: i64,
    #[default(smallvec![0, 1])]
    #[strict]
    dims: Ints,
) -> Result<Tensor> {
    Rot90::call(input, k, &dims)
}

/// Repeat the tensor along each dimension (a copy).
///
/// Args:
///     repeats: how often along each dimension; more numbers than dimensions add new ones in front.
///
/// Examples:
///     >>> torch.tensor([1, 2]).repeat(2, 2)
///     tensor([[1, 2, 1, 2],
///             [1, 2, 1, 2]])
#[operator(
    method,
    sample = "view(lambda draw, shape: lambda x: x.repeat(2, *[1 + d % 2 for d in range(x.dim())]))"
)]
pub fn repeat(input: &Tensor, repeats: Sizes) -> Result<Tensor> {
    Repeat::call(input, &repeats.0)
}

/// Repeat the tensor along its last dimensions (a copy).
///
/// Args:
///     dims: how often along each dimension; missing numbers are 1.
///
/// Examples:
///     >>> torch.tile(torch.tensor([[1, 2]]), (2,))
///     tensor([[1, 2, 1, 2]])
#[operator(function, method, sample = "view(lambda draw, shape: lambda x: x.tile((2, 1)))")]
pub fn tile(input: &Tensor, dims: Sizes) -> Result<Tensor> {
    let mut repeats: Ints = smallvec![1; input.ndim().saturating_sub(dims.0.len())];
    repeats.extend(dims.0);
    Repeat::call(input, &repeats)
}

/// Move dimensions to other places; the remaining ones keep their order (a view).
///
/// Args:
///     source: dimension or dimensions to move.
///     destination: where they are in the result.
///
/// Examples:
///     >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
///     torch.Size([3, 4, 2])
#[operator(function, method, composite, sample = "two_dims(name)")]
pub fn movedim(input: &Tensor, source: Ints, destination: Ints) -> Result<Tensor> {
    let order = movement(input.ndim(), &source, &destination)?;
    if order.is_empty() { views::alias(input) } else { permute(input, order) }
}

/// Move a dimension to another place (a view).
#[overload(movedim.int)]
pub fn movedim_one(input: &Tensor, source: i64, destination: i64) -> Result<Tensor> {
    movedim(input, smallvec![source], smallvec![destination])
}

/// Move dimensions to other places; the same as `torch.movedim` (a view).
///
/// Args:
///     source: dimension or dimensions to move.
///     destination: where they are in the result.
///
/// Examples:
///     >>> torch.moveaxis(torch.zeros(2, 3, 4), 0, -1).shape
///     torch.Size([3, 4, 2])
#[operator(function, method, composite, sample = "two_dims(name)")]
pub fn moveaxis(input: &Tensor, source: Ints, destination: Ints) -> Result<Tensor> {
    movedim(input, source, destination)
}

/// Move a dimension to another place (a view).
#[overload(moveaxis.int)]
pub fn moveaxis_one(input: &Tensor, source: i64, destination: i64) -> Result<Tensor> {
    movedim_one(input, source, destination)
}

/// Transpose the last two dimensions and conjugate complex elements (a view).
///
/// Examples:
///     >>> torch.adjoint(torch.tensor([[1 + 1j, 2j]]))
///     tensor([[1.-1.j],
///             [0.-2.j]])
#[operator(function, method, sample = "view(lambda draw, shape: T.adjoint, 2)")]
pub fn adjoint(input: &Tensor) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    match input.ndim() {
        0 => {
            warn_once(&TOLD, "adjoint() is deprecated on 0-D tensors. Consider using x.conj().")?;
            complex::conj(input)
        }
        1 => Err(Error::runtime(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.",
        )),
        _ => complex::conj(&transpose(input, -2, -1)?),
    }
}

/// Expand the tensor to the shape of `other` (a view).
///
/// Args:
///     other: the tensor whose shape is taken.
///
/// Examples:
///     >>> torch.tensor([[1], [2]]).expand_as(torch.zeros(2, 3)).shape
///     torch.Size([2, 3])
#[operator(
    method,
    sample = "view(lambda draw, shape: lambda x: x.expand_as(T.zeros(2, *x.shape, device=x.device)))"
)]
pub fn expand_as(input: &Tensor, #[elsewhere] other: &Tensor) -> Result<Tensor> {
    expand(input, ints(&other.shape()))
}

/// Return a view of the tensor with the shape of `other`.
///
/// Args:
///     other: the tensor whose shape is taken.
///
/// Examples:
///     >>> torch.arange(4).view_as(torch.zeros(2, 2))
///     tensor([[0, 1],
///             [2, 3]])
#[operator(method, sample = "view(lambda draw, shape: lambda x: x.contiguous().view_as(x))")]
pub fn view_as(input: &Tensor, #[elsewhere] other: &Tensor) -> Result<Tensor> {
    View::call(input, infer_shape(&ints(&other.shape()), input.numel())?)
}

/// Return the tensor with the shape of `other`: a view where possible, else a copy.
///
/// Args:
///     other: the tensor whose shape is taken.
///
/// Examples:
///     >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
///     tensor([[0, 1],
///             [2, 3]])
#[operator(method, sample = "view(lambda draw, shape: lambda x: x.reshape_as(x.flatten()))")]
pub fn reshape_as(input: &Tensor, #[elsewhere] other: &Tensor) -> Result<Tensor> {
    view::reshape_to(input, &ints(&other.shape()))
}

/// Broadcast the tensor to a shape (a view).
///
/// Args:
///     size: the shape; -1 keeps the size of a dimension.
///
/// Examples:
///     >>> torch.broadcast_to(torch.tensor([1, 2, 3]), (2, 3))
///     tensor([[1, 2, 3],
///             [1, 2, 3]])
#[operator(function, method, sample = "view(lambda draw, shape: lambda x: x.broadcast_to((2, *x.shape)))")]
pub fn broadcast_to(input: &Tensor, size: Sizes) -> Result<Tensor> {
    expand(input, size.0)
}

/// Split one dimension into several.
///
/// Args:
///     dim: dimension to split.
///     sizes: sizes of the new dimensions; one may be -1, to be inferred.
///
/// Examples:
///     >>> torch.unflatten(torch.zeros(2, 6), 1, (3, -1)).shape
///     torch.Size([2, 3, 2])
#[operator(function, method, composite, sample = "fixed([(2, 4)], lambda x: x.unflatten(1, (2, -1)))")]
pub fn unflatten(input: &Tensor, dim: i64, sizes: &[i64]) -> Result<Tensor> {
    let mut shape = input.shape();
    let at = wrap_dim(dim, shape.len())?;
    if sizes.is_empty() {
        return Err(Error::runtime("unflatten: sizes must be non-empty"));
    }
    let none = || Error::runtime("unflatten: the input must have at least one dimension");
    let n = shape.get(at).copied().ok_or_else(none)?;
    let parts = infer_shape(sizes, n).map_err(|_| {
        Error::runtime(format!(
            "unflatten: Provided sizes {sizes:?} don't multiply up to the size of dim {at} ({n}) in the input tensor"
        ))
    })?;
    shape.remove(at);
    shape.insert_many(at, parts);
    let viewable = input.body().layout.view(&shape).is_some();
    if viewable { View::call(input, shape) } else { reshape(input, &shape) }
}

/// Flatten the tensor into a vector: a view where possible, else a copy.
///
/// Examples:
///     >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
///     tensor([1, 2, 3, 4])
#[operator(function, method, sample = "view(lambda draw, shape: lambda x: x.ravel())")]
pub fn ravel(input: &Tensor) -> Result<Tensor> {
    View::call(&contiguous(input, None)?, smallvec![input.numel()])
}

/// The source indices of a repeated dimension of size `count`. `size` is the size of the result.
fn repeat_indices(repeats: &Tensor, count: usize, size: Option<i64>) -> Result<Tensor> {
    let Some(size) = size else {
        return Err(Error::runtime(
            "repeat_interleave: vmapping over the `repeats` tensor requires the `output_size` argument to be specified, \
             because the size of the output equals the sum of `repeats`, which is data-dependent and may differ between \
             batch elements. Please pass output_size, e.g. output_size=int(repeats.sum(-1).max()).",
        ));
    };
    if repeats.ndim() > 1 {
        return Err(Error::runtime("repeat_interleave only accept 1D vector as repeat"));
    }
    let repeats = expand(&reshape(repeats, &[repeats.numel()])?, ints(&[count]))?;
    let ends = crate::ops::reduction::scan::Cumsum::call(&to_dtype(&repeats, DType::I64)?, 0)?;
    let places =
        unsqueeze(&Tensor::new(numbers(0, 1, usize::try_from(size).unwrap_or(0), repeats.device())?), 1)?;
    let passed = to_dtype(&crate::ops::elementwise::arithmetic::le(&ends, &places)?, DType::I64)?;
    sums::Sum1::call(&passed, smallvec![1], false)
}

/// Repeat each element, or each slice along a dimension, right after itself.
///
/// With `repeats` alone, return the indices that such a repetition takes: index `i`, `repeats[i]` times.
///
/// Args:
///     repeats: how often: one number for all, or a tensor with one for each.
///     dim: dimension along which to repeat; without it, the flattened tensor is taken.
///     output_size: total size of the result along `dim`, if known, which saves counting.
///
/// Examples:
///     >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
///     tensor([1, 1, 2, 2])
///     >>> torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([1, 3]))
///     tensor([1, 2, 2, 2])
#[operator(
    function,
    method,
    composite,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.repeat_interleave(2, d))(dim_of(draw, shape)), 1)"
)]
pub fn repeat_interleave(
    input: &Tensor,
    repeats: &Tensor,
    dim: Option<i64>,
    output_size: Option<i64>,
) -> Result<Tensor> {
    let (input, at) = flatten_if_no_dim(input, dim)?;
    if repeats.is_batched() {
        let index = repeat_indices(repeats, input.shape()[at], output_size)?;
        return index_select(&input, at as i64, &index);
    }
    if repeats.numel() == 1 {
        return repeat_dim(&input, at, counts(repeats)?[0]);
    }
    check_counts(repeats)?;
    let size = input.shape()[at];
    if repeats.numel() != size {
        return Err(Error::runtime(format!(
            "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({at}) = {size}",
            repeats.numel()
        )));
    }
    if !repeats.device().is_cpu() {
        let index = mode::with_grad(false, || places(repeats, output_size))?;
        return index_select(&input, at as i64, &index);
    }
    let counts = counts(repeats)?;
    let total = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n as usize));
    let mut picked = try_alloc::with_capacity(total.unwrap_or(usize::MAX))?;
    picked.extend(counts.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i as i64, n as usize)));
    let index = from_i64(&picked, &[picked.len()], input.device())?;
    index_select(&input, at as i64, &index)
}

/// Each element (or slice across `dim`) repeated in place, so many times.
#[overload(repeat_interleave.self_int)]
pub fn repeat_interleave_times(
    input: &Tensor,
    repeats: i64,
    dim: Option<i64>,
    output_size: Option<i64>,
) -> Result<Tensor> {
    let _ = output_size;
    let (input, at) = flatten_if_no_dim(input, dim)?;
    repeat_dim(&input, at, repeats)
}

/// Each position's number, as often as `repeats` says there.
#[overload(repeat_interleave.Tensor, function)]
pub fn repeat_interleave_counts(repeats: &Tensor, #[keyword] output_size: Option<i64>) -> Result<Tensor> {
    let numbers = Tensor::new(crate::ops::indexing::index::numbers(0, 1, repeats.numel(), repeats.device())?);
    let made = repeat_interleave(&numbers, repeats, Some(0), output_size)?;
    to_dtype(&made, repeats.dtype())
}

/// The tensor and the dimension along which it is repeated. Without `dim`, the tensor is flattened.
fn flatten_if_no_dim(input: &Tensor, dim: Option<i64>) -> Result<(Tensor, usize)> {
    let (input, dim) = match dim {
        Some(dim) => (input.clone(), dim),
        None => (view::flatten(input, 0, -1)?, 0),
    };
    let input = if input.ndim() == 0 { reshape(&input, &[1])? } else { input };
    let at = wrap_dim(dim, input.ndim())?;
    Ok((input, at))
}

fn repeat_dim(input: &Tensor, at: usize, times: i64) -> Result<Tensor> {
    if times < 0 {
        return Err(Error::runtime("Repeats must be non-negative"));
    }
    let mut whole = input.shape();
    let mut wide = ints(&whole);
    wide.insert(at + 1, times);
    let expanded = expand(&unsqueeze(input, at as i64 + 1)?, wide)?;
    whole[at] = dims_of(&[whole[at] as i64, times])?.iter().product();
    View::call(&clone_dense(&expanded)?, whole)
}

/// Sum over the dimensions that broadcasting from `size` would expand.
///
/// Args:
///     size: shape of the result, which can be broadcast to that of the tensor.
///
/// Examples:
///     >>> torch.ones(2, 3).sum_to_size(1, 3)
///     tensor([[2., 2., 2.]])
#[operator(method, composite, sample = "view(lambda draw, shape: lambda x: x.sum_to_size([1] * x.dim()))")]
pub fn sum_to_size(input: &Tensor, size: Sizes) -> Result<Tensor> {
    let shape = dims_of(&size.0)?;
    if !crate::base::broadcast(&shape, &input.shape()).is_ok_and(|s| s == input.shape()) {
        return Err(Error::runtime(format!(
            "size {{{:?}}} is not expandable to size {{{:?}}}.",
            size.0.as_slice(),
            input.shape().as_slice()
        )));
    }
    sums::sum_to(input, &shape)
}
