//! Turns the results of a custom Function's forward into its outputs: connects them to the graph, replaces
//! returned inputs by views, and records in-place writes in the graph of the base.

use crate::base::{DType, Device, Dims, Guidance};
use crate::operator::call::results::view_of;
use crate::operator::inplace::write::Write;
use crate::operator::primitives::detached;
use crate::python::call::overrides::overrides;
use crate::python::function::context::{Ctx, Places};
use crate::python::function::function_node::PyFunction;
use crate::python::function::listed::TensorList;
use crate::python::function::options::{GradOptions, Requests};
use crate::python::objects::{ClassName, name_of};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::python::wrapper::collector;
use crate::tensor::{
    CreationMeta, Edge, Kind, Meta, Node, NodeRef, Saved, Tensor, inference_error, mode, node_hooks,
    saved_hooks,
};
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::ffi::CStr;
use std::sync::Mutex;

pub type Outputs<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// A call of a Function after its forward ran.
pub struct Call<'a, 'py> {
    pub class: &'a Bound<'py, PyAny>,
    pub ctx: &'a Bound<'py, Ctx>,
    pub inputs: TensorList<&'a [Option<Tensor>]>,
    pub edges: SmallVec<[Option<Edge>; 3]>,
    pub recording: bool,
}

/// The tensors that forward marked as written in place and as not differentiable.
pub struct Marks {
    dirty: TensorList<Vec<Option<Tensor>>>,
    plain: TensorList<Vec<Option<Tensor>>>,
}

/// An error about a tensor that a Function wrote in place but must not.
#[cold]
fn refusal(call: &Call, written: &Tensor, message: &str) -> PyErr {
    let name = name_of(call.class, "Function");
    let (text, line) = written.describe();
    Guidance::new(message).note("operator", name, None).note("written", text, line).done().into()
}

impl Marks {
    pub fn is_dirty(&self, t: &Tensor) -> bool {
        self.dirty.has(t)
    }

    pub fn is_differentiable(&self, t: &Tensor) -> bool {
        t.dtype().is_differentiable() && !self.plain.has(t)
    }

    /// Refuses tensors that were written but not returned. (Those that were returned are recorded by now.)
    fn check_returned(&self, call: &Call, outputs: &[Option<Tensor>]) -> PyResult<()> {
        let outputs = TensorList::new(outputs);
        let Some(t) = self.dirty.tensors.iter().flatten().find(|t| !outputs.has(t)) else { return Ok(()) };
        Err(refusal(
            call,
            t,
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are \
             modified inplace must all be outputs of the Function.",
        ))
    }
}

/// Refuses to record an in-place write to a tensor that must not be written.
fn check_writable(call: &Call, t: &Tensor, outputs: usize) -> PyResult<()> {
    if t.is_leaf() && t.requires_grad() {
        let message = "a leaf Variable that requires grad has been used in an in-place operation.";
        return Err(refusal(call, t, message));
    }
    if outputs > 1 && t.as_view().is_some() {
        return Err(refusal(
            call,
            t,
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return \
             more than one Tensor. This is not supported by the current autograd engine. You should either make sure the \
             input is not a view (using .clone() for example) or make your Function only return one Tensor (potentially \
             splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that \
             does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do \
             this change.",
        ));
    }
    Ok(())
}

/// Connects the outputs of a forward to the graph.
pub fn finish<'py>(mut call: Call<'_, 'py>, mut outputs: Outputs<'py>) -> PyResult<(Outputs<'py>, Marks)> {
    let (py, state) = (call.class.py(), call.ctx.get());
    let Requests { to_save, dirty, plain } = state.take_requests(py)?;
    let marks = Marks { dirty: TensorList::new(dirty), plain: TensorList::new(plain) };
    let tensor = |o: &Bound<'py, PyAny>| o.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone());
    let mut tensors: SmallVec<[Option<Tensor>; 4]> = outputs.iter().map(tensor).collect();
    let returned = if marks.dirty.tensors.is_empty() { SmallVec::new() } else { tensors.clone() };
    let grad_options = state.grad_options(py, &tensors, |t| marks.is_differentiable(t))?;
    let to_save = to_save.map(|list| list.into_bound(py));
    let others = if call.recording { others(to_save.as_ref(), &call, &tensors) } else { Vec::new() };
    let node = call.recording.then(|| publish(&mut call, &tensors, grad_options, &others)).transpose()?;
    if let Some(node) = &node {
        state.publish(node);
    }
    let mut histories = 0;
    for (i, slot) in tensors.iter_mut().enumerate() {
        let Some(t) = slot.clone() else { continue };
        let edge = node.clone().filter(|_| marks.is_differentiable(&t));
        histories += usize::from(edge.is_some());
        let edge = edge.map(|node| Edge { node, output: i as u32 });
        if edge.is_some() && marks.is_dirty(&t) {
            check_writable(&call, &t, outputs.len())?;
        }
        let made = connect(&call, &marks, to_save.as_ref(), &outputs[i], &t, edge)?;
        if let Some(made) = made {
            *slot = tensor(&made);
            outputs[i] = made;
        }
    }
    marks.check_returned(&call, &returned)?;
    if histories > 1 {
        tensors.iter().flatten().for_each(|t| t.remake_view(CreationMeta::Multi));
    }
    if let Some(node) = &node {
        let (outputs, others) = (TensorList::new(&tensors[..]), TensorList::new(others));
        let known = SaveCandidates { outputs, inputs: &call.inputs, others, marks: &marks };
        // If one value cannot be saved, those before it are packed all the same.
        let places = to_save.map_or_else(|| Ok(Places::new()), |list| save(node, &list, &known));
        saved_hooks::pack(node, |i| call.inputs.tensors.get(i)?.as_ref(), &[])?;
        state.keep(places?);
        if node_hooks::active() {
            node_hooks::tell(node);
            node_hooks::check()?;
        }
    }
    Ok((outputs, marks))
}

/// Returns the tensors to save that are neither inputs nor outputs but have edges in the graph.
fn others(
    to_save: Option<&Bound<'_, PyTuple>>,
    call: &Call,
    outputs: &[Option<Tensor>],
) -> Vec<Option<Tensor>> {
    let outputs = TensorList::new(outputs);
    let other = |object: Bound<'_, PyAny>| {
        let t = &object.cast::<PyTensor>().ok()?.get().tensor;
        let is_other = t.requires_grad() && !call.inputs.has(t) && !outputs.has(t) && t.edge().is_some();
        is_other.then(|| Some(t.clone()))
    };
    to_save.iter().flat_map(|list| list.iter()).filter_map(other).collect()
}

fn publish(
    call: &mut Call,
    outputs: &[Option<Tensor>],
    grad_options: Option<Box<GradOptions>>,
    others: &[Option<Tensor>],
) -> PyResult<NodeRef> {
    let meta = |t: &Option<Tensor>| match t {
        Some(t) => t.body().meta(),
        None => Meta { shape: Dims::new(), dtype: DType::F32, device: Device::Cpu },
    };
    collector::follow(call.ctx.py())?;
    let mut metas: SmallVec<[Meta; 1]> = outputs.iter().map(meta).collect();
    if let Some(grad_options) = &grad_options {
        grad_options.declare(&mut metas);
    }
    let mut node = Node::draft(Kind::Custom(Box::new(PyFunction {
        class: call.class.clone().unbind(),
        ctx: Mutex::new(Some(call.ctx.clone().unbind())),
        variables: call.inputs.tensors.iter().map(Option::is_some).collect(),
        tensors: outputs.iter().map(Option::is_some).collect(),
        others: others.iter().flatten().filter_map(Tensor::edge).collect(),
        grad_options,
    })));
    node.edges = std::mem::take(&mut call.edges);
    node.outputs = metas;
    Ok(Node::publish(node))
}

/// Returns a view of an input that forward returned unchanged. A tensor subclass makes the view with its
/// own override.
fn view_of_input<'py>(
    object: &Bound<'py, PyAny>,
    t: &Tensor,
    edge: Option<Edge>,
) -> PyResult<Bound<'py, PyAny>> {
    if overrides(object) {
        let view = object.py().import("gradiron.overrides")?.getattr("_as_itself")?;
        let made = mode::with_grad(false, || view.call1((object,)))?;
        let view = &made.cast::<PyTensor>()?.get().tensor;
        if edge.is_some() {
            view.set_history(edge);
        }
        view.remake_view(CreationMeta::Function);
        return Ok(made);
    }
    let body = t.body();
    let layout = body.layout.view(body.shape()).unwrap_or_else(|| body.layout.clone());
    let body = body.with_layout(layout);
    wrap(object.py(), mode::with_grad(false, || view_of(t, body, edge, CreationMeta::Function)))
}

/// Connects one output to the graph; `edge` is set if a gradient flows back through it. Returns the object
/// that replaces the output, if any.
fn connect<'py>(
    call: &Call<'_, 'py>,
    marks: &Marks,
    to_save: Option<&Bound<'py, PyTuple>>,
    object: &Bound<'py, PyAny>,
    t: &Tensor,
    edge: Option<Edge>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let is_input = call.inputs.has(t);
    let dirty = marks.is_dirty(t);
    if is_input && !dirty {
        check_not_saved(call, to_save, t)?;
    }
    match edge {
        None if is_input && t.requires_grad() => return wrap(py, detached::shallow(t)).map(Some),
        None if is_input && !dirty => return view_of_input(object, t, None).map(Some),
        None if t.requires_grad() && t.as_view().is_none() => {
            t.set_history(None);
            t.set_requires_grad(false)?;
        }
        None if dirty && is_input => {}
        None => t.remake_view(CreationMeta::Function),
        Some(edge) if dirty => {
            if !is_input {
                const TEXT: &CStr = c"ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have \
                    been mutated should be passed to ctx.mark_dirty().";
                if t.as_view().is_some() {
                    return Err(refusal(call, t, &TEXT.to_string_lossy()));
                }
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), TEXT, 1)?;
            }
            // `.grad` belonged to the old values.
            t.set_grad(None);
            let over = Write::begin(t, true)?;
            // If a view was used since it was written, its edge was updated and differs from the one that
            // the node took.
            if let Some(at) = call.inputs.place(t)
                && t.as_view().is_some()
            {
                t.set_history(edge.node.edges[at].clone());
            }
            over.end(Some(edge))?;
        }
        Some(edge) if is_input => return view_of_input(object, t, Some(edge)).map(Some),
        Some(edge) => {
            t.set_history(Some(edge));
            t.remake_view(CreationMeta::Function);
        }
    }
    Ok(None)
}

/// With a `setup_context`, refuses to save an input that forward returned unchanged: the output is another
/// tensor.
fn check_not_saved(call: &Call, to_save: Option<&Bound<'_, PyTuple>>, t: &Tensor) -> PyResult<()> {
    let py = call.class.py();
    let own = |list: &Bound<'_, PyTuple>| {
        list.iter().any(|o| o.cast::<PyTensor>().is_ok_and(|o| o.get().tensor.same(t)))
    };
    let for_forward = call.ctx.getattr(intern!(py, "saved_for_forward"))?;
    let saved = to_save.is_some_and(own) || for_forward.cast::<PyTuple>().is_ok_and(own);
    if !saved || !call.class.getattr(intern!(py, "_own_setup"))?.is_truthy()? {
        return Ok(());
    }
    let message = "An input that has been returned as-is as output is being saved for backward. This is not supported if you override \
         setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside \
         the forward function itself.";
    let (text, line) = t.describe();
    Err(Guidance::new(message).note("saved", text, line).done().into())
}

/// The tensors that a saved tensor may be identical to.
struct SaveCandidates<'a> {
    outputs: TensorList<&'a [Option<Tensor>]>,
    inputs: &'a TensorList<&'a [Option<Tensor>]>,
    others: TensorList<Vec<Option<Tensor>>>,
    marks: &'a Marks,
}

impl SaveCandidates<'_> {
    fn saved(&self, t: &Tensor) -> Saved {
        let body = t.body();
        match (self.outputs.place(t), self.inputs.place(t)) {
            (Some(i), _) if self.marks.is_differentiable(t) => Saved::output(&body, i),
            (None, Some(i)) => Saved::input(&body, i),
            _ => match self.others.place(t) {
                Some(i) => Saved::new(&body, Saved::ARGUMENT + i as u32),
                None => Saved::new(&body, Saved::DETACHED),
            },
        }
    }
}

/// Saves the tensors that forward asked for; returns the index of each.
fn save(node: &NodeRef, list: &Bound<'_, PyTuple>, known: &SaveCandidates) -> PyResult<Places> {
    let mut places = Places::new();
    let mut count = 0;
    for (i, object) in list.iter().enumerate() {
        if object.is_none() {
            places.push(None);
            continue;
        }
        let Ok(t) = object.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err(format!(
                "save_for_backward can only save variables, but argument {i} is of type {}",
                object.class_name()?
            )));
        };
        let t = &t.get().tensor;
        if t.is_inference() {
            return Err(inference_error(node).into());
        }
        node.save(known.saved(t).of(t));
        places.push(Some(count));
        count += 1;
    }
    Ok(places)
}
