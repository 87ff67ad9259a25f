//! Backward, grad, grad mode and hooks as Python calls them.

use super::graph::Place;
use super::node::{hang, node_object};
use super::tensor::{PyTensor, wrap};
use crate::backward::{self, Request};
use crate::ops;
use crate::tensor::{Edge, Meta, NodeRef, Tensor, When, anomaly, mode};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

/// Gives the interpreter a chance to notice Ctrl-C.
fn poll() -> crate::base::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(super::errors::carry)
}

fn execute(
    py: Python<'_>,
    roots: Vec<(Edge, Tensor)>,
    retain_graph: bool,
    create_graph: bool,
    inputs: Option<Vec<Edge>>,
    accumulate: bool,
) -> PyResult<Vec<Option<Tensor>>> {
    let mut poll = poll;
    let work = move || {
        backward::run(Request {
            roots: &roots,
            retain_graph,
            create_graph,
            inputs: inputs.as_deref(),
            accumulate,
            poll: &mut poll,
        })
    };
    Ok(py.detach(work)?)
}

/// The gradient that a root starts with: the user's, checked, or 1 for a scalar.
fn root_gradient(root: &Meta, gradient: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
    let Some(object) = gradient.filter(|g| !g.is_none()) else {
        if root.shape.iter().product::<usize>() != 1 {
            return Err(PyRuntimeError::new_err("grad can be implicitly created only for scalar outputs"));
        }
        if !root.dtype.is_float() {
            return Err(PyRuntimeError::new_err(format!(
                "grad can be implicitly created only for real scalar outputs but got {}",
                root.dtype.name()
            )));
        }
        return Ok(ops::create::ones(&root.shape, root.dtype, root.device)?);
    };
    let Ok(gradient) = object.cast::<PyTensor>() else {
        return Err(PyTypeError::new_err(format!(
            "gradients can be either Tensors or None, but got {}",
            object.get_type().name()?
        )));
    };
    let gradient = gradient.get().tensor.clone();
    if gradient.shape() != root.shape {
        return Err(PyRuntimeError::new_err(format!(
            "Mismatch in shape: grad_output[0] has a shape of torch.Size({:?}) and output[0] has a shape of torch.Size({:?}).",
            gradient.shape().as_slice(),
            root.shape.as_slice()
        )));
    }
    let gradient = ops::create::to_dtype(&gradient, root.dtype)?;
    // Only a number goes along by itself.
    if gradient.ndim() > 0 && !gradient.device().same_place(root.device) {
        return Err(PyRuntimeError::new_err(format!(
            "invalid gradient at index 0 - expected device {} but got {}",
            root.device,
            gradient.device()
        )));
    }
    Ok(ops::create::to_device(&gradient, root.device)?)
}

fn root_edge(root: &Place, index: usize) -> PyResult<Edge> {
    root.edge().ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "element {index} of tensors does not require grad and does not have a grad_fn"
        ))
    })
}

/// `x.backward(...)`.
pub fn backward_one(
    slf: &Bound<'_, PyTensor>,
    gradient: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    inputs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let root = Place::Tensor(slf.get().tensor.clone());
    let roots = vec![(root_edge(&root, 0)?, root_gradient(&root.meta(), gradient)?)];
    let inputs = inputs.filter(|i| !i.is_none()).map(|i| input_edges(i, true)).transpose()?;
    execute(slf.py(), roots, retain_graph.unwrap_or(create_graph), create_graph, inputs, true)?;
    Ok(())
}

/// One place of the graph or a sequence of them; `wrong` is the error for anything else.
fn places(object: &Bound<'_, PyAny>, wrong: impl Fn(String) -> PyErr) -> PyResult<SmallVec<[Place; 1]>> {
    if let Some(place) = Place::of(object)? {
        return Ok(smallvec::smallvec![place]);
    }
    let mut found = SmallVec::new();
    for item in object.try_iter()? {
        let item = item?;
        match Place::of(&item)? {
            Some(place) => found.push(place),
            None => return Err(wrong(item.get_type().name()?.to_string())),
        }
    }
    Ok(found)
}

fn input_edges(object: &Bound<'_, PyAny>, keep: bool) -> PyResult<Vec<Edge>> {
    let inputs = places(object, |kind| {
        PyRuntimeError::new_err(format!("all inputs have to be Tensors or GradientEdges, but got {kind}"))
    })?;
    if inputs.is_empty() {
        let caller = if keep { "backward" } else { "grad" };
        return Err(PyRuntimeError::new_err(format!("`inputs` argument to `{caller}()` cannot be empty.")));
    }
    let mut edges = Vec::new();
    for input in inputs {
        match input.edge() {
            Some(edge) => {
                if let Place::Tensor(tensor) = &input
                    && keep
                    && !tensor.is_leaf()
                {
                    tensor.retain_grad()?;
                }
                edges.push(edge);
            }
            None if keep => {
                return Err(PyRuntimeError::new_err(
                    "can't retain_grad on Tensor that has requires_grad=False",
                ));
            }
            None => {
                return Err(PyRuntimeError::new_err(
                    "One of the differentiated Tensors does not require grad",
                ));
            }
        }
    }
    Ok(edges)
}

/// `autograd.backward(tensors, grad_tensors, retain_graph, create_graph, inputs)`.
#[pyfunction]
pub fn run_backward(
    py: Python<'_>,
    roots: &Bound<'_, PyAny>,
    gradients: &Bound<'_, PyAny>,
    retain_graph: bool,
    create_graph: bool,
    inputs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let starts = starts(roots, gradients)?;
    let inputs = inputs.filter(|i| !i.is_none()).map(|i| input_edges(i, true)).transpose()?;
    execute(py, starts, retain_graph, create_graph, inputs, true)?;
    Ok(())
}

fn starts(roots: &Bound<'_, PyAny>, gradients: &Bound<'_, PyAny>) -> PyResult<Vec<(Edge, Tensor)>> {
    let roots = places(roots, |kind| {
        PyTypeError::new_err(format!("tensors must be Tensors or GradientEdges, but got {kind}"))
    })?;
    let gradients: Vec<Bound<'_, PyAny>> = gradients.try_iter()?.collect::<PyResult<_>>()?;
    if gradients.len() != roots.len() {
        return Err(PyRuntimeError::new_err(format!(
            "got {} tensors and {} gradients",
            roots.len(),
            gradients.len()
        )));
    }
    let start = |(i, (root, gradient)): (usize, (&Place, &Bound<'_, PyAny>))| {
        Ok((root_edge(root, i)?, root_gradient(&root.meta(), Some(gradient))?))
    };
    roots.iter().zip(&gradients).enumerate().map(start).collect()
}

/// `autograd.grad`: the gradients of `inputs`, None where there is none.
#[pyfunction]
pub fn run_grad<'py>(
    py: Python<'py>,
    roots: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    gradients: &Bound<'py, PyAny>,
    retain_graph: bool,
    create_graph: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let edges = input_edges(inputs, false)?;
    let found = execute(py, starts(roots, gradients)?, retain_graph, create_graph, Some(edges), false)?;
    let objects = found
        .into_iter()
        .map(|g| g.map_or_else(|| Ok(py.None().into_bound(py)), |g| wrap(py, g)))
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, objects)
}

/// Whether operators are recorded in this thread.
/// Whether operators are recorded in this thread.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    mode::grad_enabled()
}

/// Switches recording.
#[pyfunction]
pub fn set_recording(on: bool) {
    mode::set_grad_enabled(on);
}

/// Recording switched inside a `with` block; may be entered again inside itself.
#[pyclass(subclass, frozen, module = "gradiron")]
pub struct GradSwitch {
    #[pyo3(get)]
    to: bool,
    /// What it was at each entry, innermost last.
    before: Mutex<SmallVec<[bool; 8]>>,
}

#[pymethods]
impl GradSwitch {
    #[new]
    #[pyo3(signature = (to, /))]
    fn new(to: bool) -> GradSwitch {
        GradSwitch { to, before: Mutex::default() }
    }

    fn __enter__(&self) {
        let before = mode::set_grad_enabled(self.to);
        self.before.lock().unwrap_or_else(PoisonError::into_inner).push(before);
    }

    #[pyo3(signature = (_type = None, _value = None, _trace = None))]
    fn __exit__(
        &self,
        _type: Option<&Bound<'_, PyAny>>,
        _value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) {
        if let Some(before) = self.before.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            mode::set_grad_enabled(before);
        }
    }
}

/// Whether this thread is inside `inference_mode`.
#[pyfunction]
pub fn is_inference_mode_enabled() -> bool {
    mode::inference()
}

/// Switches `inference_mode`'s mark; returns what it was.
#[pyfunction]
pub fn swap_inference_mode(on: bool) -> bool {
    mode::set_inference(on)
}

/// Takes a hook off again: `remove()`, or the end of a `with` block.
#[pyclass(frozen, name = "RemovableHandle", module = "gradiron.utils.hooks")]
pub struct Handle {
    node: NodeRef,
    pub id: u64,
}

#[pymethods]
impl Handle {
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }
    fn remove(&self) {
        self.node.remove_hook(self.id);
    }
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

pub fn node_hook<'py>(
    py: Python<'py>,
    node: &NodeRef,
    when: When,
    hook: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let id = hang(node, when, hook);
    Ok(Bound::new(py, Handle { node: node.clone(), id })?.into_any())
}

pub fn tensor_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let t = &slf.get().tensor;
    let Some(edge) = t.edge() else {
        return Err(PyRuntimeError::new_err(
            "cannot register a hook on a tensor that doesn't require gradient",
        ));
    };
    node_hook(slf.py(), &edge.node, When::Output(edge.output), hook)
}

pub fn accumulate_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let t = &slf.get().tensor;
    match t.edge() {
        None => {
            Err(PyRuntimeError::new_err("cannot register a hook on a tensor that doesn't require gradient"))
        }
        Some(_) if !t.is_leaf() => Err(PyRuntimeError::new_err(
            "post accumulate grad hooks cannot be registered on non-leaf tensors",
        )),
        Some(edge) => node_hook(slf.py(), &edge.node, When::Accumulated, hook),
    }
}

/// (node, output) that a tensor's gradient flows to.
#[pyfunction]
pub fn gradient_edge<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<(Bound<'py, PyAny>, u32)> {
    match tensor.get().tensor.edge() {
        Some(edge) => Ok((node_object(tensor.py(), edge.node)?, edge.output)),
        None => Err(PyRuntimeError::new_err(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients",
        )),
    }
}

/// How many nodes live in the arena.
#[pyfunction]
pub fn live_nodes() -> usize {
    crate::arena::stats::<crate::tensor::Node>().live
}

/// Counts a write in place that happened outside of gradiron's sight.
#[pyfunction]
pub fn increment_version(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(t) = object.cast::<PyTensor>() {
        t.get().tensor.body().storage.bump();
        return Ok(());
    }
    let Ok(items) = object.try_iter() else {
        return Err(PyRuntimeError::new_err("increment_version expect a Iterable[Tensor] as input"));
    };
    for item in items {
        let item = item?;
        let Ok(t) = item.cast::<PyTensor>() else {
            return Err(PyRuntimeError::new_err(
                "increment_version expects each element of the iterable to be a tensor",
            ));
        };
        t.get().tensor.body().storage.bump();
    }
    Ok(())
}

/// Switches anomaly mode.
#[pyfunction]
pub fn set_anomaly(on: bool, check_nan: bool) {
    anomaly::set_host(anomaly::Host { here, tell });
    anomaly::set(on, on && check_nan);
}

/// Whether anomaly mode is on.
#[pyfunction]
pub fn is_anomaly_enabled() -> bool {
    anomaly::enabled()
}

/// Whether anomaly mode looks for NaN.
#[pyfunction]
pub fn is_anomaly_check_nan_enabled() -> bool {
    anomaly::checks_nan()
}

/// Python's stack as text.
fn here() -> Option<String> {
    Python::attach(|py| {
        let lines = py.import("traceback").and_then(|t| t.call_method0("format_stack")).ok()?;
        lines.extract::<Vec<String>>().ok().map(|lines| lines.concat())
    })
}

fn tell(text: &str) {
    Python::attach(|py| {
        let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
        let message = std::ffi::CString::new(text).unwrap_or_default();
        // A warning that the user turned into an error gives way to the error that is under way.
        let _ = PyErr::warn(py, &category, &message, 1);
    });
}
