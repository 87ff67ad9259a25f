//! `__torch_function__`: a call with an argument whose class defines it is handed to that class. While no
//! such class exists nothing is checked, except after a call failed because an argument was not a tensor.

use crate::base::watch;
use crate::python::objects::tuple;
use crate::python::wrapper::class::PyTensor;
use gradiron_macros::pyfunction;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::cell::Cell;

thread_local! {
    /// The overrides that are off in this thread: none, those of classes, or those of modes, too.
    static OFF: Cell<u8> = const { Cell::new(0) };
    static MODES: Cell<usize> = const { Cell::new(0) };
}

const CLASSES: u8 = 1;
const ALL: u8 = 2;

/// Calls a function without overrides.
#[pyfunction]
#[pyo3(signature = (*args, **_kwargs))]
pub fn _disabled_torch_function_impl<'py>(
    args: &Bound<'py, PyTuple>,
    _kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = args.get_item(0)?;
    // For a class method, the class comes first.
    let at = usize::from(function.is_instance_of::<pyo3::types::PyType>());
    let function = args.get_item(at)?;
    let empty = PyTuple::empty(args.py());
    let given =
        args.get_item(at + 2).ok().map_or(Ok(empty), |a| a.cast_into::<PyTuple>().map_err(PyErr::from))?;
    let named = args.get_item(at + 3).ok().filter(|k| !k.is_none());
    let old = OFF.replace(OFF.get().max(CLASSES));
    let done = function.call(given, named.as_ref().and_then(|k| k.cast::<PyDict>().ok()));
    OFF.set(old);
    done
}

/// Sets whether the overrides of classes (1), or also of modes (2), are off in this thread; returns the old
/// setting.
#[pyfunction]
pub fn swap_overrides_off(off: u8) -> u8 {
    OFF.replace(off)
}

#[pyfunction]
pub fn overrides_off() -> u8 {
    OFF.get()
}

/// Counts one more, or one less, class or object with overrides.
#[pyfunction]
pub fn expect_overrides(more: bool) {
    watch::count(watch::OVERRIDES, more);
}

/// Sets how many override modes are active in this thread.
#[pyfunction]
pub fn set_override_modes(count: usize) {
    let old = MODES.replace(count);
    if (old == 0) != (count == 0) {
        watch::count(watch::OVERRIDES, count > 0);
    }
}

/// Returns true if a call with this object must be offered to its class or to a mode.
pub fn may_be_overridden(object: &Bound<'_, PyAny>) -> bool {
    watch::has(watch::OVERRIDES) && (MODES.get() > 0 || overrides(object))
}

/// Returns true if the object's class defines `__torch_function__`.
pub fn overrides(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let kind = object.get_type();
    let plain = [
        kind.is(py.get_type::<PyTensor>()),
        kind.is(py.get_type::<PyInt>()),
        kind.is(py.get_type::<PyFloat>()),
        kind.is(py.get_type::<PyBool>()),
        kind.is(py.get_type::<PyString>()),
    ];
    if plain.contains(&true) || object.is_none() {
        return false;
    }
    let Ok(own) = kind.getattr_opt(intern!(py, "__torch_function__")) else { return false };
    own.is_some_and(|own| !is_disabled(&own))
}

fn is_disabled(own: &Bound<'_, PyAny>) -> bool {
    let core = own.py().import(intern!(own.py(), "gradiron._core"));
    core.and_then(|core| core.getattr("_disabled_torch_function_impl"))
        .is_ok_and(|disabled| own.is(&disabled))
}

/// Collects the objects whose classes may override the call, including items of lists.
fn overriding_objects<'py>(arguments: &[&Bound<'py, PyAny>]) -> Vec<Bound<'py, PyAny>> {
    let mut found: Vec<Bound<'py, PyAny>> = Vec::new();
    for object in arguments {
        if let Ok(tuple) = object.cast::<PyTuple>() {
            found.extend(tuple.iter().filter(overrides));
        } else if let Ok(list) = object.cast::<PyList>() {
            found.extend(list.iter().filter(overrides));
        } else if overrides(object) {
            found.push((*object).clone());
        }
    }
    found
}

/// A call as overrides get it.
pub struct OverrideCall<'a, 'py> {
    pub py: Python<'py>,
    /// Looks up the public function, only when an override takes the call.
    pub function: &'a dyn Fn() -> PyResult<Bound<'py, PyAny>>,
    pub receiver: Option<&'a Bound<'py, PyAny>>,
    pub given: &'a [Bound<'py, PyAny>],
    pub keywords: &'a [(String, Bound<'py, PyAny>)],
}

impl<'py> OverrideCall<'_, 'py> {
    /// Offers the call to modes and classes; returns the result if one takes it.
    #[cold]
    pub fn taken(&self) -> Option<PyResult<Bound<'py, PyAny>>> {
        let off = OFF.get();
        if off >= ALL {
            return None;
        }
        let all: Vec<&Bound<'py, PyAny>> = self
            .receiver
            .into_iter()
            .chain(self.given)
            .chain(self.keywords.iter().map(|(_, value)| value))
            .collect();
        let found = if off == 0 { overriding_objects(&all) } else { Vec::new() };
        if found.is_empty() && MODES.get() == 0 {
            return None;
        }
        Some(self.hand_over(found))
    }

    fn hand_over(&self, found: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let args = tuple(py, self.receiver.into_iter().chain(self.given).cloned().collect::<Vec<_>>())?;
        let named = (!self.keywords.is_empty()).then(|| PyDict::new(py));
        if let Some(named) = &named {
            self.keywords.iter().try_for_each(|(name, value)| named.set_item(name, value))?;
        }
        let module = py.import(intern!(py, "gradiron.overrides"))?;
        module.getattr("_dispatch")?.call1(((self.function)()?, tuple(py, found)?, args, named))
    }

    /// Offers a call of a method that is no operator, as a call of `Tensor.name`.
    #[cold]
    pub fn of_method(
        name: &'static str,
        own: &Bound<'py, PyAny>,
        keywords: &[(String, Bound<'py, PyAny>)],
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        let py = own.py();
        let function = || py.get_type::<PyTensor>().getattr(name);
        let asked = OverrideCall { py, function: &function, receiver: Some(own), given: &[], keywords };
        overrides(own).then(|| asked.taken()).flatten()
    }

    /// Offers a Python operator such as `+`, by the name of its slot.
    #[cold]
    pub fn of_slot(
        slot: &'static str,
        own: &Bound<'py, PyAny>,
        others: &[Bound<'py, PyAny>],
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        let py = own.py();
        let function = || Ok(PyString::new(py, slot).into_any());
        OverrideCall { py, function: &function, receiver: Some(own), given: others, keywords: &[] }.taken()
    }

    /// Offers the reading or writing of a tensor's part, by the name of its slot.
    #[cold]
    pub fn of_part(
        slot: &'static str,
        own: &Bound<'py, PyAny>,
        given: &[Bound<'py, PyAny>],
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        let py = own.py();
        let function = || py.get_type::<PyTensor>().getattr(slot);
        OverrideCall { py, function: &function, receiver: Some(own), given, keywords: &[] }.taken()
    }

    /// Offers a call that failed for an argument's type to that argument's class.
    #[cold]
    pub fn or_taken(&self, error: PyErr) -> PyResult<Bound<'py, PyAny>> {
        if !error.is_instance_of::<PyTypeError>(self.py) {
            return Err(error);
        }
        self.taken().unwrap_or(Err(error))
    }
}
