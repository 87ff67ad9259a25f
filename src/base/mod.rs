//! Plain values that all modules use: dtypes, scalars, devices, shapes, layouts, errors. Nothing here makes
//! tensors, runs kernels or knows the graph.

mod conj_neg;
mod default_dtype;
mod device;
mod dtype;
mod error;
pub mod float8;
pub mod format;
pub mod group;
mod guidance;
pub mod kernel_args;
mod layout;
mod once_box;
pub mod profile;
mod promotion;
mod scalar;
mod shape;
pub mod signals;
mod sync;
pub mod try_alloc;
pub mod views;
pub mod warning;
pub mod watch;

pub use conj_neg::ConjNeg;
pub use default_dtype::{default_dtype, set_default_dtype};
pub use device::{Device, GpuName};
pub use dtype::{Category, DType};
pub use error::{Error, Fault, Result, SOME_KERNEL};
pub use format::{MemoryFormat, StridedLayout};
pub use guidance::{Guidance, LINES_HINT, SourceLine};
pub use kernel_args::{Alignments, LossReduction, Put, Reduction, ResampleWeights, Windows};
pub use layout::{IndexBy, Layout, Strided};
pub use once_box::OnceBox;
pub use scalar::Scalar;
pub use shape::{Dims, broadcast, contiguous_strides, dims_or_all, existing_dim, numel, wrap_dim};
pub use sync::lock;
pub use warning::{warn, warn_once};

/// Formats a shape like PyTorch's messages: `[2, 3]`.
pub fn show(dims: &[usize]) -> String {
    format!("{dims:?}")
}
