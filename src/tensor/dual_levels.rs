//! How many levels of forward mode are entered, and this thread's switch for them.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A level's number; an inner one is higher than those around it.
pub type DualLevel = u64;

static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Takes this thread's switch for the thread that calls what is returned.
pub(super) fn hand_over() -> impl FnOnce() + Send {
    let on = ENABLED.replace(true);
    move || ENABLED.set(on)
}

/// Whether this thread's operators carry tangents on.
pub fn enabled() -> bool {
    ENABLED.with(Cell::get) && !crate::tensor::mode::inference()
}

pub fn set_enabled(on: bool) -> bool {
    ENABLED.with(|e| e.replace(on))
}

/// Whether any level is entered.
#[inline]
pub fn any_level() -> bool {
    LIVE.load(Ordering::Relaxed) > 0
}

/// One level more, or one less.
pub(super) fn count_levels(more: bool) {
    if more {
        LIVE.fetch_add(1, Ordering::Relaxed);
    } else {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}
