//! Tensors of evenly spaced numbers.

use crate::base::default_dtype;
use crate::operator::primitives::copies::{self, to_dtype};
use crate::operator::primitives::views::dims_of;
use crate::ops::creation::factories::fresh_leaf;
use crate::ops::prelude::*;

/// The default dtype of a range with these bounds.
fn range_dtype(numbers: &[Scalar]) -> DType {
    if numbers.iter().any(|n| matches!(n, Scalar::Float(_))) { default_dtype() } else { DType::I64 }
}

/// The length of `start, start + step, …` up to `end`, which is included if `closed` is set.
fn range_length(start: Scalar, end: Scalar, step: Scalar, dtype: DType, closed: bool) -> Result<usize> {
    if [start, end, step].iter().any(|s| matches!(s, Scalar::Complex(..))) {
        return Err(crate::operator::bodies::overflow("double"));
    }
    let (a, b, d) = (start.as_f64(), end.as_f64(), step.as_f64());
    if d == 0.0 {
        return Err(Error::runtime("step must be nonzero"));
    }
    if !a.is_finite() || !b.is_finite() {
        let show = |s: Scalar| match s {
            Scalar::Float(f) if f.is_nan() => "nan".into(),
            Scalar::Float(f) => f.to_string(),
            other => other.as_i64().to_string(),
        };
        return Err(Error::runtime(format!("unsupported range: {} -> {}", show(start), show(end))));
    }
    if (d > 0.0 && b < a) || (d < 0.0 && b > a) {
        return Err(Error::runtime("upper bound and lower bound inconsistent with step sign"));
    }
    let all_int = [start, end, step].iter().all(|s| !matches!(s, Scalar::Float(_)));
    if all_int && !dtype.is_float() && !closed {
        let (span, step) = (i128::from(end.as_i64()) - i128::from(start.as_i64()), i128::from(step.as_i64()));
        let count = (span + step - step.signum()) / step;
        return usize::try_from(count).map_err(|_| Error::runtime("invalid size, possible overflow?"));
    }
    let count = if closed { ((b - a) / d).floor() + 1.0 } else { ((b - a) / d).ceil() };
    if count > i64::MAX as f64 / 8.0 {
        return Err(Error::runtime("invalid size, possible overflow?"));
    }
    Ok(count.max(0.0) as usize)
}

/// `start, start + step, …` as a body.
pub fn range(start: Scalar, step: Scalar, count: usize, dtype: DType, device: Device) -> Result<Body> {
    crate::operator::pointwise::dtype_checks::order("arange_cpu", dtype)?;
    crate::operator::bodies::arange(start, step, count, dtype, device)
}

/// Rejects ranges of more than one boolean.
fn check_spaced(kernel: &'static str, dtype: DType, steps: i64) -> Result<()> {
    if dtype == DType::Bool && steps > 1 { Err(Fault::NoKernel { op: kernel, dtype }.into()) } else { Ok(()) }
}

/// Rejects bounds that are neither numbers nor 0-d tensors.
fn check_bounds(name: &str, start: Operand, end: Operand) -> Result<()> {
    let deep = |(what, bound): (&str, Operand)| match bound {
        Operand::Tensor(t) if t.ndim() > 0 => Some(format!("{what} with {} dimension(s)", t.ndim())),
        _ => None,
    };
    let wrong: Vec<String> = [("start", start), ("end", end)].into_iter().filter_map(deep).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name} only supports 0-dimensional start and end tensors, but got {}.",
        wrong.join(" and ")
    )))
}

fn fill_range(start: f64, end: f64, steps: i64, dtype: DType, device: Device) -> Result<Body> {
    let count = usize::try_from(steps).map_err(|_| Error::runtime("number of steps must be non-negative"))?;
    let out = Body::new(&dims_of(&[steps])?, dtype, device)?;
    if count > 0 {
        fork!(over [out], with [start, end], cpu: done(crate::cpu::sequence::linspace(out.host()?, start, end)), gpu: crate::gpu::linspace(out.gpu()?, start, end))?;
    }
    Ok(out)
}

/// The batching rule of `linspace`. Computes each half from its own end, so that both ends are exact.
fn spaced_of_samples(start: Operand, end: Operand, steps: usize, dtype: DType) -> Result<Tensor> {
    let value = |v: Operand| -> Result<V> {
        match v {
            Operand::Tensor(t) => Ok(V::from(copies::to_dtype(t, dtype)?)),
            Operand::Scalar(s) => Ok(V::Scalar(s)),
        }
    };
    let device = [start, end].iter().find_map(Operand::tensor).map(Tensor::device);
    let (start, end) = (value(start)?, value(end)?);
    let number =
        Tensor::new(range(Scalar::Int(0), Scalar::Int(1), steps, DType::I64, device.unwrap_or(Device::Cpu))?);
    let place = V::from(copies::to_dtype(&number, dtype)?);
    let last = steps.saturating_sub(1) as f64;
    let step = (&end - &start) / last.max(1.0);
    let (rising, falling) = (&step * &place + start, end - &step * (last - &place));
    select(falling, rising, lt(&number, steps.div_ceil(2) as f64)).tensor()
}

/// Reads a bound of a range of `steps` numbers, truncated for integer dtypes. With several steps the dtype must be able to hold it.
fn bound(value: Operand, dtype: DType, steps: i64) -> Result<f64> {
    let number = value.item()?;
    if steps > 1 {
        crate::operator::bodies::holds(dtype, number)?;
    }
    let bound = number.as_f64();
    Ok(if dtype.is_differentiable() { bound } else { bound.trunc() })
}

/// The dtype of a range with a complex bound; `None` if both bounds are real.
fn complex_bounds(name: &str, start: Operand, end: Operand, dtype: Option<DType>) -> Result<Option<DType>> {
    if !start.is_complex() && !end.is_complex() {
        return Ok(None);
    }
    let inferred = default_dtype().to_complex();
    match dtype {
        Some(dtype) if !dtype.is_complex() => Err(Error::runtime(format!(
            "torch.{name}(): inferred dtype {} can't be safely cast to passed dtype {}",
            if inferred == DType::C128 { "c10::complex<double>" } else { "c10::complex<float>" },
            dtype.scalar_name(),
        ))),
        given => Ok(Some(given.unwrap_or(inferred))),
    }
}

/// A complex range, composed of ranges of the real and imaginary parts.
fn fill_complex_range(
    start: Operand,
    end: Operand,
    steps: i64,
    dtype: DType,
    device: Device,
) -> Result<Body> {
    let (a, b, part) = (start.item()?, end.item()?, dtype.to_real());
    let real = Tensor::new(fill_range(a.as_f64(), b.as_f64(), steps, part, device)?);
    let imag = Tensor::new(fill_range(a.imaginary(), b.imaginary(), steps, part, device)?);
    let made = crate::ops::complex::complex(&real, &imag)?;
    let body = made.body().clone();
    Ok(body)
}

/// The batching rule, if a bound is batched: each example has its own bounds.
fn fill_ranges(start: Operand, end: Operand, steps: i64, dtype: DType) -> Result<Option<Tensor>> {
    if !start.is_batched() && !end.is_batched() {
        return Ok(None);
    }
    let count = usize::try_from(steps).map_err(|_| Error::runtime("number of steps must be non-negative"))?;
    spaced_of_samples(start, end, count, dtype).map(Some)
}

/// Return the numbers from `start` up to, but not including, `end`, with steps of `step`.
///
/// Called with one number, that is `end`, and `start` is 0.
///
/// Args:
///     start: first number. Default: `0`
///     end: the numbers stop before it.
///     step: difference of neighboring numbers.
///     dtype: data type; if not given, int64 for whole numbers, else the default dtype.
///
/// Examples:
///     >>> torch.arange(5)
///     tensor([0, 1, 2, 3, 4])
///     >>> torch.arange(1, 2, 0.25)
///     tensor([1.0000, 1.2500, 1.5000, 1.7500])
#[operator(function, overloads((0, 5), (1, 5), (1, 7)), out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        counted,
        called = "aten::arange"
    )
)]
pub fn arange(
    start: Scalar,
    end: Option<Scalar>,
    #[default(Scalar::Int(1))] step: Scalar,
    options: TensorOptions,
) -> Result<Tensor> {
    let (start, end) = match end {
        Some(end) => (start, end),
        None => (Scalar::Int(0), start),
    };
    let dtype = options.dtype.unwrap_or_else(|| range_dtype(&[start, end, step]));
    if dtype == DType::Bool {
        return Err(Fault::NoKernel { op: "arange_cpu", dtype }.into());
    }
    let count = range_length(start, end, step, dtype, false)?;
    fresh_leaf(range(start, step, count, dtype, options.device())?, options.requires_grad)
}

/// Return the numbers from 0 to `end`, given by name.
#[overload(arange.default)]
pub fn arange_to(#[keyword] end: Scalar, options: TensorOptions) -> Result<Tensor> {
    arange(end, None, Scalar::Int(1), options)
}

/// Return the numbers from `start` to `end`, both included, with steps of `step`.
///
/// Deprecated: `torch.arange` is like Python's `range` and leaves out `end`.
///
/// Args:
///     start: first number. Default: `0`
///     end: last number.
///     step: difference of neighboring numbers.
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.range(1, 3)
///     tensor([1., 2., 3.])
#[operator(
    function,
    name = "range",
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        counted,
        called = "aten::range"
    )
)]
pub fn range_with_end(
    start: Scalar,
    end: Scalar,
    #[default(Scalar::Int(1))] step: Scalar,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = layout;
    crate::base::warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with \
         Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
    )?;
    let dtype = dtype.unwrap_or_else(default_dtype);
    let count = range_length(start, end, step, dtype, true)?;
    fresh_leaf(range(start, step, count, dtype, device.unwrap_or(Device::Cpu))?, requires_grad)
}

/// Return `steps` evenly spaced numbers from `start` to `end`, both included.
///
/// Args:
///     start: first number; a tensor without dimensions will do, too.
///     end: last number; likewise.
///     steps: how many numbers.
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.linspace(0, 1, 5)
///     tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
#[operator(function, overloads((2, 7), (2, 7), (2, 7), (2, 7)), out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        counted,
        called = "aten::linspace"
    ),
    sample = "random"
)]
pub fn linspace(
    #[elsewhere] start: Operand,
    #[elsewhere] end: Operand,
    #[strict] steps: i64,
    #[keyword] options: TensorOptions,
) -> Result<Tensor> {
    check_bounds("linspace", start, end)?;
    if let Some(kind) = complex_bounds("linspace", start, end, options.dtype)? {
        return fresh_leaf(
            fill_complex_range(start, end, steps, kind, options.device())?,
            options.requires_grad,
        );
    }
    let dtype = options.dtype();
    check_spaced("linspace_cpu", dtype, steps)?;
    if let Some(made) = fill_ranges(start, end, steps, dtype)? {
        return Ok(made);
    }
    fresh_leaf(
        fill_range(bound(start, dtype, steps)?, bound(end, dtype, steps)?, steps, dtype, options.device())?,
        options.requires_grad,
    )
}

/// Return `steps` numbers from `base**start` to `base**end`, evenly spaced on a logarithmic scale.
///
/// Args:
///     start: first exponent; a tensor without dimensions will do, too.
///     end: last exponent; likewise.
///     steps: how many numbers.
///     base: base of the powers.
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.logspace(0, 2, 3)
///     tensor([  1.,  10., 100.])
#[operator(function, overloads((2, 8), (2, 8), (2, 8), (2, 8)), out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        counted,
        called = "aten::logspace"
    ),
    sample = "random"
)]
pub fn logspace(
    #[elsewhere] start: Operand,
    #[elsewhere] end: Operand,
    #[strict] steps: i64,
    #[default(10.0)] base: f64,
    #[keyword] options: TensorOptions,
) -> Result<Tensor> {
    check_bounds("logspace", start, end)?;
    if let Some(kind) = complex_bounds("logspace", start, end, options.dtype)? {
        let exponents = Tensor::new(fill_complex_range(start, end, steps, kind, options.device())?);
        let body = crate::ops::elementwise::power::power(base.into(), (&exponents).into())?.body().clone();
        return fresh_leaf(body, options.requires_grad);
    }
    let dtype = options.dtype();
    check_spaced("logspace_cpu", dtype, steps)?;
    let work = if dtype == DType::F64 || (!dtype.is_float() && options.device().is_cpu()) {
        DType::F64
    } else {
        DType::F32
    };
    if let Some(exponents) = fill_ranges(start, end, steps, work)? {
        return to_dtype(&crate::ops::elementwise::power::power(base.into(), (&exponents).into())?, dtype);
    }
    let exponents = Tensor::new(fill_range(
        bound(start, dtype, steps)?,
        bound(end, dtype, steps)?,
        steps,
        work,
        options.device(),
    )?);
    let powers = crate::ops::elementwise::power::power(base.into(), (&exponents).into())?;
    let out = to_dtype(&powers, dtype)?;
    let body = out.body().clone();
    fresh_leaf(body, options.requires_grad)
}
