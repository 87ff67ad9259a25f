//! Custom Functions: `forward` runs unrecorded, then one node stands for it and calls `backward`. The context is the node's
//! Python face; it holds no tensors of its own accord, the node's saved values do.

use super::context::{self, Asked, Options, Read, marked, tensor_list};
use super::node::next_functions;
use super::outputs::{Call, Outputs, finish};
use super::tensor::{PyTensor, wrap};
use crate::base::{DType, Guidance};
use crate::ops::{self, transform::Plain};
use crate::tensor::{Custom, Edge, Grads, Node, NodeRef, Step, Tensor, When, mode};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
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
pub struct State {
    pub to_save: Option<Py<PyTuple>>,
    pub dirty: Vec<Py<PyTensor>>,
    pub non_differentiable: Vec<Py<PyTensor>>,
    pub needs_input_grad: Option<Py<PyAny>>,
    /// Which of forward's arguments were tensors.
    pub variables: Flags,
    pub keep_none: bool,
    /// What the class and the context say of the call beside that.
    pub options: Options,
    /// Where saved values lie among the node's, None for a saved None.
    saved: Vec<Option<usize>>,
    /// The node, named so that context and node do not keep each other alive.
    node: Option<crate::arena::Id<Node>>,
    /// What `save_for_forward` was given.
    pub for_forward: Vec<Option<Py<PyTensor>>>,
    /// The same as `jvp` sees it, while it runs.
    shown: Option<Py<PyTuple>>,
}

pub type Flags = SmallVec<[bool; 8]>;
type Marks = (Option<Py<PyTuple>>, Vec<Py<PyTensor>>, Vec<Py<PyTensor>>);

impl Ctx {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For forward mode: what was saved for it, what is written in place, and whether missing tangents stay None.
    pub fn take_for_forward(&self, py: Python<'_>) -> (Vec<Option<Py<PyTensor>>>, bool) {
        let mut state = self.state();
        let keep_none = state.keep_none;
        (
            std::mem::take(&mut state.for_forward)
                .iter()
                .map(|t| t.as_ref().map(|t| t.clone_ref(py)))
                .collect(),
            keep_none,
        )
    }

    /// Lets `saved_tensors` show these instead of the node's.
    pub fn show(&self, saved: Option<Py<PyTuple>>) {
        let old = std::mem::replace(&mut self.state().shown, saved);
        drop(old);
    }

    /// The tensors that were marked: as written in place, and as not differentiable.
    pub fn marked(&self) -> super::forward::Marked {
        let state = self.state();
        let ids = |list: &[Py<PyTensor>]| list.iter().map(|t| t.get().tensor.id()).collect();
        super::forward::Marked { dirty: ids(&state.dirty), plain: ids(&state.non_differentiable) }
    }

    /// What was to be saved, and the tensors that were marked, for whoever finishes the call.
    pub fn take_marks(&self) -> Marks {
        let mut state = self.state();
        let dirty = std::mem::take(&mut state.dirty);
        (state.to_save.take(), dirty, std::mem::take(&mut state.non_differentiable))
    }

    /// Names the node that this context shows.
    pub fn publish(&self, node: &NodeRef, variables: Flags) {
        let mut state = self.state();
        state.node = Some(node.id());
        state.variables = variables;
    }

    /// Remembers where the saved values lie.
    pub fn keep(&self, places: Vec<Option<usize>>) {
        self.state().saved = places;
    }

    fn living(&self) -> PyResult<NodeRef> {
        self.node().ok_or_else(|| {
            PyRuntimeError::new_err(
                "Attribute 'metadata' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly on \
                 an instance of autograd.Function is a legacy access pattern that is no longer supported.",
            )
        })
    }

    /// Gives up what was saved: `saved_tensors` is read once only.
    #[cold]
    fn forget(&self, node: &Node) {
        {
            let mut state = self.state();
            state.options.read = Read::Done;
            state.saved = Vec::new();
        }
        let values = std::mem::take(&mut node.saves().values);
        // Dropped without the lock: whatever runs then may come back to us.
        drop(values);
    }

    pub fn node(&self) -> Option<NodeRef> {
        self.state().node.as_ref().and_then(|id| id.upgrade())
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
    fn save_for_backward(&self, tensors: &Bound<'_, PyTuple>) {
        self.state().to_save = Some(tensors.clone().unbind());
    }
    #[getter]
    fn to_save(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.state().to_save.as_ref().map(|t| t.clone_ref(py))
    }
    #[pyo3(signature = (*tensors))]
    fn save_for_forward(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let list = super::forward::saved_list(tensors)?;
        self.state().for_forward = list;
        Ok(())
    }
    #[pyo3(signature = (*tensors))]
    fn mark_dirty(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let list = tensor_list(tensors, |i, kind| {
            format!("mark_dirty can only accept variables, but argument {i} is of type {kind}")
        })?;
        self.state().dirty = list;
        Ok(())
    }
    #[pyo3(signature = (*tensors))]
    fn mark_non_differentiable(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let list = tensor_list(tensors, |_, kind| {
            format!("mark_non_differentiable only accepts variable arguments, but got {kind}")
        })?;
        self.state().non_differentiable = list;
        Ok(())
    }
    /// What `mark_dirty` was given; None once forward is done.
    #[getter]
    fn dirty_tensors<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        marked(py, self.state().dirty.iter().map(|t| Some(t.clone_ref(py))))
    }
    /// What `mark_non_differentiable` was given, likewise.
    #[getter]
    fn non_differentiable<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        marked(py, self.state().non_differentiable.iter().map(|t| Some(t.clone_ref(py))))
    }
    /// What `save_for_forward` was given, likewise.
    #[getter]
    fn saved_for_forward<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let state = self.state();
        marked(py, state.for_forward.iter().map(|t| t.as_ref().map(|t| t.clone_ref(py))))
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        true
    }
    fn set_materialize_grads(&self, value: bool) {
        self.state().keep_none = !value;
    }
    #[getter]
    fn needs_input_grad(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().needs_input_grad.as_ref().map(|t| t.clone_ref(py))
    }
    #[getter]
    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(shown) = &self.state().shown {
            return Ok(shown.bind(py).clone());
        }
        let Some(node) = self.node() else { return Ok(PyTuple::empty(py)) };
        let (places, read) = {
            let state = self.state();
            (state.saved.clone(), state.options.read)
        };
        read.check()?;
        if node.saves().freed {
            return Err(crate::tensor::freed_error(Some(&node)).into());
        }
        let unpack = |place: Option<usize>| match place {
            Some(at) => wrap(py, super::saving::unpack_at(&node, at)?),
            None => Ok(py.None().into_bound(py)),
        };
        let found = PyTuple::new(py, places.into_iter().map(unpack).collect::<PyResult<Vec<_>>>()?)?;
        if read == Read::Once {
            self.forget(&node);
        }
        Ok(found)
    }
    #[getter]
    fn _raw_saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(node) = self.node() else { return Ok(PyTuple::empty(py)) };
        if node.saves().freed {
            return Err(crate::tensor::freed_error(Some(&node)).into());
        }
        let places = self.state().saved.clone();
        PyTuple::new(py, places.into_iter().map(|at| super::saving::SavedTensor { node: node.clone(), at }))
    }
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.living().map(|node| super::graph::metadata(py, &node))
    }
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        super::graph::input_metadata(py, &*self.living()?)
    }
    fn _sequence_nr(&self) -> PyResult<u64> {
        self.living().map(|node| node.sequence)
    }
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.get_type().name()?.to_string())
    }
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.node() {
            Some(node) => {
                let variables = self.state().variables.clone();
                let all = next_functions(py, &node)?.iter().zip(variables);
                PyTuple::new(
                    py,
                    all.filter(|(_, is_tensor)| *is_tensor).map(|(edge, _)| edge).collect::<Vec<_>>(),
                )
            }
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
            Some(node) => Ok(super::saving::saved(py, &node)?.into_any()),
            None => Ok(PyTuple::empty(py).into_any()),
        }
    }
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock now is outside of the cycle.
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        visit.call(&state.to_save)?;
        visit.call(&state.shown)?;
        visit.call(&state.needs_input_grad)?;
        let marked = state.dirty.iter().chain(&state.non_differentiable);
        marked.chain(state.for_forward.iter().flatten()).try_for_each(|tensor| visit.call(tensor))
    }
    fn __clear__(&self) {
        let kept = self.state.try_lock().ok().map(|mut state| {
            let lists = (std::mem::take(&mut state.dirty), std::mem::take(&mut state.non_differentiable));
            let objects = (state.to_save.take(), state.shown.take(), state.needs_input_grad.take());
            (objects, std::mem::take(&mut state.for_forward), lists)
        });
        // Dropped without the lock: whatever runs now may come back to us.
        drop(kept);
    }
}

/// The node's side: the class whose `backward` is called, and the context it is called with.
pub struct PyFunction {
    pub class: Py<PyAny>,
    pub ctx: Py<PyAny>,
    /// Which of forward's arguments were tensors, and which of its outputs.
    pub variables: Flags,
    pub tensors: Flags,
    /// What its outputs and their gradients are, where the call says more than that.
    pub asked: Option<Box<Asked>>,
}

impl Custom for PyFunction {
    fn name(&self) -> String {
        Python::attach(|py| self.ctx.bind(py).get_type().name().map(|name| name.to_string()))
            .unwrap_or_else(|_| "Function".into())
    }
    fn apply(&self, step: &Step) -> crate::base::Result<Grads> {
        Python::attach(|py| self.backward(py, step)).map_err(super::errors::carry)
    }
    fn is_tensor(&self, input: usize) -> bool {
        self.variables.get(input).copied().unwrap_or(false)
    }
    fn dtype(&self, output: usize) -> Option<DType> {
        self.asked.as_ref()?.dtype(output)
    }
    fn takes_any(&self, output: usize) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.takes_any(output))
    }
    fn host(&self) -> *mut c_void {
        self.ctx.as_ptr().cast()
    }
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void)) {
        see(self.ctx.as_ptr().cast());
        see(self.class.as_ptr().cast());
    }
}

/// What a Function has as `backward` and as `vjp` when it has none of its own; handed over by the Python side.
static NONE_OWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[pyfunction]
pub fn register_function(py: Python<'_>, none_own: Py<PyAny>) {
    let _ = NONE_OWN.set(py, none_own);
}

impl PyFunction {
    /// The class's `backward`, or `vjp`, its other name.
    fn method<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py);
        let (backward, vjp) = (class.getattr(intern!(py, "backward"))?, class.getattr(intern!(py, "vjp"))?);
        let own = |method: &Bound<'_, PyAny>| NONE_OWN.get(py).is_none_or(|none| !method.is(none));
        match (own(&backward), own(&vjp)) {
            (true, true) => Err(PyRuntimeError::new_err(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one \
                 of them.",
            )),
            (_, true) => Ok(vjp),
            _ => Ok(backward),
        }
    }

    /// What `backward` returned does not fit.
    #[cold]
    fn guided(&self, node: &Node, what: String, advice: &str) -> PyErr {
        let message = format!("function {} returned {what}", self.name());
        Guidance::new(message).node("operator", node).advice(advice).done().into()
    }

    fn backward(&self, py: Python<'_>, step: &Step) -> PyResult<Grads> {
        let ctx = self.ctx.bind(py);
        let keep_none = ctx.cast::<Ctx>()?.get().state().keep_none;
        let mut arguments: SmallVec<[Bound<'_, PyAny>; 4]> = smallvec::smallvec![ctx.clone()];
        for (i, (grad, meta)) in step.grads.iter().zip(&step.node.outputs).enumerate() {
            let asked = self.asked.as_deref();
            arguments.push(match grad {
                Some(g) => wrap(py, g.clone())?,
                None if keep_none || !self.tensors[i] => py.None().into_bound(py),
                None if asked.is_some_and(|asked| asked.stays_none(i)) => py.None().into_bound(py),
                None => {
                    let dtype = asked.and_then(|asked| asked.dtype(i)).unwrap_or(meta.dtype);
                    wrap(py, ops::create::zeros(&meta.shape, dtype, meta.device)?)?
                }
            });
        }
        let method = self.method(py)?;
        let arguments = match &self.asked {
            Some(asked) if asked.boxed => asked.in_a_list(py, arguments)?,
            _ => PyTuple::new(py, arguments)?,
        };
        let returned = method.call1(arguments)?;
        let mut values: SmallVec<[Bound<'_, PyAny>; 4]> = match returned.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => smallvec::smallvec![returned],
        };
        if values.len() > self.variables.len() && values[self.variables.len()..].iter().all(|v| v.is_none()) {
            values.truncate(self.variables.len());
        }
        if values.len() != self.variables.len() {
            return Err(self.guided(
                step.node,
                format!(
                    "an incorrect number of gradients (expected {}, got {})",
                    self.variables.len(),
                    values.len()
                ),
                "return one gradient for each argument of forward after ctx, None for those that have none",
            ));
        }
        let mut out = Grads::new();
        for (i, value) in values.iter().enumerate() {
            out.push(match value.cast::<PyTensor>() {
                _ if value.is_none() => None,
                _ if !self.variables[i] => {
                    return Err(self.guided(
                        step.node,
                        format!(
                            "a gradient different than None at position {}, but the corresponding forward input was not a \
                             Variable",
                            i + 1
                        ),
                        "return None there",
                    ));
                }
                Ok(t) => Some(t.get().tensor.clone()),
                Err(_) => {
                    let message = format!("expected Variable or None (got {})", value.get_type().name()?);
                    let advice = "let backward return tensors, None where there is no gradient";
                    return Err(Guidance::new(message).node("operator", step.node).advice(advice).done().into());
                }
            });
        }
        Ok(out)
    }
}

/// `Function.apply(*args)`. `context` is the class of contexts, `style` what the class says of its calls, in bits.
#[pyfunction]
pub fn apply_function<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    style: u8,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let _span = super::profile::function(class, args);
    let inputs: SmallVec<[Option<Tensor>; 4]> =
        args.iter().map(|a| a.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone())).collect();
    super::batch::check_function(class)?;
    if inputs.iter().flatten().any(Tensor::is_batched) {
        return super::batch::apply_function(class, args, &inputs);
    }
    let ctx = context.call0()?;
    let recording = mode::grad_enabled() && inputs.iter().flatten().any(Tensor::requires_grad);
    if recording {
        inputs.iter().flatten().try_for_each(Tensor::check_view)?;
    }
    let edges: SmallVec<[Option<Edge>; 3]> =
        inputs.iter().map(|t| t.as_ref().filter(|_| recording).and_then(Tensor::edge)).collect();
    let needs = PyTuple::new(
        py,
        inputs.iter().map(|t| PyBool::new(py, t.as_ref().is_some_and(Tensor::requires_grad))),
    )?;
    let state = ctx.cast::<Ctx>()?;
    let setup = style & context::SETUP != 0;
    {
        let mut state = state.get().state();
        state.needs_input_grad = Some(needs.into_any().unbind());
        if style > context::SETUP {
            state.options = Options::of(class, style)?;
        }
    }
    let dual = inputs.iter().flatten().any(Tensor::is_dual);
    let plain = Plain::start();
    let returned = mode::with_grad(false, || -> PyResult<Bound<'py, PyAny>> {
        let forward = class.getattr(intern!(py, "forward"))?;
        if !setup {
            let mut arguments: SmallVec<[Bound<'_, PyAny>; 8]> = smallvec::smallvec![ctx.clone()];
            arguments.extend(args.iter());
            return forward.call1(PyTuple::new(py, arguments)?);
        }
        let output = forward.call1(args.clone())?;
        plain.show_transforms();
        class.getattr(intern!(py, "setup_context"))?.call1((&ctx, args, &output))?;
        Ok(output)
    })?;
    let single = returned.cast::<PyTuple>().is_err();
    let outputs: Outputs<'py> = match returned.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => smallvec::smallvec![returned.clone()],
    };
    if single && outputs[0].cast::<PyTensor>().is_err() {
        return Ok(returned);
    }
    drop(plain);
    let marked = dual.then(|| state.get().marked());
    let call = Call { class, ctx: &ctx, inputs: &inputs, edges, recording };
    let mut finished = finish(call, state.get(), outputs)?;
    if let Some(marked) = marked {
        super::forward::function_tangents(class, &ctx, &inputs, &mut finished, &marked)?;
    }
    // Dropped without the lock: whatever runs then may come back to us.
    let for_forward = std::mem::take(&mut state.get().state().for_forward);
    drop(for_forward);
    if single { Ok(finished[0].clone()) } else { Ok(PyTuple::new(py, finished)?.into_any()) }
}
