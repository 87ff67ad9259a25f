//! The options of functions that create tensors.

use crate::base::{DType, Device, Result, default_dtype};
use crate::tensor::{Body, Tensor};

/// A new tensor's dtype, device and `requires_grad`. As a parameter of an `#[operator]` it stands for five:
/// `dtype`, `layout`, `device`, `pin_memory` and `requires_grad`. Every new tensor is strided, and its memory is not
/// pinned.
#[derive(Clone, Copy, Default)]
pub struct TensorOptions {
    pub dtype: Option<DType>,
    pub device: Option<Device>,
    pub requires_grad: bool,
}

impl TensorOptions {
    pub fn dtype(self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    pub fn device(self) -> Device {
        self.device.unwrap_or(Device::Cpu)
    }

    pub fn with_dtype(self, dtype: DType) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), ..self }
    }

    /// The dtype and device of `t` where none are given.
    pub fn or_those_of(self, t: &Tensor) -> TensorOptions {
        let (dtype, device) = (self.dtype.unwrap_or(t.dtype()), self.device.unwrap_or(t.device()));
        TensorOptions { dtype: Some(dtype), device: Some(device), ..self }
    }

    /// Uninitialized memory of this dtype, on this device.
    pub fn body(self, shape: &[usize]) -> Result<Body> {
        Body::new(shape, self.dtype(), self.device())
    }
}
