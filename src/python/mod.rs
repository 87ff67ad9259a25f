//! The Python face: the only room that knows PyO3.

mod autograd;
mod errors;
mod function;
mod index;
mod interop;
mod node;
mod parse;
mod table;
mod tensor;
mod types;

use crate::base::{DType, Scalar};
use crate::ops;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// `full(shape, value, dtype, device)`: what most creation functions end in.
#[pyfunction]
fn full<'py>(
    py: Python<'py>,
    shape: Vec<i64>,
    value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, types::PyDType>>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let value = parse::scalar_from(value).unwrap_or(Scalar::Int(0));
    let dtype = dtype.map_or_else(ops::create::default_dtype, |d| d.get().0);
    let device = device.filter(|d| !d.is_none()).map_or(Ok(crate::base::Device::Cpu), types::device_from)?;
    let dims = ops::view::dims_of(&shape)?;
    tensor::wrap(py, ops::create::full(&dims, value, dtype, device)?)
}

#[pyfunction]
fn empty<'py>(
    py: Python<'py>,
    shape: Vec<i64>,
    dtype: Option<&Bound<'py, types::PyDType>>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.map_or_else(ops::create::default_dtype, |d| d.get().0);
    let device = device.filter(|d| !d.is_none()).map_or(Ok(crate::base::Device::Cpu), types::device_from)?;
    let dims = ops::view::dims_of(&shape)?;
    tensor::wrap(py, crate::tensor::Tensor::new(crate::tensor::Body::new(&dims, dtype, device)?))
}

#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Py<types::PyDType>> {
    tensor::default_dtype(py)
}

#[pyfunction]
fn set_default_dtype(dtype: &Bound<'_, types::PyDType>) -> PyResult<()> {
    let dtype = dtype.get().0;
    if !tensor::FLOATS.contains(&dtype) {
        return Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "only floating-point types are supported as the default type, but got torch.{}",
            dtype.name()
        )));
    }
    ops::create::set_default_dtype(dtype);
    Ok(())
}

#[pyfunction]
fn promote_types(py: Python<'_>, a: &Bound<'_, types::PyDType>, b: &Bound<'_, types::PyDType>) -> PyResult<Py<types::PyDType>> {
    types::dtype_object(py, a.get().0.promote(b.get().0))
}

/// Copies to a dtype and device; the gradient follows.
#[pyfunction]
fn convert<'py>(
    tensor: &Bound<'py, tensor::PyTensor>,
    dtype: Option<&Bound<'py, types::PyDType>>,
    device: Option<&Bound<'py, PyAny>>,
    copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let source = tensor.get().tensor.clone();
    let dtype = dtype.map(|d| d.get().0);
    let device = device.filter(|d| !d.is_none()).map(types::device_from).transpose()?;
    let made = py.detach(|| -> crate::base::Result<_> {
        let mut t = ops::create::to_dtype(&source, dtype.unwrap_or(source.dtype()))?;
        if let Some(device) = device {
            t = ops::create::to_device(&t, device)?;
        }
        if copy && t.same(&source) { ops::create::clone_dense(&t) } else { Ok(t) }
    })?;
    tensor::wrap(py, made)
}

/// What the tests and the stubs are generated from: one dict per row.
#[pyfunction]
fn rows(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for row in ops::rows().filter(|r| r.forms.0 != 0) {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        dict.set_item("doc", row.doc.trim())?;
        dict.set_item("family", row.family)?;
        dict.set_item("differentiable", row.differentiable)?;
        dict.set_item("signature", table::signature(row, true))?;
        let params = row.params.iter().map(|p| (p.name, format!("{:?}", p.kind), p.optional, p.default.map(table::python_default)));
        dict.set_item("params", params.collect::<Vec<_>>())?;
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
fn register(py: Python<'_>, size: Py<PyAny>, named: Py<PyAny>, out_of_memory: Py<PyAny>) {
    let _ = types::SIZE.set(py, size);
    let _ = types::NAMED.set(py, named);
    let _ = errors::OUT_OF_MEMORY.set(py, out_of_memory);
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<types::PyDType>()?;
    module.add_class::<types::PyDevice>()?;
    module.add_class::<node::PyNode>()?;
    module.add_class::<function::Ctx>()?;
    module.add_class::<autograd::Handle>()?;
    for dtype in DType::ALL {
        module.add(dtype.name(), types::dtype_object(py, dtype)?)?;
    }
    macro_rules! add {
        ($($($function:ident)::+),* $(,)?) => { $(module.add_function(wrap_pyfunction!($($function)::+, module)?)?;)* };
    }
    add!(
        full, empty, get_default_dtype, set_default_dtype, promote_types, convert, rows, register,
        autograd::run_backward, autograd::run_grad, autograd::is_grad_enabled, autograd::swap_grad_enabled,
        autograd::gradient_edge, autograd::live_nodes, autograd::increment_version,
        function::apply_function, function::make_subclass,
        interop::make_tensor, interop::from_numpy, interop::array_interface,
    );
    table::install(py, module)
}
