//! Kernels over host memory. They see bytes through layouts ([`crate::base::Strided`]) and know no tensors.

pub mod attention;
pub mod cast;
pub mod conv;
mod element;
pub mod flip;
pub mod index;
mod line;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod par;
pub mod pointwise;
pub mod pool;
pub mod program;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod sequence;
pub(crate) mod simd;
pub mod softmax;
pub mod sort;
pub mod triangle;
pub mod unfold;
mod walk;
