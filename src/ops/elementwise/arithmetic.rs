//! Pointwise operators on two or three operands.

use crate::base::{DType, Result, Scalar};
use crate::operator::declare::{pointwise, renamed};
use crate::operator::pointwise::result_type;
use crate::operator::row::{Arg, Row};

/// The row for a sum or difference whose second operand is taken `alpha` times, with its arguments.
pub fn scaled(
    row: &'static Row,
    args: &mut smallvec::SmallVec<[Arg; 8]>,
    alpha: Scalar,
) -> Result<&'static Row> {
    if alpha.is_one() {
        return Ok(row);
    }
    if row.name == "rsub" {
        // It is the first operand that is taken so often.
        args.push(Arg::from(alpha));
        let number = !matches!(args[1], Arg::Tensor(_));
        return Ok(if number { &rsub_number_scaled::ROW.row } else { &rsub_scaled::ROW.row });
    }
    let numbers = args.iter().any(|a| matches!(a, Arg::Tensor(t) if t.dtype() != DType::Bool));
    match &args[1] {
        Arg::Tensor(_) if numbers => {
            args.push(Arg::from(alpha));
            return Ok(if row.name == "sub" { &sub_scaled::ROW.row } else { &add_scaled::ROW.row });
        }
        Arg::Tensor(t) => args[1] = Arg::Tensor(mul(t, Scalar::Bool(alpha.as_bool()))?),
        other => {
            if let Some(n) = other.number() {
                if let Arg::Tensor(t) = &args[0] {
                    crate::operator::kernel::holds(result_type([t.into(), n.into()]), alpha)?;
                }
                args[1] = Arg::from(n.times(alpha));
            }
        }
    }
    Ok(row)
}

pointwise! {
    /// Sum of both operands: `input + alpha * other`.
    [complex, numbers, alpha, narrow] add(input, other): Arith = input + other, input: |g| g, other: |g| g;
    /// Difference of both operands: `input - alpha * other`.
    [complex, numbers, alpha, narrow] sub(input, other): Number = input - other, input: |g| g, other: |g| -g;
    /// `input + alpha * other`.
    [complex, hidden] add_scaled(input, other; alpha = 1): Arith = input + alpha * other, input: |g| g, other: |g, alpha| g * conj(alpha);
    /// `input - alpha * other`.
    [complex, hidden] sub_scaled(input, other; alpha = 1): Number = input - alpha * other, input: |g| g, other: |g, alpha| -g * conj(alpha);
    /// `other - input`.
    [complex, no_method, no_out, alpha, narrow] rsub(input, other): Number = other - input, input: |g| -g, other: |g| g;
    /// `other - alpha * input`.
    [complex, hidden] rsub_scaled(input, other; alpha = 1): Number = other - alpha * input, input: |g, alpha| -g * conj(alpha), other: |g| g;
    /// The same of a number.
    [complex, hidden] rsub_number_scaled(input, other; alpha = 1): Number = other - alpha * input, input: |g, alpha| -g * conj(alpha);
    /// Product of both operands.
    [complex, numbers, narrow] mul(input, other): Arith = input * other,
        input: |g, other| g * conj(other), other: |g, input| g * conj(input);
    /// Quotient of both operands.
    [complex, hidden] div(input, other): Float = input / other,
        input: |g, other| g / conj(other), other: |g, input, other| -g * conj(input / other / other);
    /// `input * 2 ** other`.
    [complex, tensors] ldexp(input, other) -> y: Float = input * exp2(other),
        input: |g, other| g * conj(exp2(other)), other: |g, y| g * conj(y * 0.6931471805599453);
    /// The opposite, `-input`.
    [complex] neg(input): Number = -input, input: |g| -g;
    /// Quotient rounded towards minus infinity.
    [numbers] floor_divide(input, other): Divide = floor_div(input, other);
    /// The same, with a gradient of zero.
    [hidden] floor_quotient(input, other): Divide = floor_div(input, other), input: |g; other| blank(g), other: |g; input, other| blank(g);
    /// Quotient rounded towards zero.
    [hidden] trunc_quotient(input, other): Divide = trunc_div(input, other), input: |g; other| blank(g), other: |g; input, other| blank(g);
    /// Remainder with the sign of the divisor, as Python's `%`.
    [numbers] remainder(input, other): Divide = remainder(input, other),
        input: |g| g, other: |g, input, other| -g * floor_div(input, other);
    /// Remainder with the sign of the dividend, as C's `fmod`.
    fmod(input, other): Divide = fmod(input, other),
        input: |g| g, other: |g, input, other| -g * trunc_div(input, other);
    /// `input` to the power of a number that is not 0.
    [complex, hidden] pow(input, exponent): Arith = pow(input, exponent)
            => powers { 3.0: (input * input) * input, 0.5: sqrt(input), -0.5: rsqrt(input), -1.0: recip(input), -2.0: recip(input * input) },
        input: |g, input, exponent| g * conj(exponent * pow(input, exponent - 1.0))
            => powers {
                4.0: g * (exponent * ((input * input) * input)),
                3.0: g * (exponent * (input * input)),
                1.5: g * (exponent * sqrt(input)),
                0.5: g * (exponent * rsqrt(input)),
                -1.0: g * (exponent * recip(input * input)),
            };
    /// `input` to the power of a tensor.
    [complex, hidden] pow_tensor(input, exponent) -> y: Plain = pow(input, exponent),
        input: |g, input, exponent; y| select(g * conj(exponent * pow(input, exponent - 1.0)), 0.0, eq(exponent, 0.0)),
        exponent: |g, input, exponent, y| g * select(conj(y) * conj(log(input)), 0.0, both(eq(input, 0.0), ge(exponent, 0.0)));
    /// A number to the power of a tensor.
    [complex, hidden] pow_number(exponent, input) -> y: Plain = pow(input, exponent),
        exponent: |g, input, exponent, y| g * (conj(y) * select(conj(log(input)), 0.0, both(eq(input, 0.0), ge(exponent, 0.0))));
    /// `input` to the power 0, which has no slope even where the formula above would have none.
    [complex, hidden] pow_zero(input, exponent): Arith = pow(input, exponent), input: |g; input| blank(g);
    /// `input * input`, as a power.
    [complex, hidden] pow_square(input): Arith = input * input, input: |g, input| g * (conj(once(input)) * 2.0);
    /// `input` as a power, which derivatives of squares are made of.
    [complex, hidden] pow_one(input): Arith = once(input), input: |g, input| g * conj(zeroth(input));
    /// Angle of the point (`other`, `input`).
    [tensors] atan2(input, other): Float = atan2(input, other),
        input: |g, input, other| g * other * select(recip(input * input + other * other), 0.0, both(eq(input, 0.0), eq(other, 0.0))),
        other: |g, input, other| g * -input * select(recip(input * input + other * other), 0.0, both(eq(input, 0.0), eq(other, 0.0)));
    /// Length of the hypotenuse: `sqrt(input² + other²)`.
    [tensors] hypot(input, other) -> y: Real = hypot(input, other),
        input: |g, input, y| g * input / y, other: |g, other, y| g * other / y;
    /// Magnitude of `input` with the sign of `other`.
    copysign(input, other) -> y: Float = copysign(input, other),
        input: |g, input, y| g * select(y / select(input, 1.0, eq(input, 0.0)), 0.0, eq(input, 0.0)),
        other: |g; y| g * 0.0;
    /// The larger of both operands; NaN wins.
    [tensors, narrow, no_inplace] maximum(input, other): Arith = maximum(input, other),
        input: |g, input, other| select(select(g, 0.0, lt(input, other)), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, lt(other, input)), g * 0.5, eq(input, other));
    /// The smaller of both operands; NaN wins.
    [tensors, narrow, no_inplace] minimum(input, other): Arith = minimum(input, other),
        input: |g, input, other| select(select(g, 0.0, gt(input, other)), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, gt(other, input)), g * 0.5, eq(input, other));
    /// The larger of both operands; a number wins over NaN.
    [tensors, no_inplace] fmax(input, other): Arith = fmax(input, other),
        input: |g, input, other| select(select(0.0, g, either(ge(input, other), is_nan(other))), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, either(ge(input, other), is_nan(other))), g * 0.5, eq(input, other));
    /// The smaller of both operands; a number wins over NaN.
    [tensors, no_inplace] fmin(input, other): Arith = fmin(input, other),
        input: |g, input, other| select(select(0.0, g, either(le(input, other), is_nan(other))), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, either(le(input, other), is_nan(other))), g * 0.5, eq(input, other));
    /// `log(exp(input) + exp(other))`, without overflow.
    [complex, tensors, no_inplace] logaddexp(input, other): Real
        = select(maximum(input, other) + log1p(exp(minimum(input, other) - maximum(input, other))), input, eq(input, other))
            + select(0.0, 0.6931471805599453, eq(input, other)),
        input: |g, input, other| g / conj(exp(other - input) + 1.0), other: |g, input, other| g / conj(exp(input - other) + 1.0);
    /// `input * log(other)`, 0 where `input` is 0.
    [numbers] xlogy(input, other): Float = select(select(input * log(other), 0.0, eq(input, 0.0)), other, is_nan(other)),
        input: |g, input, other| select(g * log(other), 0.0, both(eq(input, 0.0), le(other, 0.0))),
        other: |g, input, other| g * input / other;
    /// 0 below zero, 1 above, `values` at zero.
    [tensors] heaviside(input, values): Alike = heaviside(input, values);
    /// Whether both are equal.
    [complex, narrow] eq(input, other): Compare = eq(input, other), input: |g| blank(g), other: |g| blank(g);
    /// Whether both differ.
    [complex, narrow] ne(input, other): Compare = ne(input, other), input: |g| blank(g), other: |g| blank(g);
    /// Whether `input` is less.
    [narrow] lt(input, other): Compare = lt(input, other), input: |g| blank(g), other: |g| blank(g);
    /// Whether `input` is less or equal.
    [narrow] le(input, other): Compare = le(input, other), input: |g| blank(g), other: |g| blank(g);
    /// Whether `input` is greater.
    [narrow] gt(input, other): Compare = gt(input, other), input: |g| blank(g), other: |g| blank(g);
    /// Whether `input` is greater or equal.
    [narrow] ge(input, other): Compare = ge(input, other), input: |g| blank(g), other: |g| blank(g);
    /// Whether both are not zero.
    [complex, tensors] logical_and(input, other): Compare = both(truth(input), truth(other)) => words { input & other };
    /// Whether one is not zero.
    [complex, tensors] logical_or(input, other): Compare = either(truth(input), truth(other)) => words { input | other };
    /// Whether exactly one is not zero.
    [complex, tensors] logical_xor(input, other): Compare = differ(truth(input), truth(other)) => words { input ^ other };
    /// Bitwise and.
    [numbers] bitwise_and(input, other): Bits = bit_and(input, other) => words { input & other };
    /// Bitwise or.
    [numbers] bitwise_or(input, other): Bits = bit_or(input, other) => words { input | other };
    /// Bitwise exclusive or.
    [numbers] bitwise_xor(input, other): Bits = bit_xor(input, other) => words { input ^ other };
    /// Bits shifted to the left.
    [numbers] bitwise_left_shift(input, other): Bits = shl(input, other);
    /// Bits shifted to the right.
    [numbers] bitwise_right_shift(input, other): Bits = shr(input, other);
    /// `yes` where `condition`, else `no`.
    [complex, hidden] choose(yes, no, condition): Choose = select(no, yes, truth(condition)),
        yes: |g, condition| select(0.0, g, truth(condition)), no: |g, condition| select(g, 0.0, truth(condition));
    /// `input` kept between two numbers.
    [hidden] clamp_both(input, low, high): Plain = minimum(maximum(input, low), high),
        input: |g, input, low, high| select(0.0, g, both(gt(input, low), lt(input, high)));
    /// `input` kept between two tensors, which share the gradient where they meet.
    [hidden] clamp_tensors(input, low, high): Plain = minimum(maximum(input, low), high),
        input: |g, input, low, high| select(select(g, 0.0, either(lt(input, low), gt(input, high))), g * 0.5,
            both(lt(low, high), either(eq(input, low), eq(input, high)))),
        low: |g, input, low, high| select(select(0.0, g, both(lt(input, low), le(low, high))), g * 0.5,
            both(lt(low, high), eq(input, low))),
        high: |g, input, low, high| select(select(0.0, g, either(gt(low, high), both(gt(input, high), le(low, high)))),
            g * 0.5, both(lt(low, high), eq(input, high)));
    /// `input`, but at least a number.
    [hidden] clamp_min_number(input, min): Plain = maximum(input, min), input: |g, input, min| select(0.0, g, gt(input, min));
    /// `input`, but at most a number.
    [hidden] clamp_max_number(input, max): Plain = minimum(input, max), input: |g, input, max| select(0.0, g, lt(input, max));
    /// `input + weight * (end - input)`.
    [complex] lerp(input, end, weight): FloatAlike = select(end - (end - input) * (1.0 - weight), input + weight * (end - input), lt(abs(weight), 0.5)),
        input: |g, weight| g * (1.0 - conj(weight)), end: |g, weight| g * conj(weight), weight: |g, input, end; weight| g * conj(end - input);
    /// `input + value * tensor1 * tensor2`.
    [complex, tensors] addcmul(input, tensor1, tensor2; value = 1): Arith = input + value * tensor1 * tensor2,
        input: |g| g, tensor1: |g, tensor2, value| g * conj(tensor2 * value), tensor2: |g, tensor1, value| g * conj(tensor1 * value);
    /// `input + value * tensor1 / tensor2`.
    [complex, tensors] addcdiv(input, tensor1, tensor2; value = 1): FloatAlike = input + value * (tensor1 / tensor2),
        input: |g; tensor2| g, tensor1: |g, tensor2, value| g * conj(value / tensor2),
        tensor2: |g, tensor1, tensor2, value| -g * conj(tensor1 * value / (tensor2 * tensor2));
}

renamed! {
    // `clamp_min` and `clamp_max` of tensors.
    clamp_above(input, min) = maximum;
    clamp_below(input, max) = minimum;
    // `clamp` with one bound: a tensor, or a number.
    clamp_from(input, min) = maximum;
    clamp_upto(input, max) = minimum;
    clamp_low(input, min) = clamp_min_number;
    clamp_high(input, max) = clamp_max_number;
}
