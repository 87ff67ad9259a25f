//! While a thread captures kernels, elements may be reached only inside of kernels: a number that the host read from
//! a tensor would be out of date in a replay.

use crate::base::{Error, Result};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of threads that capture.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// This thread captures nothing.
    Free,
    /// This thread captures, and runs no kernel.
    Refused,
    /// This thread captures, and elements were reached outside of kernels.
    Violated,
    /// This thread captures, and runs a kernel that is in the capture.
    InKernel,
}

thread_local! {
    static ACCESS: Cell<Access> = const { Cell::new(Access::Free) };
}

/// True if this thread captures, and is not inside of a captured kernel.
#[inline]
pub fn is_captured() -> bool {
    CAPTURES.load(Ordering::Relaxed) != 0 && is_captured_here()
}

#[cold]
fn is_captured_here() -> bool {
    matches!(ACCESS.get(), Access::Refused | Access::Violated)
}

/// True if this thread captures.
pub fn captures() -> bool {
    CAPTURES.load(Ordering::Relaxed) != 0 && ACCESS.get() != Access::Free
}

/// Returns an error if elements may not be reached now.
#[inline]
pub fn check() -> Result<()> {
    if is_captured() { Err(refuse()) } else { Ok(()) }
}

/// The error for an access to elements outside of kernels.
#[cold]
pub fn refuse() -> Error {
    Error::runtime(
        "operation not permitted when stream is capturing: it reads or writes elements outside of the kernels that \
         a replay runs (such as .item(), .tolist(), nonzero, or a tensor made from Python's numbers)",
    )
}

/// Notes an access that could not be refused; the capture fails when it ends.
#[cold]
pub(super) fn note_violation() {
    ACCESS.set(Access::Violated);
}

/// Begins a capture in this thread.
pub fn begin() {
    ACCESS.set(Access::Refused);
    CAPTURES.fetch_add(1, Ordering::Relaxed);
}

/// Ends this thread's capture, and returns true if elements were reached outside of kernels.
pub fn end() -> bool {
    CAPTURES.fetch_sub(1, Ordering::Relaxed);
    ACCESS.replace(Access::Free) == Access::Violated
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
