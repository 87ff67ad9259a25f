//! The context of a custom Function's call, which represents the node in Python. It holds no tensors
//! itself; the node's saved values do.
//!
//! The node keeps its context alive while the graph keeps the node. When only the user's reference to the
//! context is left, the context keeps the node alive instead: never both at once, so that no reference
//! cycle arises.

use crate::arena::Id;
use crate::base::lock;
use crate::python::function::function_node::PyFunction;
use crate::python::function::options::{Options, Read, Requests};
use crate::python::graph::hooks::{PendingHook, node_hook};
use crate::python::graph::metadata;
use crate::python::graph::node::next_functions;
use crate::python::objects::{ClassName, to_tuple, tuple};
use crate::python::saved::values;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::python::wrapper::collector::{self, Start};
use crate::tensor::{Node, NodeRef, When};
use gradiron_macros::pymethods;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::SmallVec;
use std::sync::{Mutex, MutexGuard};

/// The base class of a Function's `ctx`; the subclass in Python adds attributes.
#[pyclass(name = "_FunctionBase", module = "gradiron._C", subclass, frozen, weakref)]
#[derive(Default)]
pub struct Ctx {
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    /// The requests of forward, unchecked until it returns.
    pub to_save: Option<Py<PyAny>>,
    pub dirty: Option<Py<PyAny>>,
    pub non_differentiable: Option<Py<PyAny>>,
    pub for_forward: Option<Py<PyAny>>,
    pub needs_input_grad: Option<Py<PyAny>>,
    pub keep_none: bool,
    /// Further options of the class and the context.
    pub options: Options,
    saved: Places,
    node: NodeLink,
    /// The user's `metadata`, until there is a node to keep it.
    notes: Option<Py<PyDict>>,
    /// Hooks that wait for the node.
    early: Vec<PendingHook>,
    /// The tensors saved for forward mode, while `jvp` runs.
    shown: Option<Py<PyTuple>>,
}

/// The node of a context.
#[derive(Default)]
enum NodeLink {
    #[default]
    Nothing,
    /// The node keeps the context alive.
    Weak(Id<Node>),
    /// The context keeps the node alive.
    Strong(NodeRef),
}

/// The indices of saved values among those of the node; None for a saved None.
pub type Places = SmallVec<[Option<usize>; 2]>;

pub type Flags = SmallVec<[bool; 8]>;

impl Ctx {
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// For forward mode: returns the tensors saved for it, and whether missing tangents stay None.
    pub fn take_for_forward(&self) -> (Option<Py<PyAny>>, bool) {
        let mut state = self.state();
        (state.for_forward.take(), state.keep_none)
    }

    /// Makes `saved_tensors` return these instead of the node's.
    pub fn show(&self, saved: Option<Py<PyTuple>>) {
        let old = std::mem::replace(&mut self.state().shown, saved);
        drop(old);
    }

    /// Takes the tensors to save and the marked tensors, when forward has returned.
    pub fn take_requests(&self, py: Python<'_>) -> PyResult<Requests> {
        let (to_save, dirty, plain) = {
            let mut state = self.state();
            (state.to_save.take(), state.dirty.take(), state.non_differentiable.take())
        };
        Requests::read(py, to_save, dirty, plain)
    }

    /// Sets the node of this context.
    pub fn publish(&self, node: &NodeRef) {
        let (notes, early) = {
            let mut state = self.state();
            state.node = NodeLink::Weak(node.id());
            (state.notes.take(), std::mem::take(&mut state.early))
        };
        early.into_iter().for_each(|hook| hook.attach(node));
        if let Some(notes) = notes {
            metadata::set_metadata(node, notes);
        }
    }

    /// Remembers the indices of the saved values.
    pub fn keep(&self, places: Places) {
        self.state().saved = places;
    }

    /// Adds a hook to the node, or stores it until there is a node.
    fn hook<'py>(slf: &Bound<'py, Ctx>, when: When, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(node) = Ctx::node(slf) {
            return node_hook(slf.py(), &node, when, hook);
        }
        let early = PendingHook::new(slf.py(), when, hook)?;
        let handle = early.handle(slf.py());
        slf.get().state().early.push(early);
        Ok(handle)
    }

    /// Releases the saved tensors: `saved_tensors` can be read only once.
    #[cold]
    fn forget(&self, node: &Node) {
        {
            let mut state = self.state();
            state.options.read = Read::Done;
            state.saved = Places::new();
        }
        let values = std::mem::take(&mut node.saves().values);
        // Dropped after the lock is released: destructors may call us again.
        drop(values);
    }

    /// Keeps the node alive, since nothing else does any more.
    pub fn keep_node(&self, node: NodeRef) {
        self.state().node = NodeLink::Strong(node);
    }

    /// Returns the node, which keeps this context alive from now on.
    pub fn node(slf: &Bound<'_, Ctx>) -> Option<NodeRef> {
        let id = {
            let mut state = slf.get().state();
            match std::mem::take(&mut state.node) {
                NodeLink::Nothing => return None,
                NodeLink::Weak(id) => {
                    state.node = NodeLink::Weak(id);
                    id
                }
                NodeLink::Strong(node) => {
                    state.node = NodeLink::Weak(node.id());
                    PyFunction::of(&node)?.keep(slf);
                    return Some(node);
                }
            }
        };
        id.upgrade()
    }
}

#[pymethods]
impl Ctx {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Ctx {
        Ctx::default()
    }
    #[pyo3(signature = (*tensors))]
    fn save_for_backward(slf: &Bound<'_, Self>, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = slf.py();
        for tensor in tensors.iter().filter(|t| !t.is_exact_instance_of::<PyTensor>()) {
            // The state of a Python subclass would be lost with its object, so the objects themselves are
            // kept.
            if tensor.hasattr(intern!(py, "_is_more_than_its_core"))? {
                slf.setattr("_saved_objects", tensors)?;
                break;
            }
        }
        slf.get().set_to_save(tensors.as_any());
        Ok(())
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        true
    }
    #[getter]
    fn saved_tensors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(shown) = &this.state().shown {
            return Ok(shown.bind(py).clone());
        }
        let Some(node) = Ctx::node(slf) else { return Ok(PyTuple::empty(py)) };
        let (places, read) = {
            let state = this.state();
            (state.saved.clone(), state.options.read)
        };
        read.check()?;
        if node.saves().freed {
            return Err(crate::tensor::freed_error(Some(&node)).into());
        }
        let unpack = |place: Option<usize>| match place {
            Some(at) => wrap(py, values::unpack_at(&node, at)?),
            None => Ok(py.None().into_bound(py)),
        };
        let found = to_tuple(py, places.len(), places.into_iter().map(unpack))?;
        if read == Read::Once {
            this.forget(&node);
        }
        Ok(found)
    }
    #[getter]
    fn _raw_saved_tensors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let Some(node) = Ctx::node(slf) else { return Ok(PyTuple::empty(py)) };
        if node.saves().freed {
            return Err(crate::tensor::freed_error(Some(&node)).into());
        }
        let places = slf.get().state().saved.clone();
        let object = |at| Ok(Bound::new(py, values::SavedTensor { node: node.clone(), at })?.into_any());
        to_tuple(py, places.len(), places.into_iter().map(object))
    }
    #[getter]
    fn metadata<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = slf.py();
        if let Some(node) = Ctx::node(slf) {
            return Ok(metadata::metadata(py, &node));
        }
        // Created without the lock: the collector may run meanwhile.
        let made = PyDict::new(py).unbind();
        Ok(slf.get().state().notes.get_or_insert(made).bind(py).clone())
    }
    #[getter]
    fn _input_metadata<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        match Ctx::node(slf) {
            Some(node) => metadata::input_metadata(slf.py(), &node),
            None => Ok(PyTuple::empty(slf.py())),
        }
    }
    fn _sequence_nr(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Ctx::node(slf).map(|node| node.sequence).ok_or_else(|| {
            PyRuntimeError::new_err(
                "this context has no node: its forward has not returned yet, or was not recorded",
            )
        })
    }
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.class_name()
    }
    #[getter]
    fn next_functions<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let Some(node) = Ctx::node(slf) else { return Ok(PyTuple::empty(py)) };
        let all = next_functions(py, &node)?;
        let Some(function) = PyFunction::of(&node) else { return Ok(all) };
        let of_tensors = all.iter().zip(&function.variables).filter(|(_, is_tensor)| **is_tensor);
        tuple(py, of_tensors.map(|(edge, _)| edge).collect::<Vec<_>>())
    }
    fn register_hook<'py>(slf: &Bound<'py, Self>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ctx::hook(slf, When::After, hook)
    }
    fn register_prehook<'py>(slf: &Bound<'py, Self>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ctx::hook(slf, When::Before, hook)
    }
    fn saved<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match Ctx::node(slf) {
            Some(node) => Ok(values::saved(slf.py(), &node)?.into_any()),
            None => Ok(PyTuple::empty(slf.py()).into_any()),
        }
    }
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock now is outside of the cycle.
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        let named = match &state.node {
            NodeLink::Strong(node) => collector::traverse(&Start::node(self, node), &visit).map(|_| None)?,
            NodeLink::Weak(id) => Some(*id),
            NodeLink::Nothing => None,
        };
        visit.call(&state.shown)?;
        visit.call(&state.notes)?;
        state.early.iter().try_for_each(|hook| hook.visit(&visit))?;
        visit.call(&state.needs_input_grad)?;
        let said = [&state.to_save, &state.dirty, &state.non_differentiable, &state.for_forward];
        said.into_iter().try_for_each(|said| visit.call(said))?;
        // Released before the traversal: the node takes the lock when it is dropped.
        drop(state);
        named.map_or(Ok(()), |id| collector::traverse(&Start::shown(self, id), &visit).map(drop))
    }
    fn __clear__(&self) {
        let kept = self.state.try_lock().ok().map(|mut state| {
            let node = if let NodeLink::Strong(node) = &state.node { Some(node.clone()) } else { None };
            let marks =
                (state.dirty.take(), state.non_differentiable.take(), std::mem::take(&mut state.early));
            let saved = (state.to_save.take(), state.for_forward.take(), state.shown.take());
            (marks, saved, state.needs_input_grad.take(), state.notes.take(), node)
        });
        if let Some((.., Some(node))) = &kept {
            collector::clear(&Start::node(self, node));
        }
        // Dropped after the lock is released: destructors may call us again.
        drop(kept);
    }
}

/// Makes a context for an unrecorded call with `count` arguments.
pub fn unrecorded<'py>(context: &Bound<'py, PyAny>, count: usize) -> PyResult<Bound<'py, PyAny>> {
    let ctx = context.call0()?;
    let no = PyBool::new(context.py(), false);
    let needs = to_tuple(context.py(), count, (0..count).map(|_| Ok(no.to_owned())))?;
    ctx.cast::<Ctx>()?.get().set_needs_input_grad(&needs);
    Ok(ctx)
}
