//! Storages that stand for others: their memory is set before kernels run, so that the same kernels can run over other
//! memory.

use super::resize::Replaceable;
use super::{Bytes, Inner, Storage};
use crate::base::{Device, Result};
#[cfg(feature = "gpu")]
use crate::gpu::Buffer;
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

    /// A storage for `len` bytes of a device, without memory yet. Writes to it are counted in every mode.
    pub fn stand_in(len: usize, device: Device) -> Storage {
        let host = || Bytes::Host(Replaceable::foreign(std::ptr::NonNull::<u8>::dangling().as_ptr()));
        #[cfg(feature = "gpu")]
        let bytes = if device.is_gpu() { Bytes::Gpu(Buffer::nothing(len).into()) } else { host() };
        #[cfg(not(feature = "gpu"))]
        let bytes = host();
        let stand_in = Storage::from_bytes(bytes, len, device);
        stand_in.0.version.store(0, Ordering::Relaxed);
        stand_in
    }

    /// `len` uninitialised bytes that have been written so often; `UNTRACKED` if writes are not counted.
    pub fn with_version(len: usize, version: u32, device: Device) -> Result<Storage> {
        let storage = Storage::new(len, device)?;
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

    /// Gives a stand-in the memory of `storage`, from `shift` bytes on, and counts its writes from 0 again. Returns false if
    /// kernels cannot reach that memory as that of the stand-in.
    ///
    /// # Safety
    /// This is a stand-in, and no kernel is running over it. Kernels reach only bytes of the storage, which lives as long as
    /// they run.
    pub unsafe fn stand_for(&self, storage: &Storage, shift: isize) -> bool {
        match (&self.0.bytes, &storage.root().0.bytes) {
            (Bytes::Host(_), Bytes::Host(memory) | Bytes::Borrowed { memory, .. }) => {
                // SAFETY: the caller's contract.
                unsafe { self.set_start(memory.start().wrapping_offset(shift)) };
                true
            }
            #[cfg(feature = "gpu")]
            (Bytes::Gpu(own), Bytes::Gpu(memory)) if shift == 0 => {
                // SAFETY: the caller's contract.
                unsafe { own.set(memory.get().clone()) };
                self.0.version.store(0, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Lets go of the memory of a stand-in on the GPU, so that others can have it.
    ///
    /// # Safety
    /// This is a stand-in, and no kernel is running over it.
    pub unsafe fn let_go(&self) {
        #[cfg(feature = "gpu")]
        if let Bytes::Gpu(own) = &self.0.bytes {
            // SAFETY: the caller's contract.
            unsafe { own.set(Buffer::nothing(self.len())) };
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

    /// Two numbers so that no other memory has a number between them; `None` if there is none.
    pub fn span(&self) -> Option<(usize, usize)> {
        if self.is_empty() {
            return None;
        }
        #[cfg(feature = "gpu")]
        if let Bytes::Gpu(buffer) = &self.root().0.bytes {
            return Some((buffer.get().id(), buffer.get().id() + 1));
        }
        self.address().map(|start| (start, start + self.len()))
    }

    /// The address of host memory, which is not read.
    pub fn address(&self) -> Option<usize> {
        match &self.root().0.bytes {
            Bytes::Host(memory) | Bytes::Borrowed { memory, .. } => Some(memory.start() as usize),
            _ => None,
        }
    }
}
