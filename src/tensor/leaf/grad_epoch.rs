//! A number that grows when a `.grad` is handed out or changed. Between two equal numbers, what was found of `.grad`s still
//! holds, and nobody else has come to hold one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static EPOCH: AtomicU64 = AtomicU64::new(1);
/// True if somebody has asked for the number since it grew. Otherwise it need not grow, and an eager program pays a load.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// The number now, to be asked for before `.grad`s are looked at.
pub fn now() -> u64 {
    IS_ASKED.store(true, Ordering::SeqCst);
    EPOCH.load(Ordering::SeqCst)
}

/// Begins another epoch, after a `.grad` was handed out or changed.
#[inline]
pub fn next() {
    if IS_ASKED.load(Ordering::SeqCst) {
        begin();
    }
}

#[cold]
fn begin() {
    if IS_ASKED.swap(false, Ordering::SeqCst) {
        EPOCH.fetch_add(1, Ordering::SeqCst);
    }
}
