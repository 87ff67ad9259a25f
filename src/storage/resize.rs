//! Storages whose memory is replaced: by a larger block, because `resize_` must be visible in all views, or
//! by the memory of another storage. Readers take no lock, so the former memory stays allocated as long as
//! the storage, but its pages are returned to the system.

use super::host::Block;
use super::{Bytes, Storage, epoch};
use crate::base::{Error, Result, profile};
#[cfg(feature = "gpu")]
use crate::gpu::Buffer;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A block of host memory that can be replaced. A block of size 0 is not freed, because it belongs to another
/// owner.
///
/// Reads need no ordering: a thread learns of elements in the new block from the thread that put it there.
pub(super) struct Replaceable {
    start: AtomicPtr<u8>,
    size: AtomicUsize,
}

impl From<Block> for Replaceable {
    #[inline]
    fn from(block: Block) -> Replaceable {
        let block = ManuallyDrop::new(block);
        Replaceable { start: AtomicPtr::new(block.ptr()), size: AtomicUsize::new(block.size()) }
    }
}

impl Replaceable {
    /// Memory with another owner.
    pub fn foreign(start: *mut u8) -> Replaceable {
        Replaceable { start: AtomicPtr::new(start), size: AtomicUsize::new(0) }
    }

    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start.load(Ordering::Relaxed)
    }

    pub fn set_start(&self, start: *mut u8) {
        self.start.store(start, Ordering::Relaxed);
    }

    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    fn swap(&self, other: &Replaceable) {
        let (start, size) = (other.start(), other.size());
        other.start.store(self.start.swap(start, Ordering::Relaxed), Ordering::Relaxed);
        other.size.store(self.size.swap(size, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for Replaceable {
    fn drop(&mut self) {
        if *self.size.get_mut() == 0 {
            return;
        }
        // SAFETY: made from a block that was forgotten, and only swapped as a whole.
        drop(unsafe { Block::from_parts(*self.start.get_mut(), *self.size.get_mut()) });
    }
}

/// A GPU buffer that can be replaced.
#[cfg(feature = "gpu")]
pub(super) struct ReplaceableBuffer(AtomicPtr<Buffer>);

#[cfg(feature = "gpu")]
impl From<Buffer> for ReplaceableBuffer {
    fn from(buffer: Buffer) -> ReplaceableBuffer {
        ReplaceableBuffer(AtomicPtr::new(Box::into_raw(Box::new(buffer))))
    }
}

#[cfg(feature = "gpu")]
impl ReplaceableBuffer {
    pub fn get(&self) -> &Buffer {
        // SAFETY: from a box that is freed with this value or, once replaced, with the storage's shared
        // state.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Puts another buffer in the place of this one, which is dropped.
    ///
    /// # Safety
    /// No reference to the former buffer is in use.
    pub unsafe fn set(&self, buffer: Buffer) {
        // SAFETY: from a box, to which nobody refers.
        unsafe { *self.0.load(Ordering::Acquire) = buffer };
    }

    fn swap(&self, other: &ReplaceableBuffer) {
        let own = self.0.swap(other.0.load(Ordering::Acquire), Ordering::AcqRel);
        other.0.store(own, Ordering::Release);
    }
}

#[cfg(feature = "gpu")]
impl Drop for ReplaceableBuffer {
    fn drop(&mut self) {
        // SAFETY: from a box, and swapped only with another one.
        drop(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}

/// The promise about bytes that are exported to other libraries, for the lifetime of the storage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    /// The old bytes must keep their contents if they are replaced.
    Kept = 1,
    /// The bytes must not be replaced.
    Fixed = 2,
}

impl Storage {
    /// Records that code outside knows the address of the bytes.
    pub fn export(&self, how: Exported) {
        self.root().0.exported.fetch_or(how as u8, Ordering::Relaxed);
    }

    fn is_exported(&self, how: Exported) -> bool {
        self.root().0.exported.load(Ordering::Relaxed) & how as u8 != 0
    }

    /// True if [`Storage::resize`] is possible.
    pub fn is_resizable(&self) -> bool {
        !matches!(self.root().0.bytes, Bytes::Borrowed { .. } | Bytes::Nowhere)
            && !self.is_exported(Exported::Fixed)
    }

    /// Returns an error if [`Storage::resize`] is not possible.
    pub fn check_resizable(&self) -> Result<()> {
        if self.is_resizable() {
            return Ok(());
        }
        Err(Error::runtime("Trying to resize storage that is not resizable"))
    }

    /// Resizes to `len` bytes. If new memory is needed, `fill` gets it to copy the old bytes there.
    pub fn resize(&self, len: usize, fill: impl FnOnce(&Storage) -> Result<()>) -> Result<()> {
        let root = self.root();
        let mut replaced = root.shared_state().replaced();
        self.check_resizable()?;
        let (old, kept) = (root.len(), self.is_exported(Exported::Kept));
        let has_room = match &root.0.bytes {
            Bytes::Host(memory) => {
                if len < old && old <= memory.size() && !kept {
                    // SAFETY: the range lies in the block, and bytes beyond the end may not be used.
                    unsafe { Block::forget(memory.start().wrapping_add(len), memory.size() - len) };
                }
                len <= memory.size().max(old)
            }
            Bytes::Meta => true,
            _ => len <= old,
        };
        if !has_room {
            let more = Storage::new(len, root.0.device)?;
            fill(&more)?;
            root.swap(&more);
            if !kept {
                more.forget();
            }
            more.0.len.store(old, Ordering::Relaxed);
            replaced.push(more);
        } else if root.0.device.is_meta() {
            // There is no memory to report.
        } else if len > old {
            profile::memory(len - old, true, false);
        } else {
            profile::memory(old - len, false, !root.0.device.is_cpu());
        }
        root.0.len.store(len, Ordering::Release);
        epoch::next();
        Ok(())
    }

    /// Moves to the host memory of `target`, which must already hold the same bytes and is kept alive.
    pub fn move_to(&self, target: &Storage) -> Result<()> {
        let root = self.root();
        let mut replaced = root.shared_state().replaced();
        let (Some(_), Some(start)) = (root.host(), target.host()) else {
            return Err(Error::runtime("only host memory can be moved to host memory"));
        };
        let len = root.len();
        if len != target.len() {
            return Err(Error::runtime("a storage can only be moved to memory of its size"));
        }
        let old = Storage::from_bytes(Bytes::Host(Replaceable::foreign(start)), len, root.0.device);
        profile::memory(len, true, false);
        root.swap(&old);
        // Libraries that borrowed the old bytes continue to use them.
        if !(self.is_exported(Exported::Kept) || self.is_exported(Exported::Fixed)) {
            old.forget();
        }
        replaced.extend([old, target.clone()]);
        epoch::next();
        Ok(())
    }

    fn swap(&self, other: &Storage) {
        match (&self.0.bytes, &other.0.bytes) {
            (Bytes::Host(own) | Bytes::Borrowed { memory: own, .. }, Bytes::Host(other)) => own.swap(other),
            #[cfg(feature = "gpu")]
            (Bytes::Gpu(own), Bytes::Gpu(other)) => own.swap(other),
            _ => {}
        }
    }

    /// Returns the pages of unused memory to the system.
    fn forget(&self) {
        if let Bytes::Host(memory) = &self.0.bytes {
            // SAFETY: the range is the whole block, whose contents are no longer used.
            unsafe { Block::forget(memory.start(), memory.size()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Device;

    #[test]
    fn aliases_see_the_growth_and_old_memory_stays_readable() -> Result<()> {
        let storage = Storage::zeroed(8)?;
        let alias = storage.alias();
        let before = storage.host().ok_or_else(|| Error::runtime("host memory"))?;
        for len in [100, 1 << 12, 1 << 17, 1 << 20] {
            alias.resize(len, |more| {
                let start = more.host().ok_or_else(|| Error::runtime("host memory"))?;
                // SAFETY: the new memory is longer.
                unsafe { start.write_bytes(7, len) };
                Ok(())
            })?;
            assert_eq!((storage.len(), alias.len()), (len, len));
            assert_eq!(storage.host(), alias.host());
        }
        // SAFETY: kept until the storage is dropped.
        unsafe { before.write_bytes(1, 8) };
        let now = storage.host();
        storage.resize(0, |_| Ok(()))?;
        assert!(storage.is_empty() && storage.host() == now);
        Ok(())
    }

    #[test]
    fn aliases_see_the_move_and_the_target_is_kept() -> Result<()> {
        let mut elsewhere = vec![3u8; 100];
        // SAFETY: the vector outlives the storage.
        let borrowed = unsafe { Storage::borrowed(elsewhere.as_mut_ptr(), 100, Box::new(())) };
        for storage in [Storage::zeroed(100)?, borrowed] {
            let (alias, target) = (storage.alias(), Storage::zeroed(100)?);
            let start = target.host();
            alias.move_to(&target)?;
            drop(target);
            assert!(storage.host() == start && alias.host() == start && storage.len() == 100);
            assert!(storage.move_to(&Storage::zeroed(99)?).is_err());
            // SAFETY: kept by the storage.
            unsafe { start.map(|start| start.write_bytes(1, 100)) };
        }
        let moved = Storage::zeroed(64)?;
        moved.move_to(&Storage::zeroed(64)?)?;
        moved.resize(10, |_| Err(Error::runtime("there is room")))?;
        moved.resize(1000, |_| Ok(()))?;
        assert_eq!(moved.len(), 1000);
        Ok(())
    }

    #[test]
    fn what_is_exported_keeps_its_bytes() -> Result<()> {
        const LEN: usize = 1 << 20;
        let storage = Storage::zeroed(LEN)?;
        let exported = storage.host().ok_or_else(|| Error::runtime("host memory"))?;
        // SAFETY: it lives as long as the storage.
        unsafe { exported.write_bytes(7, LEN) };
        storage.export(Exported::Kept);
        for len in [10, 4 * LEN, 20] {
            storage.alias().resize(len, |_| Ok(()))?;
        }
        // SAFETY: kept until the storage is dropped.
        assert!(unsafe { std::slice::from_raw_parts(exported, LEN) }.iter().all(|&byte| byte == 7));
        storage.export(Exported::Fixed);
        assert!(storage.alias().resize(10, |_| Ok(())).is_err());
        Ok(())
    }

    #[test]
    fn borrowed_memory_has_its_size() {
        // SAFETY: there are no bytes.
        let storage = unsafe { Storage::borrowed(std::ptr::NonNull::dangling().as_ptr(), 0, Box::new(())) };
        assert!(storage.resize(1, |_| Ok(())).is_err());
        assert!(Storage::nowhere(Device::Cpu).resize(1, |_| Ok(())).is_err());
    }
}
