//! Custom Functions.

pub mod apply;
pub mod batched;
pub mod context;
pub mod function_node;
pub mod options;
pub mod outputs;
pub mod tangents;
