//! The part of a tensor that kernels see: storage, layout and dtype, without the tensor's place in a graph.

use crate::base::{ConjNeg, DType, Device, Dims, Error, Fault, Layout, Result, SOME_KERNEL, Strided};
use crate::storage::{Storage, access};
use std::ops::Deref;
use std::sync::Arc;

#[derive(Clone)]
pub struct Body {
    pub storage: Storage,
    pub layout: Layout,
    pub dtype: DType,
    pub conj_neg: ConjNeg,
}

impl Body {
    /// A body without conj and neg bits.
    #[inline]
    pub fn plain(storage: Storage, layout: Layout, dtype: DType) -> Body {
        Body { storage, layout, dtype, conj_neg: ConjNeg::NONE }
    }

    /// A new, uninitialised, contiguous body.
    pub fn new(shape: &[usize], dtype: DType, device: Device) -> Result<Body> {
        let mut bytes = dtype.size();
        for &n in shape {
            bytes = match bytes.checked_mul(n) {
                Some(b) if b <= isize::MAX as usize => b,
                _ if shape.contains(&0) => 0,
                _ => {
                    return Err(Error::runtime(format!(
                        "Storage size calculation overflowed with sizes={shape:?}"
                    )));
                }
            };
        }
        Ok(Body::plain(Storage::new(bytes, device)?, Layout::contiguous(shape), dtype))
    }

    pub fn device(&self) -> Device {
        self.storage.device()
    }

    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The first byte of the elements in their storage, and one past the last.
    pub fn byte_range(&self) -> (usize, usize) {
        let size = self.dtype.size();
        (self.layout.offset * size, self.layout.end() * size)
    }

    /// The host memory, for a CPU kernel. Returns an error if the storage is on another device, or if the dtype is one
    /// that is only stored.
    #[inline]
    pub fn host(&self) -> Result<Strided<'_>> {
        if self.dtype.is_stored_only() {
            return Err(self.no_kernel());
        }
        self.host_of_any_dtype()
    }

    /// The host memory, for a kernel that converts elements of any dtype.
    pub fn host_of_any_dtype(&self) -> Result<Strided<'_>> {
        access::check()?;
        let base = self.storage.host().ok_or_else(|| self.out_of_reach("host"))?;
        self.check_plain()?;
        Ok(Strided {
            ptr: base.wrapping_add(self.layout.offset * self.dtype.size()),
            dtype: self.dtype,
            shape: &self.layout.shape,
            strides: &self.layout.strides,
        })
    }

    /// The GPU memory, for a shader.
    #[cfg(feature = "gpu")]
    pub fn gpu(&self) -> Result<crate::gpu::View<'_>> {
        access::check()?;
        let buffer = self.storage.gpu().ok_or_else(|| self.out_of_reach("GPU"))?;
        self.check_plain()?;
        if self.dtype.is_stored_only() {
            return Err(Fault::NoShader { op: SOME_KERNEL, dtype: self.dtype }.into());
        }
        if self.dtype.is_complex() {
            return Err(Fault::NoShader { op: "complex arithmetic", dtype: self.dtype }.into());
        }
        Ok(crate::gpu::View {
            buffer,
            dtype: self.dtype,
            shape: &self.layout.shape,
            strides: &self.layout.strides,
            offset: self.layout.offset,
        })
    }

    #[inline]
    pub fn check_plain(&self) -> Result<()> {
        if self.conj_neg.is_none() { Ok(()) } else { Err(Fault::ConjNeg.into()) }
    }

    #[cold]
    fn no_kernel(&self) -> Error {
        Fault::NoKernel { op: SOME_KERNEL, dtype: self.dtype }.into()
    }

    /// This body, with elements that are only stored seen as integers of their size, for kernels that move elements
    /// without reading them.
    pub fn as_bits(&self) -> Body {
        Body { dtype: self.dtype.bits(), ..self.clone() }
    }

    /// The result of a kernel that moves elements without reading them.
    pub fn moved(&self, by: impl FnOnce(&Body) -> Result<Body>) -> Result<Body> {
        if self.dtype.is_stored_only() {
            return by(&self.as_bits()).map(|out| Body { dtype: self.dtype, ..out });
        }
        by(self)
    }

    /// This body without its conj and neg bits.
    pub fn bare(&self) -> Body {
        Body { conj_neg: ConjNeg::NONE, ..self.clone() }
    }

    #[cold]
    fn out_of_reach(&self, place: &str) -> Error {
        if self.storage.is_nowhere() {
            return Error::not_implemented("vmap: an operator that was called here has no batching rule");
        }
        if self.device().is_meta() {
            return Error::not_implemented("Cannot copy out of meta tensor; no data!");
        }
        Error::runtime(format!("the tensor is not in {place} memory"))
    }

    /// The same storage under another layout.
    pub fn with_layout(&self, layout: Layout) -> Body {
        Body { storage: self.storage.clone(), layout, dtype: self.dtype, conj_neg: self.conj_neg }
    }

    /// The real and imaginary parts of a complex body, along a new last dimension.
    pub fn as_parts(&self) -> Body {
        let (layout, dtype) = (self.layout.as_parts(), self.dtype.to_real());
        Body { storage: self.storage.clone(), layout, dtype, conj_neg: self.conj_neg }
    }

    pub fn meta(&self) -> Meta {
        Meta { shape: Dims::from_slice(&self.layout.shape), dtype: self.dtype, device: self.storage.device() }
    }
}

/// The properties of an output that the engine checks its gradient against.
#[derive(Clone)]
pub struct Meta {
    pub shape: Dims,
    pub dtype: DType,
    pub device: Device,
}

impl Meta {
    /// True if `body` has the same dtype and device; the shape may differ.
    pub fn is_kind_of(&self, body: &Body) -> bool {
        self.dtype == body.dtype && self.device == body.device()
    }
}

/// The body of a tensor: borrowed, unless it was replaced after the tensor was made.
pub enum BodyRef<'a> {
    Original(&'a Body),
    Replaced(Arc<Body>),
}

impl Deref for BodyRef<'_> {
    type Target = Body;
    fn deref(&self) -> &Body {
        match self {
            BodyRef::Original(body) => body,
            BodyRef::Replaced(body) => body,
        }
    }
}
