//! `transpose_copy` and similar operators. Each is recorded like the view of its name, but its result is a contiguous copy.

use crate::base::views::infer_shape;
use crate::operator::bodies::duplicate;
use crate::operator::primitives::copies::clone_dense;
use crate::operator::primitives::detached::shallow;
use crate::operator::primitives::views::reshaped;
use crate::operator::primitives::{complex_views, strided, view_part, views};
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

/// Copy the tensor with another shape, or its bytes as another data type; see `Tensor.view`.
///
/// Args:
///     size: the shape; one number may be -1, to be inferred.
///
/// Examples:
///     >>> torch.view_copy(torch.arange(4), (2, 2))
///     tensor([[0, 1],
///             [2, 3]])
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.view_copy(x, (-1,)))")]
pub fn view_copy(input: &Tensor, size: Sizes) -> Result<Tensor> {
    ViewCopy::call(input, infer_shape(&size.0, input.numel())?)
}

/// Copy the bytes as elements of another data type.
#[overload(view_copy.dtype)]
pub fn view_copy_as(input: &Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == input.dtype() {
        views::Alias::copy(input)
    } else {
        clone_dense(&view::view_as_dtype(input, dtype)?)
    }
}

/// Return a copy of the diagonal of two dimensions; see `torch.diagonal`.
///
/// Examples:
///     >>> torch.diagonal_copy(torch.tensor([[1, 2], [3, 4]]))
///     tensor([1, 4])
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

/// Return a copy of the tensor's memory read with any sizes and strides; see `torch.as_strided`.
///
/// Examples:
///     >>> torch.as_strided_copy(torch.arange(6), (2, 2), (1, 2))
///     tensor([[0, 2],
///             [1, 3]])
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

/// Return a copy with dimensions of size 1 expanded; see `Tensor.expand`.
///
/// Args:
///     implicit: not used.
///
/// Examples:
///     >>> torch.expand_copy(torch.tensor([[1], [2]]), (2, 2))
///     tensor([[1, 1],
///             [2, 2]])
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

/// Return a copy with rearranged dimensions; see `torch.permute`.
///
/// Examples:
///     >>> torch.permute_copy(torch.zeros(2, 3), (1, 0)).shape
///     torch.Size([3, 2])
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.permute_copy(x, tuple(reversed(range(x.dim())))))"
)]
pub fn permute_copy(input: &Tensor, #[strict] dims: Ints) -> Result<Tensor> {
    views::Permute::copy(input, dims)
}

/// Return a copy of one slice along a dimension; see `torch.select`.
///
/// Examples:
///     >>> torch.select_copy(torch.tensor([[1, 2], [3, 4]]), 0, 1)
///     tensor([3, 4])
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.select_copy(x, -1, 0), 1)"
)]
pub fn select_copy(input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    refuse_complex("select_copy", input)?;
    view_part::Select::copy(input, dim, index)
}

/// Return a copy of every `step`-th slice along a dimension, from `start` up to `end`.
///
/// Args:
///     start: index of the first slice; 0 if not given.
///     end: index after the last slice; the size of the dimension if not given.
///     step: step between the slices.
///
/// Examples:
///     >>> torch.slice_copy(torch.arange(6), 0, 1, 5, 2)
///     tensor([1, 3])
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

/// Return copies of the parts of a tensor along a dimension; see `torch.split`.
///
/// Args:
///     split_size: size of each part; the last may be smaller.
///     out: tensors to write the results into.
///
/// Examples:
///     >>> [part.tolist() for part in torch.split_copy(torch.arange(5), 2)]
///     [[0, 1], [2, 3], [4]]
#[operator(function, out, sample = "view(lambda draw, shape: lambda x: T.split_copy(x, 2), 1)")]
pub fn split_copy(input: &Tensor, split_size: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    split::check_size(input, split_size, dim)?;
    split::Split::copy(input, split_size, dim)
}

/// Return copies of parts of the given sizes; see `torch.split_with_sizes`.
///
/// Args:
///     out: tensors to write the results into.
///
/// Examples:
///     >>> [part.tolist() for part in torch.split_with_sizes_copy(torch.arange(5), [1, 4])]
///     [[0], [1, 2, 3, 4]]
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

/// Return copies of all slices along a dimension; see `torch.unbind`.
///
/// Args:
///     out: tensors to write the results into.
///
/// Examples:
///     >>> torch.unbind_copy(torch.tensor([[1, 2], [3, 4]]))
///     (tensor([1, 2]), tensor([3, 4]))
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.unbind_copy(x), 1)")]
pub fn unbind_copy(input: &Tensor, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    check_unbind(input)?;
    Unbind::copy(input, dim)
}

/// Return a copy without dimensions of size 1; see `torch.squeeze`.
///
/// Examples:
///     >>> torch.squeeze_copy(torch.zeros(2, 1)).shape
///     torch.Size([2])
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.squeeze_copy(x))")]
pub fn squeeze_copy(input: &Tensor) -> Result<Tensor> {
    views::Squeeze::copy(input)
}

/// Return a copy without one dimension of size 1.
#[overload(squeeze_copy.dim)]
pub fn squeeze_copy_dim(input: &Tensor, dim: i64) -> Result<Tensor> {
    views::Squeeze1::copy(input, dim)
}

/// Return a copy without the given dimensions of size 1.
#[overload(squeeze_copy.dims)]
pub fn squeeze_copy_dims(input: &Tensor, dim: Ints) -> Result<Tensor> {
    views::Squeeze2::copy(input, dim)
}

/// Return a transposed copy of a matrix; see `torch.t`.
///
/// Examples:
///     >>> torch.t_copy(torch.tensor([[1, 2], [3, 4]]))
///     tensor([[1, 3],
///             [2, 4]])
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.t_copy(x), shapes=st.sampled_from([(2, 3), (4,), (), (0, 2)]))"
)]
pub fn t_copy(input: &Tensor) -> Result<Tensor> {
    view::MatrixTranspose::copy(input)
}

/// Return a copy with two dimensions swapped; see `torch.transpose`.
///
/// Examples:
///     >>> torch.transpose_copy(torch.zeros(2, 3), 0, 1).shape
///     torch.Size([3, 2])
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.transpose_copy(x, 0, -1), 1)"
)]
pub fn transpose_copy(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    view::Transpose::copy(input, dim0, dim1)
}

/// Return a copy of the sliding windows along a dimension; see `Tensor.unfold`.
///
/// Examples:
///     >>> torch.unfold_copy(torch.arange(4), 0, 2, 2)
///     tensor([[0, 1],
///             [2, 3]])
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.unfold_copy(x, 0, 1, 1), 1)"
)]
pub fn unfold_copy(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    slices::Unfold::copy(input, dimension, size, step)
}

/// Return a copy with a new dimension of size 1; see `torch.unsqueeze`.
///
/// Examples:
///     >>> torch.unsqueeze_copy(torch.tensor([1, 2]), 0)
///     tensor([[1, 2]])
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.unsqueeze_copy(x, -1))")]
pub fn unsqueeze_copy(input: &Tensor, dim: i64) -> Result<Tensor> {
    views::Unsqueeze::copy(input, dim)
}

/// Return a copy of the tensor.
///
/// Examples:
///     >>> torch.alias_copy(torch.tensor([1, 2]))
///     tensor([1, 2])
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.alias_copy(x))")]
pub fn alias_copy(input: &Tensor) -> Result<Tensor> {
    views::Alias::copy(input)
}

/// Return a copy of the tensor; its gradient cannot be computed, as in PyTorch.
///
/// Examples:
///     >>> torch.detach_copy(torch.tensor([1, 2]))
///     tensor([1, 2])
#[operator(function, out(declared), unrecorded)]
pub fn detach_copy(input: &Tensor) -> Result<Tensor> {
    DetachCopy::call(input)
}

/// Return a copy of complex numbers as pairs of real ones; see `torch.view_as_real`.
///
/// Examples:
///     >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
///     tensor([[1., 2.]])
#[operator(
    function,
    out(declared),
    sample = "pointwise(lambda x: T.view_as_real_copy(x + 0j).to(x.dtype), 1, WIDE)"
)]
pub fn view_as_real_copy(input: &Tensor) -> Result<Tensor> {
    complex_views::ViewAsReal::copy(input)
}

/// Return a copy of pairs of real numbers as complex ones; see `torch.view_as_complex`.
///
/// Examples:
///     >>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))
///     tensor([1.+2.j])
#[operator(function, out(declared), unrecorded)]
pub fn view_as_complex_copy(input: &Tensor) -> Result<Tensor> {
    let made = complex::view_as_complex(input)?;
    refuse_complex("view_as_complex_copy", &made)?;
    clone_dense(&made)
}

/// Return a copy of the complex conjugate.
#[operator(function, out(declared), unrecorded)]
pub fn _conj_copy(input: &Tensor) -> Result<Tensor> {
    refuse_complex("_conj_copy", input)?;
    clone_dense(&complex::conj(input)?)
}

/// Return a copy of the negated elements.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T._neg_view_copy(x))")]
pub fn _neg_view_copy(input: &Tensor) -> Result<Tensor> {
    complex_views::NegView::copy(input)
}

/// Return a copy of the elements with another shape and strides.
#[operator(
    function,
    out(declared),
    sample = "fixed([(2, 3)], lambda x: T._reshape_alias_copy(x.contiguous(), (3, 2), (2, 1)))"
)]
pub fn _reshape_alias_copy(input: &Tensor, #[strict] size: Ints, #[strict] stride: Ints) -> Result<Tensor> {
    ReshapeAliasCopy::call(input, size, stride)
}
