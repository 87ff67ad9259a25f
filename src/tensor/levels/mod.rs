//! The active `vmap` calls and `func` transforms of a thread, and how tensors look from inside them.

pub mod func;
pub mod vmap;
