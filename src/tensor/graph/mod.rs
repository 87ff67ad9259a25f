//! The contents of nodes: saved values, hooks on them, how nodes are recorded, facts for Python and for error
//! messages.

mod again;
pub mod anomaly;
pub mod describe;
pub mod facts;
pub mod recorder;
pub mod saved;
pub mod saved_hooks;
