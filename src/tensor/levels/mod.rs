//! The active transforms of a thread, and how tensors look from inside them: `func`, `vmap` with its batched
//! tensors, and forward mode with its tangents.

pub(crate) mod batched;
pub mod func;
pub mod tangents;
pub mod vmap;
