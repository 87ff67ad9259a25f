//! Integration by the trapezoidal rule.

use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::views::reshape;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::sum;
use crate::ops::reduction::scan::cumsum;
use crate::ops::shape::rearrange::part;
use crate::ops::shape::slices::select;
use crate::ops::shape::squeeze::unsqueeze;

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

/// The last index of a dimension.
fn at_end(t: &Tensor, dim: i64) -> Result<i64> {
    if t.ndim() == 0 {
        return Err(Error::index("slice() cannot be applied to a 0-dim tensor."));
    }
    Ok(length(t, dim)? - 1)
}

/// The distances between the points `x`, broadcast along `dim` of `y`.
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

/// The sums of neighbours along a dimension.
fn neighbours(y: &Tensor, dim: i64) -> Result<Tensor> {
    let last = at_end(y, dim)?;
    a::add(&part(y, dim, 0, last)?, &part(y, dim, 1, last)?)
}

fn half(x: &Tensor) -> Result<Tensor> {
    a::div(x, Scalar::Float(2.0))
}

/// Zeros without the dimension `dim`, if that is empty.
fn zeros_if_empty(y: &Tensor, dim: i64) -> Result<Option<Tensor>> {
    let at = wrap_dim(dim, y.ndim())?;
    let mut shape = y.shape();
    if shape.get(at) != Some(&0) {
        return Ok(None);
    }
    shape.remove(at);
    zeros(&shape, y.dtype(), y.device()).map(Some)
}

/// Integrate `y` along a dimension by the trapezoidal rule.
///
/// Args:
///     y: values of the function.
///     x: points at which they were taken; if not given, they are `dx` apart.
///     dx: distance between neighboring points. Default: `1.0`
///     dim: dimension along which to integrate.
///
/// Examples:
///     >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]), dx=0.5)
///     tensor(2.)
///     >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 3.0]))
///     tensor(6.5000)
#[operator(function, alias = "trapz", sample = "over_dim(lambda y, dim: T.trapezoid(y, dim=dim, dx=0.5))")]
pub fn trapezoid(y: &Tensor, x: &Tensor, #[default(-1)] dim: i64) -> Result<Tensor> {
    length(y, dim)?;
    if let Some(empty) = zeros_if_empty(y, dim)? {
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
    if let Some(empty) = zeros_if_empty(y, dim)? {
        return Ok(empty);
    }
    without_truths("trapezoid", None, y)?;
    let ends = a::add(&select(y, dim, 0)?, &select(y, dim, -1)?)?;
    let all = sum(y, Some(Ints::from_slice(&[dim])), false, None)?;
    a::mul(&a::sub(&all, &a::mul(&ends, Scalar::Float(0.5))?)?, Scalar::Float(dx))
}

/// The result for an empty dimension.
fn no_areas(y: &Tensor, dim: i64) -> Result<Option<Tensor>> {
    if length(y, dim)? > 0 { Ok(None) } else { half(y).map(Some) }
}

/// Integrate `y` cumulatively along a dimension by the trapezoidal rule.
///
/// Args:
///     y: values of the function.
///     x: points at which they were taken; if not given, they are `dx` apart.
///     dx: distance between neighboring points. Default: `1.0`
///     dim: dimension along which to integrate; in the result it is shorter by one.
///
/// Examples:
///     >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
///     tensor([1.5000, 4.0000])
#[operator(function, sample = "over_dim(lambda y, dim: T.cumulative_trapezoid(y, dim=dim, dx=0.5))")]
pub fn cumulative_trapezoid(y: &Tensor, x: &Tensor, #[default(-1)] dim: i64) -> Result<Tensor> {
    without_truths("cumulative_trapezoid", Some(x), y)?;
    if let Some(empty) = no_areas(y, dim)? {
        return Ok(empty);
    }
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
    if let Some(empty) = no_areas(y, dim)? {
        return Ok(empty);
    }
    cumsum(&a::mul(&neighbours(y, dim)?, Scalar::Float(dx / 2.0))?, dim, None)
}
