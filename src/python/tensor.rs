//! The Tensor class: identity, number slots, attributes. Operators hang on it from the table.
// PyO3's expansion inside our macro counts as our code to this lint.
#![allow(unsafe_op_in_unsafe_fn)]

use super::errors::carry;
use super::node::node_object;
use super::parse::scalar_from;
use super::types::{PyDType, device_object, dtype_object, size_object};
use crate::base::{DType, Error, Scalar};
use crate::ops::pointwise::{Pointwise, apply, apply_inplace};
use crate::ops::{self, Operand, arithmetic as a, unary as u};
use crate::tensor::{Tensor, any_hosted};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTypeInfo, ffi, intern};
use std::sync::atomic::{AtomicUsize, Ordering};

#[pyclass(name = "Tensor", module = "gradiron", frozen, subclass, dict, weakref)]
pub struct PyTensor {
    pub tensor: Tensor,
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        self.tensor.host_object().store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// The Python object of a tensor: the living one, or a new one.
#[inline]
pub fn wrap(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    let host = tensor.host_object().load(Ordering::Acquire).cast::<ffi::PyObject>();
    // SAFETY: the pointer is cleared before its object goes, and we hold the interpreter.
    if !host.is_null() && unsafe { ffi::Py_REFCNT(host) } > 0 {
        // SAFETY: as above: the object is alive.
        return Ok(unsafe { Bound::from_borrowed_ptr(py, host) });
    }
    let object = allocate(py, tensor)?;
    adopt(&object);
    Ok(object.into_any())
}

/// Where the Rust value lies in an object of the class, found on the first one.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// A new object. `object.__new__`, which PyO3 goes through, would give each its dictionary at once (Python 3.11 and
/// 3.12 do): half of the cost of a small operator. Here the slots start empty, as the allocator leaves them.
fn allocate(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    let place = PLACE.load(Ordering::Relaxed);
    if place == 0 {
        let object = Bound::new(py, PyTensor { tensor })?;
        PLACE.store(std::ptr::from_ref(object.get()) as usize - object.as_ptr() as usize, Ordering::Relaxed);
        return Ok(object);
    }
    let class = PyTensor::type_object_raw(py);
    // SAFETY: the class is a heap type with the generic allocator, which zeroes: empty dictionary and weak references.
    // The value is written before anybody sees the object; the class has no borrow flag (frozen) and no thread check (Send).
    unsafe {
        let object = ffi::PyType_GenericAlloc(class, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        object.cast::<u8>().add(place).cast::<PyTensor>().write(PyTensor { tensor });
        Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

/// Ties a fresh object (a subclass's, made by `__new__`) to its tensor.
pub fn adopt(object: &Bound<'_, PyTensor>) {
    object.get().tensor.host_object().store(object.as_ptr().cast(), Ordering::Release);
}

fn operand<'a>(object: &'a Bound<'_, PyAny>) -> Option<Operand<'a>> {
    match object.cast::<PyTensor>() {
        Ok(t) => Some(Operand::Tensor(&t.get().tensor)),
        Err(_) => scalar_from(object).map(Operand::Scalar),
    }
}

const LONG: usize = 16_384;

fn compute<'py>(py: Python<'py>, op: &'static Pointwise, operands: &[Operand]) -> PyResult<Bound<'py, PyAny>> {
    let long = operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.numel() >= LONG));
    let made = if long { py.detach(|| apply(op, operands)) } else { apply(op, operands) };
    wrap(py, made?)
}

fn binary<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Bound<'py, PyAny>,
    op: &'static Pointwise,
    swapped: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let Some(other) = operand(other) else { return Ok(py.NotImplemented().into_bound(py)) };
    let own = Operand::Tensor(&slf.get().tensor);
    compute(py, op, &if swapped { [other, own] } else { [own, other] })
}

fn inplace(slf: &Bound<'_, PyTensor>, other: &Bound<'_, PyAny>, op: &'static Pointwise) -> PyResult<()> {
    let Some(value) = operand(other) else {
        return Err(PyTypeError::new_err(format!(
            "unsupported operand type(s) for {}=: 'Tensor' and '{}'",
            op.row.name,
            other.get_type().name()?
        )));
    };
    let target = &slf.get().tensor;
    let write = || apply_inplace(op, target, &[Operand::Tensor(target), value]);
    if target.numel() >= LONG { slf.py().detach(write)? } else { write()? };
    Ok(())
}

fn power<'py>(slf: &Bound<'py, PyTensor>, exponent: &Bound<'py, PyAny>, swapped: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let Some(exponent) = operand(exponent) else { return Ok(py.NotImplemented().into_bound(py)) };
    let own = Operand::Tensor(&slf.get().tensor);
    let (base, exponent) = if swapped { (exponent, own) } else { (own, exponent) };
    wrap(py, ops::power::power(base, exponent)?)
}

macro_rules! slots {
    ($($name:ident $(/ $reflected:ident)? = $row:path;)* @inplace $($iname:ident = $irow:path;)* @compare $($cname:ident = $crow:path;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $name<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    binary(slf, other, &$row, false)
                }
                $(fn $reflected<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    binary(slf, other, &$row, true)
                })?
            )*
            $(fn $iname(slf: &Bound<'_, PyTensor>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                inplace(slf, other, &$irow)
            })*
            fn __richcmp__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>, op: pyo3::basic::CompareOp) -> PyResult<Bound<'py, PyAny>> {
                use pyo3::basic::CompareOp;
                let row = match op {
                    CompareOp::Eq => &a::eq::ROW,
                    CompareOp::Ne => &a::ne::ROW,
                    CompareOp::Lt => &a::lt::ROW,
                    CompareOp::Le => &a::le::ROW,
                    CompareOp::Gt => &a::gt::ROW,
                    CompareOp::Ge => &a::ge::ROW,
                };
                binary(slf, other, row, false)
            }
            fn __hash__(slf: &Bound<'_, PyTensor>) -> isize {
                slf.as_ptr() as isize >> 4
            }
            fn __pow__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>, _modulo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                power(slf, other, false)
            }
            fn __rpow__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>, _modulo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                power(slf, other, true)
            }
            fn __matmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                let Ok(other) = other.cast::<PyTensor>() else { return Ok(py.NotImplemented().into_bound(py)) };
                let (x, y) = (&slf.get().tensor, &other.get().tensor);
                let long = x.numel() + y.numel() >= 2048;
                let made = if long { py.detach(|| ops::linalg::matmul(x.clone(), y.clone())) } else { ops::linalg::matmul(x.clone(), y.clone()) };
                wrap(py, made?)
            }
            fn __rsub__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                binary(slf, other, &a::rsub::ROW, false)
            }
            fn __rtruediv__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                let Some(other) = operand(other) else { return Ok(py.NotImplemented().into_bound(py)) };
                // By way of the reciprocal, as PyTorch rounds it.
                let inverse = apply(&u::reciprocal::ROW, &[Operand::Tensor(&slf.get().tensor)])?;
                compute(py, &a::mul::ROW, &[Operand::Tensor(&inverse), other])
            }
            fn __neg__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                compute(slf.py(), &a::neg::ROW, &[Operand::Tensor(&slf.get().tensor)])
            }
            fn __pos__<'py>(slf: &Bound<'py, PyTensor>) -> Bound<'py, PyAny> {
                slf.clone().into_any()
            }
            fn __abs__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                compute(slf.py(), &u::abs::ROW, &[Operand::Tensor(&slf.get().tensor)])
            }
            fn __invert__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                wrap(slf.py(), ops::power::bitwise_not(slf.get().tensor.clone())?)
            }
        }
    };
}
slots! {
    __add__ / __radd__ = a::add::ROW;
    __sub__ = a::sub::ROW;
    __mul__ / __rmul__ = a::mul::ROW;
    __truediv__ = a::div::ROW;
    __floordiv__ / __rfloordiv__ = a::floor_divide::ROW;
    __mod__ / __rmod__ = a::remainder::ROW;
    __and__ / __rand__ = a::bitwise_and::ROW;
    __or__ / __ror__ = a::bitwise_or::ROW;
    __xor__ / __rxor__ = a::bitwise_xor::ROW;
    __lshift__ / __rlshift__ = a::bitwise_left_shift::ROW;
    __rshift__ / __rrshift__ = a::bitwise_right_shift::ROW;
    @inplace
    __iadd__ = a::add::ROW;
    __isub__ = a::sub::ROW;
    __imul__ = a::mul::ROW;
    __itruediv__ = a::div::ROW;
    __ifloordiv__ = a::floor_divide::ROW;
    __imod__ = a::remainder::ROW;
    __iand__ = a::bitwise_and::ROW;
    __ior__ = a::bitwise_or::ROW;
    __ixor__ = a::bitwise_xor::ROW;
    @compare
}

const NON_LEAF_GRAD: &std::ffi::CStr = c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its \
    .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for \
    a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure \
    you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations.";

fn shape_attribute<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    size_object(slf.py(), &slf.get().tensor.body().layout.shape)
}

#[pymethods]
impl PyTensor {
    #[getter]
    fn shape<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        shape_attribute(slf)
    }
    #[pyo3(signature = (dim = None))]
    fn size<'py>(slf: &Bound<'py, PyTensor>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => shape_attribute(slf),
            Some(dim) => {
                let shape = slf.get().tensor.shape();
                let n = shape.get(crate::base::wrap_dim(dim, shape.len())?).copied();
                let n = n.ok_or_else(|| Error::index("dimension specified as 0 but tensor has no dimensions"))?;
                Ok(n.into_pyobject(slf.py())?.into_any())
            }
        }
    }
    #[pyo3(signature = (dim = None))]
    fn stride<'py>(slf: &Bound<'py, PyTensor>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let strides = slf.get().tensor.body().layout.strides.clone();
        match dim {
            None => Ok(PyTuple::new(slf.py(), &strides)?.into_any()),
            Some(dim) => {
                let n = strides[crate::base::wrap_dim(dim, strides.len())?];
                Ok(n.into_pyobject(slf.py())?.into_any())
            }
        }
    }
    fn storage_offset(&self) -> usize {
        self.tensor.body().layout.offset
    }
    fn numel(&self) -> usize {
        self.tensor.numel()
    }
    fn nelement(&self) -> usize {
        self.tensor.numel()
    }
    fn element_size(&self) -> usize {
        self.tensor.dtype().size()
    }
    #[getter]
    fn itemsize(&self) -> usize {
        self.tensor.dtype().size()
    }
    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.numel() * self.tensor.dtype().size()
    }
    fn dim(&self) -> usize {
        self.tensor.ndim()
    }
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.ndim()
    }
    fn is_contiguous(&self) -> bool {
        self.tensor.body().layout.is_contiguous()
    }
    fn is_floating_point(&self) -> bool {
        self.tensor.dtype().is_float()
    }
    fn data_ptr(&self) -> usize {
        let body = self.tensor.body();
        let start = body.storage.host().map_or_else(|| body.storage.id(), |p| p as usize);
        if body.numel() == 0 { 0 } else { start + body.layout.offset * body.dtype.size() }
    }
    /// Names the storage: equal for tensors that share memory.
    fn _storage_id(&self) -> usize {
        self.tensor.body().storage.id()
    }
    fn _storage_bytes(&self) -> usize {
        self.tensor.body().storage.len()
    }
    #[getter]
    fn dtype(slf: &Bound<'_, PyTensor>) -> PyResult<Py<PyDType>> {
        dtype_object(slf.py(), slf.get().tensor.dtype())
    }
    #[getter(device)]
    fn place<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Py<super::types::PyDevice>> {
        device_object(slf.py(), slf.get().tensor.device())
    }
    #[getter]
    fn is_cuda(&self) -> bool {
        !self.tensor.device().is_cpu()
    }
    #[getter]
    fn is_cpu(&self) -> bool {
        self.tensor.device().is_cpu()
    }
    #[pyo3(name = "get_device")]
    fn device_index(&self) -> i64 {
        match self.tensor.device() {
            crate::base::Device::Cpu => -1,
            crate::base::Device::Gpu(_, index) => i64::from(index),
        }
    }
    #[getter]
    fn is_leaf(&self) -> bool {
        self.tensor.is_leaf()
    }
    #[getter]
    fn requires_grad(&self) -> bool {
        self.tensor.requires_grad()
    }
    #[setter]
    fn set_requires_grad(&self, on: bool) -> PyResult<()> {
        Ok(self.tensor.set_requires_grad(on)?)
    }
    #[pyo3(signature = (requires_grad = true))]
    fn requires_grad_<'py>(slf: &Bound<'py, PyTensor>, requires_grad: bool) -> PyResult<Bound<'py, PyTensor>> {
        slf.get().tensor.set_requires_grad(requires_grad)?;
        Ok(slf.clone())
    }
    #[getter]
    fn grad<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        let t = &slf.get().tensor;
        let grad = t.grad();
        if grad.is_none() && !t.is_leaf() && !t.retains_grad() {
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), NON_LEAF_GRAD, 1)?;
        }
        grad.map(|g| wrap(py, g)).transpose()
    }
    #[setter]
    fn set_grad(&self, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(value) = value.filter(|v| !v.is_none()) else {
            self.tensor.set_grad(None);
            return Ok(());
        };
        let Ok(grad) = value.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err(format!(
                "assigned grad expected to be a Tensor or None but got grad of type {}",
                value.get_type().name()?
            )));
        };
        let (own, new) = (self.tensor.body(), grad.get().tensor.body());
        if grad.get().tensor.same(&self.tensor) {
            return Err(PyRuntimeError::new_err("can't assign Variable as its own grad"));
        }
        if own.dtype != new.dtype {
            return Err(PyRuntimeError::new_err(format!(
                "assigned grad has data of a different type, expected {} but got {}",
                crate::tensor::type_string(own.dtype, own.device()),
                crate::tensor::type_string(new.dtype, new.device())
            )));
        }
        if !own.device().same_place(new.device()) {
            return Err(PyRuntimeError::new_err("assigned grad has data located on a different device"));
        }
        if own.shape() != new.shape() {
            return Err(PyRuntimeError::new_err("assigned grad has data of a different size"));
        }
        drop((own, new));
        self.tensor.set_grad(Some(grad.get().tensor.clone()));
        Ok(())
    }
    #[deleter]
    fn delete_grad(&self) {
        self.tensor.set_grad(None);
    }
    #[getter]
    fn grad_fn<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        slf.get().tensor.history().map(|edge| node_object(slf.py(), edge.node)).transpose()
    }
    #[getter]
    fn output_nr(&self) -> u32 {
        self.tensor.history().map_or(0, |edge| edge.output)
    }
    #[getter]
    fn retains_grad(&self) -> bool {
        self.tensor.retains_grad()
    }
    fn retain_grad(&self) -> PyResult<()> {
        if self.tensor.is_leaf() && self.tensor.requires_grad() {
            return Ok(());
        }
        Ok(self.tensor.retain_grad()?)
    }
    #[getter]
    fn _version(&self) -> u32 {
        self.tensor.version()
    }
    fn _is_view(&self) -> bool {
        self.tensor.as_view().is_some()
    }
    #[getter]
    fn _base<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        slf.get().tensor.as_view().map(|view| wrap(slf.py(), view.base.clone())).transpose()
    }
    #[getter]
    fn data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        wrap(slf.py(), ops::create::data(&slf.get().tensor))
    }
    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(other) = value.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err(format!(
                "Variable data has to be a tensor, but got {}",
                value.get_type().name()?
            )));
        };
        let body = other.get().tensor.body().clone();
        if self.tensor.requires_grad() && !body.dtype.is_float() {
            return Err(PyRuntimeError::new_err("data set to a tensor that requires gradients must be floating point or complex dtype"));
        }
        self.tensor.set_body(body);
        Ok(())
    }
    fn detach<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        wrap(slf.py(), ops::create::shallow(&slf.get().tensor))
    }
    fn detach_<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let t = &slf.get().tensor;
        if t.as_view().is_some() {
            return Err(PyRuntimeError::new_err(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for \
                 training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence \
                 detach_() cannot be called on these gradients. To fix this error, please refer to the \
                 Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution.",
            ));
        }
        if !t.is_leaf() {
            t.set_history(None);
        }
        t.set_requires_grad(false)?;
        Ok(slf.clone())
    }
    fn item<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        Ok(match slf.get().tensor.item()? {
            Scalar::Bool(b) => pyo3::types::PyBool::new(py, b).to_owned().into_any(),
            Scalar::Int(i) => i.into_pyobject(py)?.into_any(),
            Scalar::Float(f) => f.into_pyobject(py)?.into_any(),
        })
    }
    fn __bool__(&self) -> PyResult<bool> {
        let n = self.tensor.numel();
        if n == 1 {
            return Ok(self.tensor.item()?.as_bool());
        }
        Err(PyRuntimeError::new_err(if n == 0 {
            "Boolean value of Tensor with no values is ambiguous"
        } else {
            "Boolean value of Tensor with more than one value is ambiguous"
        }))
    }
    fn __float__(&self) -> PyResult<f64> {
        Ok(self.tensor.item()?.as_f64())
    }
    fn __int__(&self) -> PyResult<i64> {
        match self.tensor.item()? {
            Scalar::Float(f) if f.is_nan() => Err(pyo3::exceptions::PyValueError::new_err("cannot convert float NaN to integer")),
            Scalar::Float(f) if f.is_infinite() => {
                Err(pyo3::exceptions::PyOverflowError::new_err("cannot convert float infinity to integer"))
            }
            s => Ok(s.as_i64()),
        }
    }
    fn __index__(&self) -> PyResult<i64> {
        if self.tensor.dtype().is_float() || self.tensor.numel() != 1 {
            return Err(PyTypeError::new_err("only integer tensors of a single element can be converted to an index"));
        }
        Ok(self.tensor.item()?.as_i64())
    }
    fn __len__(&self) -> PyResult<usize> {
        match self.tensor.body().shape().first() {
            Some(&n) => Ok(n),
            None => Err(PyTypeError::new_err("len() of a 0-d tensor")),
        }
    }
    fn __getitem__<'py>(slf: &Bound<'py, PyTensor>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::index::get(slf, index)
    }
    fn __setitem__(slf: &Bound<'_, PyTensor>, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        super::index::set(slf, index, value)
    }
    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("Tensor does not support deleting items"))
    }
    #[pyo3(signature = (gradient = None, retain_graph = None, create_graph = false, inputs = None))]
    fn backward(
        slf: &Bound<'_, PyTensor>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        super::autograd::backward_one(slf, gradient, retain_graph, create_graph, inputs)
    }
    fn register_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::autograd::tensor_hook(slf, hook)
    }
    fn register_post_accumulate_grad_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::autograd::accumulate_hook(slf, hook)
    }
    #[pyo3(signature = (src, non_blocking = None))]
    fn copy_<'py>(slf: &Bound<'py, PyTensor>, src: &Bound<'py, PyAny>, non_blocking: Option<bool>) -> PyResult<Bound<'py, PyTensor>> {
        let _ = non_blocking;
        let source = match src.cast::<PyTensor>() {
            Ok(t) => t.get().tensor.clone(),
            Err(_) => match scalar_from(src) {
                Some(s) => ops::create::scalar_tensor(s, None)?,
                None => {
                    return Err(PyTypeError::new_err(format!(
                        "copy_(): argument 'other' (position 1) must be Tensor, not {}",
                        src.get_type().name()?
                    )));
                }
            },
        };
        let target = &slf.get().tensor;
        if target.numel() >= LONG {
            slf.py().detach(|| ops::inplace::copy_into(target, &source))?;
        } else {
            ops::inplace::copy_into(target, &source)?;
        }
        Ok(slf.clone())
    }
    fn tolist<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        super::interop::tolist(slf)
    }
    #[new]
    #[pyo3(signature = (*args, dtype = None, device = None, requires_grad = false))]
    fn new(
        args: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyDType>>,
        device: Option<&Bound<'_, PyAny>>,
        requires_grad: bool,
    ) -> PyResult<PyTensor> {
        let made = super::interop::legacy(args, dtype, device)?;
        if requires_grad {
            made.set_requires_grad(true)?;
        }
        Ok(PyTensor { tensor: made })
    }
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Between its allocation and its first value an object is all zeroes, and the collector may already look.
        // SAFETY: a tensor is one pointer; reading it as a number is always defined here.
        let empty = unsafe { std::ptr::from_ref(&self.tensor).cast::<usize>().read() } == 0;
        if any_hosted() && !empty { super::node::traverse(&self.tensor, &visit) } else { Ok(()) }
    }
}

/// Refuses what exists in PyTorch but not here, by name.
pub fn missing(what: &str) -> PyErr {
    PyNotImplementedError::new_err(format!("gradiron does not have {what} yet"))
}

/// Attribute access on a foreign object during a backward keeps its exception.
pub fn foreign<T>(result: PyResult<T>) -> crate::base::Result<T> {
    result.map_err(carry)
}

/// The default dtype as Python's object.
pub fn default_dtype(py: Python<'_>) -> PyResult<Py<PyDType>> {
    dtype_object(py, ops::create::default_dtype())
}

/// Whether an object is a tensor, by its class name for foreign ones.
pub fn is_number_like(object: &Bound<'_, PyAny>) -> bool {
    object.hasattr(intern!(object.py(), "__float__")).unwrap_or(false)
}

pub const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
