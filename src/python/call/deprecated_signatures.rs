//! Deprecated signatures with numbers before tensors: `x.add_(2, y)` for `x.add_(y, alpha=2)`,
//! `x.addmm(beta, alpha, a, b)`. They are tried when a call fits no signature.

use crate::base::warn_once;
use crate::operator::{Forms, Kind, Row};
use crate::python::call::signature::Call;
use crate::python::wrapper::class::PyTensor;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use std::sync::atomic::AtomicBool;

/// The arguments of a call in the current order.
pub struct Reordered<'py> {
    pub positional: Vec<Bound<'py, PyAny>>,
    pub keywords: Vec<(String, Bound<'py, PyAny>)>,
}

/// Returns the names of the factors of a row (`alpha`, `beta`, `value`), which are keyword-only today.
fn factors(row: &Row) -> Vec<&'static str> {
    if row.forms.has(Forms::ALPHA) {
        return vec!["alpha"];
    }
    let scalars = row.params.iter().filter(|p| p.default.is_some() && matches!(p.kind, Kind::Scalar));
    let names: Vec<_> = scalars.map(|p| p.name).collect();
    if matches!(names[..], ["value"] | ["beta", "alpha"]) { names } else { Vec::new() }
}

/// Reorders a call's arguments if its numbers stand where a deprecated signature had them.
#[cold]
pub fn reorder<'py>(row: &Row, call: &Call<'_, 'py>) -> PyResult<Option<Reordered<'py>>> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let names = factors(row);
    let is_number = |object: &Bound<'py, PyAny>| {
        (object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>())
            && !object.is_instance_of::<PyBool>()
    };
    let (numbers, tensors): (Vec<_>, Vec<_>) =
        call.positional.iter().enumerate().partition(|(_, object)| is_number(object));
    let places: Vec<usize> = numbers.iter().map(|(at, _)| *at).collect();
    let method = call.receiver.is_some();
    let fits = matches!(
        (method, names.len(), &places[..]),
        (true, 1 | 2, [0]) | (true, 2, [0, 1]) | (false, 1, [1]) | (false, 2, [0] | [0, 2])
    );
    // A tensor must follow the number, too: `rsub(x, 2)` is no deprecated call.
    if !fits
        || tensors.len() < 2 - usize::from(method)
        || tensors.iter().any(|(_, object)| object.cast::<PyTensor>().is_err())
    {
        return Ok(None);
    }
    warn_once(
        &TOLD,
        &format!(
            "This overload of {} is deprecated:\nits numbers stand before its tensors. Name them instead: {}=…",
            call.name,
            names[..places.len()].join("=…, ")
        ),
    )?;
    let mut keywords = call.keywords.to_vec();
    keywords
        .extend(names.iter().zip(numbers).map(|(name, (_, number))| ((*name).to_string(), number.clone())));
    Ok(Some(Reordered { positional: tensors.into_iter().map(|(_, t)| t.clone()).collect(), keywords }))
}
