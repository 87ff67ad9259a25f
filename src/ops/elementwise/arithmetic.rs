//! Pointwise operators on two or three operands.

use crate::base::{DType, Error, Fault, Result, Scalar};
use crate::operator::Operand;
use crate::operator::V;
#[cfg(feature = "gpu")]
use crate::operator::pointwise::complex_formula::Complex;
use crate::operator::pointwise::declare::pointwise;
use crate::operator::pointwise::{Pointwise, result_type};
use crate::operator::primitives::addition;
use crate::operator::row::{Arg, Row};
use crate::ops::elementwise::formula;
use crate::tensor::levels::tangents::DualLevel;
use smallvec::SmallVec;

/// The row and arguments for `add` or `sub` with `alpha`.
fn scale_operand(
    row: &'static Pointwise,
    args: &mut SmallVec<[Arg; 8]>,
    alpha: Scalar,
) -> Result<Option<&'static Row>> {
    // If both operands are boolean, `alpha` counts as a boolean.
    let numbers = args.iter().any(|arg| match arg {
        Arg::Tensor(t) => t.dtype() != DType::Bool,
        other => other.number().is_some_and(|n| !matches!(n, Scalar::Bool(_))),
    });
    match &args[1] {
        Arg::Tensor(_) if numbers => {
            args.push(Arg::from(alpha));
            return Ok(Some(&row.row));
        }
        Arg::Tensor(t) => args[1] = Arg::Tensor(mul(t, Scalar::Bool(alpha.as_bool()))?),
        other => {
            if let Some(n) = other.number() {
                if let Arg::Tensor(t) = &args[0] {
                    crate::operator::bodies::holds(result_type([t.into(), n.into()])?, alpha)?;
                }
                args[1] = Arg::from(n.times(alpha));
            }
        }
    }
    Ok(None)
}

fn add_times(args: &mut SmallVec<[Arg; 8]>, alpha: Scalar) -> Result<Option<&'static Row>> {
    scale_operand(&add_scaled::ROW, args, alpha)
}

fn sub_times(args: &mut SmallVec<[Arg; 8]>, alpha: Scalar) -> Result<Option<&'static Row>> {
    scale_operand(&sub_scaled::ROW, args, alpha)
}

/// In `rsub`, `alpha` scales the first operand.
fn rsub_times(args: &mut SmallVec<[Arg; 8]>, alpha: Scalar) -> Result<Option<&'static Row>> {
    args.push(Arg::from(alpha));
    let number = !matches!(args[1], Arg::Tensor(_));
    Ok(Some(if number { &rsub_number_scaled::ROW.row } else { &rsub_scaled::ROW.row }))
}

/// The tangent of `atan2` as one fraction, which rounds less than two.
fn angle_tangent(operands: &[Operand], level: DualLevel) -> Option<V> {
    let [Operand::Tensor(y), Operand::Tensor(x)] = operands else { return None };
    let (at_y, at_x) = (V::from(y.below(level)), V::from(x.below(level)));
    let by_x = x.tangent(level).map(|t| -&at_y * V::from(t));
    let by_y = y.tangent(level).map(|t| &at_x * V::from(t));
    let top = match (by_x, by_y) {
        (Some(a), Some(b)) => a + b,
        (a, b) => a.or(b)?,
    };
    Some(top / (&at_y * &at_y + &at_x * &at_x))
}

fn same_dtypes(operands: &[Operand]) -> Result<()> {
    match operands {
        [Operand::Tensor(a), Operand::Tensor(b)] if a.dtype() != b.dtype() => {
            Err(Error::runtime("heaviside is not yet implemented for tensors with different dtypes."))
        }
        _ => Ok(()),
    }
}

/// Rejects operands of `lerp` with different dtypes: it has no type promotion.
fn check_lerp(operands: &[Operand]) -> Result<()> {
    let [Operand::Tensor(first), end, weight] = operands else { return Ok(()) };
    let dtype = first.dtype();
    let other = |operand: &Operand| operand.tensor().map(|t| (t.dtype(), t.ndim())).filter(|t| t.0 != dtype);
    // A 0-d weight is treated as a number.
    let wrong = match (other(end), other(weight)) {
        (Some((dtype, _)), _) => Some(("end", dtype)),
        (_, Some((dtype, ndim))) if ndim > 0 => Some(("weight", dtype)),
        _ => None,
    };
    if let Some((which, found)) = wrong {
        return Err(Error::runtime(format!(
            "expected dtype {} for `{which}` but got dtype {}",
            dtype.c_name(),
            found.c_name()
        )));
    }
    if !dtype.is_differentiable() {
        return Err(Fault::NoKernel { op: "lerp_kernel_scalar", dtype }.into());
    }
    let taken = crate::operator::pointwise::dtype_checks::without_halves(dtype);
    if let Operand::Scalar(weight) = weight { crate::operator::bodies::holds(taken, *weight) } else { Ok(()) }
}

/// Rejects integers as operands of the division in `addcdiv`.
fn check_addcdiv(operands: &[Operand]) -> Result<()> {
    match operands {
        [_, Operand::Tensor(a), Operand::Tensor(b), ..]
            if !a.dtype().is_differentiable() && !b.dtype().is_differentiable() =>
        {
            Err(Error::runtime(
                "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
                 division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * \
                 torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) \
                 for float inputs.",
            ))
        }
        _ => Ok(()),
    }
}

/// One floating point operation for each element of the first operand.
fn each(operands: &[Vec<usize>], _: Option<&str>) -> u64 {
    operands.first().map_or(0, |shape| crate::base::numel(shape) as u64)
}

/// One floating point operation for each element of each gradient.
fn each_gradient(given: &[Vec<usize>], made: &[Vec<usize>]) -> u64 {
    each(given, None) * made.iter().filter(|shape| !shape.is_empty()).count() as u64
}

pointwise! {
    /// Subtract `other`, scaled by `alpha`, from `input`: `input - alpha * other`.
    ///
    /// Supports broadcasting and type promotion.
    ///
    /// Examples:
    ///     >>> torch.sub(torch.tensor([5, 7]), torch.tensor([1, 2]))
    ///     tensor([4, 5])
    ///     >>> torch.sub(torch.tensor([5, 7]), 1, alpha=3)
    ///     tensor([2, 4])
    [complex = |a, b| a.sub(b), numbers, alpha = sub_times, narrow, wraps, aten(Tensor, Tensor), unbatched = Refused, alias = "subtract", overloads((1, 2)), shows(alpha = 1), rounds, fused] sub(input, other): Number = input - other, input: |g| g, other: |g| -g;
    /// `input + alpha * other`.
    [complex = |a, b, alpha| a.add(&b.mul(alpha)), hidden, node = "AddBackward0", rounds] add_scaled(input, other; alpha = 1): Arith = input + alpha * other, input: |g| g, other: |g, alpha| g * conj(alpha);
    /// `input + alpha * other`, rounded once.
    [hidden, rounds, fused] axpy(input, other; alpha = 1): FloatAlike = fused_multiply_add(alpha, other, input);
    /// `input + weight * (end - input)`, each product and sum rounded once together.
    [hidden, rounds = Tensors, fused] lerp_fused(input, end, weight): FloatAlike = fused_multiply_add(select(weight - 1.0, weight, lt(abs(weight), 0.5)), end - input, select(end, input, lt(abs(weight), 0.5)));
    /// `input + value * tensor1 * tensor2`, the last product and the sum rounded once.
    [hidden, rounds = Tensors, fused] addcmul_fused(input, tensor1, tensor2; value = 1): FloatAlike = fused_multiply_add(value * tensor1, tensor2, input);
    /// `input - alpha * other`.
    [complex = |a, b, alpha| a.sub(&b.mul(alpha)), hidden, node = "SubBackward0", rounds] sub_scaled(input, other; alpha = 1): Number = input - alpha * other, input: |g| g, other: |g, alpha| -g * conj(alpha);
    /// Subtract `input`, scaled by `alpha`, from `other`: `other - alpha * input`.
    ///
    /// Args:
    ///     alpha: factor of `input`.
    ///
    /// Examples:
    ///     >>> torch.rsub(torch.tensor([1, 2]), 10)
    ///     tensor([9, 8])
    [complex = |a, b| b.sub(a), no_method, no_out, alpha = rsub_times, narrow, by_number = "RsubBackward1", shows(alpha = 1), rounds] rsub(input, other): Number = other - input, input: |g| -g, other: |g| g;
    /// `other - alpha * input`.
    [complex, hidden, node = "RsubBackward0", rounds] rsub_scaled(input, other; alpha = 1): Number = other - alpha * input, input: |g, alpha| -g * conj(alpha), other: |g| g;
    /// `rsub` of a number.
    [complex, hidden, node = "RsubBackward1", rounds] rsub_number_scaled(input, other; alpha = 1): Number = other - alpha * input, input: |g, alpha| -g * conj(alpha);
    /// Multiply `input` by `other`, element by element.
    ///
    /// Supports broadcasting and type promotion.
    ///
    /// Examples:
    ///     >>> torch.mul(torch.tensor([1, 2, 3]), 2)
    ///     tensor([2, 4, 6])
    ///     >>> torch.mul(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 4.0]))
    ///     tensor([[3., 4.],
    ///             [6., 8.]])
    [complex = |a, b| a.mul(b), numbers, narrow, wraps, unsigned = U64, aten(Tensor, Tensor), unbatched = Refused, alias = "multiply", flops(each, each_gradient), rounds = First, fused] mul(input, other): Arith = input * other,
        input: |g, other| g * conj(other), other: |g, input| g * conj(input);
    /// Quotient of both operands.
    [complex = |a, b| a.div(b), hidden, wraps, aten(Tensor, Tensor), unbatched = Refused, rounds = First, fused] div(input, other): Float = input / other,
        input: |g, other| g / conj(other), other: |g, input, other| -g * conj(input / other / other);
    /// Multiply `input` by a power of two: `input * 2 ** other`.
    ///
    /// Args:
    ///     other: the exponents, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([2, -1]))
    ///     tensor([4.0000, 1.5000])
    [complex, tensors] ldexp(input, other) -> y: Float = input * exp2(other),
        input: |g, other| g * conj(exp2(other)), other: |g, y| g * conj(y * 0.6931471805599453);
    /// Negate each element: `-input`.
    ///
    /// Examples:
    ///     >>> torch.neg(torch.tensor([1, -2, 0]))
    ///     tensor([-1,  2,  0])
    [complex = |a| Complex::new(-&a.re, -&a.im), alias = "negative", out(found)] neg(input): Number = -input, input: |g| -g;
    /// Divide `input` by `other` and round the quotients down to whole numbers.
    ///
    /// Examples:
    ///     >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    ///     tensor([ 3, -4])
    [numbers, underived, node = "NotImplemented", kernel = "div_floor_cpu", out(called = "aten::floor_divide"), overloads((1, 1), (1, 1)), rounds = First] floor_divide(input, other): Divide = floor_div(input, other);
    /// The quotient rounded down, with a gradient of zero.
    [hidden, wraps, node = "DivBackward2", kernel = "div_floor_cpu", shows(rounding_mode = "floor"), aten = "div.Tensor_mode", word = floor_div, rounds = First] floor_quotient(input, other): Divide = floor_div(input, other), input: |g; other| constant_zero(g), other: |g; input, other| constant_zero(g);
    /// Quotient rounded towards zero.
    [hidden, wraps, node = "DivBackward2", kernel = "div_trunc_cpu", shows(rounding_mode = "trunc"), aten = "div.Tensor_mode", word = trunc_div, rounds = First] trunc_quotient(input, other): Divide = trunc_div(input, other), input: |g; other| constant_zero(g), other: |g; input, other| constant_zero(g);
    /// Compute the remainder of a division, with the sign of the divisor `other`, as Python's `%` does.
    ///
    /// Args:
    ///     input: the dividend.
    ///     other: the divisor, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.remainder(torch.tensor([-3, 3, 5]), 2)
    ///     tensor([1, 1, 1])
    ///     >>> torch.remainder(torch.tensor([-5.5, 5.5]), -2.0)
    ///     tensor([-1.5000, -0.5000])
    [numbers, node = "RemainderBackward1", by_number = "RemainderBackward0", kernel = "remainder_cpu", overloads((1, 1), (1, 1)), rounds] remainder(input, other): Divide = remainder(input, other),
        input: |g| g, other: |g, input, other| -g * floor_div(input, other);
    /// Compute the remainder of a division, with the sign of the dividend `input`, as C's `fmod` does.
    ///
    /// Args:
    ///     input: the dividend.
    ///     other: the divisor, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.fmod(torch.tensor([-3, 3, 5]), 2)
    ///     tensor([-1,  1,  1])
    [node = "FmodBackward1", by_number = "FmodBackward0", kernel = "fmod_cpu", overloads((1, 1), (1, 1)), rounds] fmod(input, other): Divide = fmod(input, other),
        input: |g| g, other: |g, input, other| -g * trunc_div(input, other);
    /// `input` to the power of a number that is not 0.
    [complex = |base, exponent| base.pow(exponent), hidden, no_wrap, layout = Tensors, aten = "pow.Tensor_Scalar", rounds] pow(input, exponent): Arith = pow(input, exponent)
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
    [complex = |base, exponent| base.pow(exponent), hidden, node = "PowBackward1", kernel = "pow", aten = "pow.Tensor_Tensor", rounds] pow_tensor(input, exponent) -> y: Plain = pow(input, exponent),
        input: |g, input, exponent; y| select(g * conj(exponent * pow(input, exponent - 1.0)), 0.0, eq(exponent, 0.0)),
        exponent: |g, input, exponent, y| g * select(conj(y) * conj(log_of_base(input, y)), 0.0, both(eq(input, 0.0), ge(exponent, 0.0)));
    /// A number to the power of a tensor.
    [complex = |exponent, base| base.pow(exponent), hidden, node = "PowBackward2", kernel = "pow", layout = RowMajor, aten = "pow.Scalar", rounds] pow_number(exponent, input) -> y: Plain = pow(input, exponent),
        exponent: |g, input, exponent, y| g * (conj(y) * select(conj(log_of_base(input, y)), 0.0, both(eq(input, 0.0), ge(exponent, 0.0))));
    /// `input` to the power 0, which has no slope even where the formula above would have none.
    [complex = |base, exponent| base.pow(exponent), hidden, node = "PowBackward0", aten = "pow.Tensor_Scalar"] pow_zero(input, exponent): Arith = pow(input, exponent), input: |g; input| constant_zero(g);
    /// `input * input`, as a power.
    [complex = |a| a.mul(a), hidden, node = "PowBackward0", shows(exponent = 2), aten = "pow.Tensor_Scalar", word = square] pow_square(input): Arith = input * input, input: |g, input| g * (conj(first_power(input)) * 2.0);
    /// `input` as a power, which derivatives of squares are made of.
    [complex = |a| a.clone(), hidden, node = "PowBackward0", shows(exponent = 1), aten = "pow.Tensor_Scalar", word = first_power] pow_one(input): Arith = first_power(input), input: |g, input| g * conj(zeroth_power(input));
    /// Compute the arctangent of `input / other` in radians, with the signs of both telling the quadrant.
    ///
    /// The result is the angle of the point with the coordinates x = `other` and y = `input`, between -π and π.
    ///
    /// Args:
    ///     input: y coordinates.
    ///     other: x coordinates, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.atan2(torch.tensor([1.0, 1.0, -1.0]), torch.tensor([1.0, -1.0, -1.0]))
    ///     tensor([ 0.7854,  2.3562, -2.3562])
    [tensors, alias = "arctan2", unbatched = Misfit, tangent = angle_tangent, rounds] atan2(input, other): Float = atan2(input, other),
        input: |g, input, other| g * other * select(recip(input * input + other * other), 0.0, both(eq(input, 0.0), eq(other, 0.0))),
        other: |g, input, other| g * -input * select(recip(input * input + other * other), 0.0, both(eq(input, 0.0), eq(other, 0.0)));
    /// Compute the length of the hypotenuse of a right triangle, `sqrt(input**2 + other**2)`, without overflow.
    ///
    /// Args:
    ///     input: lengths of one leg.
    ///     other: lengths of the other leg, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0, 5.0]))
    ///     tensor([5.0000, 5.8310])
    [tensors, kernel = "hypot_cpu", rounds] hypot(input, other) -> y: Real = hypot(input, other),
        input: |g, input, y| g * input / y, other: |g, other, y| g * other / y;
    /// Combine the magnitude of `input` with the sign of `other`.
    ///
    /// Args:
    ///     other: a tensor or a number whose signs are taken, -0.0 among them.
    ///
    /// Examples:
    ///     >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-0.0, 3.0]))
    ///     tensor([-1.,  2.])
    [by_number = "CopysignBackward1", unbatched = Misfit, overloads((1, 1), (1, 1))] copysign(input, other) -> y: Float = copysign(input, other),
        input: |g, input, y| g * select(y / select(input, 1.0, eq(input, 0.0)), 0.0, eq(input, 0.0)),
        other: |g; y| g * 0.0;
    /// Compute the element-wise maximum of two tensors; NaN where either is NaN.
    ///
    /// Examples:
    ///     >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    ///     tensor([3, 5])
    [tensors, narrow, unsigned = U32, no_inplace, no_complex = Type("maximum not implemented for complex tensors."), rounds, fused] maximum(input, other): Arith = maximum(input, other),
        input: |g, input, other| select(select(g, 0.0, lt(input, other)), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, lt(other, input)), g * 0.5, eq(input, other));
    /// Compute the element-wise minimum of two tensors; NaN where either is NaN.
    ///
    /// Examples:
    ///     >>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    ///     tensor([1, 2])
    [tensors, narrow, unsigned = U32, no_inplace, no_complex = Type("minimum not implemented for complex tensors."), rounds] minimum(input, other): Arith = minimum(input, other),
        input: |g, input, other| select(select(g, 0.0, gt(input, other)), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, gt(other, input)), g * 0.5, eq(input, other));
    /// Compute the element-wise maximum of two tensors, ignoring NaN where the other element is a number.
    ///
    /// Examples:
    ///     >>> torch.fmax(torch.tensor([1.0, float("nan")]), torch.tensor([3.0, 2.0]))
    ///     tensor([3., 2.])
    [tensors, unsigned = U32, no_inplace, no_complex = Type("fmax not implemented for complex tensors."), rounds] fmax(input, other): Arith = fmax(input, other),
        input: |g, input, other| select(select(0.0, g, either(ge(input, other), is_nan(other))), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, either(ge(input, other), is_nan(other))), g * 0.5, eq(input, other));
    /// Compute the element-wise minimum of two tensors, ignoring NaN where the other element is a number.
    ///
    /// Examples:
    ///     >>> torch.fmin(torch.tensor([1.0, float("nan")]), torch.tensor([3.0, 2.0]))
    ///     tensor([1., 2.])
    [tensors, unsigned = U32, no_inplace, no_complex = Type("fmin not implemented for complex tensors."), rounds] fmin(input, other): Arith = fmin(input, other),
        input: |g, input, other| select(select(0.0, g, either(le(input, other), is_nan(other))), g * 0.5, eq(input, other)),
        other: |g, input, other| select(select(g, 0.0, either(le(input, other), is_nan(other))), g * 0.5, eq(input, other));
    /// Compute `log(exp(input) + exp(other))` without overflow.
    ///
    /// Adds probabilities that are given by their logarithms.
    ///
    /// Examples:
    ///     >>> torch.logaddexp(torch.tensor([-1.0, 1000.0]), torch.tensor([-1.0, 1000.0]))
    ///     tensor([-3.0685e-01,  1.0007e+03])
    [complex = |a, b| a.logaddexp(b), tensors, no_inplace, kernel = "logaddexp_cpu", rounds] logaddexp(input, other): Real
        = select(maximum(input, other) + log1p(exp(minimum(input, other) - maximum(input, other))), input, eq(input, other))
            + select(0.0, 0.6931471805599453, eq(input, other)),
        input: |g, input, other| g / conj(exp(other - input) + 1.0), other: |g, input, other| g / conj(exp(input - other) + 1.0);
    /// Compute `log2(2**input + 2**other)` without overflow.
    ///
    /// Examples:
    ///     >>> torch.logaddexp2(torch.tensor([3.0]), torch.tensor([3.0]))
    ///     tensor([4.])
    [tensors, no_inplace, kernel = "logaddexp2_cpu", rounds] logaddexp2(input, other): Real
        = select(maximum(input, other) + log1p(exp2(minimum(input, other) - maximum(input, other))) * 1.4426950408889634, input, eq(input, other))
            + select(0.0, 1.0, eq(input, other)),
        input: |g, input, other| g / (exp2(other - input) + 1.0), other: |g, input, other| g / (exp2(input - other) + 1.0);
    /// `input * log1p(other)`, 0 where `input` is 0.
    [hidden, node = "SpecialXlog1PyBackward0", aten = "special_xlog1py", rounds] xlog1py(input, other): Float = select(select(input * log1p(other), 0.0, eq(input, 0.0)), other, is_nan(other)),
        input: |g, input, other| select(g * log1p(other), 0.0, both(eq(input, 0.0), le(other, -1.0))),
        other: |g, input, other| g * input / (other + 1.0);
    /// Compute `input * log(other)`, with 0 where `input` is 0.
    ///
    /// Examples:
    ///     >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    ///     tensor([0.0000, 2.1972])
    [numbers, by_number = "XlogyBackward2", overloads((1, 1), (1, 1)), aten(Tensor, Scalar_Other), rounds] xlogy(input, other): Float = xlogy(input, other),
        input: |g, input, other| select(xlogy(g, other), 0.0, both(eq(input, 0.0), le(other, 0.0))),
        other: |g, input, other| g * input / other;
    /// Compute the Heaviside step function: 0 for negative elements, 1 for positive ones, `values` at zero.
    ///
    /// Args:
    ///     values: results where `input` is zero; of the dtype of `input`, broadcast with it.
    ///
    /// Examples:
    ///     >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor(0.5))
    ///     tensor([0.0000, 0.5000, 1.0000])
    [tensors, underived, node = "NotImplemented", check = same_dtypes, no_complex = Words("heaviside is not yet implemented for complex tensors."), out(message = "heaviside is not yet implemented for tensors with different dtypes.", called = "aten::heaviside")] heaviside(input, values): Alike = heaviside(input, values);
    /// Compare element by element: True where `input == other`.
    ///
    /// Examples:
    ///     >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    ///     tensor([ True, False])
    [complex = |a, b| formula::both(formula::eq(&a.re, &b.re), formula::eq(&a.im, &b.im)), narrow, any_dtype, node = "EqBackward1", by_number = "EqBackward0", overloads((1, 1), (1, 1)), rounds] eq(input, other): Compare = eq(input, other), input: |g| constant_zero(g), other: |g| constant_zero(g);
    /// Compare element by element: True where `input != other`.
    ///
    /// Examples:
    ///     >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    ///     tensor([False,  True])
    [complex = |a, b| formula::not(formula::both(formula::eq(&a.re, &b.re), formula::eq(&a.im, &b.im))), narrow, any_dtype, node = "NeBackward1", by_number = "NeBackward0", alias = "not_equal", overloads((1, 1), (1, 1)), rounds] ne(input, other): Compare = ne(input, other), input: |g| constant_zero(g), other: |g| constant_zero(g);
    /// Compare element by element: True where `input < other`.
    ///
    /// Examples:
    ///     >>> torch.lt(torch.tensor([1, 2, 3]), 2)
    ///     tensor([ True, False, False])
    [narrow, node = "LtBackward1", by_number = "LtBackward0", alias = "less", overloads((1, 1), (1, 1)), rounds] lt(input, other): Compare = lt(input, other), input: |g| constant_zero(g), other: |g| constant_zero(g);
    /// Compare element by element: True where `input <= other`.
    ///
    /// Examples:
    ///     >>> torch.le(torch.tensor([1, 2, 3]), 2)
    ///     tensor([ True,  True, False])
    [narrow, node = "LeBackward1", by_number = "LeBackward0", alias = "less_equal", overloads((1, 1), (1, 1)), rounds] le(input, other): Compare = le(input, other), input: |g| constant_zero(g), other: |g| constant_zero(g);
    /// Compare element by element: True where `input > other`.
    ///
    /// Examples:
    ///     >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    ///     tensor([False, False,  True])
    [narrow, node = "GtBackward1", by_number = "GtBackward0", alias = "greater", overloads((1, 1), (1, 1)), rounds] gt(input, other): Compare = gt(input, other), input: |g| constant_zero(g), other: |g| constant_zero(g);
    /// Compare element by element: True where `input >= other`.
    ///
    /// Examples:
    ///     >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    ///     tensor([False,  True,  True])
    [narrow, node = "GeBackward1", by_number = "GeBackward0", alias = "greater_equal", overloads((1, 1), (1, 1)), rounds] ge(input, other): Compare = ge(input, other), input: |g| constant_zero(g), other: |g| constant_zero(g);
    /// Compute the logical AND of each pair of elements; everything but zero counts as True.
    ///
    /// Examples:
    ///     >>> torch.logical_and(torch.tensor([True, True]), torch.tensor([True, False]))
    ///     tensor([ True, False])
    [complex = |a, b| formula::both(a.truth(), b.truth()), tensors, unbatched = Refused, word = both] logical_and(input, other): Compare = both(truth(input), truth(other)) => words { input & other };
    /// Compute the logical OR of each pair of elements; everything but zero counts as True.
    ///
    /// Examples:
    ///     >>> torch.logical_or(torch.tensor([True, False]), torch.tensor([False, False]))
    ///     tensor([ True, False])
    [complex = |a, b| formula::either(a.truth(), b.truth()), tensors, unbatched = Refused, word = either] logical_or(input, other): Compare = either(truth(input), truth(other)) => words { input | other };
    /// Compute the logical XOR of each pair of elements; everything but zero counts as True.
    ///
    /// Examples:
    ///     >>> torch.logical_xor(torch.tensor([True, True]), torch.tensor([True, False]))
    ///     tensor([False,  True])
    [complex = |a, b| formula::ne(a.truth(), b.truth()), tensors, unbatched = Refused] logical_xor(input, other): Compare = differ(truth(input), truth(other)) => words { input ^ other };
    /// Compute the bitwise AND of integers or truth values.
    ///
    /// Examples:
    ///     >>> torch.bitwise_and(torch.tensor([12, 10]), 6)
    ///     tensor([4, 2])
    [numbers, unsigned = U64, overloads((1, 1), (1, 1))] bitwise_and(input, other): Bits = bit_and(input, other) => words { input & other };
    /// Compute the bitwise OR of integers or truth values.
    ///
    /// Examples:
    ///     >>> torch.bitwise_or(torch.tensor([12, 10]), 6)
    ///     tensor([14, 14])
    [numbers, unsigned = U64, overloads((1, 1), (1, 1))] bitwise_or(input, other): Bits = bit_or(input, other) => words { input | other };
    /// Compute the bitwise XOR (exclusive or) of integers or truth values.
    ///
    /// Examples:
    ///     >>> torch.bitwise_xor(torch.tensor([12, 10]), 6)
    ///     tensor([10, 12])
    [numbers, unsigned = U64, overloads((1, 1), (1, 1))] bitwise_xor(input, other): Bits = bit_xor(input, other) => words { input ^ other };
    /// Shift the bits of integers to the left: `input << other`.
    ///
    /// Args:
    ///     other: by how many bits; a tensor or a number, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
    ///     tensor([ 4, 12])
    [numbers, kernel = "lshift_cpu", overloads((1, 1), (1, 1))] bitwise_left_shift(input, other): Shift = shl(input, other);
    /// Shift the bits of integers to the right, keeping the sign: `input >> other`.
    ///
    /// Args:
    ///     other: by how many bits; a tensor or a number, broadcast with `input`.
    ///
    /// Examples:
    ///     >>> torch.bitwise_right_shift(torch.tensor([-8, 9]), 1)
    ///     tensor([-4,  4])
    [numbers, kernel = "rshift_cpu", overloads((1, 1), (1, 1))] bitwise_right_shift(input, other): Shift = shr(input, other);
    /// `yes` where `condition`, else `no`.
    [complex = |yes, no, condition| Complex::chosen(no, yes, &condition.truth()), hidden, wraps, no_wrap, any_dtype, node = "WhereBackward0", aten = "where.self"] choose(yes, no, condition): Choose = select(no, yes, truth(condition)),
        yes: |g, condition| select(0.0, g, truth(condition)), no: |g, condition| select(g, 0.0, truth(condition));
    /// `input` kept between two numbers.
    [hidden, unsigned = U32, node = "ClampBackward1", kernel = "clamp_scalar_cpu", no_complex = Of("clamp"), min = low, max = high, rounds] clamp_both(input, low, high): Plain = minimum(maximum(input, low), high),
        input: |g, input, low, high| select(0.0, g, both(gt(input, low), lt(input, high)));
    /// `input` kept between two tensors, which share the gradient where they meet.
    [hidden, unsigned = U32, node = "ClampBackward0", kernel = "clamp_cpu", no_complex = Of("clamp"), aten = "clamp.Tensor", rounds] clamp_tensors(input, low, high): Plain = minimum(maximum(input, low), high),
        input: |g, input, low, high| select(select(g, 0.0, either(lt(input, low), gt(input, high))), g * 0.5,
            both(lt(low, high), either(eq(input, low), eq(input, high)))),
        low: |g, input, low, high| select(select(0.0, g, both(lt(input, low), le(low, high))), g * 0.5,
            both(lt(low, high), eq(input, low))),
        high: |g, input, low, high| select(select(0.0, g, either(gt(low, high), both(gt(input, high), le(low, high)))),
            g * 0.5, both(lt(low, high), eq(input, high)));
    /// `input`, but at least a number.
    [hidden, unsigned = U32, node = "ClampMinBackward0", kernel = "clamp_min_scalar_cpu", no_complex = Of("clamp"), min = min, aten = "clamp_min", rounds] clamp_min_number(input, min): Plain = maximum(input, min), input: |g, input, min| select(0.0, g, gt(input, min));
    /// `input`, but at most a number.
    [hidden, unsigned = U32, node = "ClampMaxBackward0", kernel = "clamp_max_scalar_cpu", no_complex = Of("clamp"), max = max, aten = "clamp_max", rounds] clamp_max_number(input, max): Plain = minimum(input, max), input: |g, input, max| select(0.0, g, lt(input, max));
    /// Interpolate linearly between two tensors: `input + weight * (end - input)`.
    ///
    /// Args:
    ///     input: values at weight 0.
    ///     end: values at weight 1.
    ///     weight: a tensor or a number; weights beyond 0 and 1 extrapolate.
    ///
    /// Examples:
    ///     >>> torch.lerp(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), 0.5)
    ///     tensor([ 5.5000, 11.0000])
    [complex = |a, b, weight| a.add(&b.sub(a).mul(weight)), aten(Tensor, Scalar), node = "LerpBackward1", by_number = "LerpBackward0", check = check_lerp, overloads((2, 2), (2, 2)), rounds = Tensors] lerp(input, end, weight): FloatAlike = multiply_add(select(weight - 1.0, weight, lt(abs(weight), 0.5)), end - input, select(end, input, lt(abs(weight), 0.5))),
        input: |g, weight| g * (1.0 - conj(weight)), end: |g, weight| g * conj(weight), weight: |g, input, end; weight| g * conj(end - input);
    /// Add a product of two tensors, scaled by `value`: `input + value * tensor1 * tensor2`.
    ///
    /// Args:
    ///     tensor1, tensor2: the factors, broadcast with `input`.
    ///     value: factor of the product.
    ///
    /// Examples:
    ///     >>> torch.addcmul(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=0.5)
    ///     tensor([2.5000, 5.0000])
    [complex = |a, b, c, value| a.add(&b.mul(c).mul(value)), tensors, kernel = "addcmul_cpu_out", overloads((2, 3)), rounds = Tensors] addcmul(input, tensor1, tensor2; value = 1): Plain = multiply_add(value * tensor1, tensor2, input),
        input: |g| g, tensor1: |g, tensor2, value| g * conj(tensor2 * value), tensor2: |g, tensor1, value| g * conj(tensor1 * value);
    /// Add a quotient of two tensors, scaled by `value`: `input + value * tensor1 / tensor2`.
    ///
    /// Args:
    ///     tensor1: the dividend, broadcast with `input`.
    ///     tensor2: the divisor, broadcast with `input`.
    ///     value: factor of the quotient.
    ///
    /// Examples:
    ///     >>> torch.addcdiv(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), value=0.5)
    ///     tensor([1.2500, 1.2500])
    [complex = |a, b, c, value| a.add(&b.div(c).mul(value)), tensors, check = check_addcdiv, overloads((2, 3)), rounds = Tensors, fused] addcdiv(input, tensor1, tensor2; value = 1): FloatAlike = input + value * tensor1 / tensor2,
        input: |g; tensor2| g, tensor1: |g, tensor2, value| g * conj(value / tensor2),
        tensor2: |g, tensor1, tensor2, value| -g * conj(tensor1 * value / (tensor2 * tensor2));
}

pointwise! {
    /// Add `other`, scaled by `alpha`, to `input`: `input + alpha * other`.
    ///
    /// Supports broadcasting and type promotion.
    ///
    /// Examples:
    ///     >>> torch.add(torch.tensor([1, 2]), torch.tensor([0.5, 1.5]))
    ///     tensor([1.5000, 3.5000])
    ///     >>> torch.add(torch.tensor([1, 2]), 10, alpha=2)
    ///     tensor([21, 22])
    [numbers, alpha = add_times, kernel = "add_stub", overloads((1, 2)), flops(each), rounds] add(input, other) like addition::add;
    // `clamp_min` and `clamp_max` with tensors.
    [hidden, unsigned = U32, node = "ClampMinBackward1", unbatched = Refused, no_complex = Of("clamp"), aten = "clamp_min.Tensor", rounds] clamp_min_tensor(input, min) like maximum;
    [hidden, unsigned = U32, node = "ClampMaxBackward1", unbatched = Refused, no_complex = Of("clamp"), aten = "clamp_max.Tensor", rounds] clamp_max_tensor(input, max) like minimum;
    // `clamp` with a single bound, which is a tensor or a number.
    [hidden, unsigned = U32, node = "ClampBackward0", no_complex = Of("clamp"), shows(max = none), aten = "clamp.Tensor", rounds] clamp_with_min_tensor(input, min) like maximum;
    [hidden, unsigned = U32, node = "ClampBackward0", no_complex = Of("clamp"), shows(min = none), aten = "clamp.Tensor", rounds] clamp_with_max_tensor(input, max) like minimum;
    [hidden, unsigned = U32, node = "ClampBackward1", layout = Tensors, shows(max = none), aten = "clamp"] clamp_with_min_number(input, min) like clamp_min_number;
    [hidden, unsigned = U32, node = "ClampBackward1", layout = Tensors, shows(min = none), aten = "clamp"] clamp_with_max_number(input, max) like clamp_max_number;
}
