//! What PyTorch's nodes keep and ours need not: the sizes of inputs, and arguments that a row's name says already. Asked
//! for as `_saved_self_sym_sizes`, `_saved_alpha`, `_saved_reduction`.

use crate::base::Scalar;
use crate::python::saved::names::row_of_node;
use crate::tensor::Node;
use crate::tensor::facts::Fact::{self, Int, Nothing, Text};
use crate::tensor::facts::{Facts, Shown};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyTuple};

/// By the name of a node, or of a row where several share one.
const FACTS: &[(&[&str], &str, Fact)] = &[
    (&["AddBackward0", "SubBackward0", "RsubBackward0", "RsubBackward1"], "alpha", Int(1)),
    (&["EluBackward0", "EluBackward1"], "input_scale", Int(1)),
    (&["EluBackward0", "EluBackward1"], "scale", Int(1)),
    (&["pow_square"], "exponent", Int(2)),
    (&["pow_one"], "exponent", Int(1)),
    (&["gelu_erf"], "approximate", Text("none")),
    (&["gelu_tanh"], "approximate", Text("tanh")),
    (&["floor_quotient"], "rounding_mode", Text("floor")),
    (&["trunc_quotient"], "rounding_mode", Text("trunc")),
    (&["logit_free"], "eps", Nothing),
    (&["clamp_low", "clamp_from"], "max", Nothing),
    (&["clamp_high", "clamp_upto"], "min", Nothing),
];

fn of(node: &Node) -> impl Iterator<Item = (&'static str, Fact)> {
    let (name, row) = (node.name(), row_of_node(node).map(|row| row.name));
    let mine = move |names: &[&str]| names.iter().any(|n| *n == name || Some(*n) == row);
    FACTS.iter().filter(move |(names, ..)| mine(names)).map(|(_, attribute, fact)| (*attribute, *fact))
}

/// The names that [`fact`] knows for a node.
pub fn facts(node: &Node) -> impl Iterator<Item = &'static str> {
    of(node).filter(|(_, fact)| Facts::OLD.show(node, *fact).is_some()).map(|(attribute, _)| attribute)
}

/// The attribute `name` of a node, when it is one of these.
pub fn fact(node: &Node, name: &str) -> Option<Shown> {
    of(node).filter(|(attribute, _)| *attribute == name).find_map(|(_, fact)| Facts::OLD.show(node, fact))
}

/// A value that a node keeps, as Python sees it.
pub fn shown(py: Python<'_>, value: Shown) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Shown::Nothing => py.None().into_bound(py),
        Shown::Bool(flag) | Shown::Number(Scalar::Bool(flag)) => {
            flag.into_pyobject(py)?.to_owned().into_any()
        }
        Shown::Int(i) => (i as u64).into_pyobject(py)?.into_any(),
        Shown::Ints(all) => PyTuple::new(py, all.into_iter().map(|i| i as u64))?.into_any(),
        Shown::Float(f) | Shown::Number(Scalar::Float(f)) => f.into_pyobject(py)?.into_any(),
        Shown::Number(Scalar::Int(i)) => i.into_pyobject(py)?.into_any(),
        Shown::Number(Scalar::Complex(re, im)) => PyComplex::from_doubles(py, re, im).into_any(),
        Shown::Text(text) => text.into_pyobject(py)?.into_any(),
    })
}
