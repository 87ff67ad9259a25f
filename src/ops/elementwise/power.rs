//! Operators that choose among rows by their operands: powers, `where`, divisions with a rounding mode, clamping.

use crate::base::{Category, warn_once};
use crate::operator::pointwise::{apply, result_type};
use crate::operator::row::{Formula, FromArg, Out};
use crate::ops::elementwise::{arithmetic as a, unary as u};
use crate::ops::prelude::*;
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
            if s.as_f64() == 2.0 && s.imaginary() == 0.0 && s.category() != Category::Bool =>
        {
            let promoted = result_type([base, exponent])?;
            let Operand::Tensor(t) = base else {
                return Err(Error::runtime("pow: one of the operands must be a tensor"));
            };
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

fn quotient(args: &[Arg]) -> Option<Formula<'_>> {
    let ([x, y] | [x, y, Arg::Missing | Arg::None]) = args else { return None };
    Some((&a::div::ROW, smallvec::smallvec![Operand::from_arg(x)?, Operand::from_arg(y)?]))
}

fn bounded(args: &[Arg]) -> Option<Formula<'_>> {
    let number = |arg: &Arg| arg.number().map(Operand::Scalar);
    let [x, bounds @ ..] = args else { return None };
    let x = Operand::from_arg(x)?;
    let bound = |at: usize| bounds.get(at).filter(|arg| !matches!(arg, Arg::Missing | Arg::None)).map(number);
    Some(match (bound(0), bound(1)) {
        (Some(low), Some(high)) => (&a::clamp_both::ROW, smallvec::smallvec![x, low?, high?]),
        (Some(low), None) => (&a::clamp_with_min_number::ROW, smallvec::smallvec![x, low?]),
        (None, Some(high)) => (&a::clamp_with_max_number::ROW, smallvec::smallvec![x, high?]),
        (None, None) => return None,
    })
}

fn positive_part(args: &[Arg]) -> Option<Formula<'_>> {
    match args {
        [Arg::Tensor(x)] if x.dtype().is_float() => Some((&u::relu::ROW, smallvec::smallvec![x.into()])),
        _ => None,
    }
}

/// Elements of `yes` where `condition` is true, else of `no`.
fn choose(condition: &Tensor, yes: Operand, no: Operand) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if condition.dtype() == DType::U8 {
        warn_once(
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
    apply(&a::choose::ROW, &[yes, no, condition.into()])
}

/// Select elements of the tensor where `condition` is True, and elements of `other` elsewhere.
///
/// Args:
///     condition: a boolean tensor.
///     other: values where `condition` is False; a tensor or a number.
///
/// Examples:
///     >>> torch.tensor([1, 2, 3]).where(torch.tensor([True, False, True]), 0)
///     tensor([1, 0, 3])
#[operator(method, name = "where", elementwise, overloads((2, 2), (2, 2)), sample = "chosen()")]
pub fn where_method(input: &Tensor, condition: &Tensor, other: Operand) -> Result<Tensor> {
    choose(condition, input.into(), other)
}

/// Select elements of `input` where `condition` is True, and elements of `other` elsewhere.
///
/// All three are broadcast. With `condition` alone, return the indices of its True elements: a tuple with a tensor for
/// each dimension.
///
/// Args:
///     condition: a boolean tensor.
///     input: values where `condition` is True; a tensor or a number.
///     other: values where `condition` is False; a tensor or a number.
///
/// Examples:
///     >>> x = torch.tensor([-1.0, 2.0, -3.0])
///     >>> torch.where(x > 0, x, 0.0)
///     tensor([0., 2., 0.])
///     >>> torch.where(x > 0)
///     (tensor([1]),)
#[operator(
    function,
    name = "where",
    out(message = "Expected out type to be {result} but got {target}", with = "input"),
    elementwise,
    overloads((2, 2), (2, 2)),
    sample = "chosen()"
)]
pub fn where_or_nonzero(condition: &Tensor, input: Option<Operand>, other: Option<Operand>) -> Result<Out> {
    match (input, other) {
        (Some(yes), Some(no)) => choose(condition, yes, no).map(Out::from),
        (None, None) if condition.is_batched() => {
            Err(crate::operator::batch::refuse::refuse_dynamic("where"))
        }
        (None, None) => crate::ops::indexing::nonzero::nonzero_vectors(condition).map(Out::from),
        _ => Err(Error::type_error("where() takes both of 'input' and 'other', or none")),
    }
}

/// Raise `input` to the power `exponent`, element by element.
///
/// Args:
///     input: the base, a tensor or a number.
///     exponent: the exponent, a tensor or a number; at least one of both is a tensor.
///
/// Examples:
///     >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
///     tensor([1., 4., 9.])
///     >>> torch.pow(2, torch.tensor([1, 2, 3]))
///     tensor([2, 4, 8])
#[operator(
    function,
    method,
    inplace,
    out,
    elementwise,
    overloads((1, 1), (1, 1)),
    sample = "elements(name, 2)"
)]
pub fn pow(input: Operand, exponent: Operand) -> Result<Tensor> {
    power(input, exponent)
}

/// Divide `input` by `other`, element by element.
///
/// Supports broadcasting and type promotion. Integers give floating point quotients unless a rounding mode is given.
///
/// Args:
///     input: the dividend, a tensor or a number.
///     other: the divisor, a tensor or a number.
///     rounding_mode: None for true division, `"trunc"` to round towards zero, `"floor"` to round down.
///
/// Examples:
///     >>> torch.div(torch.tensor([7, -7]), 2)
///     tensor([ 3.5000, -3.5000])
///     >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
///     tensor([ 3, -4])
#[operator(
    function,
    method,
    inplace,
    out,
    elementwise,
    formula = quotient,
    alias = "divide",
    aten(Tensor, Tensor),
    overloads((1, 1), (2, 2), (2, 2)),
    sample = "elements(name, 2)"
)]
pub fn div(input: Operand, other: Operand, rounding_mode: Option<String>) -> Result<Tensor> {
    let operands = [input, other];
    match rounding_mode.as_deref() {
        None => apply(&a::div::ROW, &operands),
        Some("floor") => apply(&a::floor_quotient::ROW, &operands),
        Some("trunc") => apply(&a::trunc_quotient::ROW, &operands),
        Some(other) => Err(Error::runtime(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
        ))),
    }
}

/// Divide `input` by `other`; as `torch.div` without a rounding mode.
///
/// Args:
///     input: the dividend, a tensor or a number.
///     other: the divisor, a tensor or a number.
///
/// Examples:
///     >>> torch.true_divide(torch.tensor([1, 3]), 2)
///     tensor([0.5000, 1.5000])
#[operator(
    function,
    method,
    inplace,
    out(called = "div"),
    elementwise,
    formula = quotient,
    sample = "elements(name, 2)"
)]
pub fn true_divide(input: Operand, other: Operand) -> Result<Tensor> {
    apply(&a::div::ROW, &[input, other])
}

/// Return `input` itself, as the operator `+` does; tensors of truth values are refused.
///
/// Examples:
///     >>> torch.positive(torch.tensor([1, -2]))
///     tensor([ 1, -2])
#[operator(function, method, elementwise, sample = "elements(name)")]
pub fn positive(input: &Tensor) -> Result<Tensor> {
    if input.dtype() == DType::Bool {
        return Err(Error::not_implemented("The `+` operator, on a bool tensor is not supported."));
    }
    Ok(input.clone())
}

/// Compute the bitwise NOT of integers, or the logical NOT of truth values.
///
/// Examples:
///     >>> torch.bitwise_not(torch.tensor([0, 5]))
///     tensor([-1, -6])
///     >>> torch.bitwise_not(torch.tensor([True, False]))
///     tensor([False,  True])
#[operator(function, method, inplace, out(found), elementwise, unrecorded)]
pub fn bitwise_not(input: &Tensor) -> Result<Tensor> {
    if input.dtype() == DType::Bool { u::logical_not(input) } else { u::bit_invert(input) }
}

/// Clamp all elements into the range `[min, max]`.
///
/// Where `min` exceeds `max`, the result is `max`.
///
/// Args:
///     min: lower bound, a tensor or a number; none if not given.
///     max: upper bound, a tensor or a number; none if not given.
///
/// Examples:
///     >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), min=-1.0, max=1.0)
///     tensor([-1.0000,  0.5000,  1.0000])
///     >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), min=0.0)
///     tensor([0.0000, 0.5000, 3.0000])
#[operator(
    function,
    method,
    inplace,
    out,
    elementwise,
    formula = bounded,
    alias = "clip",
    aten(Tensor),
    overloads((0, 2), (0, 2)),
    sample = "clamped()"
)]
pub fn clamp(input: &Tensor, min: Option<Operand>, max: Option<Operand>) -> Result<Tensor> {
    let x = Operand::from(input);
    match (min, max) {
        (Some(Operand::Scalar(low)), Some(Operand::Scalar(high))) => {
            apply(&a::clamp_both::ROW, &[x, low.into(), high.into()])
        }
        (Some(low), Some(high)) => apply(&a::clamp_tensors::ROW, &[x, low, high]),
        (Some(low @ Operand::Scalar(_)), None) => apply(&a::clamp_with_min_number::ROW, &[x, low]),
        (None, Some(high @ Operand::Scalar(_))) => apply(&a::clamp_with_max_number::ROW, &[x, high]),
        (Some(low), None) => apply(&a::clamp_with_min_tensor::ROW, &[x, low]),
        (None, Some(high)) => apply(&a::clamp_with_max_tensor::ROW, &[x, high]),
        (None, None) => Err(Error::runtime("torch.clamp: At least one of 'min' or 'max' must not be None")),
    }
}

/// Clamp all elements from below: the larger of `input` and `min`.
///
/// Args:
///     min: lower bound, a tensor or a number.
///
/// Examples:
///     >>> torch.clamp_min(torch.tensor([-2.0, 3.0]), 0.0)
///     tensor([0., 3.])
#[operator(
    function,
    method,
    inplace,
    out,
    elementwise,
    aten(Tensor),
    overloads((1, 1), (1, 1)),
    sample = "pointwise(lambda x: T.clamp_min(x, 0.3), 1, WIDE)"
)]
pub fn clamp_min(input: &Tensor, min: Operand) -> Result<Tensor> {
    let row =
        if matches!(min, Operand::Tensor(_)) { &a::clamp_min_tensor::ROW } else { &a::clamp_min_number::ROW };
    apply(row, &[input.into(), min])
}

/// Clamp all elements from above: the smaller of `input` and `max`.
///
/// Args:
///     max: upper bound, a tensor or a number.
///
/// Examples:
///     >>> torch.clamp_max(torch.tensor([-2.0, 3.0]), 0.0)
///     tensor([-2.,  0.])
#[operator(
    function,
    method,
    inplace,
    out,
    elementwise,
    aten(Tensor),
    overloads((1, 1), (1, 1)),
    sample = "pointwise(lambda x: T.clamp_max(x, 0.3), 1, WIDE)"
)]
pub fn clamp_max(input: &Tensor, max: Operand) -> Result<Tensor> {
    let row =
        if matches!(max, Operand::Tensor(_)) { &a::clamp_max_tensor::ROW } else { &a::clamp_max_number::ROW };
    apply(row, &[input.into(), max])
}

/// Compute the square of each element.
///
/// Examples:
///     >>> torch.square(torch.tensor([1.0, -3.0]))
///     tensor([1., 9.])
#[operator(function, method, inplace, out(called = "pow"), elementwise, sample = "elements(name)")]
pub fn square(input: &Tensor) -> Result<Tensor> {
    power(input.into(), 2i64.into())
}

/// Apply the rectified linear unit (ReLU): `max(0, input)`.
///
/// Examples:
///     >>> torch.relu(torch.tensor([-1.0, 0.0, 2.0]))
///     tensor([0., 0., 2.])
#[operator(function, method, inplace, elementwise, formula = positive_part, sample = "elements(name)")]
pub fn relu(input: &Tensor) -> Result<Tensor> {
    match input.dtype() {
        d if d.is_float() => u::relu(input),
        DType::Bool => Err(Error::not_implemented("Boolean inputs not supported for relu")),
        _ => a::clamp_min_number(input, Scalar::Int(0)),
    }
}

/// Round each element to the nearest integer, halves to the even one.
///
/// Args:
///     decimals: decimal places to keep; negative ones round to tens, hundreds and so on. None: 0.
///
/// Examples:
///     >>> torch.round(torch.tensor([0.5, 1.5, -2.7]))
///     tensor([ 0.,  2., -3.])
///     >>> torch.round(torch.tensor([3.14159]), decimals=2)
///     tensor([3.1400])
#[operator(
    function,
    method,
    inplace,
    out(found),
    elementwise,
    overloads((0, 0), (1, 1)),
    sample = "elements(name)"
)]
pub fn round(input: &Tensor, decimals: Option<i64>) -> Result<Tensor> {
    let Some(decimals) = decimals else { return u::round(input) };
    if !input.dtype().is_float() {
        let op = if decimals == 0 { "round_vml_cpu" } else { "round_cpu" };
        return Err(Fault::NoKernel { op, dtype: input.dtype() }.into());
    }
    let ten = Operand::Scalar(Scalar::Float(10f64.powi(decimals.unsigned_abs() as i32)));
    let one = Operand::Scalar(Scalar::Float(1.0));
    let (up, down) = if decimals > 0 { (ten, one) } else { (one, ten) };
    apply(&u::round_places::ROW, &[input.into(), up, down])
}
