//! A tensor's `.grad`. It lies under a lock, because several backwards may add to one leaf. A sum made under
//! that lock may need the interpreter (for pack hooks or source lines), so a thread that holds the
//! interpreter must not wait for the lock: if [`Tensor::try_grad`] fails, it must release the interpreter
//! first.

use crate::base::{DType, Result};
use crate::tensor::leaf::grad_type::GradType;
use crate::tensor::leaf::{grad_changes, grad_epoch};
use crate::tensor::{Body, Kind, Tensor, lock};
use std::sync::TryLockError;

impl Tensor {
    /// The dtype that gradients of this tensor must have; `None` if any dtype is allowed.
    pub fn grad_dtype(&self) -> Option<DType> {
        if let Some(edge) = self.history() {
            let node = &edge.node;
            let any = matches!(&node.kind, Kind::Custom(custom) if custom.takes_any(edge.output as usize));
            return (!any).then(|| node.outputs[edge.output as usize].dtype);
        }
        match self.physical().0.extra.get().map_or(GradType::Own, |extra| extra.grad_type.get()) {
            GradType::Own => Some(self.dtype()),
            GradType::Any => None,
            GradType::Other(dtype) => Some(dtype),
        }
    }

    /// Sets the dtype for the gradients of a leaf.
    pub fn set_grad_type(&self, kind: GradType) {
        let leaf = self.physical();
        leaf.extra().grad_type.set(kind);
        if let Some(node) = leaf.extra().leaf_node()
            && let Kind::Leaf(end) = &node.kind
        {
            end.grad_type.set(kind);
        }
    }

    pub fn grad(&self) -> Option<Tensor> {
        let grad = lock(&self.0.extra.get()?.grad).clone();
        grad_epoch::next();
        grad
    }

    pub fn set_grad(&self, grad: Option<Tensor>) {
        if grad.is_none() && self.0.extra.get().is_none() {
            return grad_changes::note(self, None, true);
        }
        let mut slot = lock(&self.extra().grad);
        grad_changes::note(self, slot.as_ref(), true);
        let old = std::mem::replace(&mut *slot, grad);
        grad_epoch::next();
        drop(slot);
        drop(old);
    }

    /// The gradient, or `None` if another thread has the lock.
    pub fn try_grad(&self) -> Option<Option<Tensor>> {
        let grad = self.try_see_grad(|grad| grad.cloned());
        grad_epoch::next();
        grad
    }

    /// Sets the gradient. Returns false and does nothing if another thread has the lock.
    pub fn try_set_grad(&self, grad: Option<&Tensor>) -> bool {
        if grad.is_none() && self.0.extra.get().is_none() {
            grad_changes::note(self, None, true);
            return true;
        }
        let mut slot = match self.extra().grad.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        grad_changes::note(self, slot.as_ref(), true);
        let old = std::mem::replace(&mut *slot, grad.cloned());
        grad_epoch::next();
        drop(slot);
        drop(old);
        true
    }

    /// What `see` finds of the gradient, or `None` if another thread has the lock.
    pub fn try_see_grad<T>(&self, see: impl FnOnce(Option<&Tensor>) -> T) -> Option<T> {
        let Some(extra) = self.0.extra.get() else { return Some(see(None)) };
        match extra.grad.try_lock() {
            Ok(grad) => Some(see(grad.as_ref())),
            Err(TryLockError::Poisoned(grad)) => Some(see(grad.into_inner().as_ref())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The gradient, if nothing else holds it or its memory, and it is nothing but a body for which `is_like` is true.
    pub fn sole_grad(&self, is_like: impl FnOnce(&Body) -> bool) -> Option<Tensor> {
        let slot = self.0.extra.get()?.grad.try_lock().ok()?;
        let grad = slot.as_ref()?;
        let inner = &grad.0;
        let is_bare = grad.flags() == 0 && inner.edge.is_none() && inner.extra.get().is_none();
        let is_sole = grad.is_unique() && inner.body.storage.is_unique() && !inner.body.storage.is_shared();
        (is_bare && is_sole && is_like(&inner.body)).then(|| grad.clone())
    }

    /// Changes `.grad` under its lock, because several backwards may add to one leaf.
    pub fn update_grad(&self, change: impl FnOnce(Option<Tensor>) -> Result<Tensor>) -> Result<()> {
        let mut slot = lock(&self.extra().grad);
        let old = slot.clone();
        grad_changes::note(self, old.as_ref(), false);
        *slot = Some(change(old)?);
        grad_epoch::next();
        Ok(())
    }
}
