//! The Tensor class beside its operators.

pub mod attributes;
pub mod index;
pub mod methods;
pub mod properties;
