//! Python callables as hooks: their arguments, and the checks of their results.

use crate::base::Error;
use crate::python::objects::{ClassName, name_of, to_tuple};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::{Hook, NodeRef, Tensor, When, kind_in_words};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

pub struct PyHook {
    pub callable: Py<PyAny>,
    pub when: When,
}

impl Hook for PyHook {
    fn call(
        &self,
        inputs: &[Option<Tensor>],
        outputs: &[Option<Tensor>],
    ) -> crate::base::Result<Option<crate::tensor::Grads>> {
        Python::attach(|py| self.invoke(py, inputs, outputs))
    }
    fn host(&self) -> *mut std::ffi::c_void {
        self.callable.as_ptr().cast()
    }
}

impl PyHook {
    fn invoke(
        &self,
        py: Python<'_>,
        inputs: &[Option<Tensor>],
        outputs: &[Option<Tensor>],
    ) -> crate::base::Result<Option<crate::tensor::Grads>> {
        let object = |t: &Option<Tensor>| match t {
            Some(t) => wrap(py, t.clone()),
            None => Ok(py.None().into_bound(py)),
        };
        let list = |ts: &[Option<Tensor>]| to_tuple(py, ts.len(), ts.iter().map(object));
        let returned = match self.when {
            When::Output(_) | When::Accumulated => self.callable.bind(py).call1((object(&inputs[0])?,))?,
            When::Before => self.callable.bind(py).call1((list(outputs)?,))?,
            When::After => self.callable.bind(py).call1((list(inputs)?, list(outputs)?))?,
        };
        if returned.is_none() {
            return Ok(None);
        }
        if self.when == When::Accumulated {
            // Returning the leaf itself changes nothing, as `lambda p: p.add_(p.grad, alpha=-rate)` does.
            if returned.is(&object(&inputs[0])?) {
                return Ok(None);
            }
            check(&returned, None, self.callable.bind(py))?;
            return Err(Error::runtime("Tensor post accumulate grad hooks should return None."));
        }
        let before = if self.when == When::Before { outputs } else { inputs };
        let values: Vec<Bound<'_, PyAny>> = match returned.cast_into::<PyTuple>() {
            Ok(tuple) if !matches!(self.when, When::Output(_)) => tuple.iter().collect(),
            Ok(tuple) => vec![tuple.into_any()],
            Err(other) if matches!(self.when, When::Output(_)) => vec![other.into_inner()],
            Err(other) => {
                return Err(Error::type_error(format!(
                    "expected tuple, but hook returned '{}'",
                    other.into_inner().class_name()?
                )));
            }
        };
        if values.len() != before.len() {
            return Err(Error::runtime(format!(
                "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
                name_of(self.callable.bind(py), "<unknown>"),
                values.len(),
                before.len()
            )));
        }
        let mut out = crate::tensor::Grads::new();
        for (value, old) in values.iter().zip(before) {
            if old.is_none() && !value.is_none() {
                return Err(Error::runtime("can't replace a None gradient with a non-None value"));
            }
            out.push(check(value, old.as_ref(), self.callable.bind(py))?);
        }
        Ok(Some(out))
    }
}

/// Names the dtype, device and layout of a tensor, as PyTorch's errors of hooks do.
fn type_words(t: &Tensor) -> String {
    let words = kind_in_words(t.dtype(), t.device_of_values());
    if t.is_sparse() { words.replacen("torch.", "torch.sparse.", 1) } else { words }
}

/// Checks that a hook's result has the type and shape of the gradient that it replaces.
fn check(
    value: &Bound<'_, PyAny>,
    old: Option<&Tensor>,
    hook: &Bound<'_, PyAny>,
) -> crate::base::Result<Option<Tensor>> {
    if value.is_none() {
        return Ok(None);
    }
    let Ok(new) = value.cast::<PyTensor>() else {
        return Err(Error::type_error(format!(
            "expected Variable, but hook returned '{}'",
            value.class_name()?
        )));
    };
    let new = new.get().tensor.clone();
    let name = || name_of(hook, "<unknown>");
    if let Some(old) = old {
        if new.dtype() != old.dtype() || new.is_sparse() != old.is_sparse() {
            return Err(Error::runtime(format!(
                "hook '{}' has changed the type of value (was {} got {})",
                name(),
                type_words(old),
                type_words(&new)
            )));
        }
        if new.shape() != old.shape() {
            return Err(Error::runtime(format!("hook '{}' has changed the size of value", name())));
        }
    }
    Ok(Some(new))
}

/// Adds a Python callable to a node's hooks.
pub fn add_callable(node: &NodeRef, when: When, callable: Py<PyAny>) -> u64 {
    node.add_hook(when, Arc::new(PyHook { callable, when }))
}
