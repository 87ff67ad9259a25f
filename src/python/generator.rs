//! Random number generators as Python objects.

use crate::base::{DType, Device};
use crate::capture;
use crate::operator::primitives::{copies, detached};
use crate::operator::row::generator::Generator;
use crate::python::types::{PyDevice, device_from, device_object};
use crate::python::wrapper::class;
use crate::python::wrapper::class::PyTensor;
use crate::storage::reserve;
use crate::tensor::{Body, Tensor};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A generator of random numbers with a state of its own.
///
/// Args:
///     device: device on which numbers are drawn. Default: `"cpu"`
///
/// Examples:
///     >>> generator = torch.Generator().manual_seed(1)
///     >>> generator.initial_seed()
///     1
///     >>> torch.rand(2, generator=generator).shape
///     torch.Size([2])
#[pyclass(frozen, name = "Generator", module = "gradiron")]
pub struct PyGenerator(pub Generator);

/// Reads a seed as PyTorch does: a negative seed is taken modulo 2^64.
fn seed_from(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let whole = object.py().get_type::<pyo3::types::PyInt>().call1((object,))?;
    if let Ok(seed) = whole.extract::<i64>() {
        return Ok(seed as u64);
    }
    whole.extract::<u64>().map_err(|_| PyValueError::new_err("Overflow when unpacking long long"))
}

fn state_tensor(generator: &Generator) -> PyResult<Tensor> {
    let len = generator.stream().cpu.state().len();
    let body = Body::new(&[len], DType::U8, Device::Cpu)?;
    let write = |generator: &Generator, body: &Body| {
        let bytes = generator.stream().cpu.state();
        // SAFETY: the body has room for as many bytes as each state has.
        unsafe { body.host()?.ptr.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    };
    let keep = |recorder: &mut capture::Recorder| {
        recorder.varies();
        let (generator, body) = (generator.clone(), recorder.stand_in(&body)?);
        Ok(move || write(&generator, &body))
    };
    capture::run(keep, || write(generator, &body))?;
    Ok(Tensor::new(body))
}

fn restore(generator: &Generator, state: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(t) = state.cast::<PyTensor>().ok().map(|t| &t.get().tensor).filter(|t| t.dtype() == DType::U8)
    else {
        return Err(PyTypeError::new_err("RNG state must be a torch.ByteTensor"));
    };
    let host = copies::to_device(&detached::shallow(t), Device::Cpu)?;
    let dense = crate::operator::bodies::duplicate(&host.body())?;
    let read = |generator: &Generator, dense: &Body| {
        // SAFETY: the body is contiguous and holds that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(dense.host()?.ptr, dense.numel()) };
        generator.stream().cpu.set_state(bytes)
    };
    let keep = |recorder: &mut capture::Recorder| {
        // It changes which numbers are drawn, as a draw does.
        recorder.draw(generator);
        let (generator, dense) = (generator.clone(), recorder.reading(|recorder| recorder.stand_in(&dense))?);
        Ok(move || read(&generator, &dense))
    };
    capture::run(keep, || read(generator, &dense))?;
    Ok(())
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(device: Option<&Bound<'_, PyAny>>) -> PyResult<PyGenerator> {
        reserve::check()?;
        let device = device.filter(|d| !d.is_none()).map_or(Ok(Device::Cpu), device_from)?;
        if device.is_meta() {
            return Err(PyRuntimeError::new_err("META device type not an accelerator."));
        }
        Ok(PyGenerator(Generator::new(device)))
    }
    /// Seed the generator; the same seed gives the same numbers.
    ///
    /// Args:
    ///     seed: an integer of 64 bits.
    fn manual_seed<'py>(
        slf: &Bound<'py, PyGenerator>,
        seed: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenerator>> {
        let seed = seed_from(seed)?;
        slf.get().0.stream().manual_seed(seed);
        Ok(slf.clone())
    }
    /// Seed the generator with an unpredictable number, and return it.
    fn seed(&self) -> u64 {
        self.0.stream().seed()
    }
    /// Return the last seed.
    fn initial_seed(&self) -> u64 {
        self.0.stream().cpu.initial_seed()
    }
    /// Return the state, as a tensor of bytes.
    fn get_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        class::wrap(py, state_tensor(&self.0)?)
    }
    /// Return to a state.
    ///
    /// Args:
    ///     new_state: what `get_state` returned.
    fn set_state<'py>(
        slf: &Bound<'py, PyGenerator>,
        new_state: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenerator>> {
        restore(&slf.get().0, new_state)?;
        Ok(slf.clone())
    }
    /// Return another generator with the same state.
    fn clone_state(&self) -> PyGenerator {
        PyGenerator(self.0.copy())
    }
    /// The device on which the numbers are drawn.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device_object(py, self.0.device)
    }
}

/// Returns the default generator, always the same object.
#[pyfunction]
pub fn global_generator(py: Python<'_>) -> PyResult<Py<PyGenerator>> {
    static OBJECT: PyOnceLock<Py<PyGenerator>> = PyOnceLock::new();
    let made = OBJECT.get_or_try_init(py, || Py::new(py, PyGenerator(Generator::global().clone())))?;
    Ok(made.clone_ref(py))
}
