//! A thread's grad and inference switches, and the sequence number of its nodes.

use std::cell::Cell;

const ON: u8 = 1;
const INFERENCE: u8 = 2;

thread_local! {
    /// The bits `ON` (grad mode) and `INFERENCE`. Operators record if only `ON` is set.
    static GRAD: Cell<u8> = const { Cell::new(ON) };
    static SEQUENCE: Cell<u64> = const { Cell::new(0) };
}

/// Moves this thread's switches and sequence number into the returned closure, which sets them in the thread
/// that calls it.
pub(super) fn hand_over() -> impl FnOnce() + Send {
    let (switches, sequence) = (GRAD.replace(ON), SEQUENCE.get());
    move || {
        GRAD.set(switches);
        SEQUENCE.set(sequence);
    }
}

/// True if operators record.
#[inline]
pub fn grad_enabled() -> bool {
    GRAD.get() == ON
}

/// True if the grad switch is on. Operators do not record in inference mode even then.
pub fn grad_switch() -> bool {
    GRAD.get() & ON != 0
}

/// Turns recording on or off; returns the former setting.
pub fn set_grad_enabled(on: bool) -> bool {
    flip(ON, on)
}

/// Sets one bit; returns its former value.
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

/// Runs `body` with recording on, even in inference mode.
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

/// True if this thread is in `inference_mode`.
pub fn inference() -> bool {
    GRAD.get() & INFERENCE != 0
}

pub fn set_inference(on: bool) -> bool {
    crate::storage::track_versions(!on);
    flip(INFERENCE, on)
}

/// The sequence number of this thread's latest node.
pub fn latest_sequence() -> u64 {
    SEQUENCE.with(Cell::get)
}

/// Lets the numbers of this thread's next nodes be above `least` and above those of its nodes so far; returns the number
/// that they exceed. Nodes of other threads are below `least` if each step of it is longer than any thread's graphs.
pub fn skip_sequence(least: u64) -> u64 {
    let latest = latest_sequence().max(least);
    SEQUENCE.with(|s| s.set(latest));
    latest
}

/// The sequence number for a new node. It exceeds those of all `inputs`, also of other threads, so edges
/// always lead to smaller numbers.
pub fn next_sequence(inputs: u64) -> u64 {
    SEQUENCE.with(|s| {
        let next = s.get().max(inputs) + 1;
        s.set(next);
        next
    })
}
