//! What has no tangent beside operands that have one: PyTorch takes it for zeros, and the result knows of what these were
//! multiplied with. Nothing is multiplied here, as zero times infinity would show.

use crate::base::Result;
use crate::operator::V;
use crate::operator::constant;
use crate::tensor::{Body, Meta, Tensor, mode};
use crate::transforms::vmap::Batch;
use gradiron_macros::primitive;

/// The tangent itself, with a gradient of zero for what it was not multiplied with.
#[primitive(node = "AddBackward0", tangent = linear, batch = none, devices = any)]
impl Beside {
    fn forward(tangent: &Tensor, factor: &Tensor) -> Result<Body> {
        let _ = factor;
        Ok(tangent.body().clone())
    }
    fn d_tangent(g: Tensor) -> Tensor {
        g
    }
    fn d_factor(g: &Tensor, at: Meta) -> Result<Tensor> {
        let batch = Batch::of([g]);
        let nothing = constant::zeros(&batch.shape(&at.shape), at.dtype, at.device)?;
        beside(&batch.wrap(nothing), &recorded([g].into_iter()))
    }
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
    let mut made = tangent.without_tangents();
    for factor in factors {
        made = Beside::call(&made, &factor.without_tangents())?;
    }
    for level in tangent.dual_levels() {
        if let Some(deeper) = tangent.tangent(level) {
            made.set_tangent(level, deeper)?;
        }
    }
    Ok(made)
}
