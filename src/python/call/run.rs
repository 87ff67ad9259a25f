//! Runs operators, and converts their results to Python objects.

use crate::base::{Error, Fault, Result as CoreResult, try_alloc};
use crate::operator::{Arg, Out, Row};
use crate::python::objects::{to_list, to_object, to_tuple};
use crate::python::types::NAMED;
use crate::python::wrapper::class::wrap;
use crate::tensor::{records, with_snapshot};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

/// An operator on this many elements or more lets other Python threads run.
pub const LONG: usize = 16_384;

/// Converts a result to a Python object.
pub fn result<'py>(py: Python<'py>, out: Out) -> PyResult<Bound<'py, PyAny>> {
    Ok(match out {
        Out::Tensor(t) => wrap(py, t)?,
        Out::Tuple(name, fields, tensors) => {
            let items = to_tuple(py, tensors.len(), tensors.into_iter().map(|t| wrap(py, t)))?;
            match NAMED.get(py) {
                Some(make) if !fields.is_empty() => {
                    make.bind(py).call1((name, PyTuple::new(py, fields)?, items))?
                }
                _ => items.into_any(),
            }
        }
        Out::List(tensors) => {
            to_list(py, tensors.len(), tensors.into_iter().map(|t| wrap(py, t)))?.into_any()
        }
        Out::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
        Out::Int(i) => to_object(py, i)?,
        Out::None => py.None().into_bound(py),
    })
}

/// Returns true if a call is long enough to let other threads run; refuses lists of more tensors than there
/// is memory for.
fn is_long(args: &[Arg]) -> CoreResult<bool> {
    let mut long = false;
    for arg in args {
        match arg {
            Arg::Tensor(t) => long |= t.numel() >= LONG,
            Arg::Tensors(list) => {
                try_alloc::check_list(list.len())?;
                long = long || list.iter().any(|t| t.numel() >= 4_096);
            }
            Arg::MaybeTensors(list) => try_alloc::check_list(list.len())?,
            _ => {}
        }
    }
    Ok(long)
}

/// Runs an operator. A long one lets other threads run, which may meanwhile replace the memory of its
/// operands.
#[inline(always)]
pub fn running<T: Send>(py: Python<'_>, long: bool, run: impl FnOnce() -> T + Send) -> T {
    if long { py.detach(|| with_snapshot(run)) } else { attached(run) }
}

/// Runs code that needs the interpreter. In free-threaded Python, other threads run meanwhile.
#[inline]
pub fn attached<T>(run: impl FnOnce() -> T) -> T {
    if cfg!(Py_GIL_DISABLED) { with_snapshot(run) } else { run() }
}

/// Runs a row, detached from the interpreter if it is long.
pub fn run<T: Send>(
    py: Python<'_>,
    row: &Row,
    args: &[Arg],
    body: impl Fn(&[Arg]) -> CoreResult<T> + Sync,
) -> PyResult<T> {
    run_or(py, row, args, &stale_or, body)
}

/// Like [`run`]; `blame` chooses the error of a failed call.
pub fn run_or<T: Send>(
    py: Python<'_>,
    row: &Row,
    args: &[Arg],
    blame: &dyn Fn(Error, &Row, &[Arg]) -> Error,
    body: impl Fn(&[Arg]) -> CoreResult<T> + Sync,
) -> PyResult<T> {
    let long = is_long(args)?;
    crate::operator::call::devices::check(row, args).map_err(|error| blame(error, row, args))?;
    running(py, long, || body(args)).map_err(|error| blame(error.of_operator(row.name), row, args).into())
}

/// If a call fails, reports a stale view (whose base was written untracked) before any other error.
#[cold]
pub fn stale_or(error: Error, row: &Row, args: &[Arg]) -> Error {
    if row.composite || row.out.unrecorded {
        return error;
    }
    let tensors = args.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t),
        Arg::Tensors(list) => list.as_slice(),
        _ => &[],
    });
    match error.fault() {
        Fault::Type(_) | Fault::Unordered(_) => error,
        _ => records(tensors).err().unwrap_or(error),
    }
}
