//! Fills memory with random numbers; one function for each distribution.

use crate::cpu::random as cpu;
use crate::operator::pointwise::dtype_checks::improbable;
use crate::operator::row::generator::{Generator, stream};
use crate::ops::elementwise::compare::largest;
use crate::ops::prelude::*;

/// Rejects integer dtypes for continuous distributions.
fn need_continuous(distribution: &str, body: &Body, dtype: &str) -> Result<()> {
    if body.dtype.is_float() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{distribution} distribution is a continuous probability distribution. dtype must be a floating point but you \
         specified {dtype}"
    )))
}

fn need_float(op: &'static str, body: &Body) -> Result<()> {
    if body.dtype.is_float() { Ok(()) } else { Err(Fault::NoKernel { op, dtype: body.dtype }.into()) }
}

/// Rejects a bound that the dtype cannot hold. The message has the dtype's name in C++.
fn fits(name: &str, value: i64, dtype: DType) -> Result<()> {
    let (low, high, c_name) = match dtype {
        DType::Bool => (0, 1, "bool"),
        DType::U8 => (0, 255, "unsigned char"),
        DType::I8 => (-128, 127, "signed char"),
        DType::I16 => (-32_768, 32_767, "short"),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX), "int"),
        _ => return Ok(()),
    };
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(Error::runtime(format!("{name} is out of bounds for {c_name}")))
    }
}

/// Fills with uniform random numbers from `from` up to, but not including, `to`.
pub fn fill_uniform(body: &Body, from: f64, to: f64, generator: Option<Generator>) -> Result<()> {
    if body.dtype.is_complex() {
        return fill_uniform(&body.as_parts(), from, to, generator);
    }
    need_float("check_uniform_bounds", body)?;
    if from > to {
        return Err(Error::runtime(format!(
            "uniform_ expects to return a [from, to) range, but found from={from} > to={to}"
        )));
    }
    if to - from > largest(body.dtype) {
        return Err(Error::runtime(format!(
            "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={to} and from={from} which result in \
             to-from to exceed the limit",
            body.dtype.scalar_name()
        )));
    }
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, from, to], cpu: done(cpu::uniform(&mut stream(&generator).cpu, body.host()?, from, to)),
        gpu: crate::gpu::uniform(body.gpu()?, stream(&generator).place(body.numel()), from, to))
}

/// Fills with normally distributed random numbers.
pub fn fill_normal(body: &Body, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    if std < 0.0 || std.is_nan() {
        return Err(Error::runtime(format!("normal expects std >= 0.0, but found std {std}")));
    }
    if body.dtype.is_complex() {
        // Both parts have the same mean, and half of the variance.
        return fill_normal(&body.as_parts(), mean, std * std::f64::consts::FRAC_1_SQRT_2, generator);
    }
    need_float("normal_kernel_cpu", body)?;
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, mean, std], cpu: done(cpu::normal(&mut stream(&generator).cpu, body.host()?, mean, std)),
        gpu: crate::gpu::normal(body.gpu()?, stream(&generator).place(body.numel()), mean, std))
}

/// Fills with exponentially distributed random numbers with rate `lambd`.
pub fn fill_exponential(body: &Body, lambd: f64, generator: Option<Generator>) -> Result<()> {
    if lambd <= 0.0 || lambd.is_nan() {
        return Err(Error::runtime(format!("exponential_ expects lambda > 0.0, but found lambda={lambd}")));
    }
    need_continuous("Exponential", body, body.dtype.scalar_name())?;
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, lambd], cpu: done(cpu::exponential(&mut stream(&generator).cpu, body.host()?, lambd)),
        gpu: crate::gpu::exponential(body.gpu()?, stream(&generator).place(body.numel()), lambd))
}

/// Fills with geometrically distributed random numbers: the number of trials with probability `p` up to the first success.
pub fn fill_geometric(body: &Body, p: f64, generator: Option<Generator>) -> Result<()> {
    if !(p > 0.0 && p < 1.0) {
        return Err(Error::runtime(format!("geometric_ expects p to be in (0, 1), but got p={p}")));
    }
    crate::operator::pointwise::dtype_checks::order("geometric_cpu", body.dtype)?;
    if body.dtype == DType::Bool {
        return Err(Fault::NoKernel { op: "geometric_cpu", dtype: DType::Bool }.into());
    }
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, p], cpu: done(cpu::geometric(&mut stream(&generator).cpu, body.host()?, p)),
        gpu: crate::gpu::geometric(body.gpu()?, stream(&generator).place(body.numel()), p))
}

/// Fills with random numbers of the Cauchy distribution.
pub fn fill_cauchy(body: &Body, median: f64, sigma: f64, generator: Option<Generator>) -> Result<()> {
    if sigma <= 0.0 {
        return Err(Error::runtime(format!("cauchy_ expects sigma > 0.0, but found sigma={sigma}")));
    }
    need_continuous("Cauchy", body, body.dtype.c_name())?;
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, median, sigma], cpu: done(cpu::cauchy(&mut stream(&generator).cpu, body.host()?, median, sigma)),
        gpu: crate::gpu::cauchy(body.gpu()?, stream(&generator).place(body.numel()), median, sigma))
}

/// Fills with log-normally distributed random numbers.
pub fn fill_log_normal(body: &Body, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    if std <= 0.0 {
        return Err(Error::runtime(format!("log_normal_ expects std > 0.0, but found std={std}")));
    }
    need_float("log_normal_cpu", body)?;
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, mean, std], cpu: done(cpu::log_normal(&mut stream(&generator).cpu, body.host()?, mean, std)),
        gpu: crate::gpu::log_normal(body.gpu()?, stream(&generator).place(body.numel()), mean, std))
}

/// Fills with random integers below `to`, or from `from` up to, but not including, `to`; by default all that the dtype can hold.
pub fn fill_random(
    body: &Body,
    from: Option<i64>,
    to: Option<i64>,
    generator: Option<Generator>,
) -> Result<()> {
    match (from, to) {
        (None, None) => fill_whole_range(body, &generator),
        (Some(from), None) => fill_from(body, from, &generator),
        (from, Some(to)) => fill_integers(body, from.unwrap_or(0), to, &generator),
    }
}

/// Fills with random integers from `from` on.
fn fill_from(body: &Body, from: i64, generator: &Option<Generator>) -> Result<()> {
    refuse_complex(body.dtype)?;
    let last = last_whole(body.dtype);
    fits("from", from, body.dtype)?;
    if from > last {
        return Err(Error::runtime(
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype",
        ));
    }
    draw_integers(body, from, last, generator)
}

fn refuse_complex(dtype: DType) -> Result<()> {
    if dtype.is_complex() {
        return Err(Error::runtime(
            "check_random_bounds handles only integral, floating-point and boolean types",
        ));
    }
    Ok(())
}

fn draw_integers(body: &Body, low: i64, last: i64, generator: &Option<Generator>) -> Result<()> {
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, low, last], cpu: done(cpu::randint(&mut stream(generator).cpu, body.host()?, low, last)),
        gpu: crate::gpu::randint(body.gpu()?, stream(generator).place(body.numel()), low, last.wrapping_add(1)))
}

pub(super) fn fill_integers(body: &Body, low: i64, high: i64, generator: &Option<Generator>) -> Result<()> {
    refuse_complex(body.dtype)?;
    if low >= high {
        return Err(Error::runtime(format!(
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )));
    }
    fits("from", low, body.dtype)?;
    fits("to - 1", high - 1, body.dtype)?;
    draw_integers(body, low, high - 1, generator)
}

/// The last of the consecutive integers from 0 on that the dtype can represent.
fn last_whole(dtype: DType) -> i64 {
    match dtype {
        DType::Bool => 1,
        DType::U8 => u8::MAX.into(),
        DType::I8 => i8::MAX.into(),
        DType::I16 => i16::MAX.into(),
        DType::I32 => i32::MAX.into(),
        DType::U16 => u16::MAX.into(),
        DType::U32 => u32::MAX.into(),
        DType::I64 | DType::U64 => i64::MAX,
        DType::F8E4M3 => 1 << 4,
        DType::F8E5M2 => 1 << 3,
        DType::F16 | DType::C32 => 1 << 11,
        DType::BF16 => 1 << 8,
        DType::F32 => 1 << 24,
        DType::F64 | DType::C64 | DType::C128 => 1 << 53,
    }
}

fn fill_whole_range(body: &Body, generator: &Option<Generator>) -> Result<()> {
    crate::operator::pointwise::dtype_checks::order("random_kernel_cpu", body.dtype)?;
    let high = last_whole(body.dtype).wrapping_add(1);
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, high], cpu: { let _: i64 = high; done(cpu::random(&mut stream(generator).cpu, body.host()?)) },
        gpu: crate::gpu::randint(body.gpu()?, stream(generator).place(body.numel()), 0, high))
}

/// Fills with 1, with probability `p`, or 0.
pub fn fill_coin(body: &Body, p: f64, generator: Option<Generator>) -> Result<()> {
    crate::operator::pointwise::dtype_checks::order("bernoulli_scalar_cpu_", body.dtype)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")));
    }
    if body.numel() == 0 {
        return Ok(());
    }
    fork!(over [body], with [generator, p], cpu: done(cpu::bernoulli(&mut stream(&generator).cpu, body.host()?, p)),
        gpu: crate::gpu::bernoulli(body.gpu()?, stream(&generator).place(body.numel()), crate::gpu::Source::Scalar(Scalar::Float(p))))
}

/// Fills with 1, with the probabilities `p`, or 0. `p` has the shape of `body`.
pub(super) fn fill_coins(body: &Body, p: &Body, generator: &Option<Generator>) -> Result<()> {
    crate::operator::pointwise::dtype_checks::order("bernoulli_tensor_cpu_self_", body.dtype)?;
    need_float("bernoulli_tensor_cpu_p_", p)?;
    if body.numel() == 0 {
        return Ok(());
    }
    improbable(super::BERNOULLI.name, p, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.")?;
    fork!(over [body, p], with [generator], cpu: done(cpu::bernoulli_tensor(&mut stream(generator).cpu, body.host()?, p.host()?)),
        gpu: crate::gpu::bernoulli(body.gpu()?, stream(generator).place(body.numel()), crate::gpu::Source::View(p.gpu()?)))
}
