//! Checks of `out=` tensors before they are written, with the dtypes that PyTorch's operators insist on.

use crate::base::{DType, Error, Result};
use crate::operator::bodies::overlap::{check_writable, overlaps};
use crate::operator::inplace::write::Write;
use crate::operator::pointwise;
use crate::operator::pointwise::{Operand, Pointwise};
use crate::operator::row::{Arg, OutRule, Row};
use crate::tensor::levels::func;
use crate::tensor::{Tensor, any_requires_grad};

/// Computes a pointwise row directly into `target` if only values must be written: no resize, no cast, no
/// edge. Returns true if it did. All errors of the call are left to the general path.
pub fn compute_into(op: &'static Pointwise, target: &Tensor, args: &[Arg]) -> bool {
    // Inside a transform, the target may be a captured tensor.
    let operands = (!func::is_inside()).then(|| pointwise::operands(op, args).ok()).flatten();
    operands.and_then(|operands| computed_into(op, target, &operands)).is_some()
}

/// Computes the in-place form of a composed row directly into its target if it is a single pointwise row.
/// Returns true if it did.
pub fn compute_over(row: &Row, target: &Tensor, args: &[Arg]) -> bool {
    let call = row.formula.filter(|_| !func::is_inside()).and_then(|formula| formula(args));
    call.and_then(|(op, operands)| computed_into(op, target, &operands)).is_some()
}

fn computed_into(op: &'static Pointwise, target: &Tensor, operands: &[Operand]) -> Option<()> {
    let tensors = || operands.iter().filter_map(Operand::tensor);
    let body = target.original_body().filter(|body| !body.storage.is_untracked())?;
    let plan = pointwise::plan(op, operands).ok()?;
    let fits = plan.shape[..] == *body.shape() && plan.result == body.dtype && plan.device == body.device();
    let bare = |t: &Tensor| t.original_body().is_some_and(|input| !overlaps(input, body));
    let alike = pointwise::narrowed(op, operands, plan.promoted).ok()?.is_none();
    if !(fits && alike) || any_requires_grad(tensors().chain([target])) || !tensors().all(bare) {
        return None;
    }
    let over = check_writable(body).and_then(|()| Write::begin(target, false)).ok()?;
    let bodies = pointwise::bodies(operands);
    let inputs = pointwise::inputs(op, operands, &bodies, plan.promoted).ok()?;
    let values = |body: &_| pointwise::execute(op.row.name, &op.forward, plan.compute, body, &inputs);
    over.put(body, None, values).ok()?;
    over.end(None).ok()
}

/// Returns an error, in the operator's words, if the result `name` of dtype `from` may not be written into a
/// tensor of dtype `to`.
pub fn check_dtype(row: &Row, name: &str, from: DType, to: DType) -> Result<()> {
    if from == to {
        return Ok(());
    }
    check_rule(row.out.rule, name, from, to)
}

fn check_rule(rule: OutRule, name: &str, from: DType, to: DType) -> Result<()> {
    let (result, target) = (from.scalar_name(), to.scalar_name());
    Err(Error::runtime(match rule {
        OutRule::Cast | OutRule::Any => return Ok(()),
        OutRule::Declared => {
            let (result, target) = (from.c_name(), to.c_name());
            format!("Expected out tensor to have dtype {result}, but got {target} instead")
        }
        OutRule::Found => format!("Found dtype {target} but expected {result}"),
        OutRule::Promoted | OutRule::Castable(_) if from.category() <= to.category() => return Ok(()),
        OutRule::Promoted => {
            return Err(Error::type_error(format!(
                "torch.cat(): input types can't be cast to the desired output type {target}"
            )));
        }
        OutRule::Castable(text) => {
            let text = text.replace("{name}", name);
            let name = text.rsplit(' ').next().unwrap_or(name);
            format!("{text} to be safely castable from {result} dtype, but got {name} with dtype {target}")
        }
        OutRule::Floating(_) if to.is_differentiable() => return Ok(()),
        OutRule::Truths(_) if to == DType::U8 => return Ok(()),
        OutRule::Floating(text) | OutRule::Message(text) | OutRule::Truths(text) => {
            text.replace("{result}", result).replace("{target}", target).replace("{name}", name)
        }
    }))
}

/// True if PyTorch's operator refuses inputs that overlap the target; for operators that are not pointwise.
pub fn keeps_apart(row: &Row) -> bool {
    row.out.apart || row.out.resizes
}

/// The error text for `out=` with an argument that requires a gradient.
pub fn refusal(row: &Row) -> String {
    if row.out.uninitialized {
        return "cannot resize variables that require grad".into();
    }
    let called = if row.out.called.is_empty() { row.name } else { row.out.called };
    format!(
        "{called}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments \
         requires grad."
    )
}
