//! Rules of rows that go along dimensions: reductions, scans, softmax, statistics. The dimensions move behind the batch.

use super::rules::{Rules, rules};
use super::{Batch, Ints};
use crate::base::Result;
use crate::ops::{reduce, scan, sort, unary, view};
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
    scan::cumsum_along(x; dim) => scanned(b, x, dim, scan::cumsum_along);
    scan::cumprod_along(x; dim) => scanned(b, x, dim, scan::cumprod_along);
    scan::log_cum_sum_exp(x; dim) => scanned(b, x, dim, scan::log_cum_sum_exp);
    sort::median_all(x) => sort::middle_along(&line(b, x)?, -1, false);
    sort::nanmedian_all(x) => sort::middle_along(&line(b, x)?, -1, true);
};
