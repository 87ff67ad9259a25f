//! Internal functions that copy and convert tensors.

use crate::base::MemoryFormat;
use crate::base::format::refused;
use crate::operator::bodies::copy;
use crate::operator::primitives::copies::{convert, to_device, to_dtype};
use crate::ops::prelude::*;

fn copy_in(body: &Body, dtype: DType, format: MemoryFormat) -> Result<Body> {
    let layout = format.layout(&body.layout)?;
    let out = Body { layout, ..Body::new(body.shape(), dtype, body.device())? };
    copy(&out, body)?;
    Ok(out)
}

#[primitive(node = "CloneBackward0", tangent = linear, batch = none)]
impl CloneIn {
    fn forward(input: &Tensor, format: MemoryFormat) -> Result<Body> {
        let body = input.body();
        copy_in(&body, body.dtype, format)
    }
    fn d_input(g: Tensor) -> Tensor {
        g
    }
}

/// A conversion to a dtype and a memory format.
#[primitive(node = "ToCopyBackward0", tangent = linear, batch = none)]
impl ConvertIn {
    fn forward(input: &Tensor, dtype: DType, format: MemoryFormat) -> Result<Body> {
        copy_in(&input.body(), dtype, format)
    }
    fn d_input(g: V, at: Meta) -> V {
        g.cast(at.dtype)
    }
}

/// Rejects the channels-last format for batched tensors, whose examples have no memory format of their own.
fn check_format(t: &Tensor, format: MemoryFormat) -> Result<()> {
    match format {
        MemoryFormat::ChannelsLast(ndim) if t.is_batched() => Err(refused(ndim)),
        _ => Ok(()),
    }
}

/// A copy in a memory format.
pub fn clone_in(t: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    check_format(t, format)?;
    CloneIn::call(t, format)
}

/// Converts to a dtype and a memory format. Returns the tensor itself if it has both, unless `copy` is set.
pub fn converted(t: &Tensor, dtype: DType, format: Option<MemoryFormat>, copy: bool) -> Result<Tensor> {
    let format = format.filter(|&f| f != MemoryFormat::Preserve);
    let fits = |f| t.is_batched() || MemoryFormat::suggested(&t.body().layout) == f;
    match format {
        Some(f @ MemoryFormat::ChannelsLast(_)) => {
            check_format(t, f)?;
            if !copy && t.dtype() == dtype && fits(f) { Ok(t.clone()) } else { ConvertIn::call(t, dtype, f) }
        }
        Some(f) if !t.is_batched() && (t.dtype() != dtype || copy || !fits(f)) => {
            ConvertIn::call(t, dtype, f)
        }
        _ if copy => convert(t, dtype),
        _ => to_dtype(t, dtype),
    }
}

/// `t` in another floating point dtype, but with the edge of `t` itself, for operators that convert internally. The backward
/// engine converts the gradient back.
pub fn read_as(t: &Tensor, dtype: DType) -> Result<Tensor> {
    let both_float = t.dtype().is_float() && dtype.is_float();
    if t.dtype() == dtype || !both_float || t.is_special() || !crate::tensor::any_requires_grad([t]) {
        return to_dtype(t, dtype);
    }
    t.check_view()?;
    let edge =
        t.edge().filter(|e| e.node.outputs.get(e.output as usize).is_some_and(|m| m.shape == t.shape()));
    let Some(edge) = edge else { return to_dtype(t, dtype) };
    let converted = crate::tensor::mode::with_grad(false, || to_dtype(t, dtype))?;
    let body = converted.body().clone();
    Ok(Tensor::made_by(body, Some(edge)))
}

/// Moves a value that is written into `target` to its device, if it is a 0-d tensor on the CPU.
pub fn on_device_of(value: &Tensor, target: &Tensor) -> Result<Tensor> {
    let (here, there) = (value.device(), target.device());
    if here == there {
        return Ok(value.clone());
    }
    if value.ndim() == 0 && here.is_cpu() {
        return to_device(value, there);
    }
    Err(Fault::Devices { a: there, b: here }.into())
}
