//! Small stack buffers through which blocks pass when they are gathered, repeated or converted.

use std::mem::MaybeUninit;

/// Number of elements in a tile. A few tiles fit into the first cache, and the calls between them cost nothing.
pub const TILE: usize = 512;

/// Number of elements that a tile holds: half as many if they are complex, as those take sixteen bytes.
#[inline(always)]
pub const fn tile_len(complex: bool) -> usize {
    if complex { TILE / 2 } else { TILE }
}

/// Room for a tile of any dtype, on the stack.
#[repr(align(64))]
pub struct Tile(MaybeUninit<[u64; TILE]>);

impl Tile {
    #[inline(always)]
    pub const fn empty() -> Tile {
        Tile(MaybeUninit::uninit())
    }

    #[inline(always)]
    pub fn at(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Writes `n` copies of `value`.
///
/// # Safety
/// `to` has room for them.
#[inline(always)]
pub unsafe fn splat<E: Copy>(value: E, n: usize, to: *mut u8) {
    let to = to.cast::<E>();
    for i in 0..n {
        // SAFETY: the caller's contract.
        unsafe { to.add(i).write_unaligned(value) };
    }
}
