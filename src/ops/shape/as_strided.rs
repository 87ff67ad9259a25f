//! Views with explicit sizes and strides.

use crate::operator::inplace_view::become_view;
use crate::ops::prelude::*;

/// The storage read with any sizes and strides (a view).
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
    crate::operator::strided::as_strided(input, size, stride, storage_offset)
}

/// The storage read with any sizes and strides by the tensor itself.
#[inplace(as_strided)]
pub fn as_strided_(
    input: &Tensor,
    #[strict] size: Ints,
    #[strict] stride: Ints,
    storage_offset: Option<i64>,
) -> Result<()> {
    become_view(input, |x| as_strided(x, size, stride, storage_offset))
}
