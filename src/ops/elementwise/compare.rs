//! `equal`, `isclose`, `allclose` and `nan_to_num`.

use crate::operator::pointwise::apply;
use crate::operator::pointwise::declare::pointwise;
use crate::operator::primitives::copies::clone_preserved;
use crate::ops::complex;
use crate::ops::elementwise::arithmetic;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::{all, no_grad};
use crate::tensor::mode;

pointwise! {
    /// NaN and infinities replaced by numbers.
    [hidden, node = "NanToNumBackward0", layout = First, one_pass] replace_special(input; nan = 0.0, high = 0.0, low = 0.0): Float
        = select(select(input, nan, is_nan(input)), select(low, high, gt(input, 0.0)), is_inf(input)),
        input: |g, input| select(0.0, g, is_finite(input));
}

fn replace(input: &Tensor, numbers: [f64; 3]) -> Result<Tensor> {
    let [nan, high, low] = numbers.map(|n| Operand::Scalar(Scalar::Float(n)));
    apply(&replace_special::ROW, &[input.into(), nan, high, low])
}

/// `nan_to_num` for complex numbers: replaces NaN and infinities in both parts.
#[primitive(batch = pointwise)]
impl NanToNum {
    fn forward(input: &Tensor, #[hidden] numbers: [f64; 3]) -> Result<Body> {
        no_grad(|| {
            let parts = complex::view_as_real(&complex::resolve_conj(input)?)?;
            complex::view_as_complex(&replace(&parts, numbers)?)
        })
    }
    fn d_input(g: V, input: V) -> V {
        select(0.0, g, is_finite(input))
    }
}

/// The largest finite number of a floating point dtype.
pub fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX.to_f32()),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Tell where two tensors are close: `|input - other| <= atol + rtol * |other|`.
///
/// Args:
///     rtol: relative tolerance.
///     atol: absolute tolerance.
///     equal_nan: whether NaN is close to NaN.
///
/// Examples:
///     >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
///     tensor([ True, False])
#[operator(function, method, unrecorded, composite, elementwise)]
pub fn isclose(
    input: &Tensor,
    other: &Tensor,
    #[default(1e-5)] rtol: f64,
    #[default(1e-8)] atol: f64,
    #[default(false)] equal_nan: bool,
) -> Result<Tensor> {
    if input.dtype() != other.dtype() {
        return Err(Error::runtime(format!(
            "{} did not match {}",
            input.dtype().scalar_name(),
            other.dtype().scalar_name()
        )));
    }
    if rtol < 0.0 || atol < 0.0 {
        let (name, value) = if rtol < 0.0 { ("rtol", rtol) } else { ("atol", atol) };
        return Err(Error::runtime(format!("{name} must be greater than or equal to zero, but got {value}")));
    }
    let float = input.dtype().is_differentiable();
    let (x, y) = (V::from(input), V::from(other));
    let mut close = eq(&x, &y);
    if equal_nan && float {
        close = either(close, both(is_nan(&x), is_nan(&y)));
    }
    if rtol == 0.0 && atol == 0.0 {
        return close.tensor();
    }
    let (x, y) = if float { (x, y) } else { (x.cast(DType::F64), y.cast(DType::F64)) };
    let distance = abs(x - &y);
    either(close, both(is_finite(&distance), le(distance, abs(y * rtol) + atol))).tensor()
}

/// Tell whether all elements of two tensors are close: `|input - other| <= atol + rtol * |other|`.
///
/// Args:
///     rtol: relative tolerance.
///     atol: absolute tolerance.
///     equal_nan: whether NaN is close to NaN.
///
/// Examples:
///     >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-6]))
///     True
#[operator(function, method, unrecorded, composite, elementwise)]
pub fn allclose(
    input: &Tensor,
    other: &Tensor,
    #[default(1e-5)] rtol: f64,
    #[default(1e-8)] atol: f64,
    #[default(false)] equal_nan: bool,
) -> Result<bool> {
    if input.is_batched() || other.is_batched() {
        return Err(Error::runtime("vmap over torch.allclose isn't supported yet."));
    }
    mode::with_grad(false, || {
        let close = isclose(input, other, rtol, atol, equal_nan)?;
        Ok(all(&close, None, false)?.item()?.as_bool())
    })
}

/// Tell whether two tensors have the same shape and the same elements.
///
/// Args:
///     other: the tensor to compare with; it is not broadcast.
///
/// Examples:
///     >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
///     True
///     >>> torch.equal(torch.tensor([1, 2]), torch.tensor([[1, 2]]))
///     False
#[operator(function, method, unrecorded, elementwise)]
pub fn equal(input: &Tensor, other: &Tensor) -> Result<bool> {
    if input.is_batched() || other.is_batched() {
        return Err(crate::operator::batch::refuse::refuse_rule("equal"));
    }
    if input.device() != other.device() {
        return Err(Fault::Devices { a: input.device(), b: other.device() }.into());
    }
    if input.shape() != other.shape() {
        return Ok(false);
    }
    Ok(all(&arithmetic::eq(input, other)?, None, false)?.item()?.as_bool())
}

/// Replace NaN and infinities by finite numbers.
///
/// Args:
///     nan: value for NaN; 0 if not given.
///     posinf: value for positive infinity; the largest finite number of the dtype if not given.
///     neginf: value for negative infinity; the lowest finite number of the dtype if not given.
///
/// Examples:
///     >>> torch.nan_to_num(torch.tensor([float("nan"), float("inf"), 1.0]), nan=-1.0, posinf=9.0)
///     tensor([-1.,  9.,  1.])
#[operator(
    function,
    method,
    inplace,
    elementwise,
    out(message = "nan_to_num: dtype of out: {target} should be same as input: {result}"),
    sample = "elements(name)"
)]
pub fn nan_to_num(
    input: &Tensor,
    nan: Option<f64>,
    posinf: Option<f64>,
    neginf: Option<f64>,
) -> Result<Tensor> {
    if !input.dtype().is_differentiable() {
        return clone_preserved(input);
    }
    let most = largest(input.dtype().to_real());
    let numbers = [nan.unwrap_or(0.0), posinf.unwrap_or(most), neginf.unwrap_or(-most)];
    if input.dtype().is_complex() { NanToNum::call(input, numbers) } else { replace(input, numbers) }
}
