//! Pointwise operators on one operand: exponential, trigonometric, hyperbolic, rounding, activations.

use crate::operator::declare::pointwise;
#[cfg(feature = "gpu")]
use crate::operator::pointwise::complex_formula::Complex;
use crate::ops::elementwise::arithmetic::atan2;
use crate::ops::elementwise::formula;

pointwise! {
    /// Magnitude of each element.
    [complex = |a| a.abs(), alias = "absolute", kernel = "abs_cpu", out(found)] abs(input): Modulus = abs(input), input: |g, input| g * sign(input);
    /// -1, 0 or 1 by the sign of each element.
    [no_complex = Words("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."), out(found)] sign(input): Arith = sign(input), input: |g| constant_zero(g);
    /// The direction of each element: its sign, or a complex number of magnitude 1.
    [complex = |a| a.sgn(), out(found)] sgn(input) -> y: Arith = sign(input),
        input: |g, input, y| sgn_gradient(g, input, y);
    /// The angle in the plane: 0 or π for real numbers.
    [complex = |a| formula::atan2(&a.im, &a.re), no_inplace, of_parts = atan2] angle(input): Angle = angle(input),
        input: |g, input| angle_gradient(g, input);
    /// The complex conjugate, computed.
    [complex = |a| a.conj(), hidden] conj_physical(input): Arith = conj(input), input: |g| conj(g);
    /// e to the power of each element.
    [complex = |a| a.exp()] exp(input) -> y: Float = exp(input), input: |g, y| g * conj(y);
    /// 2 to the power of each element.
    [complex = |a| a.times(std::f64::consts::LN_2).exp()] exp2(input) -> y: Float = exp2(input), input: |g, y| g * conj(y * 0.6931471805599453);
    /// `exp(input) - 1`, exact near 0.
    [complex = |a| a.exp().sub(&Complex::one())] expm1(input) -> y: Float = expm1(input), input: |g, y| g * conj(y + 1.0);
    /// Natural logarithm.
    [complex = |a| a.log()] log(input): Float = log(input), input: |g, input| g / conj(input);
    /// Logarithm to the base 2.
    [complex = |a| a.log().times(std::f64::consts::LN_2.recip())] log2(input): Float = log2(input), input: |g, input| g / conj(input * 0.6931471805599453);
    /// Logarithm to the base 10.
    [complex = |a| a.log().times(std::f64::consts::LN_10.recip())] log10(input): Float = log10(input), input: |g, input| g / conj(input * 2.302585092994046);
    /// `log(1 + input)`, exact near 0.
    [complex = |a| a.add(&Complex::one()).log()] log1p(input): Float = log1p(input), input: |g, input| g / conj(input + 1.0);
    /// Square root.
    [complex = |a| a.sqrt()] sqrt(input) -> y: Float = sqrt(input), input: |g, y| g / conj(y * 2.0);
    /// `1 / sqrt(input)`.
    [complex = |a| Complex::one().div(&a.sqrt())] rsqrt(input) -> y: Float = rsqrt(input), input: |g, y| g * -0.5 * conj(y * y * y);
    /// `1 / input`.
    [complex = |a| Complex::one().div(a), word = recip] reciprocal(input) -> y: Float = recip(input), input: |g, y| -g * conj(y * y);
    /// Sine of each element.
    [complex = |a| a.times_i().sinh().over_i()] sin(input): Float = sin(input), input: |g, input| g * conj(cos(input));
    /// Cosine of each element.
    [complex = |a| a.times_i().cosh()] cos(input): Float = cos(input), input: |g, input| g * conj(-sin(input));
    /// Tangent of each element.
    [complex = |a| a.times_i().tanh().over_i()] tan(input) -> y: Float = tan(input), input: |g, y| g * conj(y * y + 1.0);
    /// Arcsine.
    [complex = |a| a.asin(), alias = "arcsin"] asin(input): Float = asin(input), input: |g, input| g * conj(rsqrt(1.0 - input * input));
    /// Arccosine.
    [complex = |a| a.acos(), alias = "arccos"] acos(input): Float = acos(input), input: |g, input| g * conj(-rsqrt(1.0 - input * input));
    /// Arctangent.
    [complex = |a| a.times_i().atanh().over_i(), alias = "arctan"] atan(input): Float = atan(input), input: |g, input| g / conj(input * input + 1.0);
    /// Hyperbolic sine.
    [complex = |a| a.sinh()] sinh(input): Float = sinh(input), input: |g, input| g * conj(cosh(input));
    /// Hyperbolic cosine.
    [complex = |a| a.cosh()] cosh(input): Float = cosh(input), input: |g, input| g * conj(sinh(input));
    /// Hyperbolic tangent.
    [complex = |a| a.tanh()] tanh(input) -> y: Float = tanh(input), input: |g, y| g * conj(multiply_add(-y, y, 1.0));
    /// Inverse hyperbolic sine.
    [complex = |a| a.times_i().asin().over_i(), alias = "arcsinh"] asinh(input): Float = asinh(input), input: |g, input| g * conj(rsqrt(input * input + 1.0));
    /// Inverse hyperbolic cosine.
    [complex = |a| a.acosh(), alias = "arccosh"] acosh(input): Float = acosh(input), input: |g, input| g * conj(acosh_slope(input));
    /// Inverse hyperbolic tangent.
    [complex = |a| a.atanh(), alias = "arctanh"] atanh(input): Float = atanh(input), input: |g, input| g * 1.0 / conj(1.0 - input * input);
    /// Error function.
    [kernel = "erf_vml_cpu"] erf(input): Float = erf(input), input: |g, input| exp(-(input * input)) * 1.1283791670955126 * g;
    /// `1 - erf(input)`.
    [kernel = "erfc_vml_cpu"] erfc(input): Float = erfc(input), input: |g, input| exp(-(input * input)) * -1.1283791670955126 * g;
    /// Inverse of the error function.
    [kernel = "erfinv_vml_cpu"] erfinv(input): Float = erfinv(input), input: |g, input| exp(erfinv(input) * erfinv(input)) * 0.8862269254527580 * g;
    /// Logarithm of the gamma function's magnitude.
    [kernel = "lgamma_vml_cpu"] lgamma(input): Float = lgamma(input), input: |g, input| g * digamma(input);
    /// Derivative of `lgamma`.
    [kernel = "digamma"] digamma(input): Float = digamma(input), input: |g, input| g * trigamma(input);
    /// Derivative of `digamma`.
    [hidden] trigamma(input): Float = trigamma(input), input: |g, input| g * polygamma(2.0, input);
    /// The `n`th derivative of `digamma`.
    [hidden] polygamma(input; n = 2): Float = polygamma(n, input), input: |g, input, n| g * polygamma(n + 1.0, input);
    /// `input * log(input)` with the sign turned, 0 at 0.
    [hidden, node = "SpecialEntrBackward0"] entr(input): Float
        = select(select(-xlogy(input, input), 0.0, eq(input, 0.0)), log(zero_of(input)), lt(input, 0.0)),
        input: |g, input| g * (-log(input) - 1.0);
    /// `1 / (1 + exp(-input))`.
    [complex = |a| a.sigmoid()] sigmoid(input) -> y: Float = sigmoid(input), input: |g, y| g * conj(y * (1.0 - y));
    /// `log(sigmoid(input))`, without overflow.
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
    /// `log(1 + exp(beta * input)) / beta`; the identity above `threshold`.
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
    /// Largest integer not above.
    [kernel = "floor_vml_cpu", no_complex = Words("floor is not supported for complex inputs"), out(found)] floor(input): Plain = floor(input), input: |g| constant_zero(g);
    /// Smallest integer not below.
    [kernel = "ceil_vml_cpu", no_complex = Words("ceil is not supported for complex inputs"), out(found)] ceil(input): Plain = ceil(input), input: |g| constant_zero(g);
    /// Nearest integer, halves to even.
    [hidden, kernel = "round_vml_cpu"] round(input): Plain = round(input), input: |g| constant_zero(g);
    /// Nearest decimal fraction: `up` or `down` is the power of ten.
    [hidden, node = "RoundBackward1"] round_places(input; up = 1.0, down = 1.0): Plain = round(input * up / down) / up * down, input: |g| constant_zero(g);
    /// Integer part.
    [alias = "fix", kernel = "trunc_vml_cpu", no_complex = Words("trunc is not supported for complex inputs"), out(found)] trunc(input): Plain = trunc(input), input: |g| constant_zero(g);
    /// Fractional part, with the sign of `input`.
    [kernel = "frac_cpu", out(found)] frac(input): Real = frac(input), input: |g| g;
    /// Degrees to radians.
    [no_complex = Words("deg2rad is not supported for complex tensors.")] deg2rad(input): Float = input * 0.017453292519943295, input: |g| g * 0.017453292519943295;
    /// Radians to degrees.
    [no_complex = Words("rad2deg is not supported for complex tensors.")] rad2deg(input): Float = input * 57.29577951308232, input: |g| g * 57.29577951308232;
    /// Whether each element is zero.
    [complex = |a| formula::not(a.truth()), word = not] logical_not(input): Compare = not(truth(input)) => words { input ^ 0x0101_0101_0101_0101 };
    /// Bits inverted; for bool the opposite.
    [hidden, kernel = "bitwise_not_cpu"] bit_invert(input): Bits = bit_not(input);
    /// Whether each element is NaN.
    [complex = |a| formula::either(formula::is_nan(&a.re), formula::is_nan(&a.im)), no_inplace, word = is_nan] isnan(input): Test = is_nan(input);
    /// Whether each element is infinite.
    [complex = |a| formula::either(formula::is_inf(&a.re), formula::is_inf(&a.im)), no_inplace, word = is_inf] isinf(input): Test = is_inf(input);
    /// Whether each element is neither infinite nor NaN.
    [complex = |a| formula::both(formula::is_finite(&a.re), formula::is_finite(&a.im)), no_inplace, word = is_finite] isfinite(input): Test = is_finite(input);
}
