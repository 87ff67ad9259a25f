//! Tensors from and to numbers and nested lists.

use crate::base::views::checked_numel;
use crate::base::{DType, Device, Dims, Scalar, default_dtype, try_alloc};
use crate::capture;
use crate::operator::bodies::overflow;
use crate::operator::primitives::{copies, detached};
use crate::python::call::signature_errors::{dtype_argument, too_long};
use crate::python::data::arrays::{from_array, is_array};
use crate::python::modes::default_device;
use crate::python::numbers::scalar_from;
use crate::python::numbers::tell_of_loss;
use crate::python::objects::{ClassName, to_list, to_object};
use crate::python::sequences::poll_signals;
use crate::python::transforms::vmap;
use crate::python::types::device_from;
use crate::python::wrapper::class::{PyTensor, no_index, wrap};
use crate::tensor::{Body, Tensor};
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || (!is_plain(object)
            && !object.is_instance_of::<PyString>()
            && !object.is_instance_of::<PyTensor>()
            && !object.is_instance_of::<PyBytes>()
            && !object.is_instance_of::<PyDict>()
            && object.hasattr("__len__").unwrap_or(false)
            && object.hasattr("__getitem__").unwrap_or(false))
}

/// Returns true for a number or list of Python's own types, which needs no further checks.
pub fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
        || object.is_exact_instance_of::<PyBool>()
}

/// Determines the shape of nested lists from the first element at each depth. A tensor in a list counts as
/// a number.
fn infer_shape(object: &Bound<'_, PyAny>, shape: &mut Dims, depth: usize) -> PyResult<()> {
    if depth > 64 {
        return Err(PyValueError::new_err("too many dimensions 'list'"));
    }
    if is_array(object)? {
        shape.extend(from_array(object)?.shape());
    } else if is_sequence(object) {
        let n = object.len()?;
        shape.push(n);
        if n > 0 {
            infer_shape(&object.get_item(0)?, shape, depth + 1)?;
        }
    }
    Ok(())
}

/// An element of a list. Of an int that exceeds an `i64` the `u64` is kept, if it is one, and a float: only `uint64` and
/// float dtypes take it.
enum ListItem {
    Number(Scalar),
    /// From a tensor of floats: int and bool dtypes do not take it.
    OfFloats(Scalar),
    TooLong(Option<u64>, f64),
}

/// Reads an element, and promotes its dtype into `kind`.
fn read_item(object: &Bound<'_, PyAny>, kind: &mut Option<DType>) -> PyResult<ListItem> {
    let Some(scalar) = scalar_from(object) else {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            let name = object.class_name()?;
            return Err(PyTypeError::new_err(format!("new(): invalid data type '{name}'")));
        }
        if object.is_instance_of::<PyInt>() {
            *kind = Some(kind.map_or(DType::I64, |k| k.promote(DType::I64)));
            return Ok(ListItem::TooLong(object.extract().ok(), object.extract()?));
        }
        return Err(if object.is_none() {
            PyRuntimeError::new_err("Could not infer dtype of NoneType")
        } else {
            PyRuntimeError::new_err(format!("Could not infer dtype of {}", object.class_name()?))
        });
    };
    let dtype = crate::operator::pointwise::scalar_dtype(scalar);
    *kind = Some(kind.map_or(dtype, |k| k.promote(dtype)));
    Ok(ListItem::Number(scalar))
}

fn flatten(
    object: &Bound<'_, PyAny>,
    shape: &[usize],
    depth: usize,
    kind: &mut Option<DType>,
    out: &mut Vec<ListItem>,
) -> PyResult<()> {
    if let Ok(t) = object.cast::<PyTensor>() {
        let rest = t.get().tensor.shape().iter().skip(shape.len() - depth).product::<usize>();
        if rest != 1 {
            return Err(PyValueError::new_err("only one element tensors can be converted to Python scalars"));
        }
        tell_of_loss(&t.get().tensor)?;
        let first = out.len();
        append_elements(&t.get().tensor, shape, depth, kind, out)?;
        if t.get().tensor.dtype().is_differentiable() {
            for noted in &mut out[first..] {
                if let ListItem::Number(number) = *noted {
                    *noted = ListItem::OfFloats(number);
                }
            }
        }
        return Ok(());
    }
    if is_array(object)? {
        let t = from_array(object)?;
        if t.ndim() > shape.len() - depth {
            return Err(PyTypeError::new_err("only 0-dimensional arrays can be converted to Python scalars"));
        }
        return append_elements(&t, shape, depth, kind, out);
    }
    if depth == shape.len() {
        if is_sequence(object) {
            let name = object.class_name()?;
            let real = kind.is_some_and(DType::is_differentiable);
            return Err(PyTypeError::new_err(if real {
                format!("must be real number, not {name}")
            } else {
                format!("'{name}' object cannot be interpreted as an integer")
            }));
        }
        try_alloc::push(out, read_item(object, kind)?)?;
        return poll_signals(object.py(), out.len());
    }
    if !is_sequence(object) {
        read_item(object, kind)?;
        return Err(PyTypeError::new_err("not a sequence"));
    }
    let n = object.len()?;
    if n != shape[depth] {
        return Err(PyValueError::new_err(format!(
            "expected sequence of length {} at dim {depth} (got {n})",
            shape[depth]
        )));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().try_for_each(|item| flatten(&item, shape, depth + 1, kind, out));
    }
    for i in 0..n {
        flatten(&object.get_item(i)?, shape, depth + 1, kind, out)?;
    }
    Ok(())
}

/// Appends the elements of a tensor or array that stands in place of a list.
fn append_elements(
    t: &Tensor,
    shape: &[usize],
    depth: usize,
    kind: &mut Option<DType>,
    out: &mut Vec<ListItem>,
) -> PyResult<()> {
    vmap::need_values(t)?;
    let own = t.shape();
    for (i, &wanted) in shape[depth..].iter().enumerate() {
        let Some(&n) = own.get(i) else { return Err(PyTypeError::new_err("not a sequence")) };
        if n != wanted {
            let dim = depth + i;
            return Err(PyValueError::new_err(format!(
                "expected sequence of length {wanted} at dim {dim} (got {n})"
            )));
        }
    }
    *kind = Some(kind.map_or(t.dtype(), |k| k.promote(t.dtype())));
    let host = copies::to_device(&detached::shallow(t), Device::Cpu)?;
    let dense = crate::operator::bodies::duplicate(&host.body())?;
    let view = dense.host_of_any_dtype()?;
    // SAFETY: the body is contiguous and holds that many elements.
    let read = |i| unsafe { Scalar::read(dense.dtype, view.ptr.add(i * dense.dtype.size())) };
    (0..dense.numel()).try_for_each(|i| try_alloc::push(out, ListItem::Number(read(i))))?;
    Ok(())
}

/// Allocates a list for the elements of a shape; a short one grows on demand.
fn allocate_items(shape: &[usize]) -> PyResult<Vec<ListItem>> {
    const MANY: usize = 1 << 16;
    let count = checked_numel(shape)?;
    Ok(try_alloc::with_capacity(if count < MANY { 0 } else { count })?)
}

/// `tensor(data)`: copies nested sequences, numbers, an array or a tensor.
pub fn from_nested(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    if let Ok(t) = object.cast::<PyTensor>() {
        let t = detached::shallow(&t.get().tensor);
        let copy = Tensor::new(crate::operator::bodies::duplicate(&t.body())?);
        return Ok(copies::to_dtype(&copy, dtype.unwrap_or(copy.dtype()))?);
    }
    if is_array(object)? {
        let shared = from_array(object)?;
        let copy = Tensor::new(crate::operator::bodies::duplicate(&shared.body())?);
        return Ok(copies::to_dtype(&copy, dtype.unwrap_or(copy.dtype()))?);
    }
    let mut shape = Dims::new();
    let mut kind = None;
    infer_shape(object, &mut shape, 0)?;
    let mut values = allocate_items(&shape)?;
    flatten(object, &shape, 0, &mut kind, &mut values)?;
    let dtype = dtype.or(kind).unwrap_or_else(default_dtype);
    let body = Body::new(&shape, dtype, Device::Cpu)?;
    if values.len() != body.numel() {
        return Err(PyValueError::new_err("the sequence changed while it was read"));
    }
    capture::constant(&body, |start| {
        for (i, value) in values.iter().enumerate() {
            let value = fits(value, dtype)?;
            // SAFETY: the body is contiguous and holds that many elements.
            unsafe { value.write(dtype, start.add(i * dtype.size())) };
        }
        Ok::<(), PyErr>(())
    })?;
    Ok(Tensor::new(body))
}

/// Returns the number if the dtype can hold it.
fn fits(value: &ListItem, dtype: DType) -> PyResult<Scalar> {
    let value = match *value {
        ListItem::TooLong(Some(number), _) if dtype == DType::U64 => Scalar::Unsigned(number),
        ListItem::TooLong(..) if dtype.is_int() => return Err(too_long()),
        ListItem::TooLong(_, number) => Scalar::Float(number),
        ListItem::Number(Scalar::Float(_)) if dtype == DType::U64 => {
            return Err(PyTypeError::new_err("an integer is required"));
        }
        ListItem::Number(Scalar::Int(..0)) if dtype == DType::U64 => {
            return Err(PyOverflowError::new_err("can't convert negative int to unsigned"));
        }
        ListItem::Number(number) => number,
        ListItem::OfFloats(_) if !dtype.is_differentiable() => return Err(no_index()),
        ListItem::OfFloats(Scalar::Complex(..)) if dtype.is_float() => return Err(overflow("double").into()),
        ListItem::OfFloats(number) => number,
    };
    if matches!(value, Scalar::Complex(..)) && !dtype.is_complex() {
        return match dtype {
            DType::Bool => Ok(value),
            _ if dtype.is_float() => Err(PyTypeError::new_err("must be real number, not complex")),
            _ => Err(PyTypeError::new_err("'complex' object cannot be interpreted as an integer")),
        };
    }
    // A float that is too large becomes infinite, so only ints are checked.
    if dtype.is_int() && !value.fits(dtype) { Err(overflow(dtype.name()).into()) } else { Ok(value) }
}

/// `tensor(data, dtype, device)`.
#[pyfunction]
pub fn make_tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.map(|d| dtype_argument("tensor", "dtype", None, d)).transpose()?;
    let mut t = from_nested(data, dtype)?;
    let device = device.filter(|d| !d.is_none()).map(device_from).transpose()?;
    if let Some(device) = device.or_else(default_device::chosen) {
        t = copies::to_device(&t, device)?;
    }
    if requires_grad {
        if t.history().is_some() {
            t = detached::shallow(&t);
        }
        if !t.dtype().is_differentiable() {
            return Err(PyRuntimeError::new_err(
                "Only Tensors of floating point and complex dtype can require gradients",
            ));
        }
        t.set_requires_grad(true)?;
    }
    wrap(py, t)
}

fn numbers<'py>(py: Python<'py>, body: &Body, dim: usize, offset: usize) -> PyResult<Bound<'py, PyAny>> {
    if dim == body.layout.ndim() {
        let base =
            body.storage.host().ok_or_else(|| PyRuntimeError::new_err("the tensor is not in host memory"))?;
        // SAFETY: the layout lies inside the storage.
        return Ok(match unsafe { Scalar::read(body.dtype, base.add(offset * body.dtype.size())) } {
            Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
            Scalar::Int(i) => to_object(py, i)?,
            Scalar::Unsigned(u) => to_object(py, u)?,
            Scalar::Float(f) => to_object(py, f)?,
            // SAFETY: the call returns a new object, or null with an exception set.
            Scalar::Complex(re, im) => unsafe {
                Bound::from_owned_ptr_or_err(py, ffi::PyComplex_FromDoubles(re, im))?
            },
        });
    }
    let (n, stride) = (body.shape()[dim], body.layout.strides[dim]);
    Ok(to_list(py, n, (0..n).map(|i| numbers(py, body, dim + 1, offset + i * stride)))?.into_any())
}

/// Deeper lists could overflow the stack.
const MOST_NESTED: usize = 1000;

pub fn tolist<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    vmap::need_values(&slf.get().tensor)?;
    let host = copies::to_device(&detached::shallow(&slf.get().tensor), Device::Cpu)?;
    let body = crate::operator::bodies::conj_neg::values(&host.body())?;
    if body.layout.ndim() > MOST_NESTED {
        let text = format!("maximum recursion depth exceeded: a list of {} levels", body.layout.ndim());
        return Err(PyRecursionError::new_err(text));
    }
    numbers(slf.py(), &body, 0, body.layout.offset)
}
