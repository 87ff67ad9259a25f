//! Nodes of the graph as Python objects, and their hooks.

pub mod callable_hook;
pub mod hooks;
pub mod metadata;
pub mod node;
pub mod tensor_or_edge;
