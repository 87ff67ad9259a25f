//! Reductions: many elements to one.

use super::kernel::{drop_dims, reduce};
use super::macros::{compose, ops};
use super::row::Ints;
use super::view::{expand, ints};
use crate::base::{DType, Dims, Error, Fold, Result, wrap_dim};
use crate::tensor::Tensor;

/// The dimensions to reduce, wrapped and checked; none given (or an empty list) means all.
pub fn dims_or_all(dims: Option<&[i64]>, ndim: usize) -> Result<Dims> {
    match dims {
        None | Some([]) => Ok((0..ndim).collect()),
        Some(dims) => {
            let mut out = Dims::new();
            for &d in dims {
                let d = wrap_dim(d, ndim)?;
                if out.contains(&d) {
                    return Err(Error::runtime(format!("dim {d} appears multiple times in the list of dims")));
                }
                if ndim > 0 {
                    out.push(d);
                }
            }
            Ok(out)
        }
    }
}

/// Sums of integers and bools are int64.
fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::I64 }
}

ops! { "reduce";
    /// Sum of all elements.
    [hidden] fn sum_all(input) -> y {
        let body = input.body();
        let all: Dims = (0..body.layout.ndim()).collect();
        Ok(drop_dims(reduce(Fold::Sum, &body, &all, sum_dtype(body.dtype))?, &all))
    }
    input: |g, at| g.unreduce(&at, &None, false);
    /// Sum over dimensions.
    [hidden] fn sum_dims(input; dim: Ints, keepdim: bool) -> y {
        let body = input.body();
        let dims = dims_or_all(Some(&dim), body.layout.ndim())?;
        let out = reduce(Fold::Sum, &body, &dims, sum_dtype(body.dtype))?;
        Ok(if keepdim { out } else { drop_dims(out, &dims) })
    }
    input: |g, at, dim, keepdim| g.unreduce(&at, &Some(dim), keepdim);
    /// Mean of all elements.
    [hidden] fn mean_all(input) -> y {
        let sum = crate::tensor::mode::with_grad(false, || sum_all(input))?;
        let n = input.numel() as f64;
        let mean = super::arithmetic::div(&sum, n)?;
        let body = mean.body().clone();
        Ok(body)
    }
    input: |g, at| (g / crate::base::numel(&at.shape) as f64).unreduce(&at, &None, false);
    /// Mean over dimensions.
    [hidden] fn mean_dims(input; dim: Ints, keepdim: bool) -> y {
        let sum = crate::tensor::mode::with_grad(false, || sum_dims(input, dim.clone(), keepdim))?;
        let n = count(&input.shape(), Some(&dim))?;
        let mean = super::arithmetic::div(&sum, n)?;
        let body = mean.body().clone();
        Ok(body)
    }
    input: |g, at, dim, keepdim| (g / count(&at.shape, Some(&dim))?).unreduce(&at, &Some(dim), keepdim);
}

/// How many elements each result is reduced from.
pub fn count(shape: &[usize], dims: Option<&[i64]>) -> Result<f64> {
    Ok(dims_or_all(dims, shape.len())?.iter().map(|&d| shape[d]).product::<usize>() as f64)
}

/// Sum over `dim` (all by default), in `dtype` when given.
pub fn sum(input: &Tensor, dim: Option<Ints>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let input = match dtype {
        Some(dtype) => super::create::to_dtype(input, dtype)?,
        None => input.clone(),
    };
    match dim {
        None if !keepdim => sum_all(&input),
        dim => sum_dims(&input, dim.unwrap_or_default(), keepdim),
    }
}

/// Undoes broadcasting: the sum of `t` to `shape`, which broadcasts to t's.
pub fn sum_to(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let have = t.shape();
    if have.as_slice() == shape {
        return Ok(t.clone());
    }
    let lead = have.len().saturating_sub(shape.len());
    let dims: Ints = (0..have.len())
        .filter(|&i| i < lead || (shape[i - lead] == 1 && have[i] != 1))
        .map(|i| i as i64)
        .collect();
    let summed = if dims.is_empty() { t.clone() } else { sum_dims(t, dims, true)? };
    super::view::reshape(&summed, shape)
}

/// Stretches a reduction's gradient over `shape`.
pub fn unreduce(g: &Tensor, shape: &[usize], dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let reduced = dims_or_all(dims, shape.len())?;
    let kept = super::kernel::kept_shape(shape, &reduced);
    let g = if keepdim { g.clone() } else { super::view::reshape(g, &kept)? };
    expand(&g, ints(shape))
}

mod more {
    use super::*;
    compose! { "reduce";
        /// Sum of all elements, or over dimensions.
        fn sum_(input: Tensor, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            super::sum(&input, dim, keepdim, dtype)
        }
        /// Mean of all elements, or over dimensions.
        fn mean(input: Tensor, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            let input = match dtype {
                Some(dtype) => crate::ops::create::to_dtype(&input, dtype)?,
                None => input,
            };
            if !input.dtype().is_float() {
                return Err(Error::runtime(format!(
                    "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. \
                     Got: {}",
                    input.dtype().scalar_name()
                )));
            }
            match dim {
                None if !keepdim => mean_all(&input),
                dim => mean_dims(&input, dim.unwrap_or_default(), keepdim),
            }
        }
    }
}
pub use more::{COMPOSED, mean};
