//! Objects of the host language (Python) that tensors and nodes keep. They are counted, so that the garbage
//! collector walks the graph only if there are any.

use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An object of the host language that a tensor or a node keeps alive.
pub trait HostObject: Send + Sync {
    fn host(&self) -> *mut c_void;
    fn as_any(&self) -> &dyn Any;
}

/// The number of objects of the host language that are kept.
static HOSTED: AtomicUsize = AtomicUsize::new(0);

pub fn any_hosted() -> bool {
    HOSTED.load(Ordering::Relaxed) > 0
}

pub(super) fn count_hosted() {
    HOSTED.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn uncount_hosted(count: usize) {
    HOSTED.fetch_sub(count, Ordering::Relaxed);
}

/// The state of a tensor's Python object, kept after that object was freed while the tensor lives on.
pub(super) struct HostState(pub Box<dyn HostObject>);

impl HostState {
    pub fn new(object: Box<dyn HostObject>) -> HostState {
        count_hosted();
        HostState(object)
    }
}

impl Drop for HostState {
    fn drop(&mut self) {
        uncount_hosted(1);
    }
}
