//! The attributes that a user sets on a tensor's object (`x.grad.note = 1`), and the class of that object,
//! last as long as the tensor. If the object is freed earlier, the next one is made with both.

use crate::python::wrapper::class::PyTensor;
use crate::python::wrapper::collector;
use crate::python::wrapper::identity;
use crate::python::wrapper::identity::VALUE_OFFSET;
use crate::tensor::HostObject;
use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::any::Any;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The offset of `__dict__` in objects of the class; 0 until `prepare` was called.
static DICTIONARY: AtomicUsize = AtomicUsize::new(0);

struct HostState {
    class: Py<PyType>,
    attributes: Option<Py<PyAny>>,
}

impl HostObject for HostState {
    fn host(&self) -> *mut c_void {
        self.attributes.as_ref().map_or(null_mut(), |all| all.as_ptr().cast())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Determines the offset of `__dict__`; called once the class is ready.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    let offset: usize = PyTensor::type_object(py).getattr("__dictoffset__")?.extract()?;
    DICTIONARY.store(offset, Ordering::Relaxed);
    Ok(())
}

/// Returns the slot of an object's `__dict__`, which is null until it is used.
///
/// # Safety
/// `object` is an instance of the Tensor class, and `prepare` was called.
unsafe fn dictionary(object: *mut ffi::PyObject) -> *mut *mut ffi::PyObject {
    // SAFETY: the offset is the class's own `__dictoffset__`.
    unsafe { object.cast::<u8>().add(DICTIONARY.load(Ordering::Relaxed)).cast() }
}

/// True if attributes were set on the object of a tensor.
pub fn has_attributes(tensor: &Bound<'_, PyTensor>) -> bool {
    if DICTIONARY.load(Ordering::Relaxed) == 0 {
        return true;
    }
    // SAFETY: an instance of the class; `prepare` was called, so the slot is null or holds a dict.
    unsafe {
        let attributes = *dictionary(tensor.as_ptr());
        !attributes.is_null() && ffi::PyDict_Size(attributes) != 0
    }
}

/// Moves the state of a dying object to its tensor; returns true if there was any.
#[cold]
pub fn leave(dying: &PyTensor) -> bool {
    if VALUE_OFFSET.load(Ordering::Relaxed) == 0 || DICTIONARY.load(Ordering::Relaxed) == 0 {
        return false;
    }
    // SAFETY: the value lies at this offset in its object, which Python is about to free in this thread.
    let state = unsafe {
        let object = dying.object();
        let py = Python::assume_attached();
        let class = ffi::Py_TYPE(object);
        let slot = dictionary(object);
        let bare = (*slot).is_null() && class == PyTensor::type_object_raw(py);
        // Another thread may have registered a newer object.
        if bare || !identity::stands(dying.tensor.host_object(), object.cast()) {
            return false;
        }
        let attributes = Bound::from_borrowed_ptr_or_opt(py, *slot);
        let class = Bound::from_borrowed_ptr(py, class.cast()).cast_into_unchecked::<PyType>();
        HostState { class: class.unbind(), attributes: attributes.map(Bound::unbind) }
    };
    let follows = state.attributes.is_none() || Python::attach(collector::follow).is_ok();
    if follows {
        dying.tensor.keep_host_state(Box::new(state));
    }
    follows
}

/// Creates an object with the state that the tensor's last object left; None if it left none. The tensor
/// keeps the state.
#[cold]
pub fn revive<'py>(
    py: Python<'py>,
    tensor: &crate::tensor::Tensor,
) -> PyResult<Option<Bound<'py, PyTensor>>> {
    let read = |object: &dyn HostObject| {
        let state = object.as_any().downcast_ref::<HostState>()?;
        Some((state.class.clone_ref(py), state.attributes.as_ref().map(|all| all.clone_ref(py))))
    };
    let Some((class, attributes)) = tensor.host_state(read).flatten() else { return Ok(None) };
    // SAFETY: the class derives from Tensor, so the value lies at the same offset; the allocator zeroes
    // memory.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let value = PyTensor { tensor: tensor.clone() };
        object.cast::<u8>().add(VALUE_OFFSET.load(Ordering::Relaxed)).cast::<PyTensor>().write(value);
        *dictionary(object) = attributes.map_or(null_mut(), Py::into_ptr);
        Ok(Some(Bound::from_owned_ptr(py, object).cast_into_unchecked()))
    }
}
