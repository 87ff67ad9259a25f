//! Data from and to Python: nested lists, NumPy by its array interface (NumPy itself is never imported), DLPack.

use super::overloads::dtype_argument;
use super::parse::scalar_from;
use super::tensor::{PyTensor, wrap};
use super::types::device_from;
use crate::base::{DType, Device, Dims, Layout, Lazy, Scalar};
use crate::ops;
use crate::storage::Storage;
use crate::tensor::{Body, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || (!is_plain(object)
            && !object.is_instance_of::<PyString>()
            && !object.is_instance_of::<PyTensor>()
            && !object.is_instance_of::<PyBytes>()
            && object.hasattr("__len__").unwrap_or(false)
            && object.hasattr("__getitem__").unwrap_or(false))
}

/// Whether it is a number or a list of Python's own, which nobody needs to ask what else it is.
fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
        || object.is_exact_instance_of::<PyBool>()
}

/// Shape and dtype of nested lists.
fn survey(
    object: &Bound<'_, PyAny>,
    shape: &mut Dims,
    kind: &mut Option<DType>,
    depth: usize,
) -> PyResult<()> {
    if depth > 64 {
        return Err(PyValueError::new_err("too many dimensions 'list'"));
    }
    if let Ok(t) = object.cast::<PyTensor>() {
        let t = &t.get().tensor;
        shape.extend(t.shape());
        *kind = Some(kind.map_or(t.dtype(), |k| k.promote(t.dtype())));
        return Ok(());
    }
    if !is_plain(object) && object.hasattr("__array_interface__")? {
        let t = from_array(object)?;
        shape.extend(t.shape());
        *kind = Some(kind.map_or(t.dtype(), |k| k.promote(t.dtype())));
        return Ok(());
    }
    if is_sequence(object) {
        let n = object.len()?;
        shape.push(n);
        if n > 0 {
            survey(&object.get_item(0)?, shape, kind, depth + 1)?;
        }
        return Ok(());
    }
    Ok(())
}

/// The dtype of one leaf, promoted into what was found so far.
fn note(object: &Bound<'_, PyAny>, kind: &mut Option<DType>) -> PyResult<Scalar> {
    let Some(scalar) = scalar_from(object) else {
        if let Ok(t) = object.cast::<PyTensor>() {
            return Ok(t.get().tensor.item()?);
        }
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
        }
        if object.is_instance_of::<PyInt>() {
            return Err(PyValueError::new_err("Overflow when unpacking long long"));
        }
        return Err(if object.is_none() {
            PyRuntimeError::new_err("Could not infer dtype of NoneType")
        } else {
            PyRuntimeError::new_err(format!("Could not infer dtype of {}", object.get_type().name()?))
        });
    };
    let dtype = ops::pointwise::scalar_dtype(scalar);
    *kind = Some(kind.map_or(dtype, |k| k.promote(dtype)));
    Ok(scalar)
}

fn flatten(
    object: &Bound<'_, PyAny>,
    shape: &[usize],
    depth: usize,
    kind: &mut Option<DType>,
    out: &mut Vec<Scalar>,
) -> PyResult<()> {
    if depth == shape.len() {
        if is_sequence(object) {
            return Err(PyValueError::new_err(format!(
                "expected sequence of length 1 at dim {depth} (got {})",
                object.len()?
            )));
        }
        out.push(note(object, kind)?);
        return Ok(());
    }
    if let Ok(t) = object.cast::<PyTensor>() {
        let t = &t.get().tensor;
        let host = ops::create::to_device(&ops::create::shallow(t), Device::Cpu)?;
        let dense = ops::kernel::duplicate(&host.body())?;
        if dense.shape() != &shape[depth..] {
            return Err(PyValueError::new_err(format!(
                "expected sequence of length {} at dim {depth}",
                shape[depth]
            )));
        }
        let view = dense.host()?;
        // SAFETY: the body is dense and holds that many elements.
        out.extend(
            (0..dense.numel())
                .map(|i| unsafe { Scalar::read(dense.dtype, view.ptr.add(i * dense.dtype.size())) }),
        );
        return Ok(());
    }
    if !is_sequence(object) {
        return Err(PyTypeError::new_err(
            if object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>() {
                format!("'{}' object is not a sequence", object.get_type().name()?)
            } else {
                "not a sequence".to_string()
            },
        ));
    }
    let n = object.len()?;
    if n != shape[depth] {
        return Err(PyValueError::new_err(format!(
            "expected sequence of length {} at dim {depth} (got {n})",
            shape[depth]
        )));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().try_for_each(|item| flatten(&item, shape, depth + 1, kind, out));
    }
    for i in 0..n {
        flatten(&object.get_item(i)?, shape, depth + 1, kind, out)?;
    }
    Ok(())
}

/// `tensor(data)`: nested sequences, numbers, arrays or a tensor, copied.
pub fn from_nested(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    if let Ok(t) = object.cast::<PyTensor>() {
        let t = ops::create::shallow(&t.get().tensor);
        let copy = Tensor::new(ops::kernel::duplicate(&t.body())?);
        return Ok(ops::create::to_dtype(&copy, dtype.unwrap_or(copy.dtype()))?);
    }
    if !is_plain(object) && object.hasattr("__array_interface__")? {
        let shared = from_array(object)?;
        let copy = Tensor::new(ops::kernel::duplicate(&shared.body())?);
        return Ok(ops::create::to_dtype(&copy, dtype.unwrap_or(copy.dtype()))?);
    }
    let mut shape = Dims::new();
    let mut kind = None;
    survey(object, &mut shape, &mut kind, 0)?;
    let mut values = Vec::new();
    flatten(object, &shape, 0, &mut kind, &mut values)?;
    let dtype = dtype.or(kind).unwrap_or_else(ops::create::default_dtype);
    let body = Body::new(&shape, dtype, Device::Cpu)?;
    let view = body.host()?;
    for (i, value) in values.iter().enumerate().take(body.numel()) {
        fits(*value, dtype)?;
        // SAFETY: the body is dense and holds that many elements.
        unsafe { value.write(dtype, view.ptr.add(i * dtype.size())) };
    }
    Ok(Tensor::new(body))
}

/// Refuses numbers that the dtype cannot hold.
fn fits(value: Scalar, dtype: DType) -> PyResult<()> {
    if matches!(value, Scalar::Complex(..)) && !dtype.is_complex() {
        return match dtype {
            DType::Bool => Ok(()),
            _ if dtype.is_float() => Err(PyTypeError::new_err("must be real number, not complex")),
            _ => Err(PyTypeError::new_err("'complex' object cannot be interpreted as an integer")),
        };
    }
    let range = match dtype {
        DType::U8 => (-255, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (-32768, 32767),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => return Ok(()),
    };
    match value {
        Scalar::Int(i) if i < range.0 || i > range.1 => Err(PyRuntimeError::new_err(format!(
            "value cannot be converted to type {} without overflow",
            dtype.name()
        ))),
        _ => Ok(()),
    }
}

/// `tensor(data, dtype, device)`.
#[pyfunction]
pub fn make_tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.map(|d| dtype_argument("tensor", "dtype", None, d)).transpose()?;
    let mut t = from_nested(data, dtype)?;
    if let Some(device) = device.filter(|d| !d.is_none()) {
        t = ops::create::to_device(&t, device_from(device)?)?;
    }
    if requires_grad {
        if t.history().is_some() {
            t = ops::create::shallow(&t);
        }
        if !t.dtype().is_differentiable() {
            return Err(PyRuntimeError::new_err(
                "Only Tensors of floating point and complex dtype can require gradients",
            ));
        }
        t.set_requires_grad(true)?;
    }
    wrap(py, t)
}

fn numbers<'py>(py: Python<'py>, body: &Body, dim: usize, offset: usize) -> PyResult<Bound<'py, PyAny>> {
    if dim == body.layout.ndim() {
        let base =
            body.storage.host().ok_or_else(|| PyRuntimeError::new_err("the tensor is not in host memory"))?;
        // SAFETY: the layout lies inside the storage.
        return Ok(match unsafe { Scalar::read(body.dtype, base.add(offset * body.dtype.size())) } {
            Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
            Scalar::Int(i) => i.into_pyobject(py)?.into_any(),
            Scalar::Float(f) => f.into_pyobject(py)?.into_any(),
            Scalar::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_any(),
        });
    }
    let (n, stride) = (body.shape()[dim], body.layout.strides[dim]);
    let items =
        (0..n).map(|i| numbers(py, body, dim + 1, offset + i * stride)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

pub fn tolist<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    super::batch::need_values(&slf.get().tensor)?;
    let host = ops::create::to_device(&ops::create::shallow(&slf.get().tensor), Device::Cpu)?;
    let body = ops::lazy::values(&host.body())?;
    numbers(slf.py(), &body, 0, body.layout.offset)
}

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

/// Keeps a Python object alive for a storage.
struct Owner(Option<Py<PyAny>>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // After the interpreter is gone there is nobody to give it back to.
            match Python::try_attach(|_| ()) {
                Some(()) => drop(object),
                None => std::mem::forget(object),
            }
        }
    }
}

/// A tensor over an array's memory, by the array interface.
pub fn from_array(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let interface = object.getattr("__array_interface__")?.cast_into::<PyDict>().map_err(PyErr::from)?;
    let get = |key: &str| -> PyResult<Bound<'_, PyAny>> {
        interface
            .get_item(key)?
            .ok_or_else(|| PyTypeError::new_err(format!("the array interface has no {key}")))
    };
    let code: String = get("typestr")?.extract()?;
    let dtype = match code.as_bytes() {
        [order, kind @ ..] if *order != b'>' => {
            std::str::from_utf8(kind).ok().and_then(|k| KINDS.iter().find(|x| x.0 == k)).map(|x| x.1)
        }
        _ => None,
    };
    let Some(dtype) = dtype else {
        let name =
            object.getattr("dtype").and_then(|d| d.str()).map_or_else(|_| code.clone(), |s| s.to_string());
        if code.starts_with('>') {
            return Err(PyValueError::new_err(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders is \
                 currently not supported.",
            ));
        }
        let class = match code.get(1..2) {
            Some("U") => "numpy.str_".into(),
            Some("O") => "numpy.object_".into(),
            Some("S") => "numpy.bytes_".into(),
            _ => format!("numpy.{name}"),
        };
        return Err(PyTypeError::new_err(format!(
            "can't convert np.ndarray of type {class}. The only supported types are: float64, float32, float16, complex64, complex128, int64, \
             int32, int16, int8, uint8, and bool."
        )));
    };
    let shape: Vec<usize> = get("shape")?.extract()?;
    let (address, _read_only): (usize, bool) = get("data")?.extract()?;
    let strides: Option<Vec<isize>> =
        interface.get_item("strides")?.filter(|s| !s.is_none()).map(|s| s.extract()).transpose()?;
    let mut layout = Layout::contiguous(&shape);
    if let Some(bytes) = strides {
        layout.strides.clear();
        for (&b, &n) in bytes.iter().zip(&shape) {
            if b < 0 && n > 1 {
                return Err(PyValueError::new_err(
                    "At least one stride in the given numpy array is negative, and tensors with negative strides are not \
                     currently supported. (You can probably work around this by making a copy of your array  with \
                     array.copy().) ",
                ));
            }
            if b % dtype.size() as isize != 0 {
                return Err(PyValueError::new_err(
                    "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
                ));
            }
            layout.strides.push((b.max(0) as usize) / dtype.size());
        }
    }
    let len = layout.end() * dtype.size();
    let owner = Box::new(Owner(Some(object.clone().unbind())));
    // SAFETY: the array owns `len` bytes at this address, by its interface, and the owner keeps it.
    let storage = unsafe { Storage::borrowed(address as *mut u8, len, owner) };
    Ok(Tensor::new(Body::plain(storage, layout, dtype)))
}

/// A tensor over the memory of a NumPy array.
#[pyfunction]
pub fn from_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !array.hasattr("__array_interface__")? {
        return Err(PyTypeError::new_err(format!("expected np.ndarray (got {})", array.get_type().name()?)));
    }
    let py = array.py();
    let shared = from_array(array)?;
    let interface = array.getattr("__array_interface__")?;
    if interface.get_item("data")?.get_item(1)?.extract::<bool>()? {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), READ_ONLY, 1)?;
    }
    wrap(py, shared)
}

/// Shows NumPy a tensor's memory and keeps it: not the tensor, which may hold the array.
#[pyclass(frozen, module = "gradiron._core")]
pub struct Shared(Body);

/// What NumPy's array interface for C reads of an array.
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
    /// What the pointers point to.
    _numbers: Vec<isize>,
}
// SAFETY: it owns its numbers, and who made it keeps the data.
unsafe impl Send for ArrayStruct {}

/// What `numpy.asarray` makes an array over a CPU tensor's memory of.
#[pyfunction]
pub fn shared(tensor: &Bound<'_, PyTensor>) -> PyResult<Shared> {
    let t = &tensor.get().tensor;
    super::batch::need_storage(t)?;
    let body = t.body();
    for (lazy, bit, way) in [(Lazy::CONJ, "conjugate", "conj"), (Lazy::NEG, "negative", "neg")] {
        if body.lazy.has(lazy) {
            return Err(PyRuntimeError::new_err(format!(
                "Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{way}().numpy() instead."
            )));
        }
    }
    if body.dtype == DType::BF16 {
        return Err(PyTypeError::new_err("Got unsupported ScalarType BFloat16"));
    }
    if body.storage.host().is_none() {
        return Err(PyTypeError::new_err(format!(
            "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
            body.device()
        )));
    }
    Ok(Shared(body.clone()))
}

#[pymethods]
impl Shared {
    #[getter]
    fn __array_struct__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        /// Aligned, in this machine's byte order, writable.
        const FLAGS: i32 = 0x100 | 0x200 | 0x400;
        let Body { storage, layout, dtype, .. } = &self.0;
        let size = dtype.size();
        let shape = layout.shape.iter().map(|&n| n as isize);
        let numbers: Vec<isize> = shape.chain(layout.strides.iter().map(|s| (s * size) as isize)).collect();
        let kind = KINDS.iter().find(|k| k.1 == *dtype).map_or("", |k| k.0);
        let base = storage.host().unwrap_or(std::ptr::null_mut());
        let array = ArrayStruct {
            two: 2,
            dimensions: layout.ndim() as i32,
            kind: kind.as_bytes().first().copied().unwrap_or(0),
            size: size as i32,
            flags: FLAGS,
            shape: numbers.as_ptr(),
            strides: numbers[layout.ndim()..].as_ptr(),
            data: base.wrapping_add(layout.offset * size),
            description: std::ptr::null_mut(),
            _numbers: numbers,
        };
        // NumPy asks for a capsule without a name, which only this function makes.
        #[allow(deprecated)]
        PyCapsule::new(py, array, None)
    }
}
