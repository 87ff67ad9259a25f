//! `backward`, `grad`, the grad mode and tensor hooks for Python.

use crate::backward::sparse;
use crate::backward::{self, Request};
use crate::base::lock;
use crate::base::try_alloc;
use crate::operator::inplace::write::count_write;
use crate::operator::primitives::{constant, copies};
use crate::python::autograd::gradient_edge::place_of;
use crate::python::autograd::nested_backward;
use crate::python::graph::hooks;
use crate::python::graph::tensor_or_edge::{TensorOrEdge, guided, no_hook, unrecorded};
use crate::python::objects::{ClassName, to_tuple};
use crate::python::sequences::{collect, poll_signals};
use crate::python::transforms::vmap;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::levels::func;
use crate::tensor::{Edge, Kind, Tensor, When, mode};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use pyo3::{PyTypeInfo, ffi};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Mutex;

fn execute(
    py: Python<'_>,
    roots: &[(Edge, Tensor)],
    retain_graph: bool,
    create_graph: bool,
    inputs: Option<Vec<Edge>>,
    accumulate: bool,
) -> PyResult<Vec<Option<Tensor>>> {
    let work = move || {
        let mut poll = nested_backward::poll;
        backward::run(Request {
            roots,
            retain_graph,
            create_graph,
            inputs: inputs.as_deref(),
            accumulate,
            poll: &mut poll,
        })
    };
    nested_backward::run(py, work)
}

/// Returns the initial gradient of a root: the user's, checked, or 1 for a scalar.
fn root_gradient(place: &TensorOrEdge, edge: &Edge, gradient: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
    let root = place.meta();
    // A custom Function may have declared another dtype, or none.
    let dtype = match &edge.node.kind {
        Kind::Custom(custom) if custom.takes_any(edge.output as usize) => None,
        Kind::Custom(_) => Some(edge.node.outputs[edge.output as usize].dtype),
        _ => Some(root.dtype),
    };
    let Some(object) = gradient.filter(|g| !g.is_none()) else {
        if root.shape.iter().product::<usize>() != 1 {
            let advice = "reduce it first, as with y.sum().backward(), or pass the gradient that it gets, a tensor of shape";
            return Err(guided(
                "grad can be implicitly created only for scalar outputs",
                "output",
                place,
                format!("{advice} {:?}", root.shape.as_slice()),
            ));
        }
        if !root.dtype.is_float() {
            return Err(PyRuntimeError::new_err(format!(
                "grad can be implicitly created only for real scalar outputs but got torch.{}",
                root.dtype.name()
            )));
        }
        return Ok(constant::ones(&root.shape, dtype.unwrap_or(root.dtype), root.device)?);
    };
    let Ok(gradient) = object.cast::<PyTensor>() else {
        return Err(PyTypeError::new_err(format!(
            "gradients can be either Tensors or None, but got {}",
            object.class_name()?
        )));
    };
    let gradient = gradient.get().tensor.clone();
    if gradient.shape() != root.shape {
        let (given, wanted) = (gradient.shape(), root.shape.as_slice());
        let message = format!(
            "Mismatch in shape: grad_output[0] has a shape of torch.Size({:?}) and output[0] has a shape of torch.Size({wanted:?}).",
            given.as_slice()
        );
        let advice = format!("pass a gradient of the output's own shape, {wanted:?}");
        return Err(guided(&message, "output", place, advice));
    }
    if gradient.dtype().is_complex() != root.dtype.is_complex() {
        return Err(PyRuntimeError::new_err(format!(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: \
             grad_output[0] has a dtype of torch.{} and output[0] has a dtype of torch.{}.",
            gradient.dtype().name(),
            root.dtype.name()
        )));
    }
    let gradient = match dtype {
        Some(dtype) => sparse::to_dtype(&gradient, dtype)?,
        None => gradient,
    };
    // Only 0-dimensional gradients are moved between devices implicitly.
    let device = gradient.device_of_values();
    if gradient.ndim() > 0 && device != root.device {
        return Err(PyRuntimeError::new_err(format!(
            "invalid gradient at index 0 - expected device {} but got {device}",
            root.device
        )));
    }
    if gradient.is_sparse() {
        return Ok(gradient);
    }
    Ok(copies::to_device(&gradient, root.device)?)
}

fn root_edge(root: &TensorOrEdge, index: usize) -> PyResult<Edge> {
    if let TensorOrEdge::Tensor(tensor) = root {
        tensor.check_view()?;
    }
    root.edge()?.ok_or_else(|| {
        let message = format!("element {index} of tensors does not require grad and does not have a grad_fn");
        guided(&message, "output", root, unrecorded(root).into())
    })
}

/// Returns a root's edge and initial gradient. For a batched tensor, these are those of its physical
/// tensor.
fn root_start(
    root: &TensorOrEdge,
    index: usize,
    gradient: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Edge, Tensor)> {
    let edge = root_edge(root, index)?;
    let start = root_gradient(root, &edge, gradient)?;
    match root {
        TensorOrEdge::Tensor(t) if t.is_batched() => {
            let start = crate::operator::batch::dims::into_graph(t, &start)?;
            // The gradient is expanded, but each example needs its own element.
            let own = gradient.is_none_or(|g| g.is_none());
            Ok((edge, if own { copies::clone_dense(&start)? } else { start }))
        }
        _ => Ok((edge, start)),
    }
}

/// Raises an error about a tensor; for checks on the Python side.
#[pyfunction]
pub fn raise_error(message: &str, object: &Bound<'_, PyAny>, advice: &str) -> PyResult<()> {
    try_alloc::check_text(message.len().saturating_add(advice.len()))?;
    match place_of(object)? {
        Some(place) => Err(guided(message, "input", &place, advice.to_owned())),
        None => Err(PyRuntimeError::new_err(message.to_owned())),
    }
}

#[pymethods]
impl PyTensor {
    /// Compute the gradients of this tensor and add them to the `grad` of the leaves that it was computed from.
    ///
    /// Args:
    ///     gradient: gradient with respect to this tensor; may be left out for a single number, where it is 1.
    ///     retain_graph: whether to keep the graph for another call; `create_graph` if not given.
    ///     create_graph: whether the gradients are recorded, for derivatives of higher order. Default: `False`
    ///     inputs: leaves whose gradients are computed; all if not given.
    ///
    /// Examples:
    ///     >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    ///     >>> (x * x).sum().backward()
    ///     >>> x.grad
    ///     tensor([2., 4.])
    #[pyo3(signature = (gradient = None, retain_graph = None, create_graph = false, inputs = None))]
    fn backward(
        slf: &Bound<'_, PyTensor>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        vmap::refuse_backward([&slf.get().tensor])?;
        let root = TensorOrEdge::Tensor(slf.get().tensor.clone());
        let gradient = gradient.map(only_gradient).transpose()?;
        let roots = [root_start(&root, 0, gradient.as_ref())?];
        let inputs = inputs.filter(|i| !i.is_none()).map(|i| input_edges(i, true)).transpose()?;
        execute(slf.py(), &roots, retain_graph.unwrap_or(create_graph), create_graph, inputs, true)?;
        Ok(())
    }
}

/// Unwraps the gradient of a single output, which may come in a sequence; only its first element counts.
fn only_gradient<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if given.is_none() || given.is_instance_of::<PyTensor>() {
        return Ok(given.clone());
    }
    let first = given.try_iter()?.next();
    first.unwrap_or_else(|| Err(PyRuntimeError::new_err("got 1 tensors and 0 gradients")))
}

/// Reads a tensor, an edge, or a sequence of them; `wrong` makes the error for anything else.
fn places(object: &Bound<'_, PyAny>, wrong: impl Fn(String) -> PyErr) -> PyResult<Vec<TensorOrEdge>> {
    if let Some(place) = place_of(object)? {
        return Ok(vec![place]);
    }
    let mut found = Vec::new();
    for item in object.try_iter()? {
        let item = item?;
        poll_signals(object.py(), found.len())?;
        match place_of(&item)? {
            Some(place) => try_alloc::push(&mut found, place)?,
            None => return Err(wrong(item.class_name()?)),
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
        if let TensorOrEdge::Tensor(tensor) = &input {
            tensor.check_view()?;
        }
        match input.edge_for_hooks()? {
            Some(edge) => {
                if let TensorOrEdge::Tensor(tensor) = &input
                    && keep
                    && !tensor.is_leaf()
                {
                    tensor.retain_grad()?;
                }
                try_alloc::push(&mut edges, edge)?;
            }
            None if keep => {
                let message = "can't retain_grad on Tensor that has requires_grad=False";
                return Err(guided(message, "input", &input, unrecorded(&input).into()));
            }
            None => {
                let message = "One of the differentiated Tensors does not require grad";
                return Err(guided(message, "input", &input, unrecorded(&input).into()));
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
    let given = roots.try_iter()?.filter_map(|r| Some(r.ok()?.cast::<PyTensor>().ok()?.get().tensor.clone()));
    vmap::refuse_backward(&try_alloc::all(given)?)?;
    let starts = starts(roots, gradients)?;
    let inputs = inputs.filter(|i| !i.is_none()).map(|i| input_edges(i, true)).transpose()?;
    execute(py, &starts, retain_graph, create_graph, inputs, true)?;
    Ok(())
}

fn starts(roots: &Bound<'_, PyAny>, gradients: &Bound<'_, PyAny>) -> PyResult<Vec<(Edge, Tensor)>> {
    let roots = places(roots, |kind| {
        PyTypeError::new_err(format!("tensors must be Tensors or GradientEdges, but got {kind}"))
    })?;
    let gradients = collect(gradients)?;
    if gradients.len() != roots.len() {
        return Err(PyRuntimeError::new_err(format!(
            "got {} tensors and {} gradients",
            roots.len(),
            gradients.len()
        )));
    }
    let mut starts = try_alloc::with_capacity(roots.len())?;
    for (i, (root, gradient)) in roots.iter().zip(&gradients).enumerate() {
        starts.push(root_start(root, i, Some(gradient))?);
    }
    Ok(starts)
}

/// `autograd.grad`: the gradients of `inputs`; None for an input that no gradient reaches.
#[pyfunction]
pub fn run_grad<'py>(
    py: Python<'py>,
    roots: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    gradients: &Bound<'py, PyAny>,
    retain_graph: bool,
    create_graph: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let starts = starts(roots, gradients)?;
    let edges = input_edges(inputs, false)?;
    let found = execute(py, &starts, retain_graph, create_graph, Some(edges), false)?;
    let found = vmap::out_of_graph(inputs, found)?;
    let object = |g: Option<_>| g.map_or_else(|| Ok(py.None().into_bound(py)), |g| wrap(py, g));
    to_tuple(py, found.len(), found.into_iter().map(object))
}

/// Tell whether autograd records operations in this thread.
///
/// Examples:
///     >>> with torch.no_grad():
///     ...     torch.is_grad_enabled()
///     False
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    mode::grad_switch()
}

/// Sets whether operators are recorded in this thread.
#[pyfunction]
pub fn set_recording(on: bool) {
    mode::set_grad_enabled(on);
}

/// Sets the grad mode inside a `with` block. The same object can be entered repeatedly, also inside itself.
#[pyclass(subclass, frozen, module = "gradiron")]
pub struct GradSwitch {
    #[pyo3(get)]
    to: bool,
    /// The grad mode before each entry, innermost last.
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
        lock(&self.before).push(before);
    }

    #[pyo3(signature = (_type = None, _value = None, _trace = None))]
    fn __exit__(
        &self,
        _type: Option<&Bound<'_, PyAny>>,
        _value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) {
        if let Some(before) = lock(&self.before).pop() {
            mode::set_grad_enabled(before);
        }
    }
}

/// `no_grad.__new__`. In Python it would take half of the time of the `with` block.
#[pyfunction]
#[pyo3(signature = (class, function = None))]
pub fn new_no_grad<'py>(
    class: &Bound<'py, PyType>,
    function: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    new_switch(class, false, function)
}

/// `enable_grad.__new__`.
#[pyfunction]
#[pyo3(signature = (class, function = None))]
pub fn new_enable_grad<'py>(
    class: &Bound<'py, PyType>,
    function: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    new_switch(class, true, function)
}

/// Returns a switch, or the decorated function if one is given.
fn new_switch<'py>(
    class: &Bound<'py, PyType>,
    to: bool,
    function: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if !class.is_subclass_of::<GradSwitch>()? {
        return Err(PyTypeError::new_err("__new__() takes a class that derives from GradSwitch"));
    }
    let arguments = PyTuple::new(py, [to])?;
    // SAFETY: the class derives from `GradSwitch`, whose `tp_new` this is, and which takes these arguments.
    let made = unsafe {
        let slot = ffi::PyType_GetSlot(GradSwitch::type_object_raw(py), ffi::Py_tp_new);
        let new: ffi::newfunc = std::mem::transmute::<*mut c_void, ffi::newfunc>(slot);
        Bound::from_owned_ptr_or_err(py, new(class.as_type_ptr(), arguments.as_ptr(), std::ptr::null_mut()))?
    };
    match function {
        Some(function) => made.call1((function,)),
        None => Ok(made),
    }
}

/// Tell whether this thread is inside `torch.inference_mode`.
///
/// Examples:
///     >>> with torch.inference_mode():
///     ...     torch.is_inference_mode_enabled()
///     True
#[pyfunction]
pub fn is_inference_mode_enabled() -> bool {
    mode::inference()
}

/// Sets the inference mode; returns the old one.
#[pyfunction]
pub fn swap_inference_mode(on: bool) -> bool {
    mode::set_inference(on)
}

pub fn tensor_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let t = &slf.get().tensor;
    t.check_view()?;
    let Some(edge) = t.edge_for_hooks().filter(|_| t.is_batched() || func::requires_grad(t)) else {
        return Err(no_hook(t));
    };
    let (hook, when) = (vmap::hook_of(slf, hook)?, When::Output(edge.output));
    if edge.node.has_hooks()
        && let Some(handle) = hooks::join_assigned(slf, when, &hook)?
    {
        return Ok(handle);
    }
    hooks::node_hook(slf.py(), &edge.node, when, hook)
}

pub fn accumulate_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let t = &slf.get().tensor;
    t.check_view()?;
    match t.edge_for_hooks() {
        None => Err(no_hook(t)),
        Some(_) if !t.is_leaf() => Err(guided(
            "post accumulate grad hooks cannot be registered on non-leaf tensors",
            "tensor",
            &TensorOrEdge::Tensor(t.clone()),
            "use register_hook(), or register it on the leaf that this was computed from".into(),
        )),
        Some(edge) => match hooks::join_assigned(slf, When::Accumulated, &hook)? {
            Some(handle) => Ok(handle),
            None => hooks::node_hook(slf.py(), &edge.node, When::Accumulated, hook),
        },
    }
}

/// Tell whether a tensor was made in inference mode.
///
/// Args:
///     input: the tensor.
///
/// Examples:
///     >>> torch.is_inference(torch.zeros(1))
///     False
#[pyfunction]
pub fn is_inference(input: &Bound<'_, PyTensor>) -> bool {
    input.get().tensor.is_inference()
}

/// Sets the version counter of a tensor.
#[pyfunction]
pub fn set_version(tensor: &Bound<'_, PyTensor>, version: u32) {
    tensor.get().tensor.body().storage.set_version(version);
}

/// Returns the number of nodes alive.
#[pyfunction]
pub fn live_nodes() -> usize {
    crate::arena::stats::<crate::tensor::Node>().live
}

/// Increments the version counter after an in-place write that gradiron could not see.
#[pyfunction]
pub fn increment_version(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(t) = object.cast::<PyTensor>() {
        count_write(&t.get().tensor.body());
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
        count_write(&t.get().tensor.body());
    }
    Ok(())
}
