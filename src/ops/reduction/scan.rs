//! Scans: each element of the result reduces the elements up to it, as in `cumsum`, `cumprod` and `cummax`.

use crate::base::numel;
use crate::operator::inplace;
use crate::operator::pointwise::dtype_checks;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::view_part::embed;
use crate::ops::creation::create::read_as;
use crate::ops::elementwise::{arithmetic, unary};
use crate::ops::indexing::index::numbers;
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::{pick, scatter_gradient};
use crate::ops::reduction::reduce;
use crate::ops::shape::slices::narrow;
use crate::ops::shape::{rearrange, squeeze, view};
use crate::tensor::mode;

/// Runs a scan kernel on the device of the input.
macro_rules! scan {
    ($cpu:path, $gpu:ident, $input:expr, $dim:expr) => {{
        let x = at_least_vector(&$input.body());
        let dim = wrap_dim($dim, x.layout.ndim())?;
        let out = Body::new(x.shape(), x.dtype, x.device())?;
        if out.numel() > 0 {
            fork!(over [out, x], with [dim], cpu: done($cpu(out.host()?, x.host()?, dim)),
                gpu: match crate::gpu::Scan::$gpu {
                    sum @ crate::gpu::Scan::Sum => crate::operator::bodies::part_by_part(&out, &x, |out, x| crate::gpu::scan(sum, out.gpu()?, x.gpu()?, dim)),
                    other => crate::gpu::scan(other, out.gpu()?, x.gpu()?, dim),
                })?;
        }
        Ok(with_shape(out, &$input.shape()))
    }};
}

#[primitive(batch = along(dim), tangent = linear)]
impl Cumsum {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        scan!(crate::cpu::scan::cumsum, Sum, input, dim)
    }
    fn d_input(g: V, dim: i64) -> V {
        sum_from_end(g, dim)
    }
}

#[primitive(batch = along(dim))]
impl Cumprod {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        if input.dtype().is_complex() && !input.device().is_cpu() {
            return reduce::no_grad(|| crate::ops::complex::running_product(input, dim));
        }
        scan!(crate::cpu::scan::cumprod, Prod, input, dim)
    }
    fn d_input(g: V, input: Tensor, result: V, at: Meta, dim: i64) -> Result<Tensor> {
        if at.shape.is_empty() { g.tensor() } else { cumprod_grad(g, input, result, dim) }
    }
}

#[primitive(batch = along(dim))]
impl Logcumsumexp {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        let x = at_least_vector(&input.body());
        let dim = wrap_dim(dim, x.layout.ndim())?;
        if !x.dtype.is_differentiable() {
            return Err(Fault::NoKernel { op: "logcumsumexp_out_cpu", dtype: x.dtype }.into());
        }
        if x.dtype.is_complex() && !x.device().is_cpu() {
            return no_shader("logcumsumexp", x.dtype);
        }
        let out = Body::new(x.shape(), x.dtype, x.device())?;
        if out.numel() > 0 {
            fork!(over [out, x], with [dim], cpu: crate::cpu::scan::logcumsumexp(out.host()?, x.host()?, dim),
                gpu: crate::gpu::scan(crate::gpu::Scan::LogSumExp, out.gpu()?, x.gpu()?, dim))?;
        }
        Ok(with_shape(out, &input.shape()))
    }
    fn d_input(g: V, input: V, result: V, at: Meta, dim: i64) -> V {
        // Positive and negative gradients are accumulated separately, because both use logarithms. Minus infinity contributes
        // nothing.
        let result = select(&result, 0.0, eq(&result, f64::NEG_INFINITY));
        let part = |logs: V| {
            let sums = flip_dim(logs - &result, dim).then(|t| Logcumsumexp::call(&t, dim));
            exp(&input + flip_dim(sums, dim))
        };
        match at.dtype.is_complex() {
            _ if at.shape.is_empty() => g,
            true => part(log(g.conj())).conj(),
            false => part(log_of(g.clone())) - part(log_of(-g)),
        }
    }
}

/// `log(g)` where `g` is positive, else minus infinity.
fn log_of(g: V) -> V {
    let none = le(&g, 0.0);
    select(log(select(g, 1.0, none.clone())), f64::NEG_INFINITY, none)
}

/// Flips `x` along `dim`.
pub fn reverse(x: &Tensor, dim: i64) -> Result<Tensor> {
    if x.ndim() == 0 {
        return Ok(x.clone());
    }
    rearrange::flip(x, Sizes(smallvec::smallvec![dim]))
}

fn flip_dim(x: V, dim: i64) -> V {
    x.then(|t| reverse(&t, dim))
}

/// Each element becomes the sum of the elements from it to the end.
fn sum_from_end(x: V, dim: i64) -> V {
    x.then(|t| {
        if t.numel() <= 1 || t.shape()[wrap_dim(dim, t.ndim())?] == 1 {
            return Ok(t);
        }
        reverse(&Cumsum::call(&reverse(&t, dim)?, dim)?, dim)
    })
}

/// `x` shifted by one along `dim`, with 1 at the start.
fn shift(x: &Tensor, dim: i64) -> Result<Tensor> {
    let shape = x.shape();
    let at = wrap_dim(dim, shape.len())?;
    let n = shape[at] as i64;
    if n == 0 {
        return Ok(x.clone());
    }
    let dense = Layout::contiguous(&shape);
    let first = crate::operator::bodies::filled(&shape, Scalar::Int(0), x.dtype(), x.device())?;
    crate::operator::bodies::fill(&first.with_layout(dense.narrow(dim, 0, 1)?), Scalar::Int(1))?;
    let rest = embed(&narrow(x, dim, 0, n - 1)?, shape.clone(), dense.narrow(dim, 1, n - 1)?)?;
    arithmetic::add(&rest, &Tensor::new(first))
}

/// The product of all other elements along `dim`, without a division.
pub fn exclusive_product(x: &Tensor, dim: i64) -> Result<Tensor> {
    let before = Cumprod::call(&shift(x, dim)?, dim)?;
    let after = reverse(&Cumprod::call(&shift(&reverse(x, dim)?, dim)?, dim)?, dim)?;
    arithmetic::mul(&before, &after)
}

fn cumprod_grad(g: V, x: Tensor, y: V, dim: i64) -> Result<Tensor> {
    if x.numel() <= 1 || x.shape()[wrap_dim(dim, x.ndim())?] == 1 {
        return g.tensor();
    }
    let zero = unary::logical_not(&x)?;
    let batched = g.is_batched() || x.is_batched();
    if !batched && !reduce::any_true(&zero)? {
        return (sum_from_end(g * y.conj(), dim) / V::from(x).conj()).tensor();
    }
    if mode::grad_enabled() || g.is_special() || x.is_special() || x.dtype().is_complex() {
        return every_cumprod(g, &x, dim);
    }
    // Before the first zero the formula above holds; at it, the products without it count; behind it, the gradient is 0.
    let zeros_so_far = V::from(Cumsum::call(&to_dtype(&zero, DType::I64)?, dim));
    let (x, zero) = (V::from(x), V::from(zero));
    let first = both(zero, eq(&zeros_so_far, 1.0));
    let spared = select(&x, 1.0, first.clone()).then(|t| Cumprod::call(&t, dim));
    let at_first = sum_from_end(select(&g * &spared, 0.0, eq(&zeros_so_far, 0.0)), dim);
    let before = sum_from_end(&g * &y, dim) / &x;
    select(select(0.0, before, eq(&zeros_so_far, 0.0)), at_first, first).tensor()
}

/// The gradient by explicit products that leave out one element: quadratic, but correct at zeros for derivatives of any order.
fn every_cumprod(g: V, x: &Tensor, dim: i64) -> Result<Tensor> {
    let ndim = x.ndim();
    let last = view::transpose(x, dim, -1)?;
    let n = last.shape()[ndim - 1];
    let numbers = numbers(0, 1, n, x.device())?;
    let column = V::from(Tensor::new(numbers.with_layout(Layout::contiguous(&[n, 1]))));
    let row = V::from(Tensor::new(numbers.with_layout(Layout::contiguous(&[1, n]))));
    // Row k of a square holds the factors with the k-th replaced by 1.
    let factors = V::from(squeeze::unsqueeze(&last, -2)?);
    let spared = select(factors, 1.0, eq(&column, &row)).then(|t| Cumprod::call(&t, -1));
    let upper = select(0.0, spared, ge(&row, &column));
    let g = g.transpose(dim, -1).then(|t| squeeze::unsqueeze(&t, -2));
    let grad = (g * upper.conj()).sum(&[-1], false).transpose(dim, -1);
    grad.then(|t| rearrange::contiguous(&t, None)).tensor()
}

/// Rejects booleans, unless there are no elements.
fn numbers_in(kernel: &'static str, x: Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool if x.ndim() > 0 && x.numel() > 0 => {
            Err(Fault::NoKernel { op: kernel, dtype: DType::Bool }.into())
        }
        _ => Ok(x),
    }
}

/// The running maximum (or minimum), and its indices.
fn running(input: &Tensor, dim: i64, largest: bool) -> Result<[Body; 2]> {
    let x = at_least_vector(&input.body());
    let at = wrap_dim(dim, x.layout.ndim())?;
    dtype_checks::order(if largest { "cummax_cpu" } else { "cummin_cpu" }, x.dtype)?;
    let values = Body::new(x.shape(), x.dtype, x.device())?;
    let indices = Body::new(x.shape(), DType::I64, x.device())?;
    if values.numel() > 0 {
        fork!(over [values, x], with [largest, indices, at], cpu: done(match largest {
                true => crate::cpu::scan::cummax(values.host()?, indices.host()?, x.host()?, at),
                false => crate::cpu::scan::cummin(values.host()?, indices.host()?, x.host()?, at),
            }),
            gpu: crate::gpu::cum_extreme(values.gpu()?, indices.gpu()?, x.gpu()?, at, largest))?;
    }
    Ok([with_shape(values, &input.shape()), with_shape(indices, &input.shape())])
}

/// The gradient goes to the positions of the values. An empty input is returned as it is, as in PyTorch.
fn running_grad(g: Tensor, input: Tensor, indices: Tensor, at: &Meta, dim: i64) -> Result<Tensor> {
    if numel(&at.shape) == 0 { Ok(input) } else { scatter_gradient(g, indices, at, dim, true) }
}

#[primitive(batch = along(dim), tangent = fn, results(values, indices))]
impl Cummax {
    fn forward(input: &Tensor, dim: i64) -> Result<[Body; 2]> {
        running(input, dim, true)
    }
    fn d_input(g: Tensor, input: Tensor, indices: Tensor, at: Meta, dim: i64) -> Result<Tensor> {
        running_grad(g, input, indices, &at, dim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        pick(t_input, indices, dim, true)
    }
}

#[primitive(batch = along(dim), tangent = fn, results(values, indices))]
impl Cummin {
    fn forward(input: &Tensor, dim: i64) -> Result<[Body; 2]> {
        running(input, dim, false)
    }
    fn d_input(g: Tensor, input: Tensor, indices: Tensor, at: Meta, dim: i64) -> Result<Tensor> {
        running_grad(g, input, indices, &at, dim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        pick(t_input, indices, dim, true)
    }
}

/// Sums and products of integers are int64.
fn widened(input: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(if input.dtype().is_differentiable() { input.dtype() } else { DType::I64 });
    read_as(input, dtype)
}

/// Compute the cumulative sum of the elements along a dimension.
///
/// Args:
///     dtype: data type that the elements are converted to before they are summed.
///
/// Examples:
///     >>> torch.cumsum(torch.tensor([1, 2, 3]), dim=0)
///     tensor([1, 3, 6])
#[operator(function, method, out(declared, computes), sample = "over_dim(name)")]
pub fn cumsum(input: &Tensor, dim: i64, #[keyword] dtype: Option<DType>) -> Result<Tensor> {
    Cumsum::call(&numbers_in("cumsum_out_cpu", widened(input, dtype)?)?, dim)
}

/// Compute the cumulative product of the elements along a dimension.
///
/// Args:
///     dtype: data type that the elements are converted to before they are multiplied.
///
/// Examples:
///     >>> torch.cumprod(torch.tensor([1, 2, 3]), dim=0)
///     tensor([1, 2, 6])
#[operator(function, method, out(declared, computes), sample = "over_dim(name)")]
pub fn cumprod(input: &Tensor, dim: i64, #[keyword] dtype: Option<DType>) -> Result<Tensor> {
    Cumprod::call(&numbers_in("cumprod_out_cpu", widened(input, dtype)?)?, dim)
}

/// Compute the logarithm of the cumulative sum of exponentials along a dimension, without overflow.
///
/// Examples:
///     >>> torch.logcumsumexp(torch.tensor([0.0, 0.0, 1000.0]), dim=0)
///     tensor([0.0000e+00, 6.9315e-01, 1.0000e+03])
#[operator(
    function,
    method,
    out(message = "expected scalar_type {result} but found {target}"),
    sample = "over_dim(name)"
)]
pub fn logcumsumexp(input: &Tensor, dim: i64) -> Result<Tensor> {
    Logcumsumexp::call(input, dim)
}

/// Compute the cumulative maximum along a dimension, and the index where it was found.
///
/// Returns:
///     A named tuple `(values, indices)`.
///
/// Examples:
///     >>> values, indices = torch.cummax(torch.tensor([1, 3, 2, 4]), dim=0)
///     >>> values, indices
///     (tensor([1, 3, 3, 4]), tensor([0, 1, 1, 3]))
#[operator(
    function,
    method,
    out(message = "expected scalar_type {result} but found {target}"),
    returns(values, indices),
    sample = "over_dim(name, result=first)"
)]
pub fn cummax(input: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    Cummax::call(input, dim)
}

/// Compute the cumulative minimum along a dimension, and the index where it was found.
///
/// Returns:
///     A named tuple `(values, indices)`.
///
/// Examples:
///     >>> values, indices = torch.cummin(torch.tensor([4, 2, 3, 1]), dim=0)
///     >>> values, indices
///     (tensor([4, 2, 2, 1]), tensor([0, 1, 1, 3]))
#[operator(
    function,
    method,
    out(message = "expected scalar_type {result} but found {target}"),
    returns(values, indices),
    sample = "over_dim(name, result=first)"
)]
pub fn cummin(input: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    Cummin::call(input, dim)
}

/// The in-place forms compute in the dtype of the target, where a new result would be int64.
fn overwrite(
    target: &Tensor,
    dtype: Option<DType>,
    kernel: &'static str,
    scan: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<()> {
    if let Some(dtype) = dtype.filter(|&d| d != target.dtype()) {
        return Err(Error::runtime(format!(
            "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
            c_name(target.dtype()),
            c_name(dtype)
        )));
    }
    inplace::overwrite(target, &scan(&numbers_in(kernel, target.clone())?)?)
}

/// Compute the cumulative sum along a dimension, in place.
#[inplace(cumsum)]
pub fn cumsum_(input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<()> {
    overwrite(input, dtype, "cumsum_out_cpu", |x| Cumsum::call(x, dim))
}

/// Compute the cumulative product along a dimension, in place.
#[inplace(cumprod)]
pub fn cumprod_(input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<()> {
    overwrite(input, dtype, "cumprod_out_cpu", |x| Cumprod::call(x, dim))
}

/// The name of the dtype in C++.
fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::I64 => "long int",
        other => other.name(),
    }
}
