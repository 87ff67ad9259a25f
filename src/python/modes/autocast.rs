//! Autocast: converts the operands of some operators before they run. The rows declare the rule of each
//! operator; the dtype is set per thread.

use crate::base::{DType, watch};
use crate::operator::Autocast;
use crate::ops;
use crate::python::objects::to_tuple;
use crate::python::types::{PyDType, dtype_object};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::{Tensor, mode};
use gradiron_macros::pyfunction;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Converted weights, by address and version, each with its original.
type Converted = HashMap<(usize, u32), (Tensor, Tensor)>;

thread_local! {
    static TO: Cell<Option<DType>> = const { Cell::new(None) };
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static WEIGHTS: RefCell<Option<Converted>> = const { RefCell::new(None) };
}

/// Sets this thread's autocast dtype, or none, and whether autocast is on for any kind of device; returns the old dtype.
#[pyfunction]
pub fn swap_autocast(
    py: Python<'_>,
    dtype: Option<&Bound<'_, PyDType>>,
    cache: bool,
    is_on: bool,
) -> PyResult<Option<Py<PyDType>>> {
    let new = dtype.map(|dtype| dtype.get().0);
    let old = TO.replace(new);
    if IS_ON.replace(is_on) != is_on {
        watch::count(watch::CASTS, is_on);
    }
    let forgotten = WEIGHTS.with_borrow_mut(|weights| match (cache, &weights) {
        (true, None) => weights.replace(HashMap::new()),
        (true, Some(_)) => None,
        (false, _) => weights.take(),
    });
    drop(forgotten);
    old.map(|dtype| dtype_object(py, dtype)).transpose()
}

/// Empties the cache of converted weights.
#[pyfunction]
pub fn clear_autocast_weights() {
    let forgotten = WEIGHTS.with_borrow_mut(|weights| weights.as_mut().map(std::mem::take));
    drop(forgotten);
}

/// Returns the converted arguments of an operator with this rule, or None if nothing changes.
pub fn converted<'py>(
    rule: Option<Autocast>,
    arguments: &[&Bound<'py, PyAny>],
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let (Some(lower), Some(rule)) = (TO.get(), rule) else { return Ok(None) };
    let target = match rule {
        Autocast::Lower => lower,
        Autocast::Single => DType::F32,
        Autocast::Widest if arguments.iter().any(|a| has_single(a)) => DType::F32,
        Autocast::Widest => lower,
    };
    arguments.iter().map(|a| cast(a, target, lower)).collect::<PyResult<Vec<_>>>().map(Some)
}

/// Autocast converts floating point tensors on the CPU, except float64.
fn is_cast(t: &Tensor) -> bool {
    t.dtype().is_float() && t.dtype() != DType::F64 && t.device().is_cpu()
}

fn items<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match object.cast::<PyTuple>() {
        Ok(tuple) => Some(tuple.iter().collect()),
        Err(_) => object.cast::<PyList>().ok().map(|list| list.iter().collect()),
    }
}

fn has_single(object: &Bound<'_, PyAny>) -> bool {
    match object.cast::<PyTensor>() {
        Ok(t) => is_cast(&t.get().tensor) && t.get().tensor.dtype() == DType::F32,
        Err(_) => items(object).is_some_and(|items| {
            let single = |t: &Tensor| is_cast(t) && t.dtype() == DType::F32;
            items.iter().any(|item| item.cast::<PyTensor>().is_ok_and(|t| single(&t.get().tensor)))
        }),
    }
}

fn cast<'py>(object: &Bound<'py, PyAny>, target: DType, lower: DType) -> PyResult<Bound<'py, PyAny>> {
    let one = |object: &Bound<'py, PyAny>| match object.cast::<PyTensor>() {
        Ok(t) => cast_one(object, &t.get().tensor, target, lower),
        Err(_) => Ok(object.clone()),
    };
    match items(object) {
        Some(items) if items.iter().any(|item| item.is_instance_of::<PyTensor>()) => {
            Ok(to_tuple(object.py(), items.len(), items.iter().map(one))?.into_any())
        }
        _ => one(object),
    }
}

fn cast_one<'py>(
    object: &Bound<'py, PyAny>,
    t: &Tensor,
    target: DType,
    lower: DType,
) -> PyResult<Bound<'py, PyAny>> {
    if !is_cast(t) || t.dtype() == target {
        return Ok(object.clone());
    }
    // Each weight is converted once, so that its gradients are also summed in the lower dtype.
    let weight = target == lower
        && t.dtype() == DType::F32
        && t.requires_grad()
        && t.is_leaf()
        && t.as_view().is_none()
        && !t.is_special()
        && mode::grad_enabled();
    let key = (t.id(), if weight { t.version() } else { 0 });
    let known = WEIGHTS.with_borrow(|all| match all {
        Some(all) if weight => all.get(&key).map(|(_, made)| made.clone()),
        _ => None,
    });
    if let Some(made) = known {
        return wrap(object.py(), made);
    }
    let made = ops::creation::create::converted(t, target, None, false)?;
    if weight {
        WEIGHTS.with_borrow_mut(|all| {
            all.as_mut().map(|all| all.insert(key, (t.clone(), made.clone())));
        });
    }
    wrap(object.py(), made)
}
