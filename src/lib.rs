//! gradiron: PyTorch's autograd as a small Rust extension.
//!
//! The rooms, from the ground up; each uses only those above it in this list:
//! [`base`] plain values, [`arena`] a slot pool; [`cpu`] and [`gpu`] kernels over bytes; [`storage`] counted bytes;
//! [`tensor`] tensors and the graph; [`capture`] kernels that are written down and run again; [`operator`] how operators are declared and run; [`ops`] the operators, one row each; [`backward`] the scheduler; `python` the face.

pub mod arena;
pub mod backward;
pub mod base;
pub mod capture;
pub mod cpu;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod operator;
pub mod ops;
#[cfg(feature = "python")]
mod python;
pub mod storage;
pub mod tensor;

#[cfg(feature = "python")]
#[global_allocator]
static ALLOCATOR: storage::reserve::Allocator = storage::reserve::Allocator;
