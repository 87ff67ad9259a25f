//! Matrix products, factorisations, and functions composed of them.

pub mod add_product;
pub mod cholesky;
pub mod eig;
pub mod eigh;
pub mod einsum;
mod factors;
pub mod functions;
pub(crate) mod gemm;
pub mod inverse;
pub mod ldl;
pub mod lu;
pub mod matmul;
pub mod norms;
pub mod product;
pub mod qr;
pub mod roots;
pub mod solve;
pub mod svd;
pub mod tensordot;
pub mod triangular;
pub mod vander;
