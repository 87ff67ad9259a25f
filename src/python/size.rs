//! `torch.Size`: a tuple whose slices are sizes again. Shapes are read often, so the latest objects are
//! cached, and the base class of `Size` has a native subscript.

use crate::base::lock;
use crate::python::objects::numbers;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::ffi::c_void;
use std::sync::Mutex;

/// `torch.Size`, and `tuple.__new__`, which skips the check of the items in `Size.__new__`.
static CLASS: PyOnceLock<(Py<PyType>, Py<PyAny>)> = PyOnceLock::new();

/// The cache holds this many shapes, of at most `DIMS` dimensions.
const CACHE_SIZE: usize = 16;
const DIMS: usize = 4;

/// A cached shape, its number of dimensions, and its object.
type CacheEntry = Option<([usize; DIMS], usize, Py<PyAny>)>;
static CACHE: Mutex<[CacheEntry; CACHE_SIZE]> = Mutex::new([const { None }; CACHE_SIZE]);

pub fn register(py: Python<'_>, class: Bound<'_, PyType>) -> PyResult<()> {
    let make = py.get_type::<PyTuple>().getattr("__new__")?;
    let _ = CLASS.set(py, (class.unbind(), make.unbind()));
    Ok(())
}

/// True for a `torch.Size`.
pub fn is_size(object: &Bound<'_, PyAny>) -> bool {
    CLASS.get(object.py()).is_some_and(|(class, _)| object.get_type().is(class))
}

/// Makes a `torch.Size` from a tuple that holds only valid sizes.
fn from_tuple<'py>(tuple: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = tuple.py();
    match CLASS.get(py) {
        None => Ok(tuple.into_any()),
        Some((class, make)) => make.bind(py).call1((class, tuple)),
    }
}

/// Returns the `torch.Size` of these dimensions, from the cache if possible.
pub fn size_object<'py>(py: Python<'py>, dims: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let mut key = [0; DIMS];
    let Some(sizes) = key.get_mut(..dims.len()) else { return from_tuple(numbers(py, dims)?) };
    sizes.copy_from_slice(dims);
    let place = key.iter().fold(dims.len(), |hash, &n| hash.wrapping_mul(31).wrapping_add(n)) % CACHE_SIZE;
    {
        let cache = lock(&CACHE);
        if let Some((kept, n, size)) = &cache[place]
            && (kept, *n) == (&key, dims.len())
        {
            return Ok(size.bind(py).clone());
        }
    }
    let size = from_tuple(numbers(py, dims)?)?;
    let newest = Some((key, dims.len(), size.clone().unbind()));
    // The replaced object is dropped after the lock is released.
    let _last = std::mem::replace(&mut lock(&CACHE)[place], newest);
    Ok(size)
}

/// `sizes[index]`: an int, or a size for a slice.
unsafe extern "C" fn item(sizes: *mut ffi::PyObject, index: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this with two objects, the first of them a tuple.
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

/// Creates the base class of `torch.Size`.
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
    // SAFETY: the specification is complete, and Python copies it.
    let made = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpecWithBases(&raw mut spec, bases.as_ptr()))?
    };
    made.cast_into::<PyType>().map_err(|_| PyTypeError::new_err("PyType_FromSpecWithBases returned no type"))
}
