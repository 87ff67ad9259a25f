//! What a leaf leaves behind that nobody holds any more but its end of the graph: its `.grad`, to which the next backward
//! adds. A gradient with a history is no part of it: it could lead to the very graph that would keep it.

use crate::tensor::{Inner, Kind, Leaf, NodeRef, REQUIRES, Tensor, WeakTensor, lock};
use std::sync::atomic::Ordering;

#[derive(Default)]
pub struct Estate {
    grad: Option<Tensor>,
    /// Whether the tensor had ceased to want gradients.
    unwilling: bool,
    /// Who stands for the tensor now.
    heir: Option<WeakTensor>,
}

impl Leaf {
    /// The tensor whose end this is, or who stands for it; nothing while nobody does.
    #[inline]
    pub fn tensor(&self) -> Option<Tensor> {
        self.tensor.upgrade().or_else(|| self.heir())
    }

    #[cold]
    fn heir(&self) -> Option<Tensor> {
        lock(&self.estate).heir.as_ref()?.upgrade()
    }

    /// The tensor whose end `node` is; another one like it, where that is gone.
    #[inline]
    pub fn tensor_again(&self, node: &NodeRef) -> Tensor {
        self.tensor.upgrade().unwrap_or_else(|| self.revive(node))
    }

    #[cold]
    fn revive(&self, node: &NodeRef) -> Tensor {
        let body = self.body();
        let mut estate = lock(&self.estate);
        if let Some(heir) = estate.heir.as_ref().and_then(WeakTensor::upgrade) {
            return heir;
        }
        let heir = Tensor::showing(body, None, if estate.unwilling { 0 } else { REQUIRES }, None);
        // A new tensor has neither.
        let extra = heir.extra();
        let _ = extra.leaf.set(node.clone());
        extra.grad_type.set(self.grad_type());
        *lock(&extra.grad) = estate.grad.take();
        estate.heir = Some(heir.downgrade());
        heir
    }

    /// The gradient that a tensor left here, for the collector: without waiting for a lock.
    pub fn left_grad(&self) -> Option<Tensor> {
        self.estate.try_lock().ok()?.grad.clone()
    }

    /// Whether the tensor at this address is the leaf, or stands for it.
    fn is_of(&self, address: usize) -> bool {
        self.tensor.address() == address
            || lock(&self.estate).heir.as_ref().is_some_and(|heir| heir.address() == address)
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if self.extra.get().is_some() {
            self.bequeath();
        }
    }
}

impl Inner {
    #[cold]
    fn bequeath(&mut self) {
        let address = std::ptr::from_ref(self).cast::<()>() as usize;
        let Some(extra) = self.extra.get() else { return };
        let Some(node) = extra.leaf_end() else { return };
        let Kind::Leaf(leaf) = &node.kind else { return };
        let grad = lock(&extra.grad).take().filter(|grad| !grad.requires_grad());
        let unwilling = self.flags.load(Ordering::Acquire) & REQUIRES == 0;
        if (grad.is_some() || unwilling) && leaf.is_of(address) {
            let mut estate = lock(&leaf.estate);
            estate.unwilling = unwilling;
            let old = std::mem::replace(&mut estate.grad, grad);
            drop(estate);
            drop(old);
        }
    }
}
