//! Concatenation: the kernel on bodies, and `stack`.

use crate::base::{Device, Dims, MemoryFormat, Result, try_alloc, wrap_dim};
use crate::operator::batch::Batch;
use crate::operator::bodies::{copy, place_of};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::view_part::Select;
use crate::storage::access;
use crate::tensor::{Body, Meta, Tensor};
use gradiron_macros::primitive;

/// Concatenates the parts along `dim` into a new body. With `formats`, it has the memory format that all
/// parts share.
pub fn join(shape: Dims, dim: usize, parts: &[Body], lengths: &[usize], formats: bool) -> Result<Body> {
    place_of(&parts.iter().collect::<Vec<_>>())?;
    let dtype = parts.iter().try_fold(parts[0].dtype, |a, part| a.promoted_with(part.dtype))?;
    let device = parts.iter().fold(parts[0].device(), |device, part| device.joined(part.device()));
    let mut out = Body::new(&shape, dtype, device)?;
    let format = MemoryFormat::suggested(&parts[0].layout);
    if formats
        && format != MemoryFormat::Contiguous
        && parts.iter().all(|p| MemoryFormat::suggested(&p.layout) == format)
    {
        out.layout = format.layout(&out.layout)?;
    }
    let mut start = 0;
    for (part, &length) in parts.iter().zip(lengths) {
        let place = out.layout.slice(dim as i64, Some(start), Some(start + length as i64), 1)?;
        if length > 0 {
            copy(&out.with_layout(place), part)?;
        }
        start += length as i64;
    }
    Ok(out)
}

/// A faster path for many small contiguous parts, which copies runs of bytes. Returns `None` if it does not
/// apply.
pub fn join_small(shape: &[usize], dim: usize, tensors: &[Tensor]) -> Result<Option<Body>> {
    /// Below this length of a run, and above that of a part, in bytes, the general path is as fast.
    const RUN: usize = 64;
    const PART: usize = 1 << 16;
    let (outer, total) = (shape[..dim].iter().product::<usize>(), shape.iter().product::<usize>());
    let dtype = tensors[0].dtype();
    let part = total / tensors.len() * dtype.size();
    if access::is_captured() || total == 0 || part > PART || outer > 1 && part / outer < RUN {
        return Ok(None);
    }
    let bodies = try_alloc::collect(tensors.iter().map(|t| Ok(t.body())))?;
    let as_it_lies = |b: &Body| {
        b.dtype == dtype
            && b.device().is_cpu()
            && b.conj_neg.is_none()
            && b.layout.is_contiguous()
            && MemoryFormat::suggested(&b.layout) == MemoryFormat::Contiguous
    };
    if !bodies.iter().all(|b| as_it_lies(b)) {
        return Ok(None);
    }
    let out = Body::new(shape, dtype, Device::Cpu)?;
    let runs = try_alloc::collect(bodies.iter().map(|b| {
        let part = b.host_of_any_dtype()?;
        Ok((part.ptr.cast_const(), part.numel() / outer * dtype.size()))
    }))?;
    // SAFETY: the parts are as long as all their runs, which together are the new tensor.
    unsafe { crate::cpu::cast::join(out.host_of_any_dtype()?.ptr, outer, &runs) };
    Ok(Some(out))
}

/// Stacks the tensors along a new dimension.
#[primitive(tangent = linear)]
impl Stack {
    fn forward(tensors: &[Tensor], dim: i64) -> Result<Body> {
        let mut shape = tensors[0].shape();
        let at = wrap_dim(dim, shape.len() + 1)?;
        shape.insert(at, tensors.len());
        if let Some(joined) = join_small(&shape, at, tensors)? {
            return Ok(joined);
        }
        let raised = |t: &Tensor| -> Result<Body> {
            let body = t.body();
            Ok(body.with_layout(body.layout.unsqueeze(at as i64)?))
        };
        let parts = try_alloc::collect(tensors.iter().map(raised))?;
        join(shape, at, &parts, &try_alloc::filled(1, tensors.len())?, false)
    }
    fn d_tensors(
        g: &Tensor,
        at: Vec<Option<Meta>>,
        wants: Vec<bool>,
        dim: i64,
    ) -> Result<Vec<Option<Tensor>>> {
        let part = |(i, at): (usize, Option<Meta>)| -> Result<Option<Tensor>> {
            let Some(at) = at.filter(|_| wants[i]) else { return Ok(None) };
            to_dtype(&Select::call(g, dim, i as i64)?, at.dtype).map(Some)
        };
        at.into_iter().enumerate().map(part).collect()
    }
    fn batch(b: &Batch, tensors: &[Tensor], dim: i64) -> Result<Tensor> {
        let full = tensors.iter().map(|t| b.full(t)).collect::<Result<Vec<_>>>()?;
        Stack::call(&full, b.dim(dim, tensors[0].ndim() + 1)?).map(|t| b.wrap(t))
    }
}
