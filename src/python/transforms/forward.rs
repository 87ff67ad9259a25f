//! Forward mode and its dual levels, for `autograd.forward_ad` and `func`.

use crate::backward::forward_mode;
use crate::operator::Arg;
use crate::operator::tangent;
use crate::operator::tangent::dual;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::levels::tangents;
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::prelude::*;

/// Returns the dual levels at which a tensor has a tangent, ascending.
#[pyfunction]
pub fn tangent_levels(t: &Bound<'_, PyTensor>) -> Vec<u64> {
    t.get().tensor.dual_levels().to_vec()
}

/// Returns true if a dual level is active.
#[pyfunction]
pub fn is_dual_level(level: u64) -> bool {
    tangents::is_live(level)
}

/// Enters a dual level; its number is never reused.
#[pyfunction]
pub fn enter_dual_level() -> u64 {
    forward_mode::enter()
}

/// Leaves a dual level; its tangents are dropped.
#[pyfunction]
pub fn exit_dual_level(level: u64) {
    tangents::exit(level);
}

/// Returns an alias of the tensor with a tangent.
#[pyfunction]
pub fn make_dual<'py>(
    tensor: &Bound<'py, PyTensor>,
    tangent: &Bound<'py, PyTensor>,
    level: u64,
) -> PyResult<Bound<'py, PyAny>> {
    wrap(tensor.py(), dual::make_dual(&tensor.get().tensor, &tangent.get().tensor, level)?)
}

/// Returns the tensor without its tangent, and the tangent.
#[pyfunction]
pub fn unpack_dual<'py>(
    tensor: &Bound<'py, PyTensor>,
    level: u64,
) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
    let py = tensor.py();
    let (plain, tangent) = dual::unpack_dual(&tensor.get().tensor, level)?;
    Ok((wrap(py, plain)?, tangent.map(|t| wrap(py, t)).transpose()?))
}

/// Returns the tensor detached from the graph; with `keep`, its tangents stay in the graph.
#[pyfunction]
#[pyo3(signature = (tensor, keep = false))]
pub fn unrecorded<'py>(tensor: &Bound<'py, PyTensor>, keep: bool) -> PyResult<Bound<'py, PyAny>> {
    wrap(tensor.py(), tangent::unrecorded(&tensor.get().tensor, keep)?)
}

/// Returns true if this thread's operators compute tangents.
#[pyfunction]
pub fn is_fwd_grad_enabled() -> bool {
    tangents::enabled()
}

/// Sets whether this thread's operators compute tangents.
#[pyfunction]
pub fn set_fwd_grad_enabled(mode: bool) {
    tangents::set_enabled(mode);
}

/// Refuses `out=` for operands with a tangent or a batch dimension.
pub fn refuse_out(name: &str, args: &[Arg], targets: &[Bound<'_, PyAny>]) -> PyResult<()> {
    let batched =
        |target: &Bound<'_, PyAny>| target.cast::<PyTensor>().is_ok_and(|t| t.get().tensor.is_batched());
    if args.iter().any(|a| matches!(a, Arg::Tensor(t) if t.is_batched())) || targets.iter().any(batched) {
        return Err(PyRuntimeError::new_err(format!(
            "Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on out= or view ops."
        )));
    }
    let carries =
        |target: &Bound<'_, PyAny>| target.cast::<PyTensor>().is_ok_and(|t| t.get().tensor.is_dual());
    if !args.iter().any(|a| matches!(a, Arg::Tensor(t) if t.is_dual())) && !targets.iter().any(carries) {
        return Ok(());
    }
    Err(PyNotImplementedError::new_err(format!(
        "Trying to use forward AD with {name}_out that does not support it because it is an out= function"
    )))
}
