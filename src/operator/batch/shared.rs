//! Unbatched operands beside batched ones. Broadcasting mostly suffices, but two kinds are batched first:
//! operands for which a transform inside the `vmap` needs a gradient for each example, and operands whose
//! tangents differ between examples.

use crate::base::{Error, Layout, Result};
use crate::operator::batch::{Batch, move_dim, raised};
use crate::operator::primitives::copies::clone_dense;
use crate::operator::primitives::sums::Sum1;
use crate::operator::primitives::views::{Expand, Unsqueeze, ints};
use crate::tensor::levels::tangents::DualLevel;
use crate::tensor::levels::vmap::{is_live, reversed_within};
use crate::tensor::{Level, Tensor, any_requires_grad};
use gradiron_macros::primitive;
use smallvec::SmallVec;

impl Batch {
    /// The tensor batched at all these levels, if it must be.
    pub fn own_samples(&self, t: &Tensor) -> Result<Option<Tensor>> {
        if !self.levels.iter().all(|&level| is_live(level)) {
            return Err(escaped());
        }
        let own = t.as_batched().map(|b| b.levels.as_slice()).unwrap_or_default();
        let needs = |level: &Level| !own.contains(level) && (moves_at(t, *level) || is_wanted(t, *level));
        if self.levels.iter().any(needs) { self.lowered(t).map(|t| Some(self.wrap(t))) } else { Ok(None) }
    }

    pub fn own_samples_of(&self, tensors: &[&Tensor]) -> Result<SmallVec<[Option<Tensor>; 4]>> {
        tensors.iter().map(|t| self.own_samples(t)).collect()
    }
}

/// The operands of a call, each batched if it must be.
pub fn own_samples(tensors: &[&Tensor]) -> Result<SmallVec<[Option<Tensor>; 4]>> {
    Batch::of(tensors.iter().copied()).own_samples_of(tensors)
}

/// True if a batched tensor outlived its `vmap`.
pub fn has_escaped(t: &Tensor) -> bool {
    t.as_batched().is_some_and(|batched| !batched.levels.iter().all(|&level| is_live(level)))
}

#[cold]
fn escaped() -> Error {
    Error::runtime(
        "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see \
         https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in \
         `gen_vmap_plumbing`",
    )
}

fn is_wanted(t: &Tensor, level: Level) -> bool {
    reversed_within(level) && any_requires_grad([t])
}

/// True if a tangent is batched at this level.
fn moves_at(t: &Tensor, level: Level) -> bool {
    let physical = t.physical();
    physical.is_dual()
        && physical.dual_levels().into_iter().filter_map(|l| physical.tangent(l)).any(|tangent| {
            tangent.as_batched().is_some_and(|b| b.levels.contains(&level)) || moves_at(&tangent, level)
        })
}

/// A tensor that is not batched at `level`, with a new dimension of that size: an expanded view, or a copy if
/// its tangents differ between examples.
pub fn expanded(t: &Tensor, level: Level, size: usize, at: usize) -> Result<Tensor> {
    if moves_at(t, level) {
        let wide = clone_dense(&expanded(&t.without_tangents(), level, size, at)?)?;
        let own = Batch::of([&wide]);
        for (number, moving) in tangents(t)? {
            let moving = crate::operator::batch::remove_dim(&moving, level, size, at as i64)?;
            wide.physical().set_tangent(number, clone_dense(&own.lowered(&moving)?)?)?;
        }
        return Ok(wide);
    }
    let column = Unsqueeze::call(t, at as i64)?;
    if is_wanted(t, level) {
        return SpreadOut::call(&column, at as i64, size as i64, i64::from(level));
    }
    let mut shape = ints(&column.shape());
    shape[at] = size as i64;
    Expand::call(&column, shape)
}

/// Expands dimension `dim`, of size 1, over the `size` examples of a level (a view). For a transform that
/// began inside the level, the gradient stays batched, one for each example. Outside of it, the gradient is
/// the sum over the examples.
#[primitive(tangent = linear)]
impl SpreadOut {
    fn forward(input: &Tensor, dim: i64, size: i64, level: i64) -> Result<Layout> {
        let _ = level; // Only the derivative uses it.
        let mut sizes = ints(&input.shape());
        sizes[dim as usize] = size;
        input.body().layout.expand(&sizes)
    }
    fn d_input(g: &Tensor, dim: i64, level: i64) -> Result<Tensor> {
        collected(g, dim as usize, level as Level)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, size: i64, level: i64) -> Result<Tensor> {
        SpreadOut::call(&b.full(input)?, dim + b.k() as i64, size, level).map(|t| b.wrap(t))
    }
}

/// The tangents of a tensor, batched like the tensor.
fn tangents(t: &Tensor) -> Result<Vec<(DualLevel, Tensor)>> {
    let (physical, batch) = (t.physical(), Batch::of([t]));
    let each = |l| physical.tangent(l).map(|found| Ok((l, raised(&batch.levels, &found)?)));
    physical.dual_levels().into_iter().filter_map(each).collect()
}

/// The gradient of an expansion along `dim`: batched inside the level's `vmap`, summed outside.
pub fn collected(g: &Tensor, dim: usize, level: Level) -> Result<Tensor> {
    if !is_live(level) {
        return Sum1::call(g, smallvec::smallvec![dim as i64], true);
    }
    let mut levels = crate::tensor::Levels::new();
    levels.push(level);
    let batched = raised(&levels, &move_dim(g, dim, 0)?)?;
    Unsqueeze::call(&batched, dim as i64)
}
