//! Reductions: many elements to one.

use super::formal::{is_nan, select};
use super::kernel::{done, drop_dims, fork, kept_shape, reduce};
use super::macros::{compose, ops};
use super::row::Ints;
use super::value::V;
use super::view::{expand, ints};
use crate::base::{DType, Dims, Error, Fold, Result, wrap_dim};
use crate::tensor::{Body, Tensor, mode};

/// The dimensions to reduce, wrapped and checked; none given (or an empty list) means all.
pub fn dims_or_all(dims: Option<&[i64]>, ndim: usize) -> Result<Dims> {
    match dims {
        None | Some([]) => Ok((0..ndim).collect()),
        Some(dims) => {
            let mut out = Dims::new();
            for &d in dims {
                let d = wrap_dim(d, ndim)?;
                if out.contains(&d) {
                    return Err(Error::runtime(format!(
                        "dim {d} appears multiple times in the list of dims"
                    )));
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
    if dtype.is_differentiable() { dtype } else { DType::I64 }
}

/// Reduces over `dim` (all dimensions without it) and drops what was reduced, unless it is kept.
pub fn folded(fold: Fold, x: &Body, dim: Option<&[i64]>, keepdim: bool, dtype: DType) -> Result<Body> {
    let dims = dims_or_all(dim, x.layout.ndim())?;
    let out = reduce(fold, x, &dims, dtype)?;
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

fn mean_over(x: &Body, dims: &[usize]) -> Result<Body> {
    let out = Body::new(&kept_shape(x.shape(), dims), x.dtype, x.device())?;
    if out.numel() > 0 {
        fork!([&out, x], cpu: done(crate::cpu::reduce::mean(out.host()?, x.host()?, dims)),
            gpu: crate::gpu::mean(out.gpu()?, x.gpu()?, dims))?;
    }
    Ok(out)
}

fn averaged(x: &Body, dim: Option<&[i64]>, keepdim: bool) -> Result<Body> {
    let dims = dims_or_all(dim, x.layout.ndim())?;
    let out =
        if x.dtype.is_complex() { super::complex::mean(x, &dims, mean_over)? } else { mean_over(x, &dims)? };
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

ops! { "reduce";
    /// Sum of all elements.
    [hidden, linear] fn sum_all(input) -> y {
        let body = input.body();
        folded(Fold::Sum, &body, None, false, sum_dtype(body.dtype))
    }
    input: |g, at| g.unreduce(&at, &None, false);
    /// Sum over dimensions.
    [hidden, linear] fn sum_dims(input; dim: Ints, keepdim: bool) -> y {
        let body = input.body();
        folded(Fold::Sum, &body, Some(&dim), keepdim, sum_dtype(body.dtype))
    }
    input: |g, at, dim, keepdim| g.unreduce(&at, &Some(dim), keepdim);
    /// Mean of all elements.
    [hidden, linear] fn mean_all(input) -> y { averaged(&input.body(), None, false) }
    input: |g, at| g.unreduce(&at, &None, false) / crate::base::numel(&at.shape) as f64;
    /// Mean over dimensions.
    [hidden, linear] fn mean_dims(input; dim: Ints, keepdim: bool) -> y { averaged(&input.body(), Some(&dim), keepdim) }
    input: |g, at, dim, keepdim| g.unreduce(&at, &Some(dim.clone()), keepdim) / count(&at.shape, Some(&dim))?;
    /// Product of all elements.
    [hidden] fn prod_all(input) -> y {
        let body = input.body();
        folded(Fold::Prod, &body, None, false, sum_dtype(body.dtype))
    }
    input: |g, input, y, at| if at.shape.is_empty() { g } else {
        all_but_one(g, input, y)
    };
    /// Product over one dimension.
    [hidden] fn prod_dim(input; dim: i64, keepdim: bool) -> y {
        let body = input.body();
        folded(Fold::Prod, &body, Some(&[dim]), keepdim, sum_dtype(body.dtype))
    }
    input: |g, input, y, at, dim, keepdim| {
        if at.shape.is_empty() { g } else {
            let kept = kept_shape(&at.shape, &[wrap_dim(dim, at.shape.len())?]);
            without_one(g.reshape(&kept), input, y.reshape(&kept), dim)
        }
    };
    /// Sum of the elements that are not NaN.
    [hidden] fn sum_numbers(input; dim: Option<Ints>, keepdim: bool) -> y {
        let numbers = quietly(|| zero_for_nan(input.into()).tensor())?;
        folded(Fold::Sum, &numbers, dim.as_deref(), keepdim, numbers.dtype)
    }
    input: |g, input, at, dim, keepdim| select(g.unreduce(&at, &dim, keepdim), 0.0, is_nan(input));
}

/// A body computed with operators that are not recorded.
pub fn quietly(compute: impl FnOnce() -> Result<Tensor>) -> Result<Body> {
    mode::with_grad(false, compute).map(|t| t.body().clone())
}

fn zero_for_nan(x: V) -> V {
    select(&x, 0.0, is_nan(&x))
}

/// The gradient of the product `y` of all elements.
fn all_but_one(g: V, x: V, y: V) -> V {
    if !x.is_batched() && matches!(has_zero(&x), Ok(false)) {
        return g * (y / x).conj();
    }
    let (shape, flat) = (x.shape(), x.clone().reshape(&[crate::base::numel(&x.shape())]));
    without_one(g.reshape(&[1]), flat, y.reshape(&[1]), 0).reshape(&shape)
}

/// The gradient of a product `y` along `dim`: `g` times the product of all elements but one.
fn without_one(g: V, x: V, y: V, dim: i64) -> V {
    if x.is_batched() {
        return g * x.then(|t| super::scan::exclusive_product(&t, dim));
    }
    match has_zero(&x) {
        // Where an element is zero, dividing it out of the product would be 0/0.
        Ok(true) => g * x.then(|t| super::scan::exclusive_product(&t, dim)).conj(),
        Ok(false) => g * (y / x).conj(),
        Err(e) => V::from(Err(e)),
    }
}

fn has_zero(x: &V) -> Result<bool> {
    Ok(x.clone().then(|t| logical::any_zero(&t)).tensor()?.item()?.as_bool())
}

/// How many elements each result is reduced from.
pub fn count(shape: &[usize], dims: Option<&[i64]>) -> Result<f64> {
    Ok(dims_or_all(dims, shape.len())?.iter().map(|&d| shape[d]).product::<usize>() as f64)
}

/// Sum over `dim` (all by default), in `dtype` when given.
pub fn sum(input: &Tensor, dim: Option<Ints>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    if dtype == Some(DType::Bool) {
        return any(&super::create::to_dtype(input, DType::Bool)?, dim, keepdim);
    }
    let input = match dtype {
        Some(dtype) => super::create::read_as(input, dtype)?,
        None => input.clone(),
    };
    match dim {
        None if !keepdim => sum_all(&input),
        dim => sum_dims(&input, dim.unwrap_or_default(), keepdim),
    }
}

/// Undoes broadcasting: the sum of `t` to `shape`, which broadcasts to t's.
pub fn sum_to(t: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if shape.is_empty() {
        return sum_all(t);
    }
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
    expand(&kept(g, shape.len(), dims, keepdim)?, ints(shape))
}

/// A reduction's result or gradient as if it had kept the `ndim` dimensions, unless it broadcasts as it is.
pub fn kept(y: &Tensor, ndim: usize, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let mut y = y.clone();
    if keepdim || y.ndim() == ndim || (y.ndim() == 0 && dims.is_none_or(<[i64]>::is_empty)) {
        return Ok(y);
    }
    let mut reduced = dims_or_all(dims, ndim)?;
    reduced.sort_unstable();
    for dim in reduced {
        y = super::view::unsqueeze(&y, dim as i64)?;
    }
    Ok(y)
}

mod logical {
    use super::*;
    ops! { "reduce";
        /// Whether all elements are not zero.
        [out] fn all(input; dim: Option<Ints> = None, keepdim: bool = false) -> y {
            let body = input.body();
            folded(Fold::All, &body, dim.as_deref(), keepdim, truth_dtype(body.dtype))
        }
        /// Whether any element is not zero.
        [out] fn any(input; dim: Option<Ints> = None, keepdim: bool = false) -> y {
            let body = input.body();
            folded(Fold::Any, &body, dim.as_deref(), keepdim, truth_dtype(body.dtype))
        }
        /// How many elements are not zero.
        fn count_nonzero(input; dim: Option<Ints> = None) -> y {
            let marks = quietly(|| crate::ops::arithmetic::ne(input, 0i64))?;
            folded(Fold::Sum, &marks, dim.as_deref(), false, DType::I64)
        }
        /// Whether any element is zero.
        [hidden] fn any_zero(input) -> y {
            let marks = quietly(|| crate::ops::unary::logical_not(input))?;
            folded(Fold::Any, &marks, None, false, DType::Bool)
        }
    }

    /// uint8 once stood for truth, and still does here.
    fn truth_dtype(dtype: DType) -> DType {
        if dtype == DType::U8 { DType::U8 } else { DType::Bool }
    }
}
pub use logical::{ROWS as LOGICAL, all, any, any_zero, count_nonzero};

mod more {
    use super::*;
    use crate::ops::create::read_as;

    fn as_dtype(input: Tensor, dtype: Option<DType>) -> Result<Tensor> {
        dtype.map_or(Ok(input.clone()), |dtype| read_as(&input, dtype))
    }

    compose! { "reduce";
        /// Sum of all elements, or over dimensions.
        [out] fn sum_(input: Tensor, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            super::sum(&input, dim, keepdim, dtype)
        }
        /// Mean of all elements, or over dimensions.
        [out] fn mean(input: Tensor, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            let input = as_dtype(input, dtype)?;
            if !input.dtype().is_differentiable() {
                return Err(Error::not_implemented(format!(
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
        /// Product of all elements, or over one dimension.
        [out] fn prod(input: Tensor, dim: Option<i64> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            let input = as_dtype(input, dtype)?;
            if dtype == Some(DType::Bool) {
                return all(&input, dim.map(|dim| smallvec::smallvec![dim]), keepdim);
            }
            match dim {
                None => prod_all(&input),
                Some(dim) => prod_dim(&input, dim, keepdim),
            }
        }
        /// Sum of the elements that are not NaN.
        [out] fn nansum(input: Tensor, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            if input.dtype().is_complex() {
                return Err(Error::not_implemented("nansum on CPU does not support complex inputs"));
            }
            if !input.dtype().is_float() {
                return super::sum(&input, dim, keepdim, dtype);
            }
            if dtype.is_some_and(|dtype| !dtype.is_differentiable()) {
                return super::sum(&zero_for_nan(V::from(input)).tensor()?, dim, keepdim, dtype);
            }
            super::sum_numbers(&as_dtype(input, dtype)?, dim, keepdim)
        }
        /// Mean of the elements that are not NaN.
        [out] fn nanmean(input: Tensor, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            if !input.dtype().is_float() {
                return Err(Error::not_implemented(format!(
                    "nanmean(): expected input to have floating point or complex dtype but got {}",
                    input.dtype().scalar_name()
                )));
            }
            let numbers = crate::ops::unary::logical_not(&crate::ops::unary::isnan(&input)?)?;
            let count = super::sum(&numbers, Some(dim.clone().unwrap_or_default()), keepdim, None)?;
            crate::ops::arithmetic::div(&super::sum_numbers(&as_dtype(input, dtype)?, dim, keepdim)?, &count)
        }
    }
}
pub use more::{COMPOSED, mean, prod};
