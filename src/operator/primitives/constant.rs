//! Constant tensors, without an edge.

use crate::base::{DType, Device, Result, Scalar};
use crate::operator::bodies::filled;
use crate::tensor::Tensor;

/// A 0-d tensor.
pub fn scalar_tensor(value: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(|| crate::operator::pointwise::scalar_dtype(value));
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
