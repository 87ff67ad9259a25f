//! Sequences from Python, which may claim any length: what they give is taken as it comes, in memory that may be refused, and
//! Ctrl-C ends it.

use crate::base::try_alloc;
use crate::python::numbers::int_from;
use crate::python::types::type_name;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// After this many elements, a check whether Ctrl-C was pressed.
const PATIENCE: usize = 1 << 14;

/// Lets Ctrl-C end what has taken `count` elements so far.
#[inline]
pub fn look_up(py: Python<'_>, count: usize) -> PyResult<()> {
    if count % PATIENCE == PATIENCE - 1 { py.check_signals() } else { Ok(()) }
}

/// Everything that an iterable gives.
pub fn collected<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut all = Vec::new();
    for item in object.try_iter()? {
        try_alloc::push(&mut all, item?)?;
        look_up(object.py(), all.len())?;
    }
    Ok(all)
}

/// `read` of each element of a tuple or list; None for any other object, or where `read` gives None.
pub fn each<'py, T>(
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

/// The elements of a tuple or list, in a function's signature.
pub struct Listed<T>(pub Vec<T>);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Listed<T>
where
    T: for<'b> FromPyObject<'b, 'py>,
{
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Listed<T>> {
        let read = |item: &Bound<'py, PyAny>| item.extract::<T>().map_err(Into::into);
        match each(&object, read)? {
            Some(all) => Ok(Listed(all)),
            None => Err(PyTypeError::new_err(format!("must be a tuple or list, not {}", type_name(&object)))),
        }
    }
}

/// Whole numbers in a tuple or list, for a `function` with a parameter `name`.
pub fn ints(function: &str, name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let wrong = |what: String| {
        PyTypeError::new_err(format!("{function}(): argument '{name}' must be tuple of ints, {what}"))
    };
    let read = |item: &Bound<'_, PyAny>| {
        int_from(item).ok_or_else(|| wrong(format!("but found element of type {}", type_name(item))))
    };
    each(object, read)?.ok_or_else(|| wrong(format!("not {}", type_name(object))))
}
