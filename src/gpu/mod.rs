//! The GPU, through wgpu: kernels over buffers and layouts, without tensors. Nothing here happens before
//! the first call. An operator without a shader for a dtype raises; nothing is moved to the CPU implicitly.
//!
//! A launch is recorded, not run: `stream` batches launches, and only a read waits. `stored` defines how
//! dtypes are stored in buffers, `code` writes WGSL, `prelude` holds the scalar functions, `index_space`
//! turns shapes into parameters, and `fault` reports faults that kernels find in values.

mod code;
mod conv;
mod create;
mod ctc;
mod device;
mod expect;
mod fault;
mod index;
mod index_space;
mod map;
mod map_code;
mod matmul;
mod matmul_code;
pub mod nll;
pub mod norm;
mod pipeline;
mod pool;
mod pooling;
mod prelude;
mod program;
mod recurrent;
mod reduce;
mod reduce_code;
mod resample;
mod row_walk;
mod scan;
mod search;
mod segments;
mod select;
mod softmax;
mod sort;
mod spirv;
mod stored;
mod stream;
mod table;
mod transfer;
mod transpose;
mod unfold;

pub use conv::{conv_backward_input, conv_backward_weight, conv_forward};
pub use create::{
    Draw, arange, bernoulli, cauchy, exponential, geometric, linspace, log_normal, normal, randint, randperm,
    triangle, uniform,
};
pub use ctc::{ctc, ctc_backward};
pub use device::{Info, available, check_ordinal, count, info, is_open};
pub use expect::expect;
pub use fault::{Origin, Wrong};
pub use index::{IndexBy, index_get, index_put};
pub use map::{Expr, copy, fill, flip, pointwise};
#[cfg(test)]
#[allow(unused_imports, reason = "for the tests of whoever has expressions")]
pub(crate) use map_code::validate_expression;
pub use matmul::matmul;
pub use pool::{Buffer, Memory, alloc, empty_cache, memory, reset_peak, set_cap};
pub use pooling::{avg_pool, max_pool, max_pool_backward};
pub use program::{MAX_OPERANDS, program};
pub use recurrent::{recurrent, recurrent_backward};
pub use reduce::{max_with_index, mean, reduce, var};
pub use resample::resample;
pub use scan::{Scan, cum_extreme, scan};
pub use search::search;
pub use select::{masked_select, nonzero};
pub use softmax::{softmax, softmax_backward};
pub use sort::sort;
pub use stream::{dispatches, report_faults, submits, synchronize, waits};
pub use table::{add_rows, is_few};
pub use transfer::{download, upload};
pub use unfold::{fold, unfold};

use crate::base::{DType, Scalar, numel};

/// GPU memory with a layout. Strides and offset count elements.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub buffer: &'a Buffer,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
    pub offset: usize,
}

impl View<'_> {
    pub fn numel(&self) -> usize {
        numel(self.shape)
    }
}

/// An operand: a view, or a number.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    View(View<'a>),
    Scalar(Scalar),
}

#[cfg(test)]
mod tests;
