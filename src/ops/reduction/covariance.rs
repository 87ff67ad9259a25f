//! Covariance and correlation.

use crate::base::warn;
use crate::operator::primitives::constant::full;
use crate::ops::complex;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::elementwise::{power, unary};
use crate::ops::linalg::matmul::mm;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::{any_true, sum};
use crate::ops::shape::slices;
use crate::ops::shape::squeeze::{squeeze_all, unsqueeze};
use crate::ops::shape::view::t;

/// Rejects weights that do not fit the observations.
fn check_weights(name: &str, weights: &Tensor, count: usize, integral: bool) -> Result<()> {
    let refuse = |text: String| Err(Error::runtime(text));
    if weights.ndim() > 1 {
        return refuse(format!(
            "cov(): expected {name} to have one or fewer dimensions but got {name} with {} dimensions",
            weights.ndim()
        ));
    }
    let (fits, kind) = match integral {
        true => (weights.dtype().is_int() || weights.dtype() == DType::Bool, "integral"),
        false => (weights.dtype().is_float(), "floating point"),
    };
    if !fits {
        return refuse(format!(
            "cov(): expected {name} to have {kind} dtype but got {name} with {} dtype",
            weights.dtype().scalar_name()
        ));
    }
    if weights.numel() != count {
        return refuse(format!(
            "cov(): expected {name} to have the same numel as there are observations in the input but got {} != {count}",
            weights.numel()
        ));
    }
    if weights.numel() > 0 && !weights.is_batched() && any_true(&lt(V::from(weights), 0.0).tensor()?)? {
        return refuse(format!("cov(): {name} cannot be negative"));
    }
    Ok(())
}

/// Estimate the covariance matrix of variables, whose observations are the columns of `input`.
///
/// Args:
///     input: a matrix with a row for each variable, or a vector of observations of one variable.
///     correction: difference between the number of observations and the divisor; 1 is Bessel's correction.
///     fweights: how often each observation was made (frequency weights).
///     aweights: importance of each observation.
///
/// Examples:
///     >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
///     tensor([[ 1., -1.],
///             [-1.,  1.]])
#[operator(function, method, sample = "fixed([(3, 4)], lambda x: T.cov(x))")]
pub fn cov(
    input: &Tensor,
    #[keyword]
    #[default(1)]
    correction: i64,
    fweights: Option<&Tensor>,
    aweights: Option<&Tensor>,
) -> Result<Tensor> {
    if input.ndim() > 2 {
        return Err(Error::runtime(format!(
            "cov(): expected input to have two or fewer dimensions but got an input with {} dimensions",
            input.ndim()
        )));
    }
    if input.dtype() == DType::Bool {
        return Err(Error::not_implemented("cov(): bool dtype is not supported for input"));
    }
    let mut rows = input.clone();
    while rows.ndim() < 2 {
        rows = unsqueeze(&rows, 0)?;
    }
    let count = rows.shape()[1];
    for (name, weights, integral) in [("fweights", fweights, true), ("aweights", aweights, false)] {
        if let Some(weights) = weights {
            check_weights(name, weights, count, integral)?;
        }
    }
    let weights = match (fweights, aweights) {
        (Some(f), Some(w)) => Some(a::mul(f, w)?),
        (f, w) => f.or(w).cloned(),
    };
    let along = || Some(Ints::from_slice(&[1]));
    let weighted = |x: &Tensor| weights.as_ref().map_or_else(|| Ok(x.clone()), |w| a::mul(x, w));
    let (total, norm) = match &weights {
        None => {
            let left = count as i64 - correction;
            if left <= 0 {
                warn(
                    "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
                )?;
            }
            let number = |n: i64| full(&[], Scalar::Int(n), DType::I64, input.device());
            (number(count as i64)?, number(left.max(0))?)
        }
        Some(w) => {
            let total = sum(w, None, false, None)?;
            let lost = match aweights {
                Some(own) if correction != 0 => {
                    let squares = sum(&a::mul(w, own)?, None, false, None)?;
                    a::mul(&a::div(&squares, &total)?, Scalar::Int(correction))?
                }
                _ => full(&[], Scalar::Int(correction), DType::I64, input.device())?,
            };
            let left = a::sub(&total, &lost)?;
            (total, power::clamp(&left, Some(Operand::Scalar(Scalar::Int(0))), None)?)
        }
    };
    let mean = a::div(&sum(&weighted(&rows)?, along(), false, None)?, &total)?;
    let apart = a::sub(&rows, &unsqueeze(&mean, 1)?)?;
    let products = mm(&apart, &complex::conj(&t(&weighted(&apart)?)?)?)?;
    squeeze_all(&a::div(&products, Operand::from(&norm))?)
}

/// Compute the matrix of Pearson's correlation coefficients of variables.
///
/// Args:
///     input: a matrix with a row for each variable and a column for each observation.
///
/// Examples:
///     >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
///     tensor([[ 1., -1.],
///             [-1.,  1.]])
#[operator(function, method, sample = "fixed([(3, 4)], lambda x: T.corrcoef(x))")]
pub fn corrcoef(input: &Tensor) -> Result<Tensor> {
    if input.ndim() > 2 {
        return Err(Error::runtime(format!(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions",
            input.ndim()
        )));
    }
    let c = cov(input, 1, None, None)?;
    if c.ndim() == 0 {
        return a::div(&c, &c);
    }
    let diagonal = slices::diagonal(&c, 0, 0, 1)?;
    let diagonal = if c.dtype().is_complex() { complex::real(&diagonal)? } else { diagonal };
    let deviations = unary::sqrt(&diagonal)?;
    let scaled = a::div(&a::div(&c, &unsqueeze(&deviations, 1)?)?, &unsqueeze(&deviations, 0)?)?;
    if c.dtype().is_complex() {
        return Ok(scaled);
    }
    let bound = |x: f64| Some(Operand::Scalar(Scalar::Float(x)));
    power::clamp(&scaled, bound(-1.0), bound(1.0))
}
