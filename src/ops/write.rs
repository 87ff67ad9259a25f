//! Operators that only write: whatever was in the tensor, and its gradient, ends there.

use super::batch::Batch;
use super::kernel::fill as fill_body;
use super::macros::text;
use super::pointwise::check_writable;
use super::row::{Arg, Forms, FromArg, Kind, Out, Param, Row, Value, take};
use crate::base::{Error, Result, Scalar};
use crate::tensor::{
    Body, Derivative, Edge, Grads, Recorder, Step, Tensor, check_inplace, finish_inplace, mode,
};

/// The gradient of overwritten values.
pub fn nothing(step: &Step) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None; step.node.edges.len()];
    if step.wants(0) {
        let (at, batch) = (super::meta_of(step, 0)?, Batch::of(step.grad(0)));
        let zeros = super::create::zeros(&batch.shape(&at.shape), at.dtype, at.device)?;
        grads[0] = Some(batch.wrap(zeros));
    }
    Ok(grads)
}

/// Lets `write` overwrite the whole of `target`; only one value may go where one element stands for several.
pub fn over(
    target: &Tensor,
    derivative: &'static Derivative,
    one_value: bool,
    write: impl FnOnce(&Body) -> Result<()>,
) -> Result<()> {
    let recording = mode::grad_enabled() && target.requires_grad();
    check_inplace(target, recording)?;
    let body = target.body();
    if !one_value {
        check_writable(&body)?;
    }
    let edge = recording.then(|| {
        let mut recorder = Recorder::new(derivative);
        recorder.input(Some(target));
        Edge { node: recorder.publish(&[&body]), output: 0 }
    });
    super::lazy::write(&body, write)?;
    body.storage.bump();
    finish_inplace(target, edge)?;
    if target.is_dual() {
        super::tangent::erase(target)?;
    }
    Ok(())
}

/// `/// doc` `"NodeName" fn name(body, arguments) { … giving Result<()> }`: a method `name_`.
macro_rules! writes {
    ($family:literal; $( $(#[doc = $doc:literal])* $node:literal fn $name:ident ( $target:ident $(, $p:ident : $pt:ty $(= $pd:expr)?)* $(,)? ) $body:block )*) => {
        $(
            #[allow(unused_imports, unused_variables, unused_mut)]
            pub mod $name {
                use super::*;
                use $crate::ops::macros;
                use $crate::ops::row::{Arg, Forms, FromArg, Kind, Out, Param, Row, take};
                static PARAMS: &[Param] = &[
                    Param { name: "input", kind: Kind::Tensor, optional: false, default: None, ..Param::PLAIN },
                    $(Param {
                        name: stringify!($p),
                        kind: <$pt as FromArg>::KIND,
                        optional: <$pt as FromArg>::OPTIONAL,
                        default: macros::text!($($pd)?),
                        ..Param::PLAIN
                    },)*
                ];
                static DERIVATIVE: $crate::tensor::Derivative =
                    $crate::tensor::Derivative { facts: None, name: $node, apply: $crate::ops::write::nothing };
                fn write(args: &[Arg]) -> $crate::base::Result<$crate::tensor::Tensor> {
                    let mut next = 1..;
                    let target: $crate::tensor::Tensor = take(stringify!($name), PARAMS, args, 0, None)?;
                    $(let $p: $pt = take(stringify!($name), PARAMS, args, next.next().unwrap_or(0), macros::default!($($pd)?))?;)*
                    let write = |target: &$crate::tensor::Tensor| {
                        $crate::ops::write::over(target, &DERIVATIVE, $family == "create", |body| super::$name(body $(, $p)*))
                    };
                    $crate::ops::batch::write_over($family, &target, write)?;
                    Ok(target)
                }
                pub static ROW: Row = Row {
                    name: $crate::ops::plain_name(stringify!($name)),
                    doc: concat!($($doc, "\n"),*),
                    family: $family,
                    params: PARAMS,
                    forms: Forms(Forms::INPLACE),
                    differentiable: false,
                    call: |args| write(args).map(Out::Tensor),
                    call_inplace: Some(write),
                    ..$crate::ops::Row::OLD
                };
            }
            $(#[doc = $doc])*
            pub fn $name($target: &$crate::tensor::Body $(, $p: $pt)*) -> $crate::base::Result<()> $body
        )*
        pub static WRITES: &[&$crate::ops::Row] = &[$(&$name::ROW),*];
    };
}
pub(crate) use writes;

writes! { "create";
    /// Zeros.
    "ZeroBackward0" fn zero(body) { fill_body(body, Scalar::Int(0)) }
}

/// Zeros everywhere.
pub fn erase(target: &Tensor) -> Result<()> {
    static ZERO: Derivative = Derivative { facts: None, name: "ZeroBackward0", apply: nothing };
    over(target.physical(), &ZERO, true, zero)
}

static FILL_TENSOR: Derivative =
    Derivative { facts: None, name: "FillBackward3", apply: super::inplace::value_grads };
/// One number everywhere.
pub fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    over(target.physical(), &FILL, true, |body| fill_body(body, value))
}

static FILL: Derivative = Derivative { facts: None, name: "FillBackward2", apply: nothing };

fn fill_with(args: &[Arg]) -> Result<Tensor> {
    let target: Tensor = take("fill_", FILL_PARAMS, args, 0, None)?;
    match take::<Value>("fill_", FILL_PARAMS, args, 1, None)? {
        Value::Scalar(value) => fill(&target, value)?,
        Value::Tensor(value) if value.ndim() > 0 => {
            return Err(Error::runtime(format!(
                "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                value.ndim()
            )));
        }
        Value::Tensor(value) => {
            if !target.is_batched() {
                check_inplace(
                    &target,
                    mode::grad_enabled() && (target.requires_grad() || value.requires_grad()),
                )?;
                check_writable(&target.body())?;
            }
            super::inplace::assign(&FILL_TENSOR, &target, &value)?;
        }
    }
    Ok(target)
}

static FILL_PARAMS: &[Param] = &[
    Param { name: "input", kind: Kind::Tensor, optional: false, default: None, ..Param::PLAIN },
    Param {
        name: "value",
        kind: <Value as FromArg>::KIND,
        optional: false,
        default: text!(),
        ..Param::PLAIN
    },
];
static FILL_ROW: Row = Row {
    name: "fill",
    doc: "One number everywhere.",
    family: "create",
    params: FILL_PARAMS,
    forms: Forms(Forms::INPLACE),
    differentiable: false,
    call: |args| fill_with(args).map(Out::Tensor),
    call_inplace: Some(fill_with),
    ..Row::OLD
};
pub static FILLS: &[&Row] = &[&FILL_ROW];
