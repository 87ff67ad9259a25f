//! What a thread has set, for another thread that goes on in its place.

use crate::storage;
use crate::tensor::{anomaly, dual_levels, mode, node_hooks, saved_hooks};

/// Takes what this thread has set, modes and hooks, for the thread that calls what is returned.
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
