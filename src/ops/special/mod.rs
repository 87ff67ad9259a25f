//! Special functions: Bessel, error and gamma functions and others. They have no shaders.

pub mod bessel;
pub mod polynomials;

use crate::base::{broadcast, default_dtype, signals};
use crate::cpu::math::{bessel as kernels, normal};
use crate::operator::bodies::preserved_as;
use crate::operator::pointwise::{apply, result_type};
use crate::operator::primitives::constant;
use crate::operator::primitives::copies::to_dtype;
use crate::ops::derivatives::underived;
use crate::ops::elementwise::float_parts::copy_as;
use crate::ops::elementwise::{arithmetic as a, unary as u};
use crate::ops::prelude::*;

/// Converts integers to the default floating point dtype.
fn floating(name: &'static str, x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return Err(Fault::NoKernel { op: name, dtype: x.dtype() }.into());
    }
    if x.dtype().is_differentiable() { Ok(x.clone()) } else { to_dtype(x, default_dtype()) }
}

/// Applies a function to each element.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "only a GPU is refused, by name"))]
fn map(op: &'static str, x: &Tensor, f: fn(f64) -> f64) -> Result<Body> {
    let x = x.body();
    fork!([&x], cpu: Ok(()), gpu: no_shader(op, x.dtype))?;
    let out = preserved_as(&x, DType::F64)?;
    if out.numel() > 0 {
        fork!(over [out], with [f, op, x], cpu: done(crate::cpu::wide::map(out.host()?, 16, f)), gpu: no_shader(op, x.dtype))?;
    }
    if x.dtype == DType::F64 { Ok(out) } else { preserved_as(&out, x.dtype) }
}

/// Applies a function to each pair of elements.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "only a GPU is refused, by name"))]
fn map_pairs(
    op: &'static str,
    x: &Tensor,
    y: &Tensor,
    f: impl Fn(f64, f64) -> f64 + Copy + Send + Sync + 'static,
) -> Result<Body> {
    let (x, y) = (x.body(), y.body());
    let shape = broadcast(x.shape(), y.shape())?;
    fork!([&x, &y], cpu: Ok(()), gpu: no_shader(op, x.dtype))?;
    let (out, other) = (copy_as(&x, &shape, DType::F64)?, copy_as(&y, &shape, DType::F64)?);
    if out.numel() > 0 {
        fork!(over [out, other], with [op, x],
            cpu: done(crate::cpu::wide::map_pair(out.host()?, other.host()?, 16, f)),
            gpu: no_shader(op, x.dtype))?;
    }
    in_dtype(out, x.dtype)
}

/// Converts both operands to tensors of the same floating point dtype.
fn pair(name: &'static str, x: Operand, y: Operand) -> Result<[Tensor; 2]> {
    let number = |s: Scalar, like: &Tensor| {
        let dtype = if like.dtype().is_differentiable() { like.dtype() } else { default_dtype() };
        constant::full(&[], s, dtype, like.device())
    };
    let (x, y) = match (x, y) {
        (Operand::Tensor(x), Operand::Tensor(y)) => (x.clone(), y.clone()),
        (Operand::Tensor(x), Operand::Scalar(y)) => (x.clone(), number(y, x)?),
        (Operand::Scalar(x), Operand::Tensor(y)) => (number(x, y)?, y.clone()),
        (Operand::Scalar(x), Operand::Scalar(y)) => {
            let one = |s| constant::full(&[], s, default_dtype(), Device::Cpu);
            (one(x)?, one(y)?)
        }
    };
    let promoted = result_type([Operand::from(&x), Operand::from(&y)])?;
    let dtype = if promoted.is_differentiable() { promoted } else { default_dtype() };
    let (x, y) = (floating(name, &x)?, floating(name, &y)?);
    Ok([to_dtype(&x, dtype)?, to_dtype(&y, dtype)?])
}

/// Both operands of an example with the batch dimensions in front.
fn together(b: &Batch, x: &Tensor, y: &Tensor) -> Result<[Tensor; 2]> {
    let rank = x.ndim().max(y.ndim());
    Ok([b.aligned(x, rank)?, b.aligned(y, rank)?])
}

/// Special functions for use in formulas of derivatives.
macro_rules! formal {
    ($($name:ident = $of:path;)*) => { $(
        fn $name(x: impl Into<V>) -> V {
            x.into().then(|x| $of(&x))
        }
    )* };
}
formal! {
    i1 = SpecialI1::call;
    i0e = SpecialI0E::call;
    i1e = SpecialI1E::call;
    erfcx = SpecialErfcx::call;
}

/// `x` with 0 replaced by 1, for divisors of quotients that are not selected: 0/0 would spoil their derivatives.
fn nonzero(x: &V) -> V {
    select(x, 1.0, eq(x, 0.0))
}

#[primitive(batch = pointwise, node = "I0Backward0")]
impl BesselI0 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("i0_cpu", input, kernels::i0)
    }
    fn d_input(g: V, input: V) -> V {
        g * i1(&input)
    }
}

/// Compute the modified Bessel function of the first kind of order 0.
///
/// Examples:
///     >>> torch.i0(torch.tensor([0.0, 1.0, 2.0]))
///     tensor([1.0000, 1.2661, 2.2796])
#[operator(
    function,
    method,
    inplace,
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.i0(x)))"
)]
pub fn i0(input: &Tensor) -> Result<Tensor> {
    BesselI0::call(&floating("i0_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialI0E {
    fn forward(input: &Tensor) -> Result<Body> {
        map("i0e_cpu", input, kernels::i0e)
    }
    fn d_input(g: V, input: V, result: V) -> V {
        g * (i1e(&input) - sign(&input) * result)
    }
}

/// Compute the modified Bessel function of the first kind of order 0, scaled by `exp(-|input|)`.
///
/// Examples:
///     >>> torch.special.i0e(torch.tensor([0.0, 1.0, 2.0]))
///     tensor([1.0000, 0.4658, 0.3085])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.i0e(x)))"
)]
pub fn special_i0e(input: &Tensor) -> Result<Tensor> {
    SpecialI0E::call(&floating("i0e_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialI1 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("i1_cpu", input, kernels::i1)
    }
    fn d_input(g: V, input: V, result: V) -> V {
        let zero = eq(&input, 0.0);
        let slope = select(&result / nonzero(&input), 0.5, zero);
        g * (input.then(|x| BesselI0::call(&x)) - slope)
    }
}

/// Compute the modified Bessel function of the first kind of order 1.
///
/// Examples:
///     >>> torch.special.i1(torch.tensor([0.0, 1.0, 2.0]))
///     tensor([0.0000, 0.5652, 1.5906])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.i1(x)))"
)]
pub fn special_i1(input: &Tensor) -> Result<Tensor> {
    SpecialI1::call(&floating("i1_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialI1E {
    fn forward(input: &Tensor) -> Result<Body> {
        map("i1e_cpu", input, kernels::i1e)
    }
    fn d_input(g: V, input: V, result: V) -> V {
        g * (i0e(&input)
            - &result * (sign(&input) + select(recip(nonzero(&input)), 0.0, eq(&input, 0.0)))
            - select(0.0, 0.5, eq(&input, 0.0)))
    }
}

/// Compute the modified Bessel function of the first kind of order 1, scaled by `exp(-|input|)`.
///
/// Examples:
///     >>> torch.special.i1e(torch.tensor([0.0, 1.0, 2.0]))
///     tensor([0.0000, 0.2079, 0.2153])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.i1e(x)))"
)]
pub fn special_i1e(input: &Tensor) -> Result<Tensor> {
    SpecialI1E::call(&floating("i1e_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialErfcx {
    fn forward(input: &Tensor) -> Result<Body> {
        map("erfcx_cpu", input, normal::erfcx)
    }
    fn d_input(g: V, input: V, result: V) -> V {
        g * (2.0 * &result * &input - 2.0 / std::f64::consts::PI.sqrt())
    }
}

/// Compute the scaled complementary error function, `exp(input**2) * erfc(input)`.
///
/// Examples:
///     >>> torch.special.erfcx(torch.tensor([0.0, 10.0]))
///     tensor([1.0000, 0.0561])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.erfcx(x)))"
)]
pub fn special_erfcx(input: &Tensor) -> Result<Tensor> {
    SpecialErfcx::call(&floating("erfcx_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialLogNdtr {
    fn forward(input: &Tensor) -> Result<Body> {
        map("log_ndtr_cpu", input, normal::log_ndtr)
    }
    fn d_input(g: V, input: V) -> V {
        g * (2.0 / std::f64::consts::PI).sqrt() / erfcx(&input * -std::f64::consts::FRAC_1_SQRT_2)
    }
}

/// Compute the logarithm of the cumulative distribution function of the standard normal distribution.
///
/// Examples:
///     >>> torch.special.log_ndtr(torch.tensor([-10.0, 0.0]))
///     tensor([-53.2313,  -0.6931])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.log_ndtr(x)))"
)]
pub fn special_log_ndtr(input: &Tensor) -> Result<Tensor> {
    SpecialLogNdtr::call(&floating("log_ndtr_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialNdtri {
    fn forward(input: &Tensor) -> Result<Body> {
        map("ndtri_cpu", input, normal::ndtri)
    }
    fn d_input(g: V, result: V) -> V {
        g * (2.0 * std::f64::consts::PI).sqrt() * exp(&result * &result * 0.5)
    }
}

/// Compute the quantile function of the standard normal distribution, the inverse of `ndtr`.
///
/// Args:
///     input: probabilities between 0 and 1.
///
/// Examples:
///     >>> torch.special.ndtri(torch.tensor([0.025, 0.975]))
///     tensor([-1.9600,  1.9600])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.ndtri(x), domain=(0.1, 0.9)))"
)]
pub fn special_ndtri(input: &Tensor) -> Result<Tensor> {
    SpecialNdtri::call(&floating("ndtri_cpu", input)?)
}

/// Compute the entropy `-input * log(input)`; 0 at 0, and minus infinity for negative elements.
///
/// Examples:
///     >>> torch.special.entr(torch.tensor([-0.5, 0.0, 0.5]))
///     tensor([  -inf, 0.0000, 0.3466])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "shaped(lambda draw, shape: lambda x: T.special.entr(x), domain=(0.2, 2.0))"
)]
pub fn special_entr(input: &Tensor) -> Result<Tensor> {
    u::entr(input)
}

/// Compute the cumulative distribution function of the standard normal distribution.
///
/// Examples:
///     >>> torch.special.ndtr(torch.tensor([-2.0, 0.0, 2.0]))
///     tensor([0.0228, 0.5000, 0.9772])
#[operator(
    function,
    space = "special",
    out,
    sample = "shaped(lambda draw, shape: lambda x: T.special.ndtr(x))"
)]
pub fn special_ndtr(input: &Tensor) -> Result<Tensor> {
    let x = V::from(input) * std::f64::consts::FRAC_1_SQRT_2;
    ((1.0 + erf(x)) * 0.5).tensor()
}

/// Compute `input * log1p(other)`, with 0 where `input` is 0.
///
/// Examples:
///     >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
///     tensor([0.0000, 1.3863])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "fixed([(2, 3), (3,)], lambda x, y: T.special.xlog1py(x, y), (0.2, 2.0))"
)]
pub fn special_xlog1py(input: Operand, other: Operand) -> Result<Tensor> {
    if let (Operand::Scalar(_), Operand::Scalar(_)) = (input, other) {
        return Err(Error::type_error("special_xlog1py(): one of the operands has to be a tensor"));
    }
    apply(&a::xlog1py::ROW, &[input, other])
}

#[primitive]
impl SpecialZeta {
    fn forward(input: &Tensor, other: &Tensor) -> Result<Body> {
        map_pairs("zeta_cpu", input, other, normal::zeta)
    }
    fn derivative(g: V, input: V, other: V, at: Meta, wants: [bool; 2]) -> Result<[Option<V>; 2]> {
        if wants[0] {
            return underived("zeta");
        }
        let slope = (&input + 1.0).with(&other, SpecialZeta::call);
        Ok([None, Some((-input * slope * g).sum_to(&at.shape))])
    }
    fn batch(b: &Batch, input: &Tensor, other: &Tensor) -> Result<Tensor> {
        let [x, y] = together(b, input, other)?;
        SpecialZeta::call(&x, &y).map(|t| b.wrap(t))
    }
}

/// Compute the Hurwitz zeta function: the sum of `(k + other) ** -input` for `k` = 0, 1, 2 ….
///
/// Args:
///     input: the exponents, a tensor or a number.
///     other: the offsets, a tensor or a number.
///
/// Examples:
///     >>> torch.special.zeta(torch.tensor([2.0]), 1.0)
///     tensor([1.6449])
#[operator(function, space = "special", out, elementwise, sample = "underived")]
pub fn special_zeta(input: Operand, other: Operand) -> Result<Tensor> {
    let [x, y] = pair("zeta_cpu", input, other)?;
    SpecialZeta::call(&x, &y)
}

/// The derivative of the lower regularized incomplete gamma function by `x`.
fn gammainc_gradient(a: V, x: V) -> V {
    let size = a.clone().then(|a| u::lgamma(&a));
    exp((a - 1.0) * log(&x) - x - size)
}

#[primitive]
impl Igamma {
    fn forward(input: &Tensor, other: &Tensor) -> Result<Body> {
        map_pairs("igamma_cpu", input, other, normal::igamma)
    }
    fn derivative(g: V, input: V, other: V, wants: [bool; 2]) -> Result<[Option<V>; 2]> {
        if wants[0] {
            return underived("igamma: input");
        }
        let shape = other.shape();
        Ok([None, Some((g * gammainc_gradient(input, other)).sum_to(&shape))])
    }
    fn batch(b: &Batch, input: &Tensor, other: &Tensor) -> Result<Tensor> {
        let [x, y] = together(b, input, other)?;
        Igamma::call(&x, &y).map(|t| b.wrap(t))
    }
}

#[primitive]
impl Igammac {
    fn forward(input: &Tensor, other: &Tensor) -> Result<Body> {
        map_pairs("igammac_cpu", input, other, normal::igammac)
    }
    fn derivative(g: V, input: V, other: V, wants: [bool; 2]) -> Result<[Option<V>; 2]> {
        if wants[0] {
            return underived("igammac: input");
        }
        let shape = other.shape();
        Ok([None, Some((-g * gammainc_gradient(input, other)).sum_to(&shape))])
    }
    fn batch(b: &Batch, input: &Tensor, other: &Tensor) -> Result<Tensor> {
        let [x, y] = together(b, input, other)?;
        Igammac::call(&x, &y).map(|t| b.wrap(t))
    }
}

/// Compute the regularized lower incomplete gamma function.
///
/// Args:
///     input: the shape parameters, which are positive.
///     other: the upper limits of the integral, not negative.
///
/// Examples:
///     >>> torch.igamma(torch.tensor([1.0]), torch.tensor([2.0]))
///     tensor([0.8647])
#[operator(function, method, inplace, out, elementwise, sample = "underived")]
pub fn igamma(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let [x, y] = pair("igamma_cpu", input.into(), other.into())?;
    Igamma::call(&x, &y)
}

/// Compute the regularized upper incomplete gamma function, `1 - igamma(input, other)`.
///
/// Args:
///     input: the shape parameters, which are positive.
///     other: the lower limits of the integral, not negative.
///
/// Examples:
///     >>> torch.igammac(torch.tensor([1.0]), torch.tensor([2.0]))
///     tensor([0.1353])
#[operator(function, method, inplace, out, elementwise, sample = "underived")]
pub fn igammac(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let [x, y] = pair("igammac_cpu", input.into(), other.into())?;
    Igammac::call(&x, &y)
}

/// The `n`th derivative of digamma.
fn derivative_of_digamma(n: i64, input: &Tensor) -> Result<Tensor> {
    if n < 0 {
        return Err(Error::runtime("polygamma(n, x) does not support negative n."));
    }
    match n {
        0 => u::digamma(input),
        n => V::apply(&u::polygamma::ROW, &[V::from(input), V::from(Scalar::Int(n))]).tensor(),
    }
}

/// Compute the polygamma function, the `n`-th derivative of the digamma function.
///
/// Args:
///     n: order of the derivative.
///
/// Examples:
///     >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
///     tensor([1.6449, 0.6449])
#[operator(
    function,
    name = "polygamma",
    out,
    elementwise,
    sample = "shaped(lambda draw, shape: lambda x: T.polygamma(2, x), domain=(0.5, 2.5))"
)]
pub fn polygamma_of(n: i64, input: &Tensor) -> Result<Tensor> {
    derivative_of_digamma(n, input)
}

/// Compute the logarithm of the multivariate gamma function of dimension `p`.
///
/// Args:
///     input: the arguments, greater than `(p - 1) / 2`.
///     p: the dimension.
///
/// Examples:
///     >>> torch.mvlgamma(torch.tensor([2.0, 3.0]), 2)
///     tensor([0.4516, 1.5502])
#[operator(
    function,
    method,
    inplace,
    out,
    sample = "shaped(lambda draw, shape: lambda x: T.mvlgamma(x, 3), domain=(1.5, 3.0))"
)]
pub fn mvlgamma(input: &Tensor, p: i64) -> Result<Tensor> {
    if p < 1 {
        return Err(Error::runtime("p has to be greater than or equal to 1"));
    }
    if p > 1 << 16 {
        return Err(Error::runtime("mvlgamma: p must be at most 65536"));
    }
    if input.dtype() == DType::Bool {
        return Err(Error::runtime("The input tensor may not be a boolean tensor."));
    }
    let x = floating("mvlgamma", input)?;
    let p_f = p as f64;
    let start = V::from(&x) * 0.0 + p_f * (p_f - 1.0) / 4.0 * std::f64::consts::PI.ln();
    (0..p).try_fold(start.tensor()?, |sum, k| {
        signals::check()?;
        (V::from(&sum) + (V::from(&x) - 0.5 * k as f64).then(|x| u::lgamma(&x))).tensor()
    })
}
