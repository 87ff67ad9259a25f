//! Scans: each element becomes the sum (product, largest, …) of those up to it.

use super::extrema::{SAVE_INPUT_AND_INDICES, put_back};
use super::formal::{both, eq, exp, ge, le, log, select};
use super::index::numbers;
use super::kernel::{at_least_vector, done, fork, with_shape};
use super::macros::{compose, ops};
use super::place::embed;
use super::record::{begin, end_many, refused};
use super::row::{Arg, Forms, Out, Row, take};
use super::value::V;
use super::view::narrow;
use crate::base::{DType, Error, Fault, Layout, Result, Scalar, numel, wrap_dim};
use crate::tensor::{Body, Derivative, Grads, Step, Tensor, mode};

/// Runs one of the running sums and products of both devices.
macro_rules! scan {
    ($cpu:path, $gpu:ident, $input:expr, $dim:expr) => {{
        let x = at_least_vector(&$input.body());
        let dim = wrap_dim($dim, x.layout.ndim())?;
        let out = Body::new(x.shape(), x.dtype, x.device())?;
        if out.numel() > 0 {
            fork!([&out, &x], cpu: done($cpu(out.host()?, x.host()?, dim)),
                gpu: match crate::gpu::Scan::$gpu {
                    sum @ crate::gpu::Scan::Sum => super::kernel::part_by_part(&out, &x, |out, x| crate::gpu::scan(sum, out.gpu()?, x.gpu()?, dim)),
                    other => crate::gpu::scan(other, out.gpu()?, x.gpu()?, dim),
                })?;
        }
        Ok(with_shape(out, &$input.shape()))
    }};
}

ops! { "scan";
    /// Running sum along a dimension.
    [hidden, linear] fn cumsum_along(input; dim: i64) -> y { scan!(crate::cpu::scan::cumsum, Sum, input, dim) }
    input: |g, dim| reversed_sum(g, dim);
    /// Running product along a dimension.
    [hidden] fn cumprod_along(input; dim: i64) -> y {
        if input.dtype().is_complex() && !input.device().is_cpu() {
            return crate::ops::reduce::quietly(|| crate::ops::complex::running_product(input, dim));
        }
        scan!(crate::cpu::scan::cumprod, Prod, input, dim)
    }
    input: |g, input, y, at, dim| if at.shape.is_empty() { g.tensor() } else { cumprod_grad(g, input.tensor()?, y, dim) };
    /// Logarithm of the running sum of exponentials along a dimension.
    [hidden] fn log_cum_sum_exp(input; dim: i64) -> y {
        let x = at_least_vector(&input.body());
        let dim = wrap_dim(dim, x.layout.ndim())?;
        if !x.dtype.is_differentiable() {
            return Err(Fault::NoKernel { op: "logcumsumexp_out_cpu", dtype: x.dtype }.into());
        }
        if x.dtype.is_complex() && !x.device().is_cpu() {
            return Err(Fault::NoShader { op: "logcumsumexp", dtype: x.dtype }.into());
        }
        let out = Body::new(x.shape(), x.dtype, x.device())?;
        if out.numel() > 0 {
            fork!([&out, &x], cpu: crate::cpu::scan::logcumsumexp(out.host()?, x.host()?, dim),
                gpu: crate::gpu::scan(crate::gpu::Scan::LogSumExp, out.gpu()?, x.gpu()?, dim))?;
        }
        Ok(with_shape(out, &input.shape()))
    }
    input: |g, input, y, at, dim| {
        // Positive and negative gradients apart, so that both can go through logarithms; minus infinity has no weight.
        let y = select(&y, 0.0, eq(&y, f64::NEG_INFINITY));
        let part = |logs: V| exp(&input + reversed(logs - &y, dim).then(|t| log_cum_sum_exp(&t, dim)).then(|t| reverse(&t, dim)));
        match at.dtype.is_complex() {
            _ if at.shape.is_empty() => g,
            true => part(log(g.conj())).conj(),
            false => part(log_of(g.clone())) - part(log_of(-g)),
        }
    };
}

/// `log(g)` where `g` is positive, minus infinity elsewhere.
fn log_of(g: V) -> V {
    let none = le(&g, 0.0);
    select(log(select(g, 1.0, none.clone())), f64::NEG_INFINITY, none)
}

/// `x` from back to front along `dim`.
pub fn reverse(x: &Tensor, dim: i64) -> Result<Tensor> {
    if x.ndim() == 0 {
        return Ok(x.clone());
    }
    super::shape::flip(x, super::row::Sizes(smallvec::smallvec![dim]))
}

fn reversed(x: V, dim: i64) -> V {
    x.then(|t| reverse(&t, dim))
}

/// Each element becomes the sum of those from it on.
fn reversed_sum(x: V, dim: i64) -> V {
    x.then(|t| {
        if t.numel() <= 1 || t.shape()[wrap_dim(dim, t.ndim())?] == 1 {
            return Ok(t);
        }
        reverse(&cumsum_along(&reverse(&t, dim)?, dim)?, dim)
    })
}

/// Like `x`, moved on by one along `dim`, with 1 at the start.
fn shifted(x: &Tensor, dim: i64) -> Result<Tensor> {
    let shape = x.shape();
    let at = wrap_dim(dim, shape.len())?;
    let n = shape[at] as i64;
    if n == 0 {
        return Ok(x.clone());
    }
    let dense = Layout::contiguous(&shape);
    let first = super::kernel::filled(&shape, Scalar::Int(0), x.dtype(), x.device())?;
    super::kernel::fill(&first.with_layout(dense.narrow(dim, 0, 1)?), Scalar::Int(1))?;
    let rest = embed(&narrow(x, dim, 0, n - 1)?, shape.clone(), dense.narrow(dim, 1, n - 1)?)?;
    super::arithmetic::add(&rest, &Tensor::new(first))
}

/// For each element the product of all others along `dim`, without a division.
pub fn exclusive_product(x: &Tensor, dim: i64) -> Result<Tensor> {
    let before = cumprod_along(&shifted(x, dim)?, dim)?;
    let after = reverse(&cumprod_along(&shifted(&reverse(x, dim)?, dim)?, dim)?, dim)?;
    super::arithmetic::mul(&before, &after)
}

fn cumprod_grad(g: V, x: Tensor, y: V, dim: i64) -> Result<Tensor> {
    if x.numel() <= 1 || x.shape()[wrap_dim(dim, x.ndim())?] == 1 {
        return g.tensor();
    }
    let zero = super::unary::logical_not(&x)?;
    let batched = g.is_batched() || x.is_batched();
    if !batched && !super::reduce::any(&zero, None, false)?.item()?.as_bool() {
        return (reversed_sum(g * y.conj(), dim) / V::from(x).conj()).tensor();
    }
    if mode::grad_enabled() || g.is_special() || x.is_special() || x.dtype().is_complex() {
        return every_cumprod(g, &x, dim);
    }
    // Before the first zero as above; at it the products without it; behind it nothing.
    let zeros_so_far = V::from(cumsum_along(&super::create::to_dtype(&zero, DType::I64)?, dim));
    let (x, zero) = (V::from(x), V::from(zero));
    let first = both(zero, eq(&zeros_so_far, 1.0));
    let spared = select(&x, 1.0, first.clone()).then(|t| cumprod_along(&t, dim));
    let at_first = reversed_sum(select(&g * &spared, 0.0, eq(&zeros_so_far, 0.0)), dim);
    let before = reversed_sum(&g * &y, dim) / &x;
    select(select(0.0, before, eq(&zeros_so_far, 0.0)), at_first, first).tensor()
}

/// The gradient with every product without an element spelled out: quadratic, but right at zeros to any order.
fn every_cumprod(g: V, x: &Tensor, dim: i64) -> Result<Tensor> {
    let ndim = x.ndim();
    let last = super::view::transpose(x, dim, -1)?;
    let n = last.shape()[ndim - 1];
    let numbers = numbers(0, 1, n, x.device())?;
    let column = V::from(Tensor::new(numbers.with_layout(Layout::contiguous(&[n, 1]))));
    let row = V::from(Tensor::new(numbers.with_layout(Layout::contiguous(&[1, n]))));
    // Row k of a square holds the factors with the k-th replaced by 1.
    let factors = V::from(super::view::unsqueeze(&last, -2)?);
    let spared = select(factors, 1.0, eq(&column, &row)).then(|t| cumprod_along(&t, -1));
    let upper = select(0.0, spared, ge(&row, &column));
    let g = g.transpose(dim, -1).then(|t| super::view::unsqueeze(&t, -2));
    let grad = (g * upper.conj()).sum(&[-1], false).transpose(dim, -1);
    grad.then(|t| super::shape::contiguous(t, None)).tensor()
}

/// Refuses truth values where there is anything to run over.
fn numbers_in(kernel: &'static str, x: Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool if x.ndim() > 0 && x.numel() > 0 => {
            Err(Fault::NoKernel { op: kernel, dtype: DType::Bool }.into())
        }
        _ => Ok(x),
    }
}

/// Running largest (or smallest) value and its index.
fn running(derivative: &'static Derivative, input: &Tensor, dim: i64, largest: bool) -> Result<Vec<Tensor>> {
    if input.is_batched() {
        return super::batch::picked(input, dim, |value, at| running(derivative, value, at, largest));
    }
    let x = at_least_vector(&input.body());
    let mut recorder = begin(derivative, &[input], || Some(Box::new((dim, true))));
    let kernel = if largest { "cummax_cpu" } else { "cummin_cpu" };
    let at = wrap_dim(dim, x.layout.ndim()).and_then(|at| super::refuse::order(kernel, x.dtype).map(|()| at));
    let at = at.map_err(|error| refused(error, &mut recorder, (&[], 1, &[0]), &[input], &[]))?;
    let values = Body::new(x.shape(), x.dtype, x.device())?;
    let indices = Body::new(x.shape(), DType::I64, x.device())?;
    if values.numel() > 0 {
        fork!([&values, &x], cpu: done(match largest {
                true => crate::cpu::scan::cummax(values.host()?, indices.host()?, x.host()?, at),
                false => crate::cpu::scan::cummin(values.host()?, indices.host()?, x.host()?, at),
            }),
            gpu: crate::gpu::cum_extreme(values.gpu()?, indices.gpu()?, x.gpu()?, at, largest))?;
    }
    let bodies = vec![with_shape(values, &input.shape()), with_shape(indices, &input.shape())];
    let made = end_many(recorder, SAVE_INPUT_AND_INDICES, &[input], bodies)?;
    super::tangent::picked(made, input, dim, true)
}

static CUMMAX: Derivative = Derivative { facts: None, name: "CummaxBackward0", apply: put_back_running };
static CUMMIN: Derivative = Derivative { facts: None, name: "CumminBackward0", apply: put_back_running };

/// The gradient goes to where the values were; of nothing it is PyTorch's own input.
fn put_back_running(step: &Step) -> Result<Grads> {
    let wanted = step.grad(0).is_some() && step.wants(0);
    if wanted && numel(&crate::ops::meta_of(step, 0)?.shape) == 0 {
        return Ok(smallvec::smallvec![Some(step.tensor(0)?)]);
    }
    put_back(step)
}

mod more {
    use super::*;

    /// Sums and products of integers are int64.
    fn widened(input: Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let dtype =
            dtype.unwrap_or(if input.dtype().is_differentiable() { input.dtype() } else { DType::I64 });
        crate::ops::create::read_as(&input, dtype)
    }

    compose! { "scan";
        /// Running sum along a dimension.
        [out] fn cumsum(input: Tensor, dim: i64, dtype: Option<DType> = None) -> Tensor {
            super::cumsum_along(&numbers_in("cumsum_out_cpu", widened(input, dtype)?)?, dim)
        }
        /// Running product along a dimension.
        [out] fn cumprod(input: Tensor, dim: i64, dtype: Option<DType> = None) -> Tensor {
            super::cumprod_along(&numbers_in("cumprod_out_cpu", widened(input, dtype)?)?, dim)
        }
        /// Logarithm of the running sum of exponentials along a dimension.
        [out] fn logcumsumexp(input: Tensor, dim: i64) -> Tensor { super::log_cum_sum_exp(&input, dim) }
        /// Running largest value along a dimension, and where it is.
        [out] fn cummax(input: Tensor, dim: i64) -> Out {
            Ok(Out::Tuple("cummax", &["values", "indices"], running(&CUMMAX, &input, dim, true)?))
        }
        /// Running smallest value along a dimension, and where it is.
        [out] fn cummin(input: Tensor, dim: i64) -> Out {
            Ok(Out::Tuple("cummin", &["values", "indices"], running(&CUMMIN, &input, dim, false)?))
        }
    }
}
pub use more::COMPOSED;

/// The in-place forms compute in the target's own dtype, whatever a new result would have.
macro_rules! inplace {
    ($row:ident, $name:literal, $doc:literal, $kernel:literal, $scan:path) => {
        static $row: Row = Row {
            name: $name,
            doc: $doc,
            family: "scan in place",
            params: more::cumsum::ROW.params,
            forms: Forms(Forms::INPLACE),
            differentiable: false,
            call: |args| overwrite($name, $kernel, $scan, args).map(Out::Tensor),
            call_inplace: Some(|args| overwrite($name, $kernel, $scan, args)),
            ..$crate::ops::Row::OLD
        };
    };
}
inplace!(CUMSUM, "cumsum", "The running sum, over the tensor.", "cumsum_out_cpu", cumsum_along);
inplace!(CUMPROD, "cumprod", "The running product, over the tensor.", "cumprod_out_cpu", cumprod_along);
pub static INPLACE: &[&Row] = &[&CUMSUM, &CUMPROD];

type Along = fn(&Tensor, i64) -> Result<Tensor>;

fn overwrite(name: &str, kernel: &'static str, scan: Along, args: &[Arg]) -> Result<Tensor> {
    let params = more::cumsum::ROW.params;
    let target: Tensor = take(name, params, args, 0, None)?;
    let dim: i64 = take(name, params, args, 1, None)?;
    let dtype: Option<DType> = take(name, params, args, 2, Some(|| None))?;
    if let Some(dtype) = dtype.filter(|&d| d != target.dtype()) {
        return Err(Error::runtime(format!(
            "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
            c_name(target.dtype()),
            c_name(dtype)
        )));
    }
    super::inplace::overwrite(&target, &scan(&numbers_in(kernel, target.clone())?, dim)?)?;
    Ok(target)
}

/// The dtype as C++ calls it.
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
