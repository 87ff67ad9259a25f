//! Operators that choose among rows by their operands: powers, inversions, divisions with a rounding mode, clamping.

use super::macros::compose;
use super::pointwise::{Operand, Pointwise, apply, result_type};
use super::row::{Arg, Out, Value};
use super::{arithmetic as a, unary as u};
use crate::base::{DType, Error, Fault, Result, Scalar, caution_once};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// `base ** exponent`, by the row that PyTorch would record.
pub fn power(base: Operand, exponent: Operand) -> Result<Tensor> {
    match (base, exponent) {
        (Operand::Scalar(x), Operand::Scalar(y)) => Err(Error::type_error(format!(
            "pow() received an invalid combination of arguments - got ({}, {})",
            x.type_name(),
            y.type_name()
        ))),
        (Operand::Tensor(_), Operand::Scalar(s))
            if s.as_f64() == 2.0 && s.imaginary() == 0.0 && s.category() != crate::base::Category::Bool =>
        {
            let promoted = result_type([base, exponent]);
            let Operand::Tensor(t) = base else { return Err(Error::runtime("pow needs a tensor")) };
            if t.dtype() == promoted {
                apply(&a::pow_square::ROW, &[base])
            } else {
                apply(&a::pow::ROW, &[base, exponent])
            }
        }
        (Operand::Tensor(t), Operand::Scalar(s)) => {
            if !t.dtype().is_differentiable() && matches!(s, Scalar::Int(i) if i < 0) {
                return Err(Error::runtime("Integers to negative integer powers are not allowed."));
            }
            let row = if !s.as_bool() { &a::pow_zero::ROW } else { &a::pow::ROW };
            apply(row, &[base, exponent])
        }
        (Operand::Scalar(_), _) => apply(&a::pow_number::ROW, &[exponent, base]),
        _ => apply(&a::pow_tensor::ROW, &[base, exponent]),
    }
}

/// The row that does what a call does, and its operands: what is one row is computed in place.
pub fn as_row<'a>(name: &str, args: &'a [Arg]) -> Option<(&'static Pointwise, SmallVec<[Operand<'a>; 3]>)> {
    let given = |arg: &Arg| arg.number().is_some();
    let row = match (name, args) {
        ("relu", [Arg::Tensor(input)]) if input.dtype().is_float() => &u::relu::ROW,
        ("div" | "true_divide", [_, _] | [_, _, Arg::Missing | Arg::None]) => &a::div::ROW,
        ("clamp", [_, min, max]) if given(min) && given(max) => &a::clamp_both::ROW,
        ("clamp", [_, min] | [_, min, Arg::Missing | Arg::None]) if given(min) => &a::clamp_low::ROW,
        ("clamp", [_, Arg::Missing | Arg::None, max]) if given(max) => &a::clamp_high::ROW,
        _ => return None,
    };
    let operand = |arg: &'a Arg| match arg {
        Arg::Tensor(t) => Some(Operand::Tensor(t)),
        other => other.number().map(Operand::Scalar),
    };
    Some((row, args.iter().filter_map(operand).collect()))
}

/// Elements of `yes` where `condition`, else of `no`.
fn choose(condition: &Tensor, yes: &Value, no: &Value) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if condition.dtype() == DType::U8 {
        caution_once(
            &TOLD,
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of \
             PyTorch. Use a boolean condition instead.",
        )?;
        return choose(&a::ne(condition, Scalar::Int(0))?, yes, no);
    }
    if condition.dtype() != DType::Bool {
        return Err(Error::runtime(format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            condition.dtype().scalar_name()
        )));
    }
    apply(&a::choose::ROW, &[yes.into(), no.into(), condition.into()])
}

/// Methods whose operands come in another order than the function's.
pub mod methods {
    use super::*;
    compose! { "pointwise";
        /// The tensor's elements where `condition`, else those of `other`.
        [no_function] fn where_(input: Tensor, condition: Tensor, other: Value) -> Tensor {
            super::choose(&condition, &Value::Tensor(input), &other)
        }
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
            Some("floor") => apply(&a::floor_quotient::ROW, &operands),
            Some("trunc") => apply(&a::trunc_quotient::ROW, &operands),
            Some(other) => Err(Error::runtime(format!(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
            ))),
        }
    }
    /// Quotient, as `div` without a rounding mode.
    [inplace, out] fn true_divide(input: Value, other: Value) -> Tensor {
        apply(&a::div::ROW, &[(&input).into(), (&other).into()])
    }
    /// `input` itself.
    fn positive(input: Tensor) -> Tensor {
        if input.dtype() == DType::Bool {
            return Err(Error::not_implemented("The `+` operator, on a bool tensor is not supported."));
        }
        Ok(input)
    }
    /// Bits inverted; for bool the opposite.
    [inplace, out] fn bitwise_not(input: Tensor) -> Tensor {
        if input.dtype() == DType::Bool { u::logical_not(&input) } else { u::bit_invert(&input) }
    }
    /// `input` kept between `min` and `max`; either may be missing.
    [inplace, out] fn clamp(input: Tensor, min: Option<Value> = None, max: Option<Value> = None) -> Tensor {
        match (&min, &max) {
            (Some(Value::Scalar(low)), Some(Value::Scalar(high))) => {
                apply(&a::clamp_both::ROW, &[(&input).into(), (*low).into(), (*high).into()])
            }
            (Some(low), Some(high)) => apply(&a::clamp_tensors::ROW, &[(&input).into(), low.into(), high.into()]),
            (Some(low @ Value::Scalar(_)), None) => apply(&a::clamp_low::ROW, &[(&input).into(), low.into()]),
            (None, Some(high @ Value::Scalar(_))) => apply(&a::clamp_high::ROW, &[(&input).into(), high.into()]),
            (Some(low), None) => apply(&a::clamp_from::ROW, &[(&input).into(), low.into()]),
            (None, Some(high)) => apply(&a::clamp_upto::ROW, &[(&input).into(), high.into()]),
            (None, None) => Err(Error::runtime("torch.clamp: At least one of 'min' or 'max' must not be None")),
        }
    }
    /// `input`, but at least `min`.
    [inplace, out] fn clamp_min(input: Tensor, min: Value) -> Tensor {
        let row = if matches!(min, Value::Tensor(_)) { &a::clamp_above::ROW } else { &a::clamp_min_number::ROW };
        apply(row, &[(&input).into(), (&min).into()])
    }
    /// `input`, but at most `max`.
    [inplace, out] fn clamp_max(input: Tensor, max: Value) -> Tensor {
        let row = if matches!(max, Value::Tensor(_)) { &a::clamp_below::ROW } else { &a::clamp_max_number::ROW };
        apply(row, &[(&input).into(), (&max).into()])
    }
    /// `input * input`.
    [inplace, out] fn square(input: Tensor) -> Tensor { power((&input).into(), 2i64.into()) }
    /// Elements of `input` where `condition`, else of `other`; without them, the places where `condition` holds.
    [no_method, out] fn where_(condition: Tensor, input: Option<Value> = None, other: Option<Value> = None) -> Out {
        match (&input, &other) {
            (Some(yes), Some(no)) => choose(&condition, yes, no).map(Out::from),
            (None, None) if condition.is_batched() => Err(super::batch::refuse_dynamic("where")),
            (None, None) => super::sort::nonzero_vectors(&condition).map(Out::from),
            _ => Err(Error::type_error("where() takes both of 'input' and 'other', or none")),
        }
    }
    /// `input` where positive, else 0.
    [inplace] fn relu_(input: Tensor) -> Tensor {
        match input.dtype() {
            d if d.is_float() => u::relu(&input),
            DType::Bool => Err(Error::not_implemented("Boolean inputs not supported for relu")),
            _ => a::clamp_min_number(&input, Scalar::Int(0)),
        }
    }
    /// Nearest integer, halves to even; to `decimals` places when given.
    [inplace, out] fn round_(input: Tensor, decimals: Option<i64> = None) -> Tensor {
        let Some(decimals) = decimals else { return u::round(&input) };
        if !input.dtype().is_float() {
            let op = if decimals == 0 { "round_vml_cpu" } else { "round_cpu" };
            return Err(Fault::NoKernel { op, dtype: input.dtype() }.into());
        }
        let ten = Operand::Scalar(Scalar::Float(10f64.powi(decimals.unsigned_abs() as i32)));
        let one = Operand::Scalar(Scalar::Float(1.0));
        let (up, down) = if decimals > 0 { (ten, one) } else { (one, ten) };
        apply(&u::round_places::ROW, &[(&input).into(), up, down])
    }
}
