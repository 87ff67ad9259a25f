//! Compositions of two or three operators: `diff`, `float_power`, `logit`, `sinc`, tests of signs and dtypes.

use crate::operator::inplace;
use crate::operator::pointwise::apply;
use crate::operator::pointwise::declare::pointwise;
use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::copies::to_dtype;
use crate::ops::complex;
use crate::ops::creation::factories::ones_like;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::elementwise::power::power;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::join::cat;
use crate::ops::shape::rearrange::part;

pointwise! {
    /// Compute the normalized sinc function, `sin(πx) / (πx)`, which is 1 at 0.
    ///
    /// Examples:
    ///     >>> torch.sinc(torch.tensor([0.0, 0.5, 1.5]))
    ///     tensor([ 1.0000,  0.6366, -0.2122])
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

/// Compute the differences of neighboring elements along a dimension, `n` times.
///
/// Args:
///     n: how often to take differences; each time the dimension shrinks by one.
///     dim: dimension along which to take differences.
///     prepend, append: tensors joined to `input` before the differences are taken.
///
/// Examples:
///     >>> torch.diff(torch.tensor([1, 4, 9, 16]))
///     tensor([3, 5, 7])
///     >>> torch.diff(torch.tensor([1, 4, 9, 16]), n=2)
///     tensor([2, 2])
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

/// Raise `input` to the power `exponent` in double precision.
///
/// Results are float64, or complex128 if one of both is complex.
///
/// Args:
///     input: the base, a tensor or a number.
///     exponent: the exponent, a tensor or a number; at least one of both is a tensor.
///
/// Examples:
///     >>> torch.float_power(torch.tensor([1, 2, 3]), 2)
///     tensor([1., 4., 9.], dtype=torch.float64)
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

/// Compute the logit (log-odds), `log(input / (1 - input))`, the inverse of `sigmoid`.
///
/// Args:
///     input: probabilities between 0 and 1.
///     eps: if given, `input` is first clamped to `[eps, 1 - eps]`.
///
/// Examples:
///     >>> torch.logit(torch.tensor([0.5, 0.9]))
///     tensor([0.0000, 2.1972])
///     >>> torch.logit(torch.tensor([0.0, 1.0]), eps=1e-3)
///     tensor([-6.9068,  6.9068])
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

/// Tell for each element whether it is positive infinity.
///
/// Examples:
///     >>> torch.isposinf(torch.tensor([1.0, float("inf"), float("-inf")]))
///     tensor([False,  True, False])
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

/// Tell for each element whether it is negative infinity.
///
/// Examples:
///     >>> torch.isneginf(torch.tensor([1.0, float("inf"), float("-inf")]))
///     tensor([False, False,  True])
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

/// Tell for each element whether its sign bit is set: negative numbers and -0.0.
///
/// Examples:
///     >>> torch.signbit(torch.tensor([1.0, -1.0, -0.0]))
///     tensor([False,  True,  True])
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
        dtype if dtype.is_wide_unsigned() => a::ne(input, input),
        _ => a::lt(input, Scalar::Int(0)),
    }
}

/// Tell for each element whether it is a real number: its imaginary part is zero.
///
/// Examples:
///     >>> torch.isreal(torch.tensor([1.0, 1 + 2j]))
///     tensor([ True, False])
#[operator(function, method, unrecorded, elementwise)]
pub fn isreal(input: &Tensor) -> Result<Tensor> {
    if input.dtype().is_complex() {
        return a::eq(&complex::imag(input)?, Scalar::Int(0));
    }
    ones_like(input, TensorOptions::default().with_dtype(DType::Bool), None)
}

/// Tell whether the only element of a tensor is not zero.
///
/// Raises:
///     RuntimeError: if the tensor has not exactly one element.
///
/// Examples:
///     >>> torch.is_nonzero(torch.tensor([0.0]))
///     False
#[operator(function, method, unrecorded, composite)]
pub fn is_nonzero(input: &Tensor) -> Result<bool> {
    match input.numel() {
        1 => Ok(input.item()?.as_bool()),
        0 => Err(Error::runtime("Boolean value of Tensor with no values is ambiguous")),
        _ => Err(Error::runtime("Boolean value of Tensor with more than one value is ambiguous")),
    }
}

/// Tell whether two tensors have the same shape.
///
/// Args:
///     other: the tensor to compare with.
///
/// Examples:
///     >>> torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
///     True
#[operator(function, method, unrecorded, elementwise)]
pub fn is_same_size(input: &Tensor, other: &Tensor) -> Result<bool> {
    Ok(input.shape() == other.shape())
}

/// Tell whether the data type of a tensor is signed.
///
/// Examples:
///     >>> torch.is_signed(torch.zeros(1, dtype=torch.uint8))
///     False
#[operator(function, method, unrecorded)]
pub fn is_signed(input: &Tensor) -> Result<bool> {
    Ok(input.dtype().is_signed())
}

/// Tell whether two tensors are the same view of the same memory: storage, offset, shape and strides.
///
/// Args:
///     tensor: the tensor to compare with.
///
/// Examples:
///     >>> x = torch.zeros(3)
///     >>> x.is_set_to(x.detach()), x.is_set_to(x.clone())
///     (True, False)
#[operator(method, unrecorded, elementwise)]
pub fn is_set_to(input: &Tensor, tensor: &Tensor) -> Result<bool> {
    let (x, y) = (input.body(), tensor.body());
    Ok(x.storage.same(&y.storage) && x.layout == y.layout)
}
