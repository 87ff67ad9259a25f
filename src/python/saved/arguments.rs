//! The `_saved_…` attributes of a pointwise node that are not tensors, as Python values: the numbers that
//! the node keeps, and the constants that its row declares (`_saved_exponent`, `_saved_alpha`).

use crate::base::{DType, Scalar};
use crate::operator::pointwise::{Numbers, Pointwise};
use crate::operator::primitives::constant;
use crate::operator::saved_name;
use crate::python::objects::{to_object, to_tuple};
use crate::python::saved::names::pointwise;
use crate::python::wrapper::class;
use crate::tensor::Node;
use crate::tensor::facts::{Facts, Shown};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex};

type Value<'py> = PyResult<Bound<'py, PyAny>>;

/// Converts a saved value to a Python object.
pub fn to_python(py: Python<'_>, value: Shown) -> Value<'_> {
    Ok(match value {
        Shown::Nothing => py.None().into_bound(py),
        Shown::Bool(flag) | Shown::Number(Scalar::Bool(flag)) => PyBool::new(py, flag).to_owned().into_any(),
        Shown::Int(i) => to_object(py, i as u64)?,
        Shown::Ints(all) => {
            to_tuple(py, all.len(), all.into_iter().map(|i| to_object(py, i as u64)))?.into_any()
        }
        Shown::Float(f) | Shown::Number(Scalar::Float(f)) => to_object(py, f)?,
        Shown::Number(Scalar::Int(i)) => to_object(py, i)?,
        Shown::Number(Scalar::Unsigned(u)) => to_object(py, u)?,
        Shown::Number(Scalar::Complex(re, im)) => PyComplex::from_doubles(py, re, im).into_any(),
        Shown::Text(text) => to_object(py, text)?,
    })
}

/// Iterates over the names and values of the numbers that a node keeps.
fn numbers(node: &Node, op: &'static Pointwise) -> impl Iterator<Item = (&'static str, Scalar)> {
    let kept = node.params.as_ref().and_then(|params| params.downcast_ref::<Numbers>());
    // Numbers and parameters have the same order.
    let given = kept.into_iter().flat_map(|numbers| numbers.iter());
    given.zip(op.row.params).filter_map(|(number, param)| Some((saved_name(param.name), (*number)?)))
}

/// Returns the value of the attribute `name`.
pub fn argument<'py>(py: Python<'py>, node: &Node, name: &str) -> Option<Value<'py>> {
    let op = pointwise(node)?;
    let found = numbers(node, op).find(|(own, _)| *own == name);
    if let Some((_, number)) = found {
        return Some(if op.clauses.wraps {
            wrapped(py, number)
        } else {
            to_python(py, Shown::Number(number))
        });
    }
    let (_, fact) = op.clauses.shows.iter().find(|(own, _)| *own == name)?;
    Facts::NONE.show(node, *fact).map(|value| to_python(py, value))
}

/// Returns a number as a 0-dimensional tensor.
fn wrapped(py: Python<'_>, number: Scalar) -> Value<'_> {
    let dtype = match number {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Unsigned(_) => DType::U64,
        Scalar::Complex(..) => DType::C128,
        Scalar::Float(_) => DType::F64,
    };
    class::wrap(py, constant::scalar_tensor(number, Some(dtype))?)
}

/// Returns the names that [`argument`] accepts for a node.
pub fn arguments(node: &Node) -> Vec<&'static str> {
    let Some(op) = pointwise(node) else { return Vec::new() };
    numbers(node, op).map(|(name, _)| name).chain(op.clauses.shows.iter().map(|(name, _)| *name)).collect()
}
