//! Python's numbers, texts, tuples and lists, made in ways that can fail: where memory is gone, PyO3's own panic.

use crate::base::try_alloc;
use crate::python::sequences::look_up;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// A result of ours, whose object may fail to be made.
pub struct Made<T>(pub T);

macro_rules! made {
    ($($ty:ty, |$value:ident| $make:expr;)*) => { $(
        impl<'py> IntoPyObject<'py> for Made<$ty> {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;
            fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let $value = self.0;
                // SAFETY: a new object, or null and an exception.
                unsafe { Bound::from_owned_ptr_or_err(py, $make) }
            }
        }
    )* };
}
made! {
    i64, |n| ffi::PyLong_FromLongLong(n);
    u32, |n| ffi::PyLong_FromUnsignedLongLong(n.into());
    u64, |n| ffi::PyLong_FromUnsignedLongLong(n);
    usize, |n| ffi::PyLong_FromSize_t(n);
    f64, |x| ffi::PyFloat_FromDouble(x);
    &str, |text| ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize);
    String, |text| ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize);
}

/// An object, of a number or a text.
pub fn made<'py, T>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>>
where
    Made<T>: IntoPyObject<'py, Output = Bound<'py, PyAny>, Error = PyErr>,
{
    Made(value).into_pyobject(py)
}

/// The text of a Python string, unless it is too long to be repeated in messages.
pub fn text_of(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Ok(text) = object.cast::<PyString>() else { return Ok(None) };
    match text.to_str() {
        Ok(text) => {
            try_alloc::check_text(text.len())?;
            Ok(Some(text.to_owned()))
        }
        Err(error) if error.is_instance_of::<PyMemoryError>(object.py()) => Err(error),
        Err(_) => Ok(None),
    }
}

/// How much of a name goes into messages: names of classes come from outside, and may be as long as memory.
const LONGEST_NAME: usize = 1 << 12;

/// An object's `__name__`, as far as messages show it.
pub fn name_of(object: &Bound<'_, PyAny>, otherwise: &str) -> String {
    let name = object.getattr(intern!(object.py(), "__name__"));
    name.and_then(|name| start_of(name.cast::<PyString>()?)).unwrap_or_else(|_| otherwise.into())
}

/// A text, as far as messages show it.
pub fn start_of(name: &Bound<'_, PyString>) -> PyResult<String> {
    let name = name.to_str()?;
    Ok(name[..name.floor_char_boundary(LONGEST_NAME)].to_owned())
}

pub trait ClassName {
    /// The name of the object's class, as far as messages show it.
    fn class_name(&self) -> PyResult<String>;
}

impl<T> ClassName for Bound<'_, T> {
    fn class_name(&self) -> PyResult<String> {
        start_of(&self.as_any().get_type().name()?)
    }
}

/// A list of these objects.
pub fn list<'py, T>(
    py: Python<'py>,
    items: impl IntoIterator<Item = Bound<'py, T>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyList>> {
    let items = items.into_iter();
    to_list(py, items.len(), items.map(Ok))
}

/// A tuple of these objects.
pub fn tuple<'py, T>(
    py: Python<'py>,
    items: impl IntoIterator<Item = Bound<'py, T>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyTuple>> {
    let items = items.into_iter();
    to_tuple(py, items.len(), items.map(Ok))
}

/// A list of so many objects, up to the first error.
pub fn to_list<'py, T>(
    py: Python<'py>,
    count: usize,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: a new list or an exception; its places are empty until they are filled, which Python's own code expects.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(count as isize))?.cast_into_unchecked();
        for (i, item) in items.into_iter().enumerate().take(count) {
            look_up(py, i)?;
            ffi::PyList_SetItem(list.as_ptr(), i as isize, item?.into_ptr());
        }
        Ok(list)
    }
}

/// A tuple of so many objects, up to the first error.
pub fn to_tuple<'py, T>(
    py: Python<'py>,
    count: usize,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: as for a list.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(count as isize))?.cast_into_unchecked();
        for (i, item) in items.into_iter().enumerate().take(count) {
            ffi::PyTuple_SetItem(tuple.as_ptr(), i as isize, item?.into_ptr());
        }
        Ok(tuple)
    }
}

/// A tuple of numbers.
pub fn numbers<'py, T: Copy>(py: Python<'py>, all: &[T]) -> PyResult<Bound<'py, PyTuple>>
where
    Made<T>: IntoPyObject<'py, Output = Bound<'py, PyAny>, Error = PyErr>,
{
    to_tuple(py, all.len(), all.iter().map(|&n| made(py, n)))
}
