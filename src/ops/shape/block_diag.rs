//! `block_diag`: matrices along a diagonal.

use crate::base::default_dtype;
use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::reshape;
use crate::ops::nn::pad::constant_pad_nd;
use crate::ops::prelude::*;
use crate::ops::shape::join::cat;
use smallvec::smallvec;

/// Build a block diagonal matrix from matrices, with zeros elsewhere.
///
/// Args:
///     tensors: matrices, or vectors and numbers, which become matrices with one row.
///
/// Examples:
///     >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
///     tensor([[1, 2, 0],
///             [0, 0, 3],
///             [0, 0, 4]])
#[operator(function, sample = "fixed([(2, 3), (2,), ()], lambda *xs: T.block_diag(*xs))")]
pub fn block_diag(#[default(Several::default())] tensors: Several) -> Result<Tensor> {
    let tensors = tensors.0;
    let mut parts = Vec::with_capacity(tensors.len());
    let mut dtype = None;
    for (i, t) in tensors.iter().enumerate() {
        let shape = match t.shape()[..] {
            [] => [1, 1],
            [n] => [1, n],
            [m, n] => [m, n],
            _ => {
                return Err(Error::runtime(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {} dimensions",
                    t.ndim()
                )));
            }
        };
        let own = t.dtype();
        dtype = Some(dtype.map_or(Ok(own), |known: DType| known.promoted_with(own))?);
        parts.push(reshape(t, &shape)?);
    }
    let Some(dtype) = dtype else { return zeros(&[1, 0], default_dtype(), Device::Cpu) };
    let width: usize = parts.iter().map(|t| t.shape()[1]).sum();
    let mut before = 0;
    let mut rows = Vec::with_capacity(parts.len());
    for part in parts {
        let own = part.shape()[1];
        let pads = smallvec![before as i64, (width - before - own) as i64];
        rows.push(constant_pad_nd(&to_dtype(&part, dtype)?, pads, Scalar::Int(0))?);
        before += own;
    }
    cat(&rows, 0)
}
