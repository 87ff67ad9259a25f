//! What nodes saved, as Python sees it.

pub mod arguments;
pub mod names;
pub mod values;
