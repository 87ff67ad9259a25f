//! The Python face: the only room that knows PyO3.

mod anomaly;
mod arrays;
mod attributes;
mod autocast;
mod autograd;
mod batch;
mod collector;
mod context;
mod custom;
mod deep;
mod dlpack;
mod errors;
mod facts;
mod forward;
mod function;
#[cfg(feature = "gpu")]
mod gpu;
mod graph;
mod hooks;
mod hung;
mod identity;
mod index;
mod lists;
mod nested;
mod node;
mod out;
mod outputs;
mod overloads;
mod overrides;
mod parse;
mod places;
mod profile;
mod program;
mod random;
mod replace;
mod rings;
mod saved_args;
mod saved_facts;
mod saved_names;
mod saving;
mod size;
mod storage;
mod table;
mod tensor;
mod threads;
mod transform;
mod types;

use crate::base::DType;
use crate::ops;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};

/// The floating point dtype of numbers and of new tensors.
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Py<types::PyDType>> {
    tensor::default_dtype(py)
}

/// Makes another floating point dtype the default.
#[pyfunction]
#[pyo3(signature = (d, /))]
fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    const ONLY_FLOATS: &str = "only floating-point types are supported as the default type";
    match d.cast::<types::PyDType>().map(|d| d.get().0) {
        Ok(dtype) if tensor::FLOATS.contains(&dtype) => ops::create::set_default_dtype(dtype),
        Ok(_) => return Err(PyTypeError::new_err(ONLY_FLOATS)),
        Err(_) => return Err(PyTypeError::new_err(format!("invalid dtype object: {ONLY_FLOATS}"))),
    }
    Ok(())
}

/// The dtype that both convert to without loss of range.
#[pyfunction]
fn promote_types(
    py: Python<'_>,
    type1: &Bound<'_, PyAny>,
    type2: &Bound<'_, PyAny>,
) -> PyResult<Py<types::PyDType>> {
    let read = |name, at, object| overloads::dtype_argument("promote_types", name, Some(at), object);
    types::dtype_object(py, read("type1", 1, type1)?.promote(read("type2", 2, type2)?))
}

/// Whether warnings that are told once are told each time from now on.
#[pyfunction]
fn set_warn_always(b: bool) {
    crate::base::caution::set_always(b);
}

#[pyfunction]
fn is_warn_always_enabled() -> bool {
    crate::base::caution::is_always()
}

/// The dtype that Python's own type stands for as well: `float` is float64. The type itself where it is none.
#[pyfunction]
fn dtype_of<'py>(object: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match types::dtype_of(&object) {
        Some(dtype) => Ok(types::dtype_object(object.py(), dtype)?.into_bound(object.py()).into_any()),
        None => Ok(object),
    }
}

/// Copies to a dtype and device; the gradient follows.
#[pyfunction]
#[pyo3(signature = (tensor, dtype, device, copy, memory_format = None))]
fn convert<'py>(
    tensor: &Bound<'py, tensor::PyTensor>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    copy: bool,
    memory_format: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let format = memory_format.map(types::memory_format).transpose()?;
    let source = tensor.get().tensor.clone();
    let dtype = dtype.map(|dtype| overloads::dtype_argument("to", "dtype", None, dtype)).transpose()?;
    let device = device.filter(|d| !d.is_none()).map(types::device_from).transpose()?;
    types::warn_of_loss(source.dtype(), dtype.unwrap_or(source.dtype()))?;
    let _span = profile::named(|| "to", [tensor.as_any()]);
    let made = parse::running(py, true, || -> crate::base::Result<_> {
        let moves = device.is_some_and(|device| device != source.device());
        let t = ops::create::converted(&source, dtype.unwrap_or(source.dtype()), format, copy && !moves)?;
        device.map_or(Ok(t.clone()), |device| ops::create::to_device(&t, device))
    })?;
    tensor::wrap(py, made)
}

/// What the tests and the stubs are generated from: one dict per row.
#[pyfunction]
fn rows(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for row in ops::rows().filter(|r| r.forms.0 != 0 && r.overloads.is_none() && r.inplace_of.is_none()) {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        dict.set_item("doc", row.doc.trim())?;
        dict.set_item("family", row.family)?;
        dict.set_item("differentiable", row.differentiable)?;
        dict.set_item("signature", table::signature(row, true))?;
        let params = row
            .params
            .iter()
            .map(|p| (p.name, format!("{:?}", p.kind), p.optional, p.default.map(table::python_default)));
        dict.set_item("params", params.collect::<Vec<_>>())?;
        let more = ops::rows().filter(|other| other.overloads.is_some_and(|of| std::ptr::eq(of, row)));
        let signatures = std::iter::once(row).chain(more).map(|row| {
            let params = row.params.iter().map(|p| {
                (p.name, format!("{:?}", p.kind), p.optional, p.default.map(table::python_default), p.keyword)
            });
            (params.collect::<Vec<_>>(), row.returns, row.forms.has(ops::Forms::OUT))
        });
        dict.set_item("signatures", signatures.collect::<Vec<_>>())?;
        dict.set_item("sample", row.sample)?;
        dict.set_item("aliases", row.aliases.to_vec())?;
        for (key, form) in [
            ("function", ops::Forms::FUNCTION),
            ("method", ops::Forms::METHOD),
            ("inplace", ops::Forms::INPLACE),
            ("out", ops::Forms::OUT),
            ("nn", ops::Forms::NN),
        ] {
            dict.set_item(key, row.forms.has(form))?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// What the Python side hands over at import.
#[pyfunction]
fn register(
    py: Python<'_>,
    size: Bound<'_, PyType>,
    named: Py<PyAny>,
    out_of_memory: Py<PyAny>,
) -> PyResult<()> {
    size::register(py, size)?;
    let _ = types::NAMED.set(py, named);
    let _ = errors::OUT_OF_MEMORY.set(py, out_of_memory);
    Ok(())
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    crate::storage::reserve::restore()?;
    crate::base::caution::set_host(errors::warn);
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<types::PyDType>()?;
    module.add_class::<types::PyDevice>()?;
    module.add_class::<node::PyNode>()?;
    module.add_class::<random::PyGenerator>()?;
    // What PyTorch has not at the top of its package is set but not added: `import *` leaves it here.
    module.setattr("Sizes", size::base(py)?)?;
    for class in [
        py.get_type::<function::Ctx>(),
        py.get_type::<hooks::Handle>(),
        py.get_type::<autograd::GradSwitch>(),
        py.get_type::<saving::SavedTensor>(),
        py.get_type::<graph::InputMetadata>(),
        py.get_type::<profile::Mark>(),
        py.get_type::<program::PyProgram>(),
    ] {
        module.setattr(class.name()?, class)?;
    }
    for dtype in DType::ALL {
        module.add(dtype.name(), types::dtype_object(py, dtype)?)?;
    }
    macro_rules! functions {
        ($($($function:ident)::+),* $(,)?) => { [$(wrap_pyfunction!($($function)::+, module)?),*] };
    }
    let public = functions![
        get_default_dtype,
        set_default_dtype,
        promote_types,
        set_warn_always,
        is_warn_always_enabled,
        autograd::is_grad_enabled,
        autograd::is_inference_mode_enabled,
        threads::get_num_threads,
        threads::set_num_threads,
        autograd::is_inference,
        anomaly::is_anomaly_enabled,
        anomaly::is_anomaly_check_nan_enabled,
        attributes::result_type,
        attributes::can_cast,
        dlpack::to_dlpack,
        dlpack::from_dlpack,
        arrays::from_numpy,
    ];
    let own = functions![
        dtype_of,
        convert,
        rows,
        register,
        autograd::run_backward,
        autograd::run_grad,
        autograd::refuse,
        batch::vmap_enter,
        transform::begin_transform,
        transform::end_transform,
        transform::adopt_inputs,
        batch::aliased,
        batch::is_transformed,
        batch::set_without_rules,
        batch::tracked,
        batch::wants_grad,
        batch::dismiss,
        batch::free_views,
        batch::vmap_leave,
        batch::vmap_depth,
        batch::vmap_calls,
        batch::vmap_swap_calls,
        batch::batch_parts,
        batch::batch_joined,
        batch::add_batch_dim,
        batch::remove_batch_dim,
        batch::unwrap_batched,
        batch::is_batched,
        transform::layer,
        transform::untracked,
        batch::refuse_leaves,
        batch::count_reverse,
        batch::reaches_others,
        autograd::set_recording,
        autograd::swap_inference_mode,
        autograd::gradient_edge,
        autograd::has_edge,
        autograd::live_nodes,
        autograd::set_version,
        autograd::increment_version,
        anomaly::set_anomaly,
        anomaly::swap_source_lines,
        forward::enter_dual_level,
        forward::tangent_levels,
        forward::is_dual_level,
        forward::exit_dual_level,
        forward::make_dual,
        forward::unpack_dual,
        forward::unrecorded,
        forward::is_fwd_grad_enabled,
        forward::set_fwd_grad_enabled,
        function::apply_function,
        custom::register_function,
        graph::current_graph_task_id,
        graph::is_whole_backward,
        graph::node_name,
        graph::will_execute,
        graph::enforce_layouts,
        graph::push_creation_hook,
        graph::pop_creation_hook,
        graph::queue_callback,
        saving::push_saved_hooks,
        saving::top_saved_hooks,
        saving::push_chooser,
        saving::pop_chooser,
        saving::packing_node,
        saving::keep_tensors,
        saving::watch_writes,
        saving::pop_saved_hooks,
        saving::disable_saved_hooks,
        saving::saved_hooks_disabled,
        replace::swap_contents,
        storage::make_subclass,
        storage::as_subclass,
        storage::storage_view,
        storage::resize_storage,
        storage::is_resizable,
        storage::move_storage,
        storage::to_bytes,
        storage::from_bytes,
        profile::profiler_mark,
        profile::profiler_enabled,
        profile::profiler_start,
        profile::profiler_clock,
        profile::profiler_stop,
        attributes::legacy_tensor,
        autocast::swap_autocast,
        autocast::clear_autocast_weights,
        table::set_autocast_policy,
        table::method_names,
        overrides::_disabled_torch_function_impl,
        overrides::swap_overrides_off,
        overrides::overrides_off,
        overrides::expect_overrides,
        overrides::set_override_modes,
        places::default_place,
        places::set_default_place,
        random::global_generator,
        dlpack::dlpack_device,
        nested::make_tensor,
        arrays::shared,
    ];
    for function in public {
        module.add_function(function)?;
    }
    for function in own {
        module.setattr(function.getattr("__name__")?.cast::<PyString>()?, &function)?;
    }
    #[cfg(feature = "gpu")]
    module.setattr("_gpu", gpu::module(py)?)?;
    hung::prepare(py)?;
    table::install(py, module)
}
