//! What a thread records: the grad and inference switches, and the running number of nodes.

use std::cell::Cell;

const ON: u8 = 1;
const INFERENCE: u8 = 2;

thread_local! {
    /// The grad switch, and `INFERENCE` beside it: operators record when nothing but the switch is on.
    static GRAD: Cell<u8> = const { Cell::new(ON) };
    static SEQUENCE: Cell<u64> = const { Cell::new(0) };
}

/// Takes this thread's switches and its count for the thread that calls what is returned.
pub(super) fn hand_over() -> impl FnOnce() + Send {
    let (switches, sequence) = (GRAD.replace(ON), SEQUENCE.get());
    move || {
        GRAD.set(switches);
        SEQUENCE.set(sequence);
    }
}

/// Whether operators record.
#[inline]
pub fn grad_enabled() -> bool {
    GRAD.get() == ON
}

/// Whether the grad switch is on; inference mode keeps operators from recording all the same.
pub fn grad_switch() -> bool {
    GRAD.get() & ON != 0
}

/// Switches recording on or off; returns what it was.
pub fn set_grad_enabled(on: bool) -> bool {
    flip(ON, on)
}

/// Switches one bit; returns what it was.
fn flip(bit: u8, on: bool) -> bool {
    let old = GRAD.get();
    GRAD.set(if on { old | bit } else { old & !bit });
    old & bit != 0
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

/// Runs `body` recorded, whatever mode the thread is in.
pub fn recorded<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_inference(self.0);
        }
    }
    let _restore = Restore(set_inference(false));
    with_grad(true, body)
}

/// Whether this thread is inside `inference_mode`.
pub fn inference() -> bool {
    GRAD.get() & INFERENCE != 0
}

pub fn set_inference(on: bool) -> bool {
    crate::storage::track_versions(!on);
    flip(INFERENCE, on)
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
