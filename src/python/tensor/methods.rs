//! Methods of the Tensor class that have no row: number slots and Python's protocols.
#![allow(unsafe_op_in_unsafe_fn, reason = "PyO3's expansion inside our macro counts as our code")]

use crate::base::{self, DType, Scalar, watch};
use crate::operator::pointwise::{Pointwise, apply, apply_inplace};
use crate::operator::primitives::constant;
use crate::operator::{Arg, Operand};
use crate::ops;
use crate::ops::elementwise::{arithmetic as a, unary as u};
use crate::python::autograd::backward;
use crate::python::call::overrides::{OverrideCall, may_be_overridden};
use crate::python::call::run::LONG;
use crate::python::call::run::running;
use crate::python::call::signature_errors::too_big;
use crate::python::data::nested_lists;
use crate::python::modes::profile;
use crate::python::numbers::scalar_from;
use crate::python::numbers::tell_of_loss;
use crate::python::objects::{ClassName, ToObject, to_object};
use crate::python::tensor::index;
use crate::python::transforms::func;
use crate::python::transforms::vmap;
use crate::python::types;
use crate::python::types::{PyDType, dtype_object};
use crate::python::wrapper::class::{PyTensor, no_index, wrap};
use crate::python::wrapper::collector;
use crate::python::wrapper::collector::Start;
use crate::tensor::any_hosted;
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::collections::HashMap;

/// Reads a tensor or a number; None for anything else.
pub fn operand<'a>(object: &'a Bound<'_, PyAny>) -> Option<Operand<'a>> {
    match object.cast::<PyTensor>() {
        Ok(t) => Some(Operand::Tensor(&t.get().tensor)),
        Err(_) => scalar_from(object).map(Operand::Scalar),
    }
}

/// Handles an operand of unknown type: calls its override, or returns `NotImplemented` so that Python asks
/// the operand.
#[cold]
fn unknown_operand<'py>(
    slot: &'static str,
    own: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    if let Some(taken) = OverrideCall::of_slot(slot, own, other) {
        return taken;
    }
    refuse_big_int(other)?;
    Ok(py.NotImplemented().into_bound(py))
}

/// Raises for an int, which is unknown only if it is too big.
#[cold]
fn refuse_big_int(other: &Bound<'_, PyAny>) -> PyResult<()> {
    if other.is_instance_of::<PyInt>() { Err(too_big()) } else { Ok(()) }
}

/// The other operand of an in-place operator. For an unknown type Python gets `NotImplemented`, and asks
/// the operand's class.
struct InplaceOperand<'a, 'py> {
    object: Borrowed<'a, 'py, PyAny>,
    /// The object as a number, converted once.
    number: Option<Scalar>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for InplaceOperand<'a, 'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<InplaceOperand<'a, 'py>> {
        if object.is_instance_of::<PyTensor>() {
            return Ok(InplaceOperand { object, number: None });
        }
        let number = scalar_from(&object);
        if number.is_some() || object.is_instance_of::<PyInt>() || may_be_overridden(&object) {
            return Ok(InplaceOperand { object, number });
        }
        Err(PyTypeError::new_err("unsupported operand"))
    }
}

impl InplaceOperand<'_, '_> {
    /// Returns the operand; raises for an object whose override returned `NotImplemented`.
    fn operand(&self, name: &str) -> PyResult<Operand<'_>> {
        let object: &Bound<'_, PyAny> = &self.object;
        if let Some(number) = self.number {
            return Ok(Operand::Scalar(number));
        }
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Operand::Tensor(&tensor.get().tensor));
        }
        refuse_big_int(object)?;
        Err(PyTypeError::new_err(format!(
            "unsupported operand type(s) for {name}=: 'Tensor' and '{}'",
            object.class_name()?
        )))
    }
}

/// Python's slot of the matrix product.
const PRODUCT: &str = "__matmul__";

/// Returns the operator's name for a slot of the same name.
fn of_slot(slot: &'static str) -> &'static str {
    slot.trim_matches('_')
}

/// Handles a product with an operand that is not a tensor: its class may have an override.
#[cold]
fn no_product<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    OverrideCall::of_slot(PRODUCT, slf, other).unwrap_or_else(|| Ok(py.NotImplemented().into_bound(py)))
}

/// `x @ y` calls the method while a mode or override is active.
#[cold]
fn watched_product<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    match other.is_instance_of::<PyTensor>() {
        true => slf.call_method1(of_slot(PRODUCT), (other,)),
        false => no_product(slf, other),
    }
}

#[inline(never)]
fn compute<'py>(
    py: Python<'py>,
    op: &'static Pointwise,
    operands: &[Operand],
) -> PyResult<Bound<'py, PyAny>> {
    let _span = profile::operands(&op.row, false, operands);
    finish(py, op, operands)
}

#[inline(always)]
fn finish<'py>(py: Python<'py>, op: &'static Pointwise, operands: &[Operand]) -> PyResult<Bound<'py, PyAny>> {
    let long = operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.numel() >= LONG));
    wrap(py, running(py, long, || apply(op, operands))?)
}

fn binary<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Bound<'py, PyAny>,
    op: &'static Pointwise,
    swapped: bool,
    slot: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let watched = watch::any();
    if watched
        && watch::has(watch::OVERRIDES)
        && let Some(taken) = OverrideCall::of_slot(slot, slf, other)
    {
        return taken;
    }
    let Some(other) = operand(other) else { return unknown_operand(slot, slf, other) };
    let own = Operand::Tensor(&slf.get().tensor);
    let operands = if swapped { [other, own] } else { [own, other] };
    if watched { compute(slf.py(), op, &operands) } else { finish(slf.py(), op, &operands) }
}

fn inplace(
    slf: &Bound<'_, PyTensor>,
    other: &InplaceOperand<'_, '_>,
    op: &'static Pointwise,
    slot: &'static str,
) -> PyResult<()> {
    if watch::has(watch::OVERRIDES)
        && let Some(taken) = OverrideCall::of_slot(slot, slf, &other.object)
    {
        return taken.map(drop);
    }
    let value = other.operand(op.row.name)?;
    let target = &slf.get().tensor;
    func::check_operands(op, &[Operand::Tensor(target), value])?;
    let _span = profile::operands(&op.row, true, &[Operand::Tensor(target), value]);
    let write = || apply_inplace(op, target, &[Operand::Tensor(target), value]);
    Ok(running(slf.py(), target.numel() >= LONG, write)?)
}

fn power<'py>(
    slf: &Bound<'py, PyTensor>,
    exponent: &Bound<'py, PyAny>,
    swapped: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let slot = if swapped { "__rpow__" } else { "__pow__" };
    let Some(exponent) = operand(exponent) else { return unknown_operand(slot, slf, exponent) };
    let own = Operand::Tensor(&slf.get().tensor);
    let (base, exponent) = if swapped { (exponent, own) } else { (own, exponent) };
    let _span = profile::named(|| ops::elementwise::power::POW.name, [slf.as_any()]);
    wrap(
        py,
        running(py, slf.get().tensor.numel() >= LONG, || ops::elementwise::power::power(base, exponent))?,
    )
}

fn power_inplace(slf: &Bound<'_, PyTensor>, exponent: &InplaceOperand<'_, '_>) -> PyResult<()> {
    let target = Arg::Tensor(slf.get().tensor.clone());
    let exponent = match exponent.operand("**")? {
        Operand::Tensor(t) => Arg::Tensor(t.clone()),
        Operand::Scalar(s) => Arg::from(s),
    };
    func::check_arguments(&ops::elementwise::power::POW, &[target.clone(), exponent.clone()])?;
    let _span = profile::call(&ops::elementwise::power::POW, true, [slf.as_any()]);
    let write = || crate::operator::inplace::row::apply(&ops::elementwise::power::POW, &[target, exponent]);
    Ok(crate::tensor::saved_hooks::after(write)?)
}

macro_rules! slots {
    ($($name:ident $(/ $reflected:ident)? = $row:path;)* @inplace $($iname:ident = $irow:path;)* @compare $($cname:ident = $crow:path;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $name<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    binary(slf, other, &$row, false, stringify!($name))
                }
                $(fn $reflected<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    binary(slf, other, &$row, true, stringify!($reflected))
                })?
            )*
            $(fn $iname(slf: &Bound<'_, PyTensor>, other: InplaceOperand<'_, '_>) -> PyResult<()> {
                inplace(slf, &other, &$irow, stringify!($iname))
            })*
            fn __richcmp__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>, op: pyo3::basic::CompareOp) -> PyResult<Bound<'py, PyAny>> {
                use pyo3::basic::CompareOp;
                let (row, slot) = match op {
                    CompareOp::Eq => (&a::eq::ROW, "__eq__"),
                    CompareOp::Ne => (&a::ne::ROW, "__ne__"),
                    CompareOp::Lt => (&a::lt::ROW, "__lt__"),
                    CompareOp::Le => (&a::le::ROW, "__le__"),
                    CompareOp::Gt => (&a::gt::ROW, "__gt__"),
                    CompareOp::Ge => (&a::ge::ROW, "__ge__"),
                };
                binary(slf, other, row, false, slot)
            }
            fn __hash__(slf: &Bound<'_, PyTensor>) -> isize {
                slf.as_ptr() as isize // `id(x)`
            }
            fn __pow__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>, _modulo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                power(slf, other, false)
            }
            fn __rpow__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>, _modulo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                power(slf, other, true)
            }
            fn __ipow__(slf: &Bound<'_, PyTensor>, other: InplaceOperand<'_, '_>, _modulo: &Bound<'_, PyAny>) -> PyResult<()> {
                power_inplace(slf, &other)
            }
            fn __matmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                if watch::any() {
                    return watched_product(slf, other);
                }
                let Ok(other) = other.cast::<PyTensor>() else { return no_product(slf, other) };
                let (x, y) = (&slf.get().tensor, &other.get().tensor);
                let long = x.numel() + y.numel() >= 2048;
                let made = running(py, long, || ops::linalg::matmul::matmul(x, y));
                wrap(py, made.map_err(|error| error.of_operator(of_slot(PRODUCT)))?)
            }
            // The tensor is the first operand of the node even if it stood last.
            fn __radd__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                binary(slf, other, &a::add::ROW, false, "__radd__")
            }
            fn __rmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                binary(slf, other, &a::mul::ROW, false, "__rmul__")
            }
            fn __rsub__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                binary(slf, other, &a::rsub::ROW, false, "__rsub__")
            }
            fn __rtruediv__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = slf.py();
                let Some(other) = operand(other) else { return unknown_operand("__rtruediv__", slf, other) };
                // Multiplies by the reciprocal, to round as PyTorch does.
                let inverse = apply(&u::reciprocal::ROW, &[Operand::Tensor(&slf.get().tensor)])?;
                compute(py, &a::mul::ROW, &[Operand::Tensor(&inverse), other])
            }
            fn __neg__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                compute(slf.py(), &a::neg::ROW, &[Operand::Tensor(&slf.get().tensor)])
            }
            fn __pos__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                ops::elementwise::power::positive(&slf.get().tensor)?;
                Ok(slf.clone().into_any())
            }
            fn __abs__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                compute(slf.py(), &u::abs::ROW, &[Operand::Tensor(&slf.get().tensor)])
            }
            fn __invert__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
                if slf.get().tensor.dtype().is_differentiable() {
                    return Err(PyTypeError::new_err("~ (operator.invert) is only implemented on integer and Boolean-type tensors"));
                }
                let _span = profile::named(|| ops::elementwise::power::BITWISE_NOT.name, [slf.as_any()]);
                wrap(slf.py(), ops::elementwise::power::bitwise_not(&slf.get().tensor)?)
            }
        }
    };
}
slots! {
    __add__ = a::add::ROW;
    __sub__ = a::sub::ROW;
    __mul__ = a::mul::ROW;
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
    __ilshift__ = a::bitwise_left_shift::ROW;
    __irshift__ = a::bitwise_right_shift::ROW;
    @compare
}

/// Returns the names under which PyTorch exposes the functions of these slots.
#[pyfunction]
pub fn slot_methods() -> HashMap<&'static str, String> {
    let plain = [
        ("__add__", &a::add::ROW.row),
        ("__radd__", &a::add::ROW.row),
        ("__sub__", &a::sub::ROW.row),
        ("__mul__", &a::mul::ROW.row),
        ("__rmul__", &a::mul::ROW.row),
        ("__truediv__", &a::div::ROW.row),
        ("__mod__", &a::remainder::ROW.row),
        ("__rand__", &a::bitwise_and::ROW.row),
        ("__ror__", &a::bitwise_or::ROW.row),
        ("__rxor__", &a::bitwise_xor::ROW.row),
        ("__ne__", &a::ne::ROW.row),
        ("__lt__", &a::lt::ROW.row),
        ("__le__", &a::le::ROW.row),
        ("__gt__", &a::gt::ROW.row),
        ("__ge__", &a::ge::ROW.row),
    ];
    let inplace = [
        ("__iadd__", &a::add::ROW.row),
        ("__isub__", &a::sub::ROW.row),
        ("__imul__", &a::mul::ROW.row),
        ("__itruediv__", &a::div::ROW.row),
    ];
    let names = plain.iter().map(|(slot, row)| (*slot, row.name.to_owned()));
    let names = names.chain([(PRODUCT, of_slot(PRODUCT).to_owned())]);
    names.chain(inplace.iter().map(|(slot, row)| (*slot, format!("{}_", row.name)))).collect()
}

impl PyTensor {
    /// Returns the only element, for Python's number protocols.
    fn number(&self) -> PyResult<Scalar> {
        if self.tensor.numel() != 1 {
            return Err(PyValueError::new_err("only one element tensors can be converted to Python scalars"));
        }
        Ok(self.tensor.item()?)
    }
}

#[pymethods]
impl PyTensor {
    fn __bool__(&self) -> PyResult<bool> {
        let n = self.tensor.numel();
        if self.tensor.is_batched() {
            return Err(vmap::no_branch());
        }
        if n == 1 {
            return Ok(self.tensor.item()?.as_bool());
        }
        Err(PyRuntimeError::new_err(if n == 0 {
            "Boolean value of Tensor with no values is ambiguous"
        } else {
            "Boolean value of Tensor with more than one value is ambiguous"
        }))
    }
    fn __float__(&self) -> PyResult<ToObject<f64>> {
        tell_of_loss(&self.tensor)?;
        let number = self.number()?;
        crate::operator::bodies::holds(DType::F64, number)?;
        Ok(ToObject(number.as_f64()))
    }
    fn __complex__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, pyo3::types::PyComplex>> {
        let number = slf.get().number()?;
        Ok(pyo3::types::PyComplex::from_doubles(slf.py(), number.as_f64(), number.imaginary()))
    }
    fn __int__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let (py, number) = (slf.py(), slf.get().number()?);
        match number {
            Scalar::Unsigned(u) => to_object(py, u),
            // Python's float converts numbers beyond 64 bits, and refuses infinity and NaN.
            Scalar::Float(f) if !number.fits(DType::I64) => {
                to_object(py, f)?.call_method0(intern!(py, "__int__"))
            }
            _ => {
                crate::operator::bodies::holds(DType::I64, number)?;
                to_object(py, number.as_i64())
            }
        }
    }
    fn __index__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let (py, tensor) = (slf.py(), &slf.get().tensor);
        if tensor.dtype().is_differentiable() || tensor.numel() != 1 {
            return Err(no_index());
        }
        match tensor.item()? {
            Scalar::Unsigned(u) => to_object(py, u),
            number => to_object(py, number.as_i64()),
        }
    }
    fn __len__(&self) -> PyResult<usize> {
        match self.tensor.body().shape().first() {
            Some(&n) => Ok(n),
            None => Err(PyTypeError::new_err("len() of a 0-d tensor")),
        }
    }
    fn __getitem__<'py>(
        slf: &Bound<'py, PyTensor>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        index::get(slf, index)
    }
    fn __setitem__(
        slf: &Bound<'_, PyTensor>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        index::set(slf, index, value)
    }
    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("Tensor does not support deleting items"))
    }
    /// Register a function that is called with the gradient of this tensor whenever it is computed.
    ///
    /// Args:
    ///     hook: called as `hook(grad)`; what it returns, if not None, replaces the gradient.
    ///
    /// Returns:
    ///     A handle with a method `remove()`.
    fn register_hook<'py>(slf: &Bound<'py, PyTensor>, hook: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        backward::tensor_hook(slf, hook)
    }
    /// Register a function that is called after a gradient was added to the `grad` of this leaf.
    ///
    /// Args:
    ///     hook: called as `hook(tensor)`.
    ///
    /// Returns:
    ///     A handle with a method `remove()`.
    fn register_post_accumulate_grad_hook<'py>(
        slf: &Bound<'py, PyTensor>,
        hook: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        backward::accumulate_hook(slf, hook)
    }
    /// Copy the elements of another tensor into this one, converted and broadcast.
    ///
    /// Args:
    ///     src: the tensor to copy from.
    ///     non_blocking: not used.
    #[pyo3(signature = (src, non_blocking = None))]
    fn copy_<'py>(
        slf: &Bound<'py, PyTensor>,
        src: &Bound<'py, PyAny>,
        non_blocking: Option<bool>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let _ = non_blocking;
        let _span = profile::named(|| "copy_", [slf.as_any(), src]);
        let source = match src.cast::<PyTensor>() {
            Ok(t) => t.get().tensor.clone(),
            Err(_) => match scalar_from(src) {
                Some(s) => constant::scalar_tensor(s, None)?,
                None => {
                    return Err(PyTypeError::new_err(format!(
                        "copy_(): argument 'other' (position 1) must be Tensor, not {}",
                        src.class_name()?
                    )));
                }
            },
        };
        let target = &slf.get().tensor;
        func::check_write(target, &[&source], || "aten::copy_".into())?;
        types::warn_of_loss(source.dtype(), target.dtype())?;
        running(slf.py(), target.numel() >= LONG, || crate::operator::inplace::copy_into(target, &source))?;
        Ok(slf.clone())
    }
    /// Return the elements as nested lists, or as a number.
    fn tolist<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        nested_lists::tolist(slf)
    }
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector may traverse an object before its value is written; until then it is all zeros.
        // SAFETY: a tensor is one pointer; reading it as a number is always defined here.
        let empty = unsafe { std::ptr::from_ref(&self.tensor).cast::<usize>().read() } == 0;
        if any_hosted() && !empty {
            collector::traverse_tensor(&Start::tensor(self, &self.tensor), &self.tensor, &visit)
        } else {
            Ok(())
        }
    }
    fn __clear__(&self) {
        collector::clear(&Start::tensor(self, &self.tensor));
    }
}

/// Returns the default dtype as a Python object.
pub fn default_dtype(py: Python<'_>) -> PyResult<Py<PyDType>> {
    dtype_object(py, base::default_dtype())
}

pub const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
