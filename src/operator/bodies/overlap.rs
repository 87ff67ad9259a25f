//! Checks for memory overlap: within a target that is written, or with a source.

use crate::base::{Error, Result};
use crate::tensor::{Body, Tensor};

/// `None` if a source does not overlap a target; true if it covers exactly the same elements. Only dense
/// tensors are checked, because those with gaps may interleave.
fn overlap(target: &Body, source: &Body) -> Option<bool> {
    let dense = |b: &Body| b.numel() > 0 && b.layout.is_dense();
    if !target.storage.same(&source.storage) || !dense(target) || !dense(source) {
        return None;
    }
    let (to, from) = (target.byte_range(), source.byte_range());
    let meets = to.0 < from.1 && from.0 < to.1;
    meets.then(|| to == from && target.layout.strides == source.layout.strides)
}

fn overlap_error() -> Error {
    Error::runtime(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory \
         location. Please clone() the tensor before performing the operation.",
    )
}

/// Returns an error if a source overlaps the tensor that it is written into.
pub fn check_disjoint(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.same(source) { Err(overlap_error()) } else { check_apart(&target.body(), &source.body()) }
}

/// Returns an error if a source overlaps its target.
pub fn check_apart(target: &Body, source: &Body) -> Result<()> {
    if overlap(target, source).is_some() { Err(overlap_error()) } else { Ok(()) }
}

/// Returns an error if an operand overlaps its target, unless both have the same layout.
pub fn check_aligned(target: &Body, source: &Body) -> Result<()> {
    if overlap(target, source) == Some(false) { Err(overlap_error()) } else { Ok(()) }
}

/// Returns an error if several elements of the body share memory.
pub fn check_writable(body: &Body) -> Result<()> {
    if body.layout.is_expanded() { Err(refuse_expanded()) } else { Ok(()) }
}

#[cold]
pub fn refuse_expanded() -> Error {
    Error::runtime(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
         Please clone() the tensor before performing the operation.",
    )
}

/// True if two bodies share bytes but have different layouts.
pub fn overlaps(a: &Body, b: &Body) -> bool {
    a.storage.same(&b.storage)
        && (a.layout != b.layout || a.dtype != b.dtype)
        && a.layout.offset < b.layout.end()
        && b.layout.offset < a.layout.end()
}
