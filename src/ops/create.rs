//! Making tensors: from numbers, by filling, by converting.

use super::kernel::{copy, duplicate, filled};
use super::macros::ops;
use crate::base::views::dense_like;
use crate::base::{DType, Device, Result, Scalar};
use crate::tensor::{Body, Tensor};
use std::sync::atomic::{AtomicU8, Ordering};

static DEFAULT: AtomicU8 = AtomicU8::new(DType::F32 as u8);

/// The dtype of floats that come without one.
pub fn default_dtype() -> DType {
    let code = DEFAULT.load(Ordering::Relaxed);
    DType::ALL[usize::from(code)]
}

pub fn set_default_dtype(dtype: DType) {
    DEFAULT.store(dtype as u8, Ordering::Relaxed);
}

/// A 0-d tensor of one number.
pub fn scalar_tensor(value: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| super::pointwise::scalar_dtype(value));
    full(&[], value, dtype, Device::Cpu)
}

pub fn full(shape: &[usize], value: Scalar, dtype: DType, device: Device) -> Result<Tensor> {
    filled(shape, value, dtype, device).map(Tensor::new)
}

pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
    full(shape, Scalar::Int(0), dtype, device)
}

pub fn ones(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
    full(shape, Scalar::Int(1), dtype, device)
}

/// A dense copy of the values.
pub fn copy_of(body: &Body) -> Result<Body> {
    duplicate(body)
}

ops! { "create";
    /// A copy with its own storage; the gradient flows through.
    [hidden, linear] fn clone_dense(input) -> y { duplicate(&input.body()) }
    input: |g| g;
    /// What `copy_` leaves in its target.
    [hidden, linear] fn copied(input) -> y { Ok(input.body().clone()) }
    input: |g| g;
    /// The values in another dtype.
    [hidden, linear] fn convert(input; dtype: DType) -> y {
        let body = input.body();
        let mut out = Body::new(body.shape(), dtype, body.device())?;
        out.layout = dense_like(&body.layout);
        copy(&out, &body)?;
        Ok(out)
    }
    input: |g, at| g.cast(at.dtype);
    /// The values on another device.
    [hidden, linear] fn transfer(input; device: Device) -> y {
        let body = input.body();
        let mut out = Body::new(body.shape(), body.dtype, device)?;
        out.layout = dense_like(&body.layout);
        copy(&out, &body)?;
        Ok(out)
    }
    input: |g, at| g.then(|t| to_device(&t, at.device));
}

/// The tensor itself when it has that dtype, else converted.
pub fn to_dtype(t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype { Ok(t.clone()) } else { convert(t, dtype) }
}

pub fn to_device(t: &Tensor, device: Device) -> Result<Tensor> {
    if t.device() == device { Ok(t.clone()) } else { transfer(t, device) }
}

/// The same bytes without history and with a version of its own: `x.data`.
pub fn data(t: &Tensor) -> Tensor {
    if let Some(batched) = t.as_batched() {
        return Tensor::batched(data(&batched.value), batched.levels.clone());
    }
    let body = t.body();
    Tensor::new(Body { storage: body.storage.alias(), layout: body.layout.clone(), dtype: body.dtype })
}

/// The same storage without history: `x.detach()`.
pub fn shallow(t: &Tensor) -> Tensor {
    match t.as_batched() {
        Some(batched) => Tensor::batched(shallow(&batched.value), batched.levels.clone()),
        None => Tensor::new(t.body().clone()),
    }
}
