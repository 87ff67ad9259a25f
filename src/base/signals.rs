//! Ctrl-C in loops whose length the user chooses: the host language checks for it.

use super::Result;
use std::sync::OnceLock;

type Look = fn() -> Result<()>;

static LOOK: OnceLock<Look> = OnceLock::new();

/// Sets the function that checks for a signal.
pub fn set_host(look: Look) {
    let _ = LOOK.set(look);
}

/// Returns an error if the user has interrupted the program.
pub fn check() -> Result<()> {
    LOOK.get().map_or(Ok(()), |look| look())
}
