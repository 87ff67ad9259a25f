//! What a thread records: the grad and inference switches, and the running number of nodes.

use std::cell::Cell;

thread_local! {
    static GRAD: Cell<bool> = const { Cell::new(true) };
    static SEQUENCE: Cell<u64> = const { Cell::new(0) };
    static INFERENCE: Cell<bool> = const { Cell::new(false) };
}

/// Whether operators record.
#[inline]
pub fn grad_enabled() -> bool {
    GRAD.with(Cell::get)
}

/// Switches recording on or off; returns what it was.
pub fn set_grad_enabled(on: bool) -> bool {
    GRAD.with(|g| g.replace(on))
}

/// Runs `body` with recording on or off.
pub fn with_grad<R>(on: bool, body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_grad_enabled(self.0);
        }
    }
    let _restore = Restore(set_grad_enabled(on));
    body()
}

/// Whether this thread is inside `inference_mode`.
pub fn inference() -> bool {
    INFERENCE.with(Cell::get)
}

pub fn set_inference(on: bool) -> bool {
    crate::storage::track_versions(!on);
    INFERENCE.with(|i| i.replace(on))
}

/// The number of this thread's latest node.
pub fn latest_sequence() -> u64 {
    SEQUENCE.with(Cell::get)
}

/// The number of the next node, above all of `inputs`': edges point to smaller numbers, across threads too.
pub fn next_sequence(inputs: u64) -> u64 {
    SEQUENCE.with(|s| {
        let next = s.get().max(inputs) + 1;
        s.set(next);
        next
    })
}
