//! In-place writes: the target must be batched at all levels of the values written.

use crate::base::{Error, Result};
use crate::operator::batch::Batch;
use crate::operator::pointwise::Pointwise;
use crate::operator::pointwise::clauses::Unbatched;
use crate::tensor::{Level, Tensor};

/// Returns an error if a batched value would be written into an unbatched tensor.
pub fn check_target(target: &Tensor, others: &[&Tensor]) -> Result<()> {
    match foreign_level(target, others) {
        Some(_) => Err(refusal("inplace arithmetic", "in a vmap")),
        None => Ok(()),
    }
}

/// Like [`check_target`], for a pointwise operator: PyTorch names those for which it has no rule.
pub fn check_operator(op: &Pointwise, target: &Tensor, others: &[&Tensor]) -> Result<()> {
    match foreign_level(target, others) {
        Some(level) if op.clauses.unbatched == Unbatched::NoRule => {
            let depth = crate::tensor::levels::vmap::depth_of(level).unwrap_or(1);
            Err(refusal(&format!("aten::{}_", op.row.name), &format!("at level {depth}")))
        }
        Some(_) => check_target(target, others),
        None => Ok(()),
    }
}

/// The innermost level at which some operand is batched and the target is not.
fn foreign_level(target: &Tensor, others: &[&Tensor]) -> Option<Level> {
    let own = target.as_batched().map(|b| b.levels.as_slice()).unwrap_or_default();
    let levels = |t: &&Tensor| t.as_batched().map(|b| b.levels.clone()).unwrap_or_default();
    others.iter().flat_map(levels).filter(|l| !own.contains(l)).max()
}

#[cold]
fn refusal(what: &str, place: &str) -> Error {
    Error::runtime(format!(
        "vmap: {what}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more \
         elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over {place}. \
         Please try to use out-of-place operators instead of {what}. If said operator is being called inside the PyTorch \
         framework, please file a bug report instead."
    ))
}

pub fn copy_into(target: &Tensor, source: &Tensor) -> Result<()> {
    check_target(target, &[source])?;
    let batch = Batch::of([target]);
    let (to, from) = (target.shape(), source.shape());
    if !crate::base::broadcast(&from, &to).is_ok_and(|s| s == to) {
        return Err(Error::runtime(format!(
            "The expanded size of the tensor must match the existing size: {:?} cannot be written into {:?}",
            from.as_slice(),
            to.as_slice()
        )));
    }
    crate::operator::inplace::copy_into(target.physical(), &batch.aligned(source, to.len())?)
}

/// Writes `result` over `target`, and gives it the edge of `result`.
pub fn overwrite(target: &Tensor, result: &Tensor) -> Result<()> {
    check_target(target, &[result])?;
    let (to, from) = (target.shape(), result.shape());
    if to != from {
        return Err(Error::runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            to.as_slice(),
            from.as_slice()
        )));
    }
    let batch = Batch::of([target]);
    crate::operator::inplace::overwrite(target.physical(), &batch.full(result)?)
}
