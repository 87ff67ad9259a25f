//! Discrete Fourier transforms along one or several dimensions. They have no shaders.

use crate::base::{Strided, default_dtype, existing_dim};
use crate::operator::bodies::{copy, duplicate};
use crate::operator::primitives::copies::{self, convert};
use crate::ops::complex::{conj_physical, real};
use crate::ops::nn::pad::constant_pad_nd;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::slices;
use smallvec::smallvec;

/// The divisor of results: 1, the square root of the number of elements, or that number.
const PLAIN: i64 = 0;
const ROOT: i64 = 1;
const COUNT: i64 = 2;

fn scale(normalization: i64, count: usize) -> f64 {
    match normalization {
        PLAIN => 1.0,
        ROOT => 1.0 / (count as f64).sqrt(),
        _ => 1.0 / count as f64,
    }
}

/// Makes the rows contiguous, with a copy only if needed.
fn rows_of(x: &Body) -> Result<Body> {
    if x.layout.is_contiguous() && x.conj_neg.is_none() { Ok(x.clone()) } else { duplicate(x) }
}

/// Transforms along a dimension. The result has `length` elements of `dtype` along it.
fn along(
    x: &Body,
    dim: i64,
    length: usize,
    dtype: DType,
    transform: impl Fn(Strided, Strided) -> Result<()> + Copy + Send + Sync + 'static,
) -> Result<Body> {
    // The dimension goes last, so that its elements are contiguous.
    let rows = rows_of(&x.with_layout(x.layout.transpose(dim, -1)?))?;
    let mut shape = Dims::from_slice(rows.shape());
    if let Some(last) = shape.last_mut() {
        *last = length;
    }
    let made = Body::new(&shape, dtype, x.device())?;
    if made.numel() > 0 {
        fork!(over [made, rows], with [x], cpu: transform(rows.host()?, made.host()?), gpu: no_shader("fft", x.dtype))?;
    }
    Ok(made.with_layout(made.layout.transpose(dim, -1)?))
}

/// Transforms complex numbers along the dimensions.
fn transform_dims(x: &Body, dims: &[i64], forward: bool, scale: f64) -> Result<Body> {
    fork!([&x], cpu: Ok(()), gpu: no_shader("fft", x.dtype))?;
    let mut made = x.clone();
    for (at, &dim) in dims.iter().enumerate() {
        let (scale, length) = (if at == 0 { scale } else { 1.0 }, x.shape()[dim as usize]);
        made = along(&made, dim, length, x.dtype, move |from, to| {
            // SAFETY: both are contiguous and have the same shape and dtype; `to` is new.
            unsafe { crate::cpu::fft::complex(from, to, !forward, scale) }
        })?;
    }
    Ok(made)
}

/// Completes the transform of `n` real numbers, whose second half mirrors the first.
fn mirror(half: &Body, dim: i64, n: usize) -> Result<Body> {
    let mut shape = Dims::from_slice(half.shape());
    let given = shape[dim as usize];
    shape[dim as usize] = n;
    let whole = Body::new(&shape, half.dtype, half.device())?;
    let part = |x: &Body, start: usize, length: usize| -> Result<Body> {
        Ok(x.with_layout(x.layout.narrow(dim, start as i64, length as i64)?))
    };
    copy(&part(&whole, 0, given)?, half)?;
    if n > given {
        let other = Tensor::new(part(half, 1, n - given)?);
        let back =
            no_grad(|| crate::ops::shape::rearrange::flip(&conj_physical(&other)?, Sizes(smallvec![dim])))?;
        copy(&part(&whole, given, n - given)?, &back)?;
    }
    Ok(whole)
}

/// Copies the values into `layout`, unless they are a new result with this layout.
fn copy_into_layout(made: Body, input: &Body, layout: Layout) -> Result<Body> {
    if made.layout == layout && !made.storage.same(&input.storage) {
        return Ok(made);
    }
    let out = Body::new(made.shape(), made.dtype, made.device())?.with_layout(layout);
    copy(&out, &made)?;
    Ok(out)
}

/// The layout of PyTorch's results: the transformed dimensions vary fastest, and the others are ordered as in the input.
fn results_layout(input: &Layout, shape: &[usize], dims: &[i64], sorted: usize) -> Layout {
    let mut dims: Dims = dims.iter().map(|&d| d as usize).collect();
    dims[..sorted].sort_by_key(|&d| std::cmp::Reverse(input.strides[d]));
    let mut order: Dims = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(input.strides[d]));
    order.extend(dims);
    let mut layout = Layout::contiguous(shape);
    let mut step = 1;
    for &d in order.iter().rev() {
        layout.strides[d] = step;
        step *= shape[d].max(1);
    }
    layout
}

fn count_elements(shape: &[usize], dims: &[i64]) -> usize {
    dims.iter().map(|&d| shape[d as usize]).product()
}

fn split_last(dims: &[i64]) -> Result<(i64, &[i64])> {
    match dims.split_last() {
        Some((&last, others)) => Ok((last, others)),
        None => Err(Error::runtime("fft: dim must name at least one dimension")),
    }
}

/// Shifts the dimensions of an example behind the batch dimensions.
fn behind(b: &Batch, dims: &[i64]) -> Ints {
    dims.iter().map(|&d| d + b.k() as i64).collect()
}

#[primitive(tangent = linear)]
impl FftC2C {
    fn forward(input: &Tensor, dim: Ints, normalization: i64, forward: bool) -> Result<Body> {
        let x = input.body();
        let by = scale(normalization, count_elements(x.shape(), &dim));
        let layout = results_layout(&x.layout, x.shape(), &dim, dim.len());
        copy_into_layout(transform_dims(&x, &dim, forward, by)?, &x, layout)
    }
    fn d_input(g: &Tensor, dim: Ints, normalization: i64, forward: bool) -> Result<Tensor> {
        FftC2C::call(g, dim, normalization, !forward)
    }
    fn batch(b: &Batch, input: &Tensor, dim: Ints, normalization: i64, forward: bool) -> Result<Tensor> {
        FftC2C::call(&b.full(input)?, behind(b, &dim), normalization, forward).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = linear)]
impl FftR2C {
    fn forward(input: &Tensor, dim: Ints, normalization: i64, onesided: bool) -> Result<Body> {
        let x = input.body();
        let by = scale(normalization, count_elements(x.shape(), &dim));
        let (last, others) = split_last(&dim)?;
        let n = x.shape()[last as usize];
        let half = along(&x, last, n / 2 + 1, x.dtype.to_complex(), move |from, to| {
            // SAFETY: both are contiguous, `to` is new, and their rows have the lengths that the kernel expects.
            unsafe { crate::cpu::fft::from_real(from, to, by) }
        })?;
        let made = if onesided { half } else { mirror(&half, last, n)? };
        let made = transform_dims(&made, others, true, 1.0)?;
        let layout = results_layout(&x.layout, made.shape(), &dim, dim.len() - 1);
        copy_into_layout(made, &x, layout)
    }
    fn d_input(g: &Tensor, at: Meta, dim: Ints, normalization: i64, onesided: bool) -> Result<Tensor> {
        let last = dim.last().copied().unwrap_or(-1) as usize;
        let whole = if onesided { resize(g, last, at.shape[last])? } else { g.clone() };
        real(&FftC2C::call(&whole, dim, normalization, false)?)
    }
    fn batch(b: &Batch, input: &Tensor, dim: Ints, normalization: i64, onesided: bool) -> Result<Tensor> {
        FftR2C::call(&b.full(input)?, behind(b, &dim), normalization, onesided).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = linear)]
impl FftC2R {
    fn forward(input: &Tensor, dim: Ints, normalization: i64, last_dim_size: i64) -> Result<Body> {
        let x = input.body();
        let (last, others) = split_last(&dim)?;
        let n = last_dim_size as usize;
        let mut shape = Dims::from_slice(x.shape());
        shape[last as usize] = n;
        let by = scale(normalization, count_elements(&shape, &dim));
        let half = transform_dims(&x, others, false, 1.0)?;
        let made = along(&half, last, n, x.dtype.to_real(), move |from, to| {
            // SAFETY: both are contiguous, `to` is new, and their rows have the lengths that the kernel expects.
            unsafe { crate::cpu::fft::to_real(from, to, by) }
        })?;
        let between = match others.is_empty() {
            true => x.layout.clone(),
            false => results_layout(&x.layout, x.shape(), others, others.len()),
        };
        copy_into_layout(made, &x, results_layout(&between, &shape, &[last], 0))
    }
    fn d_input(g: &Tensor, at: Meta, dim: Ints, normalization: i64, last_dim_size: i64) -> Result<Tensor> {
        let last = dim.last().copied().unwrap_or(-1);
        let half = FftR2C::call(g, dim, normalization, true)?;
        // An element that also stands for its mirror image counts twice.
        let (n, given) = (last_dim_size, at.shape[last as usize] as i64);
        let index = crate::ops::indexing::index::numbers(0, 1, given as usize, g.device())?;
        let index = V::from(Tensor::new(index));
        let twice = select(1.0, 2.0, both(gt(&index, 0.0), lt(&index, (n - given + 1) as f64)));
        let mut line: Dims = smallvec![1; at.shape.len()];
        line[last as usize] = given as usize;
        (V::from(half) * twice.reshape(&line).cast(at.dtype)).tensor()
    }
    fn batch(b: &Batch, input: &Tensor, dim: Ints, normalization: i64, last_dim_size: i64) -> Result<Tensor> {
        FftC2R::call(&b.full(input)?, behind(b, &dim), normalization, last_dim_size).map(|t| b.wrap(t))
    }
}

/// Cuts or zero-pads a dimension to length `n`.
fn resize(x: &Tensor, dim: usize, n: usize) -> Result<Tensor> {
    let have = x.shape()[dim];
    if have >= n {
        return if have == n { Ok(x.clone()) } else { slices::narrow(x, dim as i64, 0, n as i64) };
    }
    let mut pads: Ints = smallvec![0; 2 * (x.ndim() - dim)];
    let end = pads.len() - 1;
    pads[end] = (n - have) as i64;
    constant_pad_nd(x, pads, Scalar::Int(0))
}

/// Converts to the dtype of a transform: floating point or complex.
fn promote(x: &Tensor, complex: bool) -> Result<Tensor> {
    let dtype = x.dtype();
    let wide = match dtype {
        DType::F16 | DType::BF16 => {
            return Err(Error::runtime(format!("Unsupported dtype {}", dtype.scalar_name())));
        }
        d if d.is_differentiable() => d,
        _ => default_dtype(),
    };
    let wanted = if complex { wide.to_complex() } else { wide };
    if wanted == dtype { Ok(x.clone()) } else { convert(x, wanted) }
}

fn normalization(name: Option<&String>, forward: bool) -> Result<i64> {
    match (name.map(String::as_str), forward) {
        (None | Some("backward"), true) | (Some("forward"), false) => Ok(PLAIN),
        (None | Some("backward"), false) | (Some("forward"), true) => Ok(COUNT),
        (Some("ortho"), _) => Ok(ROOT),
        (Some(other), _) => Err(Error::runtime(format!("Invalid normalization mode: \"{other}\""))),
    }
}

fn check_length(n: i64) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| Error::runtime(format!("Invalid number of data points ({n}) specified")))
}

/// A transform along one dimension, of real or complex numbers.
fn one(x: &Tensor, n: Option<i64>, dim: i64, norm: Option<&String>, forward: bool) -> Result<Tensor> {
    let x = promote(x, false)?;
    let at = existing_dim(dim, x.ndim())?;
    let n = check_length(n.unwrap_or(x.shape()[at] as i64))?;
    let x = resize(&x, at, n)?;
    let norm = normalization(norm, forward)?;
    if x.dtype().is_complex() {
        return FftC2C::call(&x, smallvec![at as i64], norm, forward);
    }
    let made = FftR2C::call(&x, smallvec![at as i64], norm, false)?;
    if forward { Ok(made) } else { conj_physical(&made) }
}

/// The nonredundant half of the transform of real numbers.
fn half(x: &Tensor, n: Option<i64>, dim: i64, norm: Option<&String>, forward: bool) -> Result<Tensor> {
    let name = if forward { "rfft" } else { "ihfft" };
    if x.dtype().is_complex() {
        return Err(Error::type_error(format!(
            "{name} expects a real input tensor, but got {}",
            x.dtype().scalar_name()
        )));
    }
    let x = promote(x, false)?;
    let at = existing_dim(dim, x.ndim())?;
    let n = check_length(n.unwrap_or(x.shape()[at] as i64))?;
    let made = FftR2C::call(&resize(&x, at, n)?, smallvec![at as i64], normalization(norm, forward)?, true)?;
    if forward { Ok(made) } else { conj_physical(&made) }
}

/// Real numbers from the nonredundant half of their transform.
fn whole(x: &Tensor, n: Option<i64>, dim: i64, norm: Option<&String>, forward: bool) -> Result<Tensor> {
    let x = promote(x, true)?;
    let at = existing_dim(dim, x.ndim())?;
    let n = check_length(n.unwrap_or(2 * (x.shape()[at] as i64 - 1)))?;
    let x = resize(&x, at, n / 2 + 1)?;
    let x = if forward { conj_physical(&x)? } else { x };
    FftC2R::call(&x, smallvec![at as i64], normalization(norm, forward)?, n as i64)
}

/// The dimensions and lengths of a transform over several dimensions.
fn several(x: &Tensor, s: Option<&Ints>, dim: Option<&Ints>) -> Result<(Ints, Vec<i64>)> {
    let n = x.ndim();
    let dims: Ints = match (dim, s) {
        (Some(dim), _) => dim.iter().map(|&d| existing_dim(d, n).map(|d| d as i64)).collect::<Result<_>>()?,
        (None, Some(s)) if s.len() > n => {
            return Err(Error::runtime(format!(
                "Got shape with {} values but input tensor only has {n} dimensions.",
                s.len()
            )));
        }
        (None, Some(s)) => ((n - s.len()) as i64..n as i64).collect(),
        (None, None) => (0..n as i64).collect(),
    };
    for (i, d) in dims.iter().enumerate() {
        if dims[..i].contains(d) {
            return Err(Error::runtime("FFT dims must be unique"));
        }
    }
    let shape = x.shape();
    let own = |d: i64| shape[d as usize] as i64;
    let sizes = match s {
        None => dims.iter().map(|&d| own(d)).collect(),
        Some(s) if s.len() != dims.len() => {
            return Err(Error::runtime("When given, dim and shape arguments must have the same length"));
        }
        Some(s) => s.iter().zip(&dims).map(|(&n, &d)| if n == -1 { own(d) } else { n }).collect(),
    };
    Ok((dims, sizes))
}

fn resize_all(x: &Tensor, dims: &[i64], sizes: &[i64]) -> Result<Tensor> {
    let mut x = x.clone();
    for (&d, &n) in dims.iter().zip(sizes) {
        x = resize(&x, d as usize, check_length(n)?)?;
    }
    Ok(x)
}

fn over(
    x: &Tensor,
    s: Option<&Ints>,
    dim: Option<&Ints>,
    norm: Option<&String>,
    forward: bool,
) -> Result<Tensor> {
    let x = promote(x, true)?;
    let (dims, sizes) = several(&x, s, dim)?;
    let x = resize_all(&x, &dims, &sizes)?;
    if dims.is_empty() {
        return copies::clone_dense(&x);
    }
    FftC2C::call(&x, dims, normalization(norm, forward)?, forward)
}

fn half_over(x: &Tensor, s: Option<&Ints>, dim: Option<&Ints>, norm: Option<&String>) -> Result<Tensor> {
    let (x, dims) = resize_real("rfftn", x, s, dim)?;
    FftR2C::call(&x, dims, normalization(norm, true)?, true)
}

/// `ihfftn`: the nonredundant half of the inverse transform.
fn inverse_half(x: &Tensor, s: Option<&Ints>, dim: Option<&Ints>, norm: Option<&String>) -> Result<Tensor> {
    let (x, mut dims) = resize_real("ihfftn", x, s, dim)?;
    let by = normalization(norm, false)?;
    let last = dims.pop().into_iter().collect();
    let half = conj_physical(&FftR2C::call(&x, last, by, true)?)?;
    if dims.is_empty() { Ok(half) } else { FftC2C::call(&half, dims, by, false) }
}

/// The real input, resized to the requested lengths, and the dimensions to transform.
fn resize_real(op: &str, x: &Tensor, s: Option<&Ints>, dim: Option<&Ints>) -> Result<(Tensor, Ints)> {
    if x.dtype().is_complex() {
        let name = x.dtype().scalar_name();
        return Err(Error::type_error(match op {
            "ihfftn" => format!("Only supports floating-point dtypes, but found: {name}"),
            _ => format!("{op} expects a real-valued input tensor, but got {name}"),
        }));
    }
    let x = promote(x, false)?;
    let (dims, sizes) = several(&x, s, dim)?;
    if dims.is_empty() {
        return Err(Error::runtime(format!("{op} must transform at least one axis")));
    }
    Ok((resize_all(&x, &dims, &sizes)?, dims))
}

fn whole_over(x: &Tensor, s: Option<&Ints>, dim: Option<&Ints>, norm: Option<&String>) -> Result<Tensor> {
    let (x, dims, n) = resize_half("irfftn", x, s, dim)?;
    FftC2R::call(&x, dims, normalization(norm, false)?, n)
}

/// `hfftn`: the transform of an input whose nonredundant half is given.
fn transform_from_half(
    x: &Tensor,
    s: Option<&Ints>,
    dim: Option<&Ints>,
    norm: Option<&String>,
) -> Result<Tensor> {
    let (x, mut dims, n) = resize_half("hfftn", x, s, dim)?;
    let by = normalization(norm, true)?;
    let last = dims.pop().into_iter().collect();
    let x = if dims.is_empty() { x } else { FftC2C::call(&x, dims, by, true)? };
    FftC2R::call(&conj_physical(&x)?, last, by, n)
}

/// The input of a transform to real numbers, resized to the nonredundant half of the last length. Also returns the dimensions
/// and the last length.
fn resize_half(op: &str, x: &Tensor, s: Option<&Ints>, dim: Option<&Ints>) -> Result<(Tensor, Ints, i64)> {
    let x = promote(x, true)?;
    let (dims, mut sizes) = several(&x, s, dim)?;
    let Some(last) = sizes.last_mut() else {
        return Err(Error::runtime(format!("{op} must transform at least one axis")));
    };
    // The default length is twice that of the half, without counting its two ends again.
    if s.is_none_or(|s| s.last() == Some(&-1)) {
        *last = 2 * (*last - 1);
    }
    let n = check_length(*last)?;
    *last = n as i64 / 2 + 1;
    Ok((resize_all(&x, &dims, &sizes)?, dims, n as i64))
}

macro_rules! lines {
    ($($(#[doc = $doc:literal])+ $name:ident($of:ident, $forward:literal, $sample:tt);)*) => { $(
        $(#[doc = $doc])+
        #[operator(function, space = "fft", out, sample = $sample)]
        pub fn $name(
            input: &Tensor,
            n: Option<i64>,
            #[default(-1)] dim: i64,
            norm: Option<String>,
        ) -> Result<Tensor> {
            $of(input, n, dim, norm.as_ref(), $forward)
        }
    )* };
}
lines! {
    /// Compute the discrete Fourier transform along a dimension.
    ///
    /// Examples:
    ///     >>> torch.fft.fft(torch.tensor([1.0, 2.0]))
    ///     tensor([ 3.+0.j, -1.+0.j])
    fft_fft(one, true, "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.fft(x, 4)), least=1))");
    /// Compute the inverse discrete Fourier transform along a dimension.
    ///
    /// Examples:
    ///     >>> torch.fft.ifft(torch.tensor([3.0, -1.0])).real
    ///     tensor([1., 2.])
    fft_ifft(one, false, "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.ifft(x, norm='ortho')), least=1))");
    /// Compute the discrete Fourier transform of real numbers along a dimension, without its redundant half.
    ///
    /// The result has `n // 2 + 1` elements; the others are their complex conjugates.
    ///
    /// Examples:
    ///     >>> torch.fft.rfft(torch.ones(4)).real
    ///     tensor([4., 0., 0.])
    fft_rfft(half, true, "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.rfft(x, dim=0)), least=1))");
    /// Compute the inverse of `torch.fft.rfft`: real numbers from half of their transform.
    ///
    /// Args:
    ///     n: length of the result; `2 * (input.shape[dim] - 1)` if not given, which is even.
    ///
    /// Examples:
    ///     >>> torch.fft.irfft(torch.tensor([0.0, 2.0, 0.0]))
    ///     tensor([ 1.,  0., -1.,  0.])
    fft_irfft(whole, false, "on_host(shaped(lambda draw, shape: lambda x: T.fft.irfft(T.complex(x, x * x), 5), least=1))");
    /// Compute the Fourier transform of a Hermitian-symmetric signal, of which half is given; it is real.
    ///
    /// Args:
    ///     n: length of the result; `2 * (input.shape[dim] - 1)` if not given, which is even.
    ///
    /// Examples:
    ///     >>> torch.fft.hfft(torch.tensor([0.0, 2.0, 0.0]))
    ///     tensor([ 4.,  0., -4.,  0.])
    fft_hfft(whole, true, "on_host(shaped(lambda draw, shape: lambda x: T.fft.hfft(T.complex(x, x * x), 4), least=1))");
    /// Compute the inverse of `torch.fft.hfft`: half of a Hermitian-symmetric signal.
    ///
    /// Examples:
    ///     >>> torch.fft.ihfft(torch.ones(4)).real
    ///     tensor([1., 0., 0.])
    fft_ihfft(half, false, "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.ihfft(x)), least=1))");
}

/// Compute the discrete Fourier transform over several dimensions.
///
/// Examples:
///     >>> torch.fft.fftn(torch.ones(2, 2))
///     tensor([[4.+0.j, 0.+0.j],
///             [0.+0.j, 0.+0.j]])
#[operator(
    function,
    space = "fft",
    out,
    sample = "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.fftn(x))))"
)]
pub fn fft_fftn(input: &Tensor, s: Option<Ints>, dim: Option<Ints>, norm: Option<String>) -> Result<Tensor> {
    over(input, s.as_ref(), dim.as_ref(), norm.as_ref(), true)
}

/// Compute the inverse discrete Fourier transform over several dimensions.
///
/// Examples:
///     >>> torch.fft.ifftn(torch.ones(2, 2))
///     tensor([[1.+0.j, 0.+0.j],
///             [0.+0.j, 0.+0.j]])
#[operator(
    function,
    space = "fft",
    out,
    sample = "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.ifftn(x))))"
)]
pub fn fft_ifftn(input: &Tensor, s: Option<Ints>, dim: Option<Ints>, norm: Option<String>) -> Result<Tensor> {
    over(input, s.as_ref(), dim.as_ref(), norm.as_ref(), false)
}

/// Compute the discrete Fourier transform of real numbers over several dimensions, without its redundant half.
///
/// The last of the dimensions has `n // 2 + 1` elements.
///
/// Examples:
///     >>> torch.fft.rfftn(torch.ones(2, 4)).shape
///     torch.Size([2, 3])
#[operator(
    function,
    space = "fft",
    out,
    sample = "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.rfftn(x)), least=1))"
)]
pub fn fft_rfftn(input: &Tensor, s: Option<Ints>, dim: Option<Ints>, norm: Option<String>) -> Result<Tensor> {
    half_over(input, s.as_ref(), dim.as_ref(), norm.as_ref())
}

/// Compute the inverse of `torch.fft.rfftn`: real numbers from half of their transform.
///
/// Examples:
///     >>> torch.fft.irfftn(torch.ones(2, 3)).shape
///     torch.Size([2, 4])
#[operator(
    function,
    space = "fft",
    out,
    sample = "on_host(fixed([(3, 4)], lambda x: T.fft.irfftn(T.complex(x, x * x))))"
)]
pub fn fft_irfftn(
    input: &Tensor,
    s: Option<Ints>,
    dim: Option<Ints>,
    norm: Option<String>,
) -> Result<Tensor> {
    whole_over(input, s.as_ref(), dim.as_ref(), norm.as_ref())
}

/// Compute the Fourier transform of a Hermitian-symmetric signal over several dimensions, half of which is given.
///
/// Examples:
///     >>> torch.fft.hfftn(torch.ones(2, 3)).shape
///     torch.Size([2, 4])
#[operator(
    function,
    space = "fft",
    out,
    sample = "on_host(fixed([(3, 4)], lambda x: T.fft.hfftn(T.complex(x, x * x))))"
)]
pub fn fft_hfftn(input: &Tensor, s: Option<Ints>, dim: Option<Ints>, norm: Option<String>) -> Result<Tensor> {
    transform_from_half(input, s.as_ref(), dim.as_ref(), norm.as_ref())
}

/// Compute the inverse of `torch.fft.hfftn`: half of a Hermitian-symmetric signal.
///
/// Examples:
///     >>> torch.fft.ihfftn(torch.ones(2, 4)).shape
///     torch.Size([2, 3])
#[operator(
    function,
    space = "fft",
    out,
    sample = "on_host(shaped(lambda draw, shape: lambda x: parts(T.fft.ihfftn(x)), least=1))"
)]
pub fn fft_ihfftn(
    input: &Tensor,
    s: Option<Ints>,
    dim: Option<Ints>,
    norm: Option<String>,
) -> Result<Tensor> {
    inverse_half(input, s.as_ref(), dim.as_ref(), norm.as_ref())
}

macro_rules! planes {
    ($($(#[doc = $doc:literal])+ $name:ident($of:expr, $sample:tt);)*) => { $(
        $(#[doc = $doc])+
        #[operator(function, space = "fft", out, sample = $sample)]
        pub fn $name(
            input: &Tensor,
            s: Option<Ints>,
            #[default(smallvec![-2, -1])] dim: Ints,
            norm: Option<String>,
        ) -> Result<Tensor> {
            let of: fn(&Tensor, Option<&Ints>, Option<&Ints>, Option<&String>) -> Result<Tensor> = $of;
            of(input, s.as_ref(), Some(&dim), norm.as_ref())
        }
    )* };
}
planes! {
    /// Compute the discrete Fourier transform over two dimensions.
    ///
    /// Examples:
    ///     >>> torch.fft.fft2(torch.ones(2, 2))
    ///     tensor([[4.+0.j, 0.+0.j],
    ///             [0.+0.j, 0.+0.j]])
    fft_fft2(|x, s, d, n| over(x, s, d, n, true), "on_host(fixed([(2, 3, 2)], lambda x: parts(T.fft.fft2(x, (4, 3)))))");
    /// Compute the inverse discrete Fourier transform over two dimensions.
    ///
    /// Examples:
    ///     >>> torch.fft.ifft2(torch.ones(2, 2))
    ///     tensor([[1.+0.j, 0.+0.j],
    ///             [0.+0.j, 0.+0.j]])
    fft_ifft2(|x, s, d, n| over(x, s, d, n, false), "on_host(fixed([(2, 3, 2)], lambda x: parts(T.fft.ifft2(x))))");
    /// Compute the discrete Fourier transform of real numbers over two dimensions, without its redundant half.
    ///
    /// Examples:
    ///     >>> torch.fft.rfft2(torch.ones(2, 4)).shape
    ///     torch.Size([2, 3])
    fft_rfft2(half_over, "on_host(fixed([(2, 3, 4)], lambda x: parts(T.fft.rfft2(x))))");
    /// Compute the Fourier transform of a Hermitian-symmetric signal over two dimensions, half of which is given.
    ///
    /// Examples:
    ///     >>> torch.fft.hfft2(torch.ones(2, 3)).shape
    ///     torch.Size([2, 4])
    fft_hfft2(transform_from_half, "on_host(fixed([(2, 3, 4)], lambda x: T.fft.hfft2(T.complex(x, x * x), (3, 5))))");
    /// Compute the inverse of `torch.fft.hfft2`: half of a Hermitian-symmetric signal.
    ///
    /// Examples:
    ///     >>> torch.fft.ihfft2(torch.ones(2, 4)).shape
    ///     torch.Size([2, 3])
    fft_ihfft2(inverse_half, "on_host(fixed([(2, 3, 4)], lambda x: parts(T.fft.ihfft2(x))))");
    /// Compute the inverse of `torch.fft.rfft2`: real numbers from half of their transform.
    ///
    /// Examples:
    ///     >>> torch.fft.irfft2(torch.ones(2, 3)).shape
    ///     torch.Size([2, 4])
    fft_irfft2(whole_over, "on_host(fixed([(2, 3, 4)], lambda x: T.fft.irfft2(T.complex(x, x * x), (3, 5))))");
}
