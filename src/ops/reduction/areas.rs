//! Areas under points, by trapezoids; powers as columns; covariances: what is made of a few operators each.
#![allow(non_snake_case, reason = "a parameter of PyTorch's is called N")]

use crate::base::warn;
use crate::operator::constant::{full, ones, zeros};
use crate::operator::copies::to_dtype;
use crate::operator::views::reshape;
use crate::ops::complex;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::elementwise::{power, unary};
use crate::ops::linalg::matmul::mm;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::{somewhere, sum};
use crate::ops::reduction::scan::{cumprod, cumsum};
use crate::ops::shape::join::cat;
use crate::ops::shape::rearrange::{flip, part};
use crate::ops::shape::slices::{self, select};
use crate::ops::shape::squeeze::{squeeze_all, unsqueeze};
use crate::ops::shape::view::{expand, t};

fn without_truths(name: &str, x: Option<&Tensor>, y: &Tensor) -> Result<()> {
    let which = if x.is_some() { "`x` or `y`" } else { "`y`" };
    if x.into_iter().chain([y]).any(|t| t.dtype() == DType::Bool) {
        return Err(Error::not_implemented(format!(
            "{name}: received a bool input for {which}, but bool is not supported"
        )));
    }
    Ok(())
}

fn no_dims(dim: i64) -> Error {
    Error::index(format!("Dimension specified as {dim} but tensor has no dimensions"))
}

fn length(t: &Tensor, dim: i64) -> Result<i64> {
    let at = wrap_dim(dim, t.ndim())?;
    t.shape().get(at).map(|&n| n as i64).ok_or_else(|| no_dims(0))
}

/// The last place along a dimension that is sliced.
fn at_end(t: &Tensor, dim: i64) -> Result<i64> {
    if t.ndim() == 0 {
        return Err(Error::index("slice() cannot be applied to a 0-dim tensor."));
    }
    Ok(length(t, dim)? - 1)
}

/// The widths between the points of `x`, which stand along `dim` of `y`.
fn widths(name: &str, y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    let (at, n) = (wrap_dim(dim, y.ndim())?, y.ndim());
    let mut x = x.clone();
    if x.ndim() == 1 {
        if x.shape()[0] as i64 != length(y, dim)? {
            return Err(Error::runtime(format!("{name}: There must be one `x` value for each sample point")));
        }
        let mut shape = vec![1; n];
        shape[at] = x.shape()[0];
        x = reshape(&x, &shape)?;
    } else {
        while x.ndim() < n {
            x = unsqueeze(&x, 0)?;
        }
    }
    let last = at_end(&x, dim)?;
    a::sub(&part(&x, dim, 1, last)?, &part(&x, dim, 0, last)?)
}

/// Sums of neighbours along a dimension.
fn neighbours(y: &Tensor, dim: i64) -> Result<Tensor> {
    let last = at_end(y, dim)?;
    a::add(&part(y, dim, 0, last)?, &part(y, dim, 1, last)?)
}

fn half(x: &Tensor) -> Result<Tensor> {
    a::div(x, Scalar::Float(2.0))
}

/// The shape without a dimension, if that is empty.
fn nothing(y: &Tensor, dim: i64) -> Result<Option<Tensor>> {
    let at = wrap_dim(dim, y.ndim())?;
    let mut shape = y.shape();
    if shape.get(at) != Some(&0) {
        return Ok(None);
    }
    shape.remove(at);
    zeros(&shape, y.dtype(), y.device()).map(Some)
}

/// The area under `y` along a dimension, over the places `x`, by trapezoids.
#[operator(function, alias = "trapz", sample = "over_dim(lambda y, dim: T.trapezoid(y, dim=dim, dx=0.5))")]
pub fn trapezoid(y: &Tensor, x: &Tensor, #[default(-1)] dim: i64) -> Result<Tensor> {
    length(y, dim)?;
    if let Some(empty) = nothing(y, dim)? {
        return Ok(empty);
    }
    without_truths("trapezoid", Some(x), y)?;
    let dx = widths("trapezoid", y, x, dim)?;
    half(&sum(&a::mul(&neighbours(y, dim)?, &dx)?, Some(Ints::from_slice(&[dim])), false, None)?)
}

/// `trapezoid` where the places are `dx` apart.
#[overload(trapezoid.dx)]
pub fn trapezoid_dx(
    y: &Tensor,
    #[keyword]
    #[default(1.0)]
    dx: f64,
    #[default(-1)] dim: i64,
) -> Result<Tensor> {
    if y.ndim() == 0 {
        return Err(no_dims(dim));
    }
    if let Some(empty) = nothing(y, dim)? {
        return Ok(empty);
    }
    without_truths("trapezoid", None, y)?;
    let ends = a::add(&select(y, dim, 0)?, &select(y, dim, -1)?)?;
    let all = sum(y, Some(Ints::from_slice(&[dim])), false, None)?;
    a::mul(&a::sub(&all, &a::mul(&ends, Scalar::Float(0.5))?)?, Scalar::Float(dx))
}

/// The areas up to each point but the first, by trapezoids over the places `x`.
#[operator(function, sample = "over_dim(lambda y, dim: T.cumulative_trapezoid(y, dim=dim, dx=0.5))")]
pub fn cumulative_trapezoid(y: &Tensor, x: &Tensor, #[default(-1)] dim: i64) -> Result<Tensor> {
    without_truths("cumulative_trapezoid", Some(x), y)?;
    let dx = widths("cumulative_trapezoid", y, x, dim)?;
    half(&cumsum(&a::mul(&neighbours(y, dim)?, &dx)?, dim, None)?)
}

/// `cumulative_trapezoid` where the places are `dx` apart.
#[overload(cumulative_trapezoid.dx)]
pub fn cumulative_trapezoid_dx(
    y: &Tensor,
    #[keyword]
    #[default(1.0)]
    dx: f64,
    #[default(-1)] dim: i64,
) -> Result<Tensor> {
    without_truths("cumulative_trapezoid", None, y)?;
    cumsum(&a::mul(&neighbours(y, dim)?, Scalar::Float(dx / 2.0))?, dim, None)
}

/// The powers of a vector's elements as columns, the highest first unless `increasing`.
#[operator(function, name = "vander", sample = "fixed([(3,)], lambda x: T.vander(x, 4))")]
pub fn vander(x: &Tensor, N: Option<i64>, #[default(false)] increasing: bool) -> Result<Tensor> {
    if x.ndim() != 1 {
        return Err(Error::runtime("x must be a one-dimensional tensor."));
    }
    let rows = x.shape()[0];
    let n = N.unwrap_or(rows as i64);
    let Ok(columns) = usize::try_from(n) else { return Err(Error::runtime("N must be non-negative.")) };
    let dtype = x.dtype().promote(DType::I64);
    let first = ones(&[rows, columns.min(1)], dtype, x.device())?;
    let made = if columns > 1 {
        let repeated = expand(&unsqueeze(&to_dtype(x, dtype)?, 1)?, Ints::from_slice(&[rows as i64, n - 1]))?;
        cat(&[first, cumprod(&repeated, 1, None)?], 1)?
    } else {
        first
    };
    if increasing { Ok(made) } else { flip(&made, Sizes(Ints::from_slice(&[1]))) }
}

/// Refuses weights that do not belong to the observations.
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
    if weights.numel() > 0 && !weights.is_batched() && somewhere(&lt(V::from(weights), 0.0).tensor()?)? {
        return refuse(format!("cov(): {name} cannot be negative"));
    }
    Ok(())
}

/// The covariances of variables, which are rows: of observations, which are columns and may have weights.
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

/// Pearson's correlations of variables, which are rows.
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
    let spread = unary::sqrt(&diagonal)?;
    let scaled = a::div(&a::div(&c, &unsqueeze(&spread, 1)?)?, &unsqueeze(&spread, 0)?)?;
    if c.dtype().is_complex() {
        return Ok(scaled);
    }
    let bound = |x: f64| Some(Operand::Scalar(Scalar::Float(x)));
    power::clamp(&scaled, bound(-1.0), bound(1.0))
}
