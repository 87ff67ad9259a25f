//! Custom Functions.

pub mod apply;
pub mod batched;
pub mod context;
pub mod function_node;
mod listed;
pub mod options;
pub mod outputs;
pub mod tangents;
