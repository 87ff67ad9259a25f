//! Backward, gradient edges, and the methods of nodes, for `autograd`.

pub mod backward;
pub mod gradient_edge;
pub mod graph_task;
pub mod nested_backward;
pub mod node_methods;
pub mod reached;
