//! Host memory: 64-byte aligned blocks, cached by size class, because new pages cost more than the arithmetic
//! on them. Small blocks are cached per thread without a lock, large ones in one list up to a limit.

use super::reserve;
use crate::base::{Result, try_alloc};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;

const ALIGN: usize = 64;
/// The size of a huge page on most machines, and the block size from which huge pages are requested.
const HUGE: usize = 2 << 20;
const HUGE_FROM: usize = 4 << 20;
/// Size classes of 64, 128, ... bytes up to 64 KiB are cached per thread.
const SMALL_CLASSES: usize = 11;
const SMALL_MAX: usize = ALIGN << (SMALL_CLASSES - 1);
/// The number of bytes of each small class that a thread caches.
const SMALL_KEEP: usize = 256 << 10;
/// The number of bytes of large blocks that the process caches.
const LARGE_KEEP: usize = 384 << 20;

/// A block of host memory, which returns to the cache when dropped.
pub struct Block {
    ptr: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is owned memory; its owner (`Storage`) must prevent races, as with byte slices.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

static LARGE: Mutex<Large> = Mutex::new(Large { kept: 0, free: BTreeMap::new() });

thread_local! {
    static SMALL: RefCell<Small> = const { RefCell::new(Small([const { Vec::new() }; SMALL_CLASSES])) };
}

struct Small([Vec<NonNull<u8>>; SMALL_CLASSES]);

struct Large {
    kept: usize,
    free: BTreeMap<usize, Vec<Block>>,
}

impl Drop for Small {
    fn drop(&mut self) {
        for (class, list) in self.0.iter_mut().enumerate() {
            list.drain(..).for_each(|ptr| give_back(ptr, ALIGN << class));
        }
    }
}

fn alignment(size: usize) -> usize {
    if size < HUGE_FROM { ALIGN } else { HUGE }
}

fn give_back(ptr: NonNull<u8>, size: usize) {
    // SAFETY: the pointer came from `fresh` with this size.
    unsafe { System.dealloc(ptr.as_ptr(), Layout::from_size_align_unchecked(size, alignment(size))) }
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn madvise(start: *mut u8, length: usize, advice: i32) -> i32;
}

/// Asks the system for huge pages, on which a pass over a large tensor is 1.4 to 1.6 times as fast. It may
/// refuse.
fn wish_for_huge_pages(ptr: NonNull<u8>, size: usize) {
    #[cfg(target_os = "linux")]
    if size >= HUGE_FROM {
        const MADV_HUGEPAGE: i32 = 14;
        // SAFETY: the advice changes no contents, and all pages in this range are ours.
        unsafe { madvise(ptr.as_ptr(), size / HUGE * HUGE, MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (ptr, size);
}

fn fresh(size: usize, zeroed: bool, asked: usize) -> Result<NonNull<u8>> {
    reserve::check()?;
    let refuse = || try_alloc::out_of_memory(asked);
    let layout = Layout::from_size_align(size, alignment(size)).map_err(|_| refuse())?;
    // SAFETY: the layout's size is not zero. The system's allocator is called directly, so that a failure
    // does not use up the reserve.
    let get = |layout| NonNull::new(unsafe { System.alloc(layout) });
    let ptr = get(layout)
        .or_else(|| {
            trim();
            get(layout)
        })
        .ok_or_else(refuse)?;
    wish_for_huge_pages(ptr, size);
    if zeroed {
        // SAFETY: the block is `size` bytes long.
        unsafe { ptr.write_bytes(0, size) };
    }
    Ok(ptr)
}

/// Rounds the size up to eighths of an octave, so that blocks can be reused.
fn large_size(bytes: usize) -> Option<usize> {
    let step = (bytes.checked_next_power_of_two()? >> 4).max(4096);
    bytes.checked_next_multiple_of(step)
}

impl Block {
    /// A block of at least `bytes` bytes, uninitialised unless `zeroed`.
    pub fn new(bytes: usize, zeroed: bool) -> Result<Block> {
        if bytes <= SMALL_MAX {
            let class = bytes.max(1).div_ceil(ALIGN).next_power_of_two().trailing_zeros() as usize;
            let size = ALIGN << class;
            let kept = SMALL.try_with(|small| small.borrow_mut().0[class].pop()).ok().flatten();
            let ptr = match kept {
                Some(ptr) => ptr,
                None => fresh(size, false, bytes)?,
            };
            if zeroed {
                // SAFETY: the block is `size` bytes long.
                unsafe { ptr.write_bytes(0, size) };
            }
            return Ok(Block { ptr, size });
        }
        let size = large_size(bytes).unwrap_or(usize::MAX);
        let found = LARGE.lock().ok().and_then(|mut large| {
            let block = large.free.get_mut(&size)?.pop()?;
            large.kept -= size;
            Some(block)
        });
        let block = match found {
            Some(block) => {
                if zeroed {
                    // SAFETY: the block is `size` bytes long.
                    unsafe { block.ptr.write_bytes(0, size) };
                }
                block
            }
            None => Block { ptr: fresh(size, zeroed, bytes)?, size },
        };
        Ok(block)
    }

    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Makes a block again from its parts.
    ///
    /// # Safety
    /// `start` and `size` are those of one block that was not dropped, and are used only once.
    pub unsafe fn from_parts(start: *mut u8, size: usize) -> Block {
        // SAFETY: a block's start is not null.
        Block { ptr: unsafe { NonNull::new_unchecked(start) }, size }
    }

    /// Returns the pages in a range of a block to the system. The memory stays valid, but its contents are
    /// lost.
    ///
    /// # Safety
    /// The range lies within a block.
    pub unsafe fn forget(start: *mut u8, len: usize) {
        #[cfg(target_os = "linux")]
        {
            const MADV_DONTNEED: i32 = 4;
            /// The largest page size of common machines, apart from huge pages.
            const PAGE: usize = 64 << 10;
            let skipped = start.align_offset(PAGE);
            if let Some(len) = len.checked_sub(skipped).map(|len| len / PAGE * PAGE).filter(|&len| len > 0) {
                // SAFETY: these are whole pages within the range.
                unsafe { madvise(start.wrapping_add(skipped), len, MADV_DONTNEED) };
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (start, len);
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let (ptr, size) = (self.ptr, self.size);
        if size <= SMALL_MAX {
            let class = (size / ALIGN).trailing_zeros() as usize;
            let kept = SMALL.try_with(|small| {
                let list = &mut small.borrow_mut().0[class];
                let room = list.len() < SMALL_KEEP / size;
                if room {
                    list.push(ptr);
                }
                room
            });
            if kept != Ok(true) {
                give_back(ptr, size);
            }
            return;
        }
        if let Ok(mut large) = LARGE.lock()
            && large.kept + size <= LARGE_KEEP
        {
            large.kept += size;
            // The list takes the block over, so this one must not be freed again.
            large.free.entry(size).or_default().push(Block { ptr, size });
            return;
        }
        give_back(ptr, size);
    }
}

/// Returns the cached large blocks to the system. Gives up if the lock stays taken, possibly by this thread
/// itself while it allocates.
pub fn trim() {
    let free = || {
        let mut large = LARGE.try_lock().ok()?;
        large.kept = 0;
        Some(std::mem::take(&mut large.free))
    };
    let taken = (0..100).find_map(|_| {
        free().or_else(|| {
            std::thread::yield_now();
            None
        })
    });
    for block in taken.into_iter().flatten().flat_map(|(_, blocks)| blocks) {
        give_back(block.ptr, block.size);
        std::mem::forget(block);
    }
}

/// Asks the C library to return its free memory to the system.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: glibc's malloc_trim may be called at any time.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_come_back() {
        let first = Block::new(100, false).map(|b| b.ptr()).ok();
        let second = Block::new(120, false).map(|b| b.ptr()).ok();
        assert_eq!(first, second);
        assert!(first.is_some_and(|p| (p as usize).is_multiple_of(ALIGN)));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(Block::new(usize::MAX / 2, false).is_err());
        assert!(Block::new(usize::MAX, true).is_err());
    }

    #[test]
    fn zeroed_means_zero_after_reuse() {
        for bytes in [1000, 1 << 20] {
            let block = Block::new(bytes, false).ok();
            if let Some(b) = &block {
                // SAFETY: the block has that many bytes.
                unsafe { b.ptr().write_bytes(7, bytes) };
            }
            drop(block);
            let again = Block::new(bytes, true).ok();
            assert!(again.is_some_and(|b| {
                // SAFETY: the block has that many bytes, all initialised.
                unsafe { std::slice::from_raw_parts(b.ptr(), bytes) }.iter().all(|&x| x == 0)
            }));
        }
    }
}
