//! Custom Functions under `vmap`: with their own batching rule, or on batched tensors directly.

use crate::operator::batch;
use crate::python::function::context::unrecorded;
use crate::python::objects::tuple;
use crate::python::transforms::vmap::{is_transformed, randomness_name, without_rules};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::levels::vmap;
use crate::tensor::{Marks, Tensor, any_requires_grad, mode};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Refuses a custom Function that the active transforms do not support.
#[inline]
pub fn check_function(class: &Bound<'_, PyAny>) -> PyResult<()> {
    if !is_transformed() || without_rules() {
        return Ok(());
    }
    let check = class.py().import("gradiron.func._function")?.getattr("check_support")?;
    check.call1((class, vmap::is_under_way())).map(drop)
}

/// Applies a custom Function to batched tensors with its `vmap` rule, which gets the physical tensors
/// outside of the level. Returns None if no tensor is batched. `flags` are those of the arguments, without the
/// tensors inside of containers.
pub fn apply_function<'py>(
    class: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    flags: Marks,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !flags.is_batched() && !vmap::is_under_way() {
        return Ok(None);
    }
    let module = class.py().import("gradiron.func._function")?;
    let (leaves, structure): (Bound<'py, PyTuple>, Bound<'py, PyAny>) =
        module.getattr("leaves_for_rule")?.call1((class, args))?.extract()?;
    let inputs: Vec<Option<Tensor>> =
        leaves.iter().map(|leaf| leaf.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone())).collect();
    if !inputs.iter().flatten().any(Tensor::is_batched) {
        return Ok(None);
    }
    if !class.getattr("_own_setup")?.is_truthy()? {
        return apply_as_it_is(class, args, &inputs).map(Some);
    }
    let level = inputs.iter().flatten().filter_map(|t| t.as_batched()?.levels.last().copied()).max();
    let frame = vmap::frames().into_iter().find(|f| Some(f.level) == level);
    let frame = frame.ok_or_else(|| PyRuntimeError::new_err("vmap: a batched tensor outlived its vmap"))?;
    let randomness = randomness_name(frame.randomness);
    let mut leaves: Vec<Bound<'py, PyAny>> = leaves.iter().collect();
    let (places, tensors): (Vec<usize>, Vec<&Tensor>) =
        inputs.iter().enumerate().filter_map(|(i, t)| Some((i, t.as_ref()?))).unzip();
    for (place, own) in places.into_iter().zip(batch::own_samples(&tensors)?) {
        if let Some(own) = own {
            leaves[place] = wrap(class.py(), own)?;
        }
    }
    let leaves = tuple(class.py(), leaves)?;
    let apply = module.getattr("apply_batched")?;
    vmap::outside(frame.level, || {
        apply.call1((class, leaves, structure, frame.level, frame.size, randomness)).map(Some)
    })
}

/// Applies a Function whose forward takes a context, which has no batching rule, to batched tensors
/// directly.
fn apply_as_it_is<'py>(
    class: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    inputs: &[Option<Tensor>],
) -> PyResult<Bound<'py, PyAny>> {
    if any_requires_grad(inputs.iter().flatten()) {
        return Err(PyRuntimeError::new_err(
            "a custom Function without a setup_context cannot be recorded under vmap: define setup_context, or leave out create_graph",
        ));
    }
    let ctx = unrecorded(&class.getattr("_backward_cls")?, args.len())?;
    let all: Vec<Bound<'py, PyAny>> = std::iter::once(ctx).chain(args.iter()).collect();
    mode::with_grad(false, || class.getattr("forward")?.call1(tuple(class.py(), all)?))
}
