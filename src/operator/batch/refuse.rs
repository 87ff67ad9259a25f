//! Errors of `vmap`: for result shapes that depend on values, and for operators without a batching rule.

use crate::base::Error;

/// The error for operators whose result shape depends on values.
pub fn refuse_dynamic(name: &str) -> Error {
    Error::runtime(format!(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}."
    ))
}

/// The error for operators that return a number or a list.
pub fn refuse_rule(name: &str) -> Error {
    Error::runtime(format!(
        "Batching rule not implemented for aten::{name}. We could not generate a fallback."
    ))
}

pub fn refuse_mask() -> Error {
    Error::runtime(
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with \
         a boolean mask.",
    )
}
