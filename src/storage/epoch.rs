//! A number that grows whenever a tensor or a storage becomes another kind of itself: gets other memory, another shape or
//! length, another place in the graph, hooks or tangents. Between two equal numbers, what was checked needs no check.

use std::sync::atomic::{AtomicU64, Ordering};

static EPOCH: AtomicU64 = AtomicU64::new(1);

pub fn now() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Begins another epoch, after a change.
pub fn next() {
    EPOCH.fetch_add(1, Ordering::Release);
}
