//! The allocator of the Python module: the system's, with a reserve. What outsiders' sizes decide is asked for in ways that
//! may fail; for the rest, which Rust cannot refuse, the reserve is given up, and the next operators are refused until it
//! can be had again.

use super::host::trim;
use crate::base::{Result, room};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The reserve comes in blocks, which fragmented memory has room for, too.
const BLOCK: usize = 256 << 10;
/// As many as an operator that runs may still need beside its results.
const BLOCKS: usize = 64;
/// As many must be had again before the next may begin.
const LEAST: usize = 8;
const PLACE: Layout = match Layout::from_size_align(BLOCK, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("a block has a size"),
};

/// The first block; each begins with the address of the next.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static SPENT: AtomicBool = AtomicBool::new(false);

/// Refuses to go on where the reserve is gone and cannot be had again.
#[inline]
pub fn check() -> Result<()> {
    if SPENT.load(Ordering::Relaxed) { restore() } else { Ok(()) }
}

/// Takes the reserve, if there is none.
#[cold]
pub fn restore() -> Result<()> {
    let (mut first, mut count) = (null_mut(), 0);
    while count < BLOCKS {
        // SAFETY: the layout has a size, and room for an address at its start.
        let block = unsafe { System.alloc(PLACE) };
        if block.is_null() {
            break;
        }
        // SAFETY: as above.
        unsafe { block.cast::<*mut u8>().write(first) };
        (first, count) = (block, count + 1);
    }
    if count < LEAST {
        give_back(first);
        SPENT.store(true, Ordering::Relaxed);
        return Err(room::refused(BLOCK));
    }
    SPENT.store(false, Ordering::Relaxed);
    give_back(RESERVE.swap(first, Ordering::AcqRel));
    Ok(())
}

fn give_back(mut block: *mut u8) {
    while !block.is_null() {
        // SAFETY: `restore` made this list of blocks with this layout, and the swap made it ours alone.
        unsafe {
            let next = block.cast::<*mut u8>().read();
            System.dealloc(block, PLACE);
            block = next;
        }
    }
}

/// What `get` gives, after more and more was given up for it.
#[cold]
fn at_any_price(get: impl Fn() -> *mut u8) -> *mut u8 {
    trim();
    let found = get();
    if !found.is_null() {
        return found;
    }
    SPENT.store(true, Ordering::Relaxed);
    give_back(RESERVE.swap(null_mut(), Ordering::AcqRel));
    get()
}

/// Larger blocks are asked for in ways that may fail: nothing is given up for them.
fn is_small(size: usize) -> bool {
    size <= 8 * BLOCKS * BLOCK
}

pub struct Allocator;

// SAFETY: all memory is the system allocator's.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let get = || unsafe { System.alloc(layout) };
        let found = get();
        if found.is_null() && is_small(layout.size()) { at_any_price(get) } else { found }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let get = || unsafe { System.alloc_zeroed(layout) };
        let found = get();
        if found.is_null() && is_small(layout.size()) { at_any_price(get) } else { found }
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
        if found.is_null() && is_small(size) { at_any_price(get) } else { found }
    }
}
