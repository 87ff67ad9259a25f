//! Tensors that become another kind of themselves (get other memory, another shape or place in the graph) while a thread
//! captures kernels that also run. A replay cannot repeat that on a tensor that is older than the capture.

use crate::storage::{access, epoch};
use crate::tensor::mode;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// What became of tensors, by their ids. The id of a tensor that has gone may be that of a newer one, but not of a tensor
/// that is older than the capture and still lives.
pub type Changes = HashMap<usize, &'static str>;

thread_local! {
    static CHANGES: RefCell<Option<Changes>> = const { RefCell::new(None) };
    /// The highest sequence number of a node that is older than this thread's capture.
    static OLDEST: Cell<u64> = const { Cell::new(0) };
}

/// Begins to note this thread's changes, for the capture of this number.
pub fn begin(capture: u32) {
    OLDEST.set(mode::skip_sequence(u64::from(capture) << 36));
    CHANGES.set(Some(Changes::default()));
}

/// True if this thread's changes are noted.
pub fn are_noted() -> bool {
    CHANGES.with_borrow(Option::is_some)
}

/// True if the node of this sequence number was made before this thread's latest capture began.
pub fn is_older(sequence: u64) -> bool {
    sequence <= OLDEST.get()
}

/// Ends the notes, and returns them.
pub fn end() -> Changes {
    CHANGES.take().unwrap_or_default()
}

/// Notes a change that the tensor of this id has just gone through: `what` follows "a tensor that is older than the call".
#[inline]
pub(super) fn note(id: usize, what: &'static str) {
    epoch::next();
    if access::captures() {
        note_here(id, what);
    }
}

#[cold]
fn note_here(id: usize, what: &'static str) {
    CHANGES.with_borrow_mut(|changes| {
        if let Some(changes) = changes {
            changes.entry(id).or_insert(what);
        }
    });
}
