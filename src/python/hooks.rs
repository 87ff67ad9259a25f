//! Hooks as Python sees them: handles that take them off again, and the lists that hang on a tensor.

use super::node::hang;
use super::tensor::PyTensor;
use crate::arena::Id;
use crate::tensor::{Node, NodeRef, When};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType, PyWeakrefReference};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes a hook off again: `remove()`, or the end of a `with` block. Made by hand, it removes its number from dictionaries.
#[pyclass(frozen, weakref, subclass, name = "RemovableHandle", module = "gradiron.utils.hooks")]
pub struct Handle {
    at: Place,
    /// Written once, by who makes a copy.
    id: AtomicU64,
}

enum Place {
    /// By name: a hook that holds its own handle must not keep its node.
    Node(Id<Node>),
    /// A node that is still to come.
    Coming(OnceLock<Id<Node>>),
    /// Weak references to a dictionary of hooks, and to others that know it by the same number.
    Dicts(Vec<Py<PyWeakrefReference>>),
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The number of a hook that was taken off before there was a node to hang it on.
const OFF: u64 = u64::MAX;

impl Handle {
    pub fn new(node: &NodeRef, id: u64) -> Handle {
        Handle { at: Place::Node(node.id()), id: id.into() }
    }

    /// The handle of a hook that waits for its node.
    fn coming() -> Handle {
        Handle { at: Place::Coming(OnceLock::new()), id: 0.into() }
    }
}

#[pymethods]
impl Handle {
    #[new]
    #[pyo3(signature = (hooks_dict, *, extra_dict = None))]
    fn by_hand(hooks_dict: &Bound<'_, PyAny>, extra_dict: Option<&Bound<'_, PyAny>>) -> PyResult<Handle> {
        let mut all = vec![hooks_dict.clone()];
        if let Some(extra) = extra_dict {
            match extra.cast::<PyList>() {
                Ok(list) => all.extend(list.iter()),
                Err(_) => all.push(extra.clone()),
            }
        }
        let weak =
            all.iter().map(|d| PyWeakrefReference::new(d).map(Bound::unbind)).collect::<PyResult<_>>()?;
        Ok(Handle { at: Place::Dicts(weak), id: NEXT.fetch_add(1, Ordering::Relaxed).into() })
    }
    #[getter]
    fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }
    fn __copy__(&self, py: Python<'_>) -> Handle {
        let at = match &self.at {
            Place::Node(node) => Place::Node(*node),
            Place::Coming(node) => Place::Coming(node.clone()),
            Place::Dicts(dicts) => Place::Dicts(dicts.iter().map(|dict| dict.clone_ref(py)).collect()),
        };
        Handle { at, id: self.id().into() }
    }
    /// What comes of a pickle, or of a deep copy, has the number and nothing to remove: hooks are not copied.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyAny>,), u64)> {
        let nothing = slf.py().import("collections")?.getattr(intern!(slf.py(), "OrderedDict"))?.call0()?;
        Ok((slf.get_type(), (nothing,), slf.get().id()))
    }
    fn __setstate__(&self, id: u64) {
        self.id.store(id, Ordering::Relaxed);
    }
    /// Takes the hook off; once more does nothing.
    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        match &self.at {
            Place::Node(node) => take_off(*node, self.id()),
            Place::Coming(node) => match node.get() {
                Some(node) => take_off(*node, self.id()),
                None => self.id.store(OFF, Ordering::Relaxed),
            },
            Place::Dicts(dicts) => {
                for dict in dicts {
                    let dict = dict.bind(py).call0()?;
                    if !dict.is_none() && dict.contains(self.id())? {
                        dict.del_item(self.id())?;
                    }
                }
            }
        }
        Ok(())
    }
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.remove(py)
    }
}

fn take_off(node: Id<Node>, id: u64) {
    if let Some(node) = node.upgrade() {
        node.remove_hook(id);
    }
}

/// A hook of a Function's context, hung before there is a node.
pub struct Early {
    when: When,
    hook: Py<PyAny>,
    handle: Py<Handle>,
}

impl Early {
    pub fn new(py: Python<'_>, when: When, hook: Py<PyAny>) -> PyResult<Early> {
        Ok(Early { when, hook, handle: Py::new(py, Handle::coming())? })
    }
    pub fn handle<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.handle.bind(py).clone().into_any()
    }
    /// Hangs the hook on the node, unless it was taken off meanwhile.
    pub fn settle(self, node: &NodeRef) {
        let handle = self.handle.get();
        if let (Place::Coming(at), true) = (&handle.at, handle.id() != OFF) {
            handle.id.store(hang(node, self.when, self.hook), Ordering::Relaxed);
            let _ = at.set(node.id());
        }
    }
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hook)
    }
}

/// The hooks of one moment as an ordered dictionary, None when there is none.
fn listed<'py>(
    slf: &Bound<'py, PyTensor>,
    at: impl Fn(When, u32) -> bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    let Some(edge) = slf.get().tensor.edge_for_hooks().filter(|edge| edge.node.has_hooks()) else {
        return Ok(None);
    };
    // SAFETY: the node keeps the callable as long as it is among its hooks, which are locked.
    let held = |host: *mut std::ffi::c_void| unsafe { Bound::from_borrowed_ptr(py, host.cast()) };
    let found: Vec<(u64, Bound<'py, PyAny>)> = {
        let hooks = edge.node.hooks();
        hooks.list.iter().filter(|h| at(h.1, edge.output)).map(|h| (h.0, held(h.2.host()))).collect()
    };
    if found.is_empty() {
        return Ok(None);
    }
    let dict = py.import("collections")?.getattr(intern!(py, "OrderedDict"))?.call0()?;
    for (id, hook) in found {
        dict.set_item(id, hook)?;
    }
    Ok(Some(dict))
}

/// Hangs a tensor's hooks on its place among the outputs of a node, unless they hang there already.
pub fn adopt(node: Option<&NodeRef>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(tensor) = tensor.cast::<PyTensor>() else {
        return Err(PyTypeError::new_err("_register_hook_dict expected a variable"));
    };
    let tensor = &tensor.get().tensor;
    let (Some(node), Some(edge)) = (node, tensor.edge_for_hooks()) else { return Ok(()) };
    if !node.ptr_eq(&edge.node) {
        let output = tensor.history().map_or(0, |edge| edge.output);
        let hooks = edge.node.hooks_at(|when| when == When::Output(edge.output));
        for (_, hook) in hooks {
            node.add_hook(When::Output(output), hook);
        }
    }
    Ok(())
}

#[pymethods]
impl PyTensor {
    #[getter]
    fn _backward_hooks<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        listed(slf, |when, output| when == When::Output(output))
    }
    #[getter]
    fn _post_accumulate_grad_hooks<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        listed(slf, |when, _| when == When::Accumulated)
    }
}

/// A flag, as PyTorch's parser reads it.
pub fn flag(function: &str, name: &str, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.cast::<pyo3::types::PyBool>().map(|b| b.is_true()).map_err(|_| {
        let kind = object.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!("{function}(): argument '{name}' (position 1) must be bool, not {kind}"))
    })
}
