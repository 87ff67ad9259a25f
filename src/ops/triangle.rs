//! Triangles and diagonals of matrices.

use super::copies::DiagonalCopy;
use super::kernel::{copy, done, duplicate, filled, fork, part_by_part};
use super::macros::{compose, ops};
use super::place::embed;
use super::view::diagonal as diagonal_view;
use crate::base::{DType, Device, Dims, Error, Layout, Result, Scalar, wrap_dim};
use crate::tensor::{Body, Tensor};

/// A dense copy of `x` with zeros outside the triangle.
fn triangle(name: &str, x: &Body, diagonal: i64, lower: bool) -> Result<Body> {
    if x.layout.ndim() < 2 {
        return Err(Error::runtime(format!("{name}: input tensor must have at least 2 dimensions")));
    }
    if x.device().is_cpu() {
        let out = duplicate(x)?;
        fork!([&out], cpu: done(crate::cpu::triangle::keep_triangle(out.host()?, diagonal, lower)), gpu: Ok(()))?;
        return Ok(out);
    }
    let out = Body::new(x.shape(), x.dtype, x.device())?;
    if out.numel() > 0 {
        part_by_part(
            &out,
            x,
            |out, x| fork!([out, x], cpu: Ok(()), gpu: crate::gpu::triangle(out.gpu()?, x.gpu()?, diagonal, lower)),
        )?;
    }
    Ok(out)
}

/// The shape of `diag_embed` and where its diagonal lies.
fn embedding(shape: &[usize], offset: i64, dim1: i64, dim2: i64) -> Result<(Dims, Layout)> {
    let ndim = shape.len() + 1;
    let (a, b) = (wrap_dim(dim1, ndim)?, wrap_dim(dim2, ndim)?);
    if a == b {
        return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    let n = shape[shape.len() - 1] + offset.unsigned_abs() as usize;
    let mut whole = Dims::from_slice(&shape[..shape.len() - 1]);
    whole.insert(a.min(b), n);
    whole.insert(a.max(b), n);
    let place = Layout::contiguous(&whole).diagonal(offset, a as i64, b as i64)?;
    Ok((whole, place))
}

ops! { "linalg";
    /// The lower triangle of matrices, zeros above the `diagonal`.
    [inplace, out, linear] fn tril(input; diagonal: i64 = 0) -> y { triangle("tril", &input.body(), diagonal, true) }
    input: |g, diagonal| g.then(|t| tril(&t, diagonal));
    /// The upper triangle of matrices, zeros below the `diagonal`.
    [inplace, out, linear] fn triu(input; diagonal: i64 = 0) -> y { triangle("triu", &input.body(), diagonal, false) }
    input: |g, diagonal| g.then(|t| triu(&t, diagonal));
    /// Matrices of zeros with the last dimension of `input` on a diagonal.
    [linear] fn diag_embed(input; offset: i64 = 0, dim1: i64 = -2, dim2: i64 = -1) -> y {
        let body = input.body();
        if body.layout.ndim() == 0 {
            return Err(Error::runtime("diag_embed: the input has no dimension to put on a diagonal"));
        }
        let (shape, place) = embedding(body.shape(), offset, dim1, dim2)?;
        let out = filled(&shape, Scalar::Int(0), body.dtype, body.device())?;
        copy(&out.with_layout(place), &body)?;
        Ok(out)
    }
    input: |g, offset, dim1, dim2| g.then(|t| diagonal_view(&t, offset, dim1, dim2));
    /// Sum of a matrix' diagonal.
    [linear] fn trace(input) -> y {
        let body = input.body();
        if body.layout.ndim() != 2 {
            return Err(Error::runtime(format!("trace: expected a matrix, but got tensor with dim {}", body.layout.ndim())));
        }
        if body.dtype == DType::Bool {
            return Err(crate::base::Fault::NoKernel { op: "trace", dtype: body.dtype }.into());
        }
        let line = Tensor::new(body.with_layout(body.layout.diagonal(0, 0, 1)?));
        let sum = super::reduce::Sum::call(&line)?;
        let body = sum.body().clone();
        Ok(body)
    }
    input: |g, at| {
        let place = Layout::contiguous(&at.shape).diagonal(0, 0, 1)?;
        let length = place.shape.clone();
        g.expand(&length).then(|t| embed(&t, at.shape, place))
    };
}

/// Rows and columns of a triangle's places, as a matrix of two rows.
fn places(rows: i64, columns: i64, offset: i64, lower: bool, dtype: DType, device: Device) -> Result<Tensor> {
    if rows < 0 || columns < 0 {
        let (what, n) = if rows < 0 { ("row", rows) } else { ("col", columns) };
        return Err(Error::runtime(format!("{what} must be non-negative, got{n}")));
    }
    if !matches!(dtype, DType::I32 | DType::I64) {
        let op = if lower { "tril_indices" } else { "triu_indices" };
        return Err(crate::base::Fault::NoKernel { op, dtype }.into());
    }
    let count = places_below(rows, columns, i128::from(offset) + i128::from(lower));
    let count = if lower { count } else { i128::from(rows) * i128::from(columns) - count };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let body = Body::new(&[2, count], DType::I64, Device::Cpu)?;
    let (mut at, start) = (0, body.host()?.ptr.cast::<i64>());
    // Rows before or behind these have no place.
    let first = if lower { offset.saturating_neg().clamp(0, rows) } else { 0 };
    let last = if lower { rows } else { columns.saturating_sub(offset).clamp(0, rows) };
    for row in if count > 0 { first..last } else { 0..0 } {
        let edge = row.saturating_add(offset);
        let range =
            if lower { 0..edge.saturating_add(1).clamp(0, columns) } else { edge.clamp(0, columns)..columns };
        for column in range {
            // SAFETY: as many places as were counted, each a row and a column.
            unsafe {
                start.add(at).write(row);
                start.add(count + at).write(column);
            }
            at += 1;
        }
    }
    debug_assert_eq!(at, count);
    super::create::to_device(&super::create::to_dtype(&Tensor::new(body), dtype)?, device)
}

/// How many places of a matrix lie left of a diagonal: in each row as many as its number plus `offset`.
fn places_below(rows: i64, columns: i64, offset: i128) -> i128 {
    let (rows, columns) = (i128::from(rows), i128::from(columns));
    // Rows that have some, but not all.
    let (some, all) = ((-offset).clamp(0, rows), (columns - offset).clamp(0, rows));
    let growing = (some + offset + all - 1 + offset) * (all - some) / 2;
    growing + (rows - all) * columns
}

mod more {
    use super::*;
    compose! { "linalg";
        /// A vector as the diagonal of a matrix of zeros, or the diagonal of a matrix.
        [out] fn diag(input: Tensor, diagonal: i64 = 0) -> Tensor {
            match input.ndim() {
                1 => diag_embed(&input, diagonal, -2, -1),
                2 => DiagonalCopy::call(&input, diagonal, 0, 1),
                n => Err(Error::runtime(format!("diag(): Supports 1D or 2D tensors. Got {n}D"))),
            }
        }
        /// A matrix with the flattened elements on a diagonal.
        fn diagflat(input: Tensor, offset: i64 = 0) -> Tensor {
            diag_embed(&crate::ops::view::reshaped(&input, &[input.numel()])?, offset, -2, -1)
        }
        /// Rows and columns of the places in a lower triangle.
        [no_method] fn tril_indices(row: i64, col: i64, offset: i64 = 0, dtype: DType = DType::I64, device: Device = Device::Cpu, layout: Option<String> = None) -> Tensor {
            let _ = layout;
            places(row, col, offset, true, dtype, device)
        }
        /// Rows and columns of the places in an upper triangle.
        [no_method] fn triu_indices(row: i64, col: i64, offset: i64 = 0, dtype: DType = DType::I64, device: Device = Device::Cpu, layout: Option<String> = None) -> Tensor {
            let _ = layout;
            places(row, col, offset, false, dtype, device)
        }
    }
}
pub use more::COMPOSED;
