//! Anomaly mode: nodes remember where their forward call stood, and a backward that fails or makes NaN tells it.
//! The host language says where it stands and shows the report; here are only the switches.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

static MODE: AtomicU8 = AtomicU8::new(0);
static HOST: OnceLock<Host> = OnceLock::new();

const ON: u8 = 1;
const CHECK: u8 = 2;

/// What the host language does for this mode.
pub struct Host {
    /// The user's present lines, for people.
    pub here: fn() -> Option<String>,
    /// Shows a report as a warning.
    pub tell: fn(&str),
}

pub fn set_host(host: Host) {
    let _ = HOST.set(host);
}

pub fn set(on: bool, check_nan: bool) {
    MODE.store(u8::from(on) * ON + u8::from(check_nan) * CHECK, Ordering::Relaxed);
}

#[inline]
pub fn enabled() -> bool {
    MODE.load(Ordering::Relaxed) & ON != 0
}

pub fn checks_nan() -> bool {
    MODE.load(Ordering::Relaxed) & CHECK != 0
}

/// Where the user's program stands, when the mode is on.
#[inline]
pub fn trace() -> Option<Box<str>> {
    if enabled() { HOST.get().and_then(|h| (h.here)()).map(Into::into) } else { None }
}

/// Tells which forward call made the node that failed.
pub fn report(name: &str, trace: Option<&str>) {
    let Some(host) = HOST.get() else { return };
    (host.tell)(&match trace {
        Some(trace) => {
            format!("Error detected in {name}. Traceback of forward call that caused the error:\n{trace}")
        }
        None => format!(
            "Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass \
             for more information."
        ),
    });
}
