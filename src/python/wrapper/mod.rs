//! The Python objects that stand for tensors and nodes: which one stands for which, and when the collector may free it.

pub mod class;
pub mod collector;
pub mod grad_cycles;
pub mod host_state;
pub mod identity;
