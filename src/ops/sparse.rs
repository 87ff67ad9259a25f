//! Sparse tensors of rows, as derivatives make them, and the operators that the engine needs to add such gradients up.

use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::views::reshape;
use crate::ops::indexing::scatter::IndexAdd;
use crate::ops::prelude::*;
use crate::ops::shape::join::cat;
use crate::ops::shape::slices;
use crate::tensor::{CooFunc, CooParts};

pub static COO: CooFunc = CooFunc { to_dense, join };

/// A matrix with `count` rows, of which those at `indices` are given. A row that is given twice is their sum.
pub fn from_rows(count: usize, indices: &Tensor, rows: &Tensor) -> Result<Tensor> {
    let width = rows.shape()[1];
    let indices = reshape(indices, &[1, indices.numel()])?;
    let is_coalesced = rows.shape()[0] < 2;
    let parts = CooParts { indices, values: rows.clone(), is_coalesced, func: &COO };
    Tensor::sparse(&[count, width], parts)
}

/// A number for each value of a sparse tensor: the place of its first element in the dense tensor, counted in values.
fn places(parts: &CooParts, shape: &[usize]) -> Result<Tensor> {
    let device = parts.indices.device();
    let mut found = V::from(zeros(&[parts.indices.shape()[1]], DType::I64, device));
    for (d, &n) in shape.iter().enumerate().take(parts.indices.shape()[0]) {
        let row = V::from(slices::select(&parts.indices, 0, d as i64));
        found = if d == 0 { row } else { found * V::from(Scalar::Int(n as i64)) + row };
    }
    found.tensor()
}

/// The dense tensor with the same elements.
fn to_dense(parts: &CooParts, shape: &[usize]) -> Result<Tensor> {
    let values = &parts.values;
    let sparse_dims = parts.indices.shape()[0];
    let mut lines: Dims = smallvec::smallvec![shape[..sparse_dims].iter().product()];
    lines.extend_from_slice(&shape[sparse_dims..]);
    let none = zeros(&lines, values.dtype(), values.device())?;
    reshape(&IndexAdd::call(&none, 0, &places(parts, shape)?, values, Scalar::Int(1))?, shape)
}

/// All values of two sparse tensors of one shape.
fn join(a: &CooParts, b: &CooParts) -> Result<CooParts> {
    let (wide, other) = (a.indices.shape()[0], b.indices.shape()[0]);
    if wide != other {
        return Err(Error::runtime(format!(
            "add: expected 'self' and 'other' to have same number of sparse dimensions, but {wide} != {other}"
        )));
    }
    Ok(CooParts {
        indices: cat(&[a.indices.clone(), b.indices.clone()], 1)?,
        values: cat(&[a.values.clone(), b.values.clone()], 0)?,
        is_coalesced: false,
        func: &COO,
    })
}
