//! Hooks in Python: handles that remove them, and the dictionaries of a tensor's hooks.

use crate::arena::Id;
use crate::base::{lock, try_alloc};
use crate::python::graph::callable_hook::add_callable;
use crate::python::graph::tensor_or_edge::no_hook;
use crate::python::objects::{ClassName, ToObject};
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

/// Removes a hook: by `remove()`, or at the end of a `with` block. A handle that the user created removes
/// its id from dictionaries.
#[pyclass(frozen, weakref, subclass, name = "RemovableHandle", module = "gradiron.utils.hooks")]
pub struct Handle {
    at: HookPlace,
    /// Written once, by whoever restores a copy.
    id: AtomicU64,
}

enum HookPlace {
    /// An id, not a reference: a hook that holds its own handle must not keep its node alive.
    Node(Id<Node>),
    /// A node that does not exist yet.
    Coming(OnceLock<Id<Node>>),
    /// Weak references to a dictionary of hooks, and to others that use the same id. A pickled handle
    /// brings its own.
    Dicts(Mutex<Vec<Py<PyWeakrefReference>>>),
}

/// The pickled state of a handle: its id, and the dictionaries that are still alive.
type State<'py> = (u64, Vec<Bound<'py, PyAny>>);

fn weak(dicts: &[Bound<'_, PyAny>]) -> PyResult<Vec<Py<PyWeakrefReference>>> {
    dicts.iter().map(|dict| PyWeakrefReference::new(dict).map(Bound::unbind)).collect()
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The id of a hook that was removed before its node existed.
const OFF: u64 = u64::MAX;

impl Handle {
    pub fn new(node: &NodeRef, id: u64) -> Handle {
        Handle { at: HookPlace::Node(node.id()), id: id.into() }
    }

    /// Creates the handle of a hook that waits for its node.
    fn coming() -> Handle {
        Handle { at: HookPlace::Coming(OnceLock::new()), id: 0.into() }
    }

    /// Returns the dictionaries that are still alive.
    fn dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let HookPlace::Dicts(dicts) = &self.at else { return Ok(Vec::new()) };
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
        let at = HookPlace::Dicts(Mutex::new(weak(&all)?));
        Ok(Handle { at, id: NEXT.fetch_add(1, Ordering::Relaxed).into() })
    }
    #[getter]
    fn id(&self) -> ToObject<u64> {
        ToObject(self.id.load(Ordering::Relaxed))
    }
    /// A weak reference to the dictionary of the hook; None for hooks of tensors and nodes, which are in no
    /// dictionary.
    #[getter]
    fn hooks_dict_ref(&self, py: Python<'_>) -> Option<Py<PyWeakrefReference>> {
        let HookPlace::Dicts(dicts) = &self.at else { return None };
        lock(dicts).first().map(|dict| dict.clone_ref(py))
    }
    fn __copy__(&self, py: Python<'_>) -> Handle {
        let at = match &self.at {
            HookPlace::Node(node) => HookPlace::Node(*node),
            HookPlace::Coming(node) => HookPlace::Coming(node.clone()),
            HookPlace::Dicts(dicts) => {
                HookPlace::Dicts(Mutex::new(lock(dicts).iter().map(|dict| dict.clone_ref(py)).collect()))
            }
        };
        Handle { at, id: self.id().0.into() }
    }
    /// A handle that was pickled or deep-copied removes from the dictionaries copied with it. Hooks of
    /// tensors are not copied.
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
            // The pickle may come from another process: its ids must not be handed out again.
            NEXT.fetch_max(id.saturating_add(1), Ordering::Relaxed);
        }
        self.id.store(id, Ordering::Relaxed);
        if let HookPlace::Dicts(own) = &self.at {
            *lock(own) = weak(&dicts)?;
        }
        Ok(())
    }
    /// Removes the hook; further calls do nothing.
    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        match &self.at {
            HookPlace::Node(node) => remove_hook(*node, self.id().0),
            HookPlace::Coming(node) => match node.get() {
                Some(node) => remove_hook(*node, self.id().0),
                None => self.id.store(OFF, Ordering::Relaxed),
            },
            HookPlace::Dicts(_) => {
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

fn remove_hook(node: Id<Node>, id: u64) {
    if let Some(node) = node.upgrade() {
        node.remove_hook(id);
    }
}

/// A hook that was registered on a Function's context before its node existed.
pub struct PendingHook {
    when: When,
    hook: Py<PyAny>,
    handle: Py<Handle>,
}

impl PendingHook {
    pub fn new(py: Python<'_>, when: When, hook: Py<PyAny>) -> PyResult<PendingHook> {
        reserve::check()?;
        Ok(PendingHook { when, hook, handle: Py::new(py, Handle::coming())? })
    }
    pub fn handle<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.handle.bind(py).clone().into_any()
    }
    /// Adds the hook to the node, unless it was removed meanwhile.
    pub fn attach(self, node: &NodeRef) {
        let handle = self.handle.get();
        if let (HookPlace::Coming(at), true) = (&handle.at, handle.id().0 != OFF) {
            handle.id.store(add_callable(node, self.when, self.hook), Ordering::Relaxed);
            let _ = at.set(node.id());
        }
    }
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hook)
    }
}

/// A dictionary of hooks that the user assigned as a whole. A backward calls the hooks that the dictionary
/// holds at that time.
#[pyclass(frozen, module = "gradiron")]
pub struct Assigned {
    hooks: Py<PyDict>,
    when: When,
}

#[pymethods]
impl Assigned {
    fn __call__<'py>(&self, given: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut current = given;
        // Calls the method `values`: the dictionary may be a subclass such as OrderedDict.
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
        // The collector may traverse the object before its value is written.
        if self.hooks.as_ptr().is_null() { Ok(()) } else { visit.call(&self.hooks) }
    }
}

/// Returns the ids and callables of a tensor's hooks that `at` selects.
fn found<'py>(
    slf: &Bound<'py, PyTensor>,
    at: impl Fn(When, u32) -> bool,
    most: usize,
) -> PyResult<Vec<(u64, Bound<'py, PyAny>)>> {
    let py = slf.py();
    let Some(edge) = slf.get().tensor.edge_for_hooks().filter(|edge| edge.node.has_hooks()) else {
        return Ok(Vec::new());
    };
    // SAFETY: the node keeps the callable alive while it is among the hooks, and these are locked.
    let held = |host: *mut std::ffi::c_void| unsafe { Bound::from_borrowed_ptr(py, host.cast()) };
    let hooks = edge.node.hooks();
    let found = hooks.list.iter().filter(|(_, hook)| at(hook.0, edge.output));
    Ok(try_alloc::all(found.take(most).map(|(id, hook)| (*id, held(hook.1.host()))))?)
}

/// Returns the hooks that `at` selects as an ordered dictionary; None if there are none.
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

/// Adds a hook to the dictionary that the user assigned to a leaf, if any.
pub fn join_assigned<'py>(
    slf: &Bound<'py, PyTensor>,
    when: When,
    hook: &Py<PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !slf.get().tensor.is_leaf() {
        return Ok(None);
    }
    // Assigning a dictionary removes all earlier hooks, so an assigned dictionary is always the first hook.
    let first = found(slf, |own, _| own == when, 1)?;
    let Some(Ok(assigned)) = first.first().map(|(_, own)| own.cast::<Assigned>()) else { return Ok(None) };
    let hooks = assigned.get().hooks.bind(slf.py());
    let handle = Bound::new(slf.py(), Handle::by_hand(hooks, None)?)?;
    hooks.as_any().set_item(handle.get().id().0, hook)?;
    Ok(Some(handle.into_any()))
}

/// Sets `x._backward_hooks`: replaces all hooks of a leaf. (PyTorch's engine ignores this for other
/// tensors.)
fn assign(slf: &Bound<'_, PyTensor>, when: When, hooks: &Bound<'_, PyAny>) -> PyResult<()> {
    let tensor = &slf.get().tensor;
    let dict = match hooks.cast::<PyDict>() {
        Ok(dict) => Some(dict),
        Err(_) if hooks.is_none() => None,
        Err(_) => {
            let kind = hooks.class_name()?;
            return Err(PyTypeError::new_err(format!("hooks must be a dict or None, not {kind}")));
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

/// Copies a tensor's hooks to the node that made it, unless they are there already.
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

/// Reads a bool with the error of PyTorch's argument parser.
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
