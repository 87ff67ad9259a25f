//! Rules of rows that go along dimensions: reductions, scans, softmax, statistics. The dimensions move behind the batch.

use super::rules::{Rules, rules};
use super::{Batch, Ints};
use crate::base::Result;
use crate::ops::{extrema, reduce, scan, sort, stats, unary, view};
use crate::tensor::Tensor;

/// A tensor and the dimensions to reduce, never none: a sample without dimensions is reduced over one of size 1.
fn over(b: &Batch, x: &Tensor, dims: Option<&[i64]>) -> Result<(Tensor, Ints, bool)> {
    let rank = b.rank(x);
    let seen = reduce::dims_or_all(dims, rank)?;
    if rank == 0 {
        return Ok((view::unsqueeze(x, -1)?, smallvec::smallvec![b.k() as i64], false));
    }
    Ok((x.clone(), seen.iter().map(|&d| (d + b.k()) as i64).collect(), true))
}

fn folded(
    b: &Batch,
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    fold: impl FnOnce(&Tensor, Ints, bool) -> Result<Tensor>,
) -> Result<Tensor> {
    let (x, dims, real) = over(b, x, dims)?;
    fold(&x, dims, keepdim && real)
}

/// Something along one dimension that leaves the shape as it is.
fn scanned(
    b: &Batch,
    x: &Tensor,
    dim: i64,
    scan: impl FnOnce(&Tensor, i64) -> Result<Tensor>,
) -> Result<Tensor> {
    let rank = b.rank(x);
    let at = b.dim(dim, rank)?;
    if rank > 0 {
        return scan(x, at);
    }
    view::squeeze_one(&scan(&view::unsqueeze(x, -1)?, at)?, -1)
}

/// All seen elements as one dimension, the last.
fn line(b: &Batch, x: &Tensor) -> Result<Tensor> {
    view::reshape(x, &b.shape(&[x.shape()[b.k()..].iter().product()]))
}

fn place(b: &Batch, x: &Tensor, dim: Option<i64>, keepdim: bool, largest: bool) -> Result<Tensor> {
    let find = if largest { extrema::argmax } else { extrema::argmin };
    let Some(dim) = dim else {
        let found = find(&line(b, x)?, Some(-1), false)?;
        let kept = if keepdim { b.rank(x) } else { 0 };
        return view::reshape(&found, &b.shape(&vec![1; kept]));
    };
    folded(b, x, Some(&[dim]), keepdim, |x, dims, keepdim| find(x, Some(dims[0]), keepdim))
}

pub const PHYSICAL: Rules = rules! { physical b;
    reduce::sum_all(x) => folded(b, x, None, false, reduce::sum_dims);
    reduce::sum_dims(x; dim, keepdim) => folded(b, x, Some(&dim), keepdim, reduce::sum_dims);
    reduce::mean_all(x) => folded(b, x, None, false, reduce::mean_dims);
    reduce::mean_dims(x; dim, keepdim) => folded(b, x, Some(&dim), keepdim, reduce::mean_dims);
    reduce::prod_all(x) => reduce::prod_dim(&line(b, x)?, -1, false);
    reduce::prod_dim(x; dim, keepdim) => folded(b, x, Some(&[dim]), keepdim, |x, dims, keepdim| reduce::prod_dim(x, dims[0], keepdim));
    reduce::sum_numbers(x; dim, keepdim) => folded(b, x, dim.as_deref(), keepdim, |x, dims, keepdim| reduce::sum_numbers(x, Some(dims), keepdim));
    reduce::all(x; dim, keepdim) => folded(b, x, dim.as_deref(), keepdim, |x, dims, keepdim| reduce::all(x, Some(dims), keepdim));
    reduce::any(x; dim, keepdim) => folded(b, x, dim.as_deref(), keepdim, |x, dims, keepdim| reduce::any(x, Some(dims), keepdim));
    reduce::count_nonzero(x; dim) => folded(b, x, dim.as_deref(), false, |x, dims, _| reduce::count_nonzero(x, Some(dims)));
    reduce::any_zero(x) => folded(b, &unary::logical_not(x)?, None, false, |x, dims, keepdim| reduce::any(x, Some(dims), keepdim));
    extrema::amax(x; dim, keepdim) => folded(b, x, Some(&dim), keepdim, extrema::amax);
    extrema::amin(x; dim, keepdim) => folded(b, x, Some(&dim), keepdim, extrema::amin);
    extrema::max_all(x) => folded(b, x, None, false, extrema::amax);
    extrema::min_all(x) => folded(b, x, None, false, extrema::amin);
    extrema::argmax(x; dim, keepdim) => place(b, x, dim, keepdim, true);
    extrema::argmin(x; dim, keepdim) => place(b, x, dim, keepdim, false);
    scan::cumsum_along(x; dim) => scanned(b, x, dim, scan::cumsum_along);
    scan::cumprod_along(x; dim) => scanned(b, x, dim, scan::cumprod_along);
    scan::log_cum_sum_exp(x; dim) => scanned(b, x, dim, scan::log_cum_sum_exp);
    stats::variance(x; dim, correction, keepdim) => folded(b, x, dim.as_deref(), keepdim, |x, dims, keepdim| stats::variance(x, Some(dims), correction, keepdim));
    stats::deviation(x; dim, correction, keepdim) => folded(b, x, dim.as_deref(), keepdim, |x, dims, keepdim| stats::deviation(x, Some(dims), correction, keepdim));
    stats::linalg_vector_norm(x; ord, dim, keepdim) => folded(b, x, dim.as_deref(), keepdim, |x, dims, keepdim| stats::linalg_vector_norm(x, ord, Some(dims), keepdim));
    sort::median_all(x) => sort::middle_along(&line(b, x)?, -1, false);
    sort::nanmedian_all(x) => sort::middle_along(&line(b, x)?, -1, true);
};
