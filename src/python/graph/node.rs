//! Nodes of the graph as Python objects, and the collector's walk over what only one tensor keeps alive.

use crate::base::Error;
use crate::operator::Out;
use crate::python::call::parse::result;
use crate::python::graph::autograd;
use crate::python::graph::collector::{self, Start};
use crate::python::graph::hooks;
use crate::python::graph::metadata;
use crate::python::identity;
use crate::python::saved::values;
use crate::python::tensor::methods::{PyTensor, wrap};
use crate::storage::reserve;
use crate::tensor::{Edge, Held, Hook, Kind, Node, NodeRef, Tensor, When, any_hosted};
use pyo3::exceptions::PyAttributeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pyo3::{PyTypeInfo, ffi};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An operator of the graph: `grad_fn` of what it made.
#[pyclass(name = "Node", module = "gradiron.autograd.graph", frozen, weakref, subclass)]
pub struct PyNode {
    pub node: NodeRef,
}

impl Drop for PyNode {
    fn drop(&mut self) {
        let place = PLACE.load(Ordering::Relaxed);
        let object = std::ptr::from_ref(self).cast_mut().cast::<u8>().wrapping_sub(place);
        identity::forget(&self.node.host, object.cast(), false);
    }
}

/// The Python object of a node: a Function's own context, or a view of the node that is the same while it lives.
pub fn node_object(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyAny>> {
    if let Kind::Custom(custom) = &node.kind {
        let host = custom.host().cast::<ffi::PyObject>();
        if !host.is_null() {
            // SAFETY: the node keeps its context alive.
            return Ok(unsafe { Bound::from_borrowed_ptr(py, host) });
        }
    }
    view_object(py, node)
}

/// Whether others than the caller hold an object; a thread without the interpreter may be told so of one that is just let go.
pub fn has_others<T>(object: &Py<T>) -> bool {
    // SAFETY: the caller's handle keeps the object alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) != 1 }
}

/// The view of a node, which keeps it: of any node, also of one whose context, which does not, stands for it.
pub fn view_object(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyAny>> {
    if let Ok(object) = identity::find(py, &node.host) {
        return Ok(object);
    }
    Ok(identity::settle(allocate(py, node)?, |object| &object.get().node.host))
}

/// One class per kind of node, named after it: `type(y.grad_fn).__name__`.
static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn class_of<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyType>> {
    let classes = CLASSES.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    let name = node.name();
    if let Some(class) = classes.get_item(&name)? {
        return Ok(class.cast_into::<PyType>()?);
    }
    let bases = PyTuple::new(py, [PyNode::type_object(py)])?;
    // Users keep their notes in `metadata`.
    let body = PyDict::new(py);
    body.set_item("__slots__", PyTuple::empty(py))?;
    let class = py.get_type::<PyType>().call1((&name, bases, body))?;
    // Another thread may have been faster.
    Ok(classes.call_method1(intern!(py, "setdefault"), (&name, class))?.cast_into::<PyType>()?)
}

/// Where the value lies in a node's object, found on the first one.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// A node's object, of its own class. PyO3 makes objects of the base class only, so the first one shows where the value
/// lies, and the others are written there.
fn allocate(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyNode>> {
    reserve::check()?;
    if PLACE.load(Ordering::Relaxed) == 0 {
        let probe = Bound::new(py, PyNode { node: node.clone() })?;
        PLACE.store(std::ptr::from_ref(probe.get()) as usize - probe.as_ptr() as usize, Ordering::Relaxed);
    }
    let place = PLACE.load(Ordering::Relaxed);
    let class = class_of(py, &node)?;
    // SAFETY: a subclass made by `type` has the base's layout first, zeroed; the value is written before anybody sees it.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        object.cast::<u8>().add(place).cast::<PyNode>().write(PyNode { node });
        Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

/// The graph's side of `grad_fn`, for nodes and for a Function's context.
pub fn next_functions<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    // A write through a view stands for the operator that wrote: its other inputs are shown as its own.
    let edges: Vec<&Option<Edge>> = match (&node.kind, node.edges.get(1)) {
        (Kind::Op(_), Some(Some(written))) if node.name() == "CopySlices" => {
            node.edges.iter().take(1).chain(written.node.edges.iter().skip(1)).collect()
        }
        _ => node.edges.iter().collect(),
    };
    let pairs = edges
        .into_iter()
        .map(|edge| match edge {
            Some(edge) => (node_object(py, edge.node.clone())?, edge.output).into_pyobject(py),
            None => (py.None(), 0u32).into_pyobject(py),
        })
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, pairs)
}

#[pymethods]
impl PyNode {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Between its allocation and its first value an object is all zeroes, and the collector may already look.
        // SAFETY: a handle is one pointer; reading it as a number is always defined here.
        let empty = unsafe { std::ptr::from_ref(&self.node).cast::<usize>().read() } == 0;
        if !any_hosted() || empty || collector::traverse(&Start::Node(self), &visit)? {
            return Ok(());
        }
        walk(std::iter::once((&self.node, 1)), &visit)
    }
    fn __clear__(&self) {
        collector::clear(&Start::Node(self));
    }
    /// The operator's name with `Backward` and a number.
    fn name(&self) -> String {
        self.node.full_name()
    }
    /// The nodes that the gradients go to, each with the number of its output.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        next_functions(py, &self.node)
    }
    /// The gradients of the node's inputs, from those of its outputs.
    #[pyo3(signature = (*grads))]
    fn __call__<'py>(&self, grads: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = grads.py();
        let expected = self.node.outputs.len();
        if grads.len() != expected {
            let message = format!("expected {expected} arguments, got {} instead", grads.len());
            return Err(pyo3::exceptions::PyTypeError::new_err(message));
        }
        let read = |(i, grad): (usize, Bound<'py, PyAny>)| match grad.cast::<PyTensor>() {
            Ok(tensor) => Ok(Some(tensor.get().tensor.clone())),
            Err(_) if grad.is_none() => Ok(None),
            Err(_) => Err(pyo3::exceptions::PyTypeError::new_err(format!("argument {i} is not a Variable"))),
        };
        let grads = grads.iter().enumerate().map(read).collect::<PyResult<_>>()?;
        let made = py.detach(|| crate::backward::call(&self.node, grads))?;
        let made = made.into_iter().map(|grad| match grad {
            Some(grad) => wrap(py, grad),
            None => Ok(py.None().into_bound(py)),
        });
        let made = made.collect::<PyResult<Vec<_>>>()?;
        match made.as_slice() {
            [only] => Ok(only.clone()),
            _ => Ok(PyTuple::new(py, made)?.into_any()),
        }
    }
    fn __repr__(slf: &Bound<'_, PyNode>) -> String {
        format!("<{} object at {:#x}>", slf.get().node.name(), slf.as_ptr() as usize)
    }
    /// The leaf that an AccumulateGrad adds to.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Kind::Leaf(leaf) = &self.node.kind else {
            return Err(no_attribute(&self.node, "variable"));
        };
        result(py, Out::Tensor(leaf.tensor_again(&self.node)))
    }
    /// What the node keeps for its derivative, as pairs of a name and a tensor.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values::saved(py, &self.node)
    }
    fn _sequence_nr(&self) -> u64 {
        // Leaves come after everything, in PyTorch's order.
        if self.node.is_leaf() { u64::MAX } else { self.node.sequence }
    }
    /// Calls `hook(grad_inputs, grad_outputs)` after the node's derivative.
    fn register_hook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        autograd::node_hook(py, &self.node, When::After, hook)
    }
    /// Calls `hook(grad_outputs)` before the node's derivative.
    fn register_prehook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        autograd::node_hook(py, &self.node, When::Before, hook)
    }
    fn _register_hook_dict(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        hooks::adopt(Some(&self.node), tensor)
    }
    /// The user's own notes, kept as long as the node.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        metadata::metadata(py, &self.node)
    }
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        metadata::input_metadata(py, &self.node)
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        true
    }
    fn __setattr__(slf: &Bound<'_, PyNode>, name: &str, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(unwritable(slf, name))
    }
    fn __delattr__(slf: &Bound<'_, PyNode>, name: &str) -> PyResult<()> {
        Err(unwritable(slf, name))
    }
    fn __dir__(slf: &Bound<'_, PyNode>) -> PyResult<Vec<String>> {
        let own: Vec<String> = slf.py().get_type::<PyAny>().call_method1("__dir__", (slf,))?.extract()?;
        let hidden = |name: &String| name == "variable" && !slf.get().node.is_leaf();
        let mut names: Vec<String> = own.into_iter().filter(|name| !hidden(name)).collect();
        names.extend(values::attributes(&slf.get().node));
        Ok(names)
    }
    /// `_saved_self`, `_raw_saved_self`, …
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match values::attribute(py, &self.node, name)? {
            Some(value) => Ok(value),
            None => Err(no_attribute(&self.node, name)),
        }
    }
}

fn no_attribute(node: &Node, name: &str) -> PyErr {
    PyAttributeError::new_err(format!("'{}' object has no attribute '{name}'", node.name()))
}

/// Attributes are for reading.
fn unwritable(slf: &Bound<'_, PyNode>, name: &str) -> PyErr {
    match slf.getattr(name) {
        Err(error) if error.is_instance_of::<PyAttributeError>(slf.py()) => error,
        _ => PyAttributeError::new_err(format!(
            "attribute '{name}' of '{}' objects is not writable",
            slf.get().node.name()
        )),
    }
}

/// Shows the collector the Python objects that hang on nodes which these handles alone keep alive: so many of each.
fn walk<'a>(
    starts: impl Iterator<Item = (&'a NodeRef, usize)>,
    visit: &PyVisit<'_>,
) -> Result<(), PyTraverseError> {
    let mut found = Owned::default();
    for (node, handles) in starts {
        found.see(node, handles);
    }
    let mut outcome = Ok(());
    while let Some(node) = found.waiting.pop() {
        node.visit_hosts(false, &mut |object| {
            if outcome.is_ok() && !object.is_null() {
                // SAFETY: the node keeps the object alive, and the collector runs with the interpreter held.
                let object = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Py<PyAny>>(object) };
                outcome = visit.call(&object);
                std::mem::forget(object);
            }
        });
        for held in node.held() {
            found.see(held, 1);
        }
    }
    outcome
}

/// Shows the collector the Python objects that hang on the nodes behind this tensor. Outside of a collection that we
/// follow, these are the nodes which it alone keeps alive.
pub fn traverse(object: &PyTensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if collector::traverse(&Start::Tensor(object), visit)? {
        return Ok(());
    }
    let tensor = &object.tensor;
    // Behind samples lies their physical tensor, which they may keep alone, too.
    let physical = tensor.physical();
    if tensor.handles() != 1 || physical.handles() != 1 {
        return Ok(());
    }
    // The tensor itself and `.grad`'s own graph.
    let Held { nodes, grad, .. } = physical.for_collector();
    // Two handles: the leaf's and ours.
    let beyond = grad.filter(|grad| grad.handles() == 2).map(|grad| grad.for_collector().nodes);
    // To each of the tensors' own handles comes ours.
    walk(nodes.iter().chain(beyond.iter().flatten()).map(|node| (node, 2)), visit)
}

/// The nodes that have no other handles than those that were seen: they go when the first of them goes.
#[derive(Default)]
struct Owned<'a> {
    waiting: Vec<&'a NodeRef>,
    /// How often nodes with several handles were seen.
    seen: HashMap<*const Node, usize>,
}

impl<'a> Owned<'a> {
    fn see(&mut self, node: &'a NodeRef, handles: usize) {
        let all = crate::arena::Ref::count(node);
        let seen = if all == handles {
            all
        } else {
            let seen = self.seen.entry(std::ptr::from_ref::<Node>(node)).or_default();
            *seen += handles;
            *seen
        };
        if seen == all {
            self.waiting.push(node);
        }
    }
}

/// A Python callable as a hook.
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
        let list =
            |ts: &[Option<Tensor>]| PyTuple::new(py, ts.iter().map(object).collect::<PyResult<Vec<_>>>()?);
        let returned = match self.when {
            When::Output(_) | When::Accumulated => self.callable.bind(py).call1((object(&inputs[0])?,))?,
            When::Before => self.callable.bind(py).call1((list(outputs)?,))?,
            When::After => self.callable.bind(py).call1((list(inputs)?, list(outputs)?))?,
        };
        if returned.is_none() {
            return Ok(None);
        }
        if self.when == When::Accumulated {
            // The leaf itself changes nothing: `lambda p: p.add_(p.grad, alpha=-rate)` gives it back.
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
                    other.into_inner().get_type().name()?
                )));
            }
        };
        if values.len() != before.len() {
            return Err(Error::runtime(format!(
                "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
                name_of(self.callable.bind(py)),
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

fn name_of(hook: &Bound<'_, PyAny>) -> String {
    hook.getattr("__name__").map_or_else(|_| "<unknown>".into(), |n| n.to_string())
}

/// A hook's replacement must be what it replaces.
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
            value.get_type().name()?
        )));
    };
    let new = new.get().tensor.clone();
    let name = || name_of(hook);
    if let Some(old) = old {
        if new.dtype() != old.dtype() {
            return Err(Error::runtime(format!(
                "hook '{}' has changed the type of value (was {} got {})",
                name(),
                crate::tensor::kind_in_words(old.dtype(), old.device()),
                crate::tensor::kind_in_words(new.dtype(), new.device())
            )));
        }
        if new.shape() != old.shape() {
            return Err(Error::runtime(format!("hook '{}' has changed the size of value", name())));
        }
    }
    Ok(Some(new))
}

/// Hangs a Python callable on a node.
pub fn hang(node: &NodeRef, when: When, callable: Py<PyAny>) -> u64 {
    node.add_hook(when, Arc::new(PyHook { callable, when }))
}
