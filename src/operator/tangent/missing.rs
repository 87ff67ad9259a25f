//! Operands without a tangent beside others that have one. PyTorch takes a missing tangent for zeros and
//! multiplies it by a factor, so the result's tangent has an edge to that factor. Here the edge is made
//! without the product, which would be NaN if the factor is infinite.

use crate::base::Result;
use crate::operator::V;
use crate::operator::batch::Batch;
use crate::operator::primitives::constant;
use crate::tensor::{Body, Meta, Tensor, mode};
use gradiron_macros::primitive;

/// The tangent itself, with an edge to `factor`, whose gradient is zero.
#[primitive(node = "AddBackward0", tangent = linear, batch = none, devices = any)]
impl WithFactor {
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
        with_factors(&batch.wrap(nothing), &recorded([g].into_iter()))
    }
}

/// The factors that are recorded.
pub fn recorded<'a>(factors: impl Iterator<Item = &'a Tensor>) -> Vec<Tensor> {
    let counts = |t: &&Tensor| t.requires_grad() && t.edge().is_some();
    if mode::grad_enabled() {
        factors.map(Tensor::physical).filter(counts).cloned().collect()
    } else {
        Vec::new()
    }
}

/// A zero to test a formula with.
pub fn zero(like: &Tensor) -> Result<V> {
    Ok(constant::zeros(&[], like.dtype(), like.device())?.into())
}

/// `tangent`, with an edge to each of `factors`, whose gradients are zero.
pub fn with_factors(tangent: &Tensor, factors: &[Tensor]) -> Result<Tensor> {
    if factors.is_empty() {
        return Ok(tangent.clone());
    }
    if let Some(batched) = tangent.as_batched() {
        let value = with_factors(&batched.value, factors)?;
        return Ok(Tensor::batched_at(value, batched.levels.clone(), batched.place, None));
    }
    let mut made = tangent.without_tangents();
    for factor in factors {
        made = WithFactor::call(&made, &factor.without_tangents())?;
    }
    for level in tangent.dual_levels() {
        if let Some(deeper) = tangent.tangent(level) {
            made.set_tangent(level, deeper)?;
        }
    }
    Ok(made)
}
