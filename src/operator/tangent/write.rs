//! The effect of in-place writes on tangents.

use crate::base::Result;
use crate::operator::bodies;
use crate::operator::inplace;
use crate::operator::pointwise::Operand;
use crate::operator::primitives::constant;
use crate::operator::primitives::copies::clone_preserved;
use crate::operator::primitives::strided;
use crate::operator::tangent::{own_tangent, zeros_like, zeros_with_layout};
use crate::tensor::levels::tangents::{self, DualLevel};
use crate::tensor::{Edge, Saved, Tensor};

/// Keeps the tangents of the values that the node of an in-place write saved.
pub fn remember_write(edge: &Edge, operands: &[Operand], target: &Tensor) {
    tangents::remember(&edge.node, |source| match source {
        Saved::OUTPUT => Some(target),
        place => match operands.get(place as usize) {
            Some(Operand::Tensor(t)) => Some(t),
            _ => None,
        },
    });
}

/// A copy of a target before it is written, with copies of its tangents, for the operator to read.
pub fn before_write(target: &Tensor) -> Result<Tensor> {
    if let Some(batched) = target.as_batched() {
        let value = before_write(&batched.value)?;
        return Ok(Tensor::batched_at(value, batched.levels.clone(), batched.place, None));
    }
    let seen = Tensor::of(bodies::preserved(&target.body())?, target.edge());
    for level in target.dual_levels() {
        if let Some(tangent) = target.tangent(level) {
            seen.set_tangent(level, clone_preserved(&tangent)?)?;
        }
    }
    Ok(seen)
}

/// Sets a tangent to zero in place.
fn set_to_zero(tangent: &Tensor) -> Result<()> {
    inplace::copy_into(tangent, &constant::zeros(&[], tangent.dtype(), tangent.device())?)
}

/// Updates the tangents of `target` after it was overwritten with `result`.
#[cold]
pub fn rewrite(target: &Tensor, result: &Tensor) -> Result<()> {
    for level in tangents::levels_of([target, result]) {
        match (target.tangent(level), result.tangent(level)) {
            (Some(old), Some(new)) if old.same(&new) => {}
            (Some(old), Some(new)) => inplace::copy_into(&old, &new.below(level))?,
            (Some(old), None) => set_to_zero(&old)?,
            (None, Some(new)) => begin(target, level, new)?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// Updates the tangents of `target` after it was overwritten with constants.
#[cold]
pub fn erase(target: &Tensor) -> Result<()> {
    for level in tangents::levels_of([target]) {
        if let Some(tangent) = target.tangent(level) {
            set_to_zero(&tangent)?;
        }
    }
    Ok(())
}

/// Sets the first tangent of an existing tensor. A view's tangent is a view of its base's, which is zero
/// elsewhere.
fn begin(target: &Tensor, level: DualLevel, tangent: Tensor) -> Result<()> {
    let Some(base) = target.tangent_base() else {
        return target.set_tangent(level, own_tangent(target, tangent)?);
    };
    let whole = match base.tangent(level) {
        Some(whole) => whole,
        None => {
            let whole = zeros_with_layout(&base.body(), base.dtype(), &tangent)?;
            base.set_tangent(level, whole.clone())?;
            whole
        }
    };
    let part = strided::part(&whole, &target.body())?;
    // The tangent may itself be a view of a base that became dual here, so only its values are copied.
    inplace::copy_into(&part, &tangent.below(level))?;
    target.set_tangent(level, part)
}

/// Updates the tangents of `target` after `write` put `values` into it, by applying `write` to the tangents.
#[cold]
pub fn put(target: &Tensor, values: &Tensor, write: &dyn Fn(&Tensor, &Tensor) -> Result<()>) -> Result<()> {
    for level in tangents::levels_of([target, values]) {
        let moved = values.tangent(level).map_or_else(|| zeros_like(values), Ok)?;
        if target.tangent(level).is_none() {
            let body = target.body();
            begin(target, level, zeros_with_layout(&body, body.dtype, &moved)?)?;
        }
        if let Some(tangent) = target.tangent(level) {
            write(&tangent, &moved)?;
        }
    }
    Ok(())
}
