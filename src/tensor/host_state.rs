//! What the user hung on a tensor's Python object, once that object is gone and the tensor is not.

use crate::tensor::node::{count_hosted, uncount_hosted};
use crate::tensor::{HostObject, Tensor, lock};

/// Counted among what the collector has to look for.
struct Hung(Box<dyn HostObject>);

#[derive(Default)]
pub(super) struct Slot(Option<Hung>);

impl Drop for Hung {
    fn drop(&mut self) {
        uncount_hosted();
    }
}

impl Tensor {
    /// Keeps an object as long as this tensor lives, or until it is taken.
    pub fn hang(&self, object: Box<dyn HostObject>) {
        count_hosted();
        let old = lock(&self.extra().hung).0.replace(Hung(object));
        drop(old);
    }

    /// The object that hangs here, as `read` takes it apart.
    pub fn hung<T>(&self, read: impl FnOnce(&dyn HostObject) -> T) -> Option<T> {
        let slot = lock(&self.0.extra.get()?.hung);
        Some(read(slot.0.as_ref()?.0.as_ref()))
    }

    /// Lets go of the object that hangs here.
    pub fn unhang(&self) {
        let hung = self.0.extra.get().and_then(|extra| lock(&extra.hung).0.take());
        drop(hung);
    }

    /// Shows the collector the object that hangs here.
    pub fn see_hung(&self, see: &mut dyn FnMut(*mut std::ffi::c_void)) {
        if let Some(extra) = self.0.extra.get()
            && let Ok(slot) = extra.hung.try_lock()
            && let Some(hung) = &slot.0
        {
            see(hung.0.host());
        }
    }
}
