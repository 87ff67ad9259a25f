//! What happens to tensors, besides kernels, while a thread captures kernels that also run: `.grad`s that are set, and
//! tensors that get another memory, shape or place in the graph. A replay repeats the former, and cannot repeat the
//! latter on a tensor that is older than the capture.

use crate::base::{DType, Layout};
use crate::storage::{WeakStorage, access, epoch};
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
}

impl FormerGrad {
    fn new(grad: &Tensor) -> FormerGrad {
        let body = grad.body();
        FormerGrad {
            tensor: grad.id(),
            storage: body.storage.downgrade(),
            layout: body.layout.clone(),
            dtype: body.dtype,
        }
    }

    /// True if `grad` is this tensor.
    pub fn is(&self, grad: &Tensor) -> bool {
        self.tensor == grad.id() && self.storage.is(&grad.body().storage)
    }
}

/// The changes of tensors, by their ids. The id of a tensor that has gone may be that of a newer one, but not of a tensor
/// that is older than the capture and still lives.
#[derive(Default)]
pub struct Changes {
    pub grads: HashMap<usize, GradChange>,
    pub others: HashMap<usize, &'static str>,
}

thread_local! {
    static CHANGES: RefCell<Option<Changes>> = const { RefCell::new(None) };
}

/// Begins to note this thread's changes.
pub fn begin() {
    CHANGES.set(Some(Changes::default()));
}

/// Ends the notes, and returns them.
pub fn end() -> Changes {
    CHANGES.take().unwrap_or_default()
}

/// Notes that a leaf's `.grad`, which is `old` until now, changes.
#[inline]
pub(super) fn note_grad(leaf: &Tensor, old: Option<&Tensor>, is_replaced: bool) {
    if access::captures() {
        note_grad_here(leaf, old, is_replaced);
    }
}

#[cold]
fn note_grad_here(leaf: &Tensor, old: Option<&Tensor>, is_replaced: bool) {
    CHANGES.with_borrow_mut(|changes| {
        if let Some(changes) = changes {
            let first =
                || GradChange { leaf: leaf.downgrade(), former: old.map(FormerGrad::new), is_replaced };
            changes.grads.entry(leaf.id()).or_insert_with(first);
        }
    });
}

/// Notes another change that a tensor has just gone through: `what` follows "a tensor that is older than the call".
#[inline]
pub(super) fn note(tensor: &Tensor, what: &'static str) {
    epoch::next();
    if access::captures() {
        note_here(tensor, what);
    }
}

#[cold]
fn note_here(tensor: &Tensor, what: &'static str) {
    CHANGES.with_borrow_mut(|changes| {
        if let Some(changes) = changes {
            changes.others.entry(tensor.id()).or_insert(what);
        }
    });
}
