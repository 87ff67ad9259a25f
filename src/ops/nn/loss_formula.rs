//! Losses as formulas over differentiable values; their rows compute them in one node.

use super::activation_formulas::hardtanh;
use crate::operator::V;
use crate::ops::elementwise::formula::{abs, exp, log, maximum};
use crate::ops::elementwise::unary;
use crate::ops::nn::loss::Reduction;
use crate::tensor::Tensor;

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

/// `log(1 + exp(-|x|)) + max(-x, 0)`: the logarithm of the sigmoid, negated, without overflow.
pub fn soft_minus(x: &V) -> V {
    crate::ops::elementwise::formula::log1p(exp(-abs(x))) + maximum(-x, 0.0)
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
    let loss = (1.0 - &t) * &x + emphasis(&t, positive) * soft_minus(&x);
    how.apply(weighted(loss, weight))
}
