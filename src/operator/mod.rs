//! The machinery of operators, which knows none: what a row says ([`row`], facts), and how a call of a primitive runs
//! ([`primitive`]). `docs/rows.md` explains the language that families write.

pub mod batch;
pub mod derivative;
pub mod inplace_view;
pub mod moving;
pub mod primitive;
mod registry;
pub mod results;

/// What a family's file begins with.
#[allow(unused_imports, reason = "it is for rows to come, too")]
pub(crate) mod prelude {
    pub use super::batch::Batch;
    pub use super::derivative::Unread;
    pub use crate::base::{DType, Device, Dims, Error, Fault, Layout, Lazy, Result, Scalar, wrap_dim};
    pub use crate::ops::formal::*;
    pub use crate::ops::kernel::{at_least_vector, drop_dims, kept_shape, with_shape};
    pub(crate) use crate::ops::kernel::{done, fork};
    pub use crate::ops::{Arg, Ints, Several, Sizes, V, Value};
    pub use crate::tensor::{Body, Meta, Tensor};
    pub use gradiron_macros::{inplace, operator, overload, primitive};
}

pub use crate::base::{Error, Result};
pub use crate::ops::{
    Arg, Forms, FromArg, Ints, Kind, Out, OutFacts, OutRule, Param, Returned, Row, Short, Sizes, V, take,
};
pub use crate::tensor::{Body, Derivative, Grads, Meta, Step, Tensor, facts};
pub use registry::{Registered, rows};
pub use smallvec;

/// What the macros' code calls.
pub use inventory;

/// The family that a source file stands for: `softmax` for `src/ops/softmax.rs`.
pub const fn family(file: &'static str) -> &'static str {
    let bytes = file.as_bytes();
    let (mut start, mut end) = (0, bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'/' || bytes[i] == b'\\' {
            start = i + 1;
        }
        if bytes[i] == b'.' {
            end = i;
        }
        i += 1;
    }
    match std::str::from_utf8(bytes.split_at(end).0.split_at(start).1) {
        Ok(name) => name,
        Err(_) => file,
    }
}
