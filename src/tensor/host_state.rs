//! The state of a tensor's Python object (attributes, subclass), which the tensor keeps after that object was
//! freed.

use crate::tensor::host::{HostObject, HostState};
use crate::tensor::{Tensor, lock};

impl Tensor {
    /// Keeps an object until `drop_host_state` or as long as this tensor lives.
    pub fn keep_host_state(&self, object: Box<dyn HostObject>) {
        let old = lock(&self.extra().host_state).replace(HostState::new(object));
        drop(old);
    }

    /// Applies `read` to the kept object, if there is one.
    pub fn host_state<T>(&self, read: impl FnOnce(&dyn HostObject) -> T) -> Option<T> {
        let slot = lock(&self.0.extra.get()?.host_state);
        Some(read(slot.as_ref()?.0.as_ref()))
    }

    pub fn drop_host_state(&self) {
        let state = self.0.extra.get().and_then(|extra| lock(&extra.host_state).take());
        drop(state);
    }

    /// Shows the kept object to the garbage collector.
    pub fn visit_host_state(&self, see: &mut dyn FnMut(*mut std::ffi::c_void)) {
        if let Some(extra) = self.0.extra.get()
            && let Ok(slot) = extra.host_state.try_lock()
            && let Some(state) = &*slot
        {
            see(state.0.host());
        }
    }
}
