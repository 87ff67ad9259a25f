//! Pointwise operators: shapes, promotion, in-place forms and recording for all rows of `pointwise!`. A row
//! states only its formula and its derivatives.

pub mod backward;
pub mod clauses;
#[cfg(feature = "gpu")]
pub mod complex_formula;
#[cfg(feature = "gpu")]
pub mod complex_parts;
pub mod declare;
pub mod dtype_checks;
pub mod execute;
pub mod inplace;
pub mod kernel_table;
pub mod layout_formula;
pub mod memory_format;
pub mod nan;
pub mod plan;
pub mod record;
pub mod row;
pub mod small;

use crate::base::{Error, Result};
use crate::operator::row::{Arg, Out, take};
use crate::tensor::{Body, Tensor};
use smallvec::SmallVec;

pub use crate::operator::row::operand::Operand;
pub use backward::backward;
pub use execute::{Input, compute_type, execute};
pub use inplace::{apply_inplace, call_inplace};
pub(crate) use kernel_table::loops;
pub use plan::{Plan, bodies, inputs, narrowed, plan, result_type, scalar_dtype, with_tensors};
pub use record::{Numbers, record};
pub use row::{Class, Expr, GRAD, Gradient, Pointwise, Transforms, number};

/// Computes a row, and records it if an operand requires a gradient.
pub fn apply(op: &'static Pointwise, operands: &[Operand]) -> Result<Tensor> {
    if let Some(done) = small::apply(op, operands) {
        return done;
    }
    if operands.iter().any(Operand::is_batched) {
        return (op.transforms.batch)(op, operands);
    }
    let plan = plan(op, operands).map_err(|error| record::call_error(op, operands, error))?;
    let mut out = Body::new(&plan.shape, plan.result, plan.device)?;
    let bodies = bodies(operands);
    if let Some(layout) = memory_format::preserved(op, &plan, &bodies) {
        out.layout = layout;
    }
    match record::supplied(op, operands, plan.result)? {
        Some(body) => out = body,
        None => {
            let run = |inputs: &[Input]| execute(op.row.name, &op.forward, plan.compute, &out, inputs);
            match narrowed(op, operands, plan.promoted)? {
                None => run(&inputs(op, operands, &bodies, plan.promoted)?)?,
                Some(tensors) => {
                    let given = with_tensors(operands, &tensors);
                    run(&inputs(op, &given, &plan::bodies(&given), plan.promoted)?)?;
                }
            }
        }
    }
    let edge = record(op, operands, &bodies, &out)?;
    drop(bodies);
    let out = Tensor::made_by(out, edge);
    if operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.is_dual())) {
        (op.transforms.tangent)(op, operands, &out)?;
    }
    Ok(out)
}

/// Calls a row with parsed arguments.
pub fn call(op: &'static Pointwise, args: &[Arg]) -> Result<Out> {
    let operands = operands(op, args)?;
    let numbers_alone = || !operands[..op.inputs].iter().any(|o| matches!(o, Operand::Tensor(_)));
    if !op.clauses.wraps && numbers_alone() {
        return Err(Error::type_error(format!(
            "{}(): argument '{}' (position 1) must be Tensor, not {}",
            op.row.name,
            op.row.params[0].name,
            match args.first() {
                Some(Arg::Int(_)) => "int",
                Some(Arg::Bool(_)) => "bool",
                _ => "float",
            }
        )));
    }
    apply(op, &operands).map(Out::Tensor)
}

/// The operands among parsed arguments, followed by the row's scalar parameters.
pub fn operands<'a>(op: &'static Pointwise, args: &'a [Arg]) -> Result<SmallVec<[Operand<'a>; 4]>> {
    let (name, params) = (op.row.name, op.row.params);
    let operand = |i: usize| match args.get(i) {
        _ if i < op.inputs => take(name, params, args, i, None),
        None | Some(Arg::Missing) => Ok(Operand::Scalar(op.defaults[i - op.inputs])),
        _ => take(name, params, args, i, None).map(Operand::Scalar),
    };
    (0..params.len()).map(operand).collect()
}
