//! Tensors from Rust's numbers, and back.

use crate::base::{DType, Device, Fault, Result, Scalar, default_dtype, try_alloc};
use crate::operator::primitives::constant;
use crate::operator::primitives::copies::{clone_dense, to_device, to_dtype};
use crate::operator::primitives::detached::shallow;
use crate::operator::primitives::views::ints;
use crate::operator::row::generator::Generator;
use crate::operator::{Sizes, TensorOptions};
use crate::ops::random;
use crate::tensor::{Body, Tensor};

/// The Rust types that are elements of tensors.
pub trait Number: bytemuck::Pod + sealed::Sealed {
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($ty:ty: $dtype:ident),*) => { $(
        impl sealed::Sealed for $ty {}
        impl Number for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )* };
}

numbers!(u8: U8, i8: I8, i16: I16, i32: I32, i64: I64, f32: F32, f64: F64);

/// Seeds the random numbers of this program.
pub fn manual_seed(seed: u64) {
    Generator::global().stream().manual_seed(seed);
}

impl Tensor {
    /// A tensor of this shape with a copy of `values`, in the order of rows.
    pub fn from_slice<T: Number>(values: &[T], shape: &[usize]) -> Result<Tensor> {
        let body = Body::new(shape, T::DTYPE, Device::Cpu)?;
        if body.numel() != values.len() {
            return Err(Fault::InvalidShape { shape: format!("{shape:?}"), numel: values.len() }.into());
        }
        let to = body.host()?.ptr.cast::<T>();
        // SAFETY: the new body is contiguous, has `values.len()` elements of `T`, and nobody else knows its memory.
        unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        Ok(Tensor::new(body))
    }

    /// The elements in the order of rows, converted to `T`.
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        let host = to_device(&to_dtype(&shallow(self), T::DTYPE)?, Device::Cpu)?;
        let dense = clone_dense(&host)?;
        let body = dense.body();
        let (from, count) = (body.host()?.ptr.cast::<T>(), body.numel());
        let mut values = try_alloc::filled(T::zeroed(), count)?;
        // SAFETY: the copy is contiguous, and has `count` elements of `T`.
        unsafe { from.copy_to_nonoverlapping(values.as_mut_ptr(), count) };
        Ok(values)
    }

    /// A tensor filled with one number.
    pub fn full(shape: &[usize], value: f64) -> Result<Tensor> {
        constant::full(shape, Scalar::Float(value), default_dtype(), Device::Cpu)
    }

    pub fn zeros(shape: &[usize]) -> Result<Tensor> {
        Tensor::full(shape, 0.0)
    }

    pub fn ones(shape: &[usize]) -> Result<Tensor> {
        Tensor::full(shape, 1.0)
    }

    /// Random numbers of the standard normal distribution.
    pub fn randn(shape: &[usize]) -> Result<Tensor> {
        random::randn(Sizes(ints(shape)), None, TensorOptions::default())
    }

    /// Random numbers, uniform in `[0, 1)`.
    pub fn rand(shape: &[usize]) -> Result<Tensor> {
        random::rand(Sizes(ints(shape)), None, TensorOptions::default())
    }

    /// The tensor in this dtype: itself, if it has that already.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        to_dtype(self, dtype)
    }

    /// The tensor on this device: itself, if it is there already.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        to_device(self, device)
    }
}
