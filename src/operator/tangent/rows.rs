//! The tangents of pointwise operators, by the formulas of their rows.

use crate::base::Result;
use crate::operator::V;
use crate::operator::pointwise::{GRAD, Operand, Pointwise, apply, inplace};
use crate::operator::primitives::copies::clone_preserved;
use crate::operator::tangent::{
    Rule, attach_one, is_still, missing, own_tangent, remember, remember_write, rewrite,
};
use crate::tensor::levels::tangents;
use crate::tensor::{Saved, Tensor, saved_hooks};
use smallvec::SmallVec;

/// Sets the tangent of a pointwise result: applies each derivative's formula to the operand's tangent instead
/// of a gradient.
#[cold]
pub fn attach(op: &'static Pointwise, operands: &[Operand], output: &Tensor) -> Result<()> {
    if op.gradients.is_empty() || !output.dtype().is_differentiable() {
        return Ok(());
    }
    // In some rows PyTorch treats a number as a tensor.
    if !(op.clauses.wraps && operands.iter().any(|o| matches!(o, Operand::Scalar(_))))
        && is_still(operands.iter().filter_map(Operand::tensor))
    {
        return Ok(());
    }
    let tensors = || operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None });
    // A derivative with respect to a complex number need not be its own transpose.
    if output.dtype().is_complex() || tensors().any(|t| t.dtype().is_complex()) {
        let inputs: Vec<&Tensor> = tensors().collect();
        return attach_one(output, &inputs, Rule::Transposed, &|xs| {
            let mut next = xs.iter();
            let moved =
                |o: &Operand<'_>| if let Operand::Scalar(s) = o { Some(Operand::Scalar(*s)) } else { None };
            let operands: Option<SmallVec<[Operand; 4]>> =
                operands.iter().map(|o| moved(o).or_else(|| next.next().map(Operand::Tensor))).collect();
            apply(op, &operands.unwrap_or_default())
        });
    }
    for level in tangents::levels_of(tensors()) {
        let result = output.below(level);
        let (mut sum, mut alike): (Option<V>, bool) = (None, true);
        let mut factors: Vec<Tensor> = Vec::new();
        for gradient in op.gradients {
            let moved = match operands.get(gradient.of as usize) {
                Some(Operand::Tensor(t)) => Some(*t),
                Some(Operand::Scalar(_)) if op.clauses.wraps => None,
                _ => continue,
            };
            let known = |&source: &u32| match source {
                GRAD => V::misuse(),
                Saved::OUTPUT => V::from(&result),
                place => match operands.get(place as usize) {
                    Some(Operand::Tensor(t)) => V::from(t.below(level)),
                    Some(Operand::Scalar(s)) => V::from(*s),
                    None => V::misuse(),
                },
            };
            let part = |g: &V| {
                let value = |source: &u32| if *source == GRAD { g.clone() } else { known(source) };
                (gradient.formal)(&gradient.sources.iter().map(value).collect::<SmallVec<[V; 4]>>())
            };
            let Some((moved, tangent)) = moved.and_then(|t| Some((t, t.tangent(level)?))) else {
                let sources: Vec<V> = gradient.sources.iter().filter(|s| **s != GRAD).map(known).collect();
                let recorded = missing::recorded(
                    sources.iter().filter_map(|v| if let V::Tensor(t) = v { Some(t) } else { None }),
                );
                // Factors that are only compared get no edge.
                if !recorded.is_empty() && part(&missing::zero(&result)?).tensor()?.requires_grad() {
                    factors.extend(recorded);
                }
                continue;
            };
            alike &= tangent.dtype() == moved.dtype();
            let part = part(&V::from(&tangent));
            sum = Some(match sum {
                Some(sum) => sum + part,
                None => part,
            });
        }
        if let Some(rule) = op.clauses.tangent {
            sum = rule(operands, level);
            factors.clear();
        }
        if let Some(sum) = sum {
            let mut sum = sum.tensor()?;
            // PyTorch conjugates the tangent of an operator on one tensor, and that copy has the tensor's
            // dtype.
            let conjugated = sum.dtype().is_complex() && tensors().count() == 1 && !op.clauses.wraps;
            let dtype =
                if alike || conjugated { output.dtype() } else { output.dtype().promote(sum.dtype()) };
            if sum.dtype() != dtype {
                sum = V::from(sum).cast(dtype).tensor()?;
            }
            output.set_tangent(level, missing::with_factors(&own_tangent(output, sum)?, &factors)?)?;
        }
    }
    let outputs = std::slice::from_ref(output);
    remember(outputs, |i| if let Some(Operand::Tensor(t)) = operands.get(i) { Some(*t) } else { None });
    Ok(())
}

/// Runs a row in place. The new tangents are those of the operator on a copy of the old target.
#[cold]
pub fn write(op: &'static Pointwise, target: &Tensor, operands: &[Operand]) -> Result<()> {
    let old = clone_preserved(target)?;
    let replaced: SmallVec<[Operand; 4]> = operands
        .iter()
        .map(|o| {
            if let Operand::Tensor(t) = o
                && t.same(target)
            {
                Operand::Tensor(&old)
            } else {
                *o
            }
        })
        .collect();
    let result = apply(op, &replaced)?;
    let edge = saved_hooks::after(|| inplace::write(op, target, operands))?;
    rewrite(target, &result)?;
    if let Some(edge) = edge {
        remember_write(&edge, &replaced, target);
    }
    Ok(())
}
