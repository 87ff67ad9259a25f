//! Moves a thread's settings to another thread that continues its work.

use crate::storage;
use crate::tensor::dual_levels;
use crate::tensor::{anomaly, mode, node_hooks, saved_hooks};

/// Moves this thread's modes and hooks into the returned closure, which sets them in the thread that calls
/// it.
pub fn hand_over() -> impl FnOnce() + Send {
    let all = (mode::hand_over(), dual_levels::hand_over(), saved_hooks::hand_over());
    let more = (node_hooks::hand_over(), anomaly::hand_over(), storage::hand_over());
    move || {
        all.0();
        all.1();
        all.2();
        more.0();
        more.1();
        more.2();
    }
}
