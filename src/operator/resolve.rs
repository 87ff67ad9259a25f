//! Calls and derivatives that met conjugated or negated elements are run again with resolved copies of the operands.

use crate::base::{Error, Result};
use crate::operator::conj_neg::values;
use crate::operator::copies::clone_preserved;
use crate::operator::row::Arg;
use crate::tensor::{Step, Tensor};
use smallvec::SmallVec;

/// Runs a derivative again with resolved gradients and saved values.
#[cold]
pub fn derive<G>(error: Error, step: Step, derive: impl Fn(&Step) -> Result<G>) -> Result<G> {
    if !error.is_conj_or_neg() {
        return Err(error);
    }
    let grads = step.grads.iter().map(|g| g.as_ref().map(resolved).transpose());
    let grads = grads.collect::<Result<SmallVec<[Option<Tensor>; 2]>>>()?;
    derive(&step.again(&grads, values)?)
}

/// The tensor itself, or a copy of its values with its history.
pub fn resolved(t: &Tensor) -> Result<Tensor> {
    if t.body().conj_neg.is_none() { Ok(t.clone()) } else { clone_preserved(t) }
}

/// The arguments of a call that met such tensors, resolved; nothing when that is not what `error` tells.
#[cold]
pub fn arguments(error: &Error, args: &[Arg]) -> Result<Option<Vec<Arg>>> {
    let conj_neg = |arg: &Arg| match arg {
        Arg::Tensor(t) => t.is_conj_or_neg(),
        Arg::Tensors(ts) => ts.iter().any(Tensor::is_conj_or_neg),
        _ => false,
    };
    if !error.is_conj_or_neg() || !args.iter().any(conj_neg) {
        return Ok(None);
    }
    let plain = |arg: &Arg| {
        Ok(match arg {
            Arg::Tensor(t) => Arg::Tensor(resolved(t)?),
            Arg::Tensors(ts) => Arg::Tensors(ts.iter().map(resolved).collect::<Result<_>>()?),
            other => other.clone(),
        })
    };
    args.iter().map(plain).collect::<Result<Vec<Arg>>>().map(Some)
}

/// A call that writes over its first argument, tried again: it writes over a copy, which is then written to the argument.
#[cold]
pub fn inplace<T>(error: Error, args: &[Arg], run: impl FnOnce(&[Arg]) -> Result<T>) -> Result<T> {
    let Some(mut plain) = arguments(&error, args)? else { return Err(error) };
    let (Some(Arg::Tensor(target)), Some(Arg::Tensor(copy))) = (args.first(), plain.first_mut()) else {
        return Err(error);
    };
    if !target.is_conj_or_neg() {
        *copy = target.clone();
        return run(&plain);
    }
    let copy = copy.clone();
    let done = run(&plain)?;
    crate::operator::inplace::overwrite(target, &copy)?;
    Ok(done)
}
