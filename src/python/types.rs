//! `dtype`, `device`, and the classes that the Python side registers (named results).

use crate::base::{DType, Device, GpuName, MemoryFormat, try_alloc, warn_once};
use crate::python::objects::{ClassName, ToObject};
use gradiron_macros::pymethods;
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicBool;

/// The data type of a tensor's elements, such as `torch.float32`.
///
/// Examples:
///     >>> torch.float16.is_floating_point, torch.float16.itemsize
///     (True, 2)
#[pyclass(frozen, name = "dtype", module = "gradiron", eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDType(pub DType);

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.name())
    }
    /// True for floating point types.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }
    /// True for complex types.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }
    /// The name in most of PyTorch's messages: `Float`.
    #[getter]
    fn _scalar_name(&self) -> PyResult<&'static str> {
        Ok(self.0.scalar_name())
    }
    /// The C name, in the other messages: `float`.
    #[getter]
    fn _c_name(&self) -> PyResult<&'static str> {
        Ok(self.0.c_name())
    }
    /// Returns the complex type of the same precision.
    #[allow(clippy::wrong_self_convention, reason = "Python's name, and a Python object")]
    fn to_complex(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        if self.0 == DType::F16 {
            return dtype_object(py, DType::C32);
        }
        if !self.0.is_differentiable() || self.0.is_float8() {
            let name = self.0.scalar_name();
            return Err(PyRuntimeError::new_err(format!("Unknown Complex ScalarType for {name}")));
        }
        dtype_object(py, self.0.to_complex())
    }
    /// Returns the real type of the same precision.
    #[allow(clippy::wrong_self_convention, reason = "as above")]
    fn to_real(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.0.to_real())
    }
    /// True for types with negative numbers.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }
    /// The size of an element in bytes.
    #[getter]
    fn itemsize(&self) -> ToObject<usize> {
        ToObject(self.0.size())
    }
    fn __reduce__(&self) -> String {
        self.0.name().into()
    }
}

/// A data type that PyTorch has and gradiron does not; a tensor of it is refused.
#[pyclass(frozen, name = "AbsentDType", module = "gradiron._core")]
pub struct PyAbsentDType(Absent);

/// Its name, the size of an element in bytes, whether it is floating point, and whether it is signed.
type Absent = (&'static str, usize, bool, bool);

const ABSENT: [Absent; 4] = [
    ("float8_e4m3fnuz", 1, true, true),
    ("float8_e5m2fnuz", 1, true, true),
    ("float8_e8m0fnu", 1, true, false),
    ("float4_e2m1fn_x2", 1, true, true),
];

#[pymethods]
impl PyAbsentDType {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.0)
    }
    /// True for floating point types.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.2
    }
    /// True for complex types.
    #[getter]
    fn is_complex(&self) -> bool {
        false
    }
    /// True for types with negative numbers.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.3
    }
    /// The size of an element in bytes.
    #[getter]
    fn itemsize(&self) -> ToObject<usize> {
        ToObject(self.0.1)
    }
    fn __reduce__(&self) -> &'static str {
        self.0.0
    }
}

/// Adds the unsupported dtypes to the module.
pub fn add_absent(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.setattr("AbsentDType", module.py().get_type::<PyAbsentDType>())?;
    ABSENT.iter().try_for_each(|&absent| module.add(absent.0, PyAbsentDType(absent)))
}

/// Converts an object to a dtype: a `torch.dtype`, or Python's `float`, `int`, `bool` or `complex`.
pub fn dtype_of(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    match object.cast::<PyDType>() {
        Ok(dtype) => Ok(Some(dtype.get().0)),
        Err(_) if object.is_instance_of::<PyType>() => Ok(of_class(object)),
        Err(_) => match object.cast::<PyAbsentDType>() {
            Ok(absent) => Err(PyNotImplementedError::new_err(format!(
                "torch.{}: gradiron has no tensors of this type",
                absent.get().0.0
            ))),
            Err(_) => Ok(None),
        },
    }
}

#[cold]
fn of_class(object: &Bound<'_, PyAny>) -> Option<DType> {
    let py = object.py();
    let classes = [
        (py.get_type::<PyFloat>(), DType::F64),
        (py.get_type::<PyInt>(), DType::I64),
        (py.get_type::<PyBool>(), DType::Bool),
        (py.get_type::<PyComplex>(), DType::C128),
    ];
    classes.into_iter().find(|(class, _)| object.is(class)).map(|(_, dtype)| dtype)
}

/// A device where tensors lie: `cpu`, or `cuda` (also called `mps`, `gpu`, `wgpu`) with an index.
///
/// Args:
///     type: kind of device, or kind and index: `"cuda:0"`.
///     index: which one of that kind.
///
/// Examples:
///     >>> torch.device("cuda", 1), torch.device("cuda:1").index
///     (device(type='cuda', index=1), 1)
#[pyclass(frozen, name = "device", module = "gradiron")]
#[derive(Clone, Copy)]
pub struct PyDevice {
    device: Device,
    /// The index that the user gave, if any: `cuda` and `cuda:0` print differently.
    index: Option<u8>,
}

impl PyDevice {
    /// Returns the object of a device, with its index.
    pub fn of(device: Device) -> PyDevice {
        let index = if let Device::Gpu(_, index) = device { Some(index) } else { None };
        PyDevice { device, index }
    }

    pub fn place(&self) -> Device {
        self.device
    }

    fn name(&self) -> &'static str {
        self.device.kind()
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index = None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<i64>) -> PyResult<PyDevice> {
        let device = r#type;
        if let Ok(text) = device.extract::<PyBackedStr>() {
            try_alloc::check_text(text.len())?;
            return match index {
                Some(_) if text.contains(':') => Err(PyRuntimeError::new_err(format!(
                    "type (string) must not include an index because index was passed explicitly: {}",
                    &*text
                ))),
                Some(..0) => Err(PyRuntimeError::new_err("Device index must not be negative")),
                Some(index) => parse_device(&format!("{}:{index}", &*text)),
                None => parse_device(&text),
            };
        }
        if let Ok(other) = device.cast::<PyDevice>() {
            return Ok(*other.get());
        }
        let Ok(number) = device.extract::<i64>() else {
            return Err(PyTypeError::new_err(format!(
                "device() received an invalid combination of arguments - got ({}), but expected a device, its name or its \
                 number",
                type_name(device)
            )));
        };
        let number = u8::try_from(number).map_err(|_| {
            PyRuntimeError::new_err(match number {
                ..0 => "Device index must not be negative".into(),
                _ => format!("Device index {number} is out of range"),
            })
        })?;
        Ok(PyDevice { device: Device::Gpu(GpuName::Cuda, number), index: Some(number) })
    }
    /// The kind of device: `cpu`, `cuda`, …
    #[getter(r#type)]
    fn kind(&self) -> ToObject<&'static str> {
        ToObject(self.name())
    }
    /// The index of the device, if one was given.
    #[getter]
    fn index(&self) -> Option<u8> {
        self.index
    }
    fn __repr__(&self) -> String {
        match self.index {
            Some(index) => format!("device(type='{}', index={index})", self.name()),
            None => format!("device(type='{}')", self.name()),
        }
    }
    fn __str__(&self) -> String {
        match self.index {
            Some(index) => format!("{}:{index}", self.name()),
            None => self.name().into(),
        }
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyDevice>().is_ok_and(|o| o.get().device == self.device && o.get().index == self.index)
    }
    fn __hash__(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.device, self.index).hash(&mut hasher);
        hasher.finish()
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<PyDevice>().into_any(), (self.__str__(),)))
    }
}

/// Parses `cpu`, `cuda`, `cuda:0`, `mps`, `gpu`, `wgpu` or `meta`.
pub fn parse_device(text: &str) -> PyResult<PyDevice> {
    try_alloc::check_text(text.len())?;
    let (kind, index) = match text.split_once(':') {
        Some((kind, index)) => (kind, Some(index)),
        None => (text, None),
    };
    let invalid = || PyRuntimeError::new_err(format!("Invalid device string: '{text}'"));
    if text.is_empty() {
        return Err(PyRuntimeError::new_err("Device string must not be empty"));
    }
    if kind.is_empty() || !kind.bytes().all(|c| c.is_ascii_alphabetic() || c == b'_') {
        return Err(invalid());
    }
    let index = match index {
        None => None,
        Some(i) if !i.is_empty() && (i == "0" || !i.starts_with('0')) => {
            Some(i.parse::<u8>().map_err(|_| invalid())?)
        }
        Some(_) => return Err(invalid()),
    };
    let name = match kind {
        "cpu" => return Ok(PyDevice { device: Device::Cpu, index }),
        "meta" => return Ok(PyDevice { device: Device::Meta, index }),
        "cuda" => GpuName::Cuda,
        "mps" => GpuName::Mps,
        "gpu" => GpuName::Gpu,
        "wgpu" => GpuName::Wgpu,
        _ => {
            return Err(PyRuntimeError::new_err(format!(
                "Expected one of cpu, cuda, mps, gpu, wgpu device type at start of device string: {kind}"
            )));
        }
    };
    Ok(PyDevice { device: Device::Gpu(name, index.unwrap_or(0)), index })
}

pub fn memory_format(name: &str) -> PyResult<MemoryFormat> {
    try_alloc::check_text(name.len())?;
    let unknown = || {
        PyTypeError::new_err(format!(
            "'{name}' is not a memory format; use torch.contiguous_format, torch.channels_last, …"
        ))
    };
    MemoryFormat::parse(name).ok_or_else(unknown)
}

pub fn device_from(object: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(device.get().place());
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(parse_device(text.to_str()?)?.place());
    }
    match object.extract::<u8>() {
        Ok(index) => Ok(Device::Gpu(GpuName::Cuda, index)),
        Err(_) => Err(PyTypeError::new_err("device must be a torch.device, a string or an index")),
    }
}

/// The factory of named results, which the Python side registers at import.
pub static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static DTYPES: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

pub fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyDType>> {
    let all = DTYPES.get_or_try_init(py, || {
        DType::ALL.iter().map(|&d| Py::new(py, PyDType(d))).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(all[dtype as usize].clone_ref(py))
}

pub fn device_object(py: Python<'_>, device: Device) -> PyResult<Py<PyDevice>> {
    Py::new(py, PyDevice::of(device))
}

/// Warns once when a conversion discards imaginary parts.
pub fn warn_of_loss(from: DType, to: DType) -> PyResult<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !from.is_complex() || to.is_complex() || to == DType::Bool {
        return Ok(());
    }
    Ok(warn_once(&TOLD, "Casting complex values to real discards the imaginary part")?)
}

/// Returns the name of an object's type for messages; PyTorch's own types with their module.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    if object.cast::<PyDType>().is_ok() || object.cast::<PyAbsentDType>().is_ok() {
        return "torch.dtype".into();
    }
    if object.cast::<PyDevice>().is_ok() {
        return "torch.device".into();
    }
    object.class_name().unwrap_or_else(|_| "object".into())
}
