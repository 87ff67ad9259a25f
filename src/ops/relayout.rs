//! View operators in place: the tensor itself shows its elements otherwise.

use super::row::{Arg, Forms, Out, Row, take};
use crate::base::{Error, Result};
use crate::tensor::{Tensor, check_inplace, mode};

/// `target` becomes the view of itself that `view` makes.
fn become_view(row: &Row, args: &[Arg]) -> Result<Tensor> {
    let target: Tensor = take(row.name, row.params, args, 0, None)?;
    let recording = mode::grad_enabled() && target.requires_grad();
    check_inplace(&target, recording)?;
    let Out::Tensor(made) = (row.call)(args)? else {
        return Err(Error::runtime(format!("{} has no in-place form", row.name)));
    };
    if target.is_batched() {
        super::batch::relayout(&target, &made, recording);
        return Ok(target);
    }
    // Asked before the write is counted: afterwards the view would tell its history anew, over the base's new layout.
    let history = made.history();
    let body = made.body().clone();
    body.storage.bump();
    target.set_body(body);
    if recording {
        target.set_history(history);
    }
    for level in made.dual_levels() {
        if let Some(tangent) = made.tangent(level) {
            target.set_tangent(level, tangent)?;
        }
    }
    Ok(target)
}

macro_rules! relayouts {
    ($($name:ident = $path:path;)*) => {
        $(
            #[allow(non_snake_case)]
            mod $name {
                use super::*;
                use $path as source;
                fn write(args: &[Arg]) -> Result<Tensor> {
                    become_view(&source::ROW, args)
                }
                pub static ROW: Row = Row {
                    name: stringify!($name),
                    doc: "The view of the same name, in place: the tensor itself changes its shape.",
                    family: "view",
                    params: source::ROW.params,
                    forms: Forms(Forms::INPLACE),
                    differentiable: false,
                    call: |args| write(args).map(Out::Tensor),
                    call_inplace: Some(write),
                };
            }
        )*
        pub static RELAYOUTS: &[&Row] = &[$(&$name::ROW),*];
    };
}

relayouts! {
    squeeze = crate::ops::view::squeeze_;
    unsqueeze = crate::ops::view::unsqueeze;
    t = crate::ops::view::t;
    transpose = crate::ops::view::transpose;
    swapaxes = crate::ops::shape::swapaxes;
    swapdims = crate::ops::shape::swapdims;
    as_strided = crate::ops::view::as_strided;
}
