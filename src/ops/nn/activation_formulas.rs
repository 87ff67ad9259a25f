//! The derivatives of activations as formulas. A zero computed from the input keeps it in the graph of the second derivative, as
//! in PyTorch.

use crate::operator::pointwise::declare::pointwise;
use crate::ops::elementwise::formula;

pointwise! {
    /// `input` kept between two numbers.
    [hidden] hardtanh(input; min_val = -1.0, max_val = 1.0): Plain = minimum(maximum(input, min_val), max_val),
        input: |g, input, min_val, max_val| select(g, zero_of(input), either(le(input, min_val), ge(input, max_val)));
    /// `input` above `threshold`, else `value`.
    [hidden] threshold(input; threshold = 0.0, value = 0.0): Plain = select(input, value, le(input, threshold)),
        input: |g, input, threshold| select(g, zero_of(input), le(input, threshold));
    /// `threshold` in place.
    [hidden, node = "ThresholdBackward1"] threshold_over(input; threshold = 0.0, value = 0.0): Plain = select(input, value, le(input, threshold)),
        input: |g, input, threshold| select(g, zero_of(input), le(input, threshold));
    /// A line from 0 to 1 between -3 and 3.
    [hidden] hardsigmoid(input): Real = minimum(maximum(input + 3.0, 0.0), 6.0) / 6.0,
        input: |g, input| select(zero_of(input), g / 6.0, both(gt(input, -3.0), lt(input, 3.0)));
    /// `input * hardsigmoid(input)`.
    [hidden] hardswish(input): Real = input * minimum(maximum(input + 3.0, 0.0), 6.0) / 6.0,
        input: |g, input| select(select(g, g * (input / 3.0 + 0.5), lt(input, 3.0)), zero_of(input), le(input, -3.0));
    /// `input * tanh(softplus(input))`.
    [hidden] mish(input): Real = input * tanh(log1p(exp(input))),
        input: |g, input| g * (tanh(log1p(exp(input))) + input * sigmoid(input) * (1.0 - square(tanh(log1p(exp(input))))));
    /// `input` where positive, else `alpha * (exp(input / alpha) - 1)`.
    [hidden] celu(input; alpha = 1.0): Real = select(alpha * expm1(input / alpha), input, gt(input, 0.0)),
        input: |g, input, alpha| g * select(1.0, exp(select(0.0, input, lt(input, 0.0)) / alpha), le(input, 0.0));
    /// `celu` in place.
    [hidden, node = "CeluBackward1"] celu_over(input; alpha = 1.0) -> y: Real = select(alpha * expm1(input / alpha), input, gt(input, 0.0)),
        input: |g, y, alpha| g * select(1.0, y / alpha + 1.0, le(y, 0.0));
    /// `scale` times `input` where positive, `scale * alpha * (exp(input * input_scale) - 1)` elsewhere.
    [hidden, node = "EluBackward0"] elu_scaled(input; alpha = 1.0, scale = 1.0, input_scale = 1.0): Real
        = select(alpha * scale * expm1(input * input_scale), input * scale, gt(input, 0.0)),
        input: |g, input, alpha, scale, input_scale| g * select(scale,
            input_scale * alpha * scale * exp(select(0.0, input, lt(input, 0.0)) * input_scale), le(input, 0.0));
    /// `elu_scaled` in place: its derivative reads the result.
    [hidden, node = "EluBackward1"] elu_scaled_over(input; alpha = 1.0, scale = 1.0, input_scale = 1.0) -> y: Real
        = select(alpha * scale * expm1(input * input_scale), input * scale, gt(input, 0.0)),
        input: |g, y, alpha, scale, input_scale| g * select(scale, input_scale * (y + alpha * scale), le(y, 0.0));
    /// 0 within `lambd` of zero.
    [hidden] hardshrink(input; lambd = 0.5): Real = select(input, 0.0, both(ge(input, -lambd), le(input, lambd))),
        input: |g, input, lambd| select(g, zero_of(input), both(ge(input, -lambd), le(input, lambd)));
    /// `input` moved by `lambd` towards zero, and not beyond.
    [hidden] softshrink(input; lambd = 0.5): Real
        = select(select(select(input * 0.0, input, is_nan(input)), input + lambd, lt(input, -lambd)), input - lambd, gt(input, lambd)),
        input: |g, input, lambd| select(g, zero_of(input), both(ge(input, -lambd), le(input, lambd)));
    /// `input` where positive, else `weight * input`.
    [hidden, aten = "_prelu_kernel"] prelu_kernel(input, weight): Real = select(weight * input, input, gt(input, 0.0)),
        input: |g, input, weight| select(g * weight, g, gt(input, 0.0)),
        weight: |g, input| select(g * input, 0.0, gt(input, 0.0));
    /// One half times the sigmoid of the other.
    [hidden] gated(input, gate): Real = input * sigmoid(gate),
        input: |g, gate| g * sigmoid(gate),
        gate: |g, input, gate| g * input * sigmoid(gate) * (1.0 - sigmoid(gate));
}
