//! A leaf whose tensor is gone. Its node keeps the `.grad`, to which the next backward adds, and makes a new
//! tensor if one is needed.

use crate::tensor::{Inner, Kind, Leaf, NodeRef, REQUIRES, Tensor, WeakTensor, lock};
use std::sync::atomic::Ordering;

impl Leaf {
    /// The leaf's tensor or its successor; `None` if both are gone.
    #[inline]
    pub fn tensor(&self) -> Option<Tensor> {
        self.tensor.upgrade().or_else(|| self.successor())
    }

    #[cold]
    fn successor(&self) -> Option<Tensor> {
        lock(&self.orphan).successor.as_ref()?.upgrade()
    }

    /// The leaf's tensor; a new one is made if it is gone. `node` is the leaf's node.
    #[inline]
    pub fn tensor_again(&self, node: &NodeRef) -> Tensor {
        self.tensor.upgrade().unwrap_or_else(|| self.make_successor(node))
    }

    #[cold]
    fn make_successor(&self, node: &NodeRef) -> Tensor {
        let body = self.body();
        let mut orphan = lock(&self.orphan);
        if let Some(successor) = orphan.successor.as_ref().and_then(WeakTensor::upgrade) {
            return successor;
        }
        let successor = Tensor::with_flags(body, None, if orphan.frozen { 0 } else { REQUIRES }, None);
        let extra = successor.extra();
        // A tensor that was made just now has no node yet.
        let _ = extra.leaf.set(node.clone());
        extra.grad_type.set(self.grad_type());
        *lock(&extra.grad) = orphan.grad.take();
        orphan.successor = Some(successor.downgrade());
        successor
    }

    /// The gradient kept here, for the garbage collector, which must not wait for a lock.
    pub fn orphan_grad(&self) -> Option<Tensor> {
        self.orphan.try_lock().ok()?.grad.clone()
    }

    /// True if the tensor at this address is the leaf's tensor or its successor.
    fn is_of(&self, address: usize) -> bool {
        self.tensor.address() == address
            || lock(&self.orphan).successor.as_ref().is_some_and(|tensor| tensor.address() == address)
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if self.extra.get().is_some() {
            self.leave_grad();
        }
    }
}

impl Inner {
    /// Moves the `.grad` of a tensor that is being dropped to its leaf's node.
    #[cold]
    fn leave_grad(&mut self) {
        let address = std::ptr::from_ref(self).cast::<()>() as usize;
        let Some(extra) = self.extra.get() else { return };
        let Some(node) = extra.leaf_node() else { return };
        let Kind::Leaf(leaf) = &node.kind else { return };
        let grad = lock(&extra.grad).take().filter(|grad| !grad.has_graph());
        let frozen = self.flags.load(Ordering::Acquire) & REQUIRES == 0;
        if (grad.is_some() || frozen) && leaf.is_of(address) {
            let mut orphan = lock(&leaf.orphan);
            orphan.frozen = frozen;
            let old = std::mem::replace(&mut orphan.grad, grad);
            drop(orphan);
            drop(old);
        }
    }
}
