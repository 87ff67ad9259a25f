//! Arguments that the kernels of both backends read.

mod alignments;
pub mod pool;
mod put;
pub mod recurrent;
mod reduction;
mod resample_weights;
mod windows;

pub use alignments::Alignments;
pub use put::Put;
pub use reduction::{LossReduction, Reduction};
pub use resample_weights::ResampleWeights;
pub use windows::Windows;
