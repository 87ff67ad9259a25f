//! `transpose_copy` and similar operators. Each is recorded like the view of its name, but its result is a contiguous copy.

use crate::base::views::infer_shape;
use crate::operator::copies::clone_dense;
use crate::operator::detached::shallow;
use crate::operator::kernel::duplicate;
use crate::operator::views::reshaped;
use crate::operator::{complex_views, strided, view_part, views};
use crate::ops::complex;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::join::{Unbind, check_unbind};
use crate::ops::shape::split;
use crate::ops::shape::{as_strided, slices, view};
use crate::tensor::any_requires_grad;

/// PyTorch has derivatives of some of these for real numbers only.
fn refuse_complex(name: &str, input: &Tensor) -> Result<()> {
    if input.dtype().is_complex() && any_requires_grad([input]) {
        return Err(Error::not_implemented(format!(
            "{name} does not support automatic differentiation for outputs with complex dtype."
        )));
    }
    Ok(())
}

#[primitive(node = "ViewBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl ViewCopy {
    fn forward(input: &Tensor, shape: Dims) -> Result<Body> {
        let dense = duplicate(&input.body())?;
        Ok(dense.with_layout(Layout::contiguous(&shape)))
    }
    fn d_input(g: V, at: Meta) -> V {
        g.then(|g| reshaped(&g, &at.shape))
    }
    fn batch(_: &Batch, input: &Tensor, shape: Dims) -> Result<Tensor> {
        clone_dense(&reshaped(input, &shape)?)
    }
}

#[primitive(node = "ReshapeAliasBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl ReshapeAliasCopy {
    fn forward(input: &Tensor, size: Ints, stride: Ints) -> Result<Body> {
        no_grad(|| clone_dense(&as_strided::as_strided(&shallow(input), size, stride, None)?))
    }
    fn d_input(g: V, at: Meta) -> V {
        g.reshape(&at.shape)
    }
    fn batch(_: &Batch, input: &Tensor, size: Ints, stride: Ints) -> Result<Tensor> {
        clone_dense(&as_strided::as_strided(input, size, stride, None)?)
    }
}

#[primitive(node = "NotImplemented", tangent = fn, batch = pointwise)]
impl DetachCopy {
    fn forward(input: &Tensor) -> Result<Body> {
        duplicate(&input.body())
    }
    fn d_input() -> Result<V> {
        Err(Error::runtime("derivative for aten::detach_copy is not implemented"))
    }
    fn tangent() -> Result<V> {
        Err(Error::not_implemented(
            "Trying to use forward AD with aten::detach_copy that does not support it.",
        ))
    }
}

/// A copy of the elements under another shape.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.view_copy(x, (-1,)))")]
pub fn view_copy(input: &Tensor, size: Sizes) -> Result<Tensor> {
    ViewCopy::call(input, infer_shape(&size.0, input.numel())?)
}

/// A copy of the elements as another dtype.
#[overload(view_copy.dtype)]
pub fn view_copy_as(input: &Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == input.dtype() {
        views::Alias::copy(input)
    } else {
        clone_dense(&view::view_as_dtype(input, dtype)?)
    }
}

/// A copy of the diagonal of two dimensions, as the last one.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.diagonal_copy(x, 1, 0, -1), 2)"
)]
pub fn diagonal_copy(
    input: &Tensor,
    #[default(0)]
    #[strict]
    offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    slices::Diagonal::copy(input, offset, dim1, dim2)
}

/// A copy of the storage read with any sizes and strides.
#[operator(
    function,
    out(declared),
    sample = "fixed([(3, 4)], lambda x: T.as_strided_copy(x.contiguous(), (2, 3), (1, 2), 1))"
)]
pub fn as_strided_copy(
    input: &Tensor,
    #[strict] size: Ints,
    #[strict] stride: Ints,
    storage_offset: Option<i64>,
) -> Result<Tensor> {
    let input_layout = input.body().layout.clone();
    strided::AsStrided::copy(input, size, stride, storage_offset, input_layout)
}

/// A copy with dimensions of size 1 stretched.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.expand_copy(x, (2, *x.shape)))"
)]
pub fn expand_copy(
    input: &Tensor,
    #[strict] size: Ints,
    #[keyword]
    #[default(false)]
    implicit: bool,
) -> Result<Tensor> {
    let _ = implicit;
    views::Expand::copy(input, size)
}

/// A copy with the dimensions in another order.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.permute_copy(x, tuple(reversed(range(x.dim())))))"
)]
pub fn permute_copy(input: &Tensor, #[strict] dims: Ints) -> Result<Tensor> {
    views::Permute::copy(input, dims)
}

/// A copy of one slice across a dimension.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.select_copy(x, -1, 0), 1)"
)]
pub fn select_copy(input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    refuse_complex("select_copy", input)?;
    view_part::Select::copy(input, dim, index)
}

/// A copy of every `step`-th slice from `start` to `end`.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.slice_copy(x, 0, 0, None, 2), 1)"
)]
pub fn slice_copy(
    input: &Tensor,
    #[default(0)] dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    #[default(1)] step: i64,
) -> Result<Tensor> {
    refuse_complex("slice_copy", input)?;
    if step <= 0 {
        return Err(Error::runtime("slice step must be positive"));
    }
    slices::Slice::copy(input, dim, start, end, step)
}

/// Copies of parts of `split_size` along a dimension.
#[operator(function, out, sample = "view(lambda draw, shape: lambda x: T.split_copy(x, 2), 1)")]
pub fn split_copy(input: &Tensor, split_size: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    split::check_size(input, split_size, dim)?;
    split::Split::copy(input, split_size, dim)
}

/// Copies of parts of the given sizes along a dimension.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.split_with_sizes_copy(x, [1, shape[0] - 1]), 1)"
)]
pub fn split_with_sizes_copy(
    input: &Tensor,
    #[strict] split_sizes: Ints,
    #[default(0)] dim: i64,
) -> Result<Vec<Tensor>> {
    split::check_sizes(input, &split_sizes, dim)?;
    split::SplitWithSizes::copy(input, &split_sizes, dim)
}

/// Copies of every slice across a dimension.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.unbind_copy(x), 1)")]
pub fn unbind_copy(input: &Tensor, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    check_unbind(input)?;
    Unbind::copy(input, dim)
}

/// A copy without the dimensions of size 1.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.squeeze_copy(x))")]
pub fn squeeze_copy(input: &Tensor) -> Result<Tensor> {
    views::Squeeze::copy(input)
}

/// A copy without a dimension, where that has size 1.
#[overload(squeeze_copy.dim)]
pub fn squeeze_copy_dim(input: &Tensor, dim: i64) -> Result<Tensor> {
    views::Squeeze1::copy(input, dim)
}

/// A copy without those of these dimensions that have size 1.
#[overload(squeeze_copy.dims)]
pub fn squeeze_copy_dims(input: &Tensor, dim: Ints) -> Result<Tensor> {
    views::Squeeze2::copy(input, dim)
}

/// A copy of a matrix with its dimensions swapped.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.t_copy(x), shapes=st.sampled_from([(2, 3), (4,), (), (0, 2)]))"
)]
pub fn t_copy(input: &Tensor) -> Result<Tensor> {
    view::MatrixTranspose::copy(input)
}

/// A copy with two dimensions swapped.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.transpose_copy(x, 0, -1), 1)"
)]
pub fn transpose_copy(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    view::Transpose::copy(input, dim0, dim1)
}

/// A copy of sliding windows along a dimension.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.unfold_copy(x, 0, 1, 1), 1)"
)]
pub fn unfold_copy(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    slices::Unfold::copy(input, dimension, size, step)
}

/// A copy with a dimension of size 1 put in.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.unsqueeze_copy(x, -1))")]
pub fn unsqueeze_copy(input: &Tensor, dim: i64) -> Result<Tensor> {
    views::Unsqueeze::copy(input, dim)
}

/// A copy.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.alias_copy(x))")]
pub fn alias_copy(input: &Tensor) -> Result<Tensor> {
    views::Alias::copy(input)
}

/// A copy that no gradient flows through: to ask for one is an error.
#[operator(function, out(declared), unrecorded)]
pub fn detach_copy(input: &Tensor) -> Result<Tensor> {
    DetachCopy::call(input)
}

/// A copy of complex numbers as pairs of real ones.
#[operator(
    function,
    out(declared),
    sample = "pointwise(lambda x: T.view_as_real_copy(x + 0j).to(x.dtype), 1, WIDE)"
)]
pub fn view_as_real_copy(input: &Tensor) -> Result<Tensor> {
    complex_views::ViewAsReal::copy(input)
}

/// A copy of pairs of real numbers as complex ones.
#[operator(function, out(declared), unrecorded)]
pub fn view_as_complex_copy(input: &Tensor) -> Result<Tensor> {
    let made = complex::view_as_complex(input)?;
    refuse_complex("view_as_complex_copy", &made)?;
    clone_dense(&made)
}

/// A copy of the complex conjugate.
#[operator(function, out(declared), unrecorded)]
pub fn _conj_copy(input: &Tensor) -> Result<Tensor> {
    refuse_complex("_conj_copy", input)?;
    clone_dense(&complex::conj(input)?)
}

/// A copy of the opposite.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T._neg_view_copy(x))")]
pub fn _neg_view_copy(input: &Tensor) -> Result<Tensor> {
    complex_views::NegView::copy(input)
}

/// A copy of the elements under another shape and strides.
#[operator(
    function,
    out(declared),
    sample = "fixed([(2, 3)], lambda x: T._reshape_alias_copy(x.contiguous(), (3, 2), (2, 1)))"
)]
pub fn _reshape_alias_copy(input: &Tensor, #[strict] size: Ints, #[strict] stride: Ints) -> Result<Tensor> {
    ReshapeAliasCopy::call(input, size, stride)
}
