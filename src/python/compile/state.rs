//! What a call of a compiled function is given: the modes of its thread, and its tensors.

use crate::base::{self, DType, profile};
use crate::capture::{self, Asked};
use crate::python::call::overrides;
use crate::python::objects::number_object;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::python::wrapper::host_state;
use crate::tensor::levels::{func, tangents, vmap};
use crate::tensor::{anomaly, mode, saved_hooks};
use gradiron_macros::pyfunction;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;

/// Returns a number for the modes of this thread that decide what operators do; None where calls are not captured: inside of
/// a transform or a dual level, where overrides are off, with hooks for saved tensors, or with anomaly detection.
#[pyfunction]
pub fn thread_modes() -> Option<u32> {
    let is_captured_here = !(func::any()
        || vmap::is_under_way()
        || tangents::any_level()
        || overrides::overrides_off() != 0
        || anomaly::enabled()
        || saved_hooks::top().is_some()
        || !matches!(saved_hooks::disabled_message(), Ok(None)));
    let switches = [mode::grad_switch(), mode::inference(), tangents::enabled(), profile::on()];
    let bits = switches.iter().fold(0, |bits, &on| (bits << 1) | u32::from(on));
    is_captured_here.then(|| (u32::from(base::default_dtype() as u8) << switches.len()) | bits)
}

/// Returns bytes that tell the kinds of tensors: data type, shape, whether they require gradients and are on the CPU. None
/// unless all objects are plain tensors without attributes of Python's, each once.
#[pyfunction]
pub fn tensor_kinds<'py>(objects: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyBytes>> {
    kinds_of(objects).map(|kinds| PyBytes::new(objects.py(), &kinds))
}

/// What [`tensor_kinds`] returns.
pub fn kinds_of(objects: &Bound<'_, PyTuple>) -> Option<SmallVec<[u8; 128]>> {
    let mut kinds = SmallVec::<[u8; 128]>::new();
    for (at, object) in objects.iter_borrowed().enumerate() {
        let tensor = object.cast_exact::<PyTensor>().ok()?;
        let is_earlier = |other: Borrowed<'_, '_, PyAny>| other.is(&*object);
        if host_state::has_attributes(&tensor) || objects.iter_borrowed().take(at).any(is_earlier) {
            return None;
        }
        let (own, body) = (&tensor.get().tensor, tensor.get().tensor.body());
        let flags = (u8::from(own.requires_grad()) << 1) | u8::from(body.device().is_cpu());
        kinds.extend([body.dtype as u8, flags, u8::try_from(body.shape().len()).ok()?]);
        body.shape().iter().for_each(|size| kinds.extend(size.to_ne_bytes()));
    }
    Some(kinds)
}

/// Returns the number in a tensor of one element, which this thread's capture compares before it goes on in a replay: its
/// truth only, if `truth` is true.
#[pyfunction]
pub fn decide<'py>(tensor: &Bound<'py, PyTensor>, truth: bool) -> PyResult<Bound<'py, PyAny>> {
    let asked = if truth { Asked::Truth } else { Asked::Value };
    number_object(tensor.py(), capture::decide(&tensor.get().tensor, asked)?)
}

/// Returns the number in a tensor of one element that each replay reads anew.
#[pyfunction]
pub fn read_captured<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    number_object(tensor.py(), capture::read(&tensor.get().tensor)?)
}

/// Returns a new tensor without dimensions that holds a number: in each replay the one at this index of the live numbers. Its
/// dtype is float64 if `double` is true, float32 otherwise.
#[pyfunction]
pub fn live_tensor(py: Python<'_>, number: f64, index: u32, double: bool) -> PyResult<Bound<'_, PyAny>> {
    let dtype = if double { DType::F64 } else { DType::F32 };
    wrap(py, capture::live_tensor(number, index, dtype)?)
}
