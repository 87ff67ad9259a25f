//! The arguments that a node keeps beside its tensors, as Python values: `_saved_dim`, `_saved_keepdim`, `_saved_exponent`.

use crate::base::{DType, Dims, Layout, Put, Scalar};
use crate::operator::pointwise::Numbers;
use crate::operator::{History, Ints, Kind, Param, Sizes};
use crate::python::saved::facts::{fact, facts, shown};
use crate::python::saved::names::{row_of_node, torch_name, wraps_numbers};
use crate::python::tensor::methods;
use crate::tensor::Node;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyTuple};
use std::any::Any;

type Value<'py> = PyResult<Bound<'py, PyAny>>;

trait Shown {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py>;
}

macro_rules! plainly {
    ($($ty:ty),*) => { $(impl Shown for $ty {
        fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
            Ok(self.into_pyobject(py)?.to_owned().into_any())
        }
    })* };
}
plainly!(u64, f64, bool);

/// Whole numbers as PyTorch shows them: as they lie in memory, without a sign.
impl Shown for i64 {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
        (*self as u64).show(py)
    }
}
impl Shown for Scalar {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
        match *self {
            Scalar::Bool(b) => b.show(py),
            Scalar::Int(i) => Ok(i.into_pyobject(py)?.into_any()),
            Scalar::Float(f) => f.show(py),
            Scalar::Complex(re, im) => Ok(PyComplex::from_doubles(py, re, im).into_any()),
        }
    }
}
impl Shown for Ints {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
        Ok(PyTuple::new(py, self.iter().map(|&i| i as u64))?.into_any())
    }
}
impl Shown for Sizes {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
        self.0.show(py)
    }
}
impl Shown for Dims {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
        Ok(PyTuple::new(py, self)?.into_any())
    }
}
/// Tensors are saved values, and the rest of these has no name in Python.
macro_rules! never {
    ($($ty:ty),*) => { $(impl Shown for $ty {
        fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
            Ok(py.None().into_bound(py))
        }
    })* };
}
never!(History, Layout, Put);

impl<T: Shown> Shown for Option<T> {
    fn show<'py>(&self, py: Python<'py>) -> Value<'py> {
        match self {
            Some(value) => value.show(py),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

/// Which tuples of arguments rows have; others are not shown.
macro_rules! shown {
    ($py:ident, $params:ident, $at:ident; $(($($n:tt $ty:ty),+);)*) => {
        $(if let Some(tuple) = $params.downcast_ref::<($($ty,)+)>() {
            let values: &[&dyn Shown] = &[$(&tuple.$n),+];
            return values.get($at).map(|value| value.show($py));
        })*
    };
}

fn value<'py>(py: Python<'py>, params: &(dyn Any + Send + Sync), at: usize) -> Option<Value<'py>> {
    shown! { py, params, at;
        (0 i64); (0 f64); (0 Ints); (0 Sizes); (0 Dims); (0 Scalar); (0 Option<Ints>);
        (0 i64, 1 i64); (0 i64, 1 bool); (0 History, 1 bool); (0 i64, 1 History); (0 i64, 1 Ints); (0 Ints, 1 bool); (0 Ints, 1 Option<Ints>);
        (0 Option<Ints>, 1 bool); (0 Option<i64>, 1 bool); (0 Scalar, 1 Scalar);
        (0 i64, 1 i64, 2 i64); (0 i64, 1 History, 2 Scalar); (0 i64, 1 History, 2 Put); (0 Option<Ints>, 1 Option<f64>, 2 bool); (0 f64, 1 Option<Ints>, 2 bool);
        (0 Ints, 1 Ints, 2 Option<i64>, 3 Layout);
        (0 Ints, 1 Ints, 2 Option<i64>); (0 i64, 1 Option<i64>, 2 Option<i64>, 3 i64);
    }
    None
}

/// Nodes that keep other arguments than their rows take.
const OWN: &[(&str, &[&str])] = &[];

/// The names of a node's arguments, in order, each with its place among them.
fn names(node: &Node) -> Vec<(&'static str, usize)> {
    let name = node.name();
    if let Some((_, own)) = OWN.iter().find(|(n, _)| *n == name) {
        return own.iter().enumerate().filter(|(_, n)| !n.is_empty()).map(|(at, n)| (*n, at)).collect();
    }
    let (Some(row), Some(params)) = (row_of_node(node), &node.params) else { return Vec::new() };
    if let Some(numbers) = params.downcast_ref::<Numbers>() {
        // A pointwise call's numbers stand where its operands do.
        let number = |i: &usize| numbers.get(*i).is_some_and(Option::is_some);
        return (0..row.params.len()).filter(number).map(|i| (torch_name(row.params[i].name), i)).collect();
    }
    let tensors = row.params.iter().take_while(|p| matches!(p.kind, Kind::Tensor | Kind::Operand)).count();
    // A tensor among the arguments is a parameter like the inputs before it, but a saved value.
    let first = tensors.min(node.edges.len());
    let beside = |p: &Param| !matches!(p.kind, Kind::Tensor | Kind::Any);
    let arguments = row.params[first..].iter().enumerate();
    arguments.filter(|(_, p)| beside(p)).map(|(at, p)| (torch_name(p.name), at)).collect()
}

/// The argument `name` of a node's call.
pub fn argument<'py>(py: Python<'py>, node: &Node, name: &str) -> Option<Value<'py>> {
    given(py, node, name).or_else(|| fact(node, name).map(|value| shown(py, value)))
}

fn given<'py>(py: Python<'py>, node: &Node, name: &str) -> Option<Value<'py>> {
    let at = names(node).iter().find(|(n, _)| *n == name)?.1;
    let params = node.params.as_ref()?;
    let value = match params.downcast_ref::<Numbers>() {
        Some(numbers) => {
            let number = (*numbers.get(at)?)?;
            if wraps_numbers(node) { wrapped(py, number) } else { number.show(py) }
        }
        None => value(py, params.as_ref(), at)?,
    };
    Some(match (value, name) {
        // Rows take these as floats; PyTorch keeps them as they were given, and few give whole numbers as floats.
        (Ok(value), "correction" | "ord" | "threshold" | "value") => plain_number(value),
        (Ok(value), "beta") if node.name() == "SoftplusBackward0" => plain_number(value),
        (value, _) => value,
    })
}

/// A whole number without its point.
fn plain_number(value: Bound<'_, PyAny>) -> Value<'_> {
    match value.extract::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Ok((number as i64).into_pyobject(value.py())?.into_any())
        }
        _ => Ok(value),
    }
}

/// A number that took part as a tensor.
fn wrapped(py: Python<'_>, number: Scalar) -> Value<'_> {
    let dtype = match number {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Complex(..) => DType::C128,
        Scalar::Float(_) => DType::F64,
    };
    methods::wrap(py, crate::ops::creation::create::scalar_tensor(number, Some(dtype))?)
}

/// The names that [`argument`] knows for a node.
pub fn arguments(py: Python<'_>, node: &Node) -> Vec<&'static str> {
    let known = |(name, _): &(&'static str, usize)| argument(py, node, name).is_some();
    names(node).into_iter().filter(known).map(|(name, _)| name).chain(facts(node)).collect()
}
