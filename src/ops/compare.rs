//! Whether tensors are equal, or nearly.

use super::formal::{abs, both, either, eq, is_finite, is_nan, le};
use super::macros::{compose, ops, pointwise};
use super::pointwise::{Operand, apply};
use super::value::V;
use crate::base::{DType, Error, Fault, Result, Scalar};
use crate::tensor::Tensor;

pointwise! {
    /// NaN and infinities replaced by numbers.
    [hidden] replace_special(input; nan = 0.0, high = 0.0, low = 0.0): Float
        = select(select(input, nan, is_nan(input)), select(low, high, gt(input, 0.0)), is_inf(input)),
        input: |g, input| select(0.0, g, is_finite(input));
}

fn replaced(input: &Tensor, numbers: [f64; 3]) -> Result<Tensor> {
    let [nan, high, low] = numbers.map(|n| Operand::Scalar(Scalar::Float(n)));
    apply(&replace_special::ROW, &[input.into(), nan, high, low])
}

/// The same for the parts of complex numbers.
fn by_parts(input: Tensor, numbers: [f64; 3]) -> Result<Tensor> {
    let parts = super::complex::view_as_real(&super::complex::resolve_conj(input)?)?;
    super::complex::view_as_complex(&replaced(&parts, numbers)?)
}

mod parts {
    use super::*;
    ops! { "pointwise";
        /// NaN and infinities among the parts of complex numbers replaced by numbers.
        [hidden] fn replace_special_parts(input; nan: f64, high: f64, low: f64) -> y {
            crate::ops::reduce::quietly(|| by_parts(input.clone(), [nan, high, low]))
        }
        input: |g, input| crate::ops::formal::select(0.0, g, is_finite(input));
    }
}
pub use parts::{ROWS as PARTS, replace_special_parts};

/// The largest finite number of a float dtype.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX.to_f32()),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

mod more {
    use super::*;

    compose! { "compare";
        /// Whether elements are equal within tolerances: `|input - other| <= atol + rtol * |other|`.
        fn isclose(input: Tensor, other: Tensor, rtol: f64 = 1e-5, atol: f64 = 1e-8, equal_nan: bool = false) -> Tensor {
            if input.dtype() != other.dtype() {
                return Err(Error::runtime(format!(
                    "{} did not match {}", input.dtype().scalar_name(), other.dtype().scalar_name()
                )));
            }
            if rtol < 0.0 || atol < 0.0 {
                let (name, value) = if rtol < 0.0 { ("rtol", rtol) } else { ("atol", atol) };
                return Err(Error::runtime(format!("{name} must be greater than or equal to zero, but got {value}")));
            }
            let float = input.dtype().is_differentiable();
            let (x, y) = (V::from(&input), V::from(&other));
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
        /// Whether all elements are equal within tolerances.
        fn allclose(input: Tensor, other: Tensor, rtol: f64 = 1e-5, atol: f64 = 1e-8, equal_nan: bool = false) -> bool {
            if input.is_batched() || other.is_batched() {
                return Err(Error::runtime(
                    "vmap over torch.allclose isn't supported yet. Please file an issue at \
                     https://github.com/pytorch/pytorch/issues if you need this feature.",
                ));
            }
            crate::tensor::mode::with_grad(false, || {
                let close = isclose(input, other, rtol, atol, equal_nan)?;
                Ok(crate::ops::reduce::all(&close, None, false)?.item()?.as_bool())
            })
        }
        /// Whether both have the same shape and elements.
        fn equal(input: Tensor, other: Tensor) -> bool {
            if input.is_batched() || other.is_batched() {
                return Err(crate::ops::batch::refuse_rule("equal"));
            }
            if input.device() != other.device() {
                return Err(Fault::Devices { a: input.device(), b: other.device() }.into());
            }
            if input.shape() != other.shape() {
                return Ok(false);
            }
            let same = crate::ops::arithmetic::eq(&input, &other)?;
            Ok(crate::ops::reduce::all(&same, None, false)?.item()?.as_bool())
        }
        /// NaN and infinities replaced by numbers: 0 and the largest and smallest finite ones unless given.
        [inplace, out] fn nan_to_num(input: Tensor, nan: Option<f64> = None, posinf: Option<f64> = None, neginf: Option<f64> = None) -> Tensor {
            if !input.dtype().is_differentiable() {
                return crate::ops::shape::clone_as_it_lies(&input);
            }
            let most = largest(input.dtype().to_real());
            let numbers = [nan.unwrap_or(0.0), posinf.unwrap_or(most), neginf.unwrap_or(-most)];
            match input.dtype().is_complex() {
                true if input.is_batched() => by_parts(input, numbers),
                true => replace_special_parts(&input, numbers[0], numbers[1], numbers[2]),
                false => replaced(&input, numbers),
            }
        }
    }
}
pub use more::COMPOSED;
