//! The kernels, one file for each kind, named as in `src/cpu`.

pub mod conv;
pub mod ctc;
pub mod embedding;
pub mod expect;
pub mod group;
pub mod index;
pub mod matmul;
pub mod nll;
pub mod norm;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod resample;
pub mod rnn;
pub mod scan;
pub mod search;
pub mod segments;
pub mod select;
pub mod sequence;
pub mod softmax;
pub mod sort;
pub mod transfer;
pub mod transpose;
pub mod triangle;
pub mod unfold;
