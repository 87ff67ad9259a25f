//! The graph as Python sees it: backward, nodes, hooks, and the collector.

pub mod autograd;
pub mod collector;
pub mod grad_cycles;
pub mod hooks;
pub mod metadata;
pub mod nested_backward;
pub mod node;
