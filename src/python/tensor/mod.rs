//! The Tensor class beside its operators.

pub mod attributes;
pub mod class;
pub mod host_state;
pub mod index;
pub mod methods;
pub mod properties;
