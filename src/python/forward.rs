//! Forward mode's levels, for `autograd.forward_ad` and `func`.

use super::tensor::{PyTensor, wrap};
use crate::backward::forward;
use crate::ops::tangent;
use crate::tensor::dual;
use pyo3::prelude::*;

/// Enters a level; its number is never given again.
#[pyfunction]
pub fn enter_dual_level() -> u64 {
    forward::enter()
}

/// Leaves a level, whose tangents go.
#[pyfunction]
pub fn exit_dual_level(level: u64) {
    dual::exit(level);
}

/// A tensor over the same bytes that carries a tangent.
#[pyfunction]
pub fn make_dual<'py>(
    tensor: &Bound<'py, PyTensor>,
    tangent: &Bound<'py, PyTensor>,
    level: u64,
) -> PyResult<Bound<'py, PyAny>> {
    wrap(tensor.py(), tangent::make_dual(&tensor.get().tensor, &tangent.get().tensor, level)?)
}

/// The tensor without its tangent, and the tangent.
#[pyfunction]
pub fn unpack_dual<'py>(
    tensor: &Bound<'py, PyTensor>,
    level: u64,
) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
    let py = tensor.py();
    let (plain, tangent) = tangent::unpack_dual(&tensor.get().tensor, level)?;
    Ok((wrap(py, plain)?, tangent.map(|t| wrap(py, t)).transpose()?))
}

/// Whether this thread's operators carry tangents on.
#[pyfunction]
pub fn is_fwd_grad_enabled() -> bool {
    dual::enabled()
}

/// Switches that.
#[pyfunction]
pub fn set_fwd_grad_enabled(mode: bool) {
    dual::set_enabled(mode);
}
