//! Plain constants, which are compared by value: anything else is compared by identity.

use crate::python::size;
use crate::python::types::{PyDType, PyDevice};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyComplexMethods, PyEllipsis, PyFloat, PyFrozenSet, PyInt, PyNone, PyRange,
    PySlice, PyString, PyTuple,
};

/// True for a tuple, also if it is a `torch.Size`.
fn is_tuple(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyTuple>() || size::is_size(value)
}

/// What is nested deeper counts as no constant, so that comparing cannot overflow the stack.
const DEEPEST: u32 = 64;

/// True for a plain constant, all the way down.
fn is_constant(value: &Bound<'_, PyAny>, levels: u32) -> PyResult<bool> {
    if levels == 0 {
        return Ok(false);
    }
    let inside = levels - 1;
    if is_tuple(value) {
        let mut items = value.cast::<PyTuple>()?.iter();
        return items.try_fold(true, |all, item| Ok(all && is_constant(&item, inside)?));
    }
    if value.is_exact_instance_of::<PyFrozenSet>() {
        return value.try_iter()?.try_fold(true, |all, item| Ok(all && is_constant(&item?, inside)?));
    }
    Ok(is_simple(value)
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyComplex>()
        || value.is_exact_instance_of::<PySlice>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyNone>()
        || value.is_exact_instance_of::<PyEllipsis>()
        || value.is_exact_instance_of::<PyDType>())
}

/// True if `==` alone compares these: of one class, without Python code, and never true of different values.
fn is_simple(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_exact_instance_of::<PyRange>()
        || value.is_exact_instance_of::<PyDevice>()
}

/// True for equal floats of the same sign; a NaN equals none.
fn same_float(a: f64, b: f64) -> bool {
    a == b && a.is_sign_negative() == b.is_sign_negative()
}

/// True if two different objects are equal plain constants of one class.
pub fn matches(value: &Bound<'_, PyAny>, expected: &Bound<'_, PyAny>) -> PyResult<bool> {
    matches_within(value, expected, DEEPEST)
}

fn matches_within(value: &Bound<'_, PyAny>, expected: &Bound<'_, PyAny>, levels: u32) -> PyResult<bool> {
    if levels == 0 || !value.get_type().is(expected.get_type()) {
        return Ok(false);
    }
    let inside = levels - 1;
    if is_simple(value) {
        return value.eq(expected);
    }
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(same_float(value.extract()?, expected.extract()?));
    }
    if is_tuple(value) {
        let (value, expected) = (value.cast::<PyTuple>()?, expected.cast::<PyTuple>()?);
        let mut pairs = value.iter().zip(expected.iter());
        return Ok(value.len() == expected.len()
            && pairs.try_fold(true, |all, (a, b)| {
                Ok::<_, PyErr>(all && (a.is(&b) || matches_within(&a, &b, inside)?))
            })?);
    }
    if value.is_exact_instance_of::<PyFrozenSet>() {
        return Ok(is_constant(value, levels)? && is_constant(expected, levels)? && value.eq(expected)?);
    }
    if let (Ok(a), Ok(b)) = (value.cast_exact::<PyComplex>(), expected.cast_exact::<PyComplex>()) {
        return Ok(same_float(a.real(), b.real()) && same_float(a.imag(), b.imag()));
    }
    if value.is_exact_instance_of::<PySlice>() {
        let py = value.py();
        for name in [intern!(py, "start"), intern!(py, "stop"), intern!(py, "step")] {
            let (a, b) = (value.getattr(name)?, expected.getattr(name)?);
            if !(a.is(&b) || matches_within(&a, &b, inside)?) {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    Ok(false)
}
