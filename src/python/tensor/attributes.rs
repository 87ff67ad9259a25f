//! Construction of tensors, transposes and complex parts as attributes, and dtype rules.

use crate::base::{Category, DType, Device, default_dtype, warn_once};
use crate::operator::Operand;
use crate::operator::primitives::{copies, views};
use crate::ops;
use crate::ops::shape::view;
use crate::python::call::signature_errors::dtype_argument;
use crate::python::data::nested_lists::from_nested;
use crate::python::data::set_resize::storage_body;
use crate::python::numbers::scalar_from;
use crate::python::objects::ClassName;
use crate::python::sequences::ints;
use crate::python::tensor::index;
use crate::python::tensor::methods::operand;
use crate::python::types::type_name;
use crate::python::types::{PyDType, device_from, dtype_object};
use crate::python::wrapper::class::{AsIs, PyTensor, register, wrap};
use crate::tensor::{Body, Tensor};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple, PyType};
use std::sync::atomic::AtomicBool;

/// The legacy constructors such as `Tensor(2, 3)` and `Tensor(data)`.
fn legacy(args: &Bound<'_, PyTuple>, dtype: DType, device: Device) -> PyResult<Tensor> {
    let sizes: Option<Vec<i64>> = args.iter().map(|a| a.extract::<i64>().ok()).collect();
    let empty = |sizes: &[i64]| -> PyResult<Tensor> {
        Ok(Tensor::new(Body::new(&views::dims_of(sizes)?, dtype, device)?))
    };
    let first = match args.len() {
        0 => return empty(&[0]),
        1 => args.get_item(0)?,
        _ => {
            return empty(&sizes.ok_or_else(|| PyTypeError::new_err("new(): expected sizes as ints"))?);
        }
    };
    if let Ok(t) = first.cast::<PyTensor>() {
        let t = &t.get().tensor;
        if t.dtype() != dtype {
            return Err(PyTypeError::new_err(format!(
                "expected a tensor of {} (got {})",
                crate::tensor::type_string(dtype, device),
                crate::tensor::type_string(t.dtype(), t.device())
            )));
        }
        return Ok(views::alias(t)?);
    }
    let number = !first.is_instance_of::<PyBool>();
    if let Some(sizes) = sizes.filter(|_| number) {
        return empty(&sizes);
    }
    if first.class_name()? == "Size" {
        return empty(&ints("new", "size", &first)?);
    }
    if first.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
    }
    if first.is_none() || scalar_from(&first).is_some() {
        return Err(PyTypeError::new_err(format!(
            "new(): data must be a sequence (got {})",
            first.class_name()?
        )));
    }
    if let Some(body) = storage_body(&first, dtype, dtype.scalar_name())? {
        return Ok(Tensor::new(body));
    }
    Ok(copies::to_device(&from_nested(&first, Some(dtype))?, device)?)
}

/// Refuses keywords that the constructor does not have.
fn check_names(args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<()> {
    let strange = |name: &Bound<'_, PyAny>| name.extract::<String>().is_ok_and(|name| name != "device");
    if !kwargs.keys().iter().any(|name| strange(&name)) {
        return Ok(());
    }
    let named = kwargs.iter().map(|(name, arg)| format!("{name}={}", type_name(&arg)));
    let all = args.iter().map(|arg| type_name(&arg)).chain(named).collect::<Vec<_>>().join(", ");
    Err(PyTypeError::new_err(format!(
        "new() received an invalid combination of arguments - got ({all}), but expected one of:\n * (*, torch.device device)\n \
         * (tuple of ints size, *, torch.device device)\n * (Tensor other)\n * (object data, *, torch.device device)"
    )))
}

/// `FloatTensor(…)` and similar types.
#[pyfunction]
pub fn legacy_tensor<'py>(
    args: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyDType>,
    device: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    wrap(args.py(), legacy(args, dtype.get().0, device_from(device)?)?)
}

fn need_matrix(name: &str, t: &Tensor, batches: bool) -> PyResult<()> {
    match t.ndim() {
        2 => Ok(()),
        n if n > 2 && batches => Ok(()),
        n if batches => Err(PyRuntimeError::new_err(format!(
            "tensor.{name} is only supported on matrices or batches of matrices. Got {n}-D tensor."
        ))),
        n => Err(PyRuntimeError::new_err(format!(
            "tensor.{name} is only supported on matrices (2-D tensors). Got {n}-D tensor.{}",
            if n > 2 { " For batches of matrices, consider using tensor.mH" } else { "" }
        ))),
    }
}

/// The deprecated use of these attributes for a tensor without dimensions.
fn of_number<'py>(slf: &Bound<'py, PyTensor>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static TOLD: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    let told = &TOLD[["mT", "mH", "H"].iter().position(|&known| known == name).unwrap_or(0)];
    let conjugates = name.ends_with('H');
    let instead =
        if conjugates { "Consider using x.conj()." } else { "This function is the identity in these cases." };
    warn_once(told, &format!("Tensor.{name} is deprecated on 0-D tensors. {instead}"))?;
    let t = slf.get().tensor.clone();
    if conjugates { wrap(slf.py(), ops::complex::conj(&t)?) } else { Ok(slf.clone().into_any()) }
}

fn matrix_transpose<'py>(
    slf: &Bound<'py, PyTensor>,
    name: &str,
    batches: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let t = &slf.get().tensor;
    if t.ndim() == 0 {
        return of_number(slf, name);
    }
    need_matrix(name, t, batches)?;
    let turned = view::transpose(t, -2, -1)?;
    // `H` and `mH` also conjugate, which changes only complex numbers.
    wrap(slf.py(), if name.ends_with('H') { ops::complex::conj(&turned)? } else { turned })
}

/// `x.real = value`: writes through the view of the part.
fn write_part(part: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let value = index::value_for(&part.cast::<PyTensor>()?.get().tensor, value)?;
    part.call_method1("copy_", (wrap(part.py(), value)?,)).map(drop)
}

#[pymethods]
impl PyTensor {
    #[new]
    #[classmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = "(*args, **kwargs)")]
    fn construct(
        class: &Bound<'_, PyType>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyTensor> {
        // Subclasses may have other arguments.
        let plain = class.is(PyTensor::type_object(class.py()));
        if let Some(kwargs) = kwargs.filter(|_| plain) {
            check_names(args, kwargs)?;
        }
        let device = match kwargs.map(|k| k.get_item("device")).transpose()?.flatten() {
            Some(device) => device_from(&device)?,
            None => Device::Cpu,
        };
        if args.len() == 1 {
            let given = args.get_item(0)?;
            if let Ok(given) = given.cast::<AsIs>() {
                return Ok(PyTensor { tensor: given.get().0.clone() });
            }
            if let Ok(given) = given.cast::<PyTensor>() {
                return Ok(PyTensor { tensor: views::alias(&given.get().tensor)? });
            }
        }
        Ok(PyTensor { tensor: legacy(args, default_dtype(), device)? })
    }
    /// Registers the new object as that of its tensor.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __init__(slf: &Bound<'_, PyTensor>, _args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) {
        register(slf.clone());
    }
    /// The tensor with its dimensions in reverse order: the transpose of a matrix (a view).
    #[getter(T)]
    fn reversed<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let t = &slf.get().tensor;
        let py = slf.py();
        if t.ndim() != 2 {
            let message = if t.ndim() == 0 {
                c"Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
            } else {
                c"The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will \
                  throw an error in a future release. Consider `x.mT` to transpose batches of matrices or \
                  `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
            };
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), message, 1)?;
        }
        wrap(py, view::permute(t, (0..t.ndim() as i64).rev().collect())?)
    }
    /// The transpose of each matrix: the last two dimensions swapped (a view).
    #[getter(mT)]
    fn matrices_transposed<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        matrix_transpose(slf, "mT", true)
    }
    /// The conjugate transpose of a matrix (a view).
    #[getter(H)]
    fn conjugate_transposed<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        matrix_transpose(slf, "H", false)
    }
    /// The conjugate transpose of each matrix, in the last two dimensions (a view).
    #[getter(mH)]
    fn matrices_conjugate_transposed<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        matrix_transpose(slf, "mH", true)
    }
    /// The real part (a view).
    #[getter(real)]
    fn real_part<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        if !slf.get().tensor.dtype().is_complex() {
            return Ok(slf.clone().into_any());
        }
        wrap(slf.py(), ops::complex::real(&slf.get().tensor)?)
    }
    #[setter(real)]
    fn set_real_part(slf: &Bound<'_, PyTensor>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        write_part(&PyTensor::real_part(slf)?, value)
    }
    /// The imaginary part (a view).
    #[getter(imag)]
    fn imaginary_part<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        wrap(slf.py(), ops::complex::imag(&slf.get().tensor)?)
    }
    #[setter(imag)]
    fn set_imaginary_part(slf: &Bound<'_, PyTensor>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        write_part(&PyTensor::imaginary_part(slf)?, value)
    }
}

fn known_operand<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Operand<'a>> {
    operand(object).ok_or_else(|| PyTypeError::new_err("expected a tensor or a number"))
}

/// Return the data type that arithmetic on two operands gives.
///
/// Args:
///     tensor: first operand, a tensor or a number.
///     other: second operand, a tensor or a number.
///
/// Examples:
///     >>> torch.result_type(torch.tensor([1, 2]), 1.0)
///     torch.float32
#[pyfunction]
pub fn result_type(
    py: Python<'_>,
    tensor: &Bound<'_, PyAny>,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyDType>> {
    match (known_operand(tensor), known_operand(other)) {
        (Ok(a), Ok(b)) => dtype_object(py, crate::operator::pointwise::result_type([a, b])?),
        _ => Err(PyTypeError::new_err(format!(
            "result_type() received an invalid combination of arguments - got ({}, {}), but expected one of:\n * (Tensor tensor, \
             Tensor other)\n * (Number scalar, Tensor tensor)\n * (Tensor tensor, Number other)\n * (Number scalar1, Number \
             scalar2)\n",
            type_name(tensor),
            type_name(other)
        ))),
    }
}

/// Tell whether values of one data type may be written into another by the promotion rules.
///
/// Args:
///     from_: the data type of the values.
///     to: the data type to write into.
///
/// Examples:
///     >>> torch.can_cast(torch.float64, torch.int32), torch.can_cast(torch.float64, torch.float32)
///     (False, True)
#[pyfunction]
pub fn can_cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<bool> {
    let from = dtype_argument("can_cast", "from_", Some(1), from_)?;
    let to = dtype_argument("can_cast", "to", Some(2), to)?;
    let (from, to): (Category, Category) = (from.category(), to.category());
    Ok(from <= to)
}
