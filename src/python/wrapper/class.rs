//! The class `Tensor`. Each tensor has at most one Python object at a time.

use crate::python::wrapper::host_state;
use crate::python::wrapper::identity::{self, Gone, VALUE_OFFSET};
use crate::storage::reserve;
use crate::tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTypeInfo, ffi};
use std::sync::atomic::Ordering;

/// A multi-dimensional array of numbers of one data type, whose operations autograd can record.
///
/// `torch.tensor` makes one of Python's numbers.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
///     >>> x.shape, x.dtype, x.device
///     (torch.Size([2, 2]), torch.float32, device(type='cpu'))
#[pyclass(name = "Tensor", module = "gradiron", frozen, subclass, dict, weakref)]
pub struct PyTensor {
    pub tensor: Tensor,
}

impl PyTensor {
    /// Returns the Python object that contains this value.
    pub fn object(&self) -> *mut ffi::PyObject {
        std::ptr::from_ref(self)
            .cast_mut()
            .cast::<u8>()
            .wrapping_sub(VALUE_OFFSET.load(Ordering::Relaxed))
            .cast()
    }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        let left = self.tensor.handles() > 1 && host_state::leave(self);
        identity::forget(self.tensor.host_object(), self.object().cast(), left);
    }
}

/// Passes an existing tensor to the constructor of a subclass, which wraps it without a copy.
#[pyclass(frozen, module = "gradiron")]
pub struct AsIs(pub Tensor);

/// Returns the Python object of a tensor, and creates it if there is none.
#[inline]
pub fn wrap(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    match identity::find(py, tensor.host_object()) {
        Ok(object) => Ok(object),
        Err(Gone::Entirely) => Ok(register(allocate(py, tensor)?)),
        Err(gone) => renew(py, tensor, gone),
    }
}

/// The number of retries of a thread while another thread releases or revives the object. With the interpreter's
/// lock no other thread can. (After the last retry, the releasing thread may be this one.)
const PATIENCE: usize = if cfg!(Py_GIL_DISABLED) { 10_000 } else { 1 };

/// Creates the object of a tensor whose previous object left its state, or is about to.
#[cold]
fn renew(py: Python<'_>, tensor: Tensor, mut gone: Gone) -> PyResult<Bound<'_, PyAny>> {
    for _ in 0..PATIENCE {
        if gone == Gone::Left
            && let Some(revived) = host_state::revive(py, &tensor)?
        {
            let own = revived.as_ptr();
            let object = register(revived);
            if object.as_ptr() == own {
                tensor.drop_host_state();
            }
            return Ok(object);
        }
        #[cfg(Py_GIL_DISABLED)]
        py.detach(std::thread::yield_now);
        gone = match identity::find(py, tensor.host_object()) {
            Ok(object) => return Ok(object),
            Err(Gone::Entirely) => break,
            Err(gone) => gone,
        };
    }
    Ok(register(allocate(py, tensor)?))
}

/// The error for a tensor used as an index that is not a single integer.
pub fn no_index() -> PyErr {
    PyTypeError::new_err("only integer tensors of a single element can be converted to an index")
}

/// Allocates a new object. PyO3 would go through `object.__new__`, which in Python 3.11 and 3.12 creates
/// the `__dict__` at once: half of the cost of a small operator. Here the slots stay null until they are
/// used.
fn allocate(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    reserve::check()?;
    if tensor.is_sparse() {
        return allocate_sparse(py, tensor);
    }
    let place = VALUE_OFFSET.load(Ordering::Relaxed);
    if place == 0 {
        let object = Bound::new(py, PyTensor { tensor })?;
        VALUE_OFFSET
            .store(std::ptr::from_ref(object.get()) as usize - object.as_ptr() as usize, Ordering::Relaxed);
        return Ok(object);
    }
    let class = PyTensor::type_object_raw(py);
    // SAFETY: the class is a heap type with the generic allocator, which zeroes memory: no dictionary, no
    // weak references. The value is written before anybody sees the object; the class has no borrow flag
    // (frozen) and no thread check (Send).
    unsafe {
        let object = ffi::PyType_GenericAlloc(class, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        object.cast::<u8>().add(place).cast::<PyTensor>().write(PyTensor { tensor });
        Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

/// Allocates the object of a sparse tensor. Its class is Python's.
#[cold]
fn allocate_sparse(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || py.import("gradiron.sparse._tensor")?.getattr("coo_class")?.call0().map(Bound::unbind);
    let class = CLASS.get_or_try_init(py, find)?;
    let made = PyTensor::type_object(py).call_method1(intern!(py, "__new__"), (class, AsIs(tensor)))?;
    Ok(made.cast_into()?)
}

/// Registers an object as that of its tensor. If another thread was faster, returns that thread's object.
pub fn register(object: Bound<'_, PyTensor>) -> Bound<'_, PyAny> {
    identity::register(object, |object| object.get().tensor.host_object())
}
