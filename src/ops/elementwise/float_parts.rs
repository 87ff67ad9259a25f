//! `nextafter` and `frexp`. They have no shaders.

use crate::base::broadcast;
use crate::operator::bodies::preserved_as;
use crate::operator::primitives::copies::to_dtype;
use crate::ops::prelude::*;

/// A contiguous copy in `dtype`, expanded to `shape`.
pub fn copy_as(x: &Body, shape: &[usize], dtype: DType) -> Result<Body> {
    converted(&x.with_layout(x.layout.broadcast_to(shape)), dtype)
}

/// The dtype that both are converted to. A 0-d tensor does not widen one with dimensions.
pub fn common(x: &Tensor, y: &Tensor) -> DType {
    match (x.ndim(), y.ndim()) {
        (0, n) if n > 0 => y.dtype(),
        (n, 0) if n > 0 => x.dtype(),
        _ => x.dtype().promote(y.dtype()),
    }
}

/// The neighbour of `x` in the direction of `y`, in a format with this number of mantissa bits and this least exponent.
fn neighbour(x: f64, y: f64, bits: i32, least: i32) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x == y {
        return y;
    }
    if bits == 52 {
        return if y > x { x.next_up() } else { x.next_down() };
    }
    if x == 0.0 {
        return 2f64.powi(least - bits).copysign(y);
    }
    if x.is_infinite() {
        let largest = 2f64.powi(2 - least) - 2f64.powi(1 - least - bits);
        return largest.copysign(x);
    }
    let exponent = (((x.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(least);
    let grows = (y > x) == (x > 0.0);
    // Below a power of two the distance to the neighbour is half as large.
    let near = !grows && exponent > least && x.abs() == 2f64.powi(exponent);
    let step = 2f64.powi(exponent - bits - i32::from(near));
    x + if y > x { step } else { -step }
}

#[primitive]
impl Nextafter {
    fn forward(input: &Tensor, other: &Tensor) -> Result<Body> {
        let (x, y) = (input.body(), other.body());
        fork!([&x, &y], cpu: Ok(()), gpu: no_shader("nextafter", x.dtype))?;
        let shape = broadcast(x.shape(), y.shape())?;
        let (out, other) = (copy_as(&x, &shape, DType::F64)?, copy_as(&y, &shape, DType::F64)?);
        let (bits, least): (i32, i32) = match x.dtype {
            DType::F64 => (52, -1022),
            DType::F32 => (23, -126),
            DType::BF16 => (7, -126),
            _ => (10, -14),
        };
        if out.numel() > 0 {
            fork!(over [out, other], with [bits, least, x],
                cpu: done(crate::cpu::wide::map_pair(out.host()?, other.host()?, 8, |x, y| neighbour(x, y, bits, least))),
                gpu: no_shader("nextafter", x.dtype))?;
        }
        in_dtype(out, x.dtype)
    }
    /// The step to the neighbour counts as rounding: the gradient passes unchanged, and is 0 where there is no step.
    fn derivative(g: V, input: V, other: V, wants: [bool; 2]) -> [Option<V>; 2] {
        let none = constant_zero(g.clone());
        [wants[0].then(|| select(none.clone(), g, ne(input, other))), wants[1].then_some(none)]
    }
    fn batch(b: &Batch, input: &Tensor, other: &Tensor) -> Result<Tensor> {
        let rank = input.ndim().max(other.ndim());
        Nextafter::call(&b.aligned(input, rank)?, &b.aligned(other, rank)?).map(|t| b.wrap(t))
    }
}

/// Return the floating point number that follows `input` in the direction of `other`.
///
/// Args:
///     other: the numbers towards which to go, broadcast with `input`.
///
/// Examples:
///     >>> eps = torch.finfo(torch.float32).eps
///     >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) == 1.0 + eps
///     tensor([True])
#[operator(function, method, inplace, out, elementwise, sample = "underived")]
pub fn nextafter(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let dtype = common(input, other);
    if !dtype.is_differentiable() || dtype.is_complex() || dtype.is_float8() {
        return Err(Fault::NoKernel { op: "nextafter_cpu", dtype }.into());
    }
    Nextafter::call(&to_dtype(input, dtype)?, &to_dtype(other, dtype)?)
}

fn exponent(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return 0.0;
    }
    // Scale subnormal numbers up first.
    let (x, shift) = if x.abs() < f64::MIN_POSITIVE { (x * 2f64.powi(64), 64) } else { (x, 0) };
    f64::from(((x.to_bits() >> 52) & 0x7ff) as i32 - 1022 - shift)
}

fn mantissa(x: f64) -> f64 {
    let power = exponent(x);
    // In two steps, so that neither power overflows.
    let half = (power / 2.0).trunc();
    x / half.exp2() / (power - half).exp2()
}

#[primitive(batch = pointwise, results(mantissa, exponent))]
impl Frexp {
    fn forward(input: &Tensor) -> Result<[Body; 2]> {
        let x = input.body();
        fork!([&x], cpu: Ok(()), gpu: no_shader("frexp", x.dtype))?;
        let (first, second) = (preserved_as(&x, DType::F64)?, preserved_as(&x, DType::F64)?);
        if first.numel() > 0 {
            fork!(over [first], with [x], cpu: done(crate::cpu::wide::map(first.host()?, 4, mantissa)), gpu: no_shader("frexp", x.dtype))?;
            fork!(over [second], with [x], cpu: done(crate::cpu::wide::map(second.host()?, 4, self::exponent)), gpu: no_shader("frexp", x.dtype))?;
        }
        Ok([preserved_as(&first, x.dtype)?, preserved_as(&second, DType::I32)?])
    }
    fn d_input(g: V, exponent: V) -> V {
        let V::Tensor(like) = &g else { return g };
        let dtype = like.dtype();
        g / exp2(exponent.cast(dtype))
    }
}

/// Decompose numbers into mantissa and exponent: `input = mantissa * 2**exponent`.
///
/// Mantissas have magnitudes in `[0.5, 1)`; 0 has mantissa and exponent 0.
///
/// Args:
///     out: two tensors to write mantissas and exponents into.
///
/// Returns:
///     A named tuple `(mantissa, exponent)`.
///
/// Examples:
///     >>> mantissa, exponent = torch.frexp(torch.tensor([1.0, 6.0]))
///     >>> mantissa, exponent
///     (tensor([0.5000, 0.7500]), tensor([1, 3], dtype=torch.int32))
#[operator(
    function,
    method,
    out(declared, silent),
    returns(mantissa, exponent),
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.frexp(x)[0], domain=(0.3, 0.45)))"
)]
pub fn frexp(input: &Tensor) -> Result<[Tensor; 2]> {
    if !input.dtype().is_differentiable() || input.dtype().is_complex() {
        return Err(Error::runtime("torch.frexp() only supports floating-point dtypes"));
    }
    if input.dtype().is_float8() {
        return Err(Fault::NoKernel { op: "frexp_cpu", dtype: input.dtype() }.into());
    }
    Frexp::call(input)
}
