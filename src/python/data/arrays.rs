//! Shares memory between NumPy arrays and tensors through the array interface. (NumPy itself is never
//! imported.)

use crate::base::views::checked_numel;
use crate::base::{ConjNeg, DType, Dims, Layout};
use crate::ops::complex::{RESOLVE_CONJ, RESOLVE_NEG};
use crate::python::data::nested_lists::is_plain;
use crate::python::objects::ClassName;
use crate::python::sequences::ListArg;
use crate::python::transforms::vmap;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::storage::{Exported, Storage};
use crate::tensor::{Body, Tensor};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use smallvec::SmallVec;

const KINDS: [(&str, DType); 14] = [
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
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
];

const READ_ONLY: &std::ffi::CStr = c"The given NumPy array is not writable, and gradiron does not support non-writable \
    tensors. This means writing to this tensor will result in undefined behavior. You may want to copy the array to protect \
    its data or make it writable before converting it to a tensor.";

/// Keeps Python objects alive for a storage.
struct Owner(Option<[Py<PyAny>; 2]>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(objects) = self.0.take() {
            // After the interpreter has ended the references cannot be released.
            match Python::try_attach(|_| ()) {
                Some(()) => drop(objects),
                None => std::mem::forget(objects),
            }
        }
    }
}

/// Returns true if the object has an array interface. Its class is asked first: the attribute of an
/// instance is expensive.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    const NAME: &str = "__array_interface__";
    Ok(!is_plain(object)
        && !object.is_instance_of::<PyTensor>()
        && (object.get_type().hasattr(NAME)? || object.hasattr(NAME)?))
}

/// The memory of an array; strides in bytes.
struct ArrayInfo<'py> {
    /// The object that described the memory. For a NumPy scalar it owns a copy of the value.
    told: Bound<'py, PyAny>,
    /// The letter of the kind and the size in bytes, as in `f4`; None if the byte order is not native.
    kind: Option<String>,
    shape: Dims,
    strides: Option<SmallVec<[isize; 6]>>,
    data: *mut u8,
    writable: bool,
}

/// The maximal number of dimensions of a NumPy array.
const MOST_DIMENSIONS: usize = 64;

fn sizes(shape: &[isize]) -> PyResult<Dims> {
    let sizes = shape.iter().map(|&n| usize::try_from(n)).collect::<Result<Dims, _>>();
    sizes.map_err(|_| PyValueError::new_err("the array interface has a negative size"))
}

impl<'py> ArrayInfo<'py> {
    fn of(object: &Bound<'py, PyAny>) -> PyResult<ArrayInfo<'py>> {
        match object.getattr("__array_struct__") {
            Ok(capsule) => ArrayInfo::by_struct(capsule.cast_into().map_err(PyErr::from)?),
            Err(_) => ArrayInfo::by_dict(object),
        }
    }

    fn by_struct(capsule: Bound<'py, PyCapsule>) -> PyResult<ArrayInfo<'py>> {
        let at = capsule.pointer_checked(None)?.cast::<ArrayStruct>();
        // SAFETY: by the protocol an unnamed `__array_struct__` capsule points to this struct while it
        // lives.
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
                return Err(PyValueError::new_err("the __array_struct__ of the array is not valid"));
            };
            Ok(ArrayInfo {
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

    fn by_dict(object: &Bound<'py, PyAny>) -> PyResult<ArrayInfo<'py>> {
        let interface = object.getattr("__array_interface__")?.cast_into::<PyDict>().map_err(PyErr::from)?;
        let get = |key: &str| -> PyResult<Bound<'_, PyAny>> {
            interface
                .get_item(key)?
                .ok_or_else(|| PyTypeError::new_err(format!("the array interface has no {key}")))
        };
        let code: String = get("typestr")?.extract()?;
        let (address, read_only): (usize, bool) = get("data")?.extract()?;
        let strides = interface.get_item("strides")?.filter(|s| !s.is_none());
        Ok(ArrayInfo {
            kind: code.get(1..).filter(|_| !code.starts_with('>')).map(str::to_owned),
            shape: sizes(&get("shape")?.extract::<ListArg<isize>>()?.0)?,
            strides: strides.map(|s| s.extract::<ListArg<isize>>()).transpose()?.map(|s| s.0.into()),
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
             complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )))
    }

    fn layout(&self, dtype: DType) -> PyResult<Layout> {
        checked_numel(&self.shape)?;
        let mut layout = Layout::contiguous(&self.shape);
        let Some(strides) = &self.strides else { return Ok(layout) };
        if strides.len() != self.shape.len() {
            return Err(PyValueError::new_err("the array's shape and strides differ in length"));
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

    /// Makes a tensor over the memory, which keeps the object and its description alive.
    fn tensor(&self, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let dtype = self.dtype(object)?;
        let layout = self.layout(dtype)?;
        let Some(bytes) = layout.bytes(dtype).filter(|&bytes| bytes == 0 || !self.data.is_null()) else {
            return Err(PyValueError::new_err("the array's sizes and strides exceed the address space"));
        };
        let owner = Box::new(Owner(Some([object, &self.told].map(|kept| kept.clone().unbind()))));
        // SAFETY: by its interface the array has that many bytes at this address, and the owner keeps it
        // alive.
        let storage = unsafe { Storage::borrowed(self.data, bytes, owner) };
        Ok(Tensor::new(Body::plain(storage, layout, dtype)))
    }
}

/// Makes a tensor over an array's memory.
pub fn from_array(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    ArrayInfo::of(object)?.tensor(object)
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
    let shown = ArrayInfo::of(array)?;
    let tensor = shown.tensor(array)?;
    if !shown.writable {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), READ_ONLY, 1)?;
    }
    wrap(py, tensor)
}

/// Exposes a tensor's memory to NumPy. Keeps the memory alive but not the tensor, which may itself hold the
/// array.
#[pyclass(frozen, module = "gradiron._core")]
pub struct Shared {
    body: Body,
    kind: &'static str,
}

const ALIGNED: i32 = 0x100;
const NATIVE: i32 = 0x200;
const WRITABLE: i32 = 0x400;

/// `PyArrayInterface` of NumPy's C API.
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

/// An `ArrayStruct` with the numbers that its pointers refer to.
#[repr(C)]
struct OwnedArray(ArrayStruct, Vec<isize>);
// SAFETY: it owns its numbers, and its creator keeps the data alive.
unsafe impl Send for OwnedArray {}

/// Returns an object from which `numpy.asarray` makes an array over a CPU tensor's memory.
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
        return Err(PyTypeError::new_err(format!("Got unsupported ScalarType {}", body.dtype.scalar_name())));
    };
    crate::storage::access::check()?;
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
