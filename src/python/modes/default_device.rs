//! The default device of a thread: `set_thread_device` and `with device(…)`.

use crate::base::{Device, watch};
use crate::python::types::{PyDevice, device_from};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;

thread_local! {
    static DEVICES: RefCell<Vec<Option<PyDevice>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the innermost default device.
pub fn chosen() -> Option<Device> {
    if !watch::has(watch::DEVICE) {
        return None;
    }
    DEVICES.with_borrow(|all| all.iter().rev().find_map(|place| place.map(|p| p.place())))
}

/// Returns the default device as it was given, with or without an index.
#[pyfunction]
pub fn thread_device(py: Python<'_>) -> PyResult<Option<Py<PyDevice>>> {
    let place = DEVICES.with_borrow(|all| all.iter().rev().find_map(|place| *place));
    place.map(|place| Py::new(py, place)).transpose()
}

/// Sets the default device outside of all `with` statements.
#[pyfunction]
pub fn set_thread_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let new = device.map(|device| match device.cast::<PyDevice>() {
        Ok(device) => Ok(*device.get()),
        Err(_) => device_from(device).map(PyDevice::of),
    });
    let new = new.transpose()?;
    let old = DEVICES.with_borrow_mut(|all| match all.first_mut() {
        Some(first) => std::mem::replace(first, new),
        None => {
            all.push(new);
            None
        }
    });
    if old.is_some() != new.is_some() {
        watch::count(watch::DEVICE, new.is_some());
    }
    Ok(())
}

pub fn enter(device: PyDevice) {
    DEVICES.with_borrow_mut(|all| {
        if all.is_empty() {
            all.push(None);
        }
        all.push(Some(device));
    });
    watch::count(watch::DEVICE, true);
}

pub fn leave() {
    let left = DEVICES.with_borrow_mut(|all| if all.len() > 1 { all.pop() } else { None });
    if left.is_some() {
        watch::count(watch::DEVICE, false);
    }
}

#[pymethods]
impl PyDevice {
    /// Makes this the default device until the end of the `with` statement.
    fn __enter__(slf: Bound<'_, PyDevice>) -> Bound<'_, PyDevice> {
        enter(*slf.get());
        slf
    }
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        leave();
    }
}
