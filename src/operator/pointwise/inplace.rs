//! The in-place forms of pointwise rows, such as `x.mul_(y)`: the kernel writes over its first operand.

use crate::base::{Dims, Error, Fault, Result, broadcast};
use crate::operator::bodies::overlap::{check_aligned, check_writable, overlaps};
use crate::operator::inplace::write::{Write, is_counted};
use crate::operator::pointwise::dtype_checks::check_cast;
use crate::operator::pointwise::operands;
use crate::operator::pointwise::record::call_error;
use crate::operator::pointwise::{
    Class, Input, Operand, Plan, Pointwise, bodies, execute, inputs, narrowed, plan, record, small,
    with_tensors,
};
use crate::operator::row::Arg;
use crate::tensor::{Body, Edge, Tensor, mode, records, saved_hooks};
use smallvec::SmallVec;

/// Runs a row in place, such as `x.mul_(y)`.
pub fn apply_inplace(op: &'static Pointwise, target: &Tensor, operands: &[Operand]) -> Result<()> {
    if let Some(done) = small::apply_inplace(op, target, operands) {
        return done;
    }
    if operands.iter().any(Operand::is_batched) {
        return (op.transforms.batch_inplace)(op, target, operands);
    }
    if operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.is_dual())) {
        return (op.transforms.tangent_inplace)(op, target, operands);
    }
    saved_hooks::after(|| write(op, target, operands)).map(drop)
}

pub fn call_inplace(op: &'static Pointwise, args: &[Arg]) -> Result<Tensor> {
    let operands = operands(op, args)?;
    let Some(Operand::Tensor(target)) = operands.first() else {
        return Err(Error::type_error("an in-place operator needs a tensor to write to"));
    };
    apply_inplace(op, target, &operands)?;
    Ok((*target).clone())
}

/// Writes the result over the target and sets the target's edge, which is returned. Tangents are left to the
/// caller.
pub fn write(op: &'static Pointwise, target: &Tensor, operands: &[Operand]) -> Result<Option<Edge>> {
    // Rows without derivatives, such as logical operators, write as if no operand required a gradient.
    let recording = mode::grad_enabled()
        && operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.requires_grad()))
        && op.is_recorded();
    let over = Write::begin(target, recording)?;
    let body = target.body();
    if recording && !body.dtype.is_differentiable() {
        // An integer target is not recorded, but the views are checked nevertheless.
        records(operands.iter().filter_map(|o| o.tensor()))?;
    }
    let plan = fitting(op, &body, operands).map_err(|error| call_error(op, operands, error))?;
    let narrowed = narrowed(op, operands, plan.promoted)?;
    let bodies = bodies(operands);
    let (own, own_bodies);
    let (given, given_bodies) = match &narrowed {
        None => (operands, &bodies),
        Some(tensors) => {
            own = with_tensors(operands, tensors);
            own_bodies = plan::bodies(&own);
            (&own[..], &own_bodies)
        }
    };
    // An operand that overlaps the target with another layout would be read after it was written, so it is
    // copied.
    let copies = given
        .iter()
        .map(|o| match o {
            Operand::Tensor(t) if overlaps(&t.body(), &body) => {
                check_aligned(&body, &t.body())?;
                Ok(Some(crate::operator::bodies::duplicate(&t.body())?))
            }
            _ => Ok(None),
        })
        .collect::<Result<SmallVec<[Option<Body>; 4]>>>()?;
    let mut inputs = inputs(op, given, given_bodies, plan.promoted)?;
    for (input, copy) in inputs.iter_mut().zip(&copies) {
        if let Some(copy) = copy {
            *input = Input::Body(copy);
        }
    }
    // The derivative may read the old value of the target, so the node is made before the write, with the old
    // version.
    let edge = if recording && is_counted(target) { record(op, operands, &bodies, &body)? } else { None };
    let values = |body: &Body| execute(op.row.name, &op.forward, plan.compute, body, &inputs);
    over.put(&body, edge.as_ref(), values)?;
    over.end(edge.clone())?;
    Ok(edge)
}

/// Plans the call and checks that the target can take the result.
fn fitting(op: &'static Pointwise, target: &Body, operands: &[Operand]) -> Result<Plan> {
    let plan = plan(op, operands).map_err(|error| prefer_target_error(op, target, operands, error))?;
    check_writable(target)?;
    check_shape(target, &plan.shape)?;
    if plan.device != target.device() {
        return Err(Fault::Devices { a: target.device(), b: plan.device }.into());
    }
    check_cast(plan.result, target.dtype)?;
    if plan.compute.is_complex() && plan.result.is_float() {
        return Err(Error::runtime(format!(
            "In-place {} is not supported for complex tensors.",
            op.row.name
        )));
    }
    Ok(plan)
}

fn check_shape(target: &Body, shape: &[usize]) -> Result<()> {
    if target.shape() == shape {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "output with shape {:?} doesn't match the broadcast shape {shape:?}",
        target.shape()
    )))
}

/// Errors about the target take precedence over that of a missing kernel.
#[cold]
fn prefer_target_error(op: &Pointwise, target: &Body, operands: &[Operand], error: Error) -> Error {
    let late =
        matches!(error.fault(), Fault::NoKernel { .. } | Fault::NoKernelOf { .. } | Fault::NoComplex(_));
    if !late {
        return error;
    }
    let shapes = operands.iter().filter_map(|o| o.tensor()).map(Tensor::shape);
    let shape = shapes.into_iter().try_fold(Dims::new(), |all, own| broadcast(&all, &own));
    let misfit = shape.and_then(|shape| check_shape(target, &shape));
    // Comparisons give bools, which any target can take; some classes do not promote.
    let cast = || match op.class {
        Class::Compare | Class::Test | Class::Alike | Class::FloatAlike => Ok(()),
        _ => {
            let typed = &operands[..op.inputs.min(operands.len())];
            check_cast(crate::operator::pointwise::result_type(typed.iter().copied())?, target.dtype)
        }
    };
    let mut tensors = operands.iter().filter_map(|o| o.tensor());
    let aligned = tensors.try_for_each(|t| check_aligned(target, &t.body()));
    check_writable(target).and(aligned).and(misfit).and_then(|()| cast()).err().unwrap_or(error)
}
