//! Warnings to the user: the host language says how they are told. Without a host nobody is there to be told.

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
pub fn caution(text: &str) -> Result<()> {
    TELL.get().map_or(Ok(()), |tell| tell(text))
}

static ALWAYS: AtomicBool = AtomicBool::new(false);

/// Whether what is told once is to be told each time.
pub fn set_always(always: bool) {
    ALWAYS.store(always, Ordering::Relaxed);
}

pub fn is_always() -> bool {
    ALWAYS.load(Ordering::Relaxed)
}

/// The same, once only.
#[cold]
pub fn caution_once(told: &AtomicBool, text: &str) -> Result<()> {
    if told.swap(true, Ordering::Relaxed) && !is_always() { Ok(()) } else { caution(text) }
}
