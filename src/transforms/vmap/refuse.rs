//! What a `vmap` refuses: results whose shapes depend on values, and what has no rule.

use crate::base::Error;

/// Refuses operators whose result's shape depends on values.
pub fn refuse_dynamic(name: &str) -> Error {
    Error::runtime(format!(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}."
    ))
}

/// What gives Python a number or a list.
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
