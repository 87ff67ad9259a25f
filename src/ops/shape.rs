//! Other shapes and orders of the same elements: compositions of views, and the operators that must move data for it.

use super::kernel::{copy, done, duplicate, fork};
use super::macros::{compose, ops};
use super::row::{Arg, Ints, Sizes, Value};
use super::view::{dims_of, expand, ints, permute, reshape, transpose, unsqueeze, view_as_shape};
use crate::base::views::{dense_like, infer_shape};
use crate::base::{
    DType, Device, Dims, Error, Fold, Layout, MemoryFormat, Put, Result, Scalar, caution_once, wrap_dim,
};
use crate::tensor::{Body, Tensor};
use smallvec::smallvec;
use std::sync::atomic::AtomicBool;

/// A new body of the same values; dense layouts (transposed ones too) are kept.
pub(crate) fn preserved(body: &Body) -> Result<Body> {
    let mut out = Body::new(body.shape(), body.dtype, body.device())?;
    out.layout = dense_like(&body.layout);
    copy(&out, body)?;
    Ok(out)
}

/// The dimensions of a user's list, wrapped, each once.
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

/// The layout of `repeat`: for each dimension its copies, then its elements.
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

/// One rotation of a dimension by `shift`, in two copies.
fn rolled(body: &Body, dim: usize, shift: i64) -> Result<Body> {
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

/// `out` becomes `x` with the order of `dims` reversed; there are elements.
fn flip_into(out: &Body, x: &Body, dims: &[usize]) -> Result<()> {
    if !x.lazy.is_nothing() {
        flip_into(out, &x.bare(), dims)?;
        return super::lazy::finish(out, x.lazy);
    }
    fork!([out, x],
    cpu: done(crate::cpu::flip::flip(out.host()?, x.host()?, dims)),
    gpu: super::kernel::part_by_part(out, x, |out, x| crate::gpu::flip(out.gpu()?, x.gpu()?, dims)))
}

/// The two dimensions and quarter turns of `rot90`.
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

ops! { "view";
    /// A copy with its own storage; the gradient flows through.
    [hidden, linear] fn clone_as_it_lies(input) -> y { preserved(&input.body()) }
    input: |g| g;
    /// The elements in reverse order along dimensions.
    [linear] fn flip(input; dims: Sizes) -> y {
        let body = input.body();
        let dims = distinct(&dims.0, body.layout.ndim())?;
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
    input: |g, dims| g.then(|t| flip(&t, dims));
    /// The elements shifted along dimensions (all of them in a row when none is named), the last ones coming first.
    [linear] fn roll(input; shifts: Ints, dims: Option<Ints> = None) -> y {
        let body = input.body();
        let dims = dims.unwrap_or_default();
        if shifts.is_empty() {
            return Err(Error::runtime("`shifts` required"));
        }
        if dims.is_empty() && shifts.len() == 1 {
            let flat = if body.layout.is_contiguous() { body.clone() } else { duplicate(&body)? };
            let line = flat.with_layout(Layout { offset: flat.layout.offset, ..Layout::contiguous(&[flat.numel()]) });
            return Ok(rolled(&line, 0, shifts[0])?.with_layout(Layout::contiguous(body.shape())));
        }
        if shifts.len() != dims.len() {
            return Err(Error::runtime(format!(
                "shifts and dimensions must align. shifts: {}, dims:{}", shifts.len(), dims.len()
            )));
        }
        if body.layout.ndim() == 0 {
            return Err(Error::index("Dimension specified as 0 but tensor has no dimensions"));
        }
        let mut out = duplicate(&body)?;
        for (&shift, &dim) in shifts.iter().zip(&dims) {
            out = rolled(&out, wrap_dim(dim, body.layout.ndim())?, shift)?;
        }
        Ok(out)
    }
    input: |g, shifts, dims| {
        let back: Ints = shifts.iter().rev().map(|s| s.wrapping_neg()).collect();
        let dims = dims.map(|d| d.iter().rev().copied().collect::<Ints>());
        g.then(|t| roll(&t, back, dims))
    };
    /// Quarter turns in the plane of two dimensions, from the first towards the second.
    [linear] fn rot90(input; k: i64 = 1, dims: Ints = smallvec![0, 1]) -> y {
        let turned = crate::tensor::mode::with_grad(false, || turned(input, k, &dims))?;
        preserved(&turned.body())
    }
    input: |g, k, dims| g.then(|t| rot90(&t, k.wrapping_neg(), dims));
    /// Copies of the whole tensor along each dimension, new ones in front.
    [no_function, linear] fn repeat(input; repeats: Sizes) -> y {
        let body = input.body();
        let (_, pairs, whole) = tiles(body.shape(), &repeats.0)?;
        let out = Body::new(&whole, body.dtype, body.device())?;
        let mut source = Layout { shape: pairs.clone(), strides: smallvec![0; pairs.len()], offset: body.layout.offset };
        let lead = whole.len() - body.layout.ndim();
        for (i, &s) in body.layout.strides.iter().enumerate() {
            source.strides[2 * (lead + i) + 1] = s;
        }
        copy(&out.with_layout(Layout::contiguous(&pairs)), &body.with_layout(source))?;
        Ok(out)
    }
    input: |g, repeats, at| {
        let lead = repeats.0.len() - at.shape.len();
        let (mut sizes, mut dims) = (Dims::new(), Ints::new());
        for (i, times) in dims_of(&repeats.0)?.into_iter().enumerate() {
            if i < lead || times != 1 {
                dims.push(sizes.len() as i64);
                sizes.push(times);
            }
            if i >= lead {
                sizes.push(at.shape[i - lead]);
            }
        }
        if dims.is_empty() { g } else { g.reshape(&sizes).sum(&dims, false) }
    };
}

/// Quarter turns as a composition.
pub(super) fn turned(input: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
    let (k, [a, b]) = quarter_turns(k, dims, input.ndim())?;
    match k {
        1 => transpose(&flip(input, Sizes(smallvec![b]))?, a, b),
        2 => flip(input, Sizes(smallvec![a, b])),
        3 => transpose(&flip(input, Sizes(smallvec![a]))?, a, b),
        _ => Ok(input.clone()),
    }
}

/// The permutation that moves `source` dimensions to `destination`.
fn moved(ndim: usize, source: &[i64], destination: &[i64]) -> Result<Ints> {
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

/// For each element of a result its place in the input, found where the counts lie: places end where their running sums
/// say, so that the number of ends up to an element is its place.
fn places(repeats: &Tensor, size: Option<i64>) -> Result<Tensor> {
    let repeats = super::create::to_dtype(repeats, DType::I64)?;
    let device = repeats.device();
    let numbers = |n: usize, value: i64| super::create::full(&[n], Scalar::Int(value), DType::I64, device);
    let ends = super::scan::Cumsum::call(&repeats, 0)?;
    let total = match size {
        Some(size) => size,
        None if repeats.numel() == 0 => 0,
        None => {
            let least = kernel_min(&repeats)?;
            let last = super::view::narrow(&ends, 0, ends.numel() as i64 - 1, 1)?;
            let both = super::create::to_device(&super::join::cat(&[last, least], 0)?, Device::Cpu)?;
            let number = |i| super::view::select(&both, 0, i)?.item().map(Scalar::as_i64);
            if number(1)? < 0 {
                return Err(Error::runtime("repeats can not be negative"));
            }
            number(0)?
        }
    };
    let total = dims_of(&[total])?[0];
    let marks = numbers(total + 1, 0)?;
    super::index::scatter_over(&marks.body(), &numbers(ends.numel(), 1)?.body(), 0, &ends, Put::Add)?;
    super::view::narrow(&super::scan::Cumsum::call(&marks, 0)?, 0, 0, total as i64)
}

/// The least of whole numbers, as a vector of one.
fn kernel_min(x: &Tensor) -> Result<Tensor> {
    super::kernel::reduce(Fold::Min, &x.body(), &[0], DType::I64).map(Tensor::new)
}

fn check_counts(repeats: &Tensor) -> Result<()> {
    if !matches!(repeats.dtype(), DType::I64 | DType::I32) {
        return Err(Error::runtime("repeats has to be Long or Int tensor"));
    }
    if repeats.ndim() > 1 {
        return Err(Error::runtime("repeat_interleave only accept 1D vector as repeat"));
    }
    Ok(())
}

fn counts(repeats: &Tensor) -> Result<Vec<i64>> {
    check_counts(repeats)?;
    let host = super::create::to_device(&super::create::shallow(repeats), crate::base::Device::Cpu)?;
    let wide = super::create::to_dtype(&host, DType::I64)?;
    let body = duplicate(&wide.body())?;
    let start = body.host()?.ptr.cast::<i64>();
    // SAFETY: the body is dense and holds that many int64 elements.
    let list = crate::base::room::collect((0..body.numel()).map(|i| Ok(unsafe { start.add(i).read() })))?;
    if list.iter().any(|&n| n < 0) {
        return Err(Error::runtime("repeats can not be negative"));
    }
    Ok(list)
}

/// Vectors become rows.
pub(super) fn at_least_2d(t: Tensor) -> Result<Tensor> {
    match t.ndim() {
        0 => reshape(&t, &[1, 1]),
        1 => unsqueeze(&t, 0),
        _ => Ok(t),
    }
}

/// Tensors of fewer dimensions get leading and trailing ones of size 1.
pub(super) fn at_least_3d(t: Tensor) -> Result<Tensor> {
    match t.ndim() {
        0 => reshape(&t, &[1, 1, 1]),
        1 => unsqueeze(&unsqueeze(&t, 0)?, -1),
        2 => unsqueeze(&t, -1),
        _ => Ok(t),
    }
}

/// `length` slices from `start` on, as a view.
pub fn part(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    input.body().layout.narrow(dim, start, length)?;
    let size = input.shape()[wrap_dim(dim, input.ndim())?] as i64;
    let start = if start < 0 { start + size } else { start };
    crate::ops::view::slice(input, dim, Some(start), Some(start + length), 1)
}

mod more {
    use super::*;

    compose! { "view";
        /// `length` slices from `start` on (a view).
    fn narrow_(input: Tensor, dim: i64, start: Arg, length: i64) -> Tensor {
        let start = match start {
            Arg::Int(start) => start,
            Arg::Tensor(t) if t.ndim() == 0 && t.dtype().is_int() => t.item()?.as_i64(),
            Arg::Tensor(_) => return Err(Error::runtime("start must be an 0-dim integral Tensor.")),
            other => return Err(Error::type_error(format!(
                "narrow() received an invalid combination of arguments - got (int, {}, int), but expected one of:\n * (Tensor input, \
                 int dim, Tensor start, int length)\n * (Tensor input, int dim, int start, int length)\n", other.type_name()
            ))),
        };
        part(&input, dim, start, length)
    }
    /// A copy with its own storage; the gradient flows through.
        fn clone_(input: Tensor, memory_format: Option<MemoryFormat> = None) -> Tensor {
            match memory_format.unwrap_or(MemoryFormat::Preserve) {
                MemoryFormat::Preserve => clone_as_it_lies(&input),
                MemoryFormat::Contiguous => crate::ops::create::clone_dense(&input),
                format => crate::ops::create::cloned_in(&input, format),
            }
        }
        /// The tensor itself when its elements lie in order, else a copy in which they do.
        [no_function] fn contiguous(input: Tensor, memory_format: Option<MemoryFormat> = None) -> Tensor {
            match memory_format.unwrap_or(MemoryFormat::Contiguous) {
                format if format.holds(&input.body().layout) => Ok(input),
                MemoryFormat::Preserve => Err(Error::runtime("preserve memory format is unsupported by the contiguous operator")),
                MemoryFormat::Contiguous => crate::ops::create::clone_dense(&input),
                format => crate::ops::create::cloned_in(&input, format),
            }
        }
        /// Dimensions moved to other places (a view).
        fn movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor {
            let order = moved(input.ndim(), &source, &destination)?;
            if order.is_empty() { crate::ops::view::alias(&input) } else { permute(&input, order) }
        }
        /// Dimensions moved to other places (a view; `movedim`).
        fn moveaxis(input: Tensor, source: Ints, destination: Ints) -> Tensor { movedim(input, source, destination) }
        /// Swap two dimensions (a view; `transpose`).
        fn swapaxes(input: Tensor, axis0: i64, axis1: i64) -> Tensor { transpose(&input, axis0, axis1) }
        /// Swap two dimensions (a view; `transpose`).
        fn swapdims(input: Tensor, dim0: i64, dim1: i64) -> Tensor { transpose(&input, dim0, dim1) }
        /// Transposed in the last two dimensions, and conjugated where that means something (a view).
        fn adjoint(input: Tensor) -> Tensor {
            static TOLD: AtomicBool = AtomicBool::new(false);
            match input.ndim() {
                0 => {
                    caution_once(&TOLD, "adjoint() is deprecated on 0-D tensors. Consider using x.conj().")?;
                    crate::ops::complex::conj_(input)
                }
                1 => Err(Error::runtime(
                    "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.",
                )),
                _ => crate::ops::complex::conj_(transpose(&input, -2, -1)?),
            }
        }
        /// Stretched to the shape of `other` (a view).
        [no_function] fn expand_as(input: Tensor, other: Tensor) -> Tensor { expand(&input, ints(&other.shape())) }
        /// The shape of `other` (a view, or an error).
        [no_function] fn view_as(input: Tensor, other: Tensor) -> Tensor {
            let shape = infer_shape(&ints(&other.shape()), input.numel())?;
            view_as_shape(&input, shape)
        }
        /// The shape of `other`; a copy only where it must be.
        [no_function] fn reshape_as(input: Tensor, other: Tensor) -> Tensor {
            crate::ops::view::reshape_to(&input, &ints(&other.shape()))
        }
        /// Stretched to `size` (a view).
        fn broadcast_to(input: Tensor, size: Sizes) -> Tensor { expand(&input, size.0) }
        /// One dimension made several.
        fn unflatten(input: Tensor, dim: i64, sizes: Ints) -> Tensor {
            let mut shape = input.shape();
            let at = wrap_dim(dim, shape.len())?;
            if sizes.is_empty() {
                return Err(Error::runtime("unflatten: sizes must be non-empty"));
            }
            let n = shape.get(at).copied().ok_or_else(|| Error::runtime("unflatten: a tensor without dimensions has none to cut"))?;
            let parts = infer_shape(&sizes, n).map_err(|_| Error::runtime(format!(
                "unflatten: Provided sizes {:?} don't multiply up to the size of dim {at} ({n}) in the input tensor", sizes.as_slice()
            )))?;
            shape.remove(at);
            shape.insert_many(at, parts);
            match input.body().layout.view(&shape) {
                Some(_) => view_as_shape(&input, shape),
                None => reshape(&input, &shape),
            }
        }
        /// All elements in one dimension.
        fn ravel(input: Tensor) -> Tensor {
            let n = input.numel();
            let dense = contiguous(input, None)?;
            view_as_shape(&dense, smallvec![n])
        }
        /// Left and right swapped.
        fn fliplr(input: Tensor) -> Tensor {
            if input.ndim() < 2 {
                return Err(Error::runtime("Input must be >= 2-d."));
            }
            flip(&input, Sizes(smallvec![1]))
        }
        /// Up and down swapped.
        fn flipud(input: Tensor) -> Tensor {
            if input.ndim() < 1 {
                return Err(Error::runtime("Input must be >= 1-d."));
            }
            flip(&input, Sizes(smallvec![0]))
        }
        /// Copies of the whole tensor along its last dimensions.
        fn tile(input: Tensor, dims: Sizes) -> Tensor {
            let mut repeats: Ints = smallvec![1; input.ndim().saturating_sub(dims.0.len())];
            repeats.extend(dims.0.iter().copied());
            repeat(&input, Sizes(repeats))
        }
        /// Each element (or slice across `dim`) repeated in place, so many times each.
        fn repeat_interleave(input: Tensor, repeats: Option<Value> = None, dim: Option<i64> = None, output_size: Option<i64> = None) -> Tensor {
            let Some(repeats) = repeats else {
                // The counts alone: each place's number, that often.
                let places = Tensor::new(crate::ops::index::numbers(0, 1, input.numel(), input.device())?);
                let dtype = input.dtype();
                let made = repeat_interleave(places, Some(Value::Tensor(input)), Some(0), output_size)?;
                return crate::ops::create::to_dtype(&made, dtype);
            };
            let (input, dim) = match dim {
                Some(dim) => (input, dim),
                None => (crate::ops::view::flatten(input, 0, -1)?, 0),
            };
            let input = if input.ndim() == 0 { reshape(&input, &[1])? } else { input };
            let at = wrap_dim(dim, input.ndim())?;
            let shape = input.shape();
            let times = match &repeats {
                Value::Scalar(s) => s.as_i64(),
                Value::Tensor(t) if t.is_batched() => {
                    let index = crate::ops::batch::repeated_places(t, shape[at], output_size)?;
                    return crate::ops::index::index_select(&input, at as i64, index);
                }
                Value::Tensor(t) if t.numel() == 1 => counts(t)?[0],
                Value::Tensor(t) => {
                    check_counts(t)?;
                    if t.numel() != shape[at] {
                        return Err(Error::runtime(format!(
                            "repeats must have the same size as input along dim, but got repeats.size(0) = {} and \
                             input.size({at}) = {}", t.numel(), shape[at]
                        )));
                    }
                    if !t.device().is_cpu() {
                        let index = crate::tensor::mode::with_grad(false, || places(t, output_size))?;
                        return crate::ops::index::index_select(&input, at as i64, index);
                    }
                    let counts = counts(t)?;
                    let total = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n as usize));
                    let mut picked = crate::base::room::list(total.unwrap_or(usize::MAX))?;
                    picked.extend(counts.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i as i64, n as usize)));
                    let index = crate::ops::index::from_i64(&picked, &[picked.len()], input.device())?;
                    return crate::ops::index::index_select(&input, at as i64, index);
                }
            };
            if times < 0 {
                return Err(Error::runtime("Repeats must be non-negative"));
            }
            let mut wide = ints(&shape);
            wide.insert(at + 1, times);
            let stretched = expand(&unsqueeze(&input, at as i64 + 1)?, wide)?;
            let mut whole = shape;
            whole[at] = dims_of(&[whole[at] as i64, times])?.iter().product();
            view_as_shape(&crate::ops::create::clone_dense(&stretched)?, whole)
        }
        /// The sum to a shape that broadcasts to this one's.
        [no_function] fn sum_to_size(input: Tensor, size: Sizes) -> Tensor {
            let shape = dims_of(&size.0)?;
            if !crate::base::broadcast(&shape, &input.shape()).is_ok_and(|s| s == input.shape()) {
                return Err(Error::runtime(format!(
                    "size {{{:?}}} is not expandable to size {{{:?}}}.", size.0.as_slice(), input.shape().as_slice()
                )));
            }
            crate::ops::reduce::sum_to(&input, &shape)
        }
    }
}

pub use more::{COMPOSED, contiguous, movedim, narrow_, swapaxes, swapdims};
