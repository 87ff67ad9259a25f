//! The greatest common divisor and the least common multiple. They have no shaders.

use crate::base::broadcast;
use crate::operator::primitives::copies::to_dtype;
use crate::ops::elementwise::float_parts::{common, copy_as};
use crate::ops::prelude::*;

fn map_integers(
    name: &'static str,
    op: &'static str,
    x: &Tensor,
    y: &Tensor,
    f: fn(i64, i64) -> i64,
) -> Result<Tensor> {
    let dtype = common(x, y);
    if dtype.is_differentiable() || dtype == DType::Bool || dtype.is_stored_only() {
        return Err(Fault::NoKernel { op, dtype }.into());
    }
    Whole::call(&to_dtype(x, dtype)?, &to_dtype(y, dtype)?, Operation { name, f })
}

/// A function of two integers, and its name.
#[derive(Clone, Copy)]
pub struct Operation {
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only a GPU is refused, by name"))]
    name: &'static str,
    f: fn(i64, i64) -> i64,
}

impl crate::tensor::facts::Keep for Operation {
    fn shown(&self) -> crate::tensor::facts::Shown {
        crate::tensor::facts::Shown::Nothing
    }
}

#[primitive]
impl Whole {
    fn forward(
        #[constant] input: &Tensor,
        #[constant] other: &Tensor,
        #[hidden] by: Operation,
    ) -> Result<Body> {
        let (x, y) = (input.body(), other.body());
        fork!([&x, &y], cpu: Ok(()), gpu: no_shader(by.name, x.dtype))?;
        let shape = broadcast(x.shape(), y.shape())?;
        let (out, other) = (copy_as(&x, &shape, DType::I64)?, copy_as(&y, &shape, DType::I64)?);
        if out.numel() > 0 {
            fork!(over [out, other], with [by, x],
                cpu: done(crate::cpu::wide::map_whole(out.host()?, other.host()?, by.f)),
                gpu: no_shader(by.name, x.dtype))?;
        }
        in_dtype(out, x.dtype)
    }
    fn batch(b: &Batch, input: &Tensor, other: &Tensor, by: Operation) -> Result<Tensor> {
        let rank = input.ndim().max(other.ndim());
        Whole::call(&b.aligned(input, rank)?, &b.aligned(other, rank)?, by).map(|t| b.wrap(t))
    }
}

/// The absolute values are unsigned, because that of the least signed number overflows.
fn divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

fn multiple(a: i64, b: i64) -> i64 {
    match divisor(a, b) {
        0 => 0,
        d => a.wrapping_div(d).wrapping_mul(b).wrapping_abs(),
    }
}

/// Compute the greatest common divisor of each pair of integers.
///
/// Examples:
///     >>> torch.gcd(torch.tensor([12, 18]), torch.tensor([8, 12]))
///     tensor([4, 6])
#[operator(function, method, inplace, out, elementwise, unrecorded, sample = "underived")]
pub fn gcd(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    map_integers("gcd", "gcd_cpu", input, other, divisor)
}

/// Compute the least common multiple of each pair of integers.
///
/// Examples:
///     >>> torch.lcm(torch.tensor([4, 6]), torch.tensor([6, 9]))
///     tensor([12, 18])
#[operator(function, method, inplace, out, elementwise, unrecorded, sample = "underived")]
pub fn lcm(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    map_integers("lcm", "lcm_cpu", input, other, multiple)
}

crate::capture::retain_copy!(Operation);
