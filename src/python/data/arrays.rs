//! NumPy's arrays to tensors and back over the same memory, by its array interface (NumPy itself is never imported).

use crate::base::views::checked_numel;
use crate::base::{ConjNeg, DType, Dims, Layout};
use crate::ops::complex::{RESOLVE_CONJ, RESOLVE_NEG};
use crate::python::data::nested_lists::is_plain;
use crate::python::objects::ClassName;
use crate::python::sequences::Listed;
use crate::python::transforms::vmap;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::storage::{Exported, Storage};
use crate::tensor::{Body, Tensor};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use smallvec::SmallVec;

const KINDS: [(&str, DType); 11] = [
    ("c8", DType::C64),
    ("c16", DType::C128),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("f2", DType::F16),
    ("i8", DType::I64),
    ("i4", DType::I32),
    ("i2", DType::I16),
    ("i1", DType::I8),
    ("u1", DType::U8),
    ("b1", DType::Bool),
];

const READ_ONLY: &std::ffi::CStr = c"The given NumPy array is not writable, and gradiron does not support non-writable \
    tensors. This means writing to this tensor will result in undefined behavior. You may want to copy the array to protect \
    its data or make it writable before converting it to a tensor.";

/// Keeps Python objects alive for a storage.
struct Owner(Option<[Py<PyAny>; 2]>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(objects) = self.0.take() {
            // After the interpreter is gone there is nobody to give them back to.
            match Python::try_attach(|_| ()) {
                Some(()) => drop(objects),
                None => std::mem::forget(objects),
            }
        }
    }
}

/// Whether it shows its memory as NumPy's arrays do. Their class is asked: the answer of an array is costly to make.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    const NAME: &str = "__array_interface__";
    Ok(!is_plain(object)
        && !object.is_instance_of::<PyTensor>()
        && (object.get_type().hasattr(NAME)? || object.hasattr(NAME)?))
}

/// What an array says of its memory; strides in bytes.
struct Shown<'py> {
    /// What the object said it with: a NumPy number shows a copy, which goes with this.
    told: Bound<'py, PyAny>,
    /// The kind's letter and the size in bytes, as in `f4`; None where the byte order is foreign.
    kind: Option<String>,
    shape: Dims,
    strides: Option<SmallVec<[isize; 6]>>,
    data: *mut u8,
    writable: bool,
}

/// The most dimensions of NumPy's arrays.
const MOST_DIMENSIONS: usize = 64;

fn sizes(shape: &[isize]) -> PyResult<Dims> {
    let sizes = shape.iter().map(|&n| usize::try_from(n)).collect::<Result<Dims, _>>();
    sizes.map_err(|_| PyValueError::new_err("an array's sizes are not negative"))
}

impl<'py> Shown<'py> {
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Shown<'py>> {
        match object.getattr("__array_struct__") {
            Ok(capsule) => Shown::by_struct(capsule.cast_into().map_err(PyErr::from)?),
            Err(_) => Shown::by_dict(object),
        }
    }

    fn by_struct(capsule: Bound<'py, PyCapsule>) -> PyResult<Shown<'py>> {
        let at = capsule.pointer_checked(None)?.cast::<ArrayStruct>();
        // SAFETY: the protocol says what an unnamed `__array_struct__` points to while the capsule lives.
        unsafe {
            let array = at.as_ref();
            let n = usize::try_from(array.dimensions).ok().filter(|&n| n <= MOST_DIMENSIONS);
            let numbers = |at: *const isize| match n {
                Some(0) => Some(&[][..]),
                Some(n) if !at.is_null() => Some(std::slice::from_raw_parts(at, n)),
                _ => None,
            };
            let (Some(shape), Some(strides), 2) = (numbers(array.shape), numbers(array.strides), array.two)
            else {
                return Err(PyValueError::new_err("the array's description is damaged"));
            };
            Ok(Shown {
                kind: (array.flags & NATIVE != 0)
                    .then(|| format!("{}{}", char::from(array.kind), array.size)),
                shape: sizes(shape)?,
                strides: Some(strides.into()),
                data: array.data,
                writable: array.flags & WRITABLE != 0,
                told: capsule.into_any(),
            })
        }
    }

    fn by_dict(object: &Bound<'py, PyAny>) -> PyResult<Shown<'py>> {
        let interface = object.getattr("__array_interface__")?.cast_into::<PyDict>().map_err(PyErr::from)?;
        let get = |key: &str| -> PyResult<Bound<'_, PyAny>> {
            interface
                .get_item(key)?
                .ok_or_else(|| PyTypeError::new_err(format!("the array interface has no {key}")))
        };
        let code: String = get("typestr")?.extract()?;
        let (address, read_only): (usize, bool) = get("data")?.extract()?;
        let strides = interface.get_item("strides")?.filter(|s| !s.is_none());
        Ok(Shown {
            kind: code.get(1..).filter(|_| !code.starts_with('>')).map(str::to_owned),
            shape: sizes(&get("shape")?.extract::<Listed<isize>>()?.0)?,
            strides: strides.map(|s| s.extract::<Listed<isize>>()).transpose()?.map(|s| s.0.into()),
            data: address as *mut u8,
            writable: !read_only,
            told: interface.into_any(),
        })
    }

    fn dtype(&self, object: &Bound<'_, PyAny>) -> PyResult<DType> {
        let Some(kind) = &self.kind else {
            return Err(PyValueError::new_err(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders is \
                 currently not supported.",
            ));
        };
        if let Some(known) = KINDS.iter().find(|known| known.0 == kind) {
            return Ok(known.1);
        }
        let class = match kind.get(..1) {
            Some("U") => "str_".into(),
            Some("O") => "object_".into(),
            Some("S") => "bytes_".into(),
            _ => {
                object.getattr("dtype").and_then(|d| d.str()).map_or_else(|_| kind.clone(), |s| s.to_string())
            }
        };
        Err(PyTypeError::new_err(format!(
            "can't convert np.ndarray of type numpy.{class}. The only supported types are: float64, float32, float16, complex64, \
             complex128, int64, int32, int16, int8, uint8, and bool."
        )))
    }

    fn layout(&self, dtype: DType) -> PyResult<Layout> {
        checked_numel(&self.shape)?;
        let mut layout = Layout::contiguous(&self.shape);
        let Some(strides) = &self.strides else { return Ok(layout) };
        if strides.len() != self.shape.len() {
            return Err(PyValueError::new_err("the array's shape and strides have not the same length"));
        }
        layout.strides.clear();
        for (&b, &n) in strides.iter().zip(&self.shape) {
            if b < 0 && n > 1 {
                return Err(PyValueError::new_err(
                    "At least one stride in the given numpy array is negative, and tensors with negative strides are not \
                     currently supported. (You can probably work around this by making a copy of your array  with \
                     array.copy().) ",
                ));
            }
            if b % dtype.size() as isize != 0 {
                return Err(PyValueError::new_err(
                    "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate \
                     the memory.",
                ));
            }
            layout.strides.push((b.max(0) as usize) / dtype.size());
        }
        Ok(layout)
    }

    /// A tensor over the memory, which keeps the object and what it told.
    fn tensor(&self, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let dtype = self.dtype(object)?;
        let layout = self.layout(dtype)?;
        let Some(bytes) = layout.bytes(dtype).filter(|&bytes| bytes == 0 || !self.data.is_null()) else {
            return Err(PyValueError::new_err("the array's sizes and strides reach beyond any memory"));
        };
        let owner = Box::new(Owner(Some([object, &self.told].map(|kept| kept.clone().unbind()))));
        // SAFETY: the array owns that many bytes at this address, by its interface, and the owner keeps both.
        let storage = unsafe { Storage::borrowed(self.data, bytes, owner) };
        Ok(Tensor::new(Body::plain(storage, layout, dtype)))
    }
}

/// A tensor over an array's memory.
pub fn from_array(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Shown::of(object)?.tensor(object)
}

/// Return a tensor that shares the memory of a NumPy array.
///
/// Args:
///     array: the array.
///
/// Examples:
///     >>> import numpy
///     >>> torch.from_numpy(numpy.array([1.0, 2.0]))
///     tensor([1., 2.], dtype=torch.float64)
#[pyfunction]
pub fn from_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !is_array(array)? {
        return Err(PyTypeError::new_err(format!("expected np.ndarray (got {})", array.class_name()?)));
    }
    let py = array.py();
    let shown = Shown::of(array)?;
    let tensor = shown.tensor(array)?;
    if !shown.writable {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), READ_ONLY, 1)?;
    }
    wrap(py, tensor)
}

/// Shows NumPy a tensor's memory and keeps it: not the tensor, which may hold the array.
#[pyclass(frozen, module = "gradiron._core")]
pub struct Shared {
    body: Body,
    kind: &'static str,
}

const ALIGNED: i32 = 0x100;
const NATIVE: i32 = 0x200;
const WRITABLE: i32 = 0x400;

/// What NumPy's array interface for C tells of an array.
#[repr(C)]
struct ArrayStruct {
    two: i32,
    dimensions: i32,
    kind: u8,
    size: i32,
    flags: i32,
    shape: *const isize,
    strides: *const isize,
    data: *mut u8,
    description: *mut pyo3::ffi::PyObject,
}

/// One of ours, with what its pointers point to.
#[repr(C)]
struct OwnedArray(ArrayStruct, Vec<isize>);
// SAFETY: it owns its numbers, and who made it keeps the data.
unsafe impl Send for OwnedArray {}

/// What `numpy.asarray` makes an array over a CPU tensor's memory of.
#[pyfunction]
pub fn shared(tensor: &Bound<'_, PyTensor>) -> PyResult<Shared> {
    let t = &tensor.get().tensor;
    vmap::need_storage(t)?;
    let body = t.body();
    for (conj_neg, bit, row) in
        [(ConjNeg::CONJ, "conjugate", &RESOLVE_CONJ), (ConjNeg::NEG, "negative", &RESOLVE_NEG)]
    {
        if body.conj_neg.has(conj_neg) {
            return Err(PyRuntimeError::new_err(format!(
                "Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{}().numpy() instead.",
                row.name
            )));
        }
    }
    let Some(&(kind, _)) = KINDS.iter().find(|known| known.1 == body.dtype) else {
        return Err(PyTypeError::new_err("Got unsupported ScalarType BFloat16"));
    };
    if body.storage.host().is_none() {
        return Err(PyTypeError::new_err(format!(
            "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
            body.device()
        )));
    }
    body.storage.export(Exported::Fixed);
    Ok(Shared { body: body.clone(), kind })
}

#[pymethods]
impl Shared {
    #[getter]
    fn __array_struct__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let Body { storage, layout, dtype, .. } = &self.body;
        let size = dtype.size();
        let shape = layout.shape.iter().map(|&n| n as isize);
        let numbers: Vec<isize> = shape.chain(layout.strides.iter().map(|s| (s * size) as isize)).collect();
        let base = storage.host().unwrap_or(std::ptr::null_mut());
        let array = ArrayStruct {
            two: 2,
            dimensions: layout.ndim() as i32,
            kind: self.kind.as_bytes().first().copied().unwrap_or(0),
            size: size as i32,
            flags: ALIGNED | NATIVE | WRITABLE,
            shape: numbers.as_ptr(),
            strides: numbers[layout.ndim()..].as_ptr(),
            data: base.wrapping_add(layout.offset * size),
            description: std::ptr::null_mut(),
        };
        #[allow(deprecated, reason = "NumPy wants a capsule without a name, which only this function makes")]
        PyCapsule::new(py, OwnedArray(array, numbers), None)
    }
}
