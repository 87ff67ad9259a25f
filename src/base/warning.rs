//! Warnings to the user: the host language shows them. Without a host they are dropped.

use super::Result;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

type Tell = fn(&str) -> Result<()>;

static TELL: OnceLock<Tell> = OnceLock::new();

/// What warnings go through; an error when the user made errors of them.
pub fn set_host(tell: Tell) {
    let _ = TELL.set(tell);
}

#[cold]
pub fn warn(text: &str) -> Result<()> {
    TELL.get().map_or(Ok(()), |tell| tell(text))
}

static ALWAYS: AtomicBool = AtomicBool::new(false);

/// Whether warnings that come once shall come each time.
pub fn set_always(always: bool) {
    ALWAYS.store(always, Ordering::Relaxed);
}

pub fn is_always() -> bool {
    ALWAYS.load(Ordering::Relaxed)
}

/// Warns when `told` is not set yet, and sets it.
#[cold]
pub fn warn_once(told: &AtomicBool, text: &str) -> Result<()> {
    if told.swap(true, Ordering::Relaxed) && !is_always() { Ok(()) } else { warn(text) }
}
