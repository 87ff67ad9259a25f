//! gradiron: PyTorch's autograd as a small Rust extension, and as a Rust library.
//!
//! ```
#![doc = include_str!("../examples/quickstart.rs")]
//! ```
//!
//! A [`Tensor`] has the operators that most programs call as methods; [`ops`] has all of them as functions. What can fail returns a
//! [`Result`], `+ - * /` too. The features: `gpu` runs on any GPU, by wgpu; `python` is the extension module.
//!
//! The rooms, from the ground up; each uses only those above it in this list:
//! [`base`] plain values, [`arena`] a slot pool; [`cpu`] and `gpu` kernels over bytes; [`storage`] counted bytes;
//! [`tensor`] tensors and the graph; [`capture`] kernels that are written down and run again; [`operator`] how operators are declared and run; [`ops`] the operators, one row each; [`backward`] the scheduler; [`api`] the face towards Rust, and `python` that
//! towards Python.

// Captured kernels keep launches, whose types in wgpu are nested deeply.
#![recursion_limit = "256"]

pub mod api;
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

pub use api::{grad, manual_seed, no_grad};
pub use base::{DType, Device, Error, Scalar};
pub use tensor::Tensor;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What most programs need: `use gradiron::prelude::*`.
pub mod prelude {
    pub use crate::{DType, Device, Result, Scalar, Tensor, grad, manual_seed, no_grad};
}

#[cfg(feature = "python")]
#[global_allocator]
static ALLOCATOR: storage::reserve::Allocator = storage::reserve::Allocator;
