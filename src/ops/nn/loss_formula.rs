//! Losses as formulas over differentiable values; their rows compute them in one node.

use super::activation_formulas::hardtanh;
use crate::operator::V;
use crate::operator::declare::pointwise;
use crate::ops::elementwise::formula::{self, abs, log, maximum};
use crate::ops::elementwise::unary;
use crate::ops::nn::loss::Reduction;
use crate::tensor::Tensor;

pointwise! {
    /// The cross entropy of `input`'s sigmoid, without overflow.
    [hidden] logit_entropy(input, target): Real
        = (1.0 - target) * input - (minimum(input, 0.0) - log1p(exp(-abs(input)))),
        input: |g, input, target| g * (sigmoid(input) - target),
        target: |g, input| -(g * input);
    /// Its derivative with respect to `input`.
    [hidden] logit_slope(input, target): Real = sigmoid(input) - target,
        input: |g, input| g * (sigmoid(input) * (1.0 - sigmoid(input))),
        target: |g| -g;
}

/// `x - y` in the type that both promote to; truth values are numbers here.
pub fn difference(x: impl Into<V>, y: impl Into<V>) -> V {
    match (x.into(), y.into()) {
        (V::Tensor(x), V::Tensor(y)) => {
            let dtype = x.dtype().promote(y.dtype());
            V::from(x).cast(dtype) - V::from(y).cast(dtype)
        }
        (x, y) => x - y,
    }
}

/// Slope of the smooth losses: the difference, at most `knee` either way.
pub fn clipped(difference: V, knee: f64) -> V {
    V::apply(&hardtanh::ROW, &[difference, V::from(-knee), V::from(knee)])
}

/// The square's half within `knee` of zero, a line beyond.
fn bent(difference: V, knee: f64) -> V {
    V::apply(&unary::bent::ROW, &[difference, V::from(knee)])
}

/// The loss of probabilities, with logarithms no smaller than -100.
pub fn entropy(p: &V, target: &V) -> V {
    let bounded = |x: V| maximum(log(x), -100.0);
    -(target * bounded(p.clone()) + (1.0 - target) * bounded(1.0 - p))
}

pub fn weighted(loss: V, weight: Option<&Tensor>) -> V {
    match weight {
        Some(weight) => loss * V::from(weight),
        None => loss,
    }
}

/// The logarithm of the sigmoid.
pub fn log_sigmoid(x: &V) -> V {
    V::apply(&unary::logsigmoid::ROW, std::slice::from_ref(x))
}

/// The derivative of the cross entropy of the sigmoid.
pub fn logit_slope_of(x: V, target: V, positive: Option<&Tensor>) -> V {
    match positive {
        None if !target.is_complex() => V::apply(&logit_slope::ROW, &[x, target]),
        _ => (1.0 - &target) + emphasis(&target, positive) * (formula::sigmoid(x) - 1.0),
    }
}

/// How much more than 1 positive targets count.
pub fn emphasis(target: &V, positive: Option<&Tensor>) -> V {
    match positive {
        Some(weight) => (V::from(weight) - 1.0) * target + 1.0,
        None => V::from(1.0),
    }
}

pub fn square_of(x: &Tensor, target: &Tensor, how: Reduction) -> V {
    let d = difference(x, target);
    how.apply(&d * &d)
}

pub fn smooth_of(x: &Tensor, target: &Tensor, how: Reduction, beta: f64) -> V {
    let d = difference(x, target);
    how.apply(match beta {
        0.0 => abs(d),
        1.0 => bent(d, beta),
        _ => bent(d, beta) / beta,
    })
}

pub fn huber_of(x: &Tensor, target: &Tensor, how: Reduction, delta: f64) -> V {
    how.apply(bent(difference(x, target), delta))
}

pub fn entropy_of(x: &Tensor, target: &Tensor, weight: Option<&Tensor>, how: Reduction) -> V {
    how.apply(weighted(entropy(&x.into(), &target.into()), weight))
}

pub fn logit_entropy_of(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    positive: Option<&Tensor>,
    how: Reduction,
) -> V {
    let (x, t) = (V::from(x), V::from(target));
    let loss = match positive {
        None if !target.dtype().is_complex() => V::apply(&logit_entropy::ROW, &[x, t]),
        _ => (1.0 - &t) * &x - emphasis(&t, positive) * log_sigmoid(&x),
    };
    how.apply(weighted(loss, weight))
}
