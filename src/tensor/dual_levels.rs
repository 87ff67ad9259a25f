//! The number of active dual levels, and this thread's switch for forward mode.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of a dual level; an inner level has a higher number than the levels around it.
pub type DualLevel = u64;

static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Moves this thread's switch into the returned closure, which sets it in the thread that calls it.
pub(in crate::tensor) fn hand_over() -> impl FnOnce() + Send {
    let on = ENABLED.replace(true);
    move || ENABLED.set(on)
}

/// True if operators in this thread propagate tangents.
pub fn enabled() -> bool {
    ENABLED.with(Cell::get) && !crate::tensor::mode::inference()
}

pub fn set_enabled(on: bool) -> bool {
    ENABLED.with(|e| e.replace(on))
}

/// True if any dual level is active.
#[inline]
pub fn any_level() -> bool {
    LIVE.load(Ordering::Relaxed) > 0
}

/// Adds or removes one active level.
pub(super) fn count_levels(more: bool) {
    if more {
        LIVE.fetch_add(1, Ordering::Relaxed);
    } else {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}
