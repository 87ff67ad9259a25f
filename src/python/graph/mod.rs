//! The graph as Python sees it: backward, nodes, hooks, and the collector.

pub mod autograd;
pub mod callable_hook;
pub mod collector;
pub mod grad_cycles;
pub mod gradient_edge;
pub mod graph_task;
pub mod hooks;
pub mod metadata;
pub mod nested_backward;
pub mod node;
pub mod node_methods;
pub mod tensor_or_edge;
