//! The operators that create tensors from sizes and numbers.

use crate::base::{MemoryFormat, default_dtype};
use crate::operator::copies::{clone_dense, to_device, to_dtype};
use crate::operator::detached;
use crate::operator::kernel::{fill, filled};
use crate::operator::view_part::put_back;
use crate::operator::views::dims_of;
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

fn filled_with(body: Body, value: Scalar) -> Result<Body> {
    fill(&body, value)?;
    Ok(body)
}

fn filled_leaf(body: Body, value: Scalar, requires_grad: bool) -> Result<Tensor> {
    fresh_leaf(filled_with(body, value)?, requires_grad)
}

/// A tensor like `input`, with the same batch dimensions.
fn alike(
    input: &Tensor,
    requires_grad: bool,
    make: impl FnOnce(&Tensor, &Batch) -> Result<Body>,
) -> Result<Tensor> {
    let batch = Batch::of([input]);
    let made = fresh_leaf(make(input.physical(), &batch)?, requires_grad)?;
    Ok(batch.wrap(made))
}

/// A copy of `length` slices along `dim`.
#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl NarrowCopy {
    fn forward(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Body> {
        let body = input.body();
        crate::operator::kernel::duplicate(&body.with_layout(body.layout.narrow(dim, start, length)?))
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.narrow(dim, start, length))
    }
    fn batch(_: &Batch, input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        clone_dense(&slices::narrow(input, dim, start, length)?)
    }
}

/// A tensor of zeros.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::zeros"
    )
)]
pub fn zeros(
    size: Sizes,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let body = Body::new(
        &shape_of_zeros(&size.0)?,
        dtype.unwrap_or_else(default_dtype),
        device.unwrap_or(Device::Cpu),
    )?;
    filled_leaf(body, Scalar::Int(0), requires_grad)
}

/// A tensor of ones.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::ones"
    )
)]
pub fn ones(
    size: Sizes,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let body =
        Body::new(&dims_of(&size.0)?, dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu))?;
    filled_leaf(body, Scalar::Int(1), requires_grad)
}

/// An uninitialized tensor.
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
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&size.0)?;
    let mut body = Body::new(&shape, dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu))?;
    match memory_format {
        Some(MemoryFormat::Preserve) => return Err(Error::runtime("unsupported memory format Preserve")),
        Some(format) => body.layout = format.layout(&body.layout)?,
        None => {}
    }
    fresh_leaf(body, requires_grad)
}

/// An uninitialized tensor with these strides.
#[operator(function)]
pub fn empty_strided(
    #[strict] size: Ints,
    #[strict] stride: Ints,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
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
    let mut body = Body::new(&[reach], dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu))?;
    body.layout = Layout { shape, strides, offset: 0 };
    fresh_leaf(body, requires_grad)
}

/// A tensor filled with one number.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::full"
    )
)]
pub fn full(
    #[strict] size: Ints,
    fill_value: Scalar,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let dtype = dtype.unwrap_or_else(|| crate::operator::pointwise::scalar_dtype(fill_value));
    filled_leaf(Body::new(&dims_of(&size)?, dtype, device.unwrap_or(Device::Cpu))?, fill_value, requires_grad)
}

/// Zeros, like another tensor.
#[operator(function, unrecorded)]
pub fn zeros_like(
    input: &Tensor,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    alike(input, requires_grad, |x, _| {
        filled_with(empty_body_like(x, dtype, device, memory_format)?, Scalar::Int(0))
    })
}

/// Ones, like another tensor.
#[operator(function, unrecorded)]
pub fn ones_like(
    input: &Tensor,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    alike(input, requires_grad, |x, _| {
        filled_with(empty_body_like(x, dtype, device, memory_format)?, Scalar::Int(1))
    })
}

/// An uninitialized tensor like another.
#[operator(function, unrecorded)]
pub fn empty_like(
    input: &Tensor,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    alike(input, requires_grad, |x, _| empty_body_like(x, dtype, device, memory_format))
}

/// One number, like another tensor.
#[operator(function, unrecorded)]
pub fn full_like(
    input: &Tensor,
    fill_value: Scalar,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    alike(input, requires_grad, |x, _| {
        filled_with(empty_body_like(x, dtype, device, memory_format)?, fill_value)
    })
}

/// Zeros of this dtype and device.
#[operator(method, unrecorded)]
pub fn new_zeros(
    input: &Tensor,
    size: Sizes,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&size.0)?;
    alike(input, requires_grad, |x, batch| {
        filled_with(
            Body::new(&batch.shape(&shape), dtype.unwrap_or(x.dtype()), device.unwrap_or(x.device()))?,
            Scalar::Int(0),
        )
    })
}

/// Ones of this dtype and device.
#[operator(method, unrecorded)]
pub fn new_ones(
    input: &Tensor,
    size: Sizes,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&size.0)?;
    alike(input, requires_grad, |x, batch| {
        filled_with(
            Body::new(&batch.shape(&shape), dtype.unwrap_or(x.dtype()), device.unwrap_or(x.device()))?,
            Scalar::Int(1),
        )
    })
}

/// An uninitialized tensor of this dtype and device.
#[operator(method, unrecorded)]
pub fn new_empty(
    input: &Tensor,
    size: Sizes,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&size.0)?;
    alike(input, requires_grad, |x, batch| {
        Body::new(&batch.shape(&shape), dtype.unwrap_or(x.dtype()), device.unwrap_or(x.device()))
    })
}

/// `new_empty` with strides of one's choice.
#[operator(method, unrecorded)]
pub fn new_empty_strided(
    input: &Tensor,
    #[strict] size: Ints,
    #[strict] stride: Ints,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let (dtype, device) = (dtype.unwrap_or(input.dtype()), device.unwrap_or(input.device()));
    empty_strided(size, stride, Some(dtype), layout, Some(device), pin_memory, requires_grad)
}

/// One number in this dtype and on this device.
#[operator(method, unrecorded)]
pub fn new_full(
    input: &Tensor,
    #[strict] size: Ints,
    fill_value: Scalar,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&size)?;
    alike(input, requires_grad, |x, batch| {
        filled_with(
            Body::new(&batch.shape(&shape), dtype.unwrap_or(x.dtype()), device.unwrap_or(x.device()))?,
            fill_value,
        )
    })
}

/// A matrix with ones on its diagonal, zeros elsewhere.
#[operator(function, overloads((0, 5), (1, 6)), out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::eye"
    )
)]
pub fn eye(
    n: i64,
    m: Option<i64>,
    dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    for (name, size) in [("n", Some(n)), ("m", m)] {
        if let Some(size) = size.filter(|&s| s < 0) {
            return Err(Error::runtime(format!("{name} must be greater or equal to 0, got {size}")));
        }
    }
    let shape = dims_of(&[n, m.unwrap_or(n)])?;
    let out =
        filled(&shape, Scalar::Int(0), dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu))?;
    fill(&out.with_layout(out.layout.diagonal(0, 0, 1)?), Scalar::Int(1))?;
    fresh_leaf(out, requires_grad)
}

/// A tensor without dimensions that holds one number.
#[operator(function)]
pub fn scalar_tensor(
    s: Scalar,
    #[keyword] dtype: Option<DType>,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    filled_leaf(
        Body::new(&[], dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu))?,
        s,
        requires_grad,
    )
}

/// The number of elements.
#[operator(function, unrecorded)]
pub fn numel(input: &Tensor) -> Result<i64> {
    Ok(input.numel() as i64)
}

/// The values without their history.
#[operator(function, unrecorded)]
pub fn detach(input: &Tensor) -> Result<Tensor> {
    Ok(detached::shallow(input))
}

/// Converted to the dtype and device of `other`.
#[operator(method, sample = "view(lambda draw, shape: lambda x: x.type_as(x))")]
pub fn type_as(input: &Tensor, #[elsewhere] other: &Tensor) -> Result<Tensor> {
    let moved = to_device(input, other.device())?;
    to_dtype(&moved, other.dtype())
}

/// Copies of the elements between `start` and `start + length` along a dimension.
#[operator(
    function,
    method,
    out(silent),
    sample = "view(lambda draw, shape: lambda x: x.narrow_copy(0, 0, 1), 1)"
)]
pub fn narrow_copy(input: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    NarrowCopy::call(input, dim, start, length)
}
