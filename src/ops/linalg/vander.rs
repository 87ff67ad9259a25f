//! Vandermonde matrices: the columns are powers of a vector.
#![allow(non_snake_case, reason = "a parameter of PyTorch's is called N")]

use crate::operator::primitives::constant::ones;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::ints;
use crate::ops::prelude::*;
use crate::ops::reduction::scan::cumprod;
use crate::ops::shape::join::cat;
use crate::ops::shape::rearrange::flip;
use crate::ops::shape::squeeze::unsqueeze;
use crate::ops::shape::view::expand;

/// Build a Vandermonde matrix: the powers of a vector's elements, as columns.
///
/// Args:
///     x: the vector.
///     N: number of columns; the length of `x` if not given.
///     increasing: whether the powers increase from left to right.
///
/// Examples:
///     >>> torch.vander(torch.tensor([1, 2, 3]))
///     tensor([[1, 1, 1],
///             [4, 2, 1],
///             [9, 3, 1]])
#[operator(function, name = "vander", sample = "fixed([(3,)], lambda x: T.vander(x, 4))")]
pub fn vander(x: &Tensor, N: Option<i64>, #[default(false)] increasing: bool) -> Result<Tensor> {
    if x.ndim() != 1 {
        return Err(Error::runtime("x must be a one-dimensional tensor."));
    }
    let rows = x.shape()[0];
    let n = N.unwrap_or(rows as i64);
    let Ok(columns) = usize::try_from(n) else { return Err(Error::runtime("N must be non-negative.")) };
    let dtype = x.dtype().promoted_with(DType::I64)?;
    let first = ones(&[rows, columns.min(1)], dtype, x.device())?;
    let made = if columns > 1 {
        let repeated = expand(&unsqueeze(&to_dtype(x, dtype)?, 1)?, Ints::from_slice(&[rows as i64, n - 1]))?;
        cat(&[first, cumprod(&repeated, 1, None)?], 1)?
    } else {
        first
    };
    if increasing { Ok(made) } else { flip(&made, Sizes(Ints::from_slice(&[1]))) }
}

/// Build Vandermonde matrices: the powers of the elements from 0 on, as columns.
///
/// Args:
///     x: vector or batch of vectors.
///     N: number of columns; the length of the vectors if not given.
///
/// Examples:
///     >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
///     tensor([[1, 1, 1],
///             [1, 2, 4],
///             [1, 3, 9]])
#[operator(function, space = "linalg", sample = "on_host(fixed([(3,)], lambda x: T.linalg.vander(x)))")]
pub fn linalg_vander(x: &Tensor, #[keyword] N: Option<i64>) -> Result<Tensor> {
    let dtype = x.dtype();
    if dtype == DType::Bool || dtype.size() == 2 && dtype.is_differentiable() {
        return Err(Error::not_implemented(format!(
            "linalg.vander supports floating point, complex, and integer tensors, but got {}",
            dtype.scalar_name()
        )));
    }
    let line = if x.ndim() == 0 { unsqueeze(x, 0)? } else { x.clone() };
    let (x, shape) = (&line, line.shape());
    let n = N.unwrap_or(shape[shape.len() - 1] as i64);
    if n <= 1 && (N.is_some() || x.numel() == 1) {
        return Err(Error::runtime("N must be greater than 1."));
    }
    let mut wide = ints(&shape);
    wide.push((n - 1).max(0));
    let column = unsqueeze(x, -1)?;
    let mut one = shape.clone();
    one.push(1);
    let dtype = if dtype.is_differentiable() { dtype } else { DType::I64 };
    let first = ones(&one, dtype, x.device())?;
    let powers = cumprod(&expand(&column, wide)?, -1, None)?;
    cat(&[first, powers], -1)
}
