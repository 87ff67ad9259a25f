//! `torch.Size`: a tuple whose slices are sizes again. Shapes are read often, so the latest ones are
//! kept, and the type that the class of the Python side is built on gives items without a call of Python.

use crate::base::lock;
use crate::python::objects::numbers;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::ffi::c_void;
use std::sync::Mutex;

/// `torch.Size`, and `tuple.__new__`, which goes past the class's own check of its items.
static CLASS: PyOnceLock<(Py<PyType>, Py<PyAny>)> = PyOnceLock::new();

/// What is kept: so many shapes, of at most so many dimensions.
const KEPT: usize = 16;
const DIMS: usize = 4;

/// A shape, with its length, and its object.
type Lately = Option<([usize; DIMS], usize, Py<PyAny>)>;
static LATELY: Mutex<[Lately; KEPT]> = Mutex::new([const { None }; KEPT]);

pub fn register(py: Python<'_>, class: Bound<'_, PyType>) -> PyResult<()> {
    let make = py.get_type::<PyTuple>().getattr("__new__")?;
    let _ = CLASS.set(py, (class.unbind(), make.unbind()));
    Ok(())
}

/// A `torch.Size` of what are sizes already.
fn from_tuple<'py>(tuple: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = tuple.py();
    match CLASS.get(py) {
        None => Ok(tuple.into_any()),
        Some((class, make)) => make.bind(py).call1((class, tuple)),
    }
}

/// A `torch.Size`.
pub fn size_object<'py>(py: Python<'py>, dims: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let mut key = [0; DIMS];
    let Some(sizes) = key.get_mut(..dims.len()) else { return from_tuple(numbers(py, dims)?) };
    sizes.copy_from_slice(dims);
    let place = key.iter().fold(dims.len(), |hash, &n| hash.wrapping_mul(31).wrapping_add(n)) % KEPT;
    {
        let lately = lock(&LATELY);
        if let Some((kept, n, size)) = &lately[place]
            && (kept, *n) == (&key, dims.len())
        {
            return Ok(size.bind(py).clone());
        }
    }
    let size = from_tuple(numbers(py, dims)?)?;
    let newest = Some((key, dims.len(), size.clone().unbind()));
    // The old one is dropped after the lock.
    let _last = std::mem::replace(&mut lock(&LATELY)[place], newest);
    Ok(size)
}

/// `sizes[index]`: what a tuple gives, and for a slice a size.
unsafe extern "C" fn item(sizes: *mut ffi::PyObject, index: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this attached, with two objects of which the first is a tuple.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyTuple_Type, ffi::Py_mp_subscript);
        let of_tuple: ffi::binaryfunc = std::mem::transmute::<*mut c_void, ffi::binaryfunc>(slot);
        let item = of_tuple(sizes, index);
        if item.is_null() || ffi::PySlice_Check(index) == 0 {
            return item;
        }
        let py = Python::assume_attached();
        let part = Bound::from_owned_ptr(py, item).cast_into::<PyTuple>().map_err(PyErr::from);
        match part.and_then(from_tuple) {
            Ok(size) => size.into_ptr(),
            Err(error) => {
                error.restore(py);
                std::ptr::null_mut()
            }
        }
    }
}

/// The type below `torch.Size`.
pub fn base(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let mut slots = [
        ffi::PyType_Slot { slot: ffi::Py_mp_subscript, pfunc: item as *mut c_void },
        ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() },
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"gradiron._core.Sizes".as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as u32,
        slots: slots.as_mut_ptr(),
    };
    let bases = PyTuple::new(py, [py.get_type::<PyTuple>()])?;
    // SAFETY: the specification is whole, and copied.
    let made = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpecWithBases(&raw mut spec, bases.as_ptr()))?
    };
    made.cast_into::<PyType>().map_err(|_| PyTypeError::new_err("a type's type is no type"))
}
