//! `nonzero` and `argwhere`, and the kernels of `masked_select`.

use crate::base::broadcast;
use crate::operator::Out;
use crate::operator::bodies::conj_neg;
use crate::operator::bodies::{converted, copy};
use crate::operator::primitives::views;
use crate::ops::prelude::*;
use crate::ops::shape::slices;

/// The shape that a tensor and its mask broadcast to, with at least one dimension.
pub(crate) fn shape_with_mask(x: &[usize], mask: &[usize]) -> Result<Dims> {
    let shape = broadcast(mask, x)?;
    Ok(if shape.is_empty() { smallvec::smallvec![1] } else { shape })
}

pub(crate) fn select_masked(x: &Body, mask: &Body) -> Result<Body> {
    if x.dtype.is_stored_only() {
        return x.moved(|x| select_masked(x, mask));
    }
    fork!([x, mask],
    cpu: {
        let count = crate::cpu::sort::nonzero_count(mask.host()?)?;
        let out = Body::new(&[count], x.dtype, x.device())?;
        crate::cpu::sort::masked_select(out.host()?.ptr, count, x.host()?, mask.host()?)?;
        Ok(out)
    },
    gpu: {
        if x.dtype.is_complex() {
            let [re, im] = crate::operator::bodies::parts(x)?;
            return crate::ops::complex::from_parts(&select_masked(&re, mask)?, &select_masked(&im, mask)?);
        }
        let (buffer, count) = crate::gpu::masked_select(x.gpu()?, mask.gpu()?)?;
        Ok(on_gpu(buffer, &[count], x.dtype, x.device()))
    })
}

/// The positions of nonzero elements as a row-major matrix, `[count, ndim]`.
pub(crate) fn positions(x: &Body) -> Result<Body> {
    if x.storage.is_nowhere() {
        return Err(crate::operator::batch::refuse::refuse_dynamic(NONZERO.name));
    }
    if x.dtype.is_stored_only() {
        return positions(&converted(x, DType::Bool)?);
    }
    let x = &conj_neg::values(x)?;
    let ndim = x.layout.ndim();
    fork!([x],
    cpu: {
        let count = crate::cpu::sort::nonzero_count(x.host()?)?;
        let out = Body::new(&[count, ndim], DType::I64, x.device())?;
        crate::cpu::sort::nonzero_into(x.host()?, out.host()?.ptr.cast(), count)?;
        Ok(out)
    },
    gpu: {
        if x.dtype.is_complex() {
            let truth = Body::new(x.shape(), DType::Bool, x.device())?;
            copy(&truth, x)?;
            return positions(&truth);
        }
        let (buffer, count) = crate::gpu::nonzero(x.gpu()?)?;
        Ok(on_gpu(buffer, &[count, ndim], DType::I64, x.device()))
    })
}

/// Positions in column-major order, as in PyTorch.
pub(crate) fn by_columns(rows: Body) -> Result<Body> {
    let [count, ndim] = rows.shape()[..] else { return Ok(rows) };
    let columns = Layout { strides: smallvec::smallvec![1, count], ..Layout::contiguous(&[count, ndim]) };
    if ndim < 2 || count == 0 {
        return Ok(rows.with_layout(columns));
    }
    let out = Body { layout: columns, ..Body::new(&[ndim, count], DType::I64, rows.device())? };
    copy(&out, &rows)?;
    Ok(out)
}

/// A body over a buffer that a shader has filled.
#[cfg(feature = "gpu")]
fn on_gpu(buffer: crate::gpu::Buffer, shape: &[usize], dtype: DType, device: crate::base::Device) -> Body {
    let bytes = crate::base::numel(shape) * dtype.size();
    let storage = crate::storage::Storage::from_gpu(buffer, bytes, device);
    Body::plain(storage, crate::base::Layout::contiguous(shape), dtype)
}

/// The positions of nonzero elements, one vector per dimension. The vectors are columns of a row-major matrix.
pub fn nonzero_columns(t: &Tensor) -> Result<Vec<Tensor>> {
    columns(t, positions(&t.body())?)
}

/// The positions of nonzero elements, one vector per dimension, laid out as in PyTorch.
pub fn nonzero_vectors(t: &Tensor) -> Result<Vec<Tensor>> {
    columns(t, by_columns(positions(&t.body())?)?)
}

fn columns(t: &Tensor, positions: Body) -> Result<Vec<Tensor>> {
    let all = Tensor::new(positions);
    (0..t.ndim()).map(|d| slices::select(&all, 1, d as i64)).collect()
}

/// Return the indices of all elements that are not zero.
///
/// Args:
///     as_tuple: whether to return a tuple with a vector of indices for each dimension, as indexing takes them.
///
/// Returns:
///     A matrix with a row for each such element, or the tuple.
///
/// Examples:
///     >>> x = torch.tensor([[0, 1], [2, 0]])
///     >>> torch.nonzero(x)
///     tensor([[0, 1],
///             [1, 0]])
///     >>> torch.nonzero(x, as_tuple=True)
///     (tensor([0, 1]), tensor([1, 0]))
#[operator(
    function,
    method,
    unrecorded,
    out(message = "nonzero: Expected out tensor to have scalar type Long but got scalar type{target}")
)]
pub fn nonzero(
    input: &Tensor,
    #[keyword]
    #[default(false)]
    as_tuple: bool,
) -> Result<Out> {
    if !as_tuple {
        return argwhere(input).map(Out::Tensor);
    }
    if input.is_batched() {
        return Err(crate::operator::batch::refuse::refuse_rule("nonzero_numpy"));
    }
    let vector = if input.ndim() > 0 { input.clone() } else { views::reshape(input, &[1])? };
    nonzero_vectors(&vector).map(Out::from)
}

/// Return the indices of all elements that are not zero, as the rows of a matrix.
///
/// Examples:
///     >>> torch.argwhere(torch.tensor([[0, 1], [2, 0]]))
///     tensor([[0, 1],
///             [1, 0]])
#[operator(function, method, unrecorded)]
pub fn argwhere(input: &Tensor) -> Result<Tensor> {
    by_columns(positions(&input.body())?).map(Tensor::new)
}
