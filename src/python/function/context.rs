//! The context of a custom Function's call: the node's Python face. It holds no tensors of its own accord, the node's
//! saved values do.
//!
//! The node keeps its context as long as the graph keeps the node. When nothing but the context is left, and somebody holds
//! that, the context keeps the node: never both at once, so that no cycle arises.

use crate::arena::Id;
use crate::base::lock;
use crate::python::function::function_node::PyFunction;
use crate::python::function::options::{Options, Read, Said};
use crate::python::graph::hooks::{Early, node_hook};
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

/// What a Function's `ctx` is made on; Python's subclass adds the attributes.
#[pyclass(name = "_FunctionBase", module = "gradiron._C", subclass, frozen, weakref)]
#[derive(Default)]
pub struct Ctx {
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    /// What forward said, as it said it: it is looked at when forward is done.
    pub to_save: Option<Py<PyAny>>,
    pub dirty: Option<Py<PyAny>>,
    pub non_differentiable: Option<Py<PyAny>>,
    pub for_forward: Option<Py<PyAny>>,
    pub needs_input_grad: Option<Py<PyAny>>,
    pub keep_none: bool,
    /// What the class and the context say of the call beside that.
    pub options: Options,
    saved: Places,
    node: Behind,
    /// The user's notes, until there is a node to keep them.
    notes: Option<Py<PyDict>>,
    /// Hooks that wait for the node.
    early: Vec<Early>,
    /// What was saved for forward mode, as `jvp` sees it, while it runs.
    shown: Option<Py<PyTuple>>,
}

/// The node that a context shows.
#[derive(Default)]
enum Behind {
    #[default]
    Nothing,
    /// It keeps the context.
    Named(Id<Node>),
    /// The context keeps it.
    Kept(NodeRef),
}

/// Where saved values lie among the node's, None for a saved None.
pub type Places = SmallVec<[Option<usize>; 2]>;

pub type Flags = SmallVec<[bool; 8]>;

impl Ctx {
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// For forward mode: what was saved for it, and whether missing tangents stay None.
    pub fn take_for_forward(&self) -> (Option<Py<PyAny>>, bool) {
        let mut state = self.state();
        (state.for_forward.take(), state.keep_none)
    }

    /// Lets `saved_tensors` show these instead of the node's.
    pub fn show(&self, saved: Option<Py<PyTuple>>) {
        let old = std::mem::replace(&mut self.state().shown, saved);
        drop(old);
    }

    /// What was to be saved, and the tensors that were marked, for the end of the call.
    pub fn take_said(&self, py: Python<'_>) -> PyResult<Said> {
        let (to_save, dirty, plain) = {
            let mut state = self.state();
            (state.to_save.take(), state.dirty.take(), state.non_differentiable.take())
        };
        Said::read(py, to_save, dirty, plain)
    }

    /// Names the node that this context shows.
    pub fn publish(&self, node: &NodeRef) {
        let (notes, early) = {
            let mut state = self.state();
            state.node = Behind::Named(node.id());
            (state.notes.take(), std::mem::take(&mut state.early))
        };
        early.into_iter().for_each(|hook| hook.attach(node));
        if let Some(notes) = notes {
            metadata::set_metadata(node, notes);
        }
    }

    /// Remembers where the saved values lie.
    pub fn keep(&self, places: Places) {
        self.state().saved = places;
    }

    /// Adds a hook to the node, or keeps it until there is a node.
    fn hook<'py>(slf: &Bound<'py, Ctx>, when: When, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(node) = Ctx::node(slf) {
            return node_hook(slf.py(), &node, when, hook);
        }
        let early = Early::new(slf.py(), when, hook)?;
        let handle = early.handle(slf.py());
        slf.get().state().early.push(early);
        Ok(handle)
    }

    /// Gives up what was saved: `saved_tensors` is read once only.
    #[cold]
    fn forget(&self, node: &Node) {
        {
            let mut state = self.state();
            state.options.read = Read::Done;
            state.saved = Places::new();
        }
        let values = std::mem::take(&mut node.saves().values);
        // Dropped without the lock: whatever runs then may come back to us.
        drop(values);
    }

    /// Keeps the node, which nothing else does any more.
    pub fn keep_node(&self, node: NodeRef) {
        self.state().node = Behind::Kept(node);
    }

    /// The node, which keeps this context from now on.
    pub fn node(slf: &Bound<'_, Ctx>) -> Option<NodeRef> {
        let id = {
            let mut state = slf.get().state();
            match std::mem::take(&mut state.node) {
                Behind::Nothing => return None,
                Behind::Named(id) => {
                    state.node = Behind::Named(id);
                    id
                }
                Behind::Kept(node) => {
                    state.node = Behind::Named(node.id());
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
            // What is more than the core's tensor would be lost with its object.
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
        // Made without the lock: the collector may run meanwhile.
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
                "this context has no node that could be asked: its forward is not done, or was not recorded",
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
            Behind::Kept(node) => collector::traverse(&Start::node(self, node), &visit).map(|_| None)?,
            Behind::Named(id) => Some(*id),
            Behind::Nothing => None,
        };
        visit.call(&state.shown)?;
        visit.call(&state.notes)?;
        state.early.iter().try_for_each(|hook| hook.visit(&visit))?;
        visit.call(&state.needs_input_grad)?;
        let said = [&state.to_save, &state.dirty, &state.non_differentiable, &state.for_forward];
        said.into_iter().try_for_each(|said| visit.call(said))?;
        // Without the lock, which the node takes when it goes.
        drop(state);
        named.map_or(Ok(()), |id| collector::traverse(&Start::shown(self, id), &visit).map(drop))
    }
    fn __clear__(&self) {
        let kept = self.state.try_lock().ok().map(|mut state| {
            let node = if let Behind::Kept(node) = &state.node { Some(node.clone()) } else { None };
            let marks =
                (state.dirty.take(), state.non_differentiable.take(), std::mem::take(&mut state.early));
            let saved = (state.to_save.take(), state.for_forward.take(), state.shown.take());
            (marks, saved, state.needs_input_grad.take(), state.notes.take(), node)
        });
        if let Some((.., Some(node))) = &kept {
            collector::clear(&Start::node(self, node));
        }
        // Dropped without the lock: whatever runs now may come back to us.
        drop(kept);
    }
}

/// A context for a call of so many arguments that is not recorded.
pub fn unrecorded<'py>(context: &Bound<'py, PyAny>, count: usize) -> PyResult<Bound<'py, PyAny>> {
    let ctx = context.call0()?;
    let no = PyBool::new(context.py(), false);
    let needs = to_tuple(context.py(), count, (0..count).map(|_| Ok(no.to_owned())))?;
    ctx.cast::<Ctx>()?.get().set_needs_input_grad(&needs);
    Ok(ctx)
}
