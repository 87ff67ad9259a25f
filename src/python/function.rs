//! Custom Functions: `forward` runs unrecorded, then one node stands for it and calls `backward`. The context is the node's
//! Python face; it holds no tensors of its own accord, the node's saved values do.

use super::node::next_functions;
use super::tensor::{PyTensor, wrap};
use crate::ops;
use crate::tensor::{Custom, Edge, Grads, Kind, Meta, Node, NodeRef, Saved, Step, Tensor, When, mode, packing};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a Function's `ctx` is made on; Python's subclass adds the attributes.
#[pyclass(name = "FunctionCtx", module = "gradiron.autograd.function", subclass, frozen, weakref)]
#[derive(Default)]
pub struct Ctx {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    to_save: Vec<Option<Py<PyTensor>>>,
    dirty: Vec<Py<PyTensor>>,
    non_differentiable: Vec<Py<PyTensor>>,
    needs_input_grad: Option<Py<PyTuple>>,
    keep_none: bool,
    /// Where saved values lie among the node's, None for a saved None.
    saved: Vec<Option<usize>>,
    /// The node, named so that context and node do not keep each other alive.
    node: Option<crate::arena::Id<Node>>,
}

impl Ctx {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn node(&self) -> Option<NodeRef> {
        self.state().node.as_ref().and_then(|id| id.upgrade())
    }
}

fn tensor_list(args: &Bound<'_, PyTuple>, what: &str) -> PyResult<Vec<Py<PyTensor>>> {
    args.iter()
        .enumerate()
        .map(|(i, a)| match a.cast_into::<PyTensor>() {
            Ok(t) => Ok(t.unbind()),
            Err(e) => Err(PyTypeError::new_err(format!(
                "{what} can only be applied to variables, but argument {i} is of type {}",
                e.into_inner().get_type().name()?
            ))),
        })
        .collect()
}

#[pymethods]
impl Ctx {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Ctx {
        Ctx::default()
    }
    #[pyo3(signature = (*tensors))]
    fn save_for_backward(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let save = |(i, a): (usize, Bound<'_, PyAny>)| -> PyResult<Option<Py<PyTensor>>> {
            if a.is_none() {
                return Ok(None);
            }
            match a.cast_into::<PyTensor>() {
                Ok(t) => Ok(Some(t.unbind())),
                Err(e) => Err(PyTypeError::new_err(format!(
                    "save_for_backward can only save variables, but argument {i} is of type {}",
                    e.into_inner().get_type().name()?
                ))),
            }
        };
        let list = tensors.iter().enumerate().map(save).collect::<PyResult<Vec<_>>>()?;
        self.state().to_save = list;
        Ok(())
    }
    #[pyo3(signature = (*tensors))]
    fn save_for_forward(&self, tensors: &Bound<'_, PyTuple>) {
        let _ = tensors;
    }
    #[pyo3(signature = (*tensors))]
    fn mark_dirty(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let list = tensor_list(tensors, "mark_dirty")?;
        self.state().dirty = list;
        Ok(())
    }
    #[pyo3(signature = (*tensors))]
    fn mark_non_differentiable(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let list = tensor_list(tensors, "mark_non_differentiable")?;
        self.state().non_differentiable = list;
        Ok(())
    }
    fn set_materialize_grads(&self, value: bool) {
        self.state().keep_none = !value;
    }
    #[getter]
    fn needs_input_grad(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.state().needs_input_grad.as_ref().map(|t| t.clone_ref(py))
    }
    #[getter]
    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(node) = self.node() else { return Ok(PyTuple::empty(py)) };
        let places = self.state().saved.clone();
        if node.saves().freed {
            return Err(crate::tensor::freed_error().into());
        }
        let unpack = |place: Option<usize>| match place {
            Some(at) => wrap(py, super::saving::unpack_at(&node, at)?),
            None => Ok(py.None().into_bound(py)),
        };
        PyTuple::new(py, places.into_iter().map(unpack).collect::<PyResult<Vec<_>>>()?)
    }
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.get_type().name()?.to_string())
    }
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.node() {
            Some(node) => next_functions(py, &node),
            None => Ok(PyTuple::empty(py)),
        }
    }
    fn register_hook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.node() {
            Some(node) => super::autograd::node_hook(py, &node, When::After, hook),
            None => Err(PyRuntimeError::new_err("the node of this context is gone")),
        }
    }
    fn register_prehook<'py>(&self, py: Python<'py>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.node() {
            Some(node) => super::autograd::node_hook(py, &node, When::Before, hook),
            None => Err(PyRuntimeError::new_err("the node of this context is gone")),
        }
    }
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.node() {
            Some(node) => Ok(super::node::saved(py, &node)?.into_any()),
            None => Ok(PyTuple::empty(py).into_any()),
        }
    }
}

/// The node's side: the class whose `backward` is called, and the context it is called with.
struct PyFunction {
    class: Py<PyAny>,
    ctx: Py<PyAny>,
    name: String,
    inputs: usize,
}

impl Custom for PyFunction {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn apply(&self, step: &Step) -> crate::base::Result<Grads> {
        Python::attach(|py| self.backward(py, step)).map_err(super::errors::carry)
    }
    fn host(&self) -> *mut c_void {
        self.ctx.as_ptr().cast()
    }
}

impl PyFunction {
    fn backward(&self, py: Python<'_>, step: &Step) -> PyResult<Grads> {
        let ctx = self.ctx.bind(py);
        let keep_none = ctx.cast::<Ctx>()?.get().state().keep_none;
        let mut grads: Vec<Bound<'_, PyAny>> = Vec::with_capacity(step.grads.len());
        for (grad, meta) in step.grads.iter().zip(&step.node.outputs) {
            grads.push(match grad {
                Some(g) => wrap(py, g.clone())?,
                None if keep_none => py.None().into_bound(py),
                None => wrap(py, ops::create::zeros(&meta.shape, meta.dtype, meta.device)?)?,
            });
        }
        let mut arguments = vec![ctx.clone()];
        arguments.extend(grads);
        let method = self.class.bind(py).getattr(intern!(py, "backward"))?;
        let returned = method.call1(PyTuple::new(py, arguments)?)?;
        let mut values: Vec<Bound<'_, PyAny>> = match returned.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![returned],
        };
        if values.len() > self.inputs && values[self.inputs..].iter().all(|v| v.is_none()) {
            values.truncate(self.inputs);
        }
        if values.len() != self.inputs {
            return Err(PyRuntimeError::new_err(format!(
                "function {} returned an incorrect number of gradients (expected {}, got {})",
                self.name,
                self.inputs,
                values.len()
            )));
        }
        let mut out = Grads::new();
        for (i, (value, edge)) in values.iter().zip(&step.node.edges).enumerate() {
            out.push(match value.cast::<PyTensor>() {
                Ok(t) => Some(t.get().tensor.clone()),
                Err(_) if value.is_none() => None,
                Err(_) if edge.is_none() => {
                    return Err(PyRuntimeError::new_err(format!(
                        "function {} returned a gradient different than None at position {}, but the corresponding forward \
                         input was not a Variable",
                        self.name,
                        i + 1
                    )));
                }
                Err(_) => {
                    return Err(PyRuntimeError::new_err(format!(
                        "expected Variable or None (got {})",
                        value.get_type().name()?
                    )));
                }
            });
        }
        Ok(out)
    }
}

/// `Function.apply(*args)`. `context` is the class of contexts, `setup` tells whether the class has its own `setup_context`.
#[pyfunction]
pub fn apply_function<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    setup: bool,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let ctx = context.call0()?;
    let inputs: Vec<Option<Tensor>> =
        args.iter().map(|a| a.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone())).collect();
    let recording = mode::grad_enabled() && inputs.iter().flatten().any(Tensor::requires_grad);
    let edges: SmallVec<[Option<Edge>; 3]> =
        inputs.iter().map(|t| t.as_ref().filter(|_| recording).and_then(Tensor::edge)).collect();
    let needs = PyTuple::new(
        py,
        inputs.iter().map(|t| PyBool::new(py, t.as_ref().is_some_and(Tensor::requires_grad))),
    )?;
    let state = ctx.cast::<Ctx>()?;
    state.get().state().needs_input_grad = Some(needs.unbind());
    let returned = mode::with_grad(false, || -> PyResult<Bound<'py, PyAny>> {
        let forward = class.getattr(intern!(py, "forward"))?;
        if !setup {
            let mut arguments = vec![ctx.clone()];
            arguments.extend(args.iter());
            return forward.call1(PyTuple::new(py, arguments)?);
        }
        let output = forward.call1(args.clone())?;
        class.getattr(intern!(py, "setup_context"))?.call1((&ctx, args, &output))?;
        Ok(output)
    })?;
    let single = returned.cast::<PyTuple>().is_err();
    let outputs: Vec<Bound<'py, PyAny>> = match returned.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![returned.clone()],
    };
    if single && outputs[0].cast::<PyTensor>().is_err() {
        return Err(PyTypeError::new_err(format!(
            "{}.forward: expected to have Tensor or tuple of Tensors outputs (got {})",
            class.getattr(intern!(py, "__name__"))?,
            returned.get_type().name()?
        )));
    }
    let finished = finish(py, class, &ctx, state.get(), &inputs, edges, outputs, recording)?;
    if single { Ok(finished[0].clone()) } else { Ok(PyTuple::new(py, finished)?.into_any()) }
}

/// Gives the outputs of a forward their histories.
#[allow(clippy::too_many_arguments)]
fn finish<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    ctx: &Bound<'py, PyAny>,
    state: &Ctx,
    inputs: &[Option<Tensor>],
    edges: SmallVec<[Option<Edge>; 3]>,
    outputs: Vec<Bound<'py, PyAny>>,
    recording: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (to_save, dirty, plain) = {
        let mut s = state.state();
        (
            std::mem::take(&mut s.to_save),
            std::mem::take(&mut s.dirty),
            std::mem::take(&mut s.non_differentiable),
        )
    };
    let among = |list: &[Py<PyTensor>], t: &Tensor| list.iter().any(|p| p.get().tensor.same(t));
    for t in &dirty {
        let t = &t.get().tensor;
        let leaf = t.is_leaf() && t.requires_grad();
        if recording && leaf {
            return Err(PyRuntimeError::new_err(
                "a leaf Variable that requires grad has been used in an in-place operation.",
            ));
        }
    }
    // An input that comes out as it went in is a view of itself; a written one stays the same tensor.
    let mut results: Vec<Bound<'py, PyAny>> = Vec::with_capacity(outputs.len());
    for output in outputs {
        results.push(match output.cast::<PyTensor>() {
            Ok(t) if recording => {
                let t = &t.get().tensor;
                let is_input = inputs.iter().flatten().any(|i| i.same(t));
                if is_input && !among(&dirty, t) {
                    wrap(py, Tensor::new(t.body().clone()))?
                } else if t.requires_grad() && !is_input {
                    wrap(py, ops::create::shallow(t))?
                } else {
                    output
                }
            }
            _ => output,
        });
    }
    if !recording {
        let mut s = state.state();
        s.dirty = Vec::new();
        return Ok(results);
    }
    let tensors: Vec<Option<Tensor>> =
        results.iter().map(|o| o.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone())).collect();
    let meta = |t: &Option<Tensor>| match t {
        Some(t) => t.body().meta(),
        None => Meta {
            shape: crate::base::Dims::new(),
            dtype: crate::base::DType::F32,
            device: crate::base::Device::Cpu,
        },
    };
    let name = ctx.get_type().name()?.to_string();
    let count = edges.len();
    let mut node = Node::draft(Kind::Custom(Box::new(PyFunction {
        class: class.clone().unbind(),
        ctx: ctx.clone().unbind(),
        name,
        inputs: count,
    })));
    node.edges = edges;
    node.outputs = tensors.iter().map(meta).collect();
    let node = Node::publish(node);
    state.state().node = Some(node.id());
    for (i, t) in tensors.iter().enumerate() {
        let Some(t) = t else { continue };
        if among(&plain, t) || !t.dtype().is_float() {
            continue;
        }
        let edge = Edge { node: node.clone(), output: i as u32 };
        if among(&dirty, t) {
            crate::tensor::check_inplace(t, true)?;
            crate::tensor::finish_inplace(t, Some(edge));
        } else {
            t.set_history(Some(edge));
        }
    }
    let mut places = Vec::with_capacity(to_save.len());
    let mut at = 0;
    for object in &to_save {
        let Some(object) = object else {
            places.push(None);
            continue;
        };
        let t = &object.get().tensor;
        let body = t.body();
        let saved = match (
            tensors.iter().position(|o| o.as_ref().is_some_and(|o| o.same(t))),
            inputs.iter().position(|i| i.as_ref().is_some_and(|i| i.same(t))),
        ) {
            (Some(i), _) => Saved::output(&body, i),
            (None, Some(i)) => Saved::input(&body, i),
            (None, None) => Saved::new(&body, Saved::DETACHED),
        };
        node.save(saved);
        places.push(Some(at));
        at += 1;
    }
    state.state().saved = places;
    packing::pack(&node, |i| inputs.get(i)?.as_ref())?;
    Ok(results)
}
