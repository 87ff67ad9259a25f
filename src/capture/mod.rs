//! Capture and replay: the kernels that a thread runs are written down, and run again without Python, without operators
//! and without a graph. A kernel is captured where it meets its memory (`fork!`, pointwise rows, groups), so that
//! forward, backward, higher derivatives, optimizers and random numbers are captured alike.

mod group;
mod memory;
mod order;
mod pointwise;
mod program;
mod recorder;
mod retain;

pub use group::Counts;
pub use pointwise::Input;
pub use program::Captured;
pub use recorder::{Capture, Recorder, describe, record, run};
pub use retain::{Copied, Retain, See, Whole};
pub(crate) use retain::{retain_clone, retain_copy};
