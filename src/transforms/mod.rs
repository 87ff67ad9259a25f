//! What stands between a call and its operator: samples (`vmap`), tangents (forward mode), functions that are differentiated.

pub mod forward;
pub mod func;
pub mod vmap;
