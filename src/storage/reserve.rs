//! The allocator of the Python module: the system's, with a reserve. Allocations whose size the user decides
//! are made so that they can fail. Rust cannot fail the others: for them the reserve is freed, and further
//! operators are refused until it can be allocated again.

use super::host::trim;
use crate::base::{Result, try_alloc};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Sizes of a reserved block. The first is so large that the system's allocator maps it separately; once
/// freed, it serves every thread and every size. If memory is fragmented, a smaller one is used.
const SIZES: [usize; 4] = [33 << 20, 8 << 20, 2 << 20, 1 << 20];

fn layout(size: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and no size is near the maximum.
    unsafe { Layout::from_size_align_unchecked(size, 64) }
}

/// Two blocks: one for what a running operator may need besides its results, one for raising the error. A
/// block begins with its size; the rest is not touched and so costs only address space.
static RESERVE: [AtomicPtr<u8>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];
static SPENT: AtomicBool = AtomicBool::new(false);

/// Returns an error if the reserve is gone and cannot be allocated again.
#[inline]
pub fn check() -> Result<()> {
    if is_spent() { Err(try_alloc::out_of_memory(SIZES[0])) } else { Ok(()) }
}

/// True if the reserve is gone and cannot be allocated again, for callers that raise their own error.
#[inline]
pub fn is_spent() -> bool {
    SPENT.load(Ordering::Relaxed) && !restore()
}

/// Allocates the missing blocks of the reserve, the last one first. Returns true if the reserve is complete.
#[cold]
pub fn restore() -> bool {
    let whole = RESERVE.iter().rev().all(|place| {
        if !place.load(Ordering::Relaxed).is_null() {
            return true;
        }
        let block =
            SIZES.iter().map(|&size| alloc_block(size)).find(|block| !block.is_null()).unwrap_or(null_mut());
        give_back(place.swap(block, Ordering::Relaxed));
        !block.is_null()
    });
    SPENT.store(!whole, Ordering::Relaxed);
    whole
}

fn alloc_block(size: usize) -> *mut u8 {
    // SAFETY: the layout is not empty, and large enough for the size at its start.
    unsafe {
        let block = System.alloc(layout(size));
        if !block.is_null() {
            block.cast::<usize>().write(size);
        }
        block
    }
}

/// Frees the reserve, because Python, which has none, failed to allocate.
#[cold]
pub fn spend() {
    RESERVE.iter().for_each(give_up);
}

fn give_up(place: &AtomicPtr<u8>) {
    SPENT.store(true, Ordering::Relaxed);
    give_back(place.swap(null_mut(), Ordering::Relaxed));
}

fn give_back(block: *mut u8) {
    if !block.is_null() {
        // SAFETY: `alloc_block` allocated it with this layout and wrote its size, and the swap made it ours alone.
        unsafe { System.dealloc(block, layout(block.cast::<usize>().read())) };
    }
}

/// Repeats `get` after freeing the cache and then the blocks of the reserve.
#[cold]
fn alloc_with_reserve(size: usize, get: impl Fn() -> *mut u8) -> *mut u8 {
    trim();
    let mut places = RESERVE.iter();
    // A failure of a small allocation cannot be reported, so we wait: another thread may free memory in time.
    let mut waits = 0..if size <= 1 << 16 { 100 } else { 0 };
    loop {
        let found = get();
        if !found.is_null() {
            return found;
        }
        match places.next() {
            Some(place) => give_up(place),
            None if waits.next().is_some() => sleep(Duration::from_millis(10)),
            None => return found,
        }
    }
}

/// Larger blocks are allocated so that they can fail; nothing is freed for them.
fn is_small(size: usize) -> bool {
    size <= 4 * SIZES[0]
}

pub struct Allocator;

// SAFETY: all memory comes from the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let get = || unsafe { System.alloc(layout) };
        let found = get();
        if found.is_null() && is_small(layout.size()) {
            alloc_with_reserve(layout.size(), get)
        } else {
            found
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let get = || unsafe { System.alloc_zeroed(layout) };
        let found = get();
        if found.is_null() && is_small(layout.size()) {
            alloc_with_reserve(layout.size(), get)
        } else {
            found
        }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(start, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; a failed attempt leaves the old block unchanged.
        let get = || unsafe { System.realloc(start, layout, size) };
        let found = get();
        if found.is_null() && is_small(size) { alloc_with_reserve(size, get) } else { found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_few_bytes_are_waited_for() {
        let mut byte = 0;
        let start = &raw mut byte;
        let asked = Cell::new(0);
        let get = || {
            asked.set(asked.get() + 1);
            if asked.get() > 8 { start } else { null_mut() }
        };
        assert_eq!(alloc_with_reserve(64, get), start);
        asked.set(0);
        // A larger allocation fails at once.
        assert!(alloc_with_reserve(1 << 20, get).is_null());
        assert!(asked.get() <= 1 + RESERVE.len() && restore());
    }
}
