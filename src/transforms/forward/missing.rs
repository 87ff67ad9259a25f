//! What has no tangent beside operands that have one: PyTorch takes it for zeros, and the result knows of what these were
//! multiplied with. Nothing is multiplied here, as zero times infinity would show.

use crate::base::Result;
use crate::operator::V;
use crate::operator::constant;
use crate::operator::meta_of;
use crate::tensor::{Derivative, Edge, Grads, Recorder, Step, Tensor, mode};
use crate::transforms::vmap::Batch;

static BESIDE: Derivative = Derivative { facts: None, name: "AddBackward0", apply };

fn apply(step: &Step) -> Result<Grads> {
    let g = step.grad(0);
    let mut grads: Grads = smallvec::smallvec![g.filter(|_| step.wants(0)).cloned(), None];
    if step.wants(1) {
        let (factor, batch) = (meta_of(step, 1)?, Batch::of(g));
        let nothing = constant::zeros(&batch.shape(&factor.shape), factor.dtype, factor.device)?;
        grads[1] = Some(beside(&batch.wrap(nothing), &recorded(g.into_iter()))?);
    }
    Ok(grads)
}

/// Those whose history counts.
pub fn recorded<'a>(factors: impl Iterator<Item = &'a Tensor>) -> Vec<Tensor> {
    let counts = |t: &&Tensor| t.requires_grad() && t.edge().is_some();
    if mode::grad_enabled() {
        factors.map(Tensor::physical).filter(counts).cloned().collect()
    } else {
        Vec::new()
    }
}

/// A zero to try a formula with.
pub fn zero(like: &Tensor) -> Result<V> {
    Ok(constant::zeros(&[], like.dtype(), like.device())?.into())
}

/// `tangent`, with a gradient of zero for each of `factors`.
pub fn beside(tangent: &Tensor, factors: &[Tensor]) -> Result<Tensor> {
    if factors.is_empty() {
        return Ok(tangent.clone());
    }
    if let Some(batched) = tangent.as_batched() {
        let value = beside(&batched.value, factors)?;
        return Ok(Tensor::sample(value, batched.levels.clone(), batched.place, None));
    }
    let body = tangent.body().clone();
    let mut made = tangent.clone();
    for factor in factors {
        let mut recorder = Recorder::new(&BESIDE);
        recorder.input(Some(&made)).input(Some(factor));
        let node = recorder.publish(&[&body]);
        made = Tensor::of(body.clone(), Some(Edge { node, output: 0 }));
    }
    for level in tangent.dual_levels() {
        if let Some(deeper) = tangent.tangent(level) {
            made.set_tangent(level, deeper)?;
        }
    }
    Ok(made)
}
