//! Operators that read numbers (bounds, masks, counts) which each sample has of its own: computed for all samples where
//! the result's size does not depend on them, refused where it does.

use crate::base::{DType, Device, Error, Result};
use crate::operator::V;
use crate::operator::Value;
use crate::ops::creation::create;
use crate::ops::elementwise::{arithmetic as a, formula};
use crate::ops::indexing::index::{gather, numbers};
use crate::ops::reduction::{reduce, scan};
use crate::ops::shape::view::{expand, ints, reshape, unsqueeze};
use crate::tensor::Tensor;

/// What has a shape that nobody knows before the values are.
pub fn refuse_dynamic(name: &str) -> Error {
    Error::runtime(format!(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}. \
         Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    ))
}

/// What gives Python a number or a list.
pub fn refuse_rule(name: &str) -> Error {
    Error::runtime(format!(
        "Batching rule not implemented for aten::{name}. We could not generate a fallback."
    ))
}

pub fn refuse_mask() -> Error {
    Error::runtime(
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with \
         a boolean mask.",
    )
}

fn counted(n: usize, device: Device) -> Result<Tensor> {
    numbers(0, 1, n, device).map(Tensor::new)
}

/// `steps` numbers from `start` to `end`, from both sides so that both ends are met.
pub fn spaced(start: &Value, end: &Value, steps: usize, dtype: DType) -> Result<Tensor> {
    let value = |v: &Value| match v {
        Value::Tensor(t) if t.ndim() > 0 => Err(Error::runtime(
            "linspace only supports 0-dimensional start and end tensors, but got start with dimension(s) above 0.",
        )),
        Value::Tensor(t) => Ok(V::from(create::to_dtype(t, dtype)?)),
        Value::Scalar(s) => Ok(V::Scalar(*s)),
    };
    let device =
        [start, end].iter().find_map(|v| if let Value::Tensor(t) = v { Some(t.device()) } else { None });
    let (start, end) = (value(start)?, value(end)?);
    let number = counted(steps, device.unwrap_or(Device::Cpu))?;
    let place = V::from(create::to_dtype(&number, dtype)?);
    let last = steps.saturating_sub(1) as f64;
    let step = (&end - &start) / last.max(1.0);
    let (rising, falling) = (&step * &place + &start, &end - &step * (last - &place));
    formula::select(falling, rising, formula::lt(&number, steps.div_ceil(2) as f64)).tensor()
}

/// `x` with the elements of `source`, in order, where each sample's mask is true.
pub fn masked_scatter(x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    let (n, most) = (mask.numel(), source.numel() as i64 - 1);
    let hits = create::to_dtype(&reshape(mask, &[n])?, DType::I64)?;
    let order = a::sub(&scan::Cumsum::call(&hits, 0)?, 1i64)?;
    let order = a::minimum(&a::maximum(&order, 0i64)?, most)?;
    let values = gather(&reshape(source, &[source.numel()])?, 0, &order)?;
    formula::select(V::from(x), reshape(&values, &mask.shape())?, V::from(mask)).tensor()
}

/// For each of `size` places the number of the element that `repeats` puts there.
pub fn repeated_places(repeats: &Tensor, count: usize, size: Option<i64>) -> Result<Tensor> {
    let Some(size) = size else {
        return Err(Error::runtime(
            "repeat_interleave: vmapping over the `repeats` tensor requires the `output_size` argument to be specified, \
             because the size of the output equals the sum of `repeats`, which is data-dependent and may differ between \
             batch elements. Please pass output_size, e.g. output_size=int(repeats.sum(-1).max()).",
        ));
    };
    if repeats.ndim() > 1 {
        return Err(Error::runtime("repeat_interleave only accept 1D vector as repeat"));
    }
    let repeats = expand(&reshape(repeats, &[repeats.numel()])?, ints(&[count]))?;
    let ends = scan::Cumsum::call(&create::to_dtype(&repeats, DType::I64)?, 0)?;
    let places = unsqueeze(&counted(usize::try_from(size).unwrap_or(0), repeats.device())?, 1)?;
    let passed = create::to_dtype(&a::le(&ends, &places)?, DType::I64)?;
    reduce::Sum1::call(&passed, smallvec::smallvec![1], false)
}
