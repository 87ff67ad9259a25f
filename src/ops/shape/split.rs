//! Splits a tensor into several views with one node for all, or into parts with nodes of their own.

use crate::base::try_alloc;
use crate::operator::call::results::Untied;
use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::views;
use crate::ops::prelude::*;
use crate::ops::shape::join::cat;
use crate::ops::shape::slices;

/// The lengths of parts with `size` slices each; the last part may be shorter.
pub fn even(total: usize, size: i64) -> Result<Vec<usize>> {
    let size = size as usize;
    let count = if size == 0 { 1 } else { total.div_ceil(size).max(1) };
    try_alloc::check_list(count)?;
    try_alloc::collect((0..count).map(|i| Ok(size.min(total - i * size))))
}

/// The lengths of parts with these sizes.
pub fn checked_sizes(sizes: &[i64]) -> Result<Vec<usize>> {
    try_alloc::collect(sizes.iter().map(|&n| Ok(n as usize)))
}

/// The layouts of consecutive parts of `input`.
fn parts(input: &Tensor, dim: i64, lengths: impl FnOnce(usize) -> Result<Vec<usize>>) -> Result<Vec<Layout>> {
    let layout = input.body().layout.clone();
    let lengths = lengths(layout.shape[wrap_dim(dim, layout.ndim())?])?;
    let mut start = 0;
    try_alloc::collect(lengths.into_iter().map(|length| {
        let from = start;
        start += length as i64;
        layout.slice(dim, Some(from), Some(start), 1)
    }))
}

/// The gradient of the tensor: concatenates those of the parts, with zeros for parts without one.
pub fn join_gradients(
    g: Vec<Option<Tensor>>,
    at: &Meta,
    dim: i64,
    lengths: impl FnOnce(usize) -> Result<Vec<usize>>,
) -> Result<Tensor> {
    let along = wrap_dim(dim, at.shape.len())?;
    let part = |(g, length): (Option<Tensor>, usize)| match g {
        Some(g) => Ok(g),
        None => {
            let mut shape = at.shape.clone();
            shape[along] = length;
            zeros(&shape, at.dtype, at.device)
        }
    };
    cat(&try_alloc::collect(g.into_iter().zip(lengths(at.shape[along])?).map(part))?, dim)
}

#[primitive(copy, batch = along(dim), tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Split {
    fn forward(input: &Tensor, split_size: i64, dim: i64) -> Result<Vec<Layout>> {
        parts(input, dim, |total| even(total, split_size))
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, split_size: i64, dim: i64) -> Result<Tensor> {
        join_gradients(g, &at, dim, |total| even(total, split_size))
    }
}

#[primitive(copy, batch = along(dim), tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl SplitWithSizes {
    fn forward(input: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Vec<Layout>> {
        parts(input, dim, |_| checked_sizes(split_sizes))
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, split_sizes: &Ints, dim: i64) -> Result<Tensor> {
        join_gradients(g, &at, dim, |_| checked_sizes(split_sizes))
    }
}

#[primitive(batch = along(dim), tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl UnsafeSplit {
    fn forward(input: &Tensor, split_size: i64, dim: i64) -> Result<Untied> {
        parts(input, dim, |total| even(total, split_size)).map(Untied)
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, split_size: i64, dim: i64) -> Result<Tensor> {
        join_gradients(g, &at, dim, |total| even(total, split_size))
    }
}

#[primitive(batch = along(dim), tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl UnsafeSplitWithSizes {
    fn forward(input: &Tensor, split_sizes: &[i64], dim: i64) -> Result<Untied> {
        parts(input, dim, |_| checked_sizes(split_sizes)).map(Untied)
    }
    fn d_input(g: Vec<Option<Tensor>>, at: Meta, split_sizes: &Ints, dim: i64) -> Result<Tensor> {
        join_gradients(g, &at, dim, |_| checked_sizes(split_sizes))
    }
}

/// Rejects an invalid size of parts.
pub fn check_size(input: &Tensor, size: i64, dim: i64) -> Result<()> {
    if input.ndim() == 0 {
        return Err(Error::runtime("split expects at least a 1-dimensional tensor"));
    }
    if size < 0 {
        return Err(Error::runtime(format!(
            "split expects split_size be non-negative, but got split_size={size}"
        )));
    }
    let total = input.shape()[wrap_dim(dim, input.ndim())?];
    if size == 0 && total != 0 {
        return Err(Error::runtime(format!(
            "split_size can only be 0 if dimension size is 0, but got dimension size of {total}"
        )));
    }
    Ok(())
}

/// Rejects sizes that do not sum to the size of the dimension.
pub fn check_sizes(input: &Tensor, sizes: &[i64], dim: i64) -> Result<()> {
    if input.ndim() == 0 {
        return Err(Error::runtime("split expects at least a 1-dimensional tensor"));
    }
    let at = wrap_dim(dim, input.ndim())?;
    let total = input.shape()[at] as i64;
    if sizes.iter().any(|&n| n < 0) {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes:?}"
        )));
    }
    if sizes.iter().sum::<i64>() != total {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension {at}), but got \
             split_sizes={sizes:?}"
        )));
    }
    Ok(())
}

/// The way `chunk` splits: into parts of one size, or, for an empty dimension, into parts of these sizes.
enum Chunks {
    Of(i64),
    Empty(Vec<i64>),
}

fn chunks_of(input: &Tensor, chunks: i64, dim: i64) -> Result<Chunks> {
    if input.ndim() == 0 {
        return Err(Error::runtime("chunk expects at least a 1-dimensional tensor"));
    }
    if chunks <= 0 {
        return Err(Error::runtime(format!("chunk expects `chunks` to be greater than 0, got: {chunks}")));
    }
    let total = input.shape()[wrap_dim(dim, input.ndim())?];
    if total == 0 {
        try_alloc::check_list(chunks as usize)?;
        return Ok(Chunks::Empty(try_alloc::filled(0, chunks as usize)?));
    }
    Ok(Chunks::Of(total.div_ceil(chunks as usize) as i64))
}

/// Reads a tensor with one integer as a number. Returns other arguments unchanged.
fn as_number(given: Arg) -> Result<Arg> {
    match &given {
        Arg::Tensor(t) if t.numel() == 1 && t.dtype().is_int() => Ok(Arg::Int(t.item()?.as_index())),
        _ => Ok(given),
    }
}

/// Split a tensor into parts along a dimension (views).
///
/// Args:
///     tensor: the tensor to split.
///     split_size_or_sections: size of each part (the last may be smaller), or a list of sizes.
///     dim: dimension along which to split.
///
/// Returns:
///     A tuple of tensors.
///
/// Examples:
///     >>> [part.tolist() for part in torch.split(torch.arange(5), 2)]
///     [[0, 1], [2, 3], [4]]
///     >>> [part.tolist() for part in torch.split(torch.arange(5), [1, 4])]
///     [[0], [1, 2, 3, 4]]
#[operator(
    function,
    sample = "view(lambda draw, shape: (lambda d: lambda x: T.split(x, 1, d))(dim_of(draw, shape)), 1)"
)]
pub fn split(tensor: &Tensor, split_size_or_sections: Arg, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    match as_number(split_size_or_sections)? {
        Arg::Int(size) => {
            check_size(tensor, size, dim)?;
            Split::call(tensor, size, dim)
        }
        Arg::Ints(sizes) => split_with_sizes(tensor, &sizes, dim),
        other => Err(Error::type_error(format!(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not {}",
            other.type_name()
        ))),
    }
}

/// Split the tensor into parts along a dimension (views).
///
/// Args:
///     split_size: size of each part (the last may be smaller), or a list of sizes.
///     dim: dimension along which to split.
#[operator(
    method,
    name = "split",
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.split(split_size=1, dim=d))(dim_of(draw, shape)), 1)"
)]
pub fn split_method(input: &Tensor, split_size: Arg, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    split(input, split_size, dim)
}

/// Split a tensor into parts of the given sizes along a dimension (views).
///
/// Args:
///     split_sizes: sizes of the parts, which add up to that of the dimension.
///     dim: dimension along which to split.
///
/// Examples:
///     >>> [part.tolist() for part in torch.split_with_sizes(torch.arange(5), [1, 4])]
///     [[0], [1, 2, 3, 4]]
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: lambda x: x.split_with_sizes([1, shape[0] - 1]), 1)"
)]
pub fn split_with_sizes(input: &Tensor, split_sizes: &[i64], #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    check_sizes(input, split_sizes, dim)?;
    SplitWithSizes::call(input, split_sizes, dim)
}

/// Split a tensor into at most `chunks` parts of equal size along a dimension (views).
///
/// The last part may be smaller, and there may be fewer parts.
///
/// Args:
///     chunks: number of parts.
///     dim: dimension along which to split.
///
/// Examples:
///     >>> [part.tolist() for part in torch.chunk(torch.arange(5), 3)]
///     [[0, 1], [2, 3], [4]]
#[operator(
    function,
    method,
    composite,
    sample = "view(lambda draw, shape: (lambda d: lambda x: x.chunk(2, d))(dim_of(draw, shape)), 1)"
)]
pub fn chunk(input: &Tensor, #[strict] chunks: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    match chunks_of(input, chunks, dim)? {
        Chunks::Of(size) => Split::call(input, size, dim),
        Chunks::Empty(sizes) => SplitWithSizes::call(input, &sizes, dim),
    }
}

/// Split a tensor like `torch.chunk`, without tracking that the parts are views of the same tensor.
///
/// Each part may be written in place, but then only that part should be used.
///
/// Args:
///     chunks: number of parts.
///     dim: dimension along which to split.
///
/// Examples:
///     >>> [part.tolist() for part in torch.unsafe_chunk(torch.arange(5), 3)]
///     [[0, 1], [2, 3], [4]]
#[operator(function, method, composite, sample = "view(lambda draw, shape: lambda x: x.unsafe_chunk(2), 1)")]
pub fn unsafe_chunk(input: &Tensor, #[strict] chunks: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    match chunks_of(input, chunks, dim)? {
        Chunks::Of(size) => UnsafeSplit::call(input, size, dim),
        Chunks::Empty(sizes) => UnsafeSplitWithSizes::call(input, &sizes, dim),
    }
}

/// Split a tensor like `torch.split`, without tracking that the parts are views of the same tensor.
///
/// Each part may be written in place, but then only that part should be used.
///
/// Args:
///     split_size: size of each part; the last may be smaller.
///     dim: dimension along which to split.
///
/// Examples:
///     >>> [part.tolist() for part in torch.unsafe_split(torch.arange(5), 2)]
///     [[0, 1], [2, 3], [4]]
#[operator(function, method, sample = "view(lambda draw, shape: lambda x: x.unsafe_split(2), 1)")]
pub fn unsafe_split(input: &Tensor, split_size: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    check_size(input, split_size, dim)?;
    UnsafeSplit::call(input, split_size, dim)
}

/// Split a tensor like `torch.split_with_sizes`, without tracking that the parts are views of the same tensor.
///
/// Each part may be written in place, but then only that part should be used.
///
/// Args:
///     split_sizes: sizes of the parts, which add up to that of the dimension.
///     dim: dimension along which to split.
///
/// Examples:
///     >>> [part.tolist() for part in torch.unsafe_split_with_sizes(torch.arange(5), [2, 3])]
///     [[0, 1], [2, 3, 4]]
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: lambda x: x.unsafe_split_with_sizes([1, shape[0] - 1]), 1)"
)]
pub fn unsafe_split_with_sizes(
    input: &Tensor,
    split_sizes: &[i64],
    #[default(0)] dim: i64,
) -> Result<Vec<Tensor>> {
    check_sizes(input, split_sizes, dim)?;
    UnsafeSplitWithSizes::call(input, split_sizes, dim)
}

/// Splits `input` before each of `places`.
fn split_before(input: &Tensor, places: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    let mut start = 0;
    let whole = input.shape()[dim as usize] as i64;
    let part = |end| slices::slice(input, dim, Some(std::mem::replace(&mut start, end)), Some(end), 1);
    try_alloc::collect(places.iter().copied().chain([whole]).map(part))
}

/// The starts of nearly equal parts of `dim`, without the first.
fn section_starts(input: &Tensor, sections: i64, dim: i64) -> Result<Ints> {
    let total = input.shape()[wrap_dim(dim, input.ndim())?];
    if sections <= 0 {
        return Err(Error::runtime(format!("number of sections must be larger than 0, got {sections}")));
    }
    let n = sections as usize;
    let (each, longer) = (total / n, total % n);
    try_alloc::check_list(n)?;
    Ok(Ints::from_vec(try_alloc::collect((1..n).map(|i| Ok((i * each + i.min(longer)) as i64)))?))
}

/// Wraps `dim`, and rejects tensors without dimensions.
fn cuttable(input: &Tensor, dim: i64) -> Result<i64> {
    if input.ndim() == 0 {
        return Err(Error::runtime(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
        ));
    }
    Ok(wrap_dim(dim, input.ndim())? as i64)
}

/// Split a tensor into parts of nearly equal size, or at the given indices (views).
///
/// Args:
///     tensor_indices_or_sections: the number of parts or the indices, in a tensor on the CPU.
///     sections: number of parts; the first ones are larger by one where sizes do not divide evenly.
///     indices: where the parts after the first begin.
///     dim: dimension along which to split.
///
/// Examples:
///     >>> [part.tolist() for part in torch.tensor_split(torch.arange(5), 3)]
///     [[0, 1], [2, 3], [4]]
///     >>> [part.tolist() for part in torch.tensor_split(torch.arange(5), (1, 3))]
///     [[0], [1, 2], [3, 4]]
#[operator(function, method, composite, sample = "view(lambda draw, shape: lambda x: x.tensor_split(2), 1)")]
pub fn tensor_split(
    input: &Tensor,
    #[elsewhere] tensor_indices_or_sections: &Tensor,
    #[default(0)] dim: i64,
) -> Result<Vec<Tensor>> {
    let (at, t) = (cuttable(input, dim)?, tensor_indices_or_sections);
    let refuse = |what: String| {
        Err(Error::runtime(format!("tensor_split expected tensor_indices_or_sections to {what}")))
    };
    if !t.device().is_cpu() {
        return refuse(format!("be on cpu, but it's on {}", t.device()));
    }
    if t.ndim() > 1 {
        return refuse(format!(
            "be a zero-dimensional or one-dimensional tensor, but got a tensor with {} dims",
            t.ndim()
        ));
    }
    if t.dtype() != DType::I64 {
        return refuse(format!("have dtype of long, but got {}", t.dtype().scalar_name()));
    }
    let flat = views::reshape(t, &[t.numel()])?;
    let number = |i: usize| Ok(slices::select(&flat, 0, i as i64)?.item()?.as_index());
    if t.ndim() == 0 {
        return split_into_sections(input, number(0)?, at);
    }
    try_alloc::check(t.numel(), 3 * size_of::<i64>())?;
    split_before(input, &(0..t.numel()).map(number).collect::<Result<Ints>>()?, at)
}

/// Split a tensor into parts of nearly equal size (views).
#[overload(tensor_split.sections)]
pub fn split_into_sections(input: &Tensor, sections: i64, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    let at = cuttable(input, dim)?;
    split_before(input, &section_starts(input, sections, at)?, at)
}

/// Split a tensor at the given indices (views).
#[overload(tensor_split.indices)]
pub fn split_at_indices(input: &Tensor, indices: Ints, #[default(0)] dim: i64) -> Result<Vec<Tensor>> {
    split_before(input, &indices, cuttable(input, dim)?)
}

/// Rejects tensors with fewer than `ndim` dimensions, for `hsplit`, `vsplit` and `dsplit`.
fn check_rank(name: &str, input: &Tensor, ndim: usize) -> Result<()> {
    if input.ndim() < ndim {
        return Err(Error::runtime(format!(
            "torch.{name} requires a tensor with at least {ndim} dimension, but got a tensor with {} dimensions!",
            input.ndim()
        )));
    }
    Ok(())
}

/// Splits into equal parts, for `hsplit`, `vsplit` and `dsplit`.
fn equal_parts(name: &str, input: &Tensor, ndim: usize, sections: i64, dim: usize) -> Result<Vec<Tensor>> {
    check_rank(name, input, ndim)?;
    let total = input.shape()[dim];
    if sections <= 0 || total as i64 % sections != 0 {
        return Err(Error::runtime(format!(
            "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {total} is not divisible \
             by the split_size {sections}!"
        )));
    }
    split_into_sections(input, sections, dim as i64)
}

/// Split a tensor horizontally: along the second dimension, vectors along the first (views).
///
/// Args:
///     sections: number of equal parts.
///     indices: where the parts after the first begin.
///
/// Examples:
///     >>> [part.tolist() for part in torch.hsplit(torch.arange(4), 2)]
///     [[0, 1], [2, 3]]
#[operator(function, method, composite, sample = "view(lambda draw, shape: lambda x: x.hsplit(1), 1)")]
pub fn hsplit(input: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
    equal_parts("hsplit", input, 1, sections, usize::from(input.ndim() > 1))
}

/// Split a tensor horizontally at the given indices (views).
#[overload(hsplit.array)]
pub fn hsplit_at(input: &Tensor, indices: Ints) -> Result<Vec<Tensor>> {
    check_rank("hsplit", input, 1)?;
    split_at_indices(input, indices, i64::from(input.ndim() > 1))
}

/// Split a tensor vertically: along the first dimension (views).
///
/// Args:
///     sections: number of equal parts.
///     indices: where the parts after the first begin.
///
/// Examples:
///     >>> [part.tolist() for part in torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)]
///     [[[1, 2]], [[3, 4]]]
#[operator(function, method, composite, sample = "view(lambda draw, shape: lambda x: x.vsplit(1), 2)")]
pub fn vsplit(input: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
    equal_parts("vsplit", input, 2, sections, 0)
}

/// Split a tensor vertically at the given indices (views).
#[overload(vsplit.array)]
pub fn vsplit_at(input: &Tensor, indices: Ints) -> Result<Vec<Tensor>> {
    check_rank("vsplit", input, 2)?;
    split_at_indices(input, indices, 0)
}

/// Split a tensor depthwise: along the third dimension (views).
///
/// Args:
///     sections: number of equal parts.
///     indices: where the parts after the first begin.
///
/// Examples:
///     >>> [part.shape for part in torch.dsplit(torch.zeros(2, 3, 4), 2)]
///     [torch.Size([2, 3, 2]), torch.Size([2, 3, 2])]
#[operator(function, method, composite, sample = "view(lambda draw, shape: lambda x: x.dsplit(1), 3)")]
pub fn dsplit(input: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
    equal_parts("dsplit", input, 3, sections, 2)
}

/// Split a tensor depthwise at the given indices (views).
#[overload(dsplit.array)]
pub fn dsplit_at(input: &Tensor, indices: Ints) -> Result<Vec<Tensor>> {
    check_rank("dsplit", input, 3)?;
    split_at_indices(input, indices, 2)
}
