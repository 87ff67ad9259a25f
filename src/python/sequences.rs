//! Reading of sequences from Python, which may claim any length: elements are taken one by one into memory
//! that may run out, and Ctrl-C interrupts.

use crate::base::try_alloc;
use crate::python::numbers::int_from;
use crate::python::types::type_name;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Number of elements between two checks for Ctrl-C.
const PATIENCE: usize = 1 << 14;

/// Checks for Ctrl-C now and then; `count` elements were read so far.
#[inline]
pub fn poll_signals(py: Python<'_>, count: usize) -> PyResult<()> {
    if count % PATIENCE == PATIENCE - 1 { py.check_signals() } else { Ok(()) }
}

/// Collects all elements of an iterable.
pub fn collect<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut all = Vec::new();
    for item in object.try_iter()? {
        try_alloc::push(&mut all, item?)?;
        poll_signals(object.py(), all.len())?;
    }
    Ok(all)
}

/// Applies `read` to each element of a tuple or list. Returns None for any other object.
pub fn read_items<'py, T>(
    object: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<Vec<T>>> {
    let items = match (object.cast::<PyTuple>(), object.cast::<PyList>()) {
        (Ok(tuple), _) => tuple.try_iter()?,
        (_, Ok(list)) => list.try_iter()?,
        _ => return Ok(None),
    };
    let mut all = Vec::new();
    for item in items {
        try_alloc::push(&mut all, read(&item?)?)?;
    }
    Ok(Some(all))
}

/// A function argument that is a tuple or list.
pub struct ListArg<T>(pub Vec<T>);

impl<'a, 'py, T> FromPyObject<'a, 'py> for ListArg<T>
where
    T: for<'b> FromPyObject<'b, 'py>,
{
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<ListArg<T>> {
        let read = |item: &Bound<'py, PyAny>| item.extract::<T>().map_err(Into::into);
        match read_items(&object, read)? {
            Some(all) => Ok(ListArg(all)),
            None => Err(PyTypeError::new_err(format!("must be a tuple or list, not {}", type_name(&object)))),
        }
    }
}

/// Reads a tuple or list of ints, the argument `name` of `function`.
pub fn ints(function: &str, name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let wrong = |what: String| {
        PyTypeError::new_err(format!("{function}(): argument '{name}' must be tuple of ints, {what}"))
    };
    let read = |item: &Bound<'_, PyAny>| {
        int_from(item).ok_or_else(|| wrong(format!("but found element of type {}", type_name(item))))
    };
    read_items(object, read)?.ok_or_else(|| wrong(format!("not {}", type_name(object))))
}
