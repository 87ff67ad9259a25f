//! Modes of a thread or of the process: anomaly detection, autocast, default device, profiler, threads.

pub mod anomaly;
pub mod autocast;
pub mod capture;
pub mod default_device;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod profile;
pub mod threads;
