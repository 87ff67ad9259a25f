//! Capture and replay: the kernels that a thread runs are written down, and run again without Python, without operators
//! and without a graph. A kernel is captured where it meets its memory (`fork!`, pointwise rows, groups), so that
//! forward, backward, higher derivatives, optimizers and random numbers are captured alike.

mod again;
mod backward;
mod call;
mod copies;
mod decision;
mod draws;
mod effects;
mod graph;
mod group;
mod kind;
mod live;
mod memory;
mod once;
mod order;
mod origins;
mod pointwise;
mod program;
mod recorder;
mod replay;
mod results;
mod retain;
mod shader;
mod storages;
#[cfg(test)]
mod tests;

pub use backward::BackwardCounts;
pub use call::Call;
pub use decision::{Asked, decide, read};
pub use draws::{Restore, Rewind};
pub use group::Counts;
pub use kind::Kind;
pub use live::live_tensor;
pub use pointwise::Input;
pub use program::{Captured, Failed};
pub use recorder::{Capture, LiveNumber, Recorder, constant, describe, describe_fold, record, run};
pub use replay::{Program, Replayed};
pub(crate) use retain::retain_copy;
pub use retain::{Copied, Retain, See, Whole};
pub use shader::Shader;
