//! Operators that create, convert and fill tensors.

pub mod create;
pub mod factories;
pub mod fill;
pub mod ranges;
