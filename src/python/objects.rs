//! Fallible constructors of Python numbers, strings, tuples and lists: PyO3's own panic when memory is
//! missing.

use crate::base::{Scalar, try_alloc};
use crate::python::sequences::poll_signals;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyList, PyString, PyTuple};

/// A return value whose conversion to a Python object may fail.
pub struct ToObject<T>(pub T);

macro_rules! impl_to_object {
    ($($ty:ty, |$value:ident| $make:expr;)*) => { $(
        impl<'py> IntoPyObject<'py> for ToObject<$ty> {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;
            fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let $value = self.0;
                // SAFETY: the call returns a new object, or null with an exception set.
                unsafe { Bound::from_owned_ptr_or_err(py, $make) }
            }
        }
    )* };
}
impl_to_object! {
    i64, |n| ffi::PyLong_FromLongLong(n);
    u32, |n| ffi::PyLong_FromUnsignedLongLong(n.into());
    u64, |n| ffi::PyLong_FromUnsignedLongLong(n);
    usize, |n| ffi::PyLong_FromSize_t(n);
    f64, |x| ffi::PyFloat_FromDouble(x);
    &str, |text| ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize);
    String, |text| ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize);
}

/// Converts a number or string to a Python object.
pub fn to_object<'py, T>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>>
where
    ToObject<T>: IntoPyObject<'py, Output = Bound<'py, PyAny>, Error = PyErr>,
{
    ToObject(value).into_pyobject(py)
}

/// Returns a number as Python has it.
pub fn number_object(py: Python<'_>, number: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match number {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
        Scalar::Int(i) => to_object(py, i)?,
        Scalar::Unsigned(u) => to_object(py, u)?,
        Scalar::Float(f) => to_object(py, f)?,
        Scalar::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_any(),
    })
}

/// Returns the text of a Python string; raises if it is too long to be repeated in messages.
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

/// The maximal length of a name in a message: class names come from the user, and may be arbitrarily long.
const LONGEST_NAME: usize = 1 << 12;

/// Returns an object's `__name__`, truncated for messages.
pub fn name_of(object: &Bound<'_, PyAny>, otherwise: &str) -> String {
    let name = object.getattr(intern!(object.py(), "__name__"));
    name.and_then(|name| truncate(name.cast::<PyString>()?)).unwrap_or_else(|_| otherwise.into())
}

/// Truncates a string for messages.
pub fn truncate(name: &Bound<'_, PyString>) -> PyResult<String> {
    let name = name.to_str()?;
    Ok(name[..name.floor_char_boundary(LONGEST_NAME)].to_owned())
}

pub trait ClassName {
    /// Returns the name of the object's class, truncated for messages.
    fn class_name(&self) -> PyResult<String>;
}

impl<T> ClassName for Bound<'_, T> {
    fn class_name(&self) -> PyResult<String> {
        truncate(&self.as_any().get_type().name()?)
    }
}

pub fn list<'py, T>(
    py: Python<'py>,
    items: impl IntoIterator<Item = Bound<'py, T>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyList>> {
    let items = items.into_iter();
    to_list(py, items.len(), items.map(Ok))
}

pub fn tuple<'py, T>(
    py: Python<'py>,
    items: impl IntoIterator<Item = Bound<'py, T>, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyTuple>> {
    let items = items.into_iter();
    to_tuple(py, items.len(), items.map(Ok))
}

/// Makes a list of `count` objects; stops at the first error.
pub fn to_list<'py, T>(
    py: Python<'py>,
    count: usize,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: the call returns a new list or an exception; its slots are null until they are set, which
    // Python's own code expects.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(count as isize))?.cast_into_unchecked();
        for (i, item) in items.into_iter().enumerate().take(count) {
            poll_signals(py, i)?;
            ffi::PyList_SetItem(list.as_ptr(), i as isize, item?.into_ptr());
        }
        Ok(list)
    }
}

/// Makes a tuple of `count` objects; stops at the first error.
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

pub fn numbers<'py, T: Copy>(py: Python<'py>, all: &[T]) -> PyResult<Bound<'py, PyTuple>>
where
    ToObject<T>: IntoPyObject<'py, Output = Bound<'py, PyAny>, Error = PyErr>,
{
    to_tuple(py, all.len(), all.iter().map(|&n| to_object(py, n)))
}
