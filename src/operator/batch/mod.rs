//! Batching rules: what operators do to batched tensors. All examples of a batched tensor lie in one physical
//! tensor (see `tensor/levels/batched.rs`); a batching rule says what an operator does to that. An operator without a
//! rule raises an error, as no rule is a hidden loop over the examples.

pub mod dims;
mod place;
pub(crate) mod randomness;
pub(crate) mod refuse;
pub(crate) mod rows;
mod rules;
mod shared;
mod write;

pub use rules::{
    DimArgs, ReducedDims, StackResults, ToPhysical, WrapResults, along, dense, each, in_front, line, merged,
    no_rule, over, pointwise,
};
pub use shared::{has_escaped, own_samples};
pub use write::{check_operator, check_target, copy_into, overwrite};

use crate::base::{Dims, Error, Result, wrap_dim};
use crate::operator::primitives::views::{Expand, Permute, ints, reshape};
use crate::operator::row::Ints;
use crate::tensor::{Level, Levels, Tensor};

/// True if any of these is batched.
#[inline]
pub fn any(tensors: &[&Tensor]) -> bool {
    tensors.iter().any(|t| t.is_batched())
}

/// The union of the `vmap` levels of a call's operands, with their sizes.
pub struct Batch {
    pub levels: Levels,
    pub sizes: Dims,
}

impl Batch {
    pub fn of<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Batch {
        let mut found: smallvec::SmallVec<[(Level, usize); 4]> = smallvec::SmallVec::new();
        for t in tensors {
            let Some(batched) = t.as_batched() else { continue };
            let shape = batched.value.shape();
            for (&level, &size) in batched.levels.iter().zip(&shape) {
                if let Err(place) = found.binary_search_by_key(&level, |(l, _)| *l) {
                    found.insert(place, (level, size));
                }
            }
        }
        Batch {
            levels: found.iter().map(|(level, _)| *level).collect(),
            sizes: found.iter().map(|(_, size)| *size).collect(),
        }
    }

    /// The number of batch dimensions.
    pub fn k(&self) -> usize {
        self.levels.len()
    }

    /// A shape with the batch dimensions in front.
    pub fn shape(&self, seen: &[usize]) -> Dims {
        self.sizes.iter().chain(seen).copied().collect()
    }

    /// The physical tensor with one dimension for every level (of size 1 if `t` is not batched there), and
    /// the visible dimensions padded on the left to `rank`.
    pub fn aligned(&self, t: &Tensor, rank: usize) -> Result<Tensor> {
        if let Some(t) = self.own_samples(t)? {
            return self.aligned(&t, rank);
        }
        let (own, seen) = (t.as_batched(), t.shape());
        let value = own.map_or(t, |b| &b.value);
        let pad = rank.saturating_sub(seen.len());
        if own.is_some_and(|b| b.levels == self.levels) && pad == 0 {
            return Ok(value.clone());
        }
        let has = |level: &Level| own.is_some_and(|b| b.levels.contains(level));
        let size = |(level, &n): (&Level, &usize)| if has(level) { n } else { 1 };
        let mut shape: Dims = self.levels.iter().zip(&self.sizes).map(size).collect();
        shape.extend(std::iter::repeat_n(1, pad));
        shape.extend_from_slice(&seen);
        reshape(value, &shape)
    }

    /// The physical tensor with a dimension for every level, expanded where `t` is not batched.
    pub fn full(&self, t: &Tensor) -> Result<Tensor> {
        let aligned = self.aligned(t, 0)?;
        let shape = self.shape(&t.shape());
        if aligned.shape() == shape { Ok(aligned) } else { Expand::call(&aligned, ints(&shape)) }
    }

    /// The batched tensor of a physical tensor that has all levels.
    pub fn wrap(&self, physical: Tensor) -> Tensor {
        Tensor::batched(physical, self.levels.clone())
    }

    /// A visible dimension as a physical one; `rank` is the number of visible dimensions.
    pub fn dim(&self, dim: i64, rank: usize) -> Result<i64> {
        Ok((wrap_dim(dim, rank)? + self.k()) as i64)
    }

    pub fn dims(&self, dims: &[i64], rank: usize) -> Result<Ints> {
        dims.iter().map(|&d| self.dim(d, rank)).collect()
    }

    /// The number of visible dimensions of a physical tensor.
    pub fn rank(&self, physical: &Tensor) -> usize {
        physical.ndim() - self.k()
    }
}

/// Moves one dimension by a permutation; does nothing if it is already in place.
pub fn move_dim(t: &Tensor, from: usize, to: usize) -> Result<Tensor> {
    if from == to {
        return Ok(t.clone());
    }
    let mut order: Ints = (0..t.ndim() as i64).filter(|&d| d != from as i64).collect();
    order.insert(to, from as i64);
    Permute::call(t, order)
}

impl Batch {
    /// The physical tensor as it was before the innermost level was entered, and the position of that level's
    /// batch dimension. `None` if that was the first one.
    fn as_given(&self, t: &Tensor) -> Result<Option<(Tensor, usize)>> {
        match t.as_batched().filter(|b| b.place > 0 && b.levels == self.levels) {
            Some(b) => Ok(Some((move_dim(&b.value, self.k() - 1, self.k() - 1 + b.place)?, b.place))),
            None => Ok(None),
        }
    }

    /// The batched tensor of a result that was computed from [`Batch::as_given`].
    fn wrap_given(&self, made: &Tensor, place: usize) -> Result<Tensor> {
        let value = move_dim(made, self.k() - 1 + place, self.k() - 1)?;
        Ok(Tensor::batched_at(value, self.levels.clone(), place, None))
    }
}

/// Makes the batch dimension of `level` an ordinary dimension again, at `dim`.
pub fn remove_dim(t: &Tensor, level: Level, size: usize, dim: i64) -> Result<Tensor> {
    let at = wrap_dim(dim, t.ndim() + 1)?;
    if let Some(batched) = t.as_batched()
        && let Some(place) = batched.levels.iter().position(|&l| l == level)
    {
        let innermost = place + 1 == batched.levels.len();
        if let Some(given) =
            batched.given.as_ref().filter(|g| innermost && batched.place == at && has_former_shape(g, t, at))
        {
            return Ok(given.clone());
        }
        let mut levels = batched.levels.clone();
        levels.remove(place);
        let value = move_dim(&batched.value, place, levels.len() + at)?;
        return Ok(Tensor::batched(value, levels));
    }
    shared::expanded(t, level, size, at)
}

/// True if `given` still has the shape that it had when its dimension `at` became the batch dimension of `t`.
fn has_former_shape(given: &Tensor, t: &Tensor, at: usize) -> bool {
    let mut shape = given.shape();
    at < shape.len() && {
        shape.remove(at);
        shape == t.shape()
    }
}

impl Batch {
    /// A tensor whose first dimensions are the batch dimensions of these levels.
    pub fn lowered(&self, t: &Tensor) -> Result<Tensor> {
        let mut t = t.clone();
        for (at, (&level, &size)) in self.levels.iter().zip(&self.sizes).enumerate() {
            t = remove_dim(&t, level, size, at as i64)?;
        }
        Ok(t)
    }

    /// A batched tensor: the first dimensions of `t` become the batch dimensions of these levels.
    pub fn raised(&self, t: &Tensor) -> Result<Tensor> {
        raised(&self.levels, t)
    }
}

fn raised(own: &Levels, grad: &Tensor) -> Result<Tensor> {
    let mut levels = grad.as_batched().map(|b| b.levels.clone()).unwrap_or_default();
    let mut value = grad.physical().clone();
    for &level in own {
        let k = levels.len();
        let place = levels.binary_search(&level).err();
        let place =
            place.ok_or_else(|| Error::runtime("vmap: a gradient is already batched at this level"))?;
        value = move_dim(&value, k, place)?;
        levels.insert(place, level);
    }
    Ok(Tensor::batched(value, levels))
}
