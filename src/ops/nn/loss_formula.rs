//! Losses as differentiable formulas. Each has a pointwise row, which computes it in one node.

use super::activation_formulas::hardtanh;
use crate::base::{DType, LossReduction};
use crate::operator::V;
use crate::operator::pointwise::Pointwise;
use crate::operator::pointwise::declare::pointwise;
use crate::ops::elementwise::formula::{self, abs, log, maximum};
use crate::ops::elementwise::unary;
use crate::tensor::Tensor;

pointwise! {
    /// The squared difference.
    [hidden] squared_difference(input, target): Real = (input - target) * (input - target),
        input: |g, input, target| g * (input - target) * 2.0,
        target: |g, input, target| g * (target - input) * 2.0;
    /// Half of the squared difference within `delta` of zero, a line beyond.
    [hidden] huber_of_difference(input, target; delta = 1.0): Real
        = select((abs(input - target) - delta * 0.5) * delta, (input - target) * (input - target) * 0.5, le(abs(input - target), delta)),
        input: |g, input, target, delta| g * minimum(maximum(input - target, -delta), delta),
        target: |g, input, target, delta| g * minimum(maximum(target - input, -delta), delta);
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

/// `x - y` in the promoted dtype. Booleans are treated as numbers.
pub fn difference(x: impl Into<V>, y: impl Into<V>) -> V {
    match (x.into(), y.into()) {
        (V::Tensor(x), V::Tensor(y)) => {
            let dtype = x.dtype().promote(y.dtype());
            V::from(x).cast(dtype) - V::from(y).cast(dtype)
        }
        (x, y) => x - y,
    }
}

/// The derivative of the smooth losses: the difference, clamped to `±delta`.
pub fn clipped(difference: V, delta: f64) -> V {
    V::apply(&hardtanh::ROW, &[difference, V::from(-delta), V::from(delta)])
}

/// Half the square if the difference is less than `delta`, else linear.
fn huber(difference: V, delta: f64) -> V {
    V::apply(&unary::huber::ROW, &[difference, V::from(delta)])
}

/// The binary cross entropy of probabilities. Logarithms are clamped to at least -100, as in PyTorch.
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

pub fn log_sigmoid(x: &V) -> V {
    V::apply(&unary::logsigmoid::ROW, std::slice::from_ref(x))
}

/// The derivative of the binary cross entropy of logits.
pub fn logit_gradient(x: V, target: V, positive: Option<&Tensor>) -> V {
    match positive {
        None if !target.is_complex() => V::apply(&logit_slope::ROW, &[x, target]),
        _ => (1.0 - &target) + emphasis(&target, positive) * (formula::sigmoid(x) - 1.0),
    }
}

/// The weight of each element for `pos_weight`: it applies to positive targets.
pub fn emphasis(target: &V, positive: Option<&Tensor>) -> V {
    match positive {
        Some(weight) => (V::from(weight) - 1.0) * target + 1.0,
        None => V::from(1.0),
    }
}

/// Computes a formula by its row in one pass, if the operands have the same dtype and no step needs to be rounded separately.
fn in_one_pass(row: &'static Pointwise, x: &Tensor, target: &Tensor, delta: Option<f64>) -> Option<V> {
    let dtype = x.dtype();
    let fits = dtype == target.dtype() && matches!(dtype, DType::F32 | DType::F64);
    let operands: Vec<V> = [x.into(), target.into()].into_iter().chain(delta.map(V::from)).collect();
    fits.then(|| V::apply(row, &operands))
}

fn huber_formula(x: &Tensor, target: &Tensor, delta: f64) -> V {
    in_one_pass(&huber_of_difference::ROW, x, target, Some(delta))
        .unwrap_or_else(|| huber(difference(x, target), delta))
}

pub fn square_of(x: &Tensor, target: &Tensor, how: LossReduction) -> V {
    how.apply(in_one_pass(&squared_difference::ROW, x, target, None).unwrap_or_else(|| {
        let d = difference(x, target);
        &d * &d
    }))
}

pub fn smooth_of(x: &Tensor, target: &Tensor, how: LossReduction, beta: f64) -> V {
    let huber = || huber_formula(x, target, beta);
    how.apply(match beta {
        0.0 => abs(difference(x, target)),
        1.0 => huber(),
        _ => huber() / beta,
    })
}

pub fn huber_of(x: &Tensor, target: &Tensor, how: LossReduction, delta: f64) -> V {
    how.apply(huber_formula(x, target, delta))
}

pub fn entropy_of(x: &Tensor, target: &Tensor, weight: Option<&Tensor>, how: LossReduction) -> V {
    how.apply(weighted(entropy(&x.into(), &target.into()), weight))
}

pub fn logit_entropy_of(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    positive: Option<&Tensor>,
    how: LossReduction,
) -> V {
    let (x, t) = (V::from(x), V::from(target));
    let loss = match positive {
        None if !target.dtype().is_complex() => V::apply(&logit_entropy::ROW, &[x, t]),
        _ => (1.0 - &t) * &x - emphasis(&t, positive) * log_sigmoid(&x),
    };
    how.apply(weighted(loss, weight))
}
