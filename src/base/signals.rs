//! Ctrl-C, for loops whose length a caller chooses: the host language says whether its user wants to stop.

use super::Result;
use std::sync::OnceLock;

type Look = fn() -> Result<()>;

static LOOK: OnceLock<Look> = OnceLock::new();

/// What looks for a signal.
pub fn set_host(look: Look) {
    let _ = LOOK.set(look);
}

/// An error when the user wants to stop.
pub fn check() -> Result<()> {
    LOOK.get().map_or(Ok(()), |look| look())
}
