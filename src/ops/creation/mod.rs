//! Tensors from sizes and numbers, by conversion, and by filling.

pub mod create;
pub mod factories;
pub mod fill;
pub mod ranges;
