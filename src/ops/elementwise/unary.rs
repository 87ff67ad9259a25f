//! Pointwise operators on one operand: exponential, trigonometric, hyperbolic, rounding, activations.

#[cfg(feature = "gpu")]
use crate::operator::pointwise::complex_formula::Complex;
use crate::operator::pointwise::declare::pointwise;
use crate::ops::elementwise::arithmetic::atan2;
use crate::ops::elementwise::formula;

pointwise! {
    /// Compute the absolute value of each element; the magnitude of complex ones.
    ///
    /// Examples:
    ///     >>> torch.abs(torch.tensor([-1.5, 2.0]))
    ///     tensor([1.5000, 2.0000])
    ///     >>> torch.abs(torch.tensor([3 + 4j]))
    ///     tensor([5.])
    [complex = |a| a.abs(), alias = "absolute", kernel = "abs_cpu", out(found)] abs(input): Modulus = abs(input), input: |g, input| g * sign(input);
    /// Compute the sign of each element: -1, 0 or 1.
    ///
    /// Examples:
    ///     >>> torch.sign(torch.tensor([-2.5, 0.0, 3.0]))
    ///     tensor([-1.,  0.,  1.])
    [no_complex = Words("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."), out(found)] sign(input): Arith = sign(input), input: |g| constant_zero(g);
    /// Compute the sign of each element; for complex numbers `input / |input|`, and 0 for 0.
    ///
    /// Examples:
    ///     >>> torch.sgn(torch.tensor([3 + 4j, 0j]))
    ///     tensor([0.6000+0.8000j, 0.0000+0.0000j])
    [complex = |a| a.sgn(), out(found)] sgn(input) -> y: Arith = sign(input),
        input: |g, input, y| sgn_gradient(g, input, y);
    /// Compute the angle (phase) of complex numbers in radians; π for negative real numbers, 0 for others.
    ///
    /// Examples:
    ///     >>> torch.angle(torch.tensor([1 + 1j, -1j]))
    ///     tensor([ 0.7854, -1.5708])
    [complex = |a| formula::atan2(&a.im, &a.re), no_inplace, of_parts = atan2] angle(input): Angle = angle(input),
        input: |g, input| angle_gradient(g, input);
    /// The complex conjugate, computed.
    [complex = |a| a.conj(), hidden] conj_physical(input): Arith = conj(input), input: |g| conj(g);
    /// Compute the exponential of each element, `e ** input`.
    ///
    /// Examples:
    ///     >>> torch.exp(torch.tensor([0.0, 1.0, 2.0]))
    ///     tensor([1.0000, 2.7183, 7.3891])
    [complex = |a| a.exp()] exp(input) -> y: Float = exp(input), input: |g, y| g * conj(y);
    /// Compute 2 raised to the power of each element.
    ///
    /// Examples:
    ///     >>> torch.exp2(torch.tensor([0.0, 1.0, 3.0]))
    ///     tensor([1., 2., 8.])
    [complex = |a| a.times(std::f64::consts::LN_2).exp()] exp2(input) -> y: Float = exp2(input), input: |g, y| g * conj(y * 0.6931471805599453);
    /// Compute `exp(input) - 1`, accurate also for elements near zero.
    ///
    /// Examples:
    ///     >>> torch.expm1(torch.tensor([0.0, 1e-10, 1.0]))
    ///     tensor([0.0000e+00, 1.0000e-10, 1.7183e+00])
    [complex = |a| a.exp().sub(&Complex::one())] expm1(input) -> y: Float = expm1(input), input: |g, y| g * conj(y + 1.0);
    /// Compute the natural logarithm of each element.
    ///
    /// Examples:
    ///     >>> torch.log(torch.tensor([1.0, 2.0, 10.0]))
    ///     tensor([0.0000, 0.6931, 2.3026])
    [complex = |a| a.log()] log(input): Float = log(input), input: |g, input| g / conj(input);
    /// Compute the logarithm to base 2 of each element.
    ///
    /// Examples:
    ///     >>> torch.log2(torch.tensor([1.0, 2.0, 10.0]))
    ///     tensor([0.0000, 1.0000, 3.3219])
    [complex = |a| a.log().times(std::f64::consts::LN_2.recip())] log2(input): Float = log2(input), input: |g, input| g / conj(input * 0.6931471805599453);
    /// Compute the logarithm to base 10 of each element.
    ///
    /// Examples:
    ///     >>> torch.log10(torch.tensor([1.0, 2.0, 10.0]))
    ///     tensor([0.0000, 0.3010, 1.0000])
    [complex = |a| a.log().times(std::f64::consts::LN_10.recip())] log10(input): Float = log10(input), input: |g, input| g / conj(input * 2.302585092994046);
    /// Compute `log(1 + input)`, accurate also for elements near zero.
    ///
    /// Examples:
    ///     >>> torch.log1p(torch.tensor([0.0, 1e-10, 1.0]))
    ///     tensor([0.0000e+00, 1.0000e-10, 6.9315e-01])
    [complex = |a| a.add(&Complex::one()).log()] log1p(input): Float = log1p(input), input: |g, input| g / conj(input + 1.0);
    /// Compute the square root of each element; NaN for negative ones.
    ///
    /// Examples:
    ///     >>> torch.sqrt(torch.tensor([4.0, 2.0, -1.0]))
    ///     tensor([2.0000, 1.4142,    nan])
    [complex = |a| a.sqrt(), fused] sqrt(input) -> y: Float = sqrt(input), input: |g, y| g / conj(y * 2.0);
    /// Compute the reciprocal of the square root of each element, `1 / sqrt(input)`.
    ///
    /// Examples:
    ///     >>> torch.rsqrt(torch.tensor([4.0, 0.25]))
    ///     tensor([0.5000, 2.0000])
    [complex = |a| Complex::one().div(&a.sqrt())] rsqrt(input) -> y: Float = rsqrt(input), input: |g, y| g * -0.5 * conj(y * y * y);
    /// Compute the reciprocal of each element, `1 / input`.
    ///
    /// Examples:
    ///     >>> torch.reciprocal(torch.tensor([4.0, 0.5]))
    ///     tensor([0.2500, 2.0000])
    [complex = |a| Complex::one().div(a), word = recip] reciprocal(input) -> y: Float = recip(input), input: |g, y| -g * conj(y * y);
    /// Compute the sine of each element, in radians.
    ///
    /// Examples:
    ///     >>> torch.sin(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.4794, 0.8415])
    [complex = |a| a.times_i().sinh().over_i()] sin(input): Float = sin(input), input: |g, input| g * conj(cos(input));
    /// Compute the cosine of each element, in radians.
    ///
    /// Examples:
    ///     >>> torch.cos(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([1.0000, 0.8776, 0.5403])
    [complex = |a| a.times_i().cosh()] cos(input): Float = cos(input), input: |g, input| g * conj(-sin(input));
    /// Compute the tangent of each element, in radians.
    ///
    /// Examples:
    ///     >>> torch.tan(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.5463, 1.5574])
    [complex = |a| a.times_i().tanh().over_i()] tan(input) -> y: Float = tan(input), input: |g, y| g * conj(y * y + 1.0);
    /// Compute the arcsine (inverse sine) of each element, in radians.
    ///
    /// Examples:
    ///     >>> torch.asin(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.5236, 1.5708])
    [complex = |a| a.asin(), alias = "arcsin"] asin(input): Float = asin(input), input: |g, input| g * conj(rsqrt(1.0 - input * input));
    /// Compute the arccosine (inverse cosine) of each element, in radians.
    ///
    /// Examples:
    ///     >>> torch.acos(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([1.5708, 1.0472, 0.0000])
    [complex = |a| a.acos(), alias = "arccos"] acos(input): Float = acos(input), input: |g, input| g * conj(-rsqrt(1.0 - input * input));
    /// Compute the arctangent (inverse tangent) of each element, in radians.
    ///
    /// Examples:
    ///     >>> torch.atan(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.4636, 0.7854])
    [complex = |a| a.times_i().atanh().over_i(), alias = "arctan"] atan(input): Float = atan(input), input: |g, input| g / conj(input * input + 1.0);
    /// Compute the hyperbolic sine of each element.
    ///
    /// Examples:
    ///     >>> torch.sinh(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.5211, 1.1752])
    [complex = |a| a.sinh()] sinh(input): Float = sinh(input), input: |g, input| g * conj(cosh(input));
    /// Compute the hyperbolic cosine of each element.
    ///
    /// Examples:
    ///     >>> torch.cosh(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([1.0000, 1.1276, 1.5431])
    [complex = |a| a.cosh()] cosh(input): Float = cosh(input), input: |g, input| g * conj(sinh(input));
    /// Compute the hyperbolic tangent of each element.
    ///
    /// Examples:
    ///     >>> torch.tanh(torch.tensor([-1.0, 0.0, 1.0]))
    ///     tensor([-0.7616,  0.0000,  0.7616])
    [complex = |a| a.tanh()] tanh(input) -> y: Float = tanh(input), input: |g, y| g * conj(multiply_add(-y, y, 1.0));
    /// Compute the inverse hyperbolic sine of each element.
    ///
    /// Examples:
    ///     >>> torch.asinh(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.4812, 0.8814])
    [complex = |a| a.times_i().asin().over_i(), alias = "arcsinh"] asinh(input): Float = asinh(input), input: |g, input| g * conj(rsqrt(input * input + 1.0));
    /// Compute the inverse hyperbolic cosine of each element, which is at least 1.
    ///
    /// Examples:
    ///     >>> torch.acosh(torch.tensor([1.0, 1.5, 2.0]))
    ///     tensor([0.0000, 0.9624, 1.3170])
    [complex = |a| a.acosh(), alias = "arccosh"] acosh(input): Float = acosh(input), input: |g, input| g * conj(acosh_slope(input));
    /// Compute the inverse hyperbolic tangent of each element, which lies between -1 and 1.
    ///
    /// Examples:
    ///     >>> torch.atanh(torch.tensor([0.0, 0.5, -0.5]))
    ///     tensor([ 0.0000,  0.5493, -0.5493])
    [complex = |a| a.atanh(), alias = "arctanh"] atanh(input): Float = atanh(input), input: |g, input| g * 1.0 / conj(1.0 - input * input);
    /// Compute the error function of each element, `2 / sqrt(π)` times the integral of `exp(-t**2)` from 0 on.
    ///
    /// Examples:
    ///     >>> torch.erf(torch.tensor([0.0, 0.5, 1.0]))
    ///     tensor([0.0000, 0.5205, 0.8427])
    [kernel = "erf_vml_cpu"] erf(input): Float = erf(input), input: |g, input| exp(-(input * input)) * 1.1283791670955126 * g;
    /// Compute the complementary error function of each element, `1 - erf(input)`, without cancellation.
    ///
    /// Examples:
    ///     >>> torch.erfc(torch.tensor([0.0, 1.0, 5.0]))
    ///     tensor([1.0000e+00, 1.5730e-01, 1.5375e-12])
    [kernel = "erfc_vml_cpu"] erfc(input): Float = erfc(input), input: |g, input| exp(-(input * input)) * -1.1283791670955126 * g;
    /// Compute the inverse of the error function for each element, which lies between -1 and 1.
    ///
    /// Examples:
    ///     >>> torch.erfinv(torch.tensor([0.0, 0.5, -1.0]))
    ///     tensor([0.0000, 0.4769,   -inf])
    [kernel = "erfinv_vml_cpu"] erfinv(input): Float = erfinv(input), input: |g, input| exp(erfinv(input) * erfinv(input)) * 0.8862269254527580 * g;
    /// Compute the natural logarithm of the absolute value of the gamma function.
    ///
    /// Examples:
    ///     >>> torch.lgamma(torch.tensor([0.5, 1.0, 5.0]))
    ///     tensor([0.5724, 0.0000, 3.1781])
    [kernel = "lgamma_vml_cpu"] lgamma(input): Float = lgamma(input), input: |g, input| g * digamma(input);
    /// Compute the digamma function, the derivative of the logarithm of the gamma function.
    ///
    /// Examples:
    ///     >>> torch.digamma(torch.tensor([0.5, 1.0]))
    ///     tensor([-1.9635, -0.5772])
    [kernel = "digamma"] digamma(input): Float = digamma(input), input: |g, input| g * trigamma(input);
    /// Derivative of `digamma`.
    [hidden] trigamma(input): Float = trigamma(input), input: |g, input| g * polygamma(2.0, input);
    /// The `n`th derivative of `digamma`.
    [hidden] polygamma(input; n = 2): Float = polygamma(n, input), input: |g, input, n| g * polygamma(n + 1.0, input);
    /// `input * log(input)` with the sign turned, 0 at 0.
    [hidden, node = "SpecialEntrBackward0"] entr(input): Float
        = select(select(-xlogy(input, input), 0.0, eq(input, 0.0)), log(zero_of(input)), lt(input, 0.0)),
        input: |g, input| g * (-log(input) - 1.0);
    /// Apply the logistic sigmoid, `1 / (1 + exp(-input))`, with values between 0 and 1.
    ///
    /// Examples:
    ///     >>> torch.sigmoid(torch.tensor([-1.0, 0.0, 1.0]))
    ///     tensor([0.2689, 0.5000, 0.7311])
    [complex = |a| a.sigmoid()] sigmoid(input) -> y: Float = sigmoid(input), input: |g, y| g * conj(y * (1.0 - y));
    /// Apply the logarithm of the sigmoid, `log(1 / (1 + exp(-input)))`, without overflow.
    ///
    /// Examples:
    ///     >>> F.logsigmoid(torch.tensor([-100.0, 0.0, 1.0]))
    ///     tensor([-100.0000,   -0.6931,   -0.3133])
    [nn, node = "LogSigmoidBackward0", kernel = "log_sigmoid_cpu", out(silent, called = "log_sigmoid_forward")] logsigmoid(input): Real = minimum(input, 0.0) - log1p(exp(-abs(input))), input: |g, input| g * sigmoid(-input);
    /// Zeros with an edge to `input`.
    [hidden, word = zero_of] zeros_of(input): Plain = zero_of(input), input: |g| constant_zero(g);
    /// `input` where positive, else 0. (The zero of its derivative is made from `y`, so that second derivatives have an edge to it.)
    [hidden] relu(input) -> y: Float = maximum(input, 0.0), input: |g, y| select(zero_of(y), g, not(le(y, 0.0)));
    /// `input` where positive, else `negative_slope * input`. (`g` is not saved; second derivatives have an edge to `input`.)
    [hidden, kernel = "leaky_relu_cpu"] leaky_relu(input; negative_slope = 0.01): Real = select(input * negative_slope, input, gt(input, 0.0)),
        input: |g, input, negative_slope| select(g * negative_slope, select(zero_of(input), g, gt(input, 0.0)), gt(input, 0.0));
    /// `input` where positive, else `alpha * (exp(input) - 1)`.
    [hidden, kernel = "elu_cpu", one_pass, shows(scale = 1, input_scale = 1)] elu(input; alpha = 1.0): Real = select(alpha * expm1(input), input, gt(input, 0.0)),
        input: |g, input, alpha| g * select(1.0, alpha * exp(select(0.0, input, lt(input, 0.0))), le(input, 0.0));
    /// `leaky_relu` in place: its derivative reads the result, which has the sign of the input.
    [hidden, node = "LeakyReluBackward1", kernel = "leaky_relu_cpu"] leaky_relu_over(input; negative_slope = 0.01) -> y: Real = select(input * negative_slope, input, gt(input, 0.0)),
        input: |g, y, negative_slope| select(g * negative_slope, select(zero_of(y), g, gt(y, 0.0)), gt(y, 0.0));
    /// `elu` in place: its derivative reads the result, which has the sign of the input.
    [hidden, node = "EluBackward1", kernel = "elu_cpu", shows(scale = 1, input_scale = 1)] elu_over(input; alpha = 1.0) -> y: Real = select(alpha * expm1(input), input, gt(input, 0.0)),
        input: |g, y, alpha| g * select(1.0, y + alpha, le(y, 0.0));
    /// Apply the softplus activation, `log(1 + exp(beta * input)) / beta`, a smooth ReLU.
    ///
    /// Args:
    ///     beta: sharpness; the larger, the closer to ReLU.
    ///     threshold: where `beta * input` exceeds it, the result is `input` itself.
    ///
    /// Examples:
    ///     >>> F.softplus(torch.tensor([-1.0, 0.0, 30.0]))
    ///     tensor([ 0.3133,  0.6931, 30.0000])
    [nn, kernel = "softplus_cpu", one_pass, out(found)] softplus(input; beta = 1, threshold = 20): Real = select(log1p(exp(input * beta)) / beta, input, gt(input * beta, threshold)),
        input: |g, input, beta, threshold| g * select(sigmoid(input * beta), 1.0, gt(input * beta, threshold));
    /// `input * sigmoid(input)`.
    [complex = |a| a.mul(&a.sigmoid()), hidden, kernel = "silu_cpu"] silu(input): Real = silu(input),
        input: |g, input| g * conj(sigmoid(input) * (input * (1.0 - sigmoid(input)) + 1.0));
    /// `input` times the normal distribution up to it.
    [hidden, node = "GeluBackward0", kernel = "GeluKernelImpl", shows(approximate = "none")] gelu_erf(input): Float = maximum(input, 0.0) - abs(minimum(input, 100.0)) * ndtr(-abs(input)),
        input: |g, input| g * (ndtr(input) + input * exp(square(input) * -0.5) * 0.3989422804014327);
    /// The normal distribution up to `input`.
    [hidden] ndtr(input): Float = ndtr(input), input: |g, input| g * (exp(square(input) * -0.5) * 0.3989422804014327);
    /// GELU with tanh for the distribution.
    [hidden, node = "GeluBackward0", kernel = "GeluKernelImpl", shows(approximate = "tanh")] gelu_tanh(input): Float = input * 0.5 * (tanh((input + input * input * input * 0.044715) * 0.7978845608028654) + 1.0),
        input: |g, input| g * ((tanh((input + input * input * input * 0.044715) * 0.7978845608028654) + 1.0) * 0.5
            + input * 0.5 * (1.0 - square(tanh((input + input * input * input * 0.044715) * 0.7978845608028654)))
                * 0.7978845608028654 * (input * input * 0.134145 + 1.0));
    /// Half of `input`'s square within `delta` of zero, a line beyond.
    [hidden] huber(input; delta = 1.0): Real = select((abs(input) - delta * 0.5) * delta, input * input * 0.5, le(abs(input), delta)),
        input: |g, input, delta| g * select(input, select(-delta, delta, gt(input, 0.0)), ge(abs(input), delta));
    /// Round each element down to a whole number.
    ///
    /// Examples:
    ///     >>> torch.floor(torch.tensor([-1.5, 0.5, 2.0]))
    ///     tensor([-2.,  0.,  2.])
    [unsigned = U64, kernel = "floor_vml_cpu", no_complex = Words("floor is not supported for complex inputs"), out(found)] floor(input): Plain = floor(input), input: |g| constant_zero(g);
    /// Round each element up to a whole number.
    ///
    /// Examples:
    ///     >>> torch.ceil(torch.tensor([-1.5, 0.5, 2.0]))
    ///     tensor([-1.,  1.,  2.])
    [unsigned = U64, kernel = "ceil_vml_cpu", no_complex = Words("ceil is not supported for complex inputs"), out(found)] ceil(input): Plain = ceil(input), input: |g| constant_zero(g);
    /// Nearest integer, halves to even.
    [hidden, unsigned = U64, kernel = "round_vml_cpu"] round(input): Plain = round(input), input: |g| constant_zero(g);
    /// Nearest decimal fraction: `up` or `down` is the power of ten.
    [hidden, node = "RoundBackward1"] round_places(input; up = 1.0, down = 1.0): Plain = round(input * up / down) / up * down, input: |g| constant_zero(g);
    /// Truncate each element: round it towards zero to a whole number.
    ///
    /// Examples:
    ///     >>> torch.trunc(torch.tensor([-1.5, 0.5, 2.7]))
    ///     tensor([-1.,  0.,  2.])
    [alias = "fix", unsigned = U64, kernel = "trunc_vml_cpu", no_complex = Words("trunc is not supported for complex inputs"), out(found)] trunc(input): Plain = trunc(input), input: |g| constant_zero(g);
    /// Compute the fractional part of each element, `input - trunc(input)`.
    ///
    /// Examples:
    ///     >>> torch.frac(torch.tensor([-1.5, 0.25, 2.0]))
    ///     tensor([-0.5000,  0.2500,  0.0000])
    [kernel = "frac_cpu", out(found)] frac(input): Real = frac(input), input: |g| g;
    /// Convert angles from degrees to radians.
    ///
    /// Examples:
    ///     >>> torch.deg2rad(torch.tensor([90.0, 180.0]))
    ///     tensor([1.5708, 3.1416])
    [no_complex = Words("deg2rad is not supported for complex tensors.")] deg2rad(input): Float = input * 0.017453292519943295, input: |g| g * 0.017453292519943295;
    /// Convert angles from radians to degrees.
    ///
    /// Examples:
    ///     >>> torch.rad2deg(torch.tensor([1.0, torch.pi]))
    ///     tensor([ 57.2958, 180.0000])
    [no_complex = Words("rad2deg is not supported for complex tensors.")] rad2deg(input): Float = input * 57.29577951308232, input: |g| g * 57.29577951308232;
    /// Compute the logical NOT of each element: True where it is zero.
    ///
    /// Examples:
    ///     >>> torch.logical_not(torch.tensor([True, False]))
    ///     tensor([False,  True])
    ///     >>> torch.logical_not(torch.tensor([0.0, 2.0]))
    ///     tensor([ True, False])
    [complex = |a| formula::not(a.truth()), word = not] logical_not(input): Compare = not(truth(input)) => words { input ^ 0x0101_0101_0101_0101 };
    /// Bits inverted; for bool the opposite.
    [hidden, kernel = "bitwise_not_cpu"] bit_invert(input): Bits = bit_not(input);
    /// Tell for each element whether it is NaN.
    ///
    /// Examples:
    ///     >>> torch.isnan(torch.tensor([1.0, float("nan")]))
    ///     tensor([False,  True])
    [complex = |a| formula::either(formula::is_nan(&a.re), formula::is_nan(&a.im)), no_inplace, word = is_nan] isnan(input): Test = is_nan(input);
    /// Tell for each element whether it is infinite, positive or negative.
    ///
    /// Examples:
    ///     >>> torch.isinf(torch.tensor([1.0, float("inf"), float("-inf")]))
    ///     tensor([False,  True,  True])
    [complex = |a| formula::either(formula::is_inf(&a.re), formula::is_inf(&a.im)), no_inplace, word = is_inf] isinf(input): Test = is_inf(input);
    /// Tell for each element whether it is finite: neither infinite nor NaN.
    ///
    /// Examples:
    ///     >>> torch.isfinite(torch.tensor([1.0, float("inf"), float("nan")]))
    ///     tensor([ True, False, False])
    [complex = |a| formula::both(formula::is_finite(&a.re), formula::is_finite(&a.im)), no_inplace, word = is_finite] isfinite(input): Test = is_finite(input);
}
