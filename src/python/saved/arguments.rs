//! The numbers that a pointwise node keeps beside its tensors, and what its row says of every call, as Python values:
//! `_saved_exponent`, `_saved_alpha`.

use crate::base::{DType, Scalar};
use crate::operator::pointwise::{Numbers, Pointwise};
use crate::operator::{constant, saved_name};
use crate::python::objects::{made, to_tuple};
use crate::python::saved::names::pointwise;
use crate::python::wrapper::class;
use crate::tensor::Node;
use crate::tensor::facts::{Facts, Shown};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex};

type Value<'py> = PyResult<Bound<'py, PyAny>>;

/// A value that a node keeps, as Python sees it.
pub fn shown(py: Python<'_>, value: Shown) -> Value<'_> {
    Ok(match value {
        Shown::Nothing => py.None().into_bound(py),
        Shown::Bool(flag) | Shown::Number(Scalar::Bool(flag)) => PyBool::new(py, flag).to_owned().into_any(),
        Shown::Int(i) => made(py, i as u64)?,
        Shown::Ints(all) => to_tuple(py, all.len(), all.into_iter().map(|i| made(py, i as u64)))?.into_any(),
        Shown::Float(f) | Shown::Number(Scalar::Float(f)) => made(py, f)?,
        Shown::Number(Scalar::Int(i)) => made(py, i)?,
        Shown::Number(Scalar::Complex(re, im)) => PyComplex::from_doubles(py, re, im).into_any(),
        Shown::Text(text) => made(py, text)?,
    })
}

/// The names of a call's numbers, and the numbers.
fn numbers(node: &Node, op: &'static Pointwise) -> impl Iterator<Item = (&'static str, Scalar)> {
    let kept = node.params.as_ref().and_then(|params| params.downcast_ref::<Numbers>());
    // They are numbered as the operands are.
    let given = kept.into_iter().flat_map(|numbers| numbers.iter());
    given.zip(op.row.params).filter_map(|(number, param)| Some((saved_name(param.name), (*number)?)))
}

/// The argument `name` of a node's call.
pub fn argument<'py>(py: Python<'py>, node: &Node, name: &str) -> Option<Value<'py>> {
    let op = pointwise(node)?;
    let found = numbers(node, op).find(|(own, _)| *own == name);
    if let Some((_, number)) = found {
        return Some(if op.clauses.wraps { wrapped(py, number) } else { shown(py, Shown::Number(number)) });
    }
    let (_, fact) = op.clauses.shows.iter().find(|(own, _)| *own == name)?;
    Facts::NONE.show(node, *fact).map(|value| shown(py, value))
}

/// A number that was converted to a tensor.
fn wrapped(py: Python<'_>, number: Scalar) -> Value<'_> {
    let dtype = match number {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Complex(..) => DType::C128,
        Scalar::Float(_) => DType::F64,
    };
    class::wrap(py, constant::scalar_tensor(number, Some(dtype))?)
}

/// The names that [`argument`] knows for a node.
pub fn arguments(node: &Node) -> Vec<&'static str> {
    let Some(op) = pointwise(node) else { return Vec::new() };
    numbers(node, op).map(|(name, _)| name).chain(op.clauses.shows.iter().map(|(name, _)| *name)).collect()
}
