//! Saved values as Python sees them: pack and unpack hooks, and the `_saved_…` and `_raw_saved_…` attributes of nodes.

use super::tensor::{PyTensor, wrap};
use crate::tensor::packing::{self, Pack};
use crate::tensor::{Kept, NodeRef, Tensor, Unpack, freed_error};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;

/// A user's pair of hooks.
struct PyHooks {
    pack: Py<PyAny>,
    unpack: Py<PyAny>,
}

struct PyPacked {
    /// What the pack hook returned; nothing when it returned the node's own output, which the node keeps itself.
    object: Option<Py<PyAny>>,
    unpack: Py<PyAny>,
}

impl Pack for PyHooks {
    fn pack(&self, tensor: &Tensor, output: bool) -> crate::base::Result<(Box<dyn Unpack>, bool)> {
        Python::attach(|py| self.call(py, tensor, output)).map_err(super::errors::carry)
    }
}

impl PyHooks {
    fn call(&self, py: Python<'_>, tensor: &Tensor, output: bool) -> PyResult<(Box<dyn Unpack>, bool)> {
        let returned = self.pack.bind(py).call1((wrap(py, tensor.clone())?,))?;
        let same = output && returned.cast::<PyTensor>().is_ok_and(|t| t.get().tensor.same(tensor));
        let unpack = self.unpack.clone_ref(py);
        let object = (!same).then(|| returned.unbind());
        Ok((Box::new(PyPacked { object, unpack }), same))
    }
}

impl Unpack for PyPacked {
    fn unpack(&self, same: Option<Tensor>) -> crate::base::Result<Tensor> {
        Python::attach(|py| self.call(py, same)).map_err(super::errors::carry)
    }
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void)) {
        if let Some(object) = &self.object {
            see(object.as_ptr().cast());
        }
        see(self.unpack.as_ptr().cast());
    }
}

impl PyPacked {
    fn call(&self, py: Python<'_>, same: Option<Tensor>) -> PyResult<Tensor> {
        let packed = match (&self.object, same) {
            (Some(object), _) => object.bind(py).clone(),
            (None, Some(same)) => wrap(py, same)?,
            (None, None) => return Err(freed_error().into()),
        };
        let returned = self.unpack.bind(py).call1((packed,))?;
        match returned.cast::<PyTensor>() {
            Ok(t) => Ok(t.get().tensor.clone()),
            Err(_) => Err(PyTypeError::new_err(format!(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                returned.get_type().name()?
            ))),
        }
    }
}

/// Sets a pair of hooks for what this thread saves from now on.
#[pyfunction]
pub fn push_saved_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) -> PyResult<()> {
    Ok(packing::push(Arc::new(PyHooks { pack, unpack }))?)
}

/// Goes back to the hooks before the last pair.
#[pyfunction]
pub fn pop_saved_hooks() {
    packing::pop();
}

/// Forbids pairs of hooks, with the message of the error; None allows them again.
#[pyfunction]
pub fn disable_saved_hooks(message: Option<String>) -> PyResult<()> {
    Ok(packing::disable(message)?)
}

/// The message with which hooks are forbidden now.
#[pyfunction]
pub fn saved_hooks_disabled() -> Option<String> {
    packing::disabled_message()
}

/// One saved value of a node, in the form in which the node keeps it.
#[pyclass(name = "SavedTensor", module = "gradiron.autograd.graph", frozen)]
pub struct SavedTensor {
    pub node: NodeRef,
    /// Nothing for a value that the operator was called without.
    pub at: Option<usize>,
}

#[pymethods]
impl SavedTensor {
    /// Packs this value with a pair of hooks of its own.
    fn register_hooks(&self, pack_hook: Py<PyAny>, unpack_hook: Py<PyAny>) -> PyResult<()> {
        let Some(at) = self.at else {
            return Err(PyRuntimeError::new_err(
                "Calling register_hooks on a saved tensor with value None is forbidden",
            ));
        };
        let (body, output) = {
            let saves = self.node.saves();
            match saves.values.get(at) {
                _ if saves.freed => return Err(hooks_after_free()),
                None => return Err(hooks_after_free()),
                Some(saved) => match &saved.kept {
                    Kept::Packed(_) => {
                        return Err(PyRuntimeError::new_err(
                            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one \
                             pair of hooks is allowed at a time.",
                        ));
                    }
                    Kept::Body(body) => (body.clone(), saved.is_output()),
                },
            }
        };
        let hooks = PyHooks { pack: pack_hook, unpack: unpack_hook };
        let packed = packing::pack_tensor(&hooks, &Tensor::new(body), output)?;
        let old = match self.node.saves().values.get_mut(at) {
            Some(saved) => std::mem::replace(&mut saved.kept, Kept::Packed(Arc::new(packed))),
            None => return Err(hooks_after_free()),
        };
        drop(old);
        Ok(())
    }

    /// The tensor.
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.at {
            Some(at) => wrap(py, unpack_at(&self.node, at)?),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

fn hooks_after_free() -> PyErr {
    PyRuntimeError::new_err(
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are \
         freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the \
         graph a second time or if you need to access saved variables after calling backward.",
    )
}

/// A saved value as a tensor. No lock is held while a hook runs.
pub fn unpack_at(node: &NodeRef, at: usize) -> PyResult<Tensor> {
    let saved = {
        let saves = node.saves();
        match saves.values.get(at) {
            Some(saved) if !saves.freed => saved.share(),
            _ => return Err(freed_error().into()),
        }
    };
    Ok(saved.unpack(node)?)
}
