//! The Python side of vmap, forward mode and func.

pub mod forward;
pub mod func;
pub mod vmap;
