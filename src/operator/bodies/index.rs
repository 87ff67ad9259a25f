//! Kernels with index tensors, on bodies: they read elements at indices, or put or add them there.

use crate::base::{DType, Error, Fault, IndexBy, Layout, Put, Result, Scalar};
use crate::capture::{Recorder, Retain, See, retain_copy};
#[cfg(feature = "gpu")]
use crate::operator::bodies::part_by_part;
use crate::operator::bodies::{arange, duplicate, fork};
use crate::tensor::Body;

/// An index tensor, and the dimension of the source that it indexes.
#[derive(Clone, Copy)]
pub struct By<'a> {
    pub index: &'a Body,
    pub size: usize,
    pub stride: usize,
    pub dim: usize,
}

/// Returns an error unless the indices are on the same device as `body`.
fn same_place(body: &Body, by: &[By]) -> Result<()> {
    match by.iter().find(|b| b.index.device() != body.device()) {
        Some(other) => Err(Fault::Devices { a: body.device(), b: other.index.device() }.into()),
        None => Ok(()),
    }
}

fn on_host<'a>(by: &[By<'a>]) -> Result<Vec<IndexBy<'a>>> {
    by.iter()
        .map(|b| Ok(IndexBy { index: b.index.host()?, size: b.size, stride: b.stride, dim: b.dim }))
        .collect()
}

/// Index tensors for the real or imaginary parts of complex numbers: strides count single parts.
#[cfg(feature = "gpu")]
fn indices_of_parts<'a>(by: &[By<'a>]) -> Vec<By<'a>> {
    by.iter().map(|b| By { stride: b.stride * 2, ..*b }).collect()
}

#[cfg(feature = "gpu")]
fn on_gpu<'a>(by: &[By<'a>]) -> Result<Vec<crate::gpu::IndexBy<'a>>> {
    // Checked here, because the GPU's own check is reported later.
    if by.iter().any(|b| b.size == 0) {
        return Err(Fault::Beyond { index: None, size: 0, along: false }.into());
    }
    let there = |b: &By<'a>| {
        Ok(crate::gpu::IndexBy { index: b.index.gpu()?, size: b.size, stride: b.stride, dim: b.dim })
    };
    by.iter().map(there).collect()
}

/// A kept [`By`].
pub struct KeptBy {
    index: Body,
    by: (usize, usize, usize),
}

impl Retain for [By<'_>] {
    type Retained = Vec<KeptBy>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Vec<KeptBy>> {
        let keep = |b: &By| Ok(KeptBy { index: recorder.stand_in(b.index)?, by: (b.size, b.stride, b.dim) });
        self.iter().map(keep).collect()
    }
}

impl KeptBy {
    fn see(&self) -> By<'_> {
        let (size, stride, dim) = self.by;
        By { index: &self.index, size, stride, dim }
    }
}

impl See for Vec<KeptBy> {
    type Seen<'a> = Vec<By<'a>>;
    fn see(&self) -> Vec<By<'_>> {
        self.iter().map(KeptBy::see).collect()
    }
}

retain_copy!(Bounds, Put);

/// The error for an out-of-bounds index, and whether negative ones count from the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// For indexing: negative indices count from the end, and an index out of bounds is an IndexError.
    Wrapped,
    /// An IndexError; negative indices are out of bounds.
    Strict,
    /// A RuntimeError, as `gather` and `scatter` raise.
    OfElements,
}

/// Describes a launch from this module, for its error.
#[cfg(feature = "gpu")]
fn origin(op: &'static str, bounds: Bounds) -> crate::gpu::Origin {
    let wrong =
        if bounds == Bounds::OfElements { crate::gpu::Wrong::Element } else { crate::gpu::Wrong::Index };
    crate::gpu::Origin { op, line: crate::tensor::anomaly::line(), wrong }
}

/// `out[i] = src[regular strides + index * stride]`. `src` has the shape of `out`, with stride 0 in indexed
/// dimensions. `op` is named in errors.
#[cfg_attr(not(feature = "gpu"), allow(clippy::only_used_in_recursion, reason = "the GPU's error names it"))]
#[allow(clippy::needless_borrow, reason = "in a capture `by` is a list of its own")]
pub fn get(op: &'static str, out: &Body, src: &Body, by: &[By], bounds: Bounds) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if !src.conj_neg.is_none() {
        get(op, out, &src.bare(), by, bounds)?;
        return crate::operator::bodies::conj_neg::finish(out, src.conj_neg);
    }
    same_dtype(out, src)?;
    if src.dtype.is_stored_only() {
        return get(op, &out.as_bits(), &src.as_bits(), by, bounds);
    }
    same_place(out, by)?;
    fork!(over [out, src], with [by, bounds, op],
    cpu: {
        let by = on_host(&by)?;
        crate::cpu::index::get(out.host()?, src.host()?, &by, bounds == Bounds::Wrapped)
    },
    gpu: {
        let by = if src.dtype.is_complex() { indices_of_parts(&by) } else { by.to_vec() };
        part_by_part(out, src, |out, src| crate::gpu::index_get(origin(op, bounds), out.gpu()?, src.gpu()?, &on_gpu(&by)?, bounds == Bounds::Wrapped))
    })
}

/// `dst[regular strides + index * stride] = src[i]`, or adds, multiplies and so on.
#[cfg_attr(not(feature = "gpu"), allow(clippy::only_used_in_recursion, reason = "the GPU's error names it"))]
#[allow(clippy::needless_borrow, reason = "in a capture `by` is a list of its own")]
pub fn put(op: &'static str, dst: &Body, src: &Body, by: &[By], mode: Put, bounds: Bounds) -> Result<()> {
    if src.numel() == 0 {
        return Ok(());
    }
    same_dtype(dst, src)?;
    // Sums and products of unsigned integers have the bits of those of signed ones.
    let wraps = matches!(mode, Put::Add | Put::Mul) && dst.dtype.is_wide_unsigned();
    if dst.dtype.is_stored_only() && (mode == Put::Assign || wraps) && dst.conj_neg == src.conj_neg {
        return put(op, &dst.bare().as_bits(), &src.bare().as_bits(), by, mode, bounds);
    }
    // The source is converted to the conj and neg bits of the target.
    if matches!(mode, Put::Assign | Put::Add) && dst.conj_neg != src.conj_neg {
        let resolved = duplicate(src)?;
        crate::operator::bodies::conj_neg::finish(&resolved, dst.conj_neg)?;
        return put(op, &dst.bare(), &resolved, by, mode, bounds);
    } else if matches!(mode, Put::Assign | Put::Add) && !dst.conj_neg.is_none() {
        return put(op, &dst.bare(), &src.bare(), by, mode, bounds);
    }
    same_place(dst, by)?;
    fork!(over [dst, src], with [by, mode, bounds, op],
    cpu: {
        let by = on_host(&by)?;
        crate::cpu::index::put(dst.host()?, src.host()?, &by, mode, bounds == Bounds::Wrapped)
    },
    gpu: {
        if dst.dtype.is_complex() && !matches!(mode, Put::Assign | Put::Add) {
            return crate::operator::bodies::no_shader(op, dst.dtype);
        }
        let by = if dst.dtype.is_complex() { indices_of_parts(&by) } else { by.to_vec() };
        part_by_part(dst, src, |dst, src| crate::gpu::index_put(origin(op, bounds), dst.gpu()?, src.gpu()?, &on_gpu(&by)?, mode, bounds == Bounds::Wrapped))
    })
}

/// Returns an error if the dtypes differ, because the kernels do not convert.
pub fn same_dtype(dst: &Body, src: &Body) -> Result<()> {
    if dst.dtype == src.dtype {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        dst.dtype.scalar_name(),
        src.dtype.scalar_name()
    )))
}

/// Adds `values` to `out` at the positions of a layout over it, which may coincide.
pub fn add_at(out: &Body, place: &Layout, values: &Body) -> Result<()> {
    let size = out.layout.numel();
    // The position of each value: the numbers 0, 1, … of `out` read through the layout.
    let index = duplicate(
        &arange(Scalar::Int(0), Scalar::Int(1), size, DType::I64, out.device())?.with_layout(place.clone()),
    )?;
    let everywhere = Layout {
        shape: place.shape.clone(),
        strides: smallvec::smallvec![0; place.ndim()],
        offset: out.layout.offset,
    };
    put(
        "embed",
        &out.with_layout(everywhere),
        values,
        &[By { index: &index, size, stride: 1, dim: 0 }],
        Put::Add,
        Bounds::Strict,
    )
}
