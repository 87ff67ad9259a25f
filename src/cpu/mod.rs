//! Kernels over host memory. They see bytes through layouts ([`crate::base::Strided`]) and know no tensors.

pub mod cast;
mod element;
mod line;
pub mod index;
pub mod math;
pub mod matmul;
pub mod par;
pub mod pointwise;
pub mod reduce;
pub(crate) mod simd;
//SORT pub mod sort;
mod walk;
