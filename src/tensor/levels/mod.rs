//! The calls of `vmap` and the transforms of `func` that are under way in a thread, and what they show of its tensors.

pub mod func;
pub mod vmap;
