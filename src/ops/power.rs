//! Operators that choose among rows by their operands: powers, inversions, divisions with a rounding mode, clamping.

use super::macros::compose;
use super::pointwise::{Operand, apply, result_type};
use super::row::Value;
use super::{arithmetic as a, unary as u};
use crate::base::{DType, Error, Result, Scalar};
use crate::tensor::Tensor;

/// `base ** exponent`, by the row that PyTorch would record.
pub fn power(base: Operand, exponent: Operand) -> Result<Tensor> {
    match (base, exponent) {
        (Operand::Tensor(_), Operand::Scalar(s)) if s.as_f64() == 2.0 && s.category() != crate::base::Category::Bool => {
            let promoted = result_type([base, exponent]);
            let Operand::Tensor(t) = base else { return Err(Error::runtime("pow needs a tensor")) };
            if t.dtype() == promoted { apply(&a::pow_square::ROW, &[base]) } else { apply(&a::pow::ROW, &[base, exponent]) }
        }
        (Operand::Tensor(t), Operand::Scalar(s)) => {
            if !t.dtype().is_float() && matches!(s, Scalar::Int(i) if i < 0) {
                return Err(Error::runtime("Integers to negative integer powers are not allowed."));
            }
            apply(&a::pow::ROW, &[base, exponent])
        }
        (Operand::Scalar(_), _) => apply(&a::pow_number::ROW, &[base, exponent]),
        _ => apply(&a::pow_tensor::ROW, &[base, exponent]),
    }
}

compose! { "pointwise";
    /// `input` to the power `exponent`.
    [inplace, out] fn pow_(input: Value, exponent: Value) -> Tensor { power((&input).into(), (&exponent).into()) }
    /// Quotient; `rounding_mode` is None, 'trunc' or 'floor'.
    [inplace, out] fn div_(input: Value, other: Value, rounding_mode: Option<String> = None) -> Tensor {
        let operands = [(&input).into(), (&other).into()];
        match rounding_mode.as_deref() {
            None => apply(&a::div::ROW, &operands),
            Some("floor") => apply(&a::floor_divide::ROW, &operands),
            Some("trunc") => apply(&a::trunc_divide::ROW, &operands),
            Some(other) => Err(Error::runtime(format!(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
            ))),
        }
    }
    /// Bits inverted; for bool the opposite.
    [inplace, out] fn bitwise_not(input: Tensor) -> Tensor {
        if input.dtype() == DType::Bool { u::logical_not(&input) } else { u::bit_invert(&input) }
    }
    /// `input` kept between `min` and `max`; either may be missing.
    [inplace, out] fn clamp(input: Tensor, min: Option<Value> = None, max: Option<Value> = None) -> Tensor {
        match (&min, &max) {
            (Some(low), Some(high)) => apply(&a::clamp_both::ROW, &[(&input).into(), low.into(), high.into()]),
            (Some(low), None) => apply(&a::clamp_min::ROW, &[(&input).into(), low.into()]),
            (None, Some(high)) => apply(&a::clamp_max::ROW, &[(&input).into(), high.into()]),
            (None, None) => Err(Error::runtime("torch.clamp: At least one of 'min' or 'max' must not be None")),
        }
    }
    /// Elements of `input` where `condition`, else of `other`.
    fn where_(condition: Tensor, input: Value, other: Value) -> Tensor {
        apply(&a::choose::ROW, &[(&other).into(), (&input).into(), (&condition).into()])
    }
    /// `input` where positive, else 0.
    [inplace] fn relu_(input: Tensor) -> Tensor {
        match input.dtype() {
            d if d.is_float() => u::relu(&input),
            DType::Bool => Err(Error::runtime("Boolean inputs not supported for relu")),
            _ => a::clamp_min(&input, Scalar::Int(0)),
        }
    }
    /// Nearest integer, halves to even; to `decimals` places when given.
    [inplace, out] fn round_(input: Tensor, decimals: i64 = 0) -> Tensor {
        if decimals == 0 || !input.dtype().is_float() {
            return u::round(&input);
        }
        let scale = 10f64.powi(decimals.unsigned_abs() as i32);
        if decimals > 0 {
            a::div(&u::round(&a::mul(&input, scale)?)?, scale)
        } else {
            a::mul(&u::round(&a::div(&input, scale)?)?, scale)
        }
    }
}
