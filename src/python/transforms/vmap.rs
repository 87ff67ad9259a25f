//! The Python side of `vmap`: enters and leaves levels, adds and removes batch dimensions.

use crate::base::try_alloc;
use crate::operator::batch::dims;
use crate::operator::batch::{self, Batch};
use crate::operator::primitives::views;
use crate::python::sequences::{ListArg, collect};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::levels::func;
use crate::tensor::levels::vmap;
use crate::tensor::levels::vmap::{Frame, Randomness};
use crate::tensor::{CreationMeta, Kind, Node, NodeRef, Tensor};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::cell::Cell;
use std::collections::HashSet;

/// Returns true while a transformed function runs: then the transform decides which tensors require
/// gradients.
#[pyfunction]
pub fn is_transformed() -> bool {
    func::any() || vmap::is_under_way()
}

thread_local! {
    /// If set, custom Functions run on batched tensors without a batching rule: gradiron made the batch,
    /// not the user.
    static WITHOUT_RULES: Cell<bool> = const { Cell::new(false) };
}

/// Returns a function that restores this thread's switch in the thread that calls it.
pub fn hand_over() -> impl FnOnce() + Send {
    let without = WITHOUT_RULES.take();
    move || WITHOUT_RULES.set(without)
}

pub fn without_rules() -> bool {
    WITHOUT_RULES.get()
}

/// Sets whether custom Functions run without batching rules; returns the old setting.
#[pyfunction]
pub fn set_without_rules(on: bool) -> bool {
    WITHOUT_RULES.replace(on)
}

/// Refuses a method that would change the leaves of a transform.
pub fn refuse_in_transform(method: &str, perhaps: &str) -> PyResult<()> {
    if !is_transformed() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "You are attempting to call Tensor.{method}() {perhaps}inside of a function being transformed by a functorch \
         transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, \
         hessian) or call {method}() outside of a function being transformed instead."
    )))
}

/// Makes a tensor require gradients, and returns it.
#[pyfunction]
pub fn tracked<'py>(t: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
    t.get().tensor.set_requires_grad(true)?;
    Ok(t.clone())
}

/// Returns an alias of the tensor, connected to it in the graph.
#[pyfunction]
pub fn aliased<'py>(t: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    wrap(t.py(), views::alias(&t.get().tensor)?)
}

/// Returns true if the physical tensor requires gradients.
#[pyfunction]
pub fn wants_grad(t: &Bound<'_, PyTensor>) -> bool {
    t.get().tensor.requires_grad()
}

pub fn no_branch() -> PyErr {
    PyRuntimeError::new_err(
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that \
         yet.",
    )
}

/// Begins a `vmap` over a batch dimension of `size`; returns its level.
#[pyfunction]
pub fn vmap_enter(size: usize, randomness: &str) -> PyResult<u32> {
    Ok(vmap::enter(size, randomness_of(randomness)?))
}

fn randomness_of(name: &str) -> PyResult<Randomness> {
    try_alloc::check_text(name.len())?;
    Ok(match name {
        "error" => Randomness::Error,
        "different" => Randomness::Different,
        "same" => Randomness::Same,
        other => {
            return Err(PyRuntimeError::new_err(format!(
                "Only allowed values for randomness are 'error', 'different', or 'same'. Got {other}"
            )));
        }
    })
}

pub fn randomness_name(randomness: Randomness) -> &'static str {
    match randomness {
        Randomness::Error => "error",
        Randomness::Different => "different",
        Randomness::Same => "same",
    }
}

/// An active call of `vmap`: its level, the size of its batch dimension, and its randomness mode.
type VmapCall = (u32, usize, &'static str);

fn calls_of(frames: Vec<Frame>) -> Vec<VmapCall> {
    frames.into_iter().map(|f| (f.level, f.size, randomness_name(f.randomness))).collect()
}

/// Returns the active calls of `vmap`, innermost last.
#[pyfunction]
pub fn vmap_calls() -> Vec<VmapCall> {
    calls_of(vmap::frames())
}

/// Replaces the active calls, so that a function runs as if within the given ones; returns the old ones.
#[pyfunction]
pub fn vmap_swap_calls(calls: ListArg<(u32, usize, String)>) -> PyResult<Vec<VmapCall>> {
    let frame = |(level, size, name): (u32, usize, String)| {
        Ok(Frame { level, size, randomness: randomness_of(&name)? })
    };
    Ok(calls_of(vmap::swap_frames(calls.0.into_iter().map(frame).collect::<PyResult<_>>()?)))
}

/// Returns the physical tensor of a batched one and the levels of its leading dimensions, or None.
#[pyfunction]
pub fn batch_parts<'py>(t: &Bound<'py, PyTensor>) -> PyResult<Option<(Bound<'py, PyAny>, Vec<u32>)>> {
    let Some(batched) = t.get().tensor.as_batched() else { return Ok(None) };
    Ok(Some((wrap(t.py(), batched.value.clone())?, batched.levels.to_vec())))
}

/// The inverse of [`batch_parts`].
#[pyfunction]
pub fn batch_joined<'py>(t: &Bound<'py, PyTensor>, levels: ListArg<u32>) -> PyResult<Bound<'py, PyAny>> {
    let value = t.get().tensor.clone();
    if value.is_batched() || value.ndim() < levels.0.len() {
        return Err(PyRuntimeError::new_err(
            "batch_joined() needs an unbatched tensor with at least one dimension per level",
        ));
    }
    wrap(t.py(), Tensor::batched(value, levels.0.into_iter().collect()))
}

/// Ends the innermost `vmap`.
#[pyfunction]
pub fn vmap_leave() -> PyResult<()> {
    vmap::leave()?;
    Ok(())
}

/// Returns the number of active calls of `vmap` in this thread.
#[pyfunction]
pub fn vmap_depth() -> usize {
    vmap::frames().len()
}

/// Hides the dimension `dim` as the batch dimension of a level.
#[pyfunction]
pub fn add_batch_dim<'py>(t: &Bound<'py, PyTensor>, dim: i64, level: u32) -> PyResult<Bound<'py, PyAny>> {
    wrap(t.py(), dims::add_dim(&t.get().tensor, dim, level)?)
}

/// Makes the batch dimension of a level an ordinary dimension again.
#[pyfunction]
pub fn remove_batch_dim<'py>(
    t: &Bound<'py, PyTensor>,
    level: u32,
    size: usize,
    dim: i64,
) -> PyResult<Bound<'py, PyAny>> {
    wrap(t.py(), batch::remove_dim(&t.get().tensor, level, size, dim)?)
}

/// Returns the tensor with the batch dimension of a level moved to the front, or None if it is not batched
/// at that level.
#[pyfunction]
pub fn unwrap_batched<'py>(t: &Bound<'py, PyTensor>, level: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
    dims::unwrap_level(&t.get().tensor, level)?.map(|found| wrap(t.py(), found)).transpose()
}

/// Returns true if a tensor is batched, at the given level or at any.
#[pyfunction]
#[pyo3(signature = (t, level = None))]
pub fn is_batched(t: &Bound<'_, PyAny>, level: Option<u32>) -> bool {
    let Ok(t) = t.cast::<PyTensor>() else { return false };
    t.get().tensor.as_batched().is_some_and(|b| level.is_none_or(|l| b.levels.contains(&l)))
}

/// Notes that a reverse-mode transform begins (true) or ends, possibly inside of a `vmap`.
#[pyfunction]
pub fn count_reverse(begins: bool) {
    if begins { vmap::begin_reverse() } else { vmap::end_reverse() }
}

/// Returns true if a gradient of `output` flows beyond `own`: to nodes recorded before number `since`, or
/// to other leaves.
#[pyfunction]
pub fn reaches_others(output: &Bound<'_, PyTensor>, own: ListArg<Bound<'_, PyTensor>>, since: u64) -> bool {
    // An alias with its own edges leads on to other nodes, so it is no end.
    let leaf = |t: &Bound<'_, PyTensor>| t.get().tensor.edge().filter(|edge| edge.node.is_leaf());
    let own: HashSet<usize> = own.0.iter().filter_map(leaf).map(|edge| key(&edge.node)).collect();
    let mut starts = Vec::new();
    roots(output.get().tensor.physical(), &mut starts);
    let beyond = |node: &Node| {
        if own.contains(&key(node)) { Some(false) } else { func::is_beyond(node, since) }
    };
    func::leads(starts, beyond)
}

/// Marks the inputs of a transform that has ended: they need no more gradients.
#[pyfunction]
pub fn retire_inputs(inputs: ListArg<Bound<'_, PyTensor>>) {
    for edge in inputs.0.iter().filter_map(|t| t.get().tensor.edge()) {
        if let Kind::Leaf(leaf) = &edge.node.kind {
            leaf.retire();
        }
    }
}

/// Permits in-place writes to views among a transform's gradients: its backward did not run under the
/// caller's `no_grad`.
#[pyfunction]
pub fn allow_view_writes(gradients: ListArg<Option<Bound<'_, PyTensor>>>) {
    for gradient in gradients.0.iter().flatten() {
        gradient.get().tensor.remake_view(CreationMeta::Plain);
    }
}

/// Collects the nodes of a tensor and of its tangents.
fn roots(tensor: &Tensor, found: &mut Vec<NodeRef>) {
    found.extend(tensor.edge().map(|edge| edge.node));
    for tangent in tensor.dual_levels().into_iter().filter_map(|level| tensor.tangent(level)) {
        roots(&tangent, found);
    }
}

fn key(node: &Node) -> usize {
    std::ptr::from_ref(node) as usize
}

/// Converts the gradients of a backward to batched tensors where the inputs are batched.
pub fn out_of_graph(inputs: &Bound<'_, PyAny>, found: Vec<Option<Tensor>>) -> PyResult<Vec<Option<Tensor>>> {
    let seen = |object: Bound<'_, PyAny>, grad: Option<Tensor>| -> PyResult<Option<Tensor>> {
        match (object.cast::<PyTensor>(), grad) {
            (Ok(t), Some(grad)) if t.get().tensor.is_batched() => {
                Ok(Some(dims::out_of_graph(&t.get().tensor, &grad)?))
            }
            (_, grad) => Ok(grad),
        }
    };
    if inputs.is_instance_of::<PyTensor>() {
        return found.into_iter().map(|g| seen(inputs.clone(), g)).collect();
    }
    let objects = collect(inputs)?;
    if objects.len() != found.len() {
        return Err(PyTypeError::new_err("expected one gradient per input"));
    }
    objects.into_iter().zip(found).map(|(object, grad)| seen(object, grad)).collect()
}

/// Refuses a tensor inside a transform, which has no memory of its own.
pub fn need_storage(t: &Tensor) -> PyResult<()> {
    if func::is_layered(t) { Err(no_storage()) } else { Ok(()) }
}

/// Refuses a batched tensor, which has no single value.
pub fn need_values(t: &Tensor) -> PyResult<()> {
    if t.is_batched() { Err(no_storage()) } else { Ok(()) }
}

fn no_storage() -> PyErr {
    PyRuntimeError::new_err("Cannot access data pointer of Tensor that doesn't have storage")
}

/// Refuses `requires_grad_` inside of a transformed function.
#[pyfunction]
pub fn refuse_leaves() -> PyResult<()> {
    refuse_in_transform("requires_grad_", REQUIRING)
}

pub const REQUIRING: &str = "(or perhaps using torch.autograd.functional.* APIs) ";

/// Refuses `backward()` inside of a transform: `.grad` of a leaf cannot take batched gradients.
pub fn refuse_backward<'a>(roots: impl IntoIterator<Item = &'a Tensor>) -> PyResult<()> {
    if is_transformed() || roots.into_iter().any(Tensor::is_batched) {
        return Err(PyRuntimeError::new_err(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or \
             functorch.vjp instead or call backward() outside of functorch transforms.",
        ));
    }
    Ok(())
}

/// A hook on a batched tensor. The graph knows only the physical tensor, so the gradient is converted for
/// the hook.
#[pyclass(frozen, module = "gradiron")]
pub struct SampleHook {
    hook: Py<PyAny>,
    batch: Batch,
}

#[pymethods]
impl SampleHook {
    fn __call__<'py>(&self, py: Python<'py>, grad: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let seen = wrap(py, self.batch.raised(&grad.get().tensor)?)?;
        let changed =
            vmap::within(&self.batch.levels, &self.batch.sizes, || self.hook.bind(py).call1((seen,)))?;
        match changed.cast::<PyTensor>() {
            Ok(new) => wrap(py, self.batch.lowered(&new.get().tensor)?),
            Err(_) => Ok(changed),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector may traverse the object before its value is written.
        if self.hook.as_ptr().is_null() { Ok(()) } else { visit.call(&self.hook) }
    }
}

/// Returns the hook, wrapped in a `SampleHook` if the tensor is batched.
pub fn hook_of(t: &Bound<'_, PyTensor>, hook: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let tensor = &t.get().tensor;
    if !tensor.is_batched() {
        return Ok(hook);
    }
    Ok(Py::new(t.py(), SampleHook { hook, batch: Batch::of([tensor]) })?.into_any())
}
