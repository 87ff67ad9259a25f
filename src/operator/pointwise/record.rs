//! Records pointwise calls.

use crate::base::{DType, Error, Result, Scalar};
use crate::operator::pointwise::plan::bodies;
use crate::operator::pointwise::row::Pointwise;
use crate::operator::row::names::OUTPUTS;
use crate::operator::row::operand::Operand;
use crate::tensor::levels::func::is_recorded_outside;
use crate::tensor::{Body, BodyRef, Edge, Recorder, any_requires_grad, mode, records, saved_hooks};
use smallvec::SmallVec;
use std::convert::Infallible;
use std::sync::Arc;

/// The numbers among a call's operands, kept by its node.
pub type Numbers = SmallVec<[Option<Scalar>; 4]>;

/// Makes the node of a call if an operand requires a gradient. `out` must already hold the result.
pub fn record(
    op: &'static Pointwise,
    operands: &[Operand],
    bodies: &[Option<BodyRef>],
    out: &Body,
) -> Result<Option<Edge>> {
    if !op.is_recorded() || !mode::grad_enabled() || !out.dtype.is_differentiable() {
        return Ok(None);
    }
    let wants = |o: &Operand| matches!(o, Operand::Tensor(t) if t.requires_grad());
    if !operands.iter().any(wants) {
        return Ok(None);
    }
    let (derivative, edges) = op.node_of(operands);
    let mut recorder = Recorder::new(derivative);
    for operand in &operands[..edges] {
        recorder.input(if let Operand::Tensor(t) = operand { Some(t) } else { None });
    }
    let wanted = recorder.wanted();
    let read = op.gradients.iter().filter(|g| wanted >> g.of & 1 == 1).fold(0, |bits, g| bits | g.saves);
    // Each value is saved once, in order; numbers go into the node's params.
    let (need, mut scalars) = (op.always | read, false);
    for i in op.order.iter().map(|&i| usize::from(i)).filter(|i| need >> i & 1 == 1) {
        match (bodies.get(i), operands.get(i)) {
            (Some(Some(body)), Some(Operand::Tensor(tensor))) => {
                recorder.save_input(tensor, body, i);
            }
            _ => scalars = true,
        }
    }
    if need & OUTPUTS != 0 {
        recorder.save_output(out, 0);
    }
    if scalars {
        let numbers: Numbers =
            operands.iter().map(|o| if let Operand::Scalar(s) = o { Some(*s) } else { None }).collect();
        recorder.params(Arc::new(numbers));
        // PyTorch saves a factor or a divisor as a tensor.
        if op.clauses.wraps {
            recorder.saves_number();
        }
    }
    recorder.check(operands.iter().filter_map(Operand::tensor), is_recorded_outside)?;
    let node = recorder.publish(&[out]);
    saved_hooks::pack(&node, |i| operands.get(i).and_then(Operand::tensor), &[out])?;
    Ok(Some(Edge { node, output: 0 }))
}

/// The result of this call if a checkpoint has kept it from an earlier run.
pub fn supplied(op: &'static Pointwise, operands: &[Operand], result: DType) -> Result<Option<Body>> {
    let recorded = saved_hooks::active()
        && !op.gradients.is_empty()
        && result.is_differentiable()
        && any_requires_grad(operands.iter().filter_map(Operand::tensor));
    if recorded { saved_hooks::supply(&op.derivative) } else { Ok(None) }
}

/// The error of a call that failed with `error`. PyTorch makes the node before the call runs, so an error in
/// making it, or in a hook that packs the operands, takes precedence.
#[cold]
pub fn call_error(op: &'static Pointwise, operands: &[Operand], error: Error) -> Error {
    let bodies = bodies(operands);
    let Some(like) = bodies.iter().flatten().next() else { return error };
    let Err(told) = saved_hooks::after(|| -> Result<Infallible> {
        if op.is_recorded() {
            records(operands.iter().filter_map(|o| o.tensor()))?;
        }
        record(op, operands, &bodies, like)?;
        Err(error)
    });
    told
}
