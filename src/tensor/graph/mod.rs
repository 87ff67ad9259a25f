//! What nodes keep and tell: saved values and their hooks, how they are recorded, what is known of them.

pub mod anomaly;
pub mod describe;
pub mod facts;
pub mod recorder;
pub mod saved;
pub mod saved_hooks;
