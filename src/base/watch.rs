//! The modes that must see every call from Python before it runs. They are bits of one word, so that a call
//! costs only one load and one branch while none is active.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// A profiler is active.
pub const PROFILE: u8 = 1;
/// Autocast is active in a thread.
pub const CASTS: u8 = 2;
/// A tensor subclass or a mode overrides operators.
pub const OVERRIDES: u8 = 4;
/// A thread has another default device.
pub const DEVICE: u8 = 8;

static WORD: AtomicU8 = AtomicU8::new(0);
static COUNTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// True if any mode is active.
#[inline]
pub fn any() -> bool {
    WORD.load(Ordering::Relaxed) != 0
}

pub fn has(bit: u8) -> bool {
    WORD.load(Ordering::Relaxed) & bit != 0
}

/// Counts the users of a mode.
pub fn count(bit: u8, more: bool) {
    let counter = &COUNTS[bit.trailing_zeros() as usize % COUNTS.len()];
    let step = if more { 1 } else { usize::MAX };
    // The word follows the counter: a change from or to zero writes it.
    let before = counter.fetch_add(step, Ordering::SeqCst);
    if more && before == 0 {
        WORD.fetch_or(bit, Ordering::SeqCst);
    } else if !more && before == 1 {
        WORD.fetch_and(!bit, Ordering::SeqCst);
        // Another thread may have counted up before the bit was cleared.
        if counter.load(Ordering::SeqCst) != 0 {
            WORD.fetch_or(bit, Ordering::SeqCst);
        }
    }
}
