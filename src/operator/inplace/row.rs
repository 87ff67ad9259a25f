//! The in-place form of a row that computes its result first.

use crate::base::{Error, Result};
use crate::operator::bodies::overlap::check_aligned;
use crate::operator::inplace::write::{Write, is_counted};
use crate::operator::inplace::{out, prefer_target_error, replace, rewrite};
use crate::operator::row::{Arg, Out, OutRule, Row};
use crate::operator::tangent;
use crate::tensor::{Tensor, any_requires_grad, mode};

/// The arguments of a write, with the old value of a target that has tangents.
#[cold]
fn before_write(target: &Tensor, args: &[Arg]) -> Result<Vec<Arg>> {
    let old = tangent::before_write(target)?;
    let seen = |arg: &Arg| match arg {
        Arg::Tensor(t) if t.same(target) => Arg::Tensor(old.clone()),
        other => other.clone(),
    };
    Ok(args.iter().map(seen).collect())
}

/// The in-place form of `row`: writes its result over the first argument.
pub fn apply(row: &Row, args: &[Arg]) -> Result<()> {
    let Some(Arg::Tensor(target)) = args.first() else {
        return Err(Error::runtime("an in-place method needs a tensor as its first argument"));
    };
    let tensors = || args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t) } else { None });
    let over = Write::begin(target, any_requires_grad(tensors()))?;
    if out::compute_over(row, target, args) {
        return Ok(());
    }
    let call =
        |args: &[Arg]| mode::with_grad(mode::grad_enabled() && is_counted(target), || (row.call)(args));
    let made = if target.physical().is_dual() { call(&before_write(target, args)?) } else { call(args) };
    let made = made.map_err(|error| prefer_target_error(&target.body(), error))?;
    let declared = row.out.rule == OutRule::Declared;
    if let Out::Tensor(result) = &made
        && declared
        && result.shape() != target.shape()
    {
        return Err(Error::runtime(format!(
            "Bad in-place call: input tensor size {:?} and output tensor size {:?} should match",
            target.shape().as_slice(),
            result.shape().as_slice()
        )));
    }
    if row.elementwise {
        tensors().skip(1).try_for_each(|t| check_aligned(&target.body(), &t.body()))?;
    }
    match made {
        Out::Tensor(result) if target.body().layout.is_expanded() => {
            rewrite(over, target, &result, |body, new| match row.expanded {
                Some(write) if write(body, args)? => Ok(()),
                _ => replace(body, new),
            })
        }
        Out::Tensor(result) => rewrite(over, target, &result, replace),
        _ => Err(Error::runtime(format!("{} has no in-place form", row.name))),
    }
}
