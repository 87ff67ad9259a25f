//! While a thread captures kernels, elements may be reached only inside of kernels: a number that the host read from
//! a tensor would be out of date in a replay. Where only replays run kernels, such an access is refused; where kernels
//! also run while they are captured, it is noted as the reason why the capture cannot be replayed.

use crate::base::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of threads that capture.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// This thread captures nothing.
    Free,
    /// This thread captures kernels that only replays run.
    Refused,
    /// This thread captures kernels that run now.
    Noted,
    /// This thread captures, and runs a kernel that is in the capture.
    InKernel,
}

thread_local! {
    static ACCESS: Cell<Access> = const { Cell::new(Access::Free) };
    /// The first reason why this thread's capture cannot be replayed.
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// True if this thread captures, and is not inside of a captured kernel.
#[inline]
pub fn is_captured() -> bool {
    CAPTURES.load(Ordering::Relaxed) != 0 && is_captured_here()
}

#[cold]
fn is_captured_here() -> bool {
    matches!(ACCESS.get(), Access::Refused | Access::Noted)
}

/// True if this thread captures.
pub fn captures() -> bool {
    CAPTURES.load(Ordering::Relaxed) != 0 && ACCESS.get() != Access::Free
}

/// Returns an error if elements may not be reached now.
#[inline]
pub fn check() -> Result<()> {
    if is_captured() { reached() } else { Ok(()) }
}

#[cold]
fn reached() -> Result<()> {
    if ACCESS.get() == Access::Refused {
        return Err(refuse());
    }
    note(|| READ.into());
    Ok(())
}

const READ: &str = "it reads or writes elements outside of the kernels that a replay runs (such as .item(), .tolist() or nonzero)";

/// The error for an access to elements outside of kernels.
#[cold]
pub fn refuse() -> Error {
    Error::runtime(
        "operation not permitted when stream is capturing: it reads or writes elements outside of the kernels that \
         a replay runs (such as .item(), .tolist(), nonzero, or a tensor made from Python's numbers)",
    )
}

/// Notes an access that could not be refused.
#[cold]
pub(super) fn note_access() {
    note(|| READ.into());
}

/// Notes why this thread's capture cannot be replayed; the first reason stays.
#[cold]
pub fn note(reason: impl FnOnce() -> String) {
    REASON.with_borrow_mut(|first| {
        first.get_or_insert_with(reason);
    });
}

/// The reason why this thread's capture cannot be replayed, if there is one so far.
pub fn reason() -> Option<String> {
    REASON.with_borrow(Clone::clone)
}

/// True if this thread captures kernels that run now, and each of them could be captured so far.
pub fn is_noted() -> bool {
    ACCESS.get() == Access::Noted && !is_spoilt()
}

/// True if there is a reason why this thread's capture cannot be replayed.
pub fn is_spoilt() -> bool {
    REASON.with_borrow(Option::is_some)
}

/// Begins a capture in this thread. `runs` says whether kernels run while they are captured.
pub fn begin(runs: bool) {
    REASON.take();
    ACCESS.set(if runs { Access::Noted } else { Access::Refused });
    CAPTURES.fetch_add(1, Ordering::Relaxed);
}

/// Ends this thread's capture, and returns the reason why it cannot be replayed, if there is one.
pub fn end() -> Option<String> {
    CAPTURES.fetch_sub(1, Ordering::Relaxed);
    ACCESS.set(Access::Free);
    REASON.take()
}

/// Permits access while a kernel runs that is in the capture.
pub struct Permit(Access);

impl Permit {
    #[allow(clippy::new_without_default, reason = "a new permit changes the thread's state")]
    pub fn new() -> Permit {
        Permit(ACCESS.replace(Access::InKernel))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        ACCESS.set(self.0);
    }
}
