//! Storages that stand for others: their memory is set before kernels run, so that the same kernels can run over other
//! memory.

use super::resize::Replaceable;
use super::{Bytes, Inner, Storage};
use crate::base::Device;
use std::sync::{Arc, Weak};

/// A storage that may be gone. While this exists, no other storage gets its id.
pub struct WeakStorage(Weak<Inner>);

impl WeakStorage {
    pub fn upgrade(&self) -> Option<Storage> {
        self.0.upgrade().map(Storage)
    }
}

impl Storage {
    pub fn downgrade(&self) -> WeakStorage {
        WeakStorage(Arc::downgrade(&self.root().0))
    }

    /// A storage for `len` bytes of the host, without memory yet.
    pub fn stand_in(len: usize) -> Storage {
        let nothing = Replaceable::foreign(std::ptr::NonNull::<u8>::dangling().as_ptr());
        Storage::from_bytes(Bytes::Host(nothing), len, Device::Cpu)
    }

    /// Gives a stand-in its memory.
    ///
    /// # Safety
    /// This is a stand-in, and no kernel is running over it. `start` is valid for reads and writes of its length for
    /// as long as kernels run over it.
    pub unsafe fn set_start(&self, start: *mut u8) {
        if let Bytes::Host(memory) = &self.0.bytes {
            memory.set_start(start);
        }
    }

    /// The storage whose memory this is: an alias has none of its own.
    pub fn of_memory(&self) -> &Storage {
        self.root()
    }

    /// True if this storage was made in the capture of this number.
    pub fn is_made_in(&self, capture: u32) -> bool {
        self.root().0.capture == capture
    }

    /// The address of host memory, which is not read.
    pub fn address(&self) -> Option<usize> {
        match &self.root().0.bytes {
            Bytes::Host(memory) | Bytes::Borrowed { memory, .. } => Some(memory.start() as usize),
            _ => None,
        }
    }
}
