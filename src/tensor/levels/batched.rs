//! A batched tensor: one example as the function under `vmap` sees it. All examples of all active levels lie
//! in one physical tensor, with the batch dimensions in front; the graph and forward mode know only the
//! physical tensor.

use crate::base::{Dims, Layout};
use crate::storage::Storage;
use crate::tensor::{BATCHED, Batched, Body, Levels, REPLACED, Tensor};
use std::sync::atomic::Ordering;

impl Tensor {
    /// The batched tensor of `value`, whose first dimensions belong to `levels` (ascending).
    pub fn batched(value: Tensor, levels: Levels) -> Tensor {
        Tensor::batched_at(value, levels, 0, None)
    }

    /// The batched tensor of `value`, where dimension `place` of `given` became the innermost batch
    /// dimension.
    pub fn batched_at(value: Tensor, levels: Levels, place: usize, given: Option<Tensor>) -> Tensor {
        if levels.is_empty() {
            return value;
        }
        let example = Tensor::new(example_body(&value, levels.len()));
        let _ = example.extra().batched.set(Batched { value, levels, place, given });
        example.0.flags.fetch_or(BATCHED | REPLACED, Ordering::AcqRel);
        example
    }

    #[inline]
    pub fn is_batched(&self) -> bool {
        self.flags() & BATCHED != 0
    }

    pub fn as_batched(&self) -> Option<&Batched> {
        if self.is_batched() { self.0.extra.get().and_then(|extra| extra.batched.get()) } else { None }
    }

    /// The tensor that is in the graph.
    pub fn physical(&self) -> &Tensor {
        self.as_batched().map_or(self, |b| &b.value)
    }

    /// Updates the shape after the layout of the physical tensor was changed in place.
    pub fn refresh_batched(&self) {
        if let Some(batched) = self.as_batched() {
            self.set_body(example_body(&batched.value, batched.levels.len()));
        }
    }
}

/// The layout without the batch dimensions. The body has no memory: reading it is an error.
fn example_body(value: &Tensor, lead: usize) -> Body {
    let body = value.body();
    let part = |dims: &Dims| Dims::from_slice(&dims[lead..]);
    let Layout { shape, strides, offset } = &body.layout;
    let layout = Layout { shape: part(shape), strides: part(strides), offset: *offset };
    Body { storage: Storage::nowhere(body.device()), layout, dtype: body.dtype, conj_neg: body.conj_neg }
}

#[cold]
pub(in crate::tensor) fn item_error() -> crate::base::Error {
    crate::base::Error::runtime(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, \
         please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch \
         internals, please file a bug report.",
    )
}
