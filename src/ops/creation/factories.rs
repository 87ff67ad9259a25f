//! The operators that create tensors from sizes and numbers.

use crate::base::MemoryFormat;
use crate::operator::bodies::{fill, filled};
use crate::operator::primitives::copies::{clone_dense, to_device, to_dtype};
use crate::operator::primitives::detached;
use crate::operator::primitives::view_part::put_back;
use crate::operator::primitives::views::dims_of;
use crate::ops::prelude::*;
use crate::ops::shape::slices;

/// A new leaf with the given `requires_grad`.
pub fn fresh_leaf(body: Body, requires_grad: bool) -> Result<Tensor> {
    wanting(Tensor::new(body), requires_grad)
}

pub fn wanting(t: Tensor, requires_grad: bool) -> Result<Tensor> {
    if requires_grad {
        t.set_requires_grad(true).map_err(|_| {
            Error::runtime("Only Tensors of floating point and complex dtype can require gradients")
        })?;
    }
    Ok(t)
}

/// The sizes for `zeros`, which has its own error for negative ones.
fn shape_of_zeros(sizes: &[i64]) -> Result<Dims> {
    match sizes.iter().any(|&n| n < 0) {
        true => Err(Error::runtime("zeros: Dimension size must be non-negative.")),
        false => dims_of(sizes),
    }
}

/// A new contiguous body with the order of dimensions of `t`.
pub fn empty_body_like(
    t: &Tensor,
    dtype: Option<DType>,
    device: Option<Device>,
    format: Option<MemoryFormat>,
) -> Result<Body> {
    let body = t.body();
    let mut out = Body::new(body.shape(), dtype.unwrap_or(body.dtype), device.unwrap_or(body.device()))?;
    out.layout = format.unwrap_or(MemoryFormat::Preserve).layout(&body.layout)?;
    Ok(out)
}

fn fill_body(body: Body, value: Scalar) -> Result<Body> {
    fill(&body, value)?;
    Ok(body)
}

fn fill_leaf(body: Body, value: Scalar, options: TensorOptions) -> Result<Tensor> {
    fresh_leaf(fill_body(body, value)?, options.requires_grad)
}

/// A tensor with the shape and batch dimensions of `input`, filled with `value` if there is one.
fn new_like(
    input: &Tensor,
    options: TensorOptions,
    format: Option<MemoryFormat>,
    value: Option<Scalar>,
) -> Result<Tensor> {
    let body = empty_body_like(input.physical(), options.dtype, options.device, format)?;
    new_batched(input, body, options, value)
}

/// A tensor of this shape with the batch dimensions of `input`, filled with `value` if there is one.
fn new_of_shape(
    input: &Tensor,
    size: &[i64],
    options: TensorOptions,
    value: Option<Scalar>,
) -> Result<Tensor> {
    let shape = Batch::of([input]).shape(&dims_of(size)?);
    new_batched(input, options.or_those_of(input).body(&shape)?, options, value)
}

fn new_batched(input: &Tensor, body: Body, options: TensorOptions, value: Option<Scalar>) -> Result<Tensor> {
    if let Some(value) = value {
        fill(&body, value)?;
    }
    Ok(Batch::of([input]).wrap(fresh_leaf(body, options.requires_grad)?))
}

/// A copy of `length` slices along `dim`.
#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl NarrowCopy {
    fn forward(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Body> {
        let body = input.body();
        crate::operator::bodies::duplicate(&body.with_layout(body.layout.narrow(dim, start, length)?))
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.narrow(dim, start, length))
    }
    fn batch(_: &Batch, input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        clone_dense(&slices::narrow(input, dim, start, length)?)
    }
}

/// Return a tensor filled with zeros.
///
/// Args:
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.zeros(2, 3)
///     tensor([[0., 0., 0.],
///             [0., 0., 0.]])
///     >>> torch.zeros((2,), dtype=torch.int64)
///     tensor([0, 0])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::zeros"
    )
)]
pub fn zeros(size: Sizes, #[keyword] options: TensorOptions) -> Result<Tensor> {
    fill_leaf(options.body(&shape_of_zeros(&size.0)?)?, Scalar::Int(0), options)
}

/// Return a tensor filled with ones.
///
/// Args:
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.ones(2, 3)
///     tensor([[1., 1., 1.],
///             [1., 1., 1.]])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::ones"
    )
)]
pub fn ones(size: Sizes, #[keyword] options: TensorOptions) -> Result<Tensor> {
    fill_leaf(options.body(&dims_of(&size.0)?)?, Scalar::Int(1), options)
}

/// Return an uninitialized tensor: its elements are whatever is in memory.
///
/// Args:
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.empty(2, 3).shape
///     torch.Size([2, 3])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        uninitialized,
        called = "aten::empty"
    )
)]
pub fn empty(
    size: Sizes,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let mut body = options.body(&dims_of(&size.0)?)?;
    match memory_format {
        Some(MemoryFormat::Preserve) => return Err(Error::runtime("unsupported memory format Preserve")),
        Some(format) => body.layout = format.layout(&body.layout)?,
        None => {}
    }
    fresh_leaf(body, options.requires_grad)
}

/// Return an uninitialized tensor with the given sizes and strides.
///
/// Args:
///     size: shape of the result.
///     stride: step in memory between neighboring elements of each dimension, in elements.
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.empty_strided((2, 3), (1, 2)).stride()
///     (1, 2)
#[operator(function)]
pub fn empty_strided(
    #[strict] size: Ints,
    #[strict] stride: Ints,
    #[keyword] options: TensorOptions,
) -> Result<Tensor> {
    let shape = dims_of(&size)?;
    if size.len() != stride.len() || stride.iter().any(|&s| s < 0) {
        return Err(Error::runtime(format!(
            "dimensionality of sizes ({}) must match dimensionality of strides ({})",
            size.len(),
            stride.len()
        )));
    }
    let strides: Dims = stride.iter().map(|&s| s as usize).collect();
    let reach = shape
        .iter()
        .zip(&strides)
        .try_fold(1usize, |end, (&n, &s)| end.checked_add(n.saturating_sub(1).checked_mul(s)?));
    let reach = reach
        .ok_or_else(|| Error::runtime("empty_strided: sizes and strides exceed the range of addresses"))?;
    let mut body = options.body(&[reach])?;
    body.layout = Layout { shape, strides, offset: 0 };
    fresh_leaf(body, options.requires_grad)
}

/// Return a tensor filled with one value.
///
/// Args:
///     size: shape of the result.
///     fill_value: the value.
///     dtype: data type of the result; that of `fill_value` if not given.
///
/// Examples:
///     >>> torch.full((2, 2), 7)
///     tensor([[7, 7],
///             [7, 7]])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::full"
    )
)]
pub fn full(#[strict] size: Ints, fill_value: Scalar, #[keyword] options: TensorOptions) -> Result<Tensor> {
    let dtype = options.dtype.unwrap_or_else(|| crate::operator::pointwise::scalar_dtype(fill_value));
    fill_leaf(options.with_dtype(dtype).body(&dims_of(&size)?)?, fill_value, options)
}

/// Return zeros with the shape of another tensor, and its data type and device unless others are given.
///
/// Args:
///     input: the tensor whose properties are taken.
///
/// Examples:
///     >>> torch.zeros_like(torch.tensor([1, 2]))
///     tensor([0, 0])
#[operator(function, unrecorded)]
pub fn zeros_like(
    input: &Tensor,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    new_like(input, options, memory_format, Some(Scalar::Int(0)))
}

/// Return ones with the shape of another tensor, and its data type and device unless others are given.
///
/// Args:
///     input: the tensor whose properties are taken.
///
/// Examples:
///     >>> torch.ones_like(torch.tensor([1, 2]))
///     tensor([1, 1])
#[operator(function, unrecorded)]
pub fn ones_like(
    input: &Tensor,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    new_like(input, options, memory_format, Some(Scalar::Int(1)))
}

/// Return an uninitialized tensor with the shape, data type and device of another one.
///
/// Args:
///     input: the tensor whose properties are taken.
///
/// Examples:
///     >>> torch.empty_like(torch.zeros(2, 3)).shape
///     torch.Size([2, 3])
#[operator(function, unrecorded)]
pub fn empty_like(
    input: &Tensor,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    new_like(input, options, memory_format, None)
}

/// Return a tensor filled with one value, with the shape, data type and device of another one.
///
/// Args:
///     input: the tensor whose properties are taken.
///     fill_value: the value.
///
/// Examples:
///     >>> torch.full_like(torch.zeros(2), 7)
///     tensor([7., 7.])
#[operator(function, unrecorded)]
pub fn full_like(
    input: &Tensor,
    fill_value: Scalar,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    new_like(input, options, memory_format, Some(fill_value))
}

/// Return zeros of the given shape, with the data type and device of this tensor unless others are given.
///
/// Examples:
///     >>> torch.tensor([1, 2]).new_zeros(2, 2)
///     tensor([[0, 0],
///             [0, 0]])
#[operator(method, unrecorded)]
pub fn new_zeros(input: &Tensor, size: Sizes, #[keyword] options: TensorOptions) -> Result<Tensor> {
    new_of_shape(input, &size.0, options, Some(Scalar::Int(0)))
}

/// Return ones of the given shape, with the data type and device of this tensor unless others are given.
///
/// Examples:
///     >>> torch.tensor([1, 2]).new_ones(3)
///     tensor([1, 1, 1])
#[operator(method, unrecorded)]
pub fn new_ones(input: &Tensor, size: Sizes, #[keyword] options: TensorOptions) -> Result<Tensor> {
    new_of_shape(input, &size.0, options, Some(Scalar::Int(1)))
}

/// Return an uninitialized tensor of the given shape, with the data type and device of this tensor.
///
/// Examples:
///     >>> torch.tensor([1, 2]).new_empty(2, 3).shape
///     torch.Size([2, 3])
#[operator(method, unrecorded)]
pub fn new_empty(input: &Tensor, size: Sizes, #[keyword] options: TensorOptions) -> Result<Tensor> {
    new_of_shape(input, &size.0, options, None)
}

/// Return an uninitialized tensor with the given sizes and strides, and this tensor's data type and device.
///
/// Args:
///     size: shape of the result.
///     stride: step in memory between neighboring elements of each dimension, in elements.
///
/// Examples:
///     >>> torch.tensor([1, 2]).new_empty_strided((2, 3), (1, 2)).stride()
///     (1, 2)
#[operator(method, unrecorded)]
pub fn new_empty_strided(
    input: &Tensor,
    #[strict] size: Ints,
    #[strict] stride: Ints,
    #[keyword] options: TensorOptions,
) -> Result<Tensor> {
    empty_strided(size, stride, options.or_those_of(input))
}

/// Return a tensor filled with one value, with the data type and device of this tensor.
///
/// Args:
///     size: shape of the result.
///     fill_value: the value.
///
/// Examples:
///     >>> torch.tensor([1.5]).new_full((2,), 7)
///     tensor([7., 7.])
#[operator(method, unrecorded)]
pub fn new_full(
    input: &Tensor,
    #[strict] size: Ints,
    fill_value: Scalar,
    #[keyword] options: TensorOptions,
) -> Result<Tensor> {
    new_of_shape(input, &size, options, Some(fill_value))
}

/// Return an identity matrix: ones on the diagonal and zeros elsewhere.
///
/// Args:
///     n: number of rows.
///     m: number of columns; `n` if not given.
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.eye(2, 3)
///     tensor([[1., 0., 0.],
///             [0., 1., 0.]])
#[operator(function, overloads((0, 5), (1, 6)), out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::eye"
    )
)]
pub fn eye(n: i64, m: Option<i64>, options: TensorOptions) -> Result<Tensor> {
    for (name, size) in [("n", Some(n)), ("m", m)] {
        if let Some(size) = size.filter(|&s| s < 0) {
            return Err(Error::runtime(format!("{name} must be greater or equal to 0, got {size}")));
        }
    }
    let shape = dims_of(&[n, m.unwrap_or(n)])?;
    let out = filled(&shape, Scalar::Int(0), options.dtype(), options.device())?;
    fill(&out.with_layout(out.layout.diagonal(0, 0, 1)?), Scalar::Int(1))?;
    fresh_leaf(out, options.requires_grad)
}

/// Return a tensor without dimensions that holds one number.
///
/// Args:
///     s: the number.
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.scalar_tensor(3)
///     tensor(3.)
#[operator(function)]
pub fn scalar_tensor(s: Scalar, #[keyword] options: TensorOptions) -> Result<Tensor> {
    fill_leaf(options.body(&[])?, s, options)
}

/// Return the number of elements of a tensor.
///
/// Examples:
///     >>> torch.numel(torch.zeros(2, 3))
///     6
#[operator(function, unrecorded)]
pub fn numel(input: &Tensor) -> Result<i64> {
    Ok(input.numel() as i64)
}

/// Return the tensor detached from the graph: same memory, no gradient flows through it.
///
/// Examples:
///     >>> x = torch.ones(2, requires_grad=True)
///     >>> torch.detach(x).requires_grad
///     False
#[operator(function, unrecorded)]
pub fn detach(input: &Tensor) -> Result<Tensor> {
    Ok(detached::shallow(input))
}

/// Convert the tensor to the data type and device of another one.
///
/// Args:
///     other: the tensor whose data type and device are taken.
///
/// Examples:
///     >>> torch.tensor([1, 2]).type_as(torch.zeros(1))
///     tensor([1., 2.])
#[operator(method, sample = "view(lambda draw, shape: lambda x: x.type_as(x))")]
pub fn type_as(input: &Tensor, #[elsewhere] other: &Tensor) -> Result<Tensor> {
    let moved = to_device(input, other.device())?;
    to_dtype(&moved, other.dtype())
}

/// Return a copy of `length` slices along a dimension, from index `start` on; see `torch.narrow`.
///
/// Args:
///     start: index of the first slice.
///     length: number of slices.
///
/// Examples:
///     >>> torch.narrow_copy(torch.arange(6), 0, 2, 3)
///     tensor([2, 3, 4])
#[operator(
    function,
    method,
    out(silent),
    sample = "view(lambda draw, shape: lambda x: x.narrow_copy(0, 0, 1), 1)"
)]
pub fn narrow_copy(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    NarrowCopy::call(input, dim, start, length)
}
