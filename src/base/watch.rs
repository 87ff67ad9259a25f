//! Which modes want to see every call from Python before it runs. They are bits of one word, so that a call pays one load and one
//! jump while no mode is on.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Somebody profiles.
pub const PROFILE: u8 = 1;
/// A thread computes in another dtype (autocast).
pub const CASTS: u8 = 2;
/// There are classes that do operators themselves, or a mode that does.
pub const OVERRIDES: u8 = 4;
/// A thread makes its tensors on another device.
pub const DEVICE: u8 = 8;

static WORD: AtomicU8 = AtomicU8::new(0);
static COUNTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Whether anybody does.
#[inline]
pub fn any() -> bool {
    WORD.load(Ordering::Relaxed) != 0
}

pub fn has(bit: u8) -> bool {
    WORD.load(Ordering::Relaxed) & bit != 0
}

/// One more wants to know, or one less.
pub fn count(bit: u8, more: bool) {
    let counter = &COUNTS[bit.trailing_zeros() as usize % COUNTS.len()];
    let step = if more { 1 } else { usize::MAX };
    // The word follows the counter: whoever comes from or to nothing writes it.
    let before = counter.fetch_add(step, Ordering::SeqCst);
    if more && before == 0 {
        WORD.fetch_or(bit, Ordering::SeqCst);
    } else if !more && before == 1 {
        WORD.fetch_and(!bit, Ordering::SeqCst);
        // Another may have come meanwhile, before the bit was taken away.
        if counter.load(Ordering::SeqCst) != 0 {
            WORD.fetch_or(bit, Ordering::SeqCst);
        }
    }
}
