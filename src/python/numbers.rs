//! Conversion of Python numbers to scalars and integers.

use crate::base::{Scalar, warn_once};
use crate::operator::Ints;
use crate::python::wrapper::class::PyTensor;
use crate::tensor::{Tensor, mode};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyComplexMethods, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::sync::atomic::AtomicBool;

/// Reads a Python or NumPy number as a scalar.
pub fn scalar_from(object: &Bound<'_, PyAny>) -> Option<Scalar> {
    if object.is_exact_instance_of::<PyFloat>() {
        return object.extract().ok().map(Scalar::Float);
    }
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract().ok().map(Scalar::Int);
    }
    if object.is_instance_of::<PyBool>() {
        return object.extract().ok().map(Scalar::Bool);
    }
    if object.is_instance_of::<PyTensor>() || object.is_instance_of::<PyString>() || is_list(object) {
        return None;
    }
    if object.is_instance_of::<PyFloat>() {
        return object.extract().ok().map(Scalar::Float);
    }
    if let Ok(number) = object.cast::<PyComplex>() {
        return Some(Scalar::Complex(number.real(), number.imag()));
    }
    // NumPy's complex64 is not a Python complex; reading it as a float would lose its imaginary part.
    if object.hasattr("__complex__").unwrap_or(false) && object.hasattr("dtype").unwrap_or(false) {
        let number = object.call_method0("__complex__").ok()?;
        let kind: String =
            object.getattr("dtype").and_then(|d| d.getattr("kind")).and_then(|k| k.extract()).ok()?;
        if let (Ok(number), "c") = (number.cast::<PyComplex>(), kind.as_str()) {
            return Some(Scalar::Complex(number.real(), number.imag()));
        }
    }
    if object.hasattr("__index__").unwrap_or(false) {
        return object.extract::<i64>().ok().map(Scalar::Int);
    }
    if object.hasattr("__float__").unwrap_or(false) && object.hasattr("dtype").unwrap_or(false) {
        return object.extract::<f64>().ok().map(Scalar::Float);
    }
    None
}

/// Callers check for lists first: each failed attempt to read a list as a number would create an exception.
pub fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>()
}

pub fn int_from(object: &Bound<'_, PyAny>) -> Option<i64> {
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract().ok();
    }
    if object.is_instance_of::<PyBool>() || is_list(object) {
        return None;
    }
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let t = &tensor.get().tensor;
        return (t.numel() == 1 && t.dtype().is_int()).then(|| t.item().ok().map(Scalar::as_index)).flatten();
    }
    object.extract().ok()
}

pub fn ints_from(object: &Bound<'_, PyAny>) -> Option<Ints> {
    if is_list(object) {
        let mut out = Ints::new();
        for item in object.try_iter().ok()? {
            let item = int_from(&item.ok()?)?;
            out.try_reserve(1).ok()?;
            out.push(item);
        }
        return Some(out);
    }
    None
}

/// Warns once if a tensor that requires a gradient is converted to a number, which is not in the graph.
pub fn tell_of_loss(tensor: &Tensor) -> PyResult<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if mode::grad_enabled() && tensor.requires_grad() {
        warn_once(
            &TOLD,
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using \
             tensor.detach() first.",
        )?;
    }
    Ok(())
}
