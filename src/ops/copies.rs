//! Views whose elements are copied: `transpose_copy` and its like. Each is recorded as its view is, but has memory of its
//! own, in order.

use super::create::{clone_dense, shallow, zeros};
use super::join::{stack, unbind};
use super::kernel::duplicate;
use super::reduce::quietly;
use super::view::{self, reshaped};
use super::view_part::embed;
use super::{complex, split};
use crate::base::views::infer_shape;
use crate::operator::prelude::*;
use crate::tensor::any_requires_grad;

/// A dense copy of what lies so over `input`.
fn copied(input: &Tensor, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Body> {
    let body = input.body();
    duplicate(&body.with_layout(view(&body.layout)?))
}

/// The gradient of a tensor from that of a part of it.
fn put_back(g: V, at: Meta, view: impl FnOnce(&Layout) -> Result<Layout>) -> V {
    g.then(|g| embed(&g, at.shape.clone(), view(&Layout::contiguous(&at.shape))?))
}

/// Dense copies of several views.
fn all_copied(views: Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    views?.iter().map(clone_dense).collect()
}

fn bodies(views: Result<Vec<Tensor>>) -> Result<Vec<Body>> {
    views?.iter().map(|t| duplicate(&t.body())).collect()
}

/// The gradients of parts, zeros where one got none; `shape` is that of part `i`.
fn parts(g: Vec<Option<Tensor>>, at: &Meta, shape: impl Fn(usize) -> Dims) -> Result<Vec<Tensor>> {
    let part = |(i, g): (usize, Option<Tensor>)| match g {
        Some(g) => Ok(g),
        None => zeros(&shape(i), at.dtype, at.device),
    };
    g.into_iter().enumerate().map(part).collect()
}

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

#[primitive(node = "DiagonalBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl DiagonalCopy {
    fn forward(input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Body> {
        copied(input, |l| l.diagonal(offset, dim1, dim2))
    }
    fn d_input(g: V, at: Meta, offset: i64, dim1: i64, dim2: i64) -> V {
        put_back(g, at, |l| l.diagonal(offset, dim1, dim2))
    }
    fn batch(_: &Batch, input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        clone_dense(&view::diagonal(input, offset, dim1, dim2)?)
    }
}

#[primitive(node = "AsStridedBackward0_copy", tangent = linear)]
impl AsStridedCopy {
    fn forward(
        input: &Tensor,
        size: Ints,
        stride: Ints,
        storage_offset: Option<i64>,
        #[hidden] lies: Layout,
    ) -> Result<Body> {
        let _ = lies;
        quietly(|| clone_dense(&view::as_strided(&shallow(input), size, stride, storage_offset)?))
    }
    fn d_input(g: V, at: Meta, size: Ints, stride: Ints, storage_offset: Option<i64>, lies: Layout) -> V {
        g.then(|g| view::unstrided(&g, &at, &size, &stride, storage_offset, &lies))
    }
    fn batch(
        _: &Batch,
        input: &Tensor,
        size: Ints,
        stride: Ints,
        storage_offset: Option<i64>,
        _lies: Layout,
    ) -> Result<Tensor> {
        clone_dense(&view::as_strided(input, size, stride, storage_offset)?)
    }
}

#[primitive(node = "ExpandBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl ExpandCopy {
    fn forward(input: &Tensor, size: Ints) -> Result<Body> {
        copied(input, |l| l.expand(&size))
    }
    fn d_input(g: V, at: Meta) -> V {
        g.sum_to(&at.shape)
    }
    fn batch(_: &Batch, input: &Tensor, size: Ints) -> Result<Tensor> {
        clone_dense(&view::expand(input, size)?)
    }
}

#[primitive(node = "PermuteBackward0_copy", tangent = linear)]
impl PermuteCopy {
    fn forward(input: &Tensor, dims: Ints) -> Result<Body> {
        copied(input, |l| l.permute(&dims))
    }
    fn d_input(g: V, dims: Ints) -> V {
        let mut back: Ints = smallvec::smallvec![0; dims.len()];
        for (i, &d) in dims.iter().enumerate() {
            let d = if d < 0 { d + dims.len() as i64 } else { d };
            back[d as usize] = i as i64;
        }
        g.then(|g| view::permute(&g, back))
    }
    fn batch(_: &Batch, input: &Tensor, dims: Ints) -> Result<Tensor> {
        clone_dense(&view::permute(input, dims)?)
    }
}

#[primitive(node = "SelectBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SelectCopy {
    fn forward(input: &Tensor, dim: i64, index: i64) -> Result<Body> {
        copied(input, |l| l.select(dim, index))
    }
    fn d_input(g: V, at: Meta, dim: i64, index: i64) -> V {
        put_back(g, at, |l| l.select(dim, index))
    }
    fn batch(_: &Batch, input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        clone_dense(&view::select(input, dim, index)?)
    }
}

#[primitive(node = "SliceBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SliceCopy {
    fn forward(input: &Tensor, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Body> {
        copied(input, |l| l.slice(dim, start, end, step))
    }
    fn d_input(g: V, at: Meta, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> V {
        put_back(g, at, |l| l.slice(dim, start, end, step))
    }
    fn batch(
        _: &Batch,
        input: &Tensor,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        clone_dense(&view::slice(input, dim, start, end, step)?)
    }
}

#[primitive(node = "SqueezeBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SqueezeCopy {
    fn forward(input: &Tensor) -> Result<Body> {
        copied(input, |l| Ok(l.squeeze(&(0..l.ndim()).collect::<Dims>())))
    }
    fn d_input(g: V, at: Meta) -> V {
        g.reshape(&at.shape)
    }
    fn batch(_: &Batch, input: &Tensor) -> Result<Tensor> {
        clone_dense(&view::squeeze_all(input)?)
    }
}

#[primitive(node = "SqueezeBackward1_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SqueezeDimCopy {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        copied(input, |l| Ok(l.squeeze(&[wrap_dim(dim, l.ndim())?])))
    }
    fn d_input(g: V, at: Meta, dim: i64) -> V {
        let _ = dim; // Python is shown it.
        g.reshape(&at.shape)
    }
    fn batch(_: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        clone_dense(&view::squeeze_one(input, dim)?)
    }
}

#[primitive(node = "SqueezeBackward2_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SqueezeDimsCopy {
    fn forward(input: &Tensor, dim: Ints) -> Result<Body> {
        copied(input, |l| {
            Ok(l.squeeze(&dim.iter().map(|&d| wrap_dim(d, l.ndim())).collect::<Result<Dims>>()?))
        })
    }
    fn d_input(g: V, at: Meta, dim: Ints) -> V {
        let _ = dim; // Python is shown it.
        g.reshape(&at.shape)
    }
    fn batch(_: &Batch, input: &Tensor, dim: Ints) -> Result<Tensor> {
        clone_dense(&view::squeeze_many(input, dim)?)
    }
}

#[primitive(node = "TBackward0_copy", tangent = linear)]
impl TCopy {
    fn forward(input: &Tensor) -> Result<Body> {
        quietly(|| clone_dense(&view::t(&shallow(input))?))
    }
    fn d_input(g: V) -> V {
        g.then(|g| view::t(&g))
    }
    fn batch(_: &Batch, input: &Tensor) -> Result<Tensor> {
        clone_dense(&view::t(input)?)
    }
}

#[primitive(node = "TransposeBackward0_copy", tangent = linear)]
impl TransposeCopy {
    fn forward(input: &Tensor, dim0: i64, dim1: i64) -> Result<Body> {
        copied(input, |l| l.transpose(dim0, dim1))
    }
    fn d_input(g: V, dim0: i64, dim1: i64) -> V {
        g.transpose(dim0, dim1)
    }
    fn batch(_: &Batch, input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
        clone_dense(&view::transpose(input, dim0, dim1)?)
    }
}

#[primitive(node = "UnfoldBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl UnfoldCopy {
    fn forward(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Body> {
        copied(input, |l| l.unfold(dimension, size, step))
    }
    fn d_input(g: V, at: Meta, dimension: i64, size: i64, step: i64) -> V {
        put_back(g, at, |l| l.unfold(dimension, size, step))
    }
    fn batch(_: &Batch, input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
        clone_dense(&view::unfold(input, dimension, size, step)?)
    }
}

#[primitive(node = "UnsqueezeBackward0_copy", tangent = linear)]
impl UnsqueezeCopy {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        copied(input, |l| l.unsqueeze(dim))
    }
    fn d_input(g: V, dim: i64) -> V {
        g.then(|g| view::squeeze_one(&g, dim))
    }
    fn batch(_: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        clone_dense(&view::unsqueeze(input, dim)?)
    }
}

#[primitive(node = "AliasBackward0_copy", tangent = linear, batch = pointwise)]
impl AliasCopy {
    fn forward(input: &Tensor) -> Result<Body> {
        duplicate(&input.body())
    }
    fn d_input(g: V) -> V {
        g
    }
}

#[primitive(node = "NegViewBackward0_copy", tangent = linear, batch = pointwise)]
impl NegViewCopy {
    fn forward(input: &Tensor) -> Result<Body> {
        quietly(|| clone_dense(&complex::_neg_view(&shallow(input))?))
    }
    fn d_input(g: V) -> V {
        -g
    }
}

#[primitive(node = "ReshapeAliasBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl ReshapeAliasCopy {
    fn forward(input: &Tensor, size: Ints, stride: Ints) -> Result<Body> {
        quietly(|| clone_dense(&view::as_strided(&shallow(input), size, stride, None)?))
    }
    fn d_input(g: V, at: Meta) -> V {
        g.reshape(&at.shape)
    }
    fn batch(_: &Batch, input: &Tensor, size: Ints, stride: Ints) -> Result<Tensor> {
        clone_dense(&view::as_strided(input, size, stride, None)?)
    }
}

#[primitive(node = "ViewAsRealBackward0_copy", tangent = linear, batch = pointwise)]
impl ViewAsRealCopy {
    fn forward(input: &Tensor) -> Result<Body> {
        quietly(|| clone_dense(&complex::view_as_real(&shallow(input))?))
    }
    fn d_input(g: V) -> V {
        g.then(|g| complex::view_as_complex(&g))
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

#[primitive(node = "SplitBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SplitCopy {
    fn forward(input: &Tensor, split_size: i64, dim: i64) -> Result<Vec<Body>> {
        split::check_size(input, split_size, dim)?;
        bodies(split::Split::call(&shallow(input), split_size, dim))
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, split_size: i64, dim: i64) -> Result<Tensor> {
        split::joined(g, &at, dim, |total| split::even(total, split_size))
    }
    fn batch(_: &Batch, input: &Tensor, split_size: i64, dim: i64) -> Result<Vec<Tensor>> {
        split::check_size(input, split_size, dim)?;
        all_copied(split::Split::call(input, split_size, dim))
    }
}

#[primitive(node = "SplitWithSizesBackward0_copy", tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SplitWithSizesCopy {
    fn forward(input: &Tensor, split_sizes: Ints, dim: i64) -> Result<Vec<Body>> {
        bodies(split::split_with_sizes(&shallow(input), &split_sizes, dim))
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, split_sizes: Ints, dim: i64) -> Result<Tensor> {
        split::joined(g, &at, dim, |_| split::given(&split_sizes))
    }
    fn batch(_: &Batch, input: &Tensor, split_sizes: Ints, dim: i64) -> Result<Vec<Tensor>> {
        all_copied(split::split_with_sizes(input, &split_sizes, dim))
    }
}

#[primitive(node = "UnbindBackward0_copy", tangent = linear)]
impl UnbindCopy {
    fn forward(input: &Tensor, dim: i64) -> Result<Vec<Body>> {
        bodies(unbind(&shallow(input), dim))
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, dim: i64) -> Result<Tensor> {
        if g.is_empty() {
            return zeros(&at.shape, at.dtype, at.device);
        }
        let mut shape = at.shape.clone();
        shape.remove(wrap_dim(dim, at.shape.len())?);
        stack(&parts(g, &at, |_| shape.clone())?, dim)
    }
    fn batch(_: &Batch, input: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
        all_copied(unbind(input, dim))
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
        AliasCopy::call(input)
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
    #[default(0)] offset: i64,
    #[default(0)] dim1: i64,
    #[default(1)] dim2: i64,
) -> Result<Tensor> {
    DiagonalCopy::call(input, offset, dim1, dim2)
}

/// A copy of the storage read with any sizes and strides.
#[operator(
    function,
    out(declared),
    sample = "fixed([(3, 4)], lambda x: T.as_strided_copy(x.contiguous(), (2, 3), (1, 2), 1))"
)]
pub fn as_strided_copy(
    input: &Tensor,
    size: Ints,
    stride: Ints,
    storage_offset: Option<i64>,
) -> Result<Tensor> {
    let lies = input.body().layout.clone();
    AsStridedCopy::call(input, size, stride, storage_offset, lies)
}

/// A copy with dimensions of size 1 stretched.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.expand_copy(x, (2, *x.shape)))"
)]
pub fn expand_copy(
    input: &Tensor,
    size: Ints,
    #[keyword]
    #[default(false)]
    implicit: bool,
) -> Result<Tensor> {
    let _ = implicit;
    ExpandCopy::call(input, size)
}

/// A copy with the dimensions in another order.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.permute_copy(x, tuple(reversed(range(x.dim())))))"
)]
pub fn permute_copy(input: &Tensor, dims: Ints) -> Result<Tensor> {
    PermuteCopy::call(input, dims)
}

/// A copy of one slice across a dimension.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.select_copy(x, -1, 0), 1)"
)]
pub fn select_copy(input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    refuse_complex("select_copy", input)?;
    SelectCopy::call(input, dim, index)
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
    SliceCopy::call(input, dim, start, end, step)
}

/// Copies of parts of `split_size` along a dimension.
#[operator(function, out, sample = "view(lambda draw, shape: lambda x: T.split_copy(x, 2), 1)")]
pub fn split_copy(input: &Tensor, split_size: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    SplitCopy::call(input, split_size, dim)
}

/// Copies of parts of the given sizes along a dimension.
#[operator(
    function,
    out,
    sample = "view(lambda draw, shape: lambda x: T.split_with_sizes_copy(x, [1, shape[0] - 1]), 1)"
)]
pub fn split_with_sizes_copy(
    input: &Tensor,
    split_sizes: Ints,
    #[default(0)] dim: i64,
) -> Result<Vec<Tensor>> {
    SplitWithSizesCopy::call(input, split_sizes, dim)
}

/// Copies of every slice across a dimension.
#[operator(function, out, sample = "view(lambda draw, shape: lambda x: T.unbind_copy(x), 1)")]
pub fn unbind_copy(input: &Tensor, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    UnbindCopy::call(input, dim)
}

/// A copy without the dimensions of size 1.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.squeeze_copy(x))")]
pub fn squeeze_copy(input: &Tensor) -> Result<Tensor> {
    SqueezeCopy::call(input)
}

/// A copy without a dimension, where that has size 1.
#[overload(squeeze_copy.dim)]
pub fn squeeze_copy_dim(input: &Tensor, dim: i64) -> Result<Tensor> {
    SqueezeDimCopy::call(input, dim)
}

/// A copy without those of these dimensions that have size 1.
#[overload(squeeze_copy.dims)]
pub fn squeeze_copy_dims(input: &Tensor, dim: Ints) -> Result<Tensor> {
    SqueezeDimsCopy::call(input, dim)
}

/// A copy of a matrix with its dimensions swapped.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.t_copy(x), shapes=st.sampled_from([(2, 3), (4,), (), (0, 2)]))"
)]
pub fn t_copy(input: &Tensor) -> Result<Tensor> {
    TCopy::call(input)
}

/// A copy with two dimensions swapped.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.transpose_copy(x, 0, -1), 1)"
)]
pub fn transpose_copy(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    TransposeCopy::call(input, dim0, dim1)
}

/// A copy of sliding windows along a dimension.
#[operator(
    function,
    out(declared),
    sample = "view(lambda draw, shape: lambda x: T.unfold_copy(x, 0, 1, 1), 1)"
)]
pub fn unfold_copy(input: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    UnfoldCopy::call(input, dimension, size, step)
}

/// A copy with a dimension of size 1 put in.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.unsqueeze_copy(x, -1))")]
pub fn unsqueeze_copy(input: &Tensor, dim: i64) -> Result<Tensor> {
    UnsqueezeCopy::call(input, dim)
}

/// A copy.
#[operator(function, out(declared), sample = "view(lambda draw, shape: lambda x: T.alias_copy(x))")]
pub fn alias_copy(input: &Tensor) -> Result<Tensor> {
    AliasCopy::call(input)
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
    ViewAsRealCopy::call(input)
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
    NegViewCopy::call(input)
}

/// A copy of the elements under another shape and strides.
#[operator(
    function,
    out(declared),
    sample = "fixed([(2, 3)], lambda x: T._reshape_alias_copy(x.contiguous(), (3, 2), (2, 1)))"
)]
pub fn _reshape_alias_copy(input: &Tensor, size: Ints, stride: Ints) -> Result<Tensor> {
    ReshapeAliasCopy::call(input, size, stride)
}
