//! Views with explicit sizes and strides.

use crate::operator::inplace::view::become_view;
use crate::ops::prelude::*;

/// Return a view of the tensor's memory with any sizes, strides and offset.
///
/// Several elements of the view may be the same place in memory; writing into such a view is unsafe.
///
/// Args:
///     size: shape of the view.
///     stride: step in memory between neighboring elements of each dimension, in elements.
///     storage_offset: place of the first element in the storage; that of `input` if not given.
///
/// Raises:
///     RuntimeError: if the view would reach beyond the storage.
///
/// Examples:
///     >>> torch.as_strided(torch.arange(6), (2, 3), (1, 2))
///     tensor([[0, 2, 4],
///             [1, 3, 5]])
#[operator(
    function,
    method,
    sample = "fixed([(3, 4)], lambda x: (x if x.is_contiguous() else x.contiguous()).as_strided((2, 3), (1, 2), 1))"
)]
pub fn as_strided(
    input: &Tensor,
    #[strict] size: Ints,
    #[strict] stride: Ints,
    storage_offset: Option<i64>,
) -> Result<Tensor> {
    crate::operator::primitives::strided::as_strided(input, size, stride, storage_offset)
}

/// Give the tensor itself other sizes, strides and offset in its memory.
///
/// Args:
///     size: new shape.
#[inplace(as_strided)]
pub fn as_strided_(
    input: &Tensor,
    #[strict] size: Ints,
    #[strict] stride: Ints,
    storage_offset: Option<i64>,
) -> Result<()> {
    become_view(input, |x| as_strided(x, size, stride, storage_offset))
}
