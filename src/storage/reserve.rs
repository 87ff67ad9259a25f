//! The allocator of the Python module: the system's, with a reserve. What outsiders' sizes decide is asked for in ways that
//! may fail; for the rest, which Rust cannot refuse, the reserve is given up, and the next operators are refused until it
//! can be had again.

use super::host::trim;
use crate::base::{Result, try_alloc};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// A block so large that the system's allocator maps it apart: given back, it serves every thread and every size. Where
/// memory is in pieces, less must do.
const SIZES: [usize; 4] = [33 << 20, 8 << 20, 2 << 20, 1 << 20];

fn layout(size: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and no size is near the largest.
    unsafe { Layout::from_size_align_unchecked(size, 64) }
}

/// What an operator that runs may still need beside its results; then what it takes to say that there is no more. A block
/// begins with its size; nobody touches the rest, which costs address space alone.
static RESERVE: [AtomicPtr<u8>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];
static SPENT: AtomicBool = AtomicBool::new(false);

/// Refuses to go on where the reserve is gone and cannot be had again.
#[inline]
pub fn check() -> Result<()> {
    if is_spent() { Err(try_alloc::out_of_memory(SIZES[0])) } else { Ok(()) }
}

/// Whether the reserve is gone and cannot be had again, for callers that raise an error of their own.
#[inline]
pub fn is_spent() -> bool {
    SPENT.load(Ordering::Relaxed) && !restore()
}

/// Takes the reserve, as far as it is not there; the last block first. Gives whether it is whole.
#[cold]
pub fn restore() -> bool {
    let whole = RESERVE.iter().rev().all(|place| {
        if !place.load(Ordering::Relaxed).is_null() {
            return true;
        }
        let block =
            SIZES.iter().map(|&size| taken(size)).find(|block| !block.is_null()).unwrap_or(null_mut());
        give_back(place.swap(block, Ordering::Relaxed));
        !block.is_null()
    });
    SPENT.store(!whole, Ordering::Relaxed);
    whole
}

fn taken(size: usize) -> *mut u8 {
    // SAFETY: the layout has a size, and room for it at its start.
    unsafe {
        let block = System.alloc(layout(size));
        if !block.is_null() {
            block.cast::<usize>().write(size);
        }
        block
    }
}

/// Gives the reserve up: Python, which has none, makes its error of it.
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
        // SAFETY: `taken` got it with this layout and wrote its size, and a swap made it ours alone.
        unsafe { System.dealloc(block, layout(block.cast::<usize>().read())) };
    }
}

/// What `get` gives, after more and more was given up for it.
#[cold]
fn at_any_price(size: usize, get: impl Fn() -> *mut u8) -> *mut u8 {
    trim();
    let mut places = RESERVE.iter();
    // Nobody could be told that a few bytes are missing: another thread may give some back in time.
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

/// Larger blocks are asked for in ways that may fail: nothing is given up for them.
fn is_small(size: usize) -> bool {
    size <= 4 * SIZES[0]
}

pub struct Allocator;

// SAFETY: all memory is the system allocator's.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let get = || unsafe { System.alloc(layout) };
        let found = get();
        if found.is_null() && is_small(layout.size()) { at_any_price(layout.size(), get) } else { found }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let get = || unsafe { System.alloc_zeroed(layout) };
        let found = get();
        if found.is_null() && is_small(layout.size()) { at_any_price(layout.size(), get) } else { found }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(start, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; what was refused left the old block as it was.
        let get = || unsafe { System.realloc(start, layout, size) };
        let found = get();
        if found.is_null() && is_small(size) { at_any_price(size, get) } else { found }
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
        assert_eq!(at_any_price(64, get), start);
        asked.set(0);
        // What is larger is asked for in ways that may fail, at once.
        assert!(at_any_price(1 << 20, get).is_null());
        assert!(asked.get() <= 1 + RESERVE.len() && restore());
    }
}
