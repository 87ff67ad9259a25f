//! Custom Functions.

pub mod apply;
pub mod context;
pub mod function_node;
pub mod outputs;
