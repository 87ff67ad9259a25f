//! Saved values as Python objects: pack and unpack hooks, and the `_saved_…` and `_raw_saved_…` attributes
//! of nodes.

use crate::base::{Result as CoreResult, try_alloc};
use crate::operator::pointwise::Pointwise;
use crate::operator::{Forms, Kind};
use crate::ops;
use crate::python::errors;
use crate::python::graph::node;
use crate::python::objects::{ClassName, ToObject, to_list, to_tuple};
use crate::python::saved::arguments;
use crate::python::saved::names;
use crate::python::sequences::ListArg;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::python::wrapper::collector::{self, Start};
use crate::tensor::facts::{Facts, SavedAt};
use crate::tensor::levels::func;
use crate::tensor::levels::tangents;
use crate::tensor::saved_hooks::{self, Chooser, Pack};
use crate::tensor::{
    Derivative, Kept, Node, NodeRef, Packed, Saved, Tensor, Unpack, freed_error, inference_error,
};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::ffi::c_void;
use std::sync::Arc;

/// The user's pair of hooks.
struct PyHooks {
    pack: Py<PyAny>,
    unpack: Py<PyAny>,
}

struct PyPacked {
    /// The result of the pack hook.
    object: Py<PyAny>,
    unpack: Py<PyAny>,
}

impl Pack for PyHooks {
    fn pack(&self, tensor: &Tensor) -> crate::base::Result<Box<dyn Unpack>> {
        Python::attach(|py| self.call(py, tensor)).map_err(errors::carry)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl PyHooks {
    fn new(py: Python<'_>, pack: Py<PyAny>, unpack: Py<PyAny>) -> PyResult<PyHooks> {
        for hook in [&pack, &unpack] {
            if !hook.bind(py).is_callable() {
                return Err(PyTypeError::new_err(format!(
                    "hooks of saved tensors must be callable, but got {}",
                    hook.bind(py).class_name()?
                )));
            }
        }
        Ok(PyHooks { pack, unpack })
    }

    fn call(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<Box<dyn Unpack>> {
        collector::follow(py)?;
        let returned = self.pack.bind(py).call1((wrap(py, tensor.clone())?,))?;
        let unpack = self.unpack.clone_ref(py);
        Ok(Box::new(PyPacked { object: returned.unbind(), unpack }))
    }
}

impl Unpack for PyPacked {
    fn unpack(&self) -> crate::base::Result<Tensor> {
        Python::attach(|py| self.call(py)).map_err(errors::carry)
    }
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void)) {
        see(self.object.as_ptr().cast());
        see(self.unpack.as_ptr().cast());
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl PyPacked {
    fn call(&self, py: Python<'_>) -> PyResult<Tensor> {
        let returned = self.unpack.bind(py).call1((&self.object,))?;
        match returned.cast::<PyTensor>() {
            Ok(t) => Ok(t.get().tensor.clone()),
            Err(_) => Err(PyTypeError::new_err(format!(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                returned.class_name()?
            ))),
        }
    }
}

/// Activates a pair of hooks for the tensors that this thread saves.
#[pyfunction]
pub fn push_saved_hooks(py: Python<'_>, pack: Py<PyAny>, unpack: Py<PyAny>) -> PyResult<()> {
    Ok(saved_hooks::push(Arc::new(PyHooks::new(py, pack, unpack)?))?)
}

/// Returns the active pair of hooks.
#[pyfunction]
pub fn top_saved_hooks(py: Python<'_>) -> Option<(Py<PyAny>, Py<PyAny>)> {
    let top = saved_hooks::top()?;
    let hooks = top.as_any().downcast_ref::<PyHooks>()?;
    Some((hooks.pack.clone_ref(py), hooks.unpack.clone_ref(py)))
}

/// Removes the innermost pair of hooks.
#[pyfunction]
pub fn pop_saved_hooks() {
    saved_hooks::pop();
}

/// Forbids pairs of hooks, with the message of the error; None allows them again.
#[pyfunction]
pub fn disable_saved_hooks(message: Option<&str>) -> PyResult<()> {
    try_alloc::check_text(message.map_or(0, str::len))?;
    Ok(saved_hooks::disable(message.map(str::to_owned))?)
}

/// Returns the message with which hooks are forbidden, if they are.
#[pyfunction]
pub fn saved_hooks_disabled() -> PyResult<Option<ToObject<String>>> {
    Ok(saved_hooks::disabled_message()?.map(ToObject))
}

/// Returns the node whose value is being packed.
#[pyfunction]
pub fn packing_node(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    saved_hooks::packing_node().map(|node| node::node_object(py, node)).transpose()
}

/// Calls `watcher(tensor)` before each in-place write of this thread; None stops that.
#[pyfunction]
pub fn watch_writes(watcher: Option<Py<PyAny>>) {
    saved_hooks::watch_writes(watcher.map(|watcher| -> saved_hooks::Watcher {
        Arc::new(move |target: &Tensor| {
            Python::attach(|py| watcher.call1(py, (wrap(py, target.clone())?,)).map(drop))
                .map_err(errors::carry)
        })
    }));
}

/// A saved value of a node, in its packed form.
#[pyclass(name = "SavedTensor", module = "gradiron.autograd.graph", frozen)]
pub struct SavedTensor {
    pub node: NodeRef,
    /// None for an optional operand that was not given.
    pub at: Option<usize>,
}

#[pymethods]
impl SavedTensor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<SavedTensor> {
        Err(PyRuntimeError::new_err("Trying to create a SavedTensor object from Python is forbidden."))
    }

    /// Packs this value with its own pair of hooks.
    #[pyo3(signature = (pack_hook = None, unpack_hook = None))]
    fn register_hooks(
        &self,
        py: Python<'_>,
        pack_hook: Option<Py<PyAny>>,
        unpack_hook: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (Some(pack_hook), Some(unpack_hook)) = (pack_hook, unpack_hook) else {
            return Err(PyTypeError::new_err(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n    1. (self, \
                 pack_hook: Callable, unpack_hook: Callable) -> None",
            ));
        };
        let hooks = PyHooks::new(py, pack_hook, unpack_hook)?;
        let Some(at) = self.at else {
            return Err(PyRuntimeError::new_err(
                "Calling register_hooks on a saved tensor with value None is forbidden",
            ));
        };
        let (body, output) = {
            let saves = self.node.saves();
            match saves.values.get(at) {
                _ if saves.freed => return Err(hooks_after_free()),
                None => return Err(hooks_after_free()),
                Some(saved) => match &saved.kept {
                    Kept::Packed(_) => {
                        return Err(PyRuntimeError::new_err(
                            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one \
                             pair of hooks is allowed at a time.",
                        ));
                    }
                    Kept::Body(body) => (body.clone(), saved.is_output()),
                },
            }
        };
        let packed = saved_hooks::pack_tensor(&hooks, &Tensor::new(body), output)?;
        let old = match self.node.saves().values.get_mut(at) {
            Some(saved) => std::mem::replace(&mut saved.kept, Kept::Packed(Arc::new(packed))),
            None => return Err(hooks_after_free()),
        };
        drop(old);
        Ok(())
    }

    /// The saved tensor, or the result of the pack hook; None once it is freed.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.shared() {
            Some(Saved { kept: Kept::Packed(packed), .. }) => {
                Ok(by_hooks(&packed).map(|packed| packed.object.bind(py).clone()))
            }
            Some(saved) if saved.is_output() => {
                saved.body().map(|body| wrap(py, Tensor::new(body.clone()))).transpose()
            }
            Some(saved) => wrap(py, saved.unpack(&self.node)?).map(Some),
            None => Ok(None),
        }
    }

    /// The hook that unpacks `data`, if any.
    #[getter]
    fn unpack_hook(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match self.shared()?.kept {
            Kept::Packed(packed) => by_hooks(&packed).map(|packed| packed.unpack.clone_ref(py)),
            Kept::Body(_) => None,
        }
    }

    /// Returns the tensor.
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.at {
            Some(at) => wrap(py, unpack_at(&self.node, at)?),
            None => Ok(py.None().into_bound(py)),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        collector::traverse(&Start::node(self, &self.node), &visit).map(drop)
    }
    fn __clear__(&self) {
        collector::clear(&Start::node(self, &self.node));
    }
}

impl SavedTensor {
    /// Returns a handle to the value, unless it is freed.
    fn shared(&self) -> Option<Saved> {
        let saves = self.node.saves();
        saves.values.get(self.at?).filter(|_| !saves.freed).map(Saved::share)
    }
}

/// Returns the Python value if it was packed by Python hooks.
fn by_hooks(packed: &Packed) -> Option<&PyPacked> {
    packed.hook.as_any().downcast_ref()
}

fn hooks_after_free() -> PyErr {
    PyRuntimeError::new_err(
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are \
         freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the \
         graph a second time or if you need to access saved variables after calling backward.",
    )
}

/// Unpacks a saved value. No lock is held while a hook runs.
pub fn unpack_at(node: &NodeRef, at: usize) -> PyResult<Tensor> {
    let saved = {
        let saves = node.saves();
        match saves.values.get(at) {
            Some(saved) if !saves.freed => saved.share(),
            _ => return Err(freed_error(Some(node)).into()),
        }
    };
    let tensor = saved.unpack(node)?;
    if saved.is_orphan()
        && let Some(saved) = node.saves().values.get_mut(at)
    {
        saved.set_tensor(&tensor);
    }
    Ok(tensor)
}

/// Finds the index of a named saved value. None if the name is unknown; `Some(None)` if this call did not
/// save it.
fn place(node: &NodeRef, name: &str) -> Option<Option<usize>> {
    let names = names::names(node);
    let source = names.iter().find(|(n, _)| *n == name)?.1;
    Some(node.saves().values.iter().position(|saved| saved.source == source))
}

/// Returns the attribute `name` of a node, if it names a saved value.
pub fn attribute<'py>(py: Python<'py>, node: &NodeRef, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (raw, wanted) = match (name.strip_prefix("_raw_saved_"), name.strip_prefix("_saved_")) {
        (Some(wanted), _) => (true, wanted),
        (_, Some(wanted)) => (false, wanted),
        _ => return Ok(None),
    };
    if let Some(facts) = node.facts() {
        return by_facts(py, node, facts, wanted, raw);
    }
    let kept = if node.saves().freed { None } else { place(node, wanted) };
    if !raw
        && kept.flatten().is_none()
        && let Some(value) = arguments::argument(py, node, wanted)
    {
        return value.map(Some);
    }
    if node.saves().freed {
        // A freed node has forgotten its saved values and their names.
        return match raw {
            true => {
                Ok(Some(Bound::new(py, SavedTensor { node: node.clone(), at: Some(usize::MAX) })?.into_any()))
            }
            // The row's formula still has the names.
            false if names::pointwise(node).is_some() && place(node, wanted).is_none() => Ok(None),
            false => Err(freed_error(Some(node)).into()),
        };
    }
    match kept {
        None => Ok(None),
        Some(at) if raw => Ok(Some(Bound::new(py, SavedTensor { node: node.clone(), at })?.into_any())),
        Some(None) => Ok(Some(py.None().into_bound(py))),
        Some(Some(at)) => wrap(py, unpack_at(node, at)?).map(Some),
    }
}

/// [`attribute`] for a node of a primitive, whose row declares the names.
fn by_facts<'py>(
    py: Python<'py>,
    node: &NodeRef,
    facts: &'static Facts,
    wanted: &str,
    raw: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !raw && let Some(value) = facts.attribute(node, wanted) {
        return arguments::to_python(py, value).map(Some);
    }
    let Some(&(_, saved)) = facts.saved.iter().find(|(name, _)| *name == wanted) else { return Ok(None) };
    if node.saves().freed {
        if raw {
            let gone = SavedTensor { node: node.clone(), at: Some(usize::MAX) };
            return Ok(Some(Bound::new(py, gone)?.into_any()));
        }
        return Err(freed_error(Some(node)).into());
    }
    let place = |source: u32| node.saves().values.iter().position(|saved| saved.source == source);
    let one = |at: Option<usize>| match at {
        _ if raw => Ok(Bound::new(py, SavedTensor { node: node.clone(), at })?.into_any()),
        Some(at) => wrap(py, unpack_at(node, at)?),
        None => Ok(py.None().into_bound(py)),
    };
    let sources = facts.sources(node, saved);
    Ok(Some(match saved {
        SavedAt::Operand { list: true, .. } => {
            to_tuple(py, sources.len(), sources.map(|source| one(place(source))))?.into_any()
        }
        _ => one(place(sources.start))?,
    }))
}

/// Returns the names of all `_saved_…` and `_raw_saved_…` attributes of a node.
pub fn attributes(node: &NodeRef) -> Vec<String> {
    if let Some(facts) = node.facts() {
        let tensors =
            facts.saved.iter().flat_map(|(name, _)| [format!("_saved_{name}"), format!("_raw_saved_{name}")]);
        let mut all: Vec<String> =
            tensors.chain(facts.attributes(node).map(|name| format!("_saved_{name}"))).collect();
        all.sort();
        return all;
    }
    let names = names::names(node);
    let tensors = names.iter().flat_map(|(name, _)| [format!("_saved_{name}"), format!("_raw_saved_{name}")]);
    let arguments = arguments::arguments(node);
    let mut all: Vec<String> =
        tensors.chain(arguments.into_iter().map(|name| format!("_saved_{name}"))).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns the saved tensors of a node as pairs of name and tensor; raises if they are freed.
pub fn saved<'py>(py: Python<'py>, node: &NodeRef) -> PyResult<Bound<'py, PyList>> {
    if node.saves().freed {
        return Err(freed_error(Some(node)).into());
    }
    let list = PyList::empty(py);
    let names: Vec<(&'static str, u32)> = match node.facts() {
        Some(facts) => {
            let named = |&(name, saved): &(&'static str, SavedAt)| {
                facts.sources(node, saved).map(move |source| (name, source))
            };
            facts.saved.iter().flat_map(named).collect()
        }
        None => names::names(node),
    };
    for (name, source) in names {
        let at = node.saves().values.iter().position(|saved| saved.source == source);
        if let Some(at) = at {
            list.append((name, wrap(py, unpack_at(node, at)?)?))?;
        }
    }
    Ok(list)
}

/// The user's choice of operators whose results are cached (selective checkpointing).
struct PyChooser(Py<PyAny>);

impl Chooser for PyChooser {
    fn supply(&self, kind: &'static Derivative) -> crate::base::Result<Option<Tensor>> {
        let ask = |py: Python<'_>| -> PyResult<Option<Tensor>> {
            let found = self.0.call_method1(py, "supply", (aten_name(kind),))?;
            Ok(found.bind(py).cast::<PyTensor>().ok().map(|t| t.get().tensor.clone()))
        };
        Python::attach(ask).map_err(errors::carry)
    }
    fn made(
        &self,
        kind: &'static Derivative,
        inputs: Vec<Tensor>,
        result: Option<Tensor>,
    ) -> crate::base::Result<()> {
        let tell = |py: Python<'_>| -> PyResult<()> {
            let inputs = inputs.into_iter().map(|t| wrap(py, t)).collect::<PyResult<Vec<_>>>()?;
            let result = result.map(|t| wrap(py, t)).transpose()?;
            self.0.call_method1(py, "made", (aten_name(kind), inputs, result)).map(drop)
        };
        Python::attach(tell).map_err(errors::carry)
    }
}

/// Returns ATen's name and overload for a derivative's operator: `mul` and `Tensor`.
fn aten_name(derivative: &'static Derivative) -> (String, &'static str) {
    let of = |row: &&Pointwise| {
        [&row.derivative, &row.by_number].into_iter().any(|own| std::ptr::eq(own, derivative))
    };
    let row = ops::pointwise_rows().find(of);
    let said =
        derivative.facts.map_or_else(|| row.map_or("", |row| row.clauses.aten_name), |facts| facts.aten);
    let (name, overload) = said.split_once('.').unwrap_or((said, ""));
    let name = if name.is_empty() { stem(derivative.name) } else { name.to_owned() };
    if !overload.is_empty() {
        return (name, overload);
    }
    let Some(row) = row else { return (name, "default") };
    let number = std::ptr::eq(&row.by_number, derivative);
    // The second operand of a public binary operator may be a number, unless the row says that all must be
    // tensors.
    let public = row.row.forms.0 & (Forms::FUNCTION | Forms::METHOD) != 0;
    let either = public && row.inputs == 2 && row.row.params[1].kind == Kind::Operand;
    let kinds = row.clauses.aten.or(either.then_some(["Tensor", "Scalar"]));
    (name, kinds.map_or("default", |[tensor, scalar]| if number { scalar } else { tensor }))
}

/// Derives the operator's name from its node's: `log_softmax` from `LogSoftmaxBackward0`.
fn stem(node: &str) -> String {
    let stem = node.rfind("Backward").map_or(node, |end| &node[..end]);
    let mut name = String::new();
    for letter in stem.chars() {
        if letter.is_ascii_uppercase() && name.ends_with(|c: char| c.is_ascii_lowercase()) {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Lets `chooser` cache and supply the results of this thread's operators.
#[pyfunction]
pub fn push_chooser(chooser: Py<PyAny>) {
    saved_hooks::push_chooser(Arc::new(PyChooser(chooser)));
}

/// Removes the innermost chooser.
#[pyfunction]
pub fn pop_chooser() {
    saved_hooks::pop_chooser();
}

/// Tensors saved like those of an operator: hooks see them, and an in-place write is detected.
#[pyclass(frozen, module = "gradiron.autograd.graph")]
pub struct KeptTensors {
    pub node: NodeRef,
}

static KEEP: Derivative =
    crate::tensor::no_derivative!("KeepBackward0", "nothing flows through tensors that are only kept");

/// Saves tensors for [`KeptTensors::get`].
#[pyfunction]
pub fn keep_tensors(tensors: ListArg<Bound<'_, PyTensor>>) -> PyResult<KeptTensors> {
    let tensors: Vec<Tensor> = tensors.0.iter().map(|t| t.get().tensor.clone()).collect();
    let mut node = Node::draft(crate::tensor::Kind::Op(&KEEP));
    node.edges = tensors.iter().map(Tensor::edge_of_many).collect::<CoreResult<_>>()?;
    let node = Node::publish_unseen(node);
    tensors.iter().enumerate().for_each(|(i, t)| node.save(Saved::input(&t.body(), i).of(t)));
    if tensors.iter().any(Tensor::is_dual) {
        tangents::remember(&node, |i| tensors.get(i as usize));
    }
    if tensors.iter().any(Tensor::is_inference) && !func::is_inside() {
        return Err(inference_error(&node).into());
    }
    saved_hooks::pack(&node, |i| tensors.get(i), &[])?;
    Ok(KeptTensors { node })
}

#[pymethods]
impl KeptTensors {
    /// Returns the tensors, connected to the graph as before.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let count = self.node.saves().values.len();
        to_list(py, count, (0..count).map(|at| wrap(py, unpack_at(&self.node, at)?)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        collector::traverse(&Start::node(self, &self.node), &visit).map(drop)
    }
    fn __clear__(&self) {
        collector::clear(&Start::node(self, &self.node));
    }
}
