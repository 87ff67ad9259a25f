//! What a thread or the process has switched on, and what watches it.

pub mod anomaly;
pub mod autocast;
pub mod default_device;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod profile;
pub mod threads;
