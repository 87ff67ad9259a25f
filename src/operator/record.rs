//! From a computed body to a tensor with history: shared by every row that is not pointwise.

use crate::base::{DType, Error, Layout, Lazy, Result};
use crate::operator::pointwise;
use crate::operator::pointwise::{Operand, Pointwise};
use crate::ops::shape::view::RULES;
use crate::tensor::{
    Body, Derivative, Edge, Recorder, Saved, Tensor, Viewing, any_requires_grad, records, saved_hooks,
};
use std::any::Any;
use std::convert::Infallible;

/// Which bit of what a row saves stands for its first argument; the inputs' come before, the outputs' last.
pub const ARGUMENTS: usize = 32;

/// What is saved when an input wants a gradient, and in any case; in which order of inputs and arguments.
pub type Saves<'a> = (&'a [(usize, u64)], u64, &'a [u8]);

/// What an operator's body made.
pub enum Made {
    Body(Body),
    /// The first input's bytes, seen otherwise.
    View(Layout),
    /// Likewise, as elements of another dtype.
    Reread(Layout, DType),
    /// Likewise, with this done to each element when it is read.
    Turned(Lazy),
}

impl From<Body> for Made {
    fn from(body: Body) -> Made {
        Made::Body(body)
    }
}

impl From<Layout> for Made {
    fn from(layout: Layout) -> Made {
        Made::View(layout)
    }
}

impl From<(Layout, DType)> for Made {
    fn from((layout, dtype): (Layout, DType)) -> Made {
        Made::Reread(layout, dtype)
    }
}

impl From<Lazy> for Made {
    fn from(lazy: Lazy) -> Made {
        Made::Turned(lazy)
    }
}

/// Starts a node when any input wants a gradient; before the body runs, so that it sees the inputs as they were.
pub fn begin(
    derivative: &'static Derivative,
    inputs: &[&Tensor],
    params: impl FnOnce() -> Option<Box<dyn Any + Send + Sync>>,
) -> Option<Recorder> {
    any_requires_grad(inputs.iter().copied()).then(|| {
        let mut recorder = Recorder::new(derivative);
        for t in inputs {
            recorder.input_as_shown(t);
        }
        if let Some(params) = params() {
            recorder.params(params);
        }
        recorder
    })
}

/// What this operator made when it ran before, when somebody kept that.
#[inline]
pub fn supplied(recorder: Option<&mut Recorder>) -> Result<Option<Made>> {
    match recorder.filter(|_| saved_hooks::active()) {
        Some(recorder) => supply(recorder),
        None => Ok(None),
    }
}

#[cold]
fn supply(recorder: &mut Recorder) -> Result<Option<Made>> {
    let Some(derivative) = recorder.derivative() else { return Ok(None) };
    recorder.rename(saved_hooks::instead_of(derivative));
    Ok(saved_hooks::supply(derivative)?.map(Made::Body))
}

/// The same for a pointwise row.
pub fn supplied_pointwise(
    op: &'static Pointwise,
    operands: &[Operand],
    result: DType,
) -> Result<Option<Body>> {
    let recorded = saved_hooks::active()
        && !op.gradients.is_empty()
        && result.is_differentiable()
        && any_requires_grad(operands.iter().filter_map(Operand::tensor));
    if recorded { saved_hooks::supply(&op.derivative) } else { Ok(None) }
}

/// Finishes the node and gives the result its history.
pub fn end(
    recorder: Option<Recorder>,
    saves: Saves,
    inputs: &[&Tensor],
    arguments: &[Option<&Tensor>],
    made: Made,
) -> Result<Tensor> {
    match made {
        Made::View(layout) => {
            viewed(recorder, saves, inputs, arguments, inputs[0].body().with_layout(layout))
        }
        Made::Reread(layout, dtype) => {
            let body = Body { dtype, ..inputs[0].body().with_layout(layout) };
            viewed(recorder, saves, inputs, arguments, body)
        }
        Made::Turned(lazy) => {
            let body = inputs[0].body();
            let body = Body { lazy: body.lazy.then(lazy), ..body.clone() };
            viewed(recorder, saves, inputs, arguments, body)
        }
        Made::Body(body) => {
            let recorder = recorder.filter(|_| body.dtype.is_differentiable());
            let edge =
                finish(recorder, saves, inputs, arguments, &[&body])?.map(|node| Edge { node, output: 0 });
            Ok(Tensor::made_by(body, edge))
        }
    }
}

fn viewed(
    recorder: Option<Recorder>,
    saves: Saves,
    inputs: &[&Tensor],
    arguments: &[Option<&Tensor>],
    body: Body,
) -> Result<Tensor> {
    let edge = finish(recorder, saves, inputs, arguments, &[&body])?.map(|node| Edge { node, output: 0 });
    Ok(Tensor::view_of(inputs[0], body, edge, Viewing::Plain, &RULES))
}

/// What to say of an operator that failed with `error`. Its node is made before it runs: what that refuses, or a hook that
/// gets the inputs to keep, is told first.
#[cold]
pub fn refused(
    error: Error,
    recorder: &mut Option<Recorder>,
    saves: Saves,
    inputs: &[&Tensor],
    arguments: &[Option<&Tensor>],
) -> Error {
    if error.is_lazy() {
        return error;
    }
    finish(recorder.take(), saves, inputs, arguments, &[]).err().unwrap_or(error)
}

/// The same for a pointwise row.
#[cold]
pub fn refused_pointwise(op: &'static Pointwise, operands: &[Operand], error: Error) -> Error {
    let bodies = pointwise::bodies(operands);
    let Some(like) = bodies.iter().flatten().next() else { return error };
    let Err(told) = saved_hooks::after(|| -> Result<Infallible> {
        if op.is_recorded() {
            records(operands.iter().filter_map(|o| o.tensor()))?;
        }
        pointwise::record(op, operands, &bodies, like)?;
        Err(error)
    });
    told
}

fn finish(
    recorder: Option<Recorder>,
    saves: Saves,
    inputs: &[&Tensor],
    arguments: &[Option<&Tensor>],
    outputs: &[&Body],
) -> Result<Option<crate::tensor::NodeRef>> {
    let Some(mut recorder) = recorder else { return Ok(None) };
    let (saves, always, order) = saves;
    let wanted = recorder.wanted();
    let need =
        saves.iter().filter(|(input, _)| wanted >> input & 1 == 1).fold(always, |bits, (_, b)| bits | b);
    if need != 0 {
        save(&mut recorder, need, order, inputs, arguments, outputs);
    }
    recorder.check(inputs.iter().copied())?;
    // Indices that follow the values take no gradients, and count for nothing.
    let values = outputs.iter().rposition(|body| body.dtype.is_differentiable()).map_or(0, |last| last + 1);
    let node = recorder.publish(&outputs[..values]);
    let argument = |i: usize| arguments.get(i.checked_sub(usize::from(Saved::ARGUMENT))?).copied().flatten();
    saved_hooks::pack(&node, |i| inputs.get(i).copied().or_else(|| argument(i)), outputs)?;
    Ok(Some(node))
}

/// Keeps the inputs, arguments and outputs whose bits are in `need`.
fn save(
    recorder: &mut Recorder,
    need: u64,
    order: &[u8],
    inputs: &[&Tensor],
    arguments: &[Option<&Tensor>],
    outputs: &[&Body],
) {
    for at in order.iter().map(|&at| usize::from(at)) {
        match at.checked_sub(inputs.len()) {
            None if need >> at & 1 == 1 => drop(recorder.save_input(inputs[at], &inputs[at].body(), at)),
            Some(i) if need >> (ARGUMENTS + i) & 1 == 1 => {
                if let Some(argument) = arguments.get(i).copied().flatten() {
                    recorder.save_argument(argument, i);
                }
            }
            _ => {}
        }
    }
    for (i, output) in outputs.iter().enumerate() {
        if need >> (63 - i) & 1 == 1 {
            recorder.save_output(output, i);
        }
    }
}
