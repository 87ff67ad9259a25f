//! Methods that replace a tensor's memory: `set_`, `resize_`, `resize_as_`. They are not recorded.

use crate::base::{DType, Dims, Layout, MemoryFormat};
use crate::operator::inplace::write::{Write, count_write};
use crate::operator::primitives::views::dims_of;
use crate::python::graph::node::node_object;
use crate::python::numbers::int_from;
use crate::python::sequences::ints;
use crate::python::transforms::func;
use crate::python::types;
use crate::python::types::{PyDType, type_name};
use crate::python::wrapper::class::PyTensor;
use crate::tensor::{Body, Derivative, Edge, Recorder, Tensor, mode, no_derivative};
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

static NOT_IMPLEMENTED: Derivative =
    no_derivative!("NotImplemented", "derivative for set_ is not implemented");

/// Reads sizes given as separate numbers or as one sequence.
fn sizes(function: &str, args: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    let first = args.get_item(0).ok().filter(|first| args.len() == 1 && int_from(first).is_none());
    ints(function, "size", first.as_ref().unwrap_or(args.as_any()))
}

/// Returns how many bytes of its storage a layout needs; raises if that overflows.
fn bytes_needed(layout: &Layout, dtype: DType) -> PyResult<usize> {
    layout.bytes(dtype).ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "Storage size calculation overflowed with sizes={:?} and strides={:?}",
            layout.shape.as_slice(),
            layout.strides.as_slice()
        ))
    })
}

/// Returns `body` with another layout; enlarges its storage if necessary.
fn relayout(body: &Body, layout: Layout) -> PyResult<Body> {
    let need = bytes_needed(&layout, body.dtype)?;
    if need > body.storage.len() {
        crate::operator::bodies::resize_storage(body, need)?;
    }
    Ok(body.with_layout(layout))
}

/// Replaces the tensor's body, and counts a write.
fn replace(target: &Tensor, body: Body) {
    target.show(body);
    count_write(&target.body());
}

fn resize(target: &Tensor, shape: &[i64]) -> PyResult<()> {
    func::check_write(target, &[], || "aten::resize_".into())?;
    if target.requires_grad() && !mode::inference() {
        return Err(PyRuntimeError::new_err("cannot resize variables that require grad"));
    }
    let over = Write::begin(target, false)?;
    let shape =
        dims_of(shape).map_err(|_| PyRuntimeError::new_err("numel: integer multiplication overflow"))?;
    let body = target.body().clone();
    if body.shape() != shape.as_slice() {
        let layout = Layout { offset: body.layout.offset, ..Layout::contiguous(&shape) };
        replace(target, relayout(&body, layout)?);
        over.end(None)?;
    }
    Ok(())
}

/// Applies the memory format that resized memory must have.
fn reorder(target: &Tensor, format: Option<MemoryFormat>) -> PyResult<()> {
    let Some(format @ MemoryFormat::ChannelsLast(_)) = format else { return Ok(()) };
    let body = {
        let body = target.body();
        body.with_layout(Layout { offset: body.layout.offset, ..format.layout(&body.layout)? })
    };
    target.set_body(body);
    Ok(())
}

/// Returns ATen's overload of `set_` for this source.
fn set_overload(source: Option<&Bound<'_, PyAny>>) -> &'static str {
    match source {
        None => "",
        Some(source) if source.is_instance_of::<PyTensor>() => ".source_Tensor",
        Some(_) => ".source_Storage",
    }
}

/// Returns the source of `set_` as a body: that of a tensor, or a whole storage.
fn source_body(source: &Bound<'_, PyAny>, like: &Body) -> PyResult<Option<Body>> {
    if let Ok(tensor) = source.cast::<PyTensor>() {
        return Ok(Some(tensor.get().tensor.body().clone()));
    }
    storage_body(source, like.dtype, like.dtype.c_name())
}

/// Returns a whole storage as a body of `dtype`; raises if the storage has another dtype. None if `source`
/// is no storage.
pub fn storage_body(source: &Bound<'_, PyAny>, dtype: DType, name: &str) -> PyResult<Option<Body>> {
    let Ok(whole) = source.getattr("_all") else { return Ok(None) };
    let Ok(whole) = whole.cast::<PyTensor>() else { return Ok(None) };
    if let Ok(own) = source.getattr("dtype")
        && let Ok(own) = own.cast::<PyDType>().map(|own| own.get().0)
        && own != dtype
    {
        return Err(PyRuntimeError::new_err(format!(
            "Expected a Storage of type {name} or an UntypedStorage, but got type {} for argument 1 'storage'",
            own.scalar_name()
        )));
    }
    let storage = whole.get().tensor.body().storage.clone();
    let layout = Layout::contiguous(&[storage.len() / dtype.size()]);
    Ok(Some(Body::plain(storage, layout, dtype)))
}

#[cold]
fn no_such_set(given: [Option<&Bound<'_, PyAny>>; 4]) -> PyErr {
    let types = given.into_iter().flatten().map(type_name).collect::<Vec<_>>().join(", ");
    PyTypeError::new_err(format!(
        "set_() received an invalid combination of arguments - got ({types}), but expected one of:\n * ()\n * (Storage source)\n \
         * (Storage source, int storage_offset, tuple of ints size, tuple of ints stride)\n * (Tensor source)\n * (Tensor \
         source, int storage_offset, tuple of ints size, tuple of ints stride)"
    ))
}

/// Reads the offset, sizes and optional strides of `set_`.
fn place(
    source: Option<&Bound<'_, PyAny>>,
    offset: Option<&Bound<'_, PyAny>>,
    size: Option<&Bound<'_, PyAny>>,
    stride: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Layout>> {
    let wrong = || no_such_set([source, offset, size, stride]);
    let (offset, size) = match (source, offset, size, stride) {
        (_, None, None, None) => return Ok(None),
        (Some(_), Some(offset), Some(size), _) => (offset, size),
        _ => return Err(wrong()),
    };
    let numbers = |list| ints("set_", "size", list).map_err(|_| wrong());
    let offset = int_from(offset).ok_or_else(wrong)?;
    let (size, stride) = (numbers(size)?, stride.map_or(Ok(Vec::new()), numbers)?);
    let shape =
        dims_of(&size).map_err(|_| PyRuntimeError::new_err("numel: integer multiplication overflow"))?;
    if stride.len() != size.len() && !stride.is_empty() {
        return Err(PyRuntimeError::new_err(format!(
            "unequal size length ({}) and stride length ({})",
            size.len(),
            stride.len()
        )));
    }
    let strides = stride.iter().map(|&s| usize::try_from(s)).collect::<Result<Dims, _>>().map_err(|_| {
        PyRuntimeError::new_err(format!(
            "Storage size calculation overflowed with sizes={size:?} and strides={stride:?}"
        ))
    })?;
    let strides = if strides.is_empty() { Layout::contiguous(&shape).strides } else { strides };
    let bad = |_| PyRuntimeError::new_err(format!("Tensor: invalid storage offset {offset}"));
    Ok(Some(Layout { shape, strides, offset: usize::try_from(offset).map_err(bad)? }))
}

/// Swaps the values and graph positions of two tensors; returns the AccumulateGrad nodes that they had as
/// leaves.
#[pyfunction]
pub fn swap_contents<'py>(
    first: &Bound<'py, PyTensor>,
    second: &Bound<'py, PyTensor>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let ends = first.get().tensor.swap(&second.get().tensor)?;
    ends.into_iter().map(|end| node_object(first.py(), end)).collect()
}

#[pymethods]
impl PyTensor {
    /// Make the tensor use the memory of another tensor or of a storage; without arguments, none.
    ///
    /// Args:
    ///     source: the tensor or storage.
    ///     storage_offset: place of the first element, in elements.
    ///     size: new shape.
    ///     stride: new strides.
    #[pyo3(signature = (source = None, storage_offset = None, size = None, stride = None))]
    fn set_<'py>(
        slf: &Bound<'py, PyTensor>,
        source: Option<&Bound<'py, PyAny>>,
        storage_offset: Option<&Bound<'py, PyAny>>,
        size: Option<&Bound<'py, PyAny>>,
        stride: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let place = place(source, storage_offset, size, stride)?;
        let target = &slf.get().tensor;
        func::check_write(target, &[], || format!("aten::set_{}", set_overload(source)))?;
        let giver = source.and_then(|s| s.cast::<PyTensor>().ok()).map(|s| s.get().tensor.clone());
        let wants = target.requires_grad() || giver.as_ref().is_some_and(Tensor::requires_grad);
        let recording = mode::grad_enabled() && wants;
        let over = Write::begin(target, recording)?;
        if let (true, Some(giver)) = (recording, &giver) {
            giver.check_view()?;
        }
        let own = target.body().clone();
        let mut body = match source {
            None => Body::new(&[0], own.dtype, own.device())?,
            Some(object) => match source_body(object, &own)? {
                Some(body) => body,
                None => return Err(no_such_set([Some(object), storage_offset, size, stride])),
            },
        };
        if body.dtype != own.dtype {
            return Err(PyRuntimeError::new_err(format!(
                "Could not set tensor of type {} to a tensor of type {}",
                body.dtype.c_name(),
                own.dtype.c_name()
            )));
        }
        // The new memory takes over the lazy conjugation, and is tracked like the old one.
        body.conj_neg = own.conj_neg;
        if body.storage.is_untracked() && !own.storage.is_untracked() {
            body.storage = body.storage.counted();
        }
        if let Some(layout) = place {
            body = relayout(&body, layout)?;
        }
        let edge = recording.then(|| {
            let mut recorder = Recorder::new(&NOT_IMPLEMENTED);
            recorder.input(Some(target)).input(giver.as_ref());
            Edge { node: recorder.publish(&[&body]), output: 0 }
        });
        replace(target, body);
        target.reset_leaf_node();
        over.end(edge)?;
        Ok(slf.clone())
    }
    /// Change the shape of the tensor itself, with more memory if needed; new elements are uninitialized.
    ///
    /// Args:
    ///     size: new shape: a sequence, or the sizes one by one.
    ///     memory_format: memory format of the result.
    #[pyo3(signature = (*size, memory_format = None))]
    fn resize_<'py>(
        slf: &Bound<'py, PyTensor>,
        size: &Bound<'py, PyTuple>,
        memory_format: Option<&str>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let target = &slf.get().tensor;
        let format = memory_format.map(types::memory_format).transpose()?;
        if format == Some(MemoryFormat::Preserve) {
            return Err(PyRuntimeError::new_err("Unsupported memory formatPreserve"));
        }
        resize(target, &sizes("resize_", size)?)?;
        reorder(target, format)?;
        Ok(slf.clone())
    }
    /// Change the shape of the tensor itself to that of another one; see `resize_`.
    ///
    /// Args:
    ///     the_template: the tensor whose shape is taken.
    ///     memory_format: memory format of the result.
    #[pyo3(signature = (the_template, memory_format = None))]
    fn resize_as_<'py>(
        slf: &Bound<'py, PyTensor>,
        the_template: &Bound<'py, PyTensor>,
        memory_format: Option<&str>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let (target, like) = (&slf.get().tensor, &the_template.get().tensor);
        let format = memory_format.map(types::memory_format).transpose()?.map(|format| match format {
            MemoryFormat::Preserve => MemoryFormat::suggested(&like.body().layout),
            other => other,
        });
        let shape: Vec<i64> = like.shape().iter().map(|&n| n as i64).collect();
        resize(target, &shape)?;
        reorder(target, format)?;
        Ok(slf.clone())
    }
}
