//! Rules of reading and writing by index tensors on several dimensions: they get a number for every sample beside them.

use crate::base::{Dims, Error, Result, broadcast};
use crate::ops::indexing::index as single;
use crate::ops::indexing::index::numbers;
use crate::ops::shape::view::{permute, reshape};
use crate::tensor::Tensor;
use crate::transforms::vmap::{Batch, Ints};

/// An advanced index over samples, as one over physical tensors; and how the result's dimensions lie.
struct Advanced {
    indices: Vec<Option<Tensor>>,
    /// The dimensions of the physical result in the order that the function sees.
    order: Ints,
}

/// What an advanced index gives: the shape of the index, where it goes, and the dimensions beside it.
struct Seen {
    block: usize,
    before: usize,
    regular: usize,
}

fn seen(rank: usize, indices: &[Option<Tensor>]) -> Result<Seen> {
    let used: Vec<usize> = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
    let mut block = Dims::new();
    for index in indices.iter().flatten() {
        block = broadcast(&block, &index.shape())
            .map_err(|_| Error::index("shape mismatch: indexing tensors could not be broadcast together"))?;
    }
    let adjacent = used.windows(2).all(|w| w[1] == w[0] + 1);
    Ok(Seen {
        block: block.len(),
        before: if adjacent { used.first().copied().unwrap_or(0) } else { 0 },
        regular: rank.saturating_sub(used.len()),
    })
}

fn advanced(b: &Batch, rank: usize, indices: &[Option<Tensor>]) -> Result<Advanced> {
    let Seen { block, before, regular } = seen(rank, indices)?;
    let k = b.k();
    let batched = indices.iter().flatten().any(Tensor::is_batched);
    let mut all: Vec<Option<Tensor>> = Vec::new();
    if !batched {
        all.resize(k, None);
        all.extend(indices.iter().cloned());
        let used: Vec<usize> = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
        let adjacent = used.windows(2).all(|w| w[1] == w[0] + 1);
        // Side by side the index stays in place, behind the batch; apart it comes first, before the batch.
        let order = if adjacent {
            (0..(k + block + regular) as i64).collect()
        } else {
            let (block, k) = (block as i64, k as i64);
            (block..block + k).chain(0..block).chain(block + k..block + k + regular as i64).collect()
        };
        return Ok(Advanced { indices: all, order });
    }
    let device = indices.iter().flatten().next().map_or(crate::base::Device::Cpu, Tensor::device);
    for (at, &size) in b.sizes.iter().enumerate() {
        let mut shape: Dims = smallvec::smallvec![1; k + block];
        shape[at] = size;
        all.push(Some(reshape(&Tensor::new(numbers(0, 1, size, device)?), &shape)?));
    }
    for index in indices {
        all.push(index.as_ref().map(|t| b.aligned(t, block)).transpose()?);
    }
    // The batch and the index come first, the other dimensions in their order.
    let (k, block, before) = (k as i64, block as i64, before as i64);
    let rest = k + block;
    let order = (0..k)
        .chain(rest..rest + before)
        .chain(k..rest)
        .chain(rest + before..rest + regular as i64)
        .collect();
    Ok(Advanced { indices: all, order })
}

fn in_order(order: &[i64]) -> bool {
    order.iter().enumerate().all(|(i, &d)| i as i64 == d)
}

fn operands<'a>(t: &'a Tensor, indices: &'a [Option<Tensor>], values: Option<&'a Tensor>) -> Batch {
    Batch::of(std::iter::once(t).chain(indices.iter().flatten()).chain(values))
}

pub fn index(t: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    let b = operands(t, indices, None);
    let how = advanced(&b, t.ndim(), indices)?;
    let made = single::index(&b.full(t)?, &how.indices)?;
    Ok(b.wrap(if in_order(&how.order) { made } else { permute(&made, how.order)? }))
}

/// The values of a write as they lie in the physical index's result.
fn arranged(b: &Batch, how: &Advanced, values: &Tensor) -> Result<Tensor> {
    let values = b.aligned(values, how.order.len() - b.k())?;
    if in_order(&how.order) {
        return Ok(values);
    }
    let mut back: Ints = smallvec::smallvec![0; how.order.len()];
    for (i, &d) in how.order.iter().enumerate() {
        back[d as usize] = i as i64;
    }
    permute(&values, back)
}

pub fn index_put(
    t: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    let b = operands(t, indices, Some(values));
    let how = advanced(&b, t.ndim(), indices)?;
    let values = arranged(&b, &how, values)?;
    Ok(b.wrap(single::index_put(&b.full(t)?, &how.indices, &values, accumulate)?))
}

pub fn index_put_into(
    whole: &Tensor,
    part: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    let mut others: Vec<&Tensor> = indices.iter().flatten().collect();
    others.push(values);
    crate::transforms::vmap::write::check_target(part, &others)?;
    let b = operands(part, &[], None);
    let how = advanced(&b, part.ndim(), indices)?;
    let values = arranged(&b, &how, values)?;
    single::index_put_into(whole.physical(), part.physical(), &how.indices, &values, accumulate)
}
