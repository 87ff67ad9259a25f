//! The transforms of `func` for Python: begin and end, unwrapping, and the checks before in-place writes.

use crate::base::{Error, Result as CoreResult};
use crate::operator::batch::dims;
use crate::operator::pointwise::Pointwise;
use crate::operator::primitives::copies::clone_dense;
use crate::operator::tangent;
use crate::operator::{Arg, Kind, Operand, Row};
use crate::python::sequences::ListArg;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::Tensor;
use crate::tensor::levels::func::{self, Layer, Mode};
use gradiron_macros::pyfunction;
use pyo3::prelude::*;

/// Begins a transform in reverse or forward mode; with `guards`, it refuses writes to tensors that it did
/// not make. Returns the number of the last node before it.
#[pyfunction]
pub fn begin_transform(reverse: bool, guards: bool) -> u64 {
    func::begin(if reverse { Mode::Reverse } else { Mode::Forward }, guards)
}

/// Ends the innermost transform.
#[pyfunction]
pub fn end_transform() {
    func::end();
}

/// Sets the innermost transform's inputs, and the other tensors that are passed to its function.
#[pyfunction]
pub fn set_transform_inputs(
    inputs: ListArg<Bound<'_, PyTensor>>,
    others: ListArg<Bound<'_, PyTensor>>,
) -> CoreResult<()> {
    func::set_inputs(inputs.0.iter().map(|t| &t.get().tensor), others.0.iter().map(|t| &t.get().tensor))
}

/// A depth, the batch dimension (None for a gradient transform), and the unwrapped tensor.
type LayerInfo<'py> = Option<(usize, Option<usize>, Bound<'py, PyAny>)>;

/// Returns the outermost transform wrapper of a tensor at a depth less than `below`.
#[pyfunction]
#[pyo3(signature = (t, below = usize::MAX))]
pub fn layer<'py>(t: &Bound<'py, PyTensor>, below: usize) -> PyResult<LayerInfo<'py>> {
    Ok(match func::layer(&t.get().tensor, below) {
        None => None,
        Some(Layer::Tracked(depth)) => Some((depth, None, t.clone().into_any())),
        Some(Layer::Sample(depth)) => {
            let (place, whole) = dims::samples(&t.get().tensor);
            Some((depth, place, wrap(t.py(), whole)?))
        }
    })
}

/// Returns a copy of the values that belongs to no transform.
#[pyfunction]
pub fn untracked<'py>(t: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let values =
        || tangent::unrecorded(&t.get().tensor.without_tangents(), false).and_then(|t| clone_dense(&t));
    wrap(t.py(), func::outside(values)?)
}

/// Refuses an in-place write to a tensor that the transformed function neither received nor made.
#[inline]
pub fn check_write(
    target: &Tensor,
    others: &[&Tensor],
    operator: impl FnOnce() -> String,
) -> Result<(), Error> {
    if func::any() { func::check_write(target, others, operator) } else { Ok(()) }
}

/// [`check_write`] for a row's arguments; the first is written.
#[inline]
pub fn check_arguments(row: &Row, args: &[Arg]) -> Result<(), Error> {
    if !func::any() {
        return Ok(());
    }
    let tensors: Vec<&Tensor> =
        args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t) } else { None }).collect();
    match tensors.split_first() {
        Some((target, others)) => check_write(target, others, || written_name(row, args)),
        None => Ok(()),
    }
}

/// [`check_write`] for the operands of a pointwise row.
#[inline]
pub fn check_operands(op: &'static Pointwise, operands: &[Operand]) -> Result<(), Error> {
    if !func::any() {
        return Ok(());
    }
    let arg = |o: &Operand| match o {
        Operand::Tensor(t) => Arg::Tensor((*t).clone()),
        Operand::Scalar(s) => Arg::from(*s),
    };
    check_arguments(&op.row, &operands.iter().map(arg).collect::<Vec<_>>())
}

/// Returns ATen's name for an in-place operator with a tensor or number operand.
pub fn write_name(row: &Row, tensor: bool) -> String {
    let [with_tensor, with_number] = row.by_kind.unwrap_or(["Tensor", "Scalar"]);
    let overload = if tensor { with_tensor } else { with_number };
    format!("aten::{}_.{overload}", row.name.trim_end_matches('_'))
}

/// Returns ATen's name for an in-place operator, with the overload that takes these operands.
fn written_name(row: &Row, operands: &[Arg]) -> String {
    let name = row.name.strip_suffix('_').unwrap_or(row.name);
    // Operands that may be numbers determine the overload.
    let either = || row.params.iter().zip(operands).skip(1).filter(|(p, _)| p.kind == Kind::Operand);
    let tensor = either().any(|(_, arg)| matches!(arg, Arg::Tensor(_)));
    let overload = match row.by_kind {
        Some([with_tensor, with_number]) => {
            if tensor {
                with_tensor
            } else {
                with_number
            }
        }
        None if !row.aten.is_empty() => row.aten,
        None if operands.len() == 2 && tensor => "Tensor",
        None if operands.len() == 2 && either().any(|(_, arg)| arg.number().is_some()) => "Scalar",
        None => "",
    };
    let dot = if overload.is_empty() { "" } else { "." };
    format!("aten::{name}_{dot}{overload}")
}
