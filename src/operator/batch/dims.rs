//! Adding and removing batch dimensions: the beginning and end of `vmap`.

use crate::base::{Result, wrap_dim};
use crate::operator::batch::{Batch, move_dim, remove_dim};
use crate::operator::primitives::views::alias;
use crate::tensor::{Batched, Level, Tensor};

/// Makes dimension `dim` of `t` the batch dimension of `level`, which is above all levels at which `t` is
/// batched.
pub fn add_dim(t: &Tensor, dim: i64, level: Level) -> Result<Tensor> {
    let dim = wrap_dim(dim, t.ndim())?;
    let mut levels = t.as_batched().map(|b| b.levels.clone()).unwrap_or_default();
    let k = levels.len();
    levels.push(level);
    let value = move_dim(t.physical(), k + dim, k)?;
    let value = if value.same(t.physical()) { alias(&value)? } else { value };
    Ok(Tensor::batched_at(value, levels, dim, Some(t.clone())))
}

/// The tensor with all examples of the innermost level, and its batch dimension. An unbatched tensor is
/// returned as it is.
pub fn samples(t: &Tensor) -> (Option<usize>, Tensor) {
    match t.as_batched().and_then(|batched| Some((batched, batched.levels.split_last()?))) {
        Some((batched, (_, outer))) => {
            let (place, whole) = whole(batched, outer);
            (Some(place), whole)
        }
        None => (None, t.clone()),
    }
}

/// The tensor with all examples of the innermost level, and its batch dimension; `outer` are the other
/// levels.
fn whole(batched: &Batched, outer: &[Level]) -> (usize, Tensor) {
    let (place, lead) = (batched.place, outer.len());
    if let Some(given) = &batched.given {
        return (place, given.clone());
    }
    let outer = || outer.iter().copied().collect();
    match move_dim(&batched.value, lead, lead + place) {
        Ok(value) => (place, Tensor::batched(value, outer())),
        Err(_) => (0, Tensor::batched(batched.value.clone(), outer())),
    }
}

/// `t` batched only at `level`, with that batch dimension in front; `None` if it is not batched there.
pub fn unwrap_level(t: &Tensor, level: Level) -> Result<Option<Tensor>> {
    match t.as_batched() {
        Some(batched) if batched.levels.contains(&level) => remove_dim(t, level, 0, 0).map(Some),
        _ => Ok(None),
    }
}

/// Converts a gradient for a root of the graph: its batch dimensions become those of the root's physical
/// tensor; other levels stay batched.
pub fn into_graph(root: &Tensor, grad: &Tensor) -> Result<Tensor> {
    Batch::of([root]).lowered(grad)
}

/// Converts a gradient that the graph returned for `input` to a batched tensor like `input`.
pub fn out_of_graph(input: &Tensor, grad: &Tensor) -> Result<Tensor> {
    Batch::of([input]).raised(grad)
}
