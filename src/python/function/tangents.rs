//! Forward mode through a custom Function: its `jvp` computes the tangents of forward's results.

use crate::base::{Error, Guidance};
use crate::operator::call::results::PlainView;
use crate::operator::primitives::constant;
use crate::operator::tangent::{check_shape, own_tangent, same_layout};
use crate::python::function::context::Ctx;
use crate::python::function::options::tuple_of;
use crate::python::function::outputs::Marks;
use crate::python::objects::{ClassName, name_of, to_tuple, tuple};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::levels::tangents::{self, DualLevel};
use crate::tensor::{Saved, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Calls a Function's `jvp` for the tangents of forward's results, at each dual level.
pub fn function_tangents<'py>(
    class: &Bound<'py, PyAny>,
    ctx: &Bound<'py, PyAny>,
    inputs: &[Option<Tensor>],
    outputs: &mut [Bound<'py, PyAny>],
    marks: &Marks,
) -> PyResult<()> {
    let py = class.py();
    let state = ctx.cast::<Ctx>()?;
    let (saved, keep_none) = state.get().take_for_forward();
    let saved = tuple_of(py, "saved_for_forward", saved)?;
    let asked = saved.is_some();
    let saved = saved.unwrap_or_else(|| PyTuple::empty(py));
    for output in outputs.iter_mut() {
        // An input that is returned unchanged needs its own tangent, so it becomes a view.
        if let Ok(t) = output.cast::<PyTensor>().map(|t| t.get().tensor.clone())
            && t.is_dual()
            && !marks.is_dirty(&t)
        {
            *output = wrap(py, t.body().layout.clone().plain_view(&t))?;
        }
    }
    let none = || py.None().into_bound(py);
    for level in tangents::levels_of(inputs.iter().flatten()) {
        let shown = saved.iter().map(|object| match object.cast::<PyTensor>() {
            Ok(t) => wrap(py, t.get().tensor.below(level)),
            Err(_) => Ok(object),
        });
        let shown = to_tuple(py, saved.len(), shown)?;
        let mut arguments = vec![ctx.clone()];
        for input in inputs {
            arguments.push(match input.as_ref().map(|t| (t, t.tangent(level))) {
                Some((_, Some(tangent))) => wrap(py, tangent)?,
                Some((t, None)) if !keep_none && t.dtype().is_differentiable() => {
                    wrap(py, constant::zeros(&t.shape(), t.dtype(), t.device())?)?
                }
                _ => none(),
            });
        }
        let seen: Vec<Option<u32>> =
            inputs.iter().map(|t| Some(t.as_ref()?.tangent(level)?.version())).collect();
        if asked {
            state.get().set_saved_for_forward(shown.as_any());
        }
        state.get().show(Some(shown.unbind()));
        let returned = class.getattr(intern!(py, "jvp")).and_then(|jvp| jvp.call1(tuple(py, arguments)?));
        state.get().show(None);
        drop(state.get().take_for_forward());
        let returned = returned?;
        let values: Vec<Bound<'py, PyAny>> = match returned.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![returned],
        };
        if values.len() != outputs.len() {
            return Err(misuse(
                class,
                format!(
                    "Function's jvp returned an invalid number of forward gradients (expected {} but got {})",
                    outputs.len(),
                    values.len()
                ),
            ));
        }
        for (i, (value, output)) in values.iter().zip(outputs.iter()).enumerate() {
            let differentiable = output
                .cast::<PyTensor>()
                .ok()
                .map(|t| &t.get().tensor)
                .filter(|t| marks.is_differentiable(t));
            match differentiable {
                Some(output) => take_tangent(class, output, value, i, level, inputs, &seen)?,
                None if value.is_none() || output.cast::<PyTensor>().is_err() => {}
                None => {
                    return Err(misuse(
                        class,
                        format!(
                            "Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a \
                         differentiable Tensor.You should return None at that position instead."
                        ),
                    ));
                }
            }
        }
    }
    if let Some(node) = Ctx::node(state) {
        let made: Vec<Option<Tensor>> =
            outputs.iter().map(|o| o.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone())).collect();
        tangents::remember(&node, |source| match source.checked_sub(Saved::OUTPUT) {
            Some(output) => made.get(output as usize)?.as_ref(),
            None => inputs.get(source as usize)?.as_ref(),
        });
    }
    Ok(())
}

/// An error about the result of a Function's `jvp`.
#[cold]
fn misuse(class: &Bound<'_, PyAny>, message: impl Into<String>) -> PyErr {
    let name = name_of(class, "Function");
    Error::from(Guidance::new(message).note("operator", format!("{name}.jvp"), None)).into()
}

/// Sets the tangent of output `i` to the result of `jvp`; `seen` has the versions of the inputs' tangents
/// before the call.
fn take_tangent(
    class: &Bound<'_, PyAny>,
    output: &Tensor,
    value: &Bound<'_, PyAny>,
    i: usize,
    level: DualLevel,
    inputs: &[Option<Tensor>],
    seen: &[Option<u32>],
) -> PyResult<()> {
    let tangent = match value.cast::<PyTensor>() {
        Ok(t) => t.get().tensor.clone(),
        Err(_) if value.is_none() => return Ok(()),
        Err(_) => {
            return Err(misuse(
                class,
                format!("expected Variable or None (got {}) for grad output {i}.", value.class_name()?),
            ));
        }
    };
    check_shape(output, &tangent)?;
    if let Some(at) = inputs.iter().position(|t| t.as_ref().is_some_and(|t| t.same(output))) {
        let old = inputs[at].as_ref().and_then(|written| written.tangent(level));
        if old.is_some_and(|old| !old.same(&tangent) || seen[at] == Some(old.version())) {
            return Err(misuse(
                class,
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying \
                 an input inplace, then the jvp function must modify the corresponding gradient inplace.",
            ));
        }
        return Ok(output.set_tangent(level, tangent)?);
    }
    let shares = |a: &Tensor, b: &Tensor| a.physical().body().storage.same(&b.physical().body().storage);
    let Some(viewed) = inputs.iter().flatten().find(|t| shares(t, output)) else {
        // A tangent with the layout of the output is used as it is, even if it is shared.
        let alike = same_layout(&output.body(), &tangent.body());
        return Ok(output.set_tangent(level, if alike { tangent } else { own_tangent(output, tangent)? })?);
    };
    if viewed.tangent(level).is_some_and(|whole| whole.same(&tangent) || !shares(&whole, &tangent)) {
        let message = match (tangent.as_view(), viewed.tangent_base()) {
            (None, _) => {
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            }
            (_, None) => {
                "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
            }
            _ => {
                "A custom Function is returning a view but the jvp is not returning a view of the same base as the given \
                 grad input."
            }
        };
        return Err(misuse(class, message));
    }
    Ok(output.set_tangent(level, tangent)?)
}
