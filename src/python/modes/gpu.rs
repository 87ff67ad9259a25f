//! The functions behind `gradiron.cuda`: the adapter, its memory, its generator, and counters.

use crate::gpu;
use crate::operator::row::generator::Generator;
use gradiron_macros::pyfunction;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns true if there is a usable adapter; the first call looks for one.
#[pyfunction]
fn is_available(py: Python<'_>) -> bool {
    py.detach(gpu::available)
}

#[pyfunction]
fn device_count(py: Python<'_>) -> usize {
    py.detach(gpu::count)
}

/// Returns true if the adapter was opened already.
#[pyfunction]
fn is_open() -> bool {
    gpu::is_open()
}

/// Opens the adapter; raises if there is none, or if the index is not 0.
#[pyfunction]
fn check(py: Python<'_>, index: u8) -> PyResult<()> {
    Ok(py.detach(|| gpu::check_ordinal(index))?)
}

#[pyfunction]
fn properties(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = py.detach(gpu::info)?;
    let dict = PyDict::new(py);
    dict.set_item("name", info.name)?;
    dict.set_item("backend", info.backend)?;
    dict.set_item("driver", info.driver)?;
    dict.set_item("total_memory", info.total_memory.unwrap_or(0))?;
    dict.set_item("max_buffer", info.max_buffer)?;
    dict.set_item("shared_memory_per_block", info.max_workgroup_memory)?;
    dict.set_item("is_integrated", info.integrated)?;
    dict.set_item("is_software", info.software)?;
    dict.set_item("has_int64", info.has_i64)?;
    dict.set_item("has_float64", info.has_f64)?;
    dict.set_item("features", info.features)?;
    Ok(dict)
}

/// Waits for the GPU; raises the errors that its kernels reported.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    Ok(py.detach(gpu::synchronize)?)
}

#[pyfunction]
fn memory(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let memory = gpu::memory();
    let dict = PyDict::new(py);
    for (name, value) in [
        ("allocated", memory.allocated),
        ("max_allocated", memory.max_allocated),
        ("reserved", memory.reserved),
        ("max_reserved", memory.max_reserved),
        ("requests", memory.requests),
        ("creations", memory.creations),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

#[pyfunction]
fn reset_peak() {
    gpu::reset_peak();
}

#[pyfunction]
fn empty_cache(py: Python<'_>) {
    py.detach(gpu::empty_cache);
}

/// Returns the numbers of submitted batches and of dispatched kernels since the start.
#[pyfunction]
fn work() -> (u64, u64) {
    (gpu::submits(), gpu::dispatches())
}

/// Returns how often the host waited for the GPU since the start.
#[pyfunction]
fn waits() -> u64 {
    gpu::waits()
}

/// Called at exit: warns about kernel errors that no later call raised.
#[pyfunction]
fn report_faults(py: Python<'_>) -> PyResult<()> {
    let Err(error) = py.detach(gpu::report_faults) else { return Ok(()) };
    let text = format!("The GPU reported an error after the last call that could raise it: {error}");
    let message = std::ffi::CString::new(text).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyRuntimeWarning>(), &message, 1)
}

#[pyfunction]
fn manual_seed(seed: u64) {
    Generator::global().stream().set_gpu_state(seed, 0);
}

/// Returns the seed, and the number of blocks of four numbers drawn so far.
#[pyfunction]
fn generator_state() -> (u64, u64) {
    Generator::global().stream().gpu_state()
}

#[pyfunction]
fn set_generator_state(seed: u64, offset: u64) {
    Generator::global().stream().set_gpu_state(seed, offset);
}

pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    let module = PyModule::new(py, "_gpu")?;
    macro_rules! add {
        ($($function:ident),* $(,)?) => { $(module.add_function(wrap_pyfunction!($function, &module)?)?;)* };
    }
    add!(
        is_available,
        device_count,
        is_open,
        check,
        properties,
        synchronize,
        memory,
        reset_peak,
        empty_cache,
        work,
        waits,
        report_faults,
        manual_seed,
        generator_state,
        set_generator_state,
    );
    py.import("atexit")?.call_method1("register", (module.getattr("report_faults")?,))?;
    Ok(module)
}
