//! The GPU, through wgpu: kernels over buffers and layouts, without tensors. Nothing here happens before
//! the first call. An operator without a shader for a dtype raises; nothing is moved to the CPU implicitly.
//!
//! `shader` writes WGSL. `device` holds the adapter, its memory, its compiled shaders and its queue: a launch is recorded, and
//! only a read waits. `launch` turns shapes into parameters, and keeps launches. `kernels` has one file for each kind, named as
//! in `src/cpu`.

mod device;
mod kernels;
mod launch;
mod shader;

pub use device::fault::{Origin, Wrong};
pub use device::memory::{Buffer, Memory, alloc, empty_cache, memory, reset_peak, set_cap};
pub use device::stream::{dispatches, launches_here, report_faults, submits, synchronize, waits};
pub use device::view::{Source, View};
pub use device::{Info, available, check_ordinal, computes, count, info, is_open};
pub use kernels::columns::sum_columns;
pub use kernels::conv::{conv_backward_input, conv_backward_weight, conv_forward};
pub use kernels::ctc::{ctc, ctc_backward};
pub use kernels::embedding::{add_rows, is_few};
pub use kernels::expect::expect;
pub use kernels::group::{has_shader, run_group, run_group_over};
pub use kernels::index::{IndexBy, index_get, index_put};
pub use kernels::matmul::{add_matmul, matmul};
#[cfg(test)]
#[allow(unused_imports, reason = "for the tests of whoever has expressions")]
pub(crate) use kernels::pointwise::code::validate_expression;
pub use kernels::pointwise::{Expr, copy, fill, flip, pointwise};
pub use kernels::pool::{avg_pool, max_pool, max_pool_backward};
pub use kernels::random::{
    Draw, bernoulli, cauchy, exponential, geometric, log_normal, normal, randint, randperm, uniform,
};
pub use kernels::reduce::{max_with_index, mean, reduce, var};
pub use kernels::resample::resample;
pub use kernels::rnn::{recurrent, recurrent_backward};
pub use kernels::row_group::{Level, run_row_group};
pub use kernels::scan::{Scan, cum_extreme, scan};
pub use kernels::search::search;
pub use kernels::select::{masked_select, nonzero};
pub use kernels::sequence::{arange, linspace};
pub use kernels::softmax::{softmax, softmax_backward};
pub use kernels::sort::sort;
pub use kernels::transfer::{download, upload};
pub use kernels::triangle::triangle;
pub use kernels::unfold::{fold, unfold};
pub use kernels::{nll, norm};
pub use launch::kept::{Launches, keep};

#[cfg(test)]
mod tests;
