//! `.grad`s that change while a thread captures kernels that also run, so that replays change them, too.

use crate::base::{DType, Device, Layout};
use crate::storage::{WeakStorage, access};
use crate::tensor::{Tensor, WeakTensor};
use std::cell::RefCell;
use std::collections::HashMap;

/// How a leaf's `.grad` first changed.
pub struct GradChange {
    pub leaf: WeakTensor,
    /// What it was before.
    pub former: Option<FormerGrad>,
    /// True if it was replaced whatever it was; false if a gradient was added to it.
    pub is_replaced: bool,
}

/// A leaf's `.grad` before it first changed. It is not held, because operators ask whether others hold it.
pub struct FormerGrad {
    tensor: usize,
    pub storage: WeakStorage,
    pub layout: Layout,
    pub dtype: DType,
    pub device: Device,
}

impl FormerGrad {
    fn new(grad: &Tensor) -> FormerGrad {
        let body = grad.body();
        FormerGrad {
            tensor: grad.id(),
            storage: body.storage.downgrade(),
            layout: body.layout.clone(),
            dtype: body.dtype,
            device: body.device(),
        }
    }

    /// True if `grad` is this tensor.
    pub fn is(&self, grad: &Tensor) -> bool {
        self.tensor == grad.id() && self.storage.is(&grad.body().storage)
    }
}

/// The changes of `.grad`s, by the ids of their leaves.
pub type GradChanges = HashMap<usize, GradChange>;

thread_local! {
    static CHANGES: RefCell<Option<GradChanges>> = const { RefCell::new(None) };
}

/// Begins to note this thread's changes.
pub fn begin() {
    CHANGES.set(Some(GradChanges::default()));
}

/// Ends the notes, and returns them.
pub fn end() -> GradChanges {
    CHANGES.take().unwrap_or_default()
}

/// True if this thread added to a `.grad` that was there before.
pub fn has_sums() -> bool {
    let is_sum = |change: &GradChange| !change.is_replaced && change.former.is_some();
    CHANGES.with_borrow(|changes| changes.as_ref().is_some_and(|changes| changes.values().any(is_sum)))
}

/// Notes that a leaf's `.grad`, which is `old` until now, changes.
#[inline]
pub(super) fn note(leaf: &Tensor, old: Option<&Tensor>, is_replaced: bool) {
    if access::captures() {
        note_here(leaf, old, is_replaced);
    }
}

#[cold]
fn note_here(leaf: &Tensor, old: Option<&Tensor>, is_replaced: bool) {
    CHANGES.with_borrow_mut(|changes| {
        if let Some(changes) = changes {
            let first =
                || GradChange { leaf: leaf.downgrade(), former: old.map(FormerGrad::new), is_replaced };
            changes.entry(leaf.id()).or_insert_with(first);
        }
    });
}
