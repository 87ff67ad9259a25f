//! The Python objects of tensors and nodes: the mapping from values to objects, and the support for the
//! garbage collector.

pub mod class;
pub mod collector;
pub mod grad_cycles;
pub mod host_state;
pub mod identity;
