//! `bincount`, `histc` and other counts of values.

use crate::operator::primitives::constant::{ones, zeros};
use crate::operator::primitives::copies::to_dtype;
use crate::ops::creation::factories::detach;
use crate::ops::indexing::masked::masked_select;
use crate::ops::indexing::scatter::index_add;
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::{max, min};
use crate::ops::shape::view::flatten;

/// Count how often each value occurs in a vector of non-negative integers.
///
/// Args:
///     input: vector of non-negative integers.
///     weights: if given, weights of the same shape, which are summed instead of counted.
///     minlength: least length of the result.
///
/// Examples:
///     >>> torch.bincount(torch.tensor([0, 1, 1, 3]))
///     tensor([1, 2, 0, 1])
///     >>> torch.bincount(torch.tensor([0, 1, 1]), weights=torch.tensor([0.5, 1.0, 2.0]))
///     tensor([0.5000, 3.0000])
#[operator(function, method, unrecorded, sample = "underived")]
pub fn bincount(input: &Tensor, weights: Option<&Tensor>, #[default(0)] minlength: i64) -> Result<Tensor> {
    if input.dtype().is_differentiable() || input.dtype() == DType::Bool {
        return Err(Fault::NoKernel { op: "bincount_cpu", dtype: input.dtype() }.into());
    }
    let least = usize::try_from(minlength).map_err(|_| Error::runtime("minlength should be >= 0"))?;
    let refused = || Error::runtime("bincount only supports 1-d non-negative integral inputs.");
    if input.ndim() != 1 {
        return Err(refused());
    }
    if let Some(weights) = weights
        && (weights.ndim() != 1 || weights.numel() != input.numel())
    {
        return Err(Error::runtime("weights should be 1-d and have the same length as input"));
    }
    let dtype = match weights.map(Tensor::dtype) {
        None => DType::I64,
        Some(DType::F32) => DType::F32,
        Some(_) => DType::F64,
    };
    if input.numel() == 0 {
        return zeros(&[least], DType::I64, input.device());
    }
    if min(input)?.item()?.as_f64() < 0.0 {
        return Err(refused());
    }
    let largest = max(&to_dtype(input, DType::I64)?)?.item()?.as_f64() as usize;
    let count = (largest.checked_add(1).ok_or_else(refused)?).max(least);
    let weights = match weights {
        Some(weights) => to_dtype(&detach(weights)?, dtype)?,
        None => ones(&input.shape(), dtype, input.device())?,
    };
    index_add(
        &zeros(&[count], dtype, input.device())?,
        0,
        &to_dtype(input, DType::I64)?,
        &weights,
        Scalar::Int(1),
    )
}

/// Compute a histogram with bins of equal width.
///
/// Elements outside `[min, max]` are not counted. If both are 0, the range is that of the elements.
///
/// Args:
///     bins: number of bins.
///     min: lower end of the range.
///     max: upper end of the range.
///
/// Examples:
///     >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
///     tensor([0., 2., 1., 0.])
#[operator(function, method, unrecorded, out(declared), sample = "underived")]
pub fn histc(
    input: &Tensor,
    #[default(100)] bins: i64,
    #[default(Scalar::Int(0))] min: Scalar,
    #[default(Scalar::Int(0))] max: Scalar,
) -> Result<Tensor> {
    if bins <= 0 {
        return Err(Error::runtime(format!(
            "torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
        )));
    }
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "histogram_cpu", dtype: input.dtype() }.into());
    }
    if input.dtype().size() == 2 {
        // Half precision cannot represent all counts above 256 (bfloat16) or 2,048 (float16).
        return to_dtype(&histc(&to_dtype(input, DType::F32)?, bins, min, max)?, input.dtype());
    }
    let x = flatten(&detach(input)?, 0, -1)?;
    let (mut low, mut high) = (min.as_f64(), max.as_f64());
    if low == high && x.numel() > 0 {
        (low, high) = (super::extrema::min(&x)?.item()?.as_f64(), super::extrema::max(&x)?.item()?.as_f64());
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if !(low.is_finite() && high.is_finite()) {
        let range = format!("[{low}, {high}]").to_lowercase();
        return Err(Error::runtime(format!("torch.histc: range of {range} is not finite")));
    }
    if low > high {
        return Err(Error::runtime("torch.histc: max must be larger than min"));
    }
    let inside = both(le(low, V::from(&x)), le(V::from(&x), high)).tensor()?;
    let x = masked_select(&x, &inside)?;
    let place = floor((V::from(&x) - low) * (bins as f64 / (high - low)));
    let place = minimum(place, (bins - 1) as f64).cast(DType::I64).tensor()?;
    let one = ones(&x.shape(), x.dtype(), x.device())?;
    index_add(&zeros(&[bins as usize], x.dtype(), x.device())?, 0, &place, &one, Scalar::Int(1))
}
