//! The Tensor class, except for its operators.

pub mod attributes;
pub mod coo;
pub mod index;
pub mod methods;
pub mod properties;
