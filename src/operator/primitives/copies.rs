//! Recorded copies: contiguous, layout-preserving, to another dtype, to another device. `clone`, `to` and
//! similar operators are built on them.

use crate::base::views::dense_like;
use crate::base::{DType, Device, Result};
use crate::operator::bodies::{carry, copy, duplicate, preserved};
use crate::operator::row::grad_value::V;
use crate::tensor::{Body, Meta, Tensor};
use gradiron_macros::primitive;

/// A contiguous copy in new storage.
#[primitive(node = "CloneBackward0", tangent = linear, batch = pointwise)]
impl CloneDense {
    fn forward(input: &Tensor) -> Result<Body> {
        duplicate(&input.body())
    }
    fn d_input(g: Tensor) -> Tensor {
        g
    }
}

/// A copy that keeps the order of dimensions in memory.
#[primitive(node = "CloneBackward0", tangent = linear, batch = pointwise)]
impl ClonePreserved {
    fn forward(input: &Tensor) -> Result<Body> {
        preserved(&input.body())
    }
    fn d_input(g: Tensor) -> Tensor {
        g
    }
}

/// Converts to another dtype. From complex to real, the real part is taken.
#[primitive(node = "ToCopyBackward0", tangent = linear, batch = pointwise(dtype))]
impl Convert {
    fn forward(input: &Tensor, dtype: DType) -> Result<Body> {
        let body = input.body();
        let mut out = Body::new(body.shape(), dtype, body.device())?;
        out.layout = dense_like(&body.layout);
        copy(&out, &body)?;
        Ok(out)
    }
    /// A complex gradient for a real operand is returned as it is: the engine takes its real part.
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        if g.dtype().is_complex() && !at.dtype.is_complex() { Ok(g.clone()) } else { to_dtype(g, at.dtype) }
    }
}

/// Copies to another device.
#[primitive(node = "ToCopyBackward0", tangent = linear, batch = pointwise(device))]
impl Transfer {
    fn forward(input: &Tensor, device: Device) -> Result<Body> {
        let body = input.body();
        let mut out = Body::new(body.shape(), body.dtype, device)?;
        out.layout = dense_like(&body.layout);
        carry(&out, &body)?;
        Ok(out)
    }
    fn d_input(g: &Tensor, at: Meta) -> Result<Tensor> {
        to_device(g, at.device)
    }
}

pub fn clone_dense(input: &Tensor) -> Result<Tensor> {
    CloneDense::call(input)
}

/// A copy that keeps the order of dimensions in memory.
pub fn clone_preserved(input: &Tensor) -> Result<Tensor> {
    ClonePreserved::call(input)
}

pub fn convert(input: &Tensor, dtype: DType) -> Result<Tensor> {
    Convert::call(input, dtype)
}

/// The tensor itself if it has that dtype, otherwise a converted copy.
pub fn to_dtype(t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype() == dtype { Ok(t.clone()) } else { convert(t, dtype) }
}

/// The tensor itself if it is on that device, otherwise a copy there.
pub fn to_device(t: &Tensor, device: Device) -> Result<Tensor> {
    if t.device() == device { Ok(t.clone()) } else { Transfer::call(t, device) }
}

impl V {
    pub fn cast(self, dtype: DType) -> V {
        self.then(|t| to_dtype(&t, dtype))
    }

    pub fn to_device(self, device: Device) -> V {
        self.then(|t| to_device(&t, device))
    }
}
