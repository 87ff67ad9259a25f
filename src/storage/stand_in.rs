//! Storages that stand for others: their memory is set before kernels run, so that the same kernels can run over other
//! memory.

use super::resize::Replaceable;
use super::{Bytes, Inner, Storage};
use crate::base::{Device, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// A storage that may be gone. While this exists, no other storage gets its id.
pub struct WeakStorage(Weak<Inner>);

impl WeakStorage {
    pub fn upgrade(&self) -> Option<Storage> {
        self.0.upgrade().map(Storage)
    }

    /// True if this is the memory of `storage`.
    pub fn is(&self, storage: &Storage) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&storage.root().0))
    }

    /// The memory's [`id`](Storage::id), also when it is gone.
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

impl Storage {
    pub fn downgrade(&self) -> WeakStorage {
        WeakStorage(Arc::downgrade(&self.root().0))
    }

    /// A weak handle to this storage itself: for an alias, not to its memory.
    pub fn downgrade_alias(&self) -> WeakStorage {
        WeakStorage(Arc::downgrade(&self.0))
    }

    /// A number that identifies the holder of the version counter while it lives: two aliases of the same bytes differ.
    pub fn alias_id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// A storage for `len` bytes of the host, without memory yet. Writes to it are counted in every mode.
    pub fn stand_in(len: usize) -> Storage {
        let nothing = Replaceable::foreign(std::ptr::NonNull::<u8>::dangling().as_ptr());
        let stand_in = Storage::from_bytes(Bytes::Host(nothing), len, Device::Cpu);
        stand_in.0.version.store(0, Ordering::Relaxed);
        stand_in
    }

    /// `len` uninitialised bytes of the host that have been written so often; `UNTRACKED` if writes are not counted.
    pub fn with_version(len: usize, version: u32) -> Result<Storage> {
        let storage = Storage::new(len, Device::Cpu)?;
        storage.0.version.store(version, Ordering::Relaxed);
        Ok(storage)
    }

    /// Counts several in-place writes.
    pub fn bump_by(&self, writes: u32) {
        self.set_version(self.version().wrapping_add(writes));
    }

    /// Gives a stand-in its memory, and counts its writes from 0 again.
    ///
    /// # Safety
    /// This is a stand-in, and no kernel is running over it. `start` is valid for reads and writes of its length for
    /// as long as kernels run over it.
    pub unsafe fn set_start(&self, start: *mut u8) {
        if let Bytes::Host(memory) = &self.0.bytes {
            memory.set_start(start);
            self.0.version.store(0, Ordering::Relaxed);
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
