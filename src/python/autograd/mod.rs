//! What `autograd` calls: backward, gradient edges, and what a node can be asked.

pub mod backward;
pub mod gradient_edge;
pub mod graph_task;
pub mod nested_backward;
pub mod node_methods;
pub mod reached;
