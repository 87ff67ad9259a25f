//! Compositions of two or three operators: `diff`, `float_power`, `logit`, `sinc`, tests of signs and dtypes.

use crate::operator::constant::zeros;
use crate::operator::copies::to_dtype;
use crate::operator::declare::pointwise;
use crate::operator::inplace;
use crate::operator::pointwise::apply;
use crate::ops::complex;
use crate::ops::creation::factories::ones_like;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::elementwise::power::power;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::join::cat;
use crate::ops::shape::rearrange::part;

pointwise! {
    /// `sin(πx) / πx`, 1 at 0.
    [complex = |a| a.sinc()] sinc(input): Float = select(sin(input * 3.141592653589793) / (input * 3.141592653589793), 1.0, eq(input, 0.0)),
        input: |g, input| g * select(
            conj((input * 3.141592653589793 * cos(input * 3.141592653589793) - sin(input * 3.141592653589793)) / (input * input * 3.141592653589793)),
            0.0, eq(input * input * 3.141592653589793, 0.0));
    /// `log(input / (1 - input))`.
    [hidden, node = "LogitBackward0", shows(eps = none)] logit_free(input): Float = log(input / (1.0 - input)),
        input: |g, input| select(g / (input * (1.0 - input)), log(input * (1.0 - input)), either(lt(input, 0.0), gt(input, 1.0)));
    /// The logit of `input` kept `eps` away from 0 and 1.
    [hidden, node = "LogitBackward0"] logit_within(input; eps = 0): Float
        = log(select(select(input, 1.0 - eps, gt(input, 1.0 - eps)), eps, lt(input, eps))
            / (1.0 - select(select(input, 1.0 - eps, gt(input, 1.0 - eps)), eps, lt(input, eps)))),
        input: |g, input, eps| select(g / (input * (1.0 - input)), 0.0, either(lt(input, eps), gt(input, 1.0 - eps)));
}

/// Checks a tensor to be prepended or appended.
fn check_neighbour(input: &Tensor, other: &Tensor, dim: usize) -> Result<()> {
    if other.ndim() != input.ndim() {
        return Err(Error::runtime("diff expects prepend or append to be the same dimension as input"));
    }
    let (own, given) = (input.shape(), other.shape());
    match (0..own.len()).find(|&d| d != dim && own[d] != given[d]) {
        None => Ok(()),
        Some(d) => Err(Error::runtime(format!(
            "diff expects the shape of tensor to prepend or append to match that of input except along the differencing \
             dimension; input.size({d}) = {}, but got tensor.size({d}) = {}",
            own[d], given[d]
        ))),
    }
}

fn not_complex(name: &str, input: &Tensor) -> Result<()> {
    if input.dtype().is_complex() {
        return Err(Error::unordered(format!("{name} does not support complex inputs.")));
    }
    Ok(())
}

/// Differences of neighbours along a dimension, taken `n` times, with something put before or behind.
#[operator(function, method, out, elementwise, sample = "over_dim(lambda x, dim: T.diff(x, 1, dim))")]
pub fn diff(
    input: &Tensor,
    #[default(1)] n: i64,
    #[default(-1)] dim: i64,
    prepend: Option<&Tensor>,
    append: Option<&Tensor>,
) -> Result<Tensor> {
    if input.ndim() == 0 {
        return Err(Error::runtime("diff expects input to be at least one-dimensional"));
    }
    if n < 0 {
        return Err(Error::runtime(format!("order must be non-negative but got {n}")));
    }
    let at = wrap_dim(dim, input.ndim())?;
    for other in prepend.iter().chain(&append) {
        check_neighbour(input, other, at)?;
    }
    if n == 0 {
        let made = zeros(&input.shape(), input.dtype(), input.device())?;
        inplace::copy_into(&made, input)?;
        return Ok(made);
    }
    let whole = match (prepend, append) {
        (None, None) => input.clone(),
        (before, behind) => {
            let parts: Vec<Tensor> = before.into_iter().chain([input]).chain(behind).cloned().collect();
            cat(&parts, dim)?
        }
    };
    let dim = at as i64;
    let steps = n.min(whole.shape()[at] as i64);
    (0..steps).try_fold(whole, |t, _| {
        let left = t.shape()[at] as i64 - 1;
        let (later, sooner) = (part(&t, dim, 1, left)?, part(&t, dim, 0, left)?);
        if t.dtype() == DType::Bool { a::logical_xor(&later, &sooner) } else { a::sub(&later, &sooner) }
    })
}

/// `input ** exponent` in double precision.
#[operator(function, method, out, elementwise, sample = "elements('pow', 2)")]
pub fn float_power(input: Operand, exponent: Operand) -> Result<Tensor> {
    let dtype = if input.is_complex() || exponent.is_complex() { DType::C128 } else { DType::F64 };
    let wide = |t: &Tensor| to_dtype(t, dtype);
    let tensors = [input.tensor().map(wide).transpose()?, exponent.tensor().map(wide).transpose()?];
    let [base, exponent] = [(input, &tensors[0]), (exponent, &tensors[1])].map(|given| match given {
        (_, Some(tensor)) => tensor.into(),
        (Operand::Scalar(s), None) if !dtype.is_complex() => s.as_f64().into(),
        (number, None) => number,
    });
    power(base, exponent)
}

/// `log(input / (1 - input))`, of `input` kept `eps` away from 0 and 1 when that is given.
#[operator(function, method, inplace, out, elementwise, sample = "elements(name)")]
pub fn logit(input: &Tensor, eps: Option<f64>) -> Result<Tensor> {
    if input.dtype().is_complex() {
        return Err(Fault::NoKernel { op: "logit_cpu", dtype: input.dtype() }.into());
    }
    match eps.filter(|eps| *eps >= 0.0) {
        Some(eps) => apply(&logit_within::ROW, &[input.into(), Operand::Scalar(Scalar::Float(eps))]),
        None => logit_free(input),
    }
}

/// Whether each element is infinite and positive.
#[operator(
    function,
    method,
    unrecorded,
    out(message = "isposinf does not support non-boolean outputs."),
    elementwise
)]
pub fn isposinf(input: &Tensor) -> Result<Tensor> {
    not_complex("isposinf", input)?;
    a::eq(input, Scalar::Float(f64::INFINITY))
}

/// Whether each element is infinite and negative.
#[operator(
    function,
    method,
    unrecorded,
    out(message = "isneginf does not support non-boolean outputs."),
    elementwise
)]
pub fn isneginf(input: &Tensor) -> Result<Tensor> {
    not_complex("isneginf", input)?;
    a::eq(input, Scalar::Float(f64::NEG_INFINITY))
}

/// Whether each element has a minus sign; zeros may.
#[operator(
    function,
    method,
    unrecorded,
    out(message = "signbit does not support non-boolean outputs."),
    elementwise
)]
pub fn signbit(input: &Tensor) -> Result<Tensor> {
    match input.dtype() {
        d if d.is_complex() => Err(Error::not_implemented("signbit is not implemented for complex tensors.")),
        d if d.is_float() => {
            let signs = Tensor::new(no_grad(|| a::copysign(Scalar::Float(1.0), input))?);
            a::lt(&signs, Scalar::Int(0))
        }
        _ => a::lt(input, Scalar::Int(0)),
    }
}

/// Whether each element has no imaginary part.
#[operator(function, method, unrecorded, elementwise)]
pub fn isreal(input: &Tensor) -> Result<Tensor> {
    if input.dtype().is_complex() {
        return a::eq(&complex::imag(input)?, Scalar::Int(0));
    }
    ones_like(input, Some(DType::Bool), None, None, None, false, None)
}

/// Whether the only element is not zero.
#[operator(function, method, unrecorded, composite)]
pub fn is_nonzero(input: &Tensor) -> Result<bool> {
    match input.numel() {
        1 => Ok(input.item()?.as_bool()),
        0 => Err(Error::runtime("Boolean value of Tensor with no values is ambiguous")),
        _ => Err(Error::runtime("Boolean value of Tensor with more than one value is ambiguous")),
    }
}

/// Whether both have the same sizes.
#[operator(function, method, unrecorded, elementwise)]
pub fn is_same_size(input: &Tensor, other: &Tensor) -> Result<bool> {
    Ok(input.shape() == other.shape())
}

/// Whether the dtype has negative numbers.
#[operator(function, method, unrecorded)]
pub fn is_signed(input: &Tensor) -> Result<bool> {
    Ok(!matches!(input.dtype(), DType::Bool | DType::U8))
}

/// Whether both are the same elements of the same memory.
#[operator(method, unrecorded, elementwise)]
pub fn is_set_to(input: &Tensor, tensor: &Tensor) -> Result<bool> {
    let (x, y) = (input.body(), tensor.body());
    Ok(x.storage.same(&y.storage) && x.layout == y.layout)
}
