//! View operators in place: the tensor itself shows its elements otherwise.

use super::row::{Arg, Forms, Out, Row, take};
use crate::base::{Error, Result};
use crate::ops::view;
use crate::tensor::{Derivative, Edge, Recorder, Tensor, check_counted, check_inplace, mode, packing};

/// `target` becomes the view of itself that `view` makes.
fn become_view(row: &Row, args: &[Arg]) -> Result<Tensor> {
    let target: Tensor = take(row.name, row.params, args, 0, None)?;
    let recording = mode::grad_enabled() && target.requires_grad();
    check_inplace(&target, recording)?;
    let Out::Tensor(made) = packing::renamed(in_place, || (row.call)(args))? else {
        return Err(Error::runtime(format!("{} has no in-place form", row.name)));
    };
    if target.is_batched() {
        super::batch::relayout(&target, &made, recording)?;
        check_counted(&target)?;
        return Ok(target);
    }
    // Asked before the write is counted: afterwards the view would tell its history anew, over the base's new layout.
    let history = made.history();
    let body = made.body().clone();
    body.storage.bump();
    target.set_body(body);
    if recording {
        // What keeps its gradient goes on keeping that of the old shape.
        target.put_history(history);
        target.keep_view_history();
    }
    for level in made.dual_levels() {
        if let Some(tangent) = made.tangent(level) {
            target.set_tangent(level, tangent)?;
        }
    }
    check_counted(&target)?;
    Ok(target)
}

/// What PyTorch calls the node of a view operator in place.
macro_rules! in_place {
    ($($view:ident = $name:literal;)*) => {
        fn in_place(derivative: &'static Derivative) -> &'static Derivative {
            $({
                static WRITTEN: Derivative = Derivative { facts: None, name: $name, apply: view::$view::DERIVATIVE.apply };
                if std::ptr::eq(derivative, &view::$view::DERIVATIVE) {
                    return &WRITTEN;
                }
            })*
            derivative
        }
    };
}

in_place! {
    t = "TBackward1";
    transpose = "TransposeBackward1";
    unsqueeze = "UnsqueezeBackward1";
    squeeze_all = "SqueezeBackward3";
    squeeze_one = "SqueezeBackward4";
    squeeze_many = "SqueezeBackward5";
    strided_over = "AsStridedBackward1";
}

/// What a product made of one row, which nobody else holds yet, as a vector: squeezed in place.
pub fn first_row(matrix: Tensor) -> Result<Tensor> {
    static WRITTEN: Derivative =
        Derivative { facts: None, name: "SqueezeBackward4", apply: view::squeeze_one::DERIVATIVE.apply };
    if matrix.is_special() {
        return become_view(&view::squeeze_::ROW, &[Arg::Tensor(matrix), Arg::Int(0)]);
    }
    let body = {
        let body = matrix.body();
        body.with_layout(body.layout.squeeze(&[0]))
    };
    body.storage.bump();
    let edge = (mode::grad_enabled() && matrix.requires_grad()).then(|| {
        let mut recorder = Recorder::new(&WRITTEN);
        recorder.input(Some(&matrix)).params(Box::new((0i64,)));
        Edge { node: recorder.publish(&[&body]), output: 0 }
    });
    Ok(Tensor::of(body, edge))
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
                    ..$crate::ops::Row::OLD
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
