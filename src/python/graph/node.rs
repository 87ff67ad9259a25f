//! Nodes of the graph as Python objects. Each node has one object at a time, of a class named after the
//! node.

use crate::python::objects::{to_object, to_tuple, tuple};
use crate::python::wrapper::identity;
use crate::storage::reserve;
use crate::tensor::{Edge, Kind, Node, NodeRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTypeInfo, ffi};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An operation in the autograd graph; `grad_fn` of the tensors that it computed.
///
/// Examples:
///     >>> x = torch.ones(2, requires_grad=True)
///     >>> (x * 2).grad_fn.name()
///     'MulBackward0'
#[pyclass(name = "Node", module = "gradiron.autograd.graph", frozen, weakref, subclass)]
pub struct PyNode {
    pub node: NodeRef,
}

impl Drop for PyNode {
    fn drop(&mut self) {
        let place = VALUE_OFFSET.load(Ordering::Relaxed);
        let object = std::ptr::from_ref(self).cast_mut().cast::<u8>().wrapping_sub(place);
        identity::forget(&self.node.host, object.cast(), false);
    }
}

/// Returns the Python object of a node: the context of a custom Function, or the node's `PyNode`.
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

/// Returns true if others hold references to an object. In free-threaded Python this may also be true of an
/// object that is being released.
pub fn has_others<T>(object: &Py<T>) -> bool {
    // SAFETY: the caller's handle keeps the object alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) != 1 }
}

/// Returns an object that keeps the node alive. (A Function's context stands for its node but does not keep
/// it alive.)
pub fn view_object(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyAny>> {
    if let Ok(object) = identity::find(py, &node.host) {
        return Ok(object);
    }
    Ok(identity::register(allocate(py, node)?, |object| &object.get().node.host))
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
    // Instances have no `__dict__`: `metadata` is the place for the user's data.
    let body = PyDict::new(py);
    body.set_item("__slots__", PyTuple::empty(py))?;
    let class = py.get_type::<PyType>().call1((&name, bases, body))?;
    // Another thread may have added the class first.
    Ok(classes.call_method1(intern!(py, "setdefault"), (&name, class))?.cast_into::<PyType>()?)
}

/// The offset of the Rust value in a node's object, measured on the first one.
static VALUE_OFFSET: AtomicUsize = AtomicUsize::new(0);

/// Allocates a node's object, of its own class. PyO3 can create only objects of the base class, so the
/// first such object shows the offset of the value, and later objects are written there.
fn allocate(py: Python<'_>, node: NodeRef) -> PyResult<Bound<'_, PyNode>> {
    reserve::check()?;
    if VALUE_OFFSET.load(Ordering::Relaxed) == 0 {
        let probe = Bound::new(py, PyNode { node: node.clone() })?;
        VALUE_OFFSET
            .store(std::ptr::from_ref(probe.get()) as usize - probe.as_ptr() as usize, Ordering::Relaxed);
    }
    let place = VALUE_OFFSET.load(Ordering::Relaxed);
    let class = class_of(py, &node)?;
    // SAFETY: a subclass made by `type` begins with the base's layout, zeroed; the value is written before
    // anybody else sees the object.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        object.cast::<u8>().add(place).cast::<PyNode>().write(PyNode { node });
        Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

/// Returns the `next_functions` of a node or of a Function's context.
pub fn next_functions<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    // A CopySlices node (a write through a view) lists the other inputs of the writing operator as its own.
    let edges: Vec<&Option<Edge>> = match (&node.kind, node.edges.get(1)) {
        (Kind::Op(_), Some(Some(written))) if node.name() == "CopySlices" => {
            node.edges.iter().take(1).chain(written.node.edges.iter().skip(1)).collect()
        }
        _ => node.edges.iter().collect(),
    };
    let pair = |edge: &Option<Edge>| match edge {
        Some(edge) => tuple(py, [node_object(py, edge.node.clone())?, to_object(py, edge.output)?]),
        None => tuple(py, [py.None().into_bound(py), to_object(py, 0u32)?]),
    };
    to_tuple(py, edges.len(), edges.into_iter().map(pair))
}
