//! The Python bindings: the only module that uses PyO3.

mod autograd;
mod call;
mod compile;
mod data;
mod distributed;
mod entry;
mod errors;
mod function;
mod generator;
mod graph;
mod modes;
mod numbers;
mod objects;
mod saved;
mod sequences;
mod size;
mod tensor;
mod transforms;
mod types;
mod wrapper;

use crate::base::{self, DType};
use crate::operator::primitives::copies;
use crate::operator::{Forms, Param, Row};
use crate::ops;
use gradiron_macros::pyfunction;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyType};

/// Return the default floating point data type, of new tensors and of Python's numbers.
///
/// Examples:
///     >>> torch.get_default_dtype()
///     torch.float32
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Py<types::PyDType>> {
    tensor::methods::default_dtype(py)
}

/// Set the default floating point data type, of new tensors and of Python's numbers.
///
/// Args:
///     d: a floating point dtype.
///
/// Raises:
///     TypeError: if it is no floating point dtype.
///
/// Examples:
///     >>> torch.set_default_dtype(torch.float64)
///     >>> torch.tensor([1.5]).dtype
///     torch.float64
///     >>> torch.set_default_dtype(torch.float32)
#[pyfunction]
#[pyo3(signature = (d, /))]
fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    const ONLY_FLOATS: &str = "only floating-point types are supported as the default type";
    match d.cast::<types::PyDType>().map(|d| d.get().0) {
        Ok(dtype) if tensor::methods::FLOATS.contains(&dtype) => base::set_default_dtype(dtype),
        Ok(_) => return Err(PyTypeError::new_err(ONLY_FLOATS)),
        Err(_) => return Err(PyTypeError::new_err(format!("invalid dtype object: {ONLY_FLOATS}"))),
    }
    Ok(())
}

/// Return the smallest data type that values of both types can be converted to.
///
/// Args:
///     type1, type2: the data types.
///
/// Examples:
///     >>> torch.promote_types(torch.int32, torch.float16)
///     torch.float16
#[pyfunction]
fn promote_types(
    py: Python<'_>,
    type1: &Bound<'_, PyAny>,
    type2: &Bound<'_, PyAny>,
) -> PyResult<Py<types::PyDType>> {
    let read =
        |name, at, object| call::signature_errors::dtype_argument("promote_types", name, Some(at), object);
    types::dtype_object(py, read("type1", 1, type1)?.promoted_with(read("type2", 2, type2)?)?)
}

/// Set whether warnings that are shown once per process are shown each time.
///
/// Args:
///     b: whether to show them each time.
///
/// Examples:
///     >>> torch.set_warn_always(False)
#[pyfunction]
fn set_warn_always(b: bool) {
    crate::base::warning::set_always(b);
}

/// Tell whether warnings that are shown once per process are shown each time.
///
/// Examples:
///     >>> torch.is_warn_always_enabled()
///     False
#[pyfunction]
fn is_warn_always_enabled() -> bool {
    crate::base::warning::is_always()
}

/// Converts a Python type to the dtype that it stands for (`float` is float64). Returns any other object
/// unchanged.
#[pyfunction]
fn dtype_of<'py>(object: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match types::dtype_of(&object)? {
        Some(dtype) => Ok(types::dtype_object(object.py(), dtype)?.into_bound(object.py()).into_any()),
        None => Ok(object),
    }
}

/// Converts to a dtype and device; differentiable.
#[pyfunction]
#[pyo3(signature = (tensor, dtype, device, copy, memory_format = None))]
fn convert<'py>(
    tensor: &Bound<'py, wrapper::class::PyTensor>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    copy: bool,
    memory_format: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let mut _span = None;
    if crate::base::watch::any() {
        let copy = PyBool::new(py, copy).to_owned().into_any();
        let named = [("dtype", dtype.cloned()), ("device", device.cloned()), ("copy", Some(copy))];
        let named: Vec<_> = named.into_iter().filter_map(|(name, x)| Some((name.to_owned(), x?))).collect();
        if let Some(taken) = call::overrides::OverrideCall::of_method("to", tensor, &named) {
            return taken;
        }
        _span = modes::profile::named(|| "to", [tensor.as_any()]);
    }
    let format = memory_format.map(types::memory_format).transpose()?;
    let source = tensor.get().tensor.clone();
    let dtype =
        dtype.map(|dtype| call::signature_errors::dtype_argument("to", "dtype", None, dtype)).transpose()?;
    let device = device.filter(|d| !d.is_none()).map(types::device_from).transpose()?;
    types::warn_of_loss(source.dtype(), dtype.unwrap_or(source.dtype()))?;
    let made = call::run::running(py, true, || -> crate::base::Result<_> {
        let moves = device.is_some_and(|device| device != source.device());
        let t = ops::creation::create::converted(
            &source,
            dtype.unwrap_or(source.dtype()),
            format,
            copy && !moves,
        )?;
        device.map_or(Ok(t.clone()), |device| copies::to_device(&t, device))
    })?;
    wrapper::class::wrap(py, made)
}

/// A parameter for the stubs: name, kind, whether it is optional, default, whether it is keyword-only.
type ParamFacts = (&'static str, String, bool, Option<String>, bool);

/// A signature for the stubs: its parameters, its return type, whether it takes `out=`, and the parameters that take several
/// arguments one by one (`x.permute(0, 1)`): as a function, and as a method (counted after `self`).
type SignatureFacts = (Vec<ParamFacts>, &'static str, bool, [Option<usize>; 2]);

fn signature_facts(row: &'static Row) -> SignatureFacts {
    let facts = |p: &Param| {
        (
            p.name,
            format!("{:?}", p.kind),
            p.optional,
            p.default.map(|default| call::signature::python_default(default).into_owned()),
            p.keyword,
        )
    };
    let spread = [true, false]
        .map(|function| call::signature::spread(row, function).map(|at| at - usize::from(!function)));
    (row.params.iter().map(facts).collect(), row.returns, row.forms.has(Forms::OUT), spread)
}

/// Describes each row as a dict; tests and stubs are generated from them.
#[pyfunction]
fn rows(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for row in ops::rows().filter(|r| r.forms.0 != 0 && r.overloads.is_none() && r.inplace_of.is_none()) {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        dict.set_item("doc", row.doc.trim())?;
        dict.set_item("family", row.family)?;
        dict.set_item("differentiable", row.differentiable)?;
        dict.set_item("signature", call::signature::signature(row, true))?;
        let params = row.params.iter().map(|p| {
            (p.name, format!("{:?}", p.kind), p.optional, p.default.map(call::signature::python_default))
        });
        dict.set_item("params", params.collect::<Vec<_>>())?;
        let more = |of: &'static Row| {
            ops::rows().filter(move |other| other.overloads.is_some_and(|first| std::ptr::eq(first, of)))
        };
        let signatures = std::iter::once(row).chain(more(row)).map(signature_facts);
        dict.set_item("signatures", signatures.collect::<Vec<_>>())?;
        let inplace = ops::rows()
            .filter(|other| other.inplace_of.is_some_and(|of| std::ptr::eq(of, row)))
            .map(signature_facts);
        dict.set_item("inplace_signatures", inplace.collect::<Vec<_>>())?;
        dict.set_item("sample", row.sample)?;
        dict.set_item("space", row.space)?;
        dict.set_item("aliases", row.aliases.to_vec())?;
        for (key, form) in [
            ("function", Forms::FUNCTION),
            ("method", Forms::METHOD),
            ("inplace", Forms::INPLACE),
            ("out", Forms::OUT),
            ("nn", Forms::NN),
        ] {
            dict.set_item(key, row.forms.has(form))?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// Receives the classes that the Python side defines; called at import.
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

/// Refuses subinterpreters: tensors belong to the process, and so to its first interpreter.
fn refuse_subinterpreter() -> PyResult<()> {
    // SAFETY: this thread is attached to an interpreter, which both calls query.
    let number = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    if number == 0 {
        return Ok(());
    }
    Err(pyo3::exceptions::PyImportError::new_err(
        "gradiron cannot be imported in a subinterpreter: use the first interpreter",
    ))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    refuse_subinterpreter()?;
    crate::storage::reserve::restore();
    crate::storage::reserve::check()?;
    crate::base::warning::set_host(errors::warn);
    crate::base::signals::set_host(autograd::nested_backward::poll);
    entry::silence_memory_panics();
    module.add_class::<wrapper::class::PyTensor>()?;
    module.add_class::<types::PyDType>()?;
    module.add_class::<types::PyDevice>()?;
    module.add_class::<graph::node::PyNode>()?;
    module.add_class::<generator::PyGenerator>()?;
    // Names that PyTorch does not have in its top-level package are set but not listed in `__all__`.
    module.setattr("Sizes", size::base(py)?)?;
    module.setattr("_version", env!("CARGO_PKG_VERSION"))?;
    for class in [
        py.get_type::<function::context::Ctx>(),
        py.get_type::<graph::hooks::Handle>(),
        py.get_type::<autograd::backward::GradSwitch>(),
        py.get_type::<saved::values::SavedTensor>(),
        py.get_type::<graph::metadata::InputMetadata>(),
        py.get_type::<modes::profile::Mark>(),
        py.get_type::<data::optimizer_program::PyProgram>(),
        py.get_type::<modes::capture::PyCaptured>(),
        py.get_type::<compile::calls::PyCallWatch>(),
        py.get_type::<compile::direct::PyDirectReplays>(),
        py.get_type::<compile::program::PyCapturedProgram>(),
        py.get_type::<compile::guards::PyGuards>(),
        py.get_type::<compile::guards::PyTensorKind>(),
    ] {
        module.setattr(class.name()?, class)?;
    }
    // Python never names these classes. They are created now because memory may be missing later.
    py.get_type::<autograd::graph_task::NodeName>();
    py.get_type::<graph::hooks::Assigned>();
    py.get_type::<transforms::vmap::SampleHook>();
    py.get_type::<data::arrays::Shared>();
    py.get_type::<saved::values::KeptTensors>();
    for dtype in DType::ALL {
        module.add(dtype.name(), types::dtype_object(py, dtype)?)?;
    }
    types::add_absent(module)?;
    macro_rules! functions {
        ($($($function:ident)::+),* $(,)?) => { [$(wrap_pyfunction!($($function)::+, module)?),*] };
    }
    let public = functions![
        get_default_dtype,
        set_default_dtype,
        promote_types,
        set_warn_always,
        is_warn_always_enabled,
        autograd::backward::is_grad_enabled,
        autograd::backward::is_inference_mode_enabled,
        modes::threads::get_num_threads,
        modes::threads::set_num_threads,
        autograd::backward::is_inference,
        modes::anomaly::is_anomaly_enabled,
        modes::anomaly::is_anomaly_check_nan_enabled,
        tensor::attributes::result_type,
        tensor::attributes::can_cast,
        data::dlpack::to_dlpack,
        data::dlpack::from_dlpack,
        data::arrays::from_numpy,
    ];
    let own = functions![
        dtype_of,
        convert,
        rows,
        register,
        autograd::backward::run_backward,
        autograd::backward::run_grad,
        autograd::backward::raise_error,
        transforms::vmap::vmap_enter,
        transforms::func::begin_transform,
        transforms::func::end_transform,
        transforms::func::set_transform_inputs,
        transforms::vmap::aliased,
        transforms::vmap::is_transformed,
        transforms::vmap::set_without_rules,
        transforms::vmap::tracked,
        transforms::vmap::wants_grad,
        transforms::vmap::retire_inputs,
        transforms::vmap::allow_view_writes,
        transforms::vmap::vmap_leave,
        transforms::vmap::vmap_depth,
        transforms::vmap::vmap_calls,
        transforms::vmap::vmap_swap_calls,
        transforms::vmap::batch_parts,
        transforms::vmap::batch_joined,
        transforms::vmap::add_batch_dim,
        transforms::vmap::remove_batch_dim,
        transforms::vmap::unwrap_batched,
        transforms::vmap::is_batched,
        transforms::func::layer,
        transforms::func::untracked,
        transforms::vmap::refuse_leaves,
        transforms::vmap::count_reverse,
        transforms::vmap::reaches_others,
        autograd::backward::new_enable_grad,
        autograd::backward::new_no_grad,
        autograd::backward::set_recording,
        autograd::backward::swap_inference_mode,
        autograd::gradient_edge::gradient_edge,
        autograd::gradient_edge::has_edge,
        autograd::backward::live_nodes,
        autograd::backward::set_version,
        autograd::backward::increment_version,
        modes::anomaly::set_anomaly,
        modes::anomaly::swap_source_lines,
        transforms::forward::enter_dual_level,
        transforms::forward::tangent_levels,
        transforms::forward::is_dual_level,
        transforms::forward::exit_dual_level,
        transforms::forward::make_dual,
        transforms::forward::unpack_dual,
        transforms::forward::unrecorded,
        transforms::forward::is_fwd_grad_enabled,
        transforms::forward::set_fwd_grad_enabled,
        function::apply::apply_function,
        function::function_node::register_function,
        autograd::graph_task::current_graph_task_id,
        autograd::graph_task::is_whole_backward,
        autograd::graph_task::node_name,
        autograd::graph_task::will_execute,
        autograd::graph_task::enforce_layouts,
        autograd::graph_task::push_creation_hook,
        autograd::graph_task::pop_creation_hook,
        autograd::graph_task::queue_callback,
        autograd::reached::leaves_behind,
        autograd::reached::storage_holders,
        saved::values::push_saved_hooks,
        saved::values::top_saved_hooks,
        saved::values::push_chooser,
        saved::values::pop_chooser,
        saved::values::packing_node,
        saved::values::keep_tensors,
        saved::values::watch_writes,
        saved::values::pop_saved_hooks,
        saved::values::disable_saved_hooks,
        saved::values::saved_hooks_disabled,
        data::set_resize::swap_contents,
        data::storage::make_subclass,
        tensor::coo::make_coo,
        tensor::coo::coo_parts,
        tensor::coo::set_coo_parts,
        data::storage::as_subclass,
        data::storage::storage_view,
        data::storage::resize_storage,
        data::storage::is_resizable,
        data::storage::move_storage,
        data::storage::to_bytes,
        data::storage::from_bytes,
        data::storage::crc32,
        modes::capture::begin_capture,
        modes::capture::end_capture,
        modes::capture::discard_capture,
        modes::capture::is_capturing,
        compile::program::end_program,
        compile::program::capture_reason,
        compile::guards::tensor_kind,
        compile::direct::permit_direct_replays,
        compile::state::decide,
        compile::state::read_captured,
        compile::state::live_tensor,
        compile::state::thread_modes,
        compile::state::tensor_kinds,
        modes::profile::profiler_mark,
        modes::profile::profiler_enabled,
        modes::profile::profiler_start,
        modes::profile::profiler_clock,
        modes::profile::profiler_stop,
        tensor::attributes::legacy_tensor,
        modes::autocast::swap_autocast,
        modes::autocast::clear_autocast_weights,
        tensor::methods::slot_methods,
        call::table::method_names,
        call::overrides::_disabled_torch_function_impl,
        call::overrides::swap_overrides_off,
        call::overrides::overrides_off,
        call::overrides::expect_overrides,
        call::overrides::set_override_modes,
        modes::default_device::thread_device,
        modes::default_device::set_thread_device,
        generator::global_generator,
        data::dlpack::dlpack_device,
        data::nested_lists::make_tensor,
        data::arrays::shared,
    ];
    for function in public {
        module.add_function(function)?;
    }
    for function in own {
        module.setattr(function.getattr("__name__")?.cast::<PyString>()?, &function)?;
    }
    #[cfg(feature = "gpu")]
    module.setattr("_gpu", modes::gpu::module(py)?)?;
    module.setattr("_distributed", distributed::module(py)?)?;
    wrapper::host_state::prepare(py)?;
    module.setattr("_LinAlgError", py.get_type::<errors::_LinAlgError>())?;
    call::table::install(py, module)
}
