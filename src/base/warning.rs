//! Warnings to the user, shown by the host language. Without a host they are dropped.

use super::Result;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

type Tell = fn(&str) -> Result<()>;

static TELL: OnceLock<Tell> = OnceLock::new();

/// Sets the function that shows warnings. It returns an error if the user turned warnings into errors.
pub fn set_host(tell: Tell) {
    let _ = TELL.set(tell);
}

#[cold]
pub fn warn(text: &str) -> Result<()> {
    TELL.get().map_or(Ok(()), |tell| tell(text))
}

static ALWAYS: AtomicBool = AtomicBool::new(false);

/// Sets whether warnings that normally appear once appear every time.
pub fn set_always(always: bool) {
    ALWAYS.store(always, Ordering::Relaxed);
}

pub fn is_always() -> bool {
    ALWAYS.load(Ordering::Relaxed)
}

/// Warns unless `told` is set, and sets it.
#[cold]
pub fn warn_once(told: &AtomicBool, text: &str) -> Result<()> {
    if told.swap(true, Ordering::Relaxed) && !is_always() { Ok(()) } else { warn(text) }
}
