//! Products of matrices, and what is made of them.

pub mod einsum;
pub mod matmul;
pub mod product;
pub mod tensordot;

// Where these stood before.
#[allow(unused_imports, reason = "a bridge")]
pub use matmul::*;
