//! The values that nodes saved, as Python attributes.

pub mod arguments;
pub mod names;
pub mod values;
