//! Hooks as Python sees them: handles that remove them again, and the lists that a tensor has.

use crate::arena::Id;
use crate::base::{lock, try_alloc};
use crate::python::graph::callable_hook::add_callable;
use crate::python::graph::tensor_or_edge::no_hook;
use crate::python::objects::{ClassName, Made};
use crate::python::wrapper::class::PyTensor;
use crate::python::wrapper::collector;
use crate::storage::reserve;
use crate::tensor::{Node, NodeRef, When};
use gradiron_macros::pymethods;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType, PyWeakrefReference};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Removes a hook: by `remove()`, or at the end of a `with` block. One made by the user removes its number from dictionaries.
#[pyclass(frozen, weakref, subclass, name = "RemovableHandle", module = "gradiron.utils.hooks")]
pub struct Handle {
    at: TensorOrEdge,
    /// Written once, by who makes a copy.
    id: AtomicU64,
}

enum TensorOrEdge {
    /// By id: a hook that holds its own handle must not keep its node alive.
    Node(Id<Node>),
    /// A node that is not made yet.
    Coming(OnceLock<Id<Node>>),
    /// Weak references to a dictionary of hooks, and to others that know it by the same number. A pickle brings its own.
    Dicts(Mutex<Vec<Py<PyWeakrefReference>>>),
}

/// What a handle is made of again: its number, and the dictionaries that there still are.
type State<'py> = (u64, Vec<Bound<'py, PyAny>>);

fn weak(dicts: &[Bound<'_, PyAny>]) -> PyResult<Vec<Py<PyWeakrefReference>>> {
    dicts.iter().map(|dict| PyWeakrefReference::new(dict).map(Bound::unbind)).collect()
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The number of a hook that was taken removed before there was a node for it.
const OFF: u64 = u64::MAX;

impl Handle {
    pub fn new(node: &NodeRef, id: u64) -> Handle {
        Handle { at: TensorOrEdge::Node(node.id()), id: id.into() }
    }

    /// The handle of a hook that waits for its node.
    fn coming() -> Handle {
        Handle { at: TensorOrEdge::Coming(OnceLock::new()), id: 0.into() }
    }

    /// The dictionaries that there still are.
    fn dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let TensorOrEdge::Dicts(dicts) = &self.at else { return Ok(Vec::new()) };
        let weak: Vec<_> = lock(dicts).iter().map(|dict| dict.clone_ref(py)).collect();
        let mut there = Vec::with_capacity(weak.len());
        for dict in weak {
            let dict = dict.bind(py).call0()?;
            if !dict.is_none() {
                there.push(dict);
            }
        }
        Ok(there)
    }
}

#[pymethods]
impl Handle {
    #[new]
    #[pyo3(signature = (hooks_dict, *, extra_dict = None))]
    fn by_hand(hooks_dict: &Bound<'_, PyAny>, extra_dict: Option<&Bound<'_, PyAny>>) -> PyResult<Handle> {
        reserve::check()?;
        let mut all = vec![hooks_dict.clone()];
        if let Some(extra) = extra_dict {
            match extra.cast::<PyList>() {
                Ok(list) => all.extend(list.iter()),
                Err(_) => all.push(extra.clone()),
            }
        }
        let at = TensorOrEdge::Dicts(Mutex::new(weak(&all)?));
        Ok(Handle { at, id: NEXT.fetch_add(1, Ordering::Relaxed).into() })
    }
    #[getter]
    fn id(&self) -> Made<u64> {
        Made(self.id.load(Ordering::Relaxed))
    }
    /// A weak reference to the dictionary that the hook is in; none for those of tensors and nodes, which have no dictionary.
    #[getter]
    fn hooks_dict_ref(&self, py: Python<'_>) -> Option<Py<PyWeakrefReference>> {
        let TensorOrEdge::Dicts(dicts) = &self.at else { return None };
        lock(dicts).first().map(|dict| dict.clone_ref(py))
    }
    fn __copy__(&self, py: Python<'_>) -> Handle {
        let at = match &self.at {
            TensorOrEdge::Node(node) => TensorOrEdge::Node(*node),
            TensorOrEdge::Coming(node) => TensorOrEdge::Coming(node.clone()),
            TensorOrEdge::Dicts(dicts) => {
                TensorOrEdge::Dicts(Mutex::new(lock(dicts).iter().map(|dict| dict.clone_ref(py)).collect()))
            }
        };
        Handle { at, id: self.id().0.into() }
    }
    /// A handle from a pickle or a deep copy removes from the dictionaries that come with it. Tensors' hooks are not copied.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyAny>,), State<'py>)> {
        let py = slf.py();
        let nothing = py.import("collections")?.getattr(intern!(py, "OrderedDict"))?.call0()?;
        let dicts = slf.get().dicts(py)?;
        Ok((slf.get_type(), (nothing,), (slf.get().id().0, dicts)))
    }
    fn __setstate__(&self, state: State<'_>) -> PyResult<()> {
        let (id, dicts) = state;
        if !dicts.is_empty() {
            // Of another process, perhaps: the dictionaries' numbers must not be given again.
            NEXT.fetch_max(id.saturating_add(1), Ordering::Relaxed);
        }
        self.id.store(id, Ordering::Relaxed);
        if let TensorOrEdge::Dicts(own) = &self.at {
            *lock(own) = weak(&dicts)?;
        }
        Ok(())
    }
    /// Removes the hook; a second call does nothing.
    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        match &self.at {
            TensorOrEdge::Node(node) => take_off(*node, self.id().0),
            TensorOrEdge::Coming(node) => match node.get() {
                Some(node) => take_off(*node, self.id().0),
                None => self.id.store(OFF, Ordering::Relaxed),
            },
            TensorOrEdge::Dicts(_) => {
                for dict in self.dicts(py)? {
                    if dict.contains(self.id().0)? {
                        dict.del_item(self.id().0)?;
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

/// A hook that a Function's context was given before there is a node.
pub struct Early {
    when: When,
    hook: Py<PyAny>,
    handle: Py<Handle>,
}

impl Early {
    pub fn new(py: Python<'_>, when: When, hook: Py<PyAny>) -> PyResult<Early> {
        reserve::check()?;
        Ok(Early { when, hook, handle: Py::new(py, Handle::coming())? })
    }
    pub fn handle<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.handle.bind(py).clone().into_any()
    }
    /// Adds the hook to the node, unless it was removed meanwhile.
    pub fn attach(self, node: &NodeRef) {
        let handle = self.handle.get();
        if let (TensorOrEdge::Coming(at), true) = (&handle.at, handle.id().0 != OFF) {
            handle.id.store(add_callable(node, self.when, self.hook), Ordering::Relaxed);
            let _ = at.set(node.id());
        }
    }
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hook)
    }
}

/// A dictionary of hooks that was assigned as a whole: the hooks that it has at the time of the backward are called.
#[pyclass(frozen, module = "gradiron")]
pub struct Assigned {
    hooks: Py<PyDict>,
    when: When,
}

#[pymethods]
impl Assigned {
    fn __call__<'py>(&self, given: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut current = given;
        // By its own methods: it may be an ordered dictionary.
        let hooks = self.hooks.bind(current.py()).call_method0(intern!(current.py(), "values"))?;
        for hook in hooks.try_iter()?.collect::<PyResult<Vec<_>>>()? {
            let made = hook.call1((&current,))?;
            if made.is_none() || self.when == When::Accumulated {
                continue;
            }
            if !made.is_instance_of::<PyTensor>() {
                let kind = made.class_name()?;
                return Err(PyTypeError::new_err(format!("expected Variable, but hook returned '{kind}'")));
            }
            current = made;
        }
        let py = current.py();
        Ok(if self.when == When::Accumulated { py.None().into_bound(py) } else { current })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector may look between the allocation and the first value.
        if self.hooks.as_ptr().is_null() { Ok(()) } else { visit.call(&self.hooks) }
    }
}

/// A tensor's hooks of one moment, with their numbers.
fn found<'py>(
    slf: &Bound<'py, PyTensor>,
    at: impl Fn(When, u32) -> bool,
    most: usize,
) -> PyResult<Vec<(u64, Bound<'py, PyAny>)>> {
    let py = slf.py();
    let Some(edge) = slf.get().tensor.edge_for_hooks().filter(|edge| edge.node.has_hooks()) else {
        return Ok(Vec::new());
    };
    // SAFETY: the node keeps the callable as long as it is among its hooks, which are locked.
    let held = |host: *mut std::ffi::c_void| unsafe { Bound::from_borrowed_ptr(py, host.cast()) };
    let hooks = edge.node.hooks();
    let found = hooks.list.iter().filter(|(_, hook)| at(hook.0, edge.output));
    Ok(try_alloc::all(found.take(most).map(|(id, hook)| (*id, held(hook.1.host()))))?)
}

/// The hooks of one moment as an ordered dictionary, None when there is none.
fn listed<'py>(
    slf: &Bound<'py, PyTensor>,
    at: impl Fn(When, u32) -> bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, found) = (slf.py(), found(slf, at, usize::MAX)?);
    if let [(_, only)] = &found[..]
        && let Ok(assigned) = only.cast::<Assigned>()
    {
        return Ok(Some(assigned.get().hooks.bind(py).clone().into_any()));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let dict = py.import("collections")?.getattr(intern!(py, "OrderedDict"))?.call0()?;
    for (id, hook) in found {
        match hook.cast::<Assigned>() {
            Ok(assigned) => drop(dict.call_method1("update", (&assigned.get().hooks,))?),
            Err(_) => dict.set_item(id, hook)?,
        }
    }
    Ok(Some(dict))
}

/// Puts a hook into the dictionary that was assigned to a leaf, where there is one.
pub fn join_assigned<'py>(
    slf: &Bound<'py, PyTensor>,
    when: When,
    hook: &Py<PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !slf.get().tensor.is_leaf() {
        return Ok(None);
    }
    // An assigned dictionary replaces all hooks before it, so that it is the first hook, if there is one.
    let first = found(slf, |own, _| own == when, 1)?;
    let Some(Ok(assigned)) = first.first().map(|(_, own)| own.cast::<Assigned>()) else { return Ok(None) };
    let hooks = assigned.get().hooks.bind(slf.py());
    let handle = Bound::new(slf.py(), Handle::by_hand(hooks, None)?)?;
    hooks.as_any().set_item(handle.get().id().0, hook)?;
    Ok(Some(handle.into_any()))
}

/// `x._backward_hooks = hooks`: a leaf has these from now on, and no others. (Of other tensors PyTorch's engine does not look
/// at what is assigned.)
fn assign(slf: &Bound<'_, PyTensor>, when: When, hooks: &Bound<'_, PyAny>) -> PyResult<()> {
    let tensor = &slf.get().tensor;
    let dict = match hooks.cast::<PyDict>() {
        Ok(dict) => Some(dict),
        Err(_) if hooks.is_none() => None,
        Err(_) => {
            let kind = hooks.class_name()?;
            return Err(PyTypeError::new_err(format!("hooks are assigned as a dict or None, not {kind}")));
        }
    };
    if !tensor.is_leaf() {
        return Ok(());
    }
    let Some(edge) = tensor.edge_for_hooks() else {
        return match dict {
            Some(dict) if !dict.is_empty() => Err(no_hook(tensor)),
            _ => Ok(()),
        };
    };
    for (id, _) in found(slf, |own, _| own == when, usize::MAX)? {
        edge.node.remove_hook(id);
    }
    if let Some(dict) = dict {
        let assigned = Py::new(slf.py(), Assigned { hooks: dict.clone().unbind(), when })?;
        collector::follow(slf.py())?;
        add_callable(&edge.node, when, assigned.into_any());
    }
    Ok(())
}

/// Adds a tensor's hooks to the node that it is an output of, unless they are there already.
pub fn copy_tensor_hooks(node: Option<&NodeRef>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(tensor) = tensor.cast::<PyTensor>() else {
        return Err(PyTypeError::new_err("_register_hook_dict expected a variable"));
    };
    let tensor = &tensor.get().tensor;
    let (Some(node), Some(edge)) = (node, tensor.edge_for_hooks()) else { return Ok(()) };
    if !node.ptr_eq(&edge.node) {
        let output = tensor.history().map_or(0, |edge| edge.output);
        let hooks = edge.node.hooks_at(|when| when == When::Output(edge.output))?;
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
    #[setter(_backward_hooks)]
    fn assign_backward_hooks(slf: &Bound<'_, PyTensor>, hooks: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, When::Output(0), hooks)
    }
    #[deleter(_backward_hooks)]
    fn delete_backward_hooks(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err("Deletion of _backwards_hooks not allowed!"))
    }
    #[getter]
    fn _post_accumulate_grad_hooks<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        listed(slf, |when, _| when == When::Accumulated)
    }
    #[setter(_post_accumulate_grad_hooks)]
    fn assign_accumulated_hooks(slf: &Bound<'_, PyTensor>, hooks: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(slf, When::Accumulated, hooks)
    }
    #[deleter(_post_accumulate_grad_hooks)]
    fn delete_accumulated_hooks(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err("Deletion of _post_accumulate_grad_hooks not allowed!"))
    }
}

/// A flag, as PyTorch's parser reads it.
pub fn flag(function: &str, name: &str, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.cast::<pyo3::types::PyBool>().map(|b| b.is_true()).map_err(|_| {
        let kind = object.class_name().unwrap_or_else(|_| "?".into());
        PyTypeError::new_err(format!("{function}(): argument '{name}' (position 1) must be bool, not {kind}"))
    })
}

/// Adds a Python callable to a node's hooks; returns its handle.
pub fn node_hook<'py>(
    py: Python<'py>,
    node: &NodeRef,
    when: When,
    hook: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    collector::follow(py)?;
    reserve::check()?;
    let id = add_callable(node, when, hook);
    Ok(Bound::new(py, Handle::new(node, id))?.into_any())
}
