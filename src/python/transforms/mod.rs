//! vmap, forward mode and func as Python drives them.

pub mod forward;
pub mod func;
pub mod vmap;
