//! From a computed body to a tensor with history: shared by every row that is not pointwise.

use super::view::RULES;
use crate::base::{Layout, Result};
use crate::tensor::{Body, Derivative, Edge, Recorder, Tensor, Viewing, any_requires_grad, packing};
use std::any::Any;

/// What an operator's body made.
pub enum Made {
    Body(Body),
    /// The first input's bytes, seen otherwise.
    View(Layout),
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

/// Starts a node when any input wants a gradient; before the body runs, so that it sees the inputs as they were.
pub fn begin(
    derivative: &'static Derivative,
    inputs: &[&Tensor],
    params: impl FnOnce() -> Option<Box<dyn Any + Send + Sync>>,
) -> Option<Recorder> {
    any_requires_grad(inputs.iter().copied()).then(|| {
        let mut recorder = Recorder::new(derivative);
        for t in inputs {
            recorder.input(Some(t));
        }
        if let Some(params) = params() {
            recorder.params(params);
        }
        recorder
    })
}

/// Finishes the node and gives the result its history.
pub fn end(
    recorder: Option<Recorder>,
    saves: &[(usize, u64)],
    inputs: &[&Tensor],
    made: Made,
) -> Result<Tensor> {
    match made {
        Made::View(layout) => {
            let source = inputs[0];
            let body = source.body().with_layout(layout);
            let edge = finish(recorder, saves, inputs, &[&body])?.map(|node| Edge { node, output: 0 });
            Ok(Tensor::view_of(source, body, edge, Viewing::Plain, &RULES))
        }
        Made::Body(body) => {
            let recorder = recorder.filter(|_| body.dtype.is_float());
            let edge = finish(recorder, saves, inputs, &[&body])?.map(|node| Edge { node, output: 0 });
            Ok(Tensor::made_by(body, edge))
        }
    }
}

/// The same for several outputs; those that are not floating point get no history.
pub fn end_many(
    recorder: Option<Recorder>,
    saves: &[(usize, u64)],
    inputs: &[&Tensor],
    bodies: Vec<Body>,
) -> Result<Vec<Tensor>> {
    let recorder = recorder.filter(|_| bodies.iter().any(|b| b.dtype.is_float()));
    let node = finish(recorder, saves, inputs, &bodies.iter().collect::<Vec<_>>())?;
    let with_edge = |(i, body): (usize, Body)| {
        let edge = node.clone().filter(|_| body.dtype.is_float()).map(|node| Edge { node, output: i as u32 });
        Tensor::made_by(body, edge)
    };
    Ok(bodies.into_iter().enumerate().map(with_edge).collect())
}

fn finish(
    recorder: Option<Recorder>,
    saves: &[(usize, u64)],
    inputs: &[&Tensor],
    outputs: &[&Body],
) -> Result<Option<crate::tensor::NodeRef>> {
    let Some(mut recorder) = recorder else { return Ok(None) };
    let wanted = recorder.wanted();
    let need = saves.iter().filter(|(input, _)| wanted >> input & 1 == 1).fold(0, |bits, (_, b)| bits | b);
    for (i, input) in inputs.iter().enumerate() {
        if need >> i & 1 == 1 {
            recorder.save_input(&input.body(), i);
        }
    }
    for (i, output) in outputs.iter().enumerate() {
        if need >> (63 - i) & 1 == 1 {
            recorder.save_output(output, i);
        }
    }
    recorder.check(inputs.iter().copied())?;
    let node = recorder.publish(outputs);
    packing::pack(&node, |i| inputs.get(i).copied())?;
    Ok(Some(node))
}
