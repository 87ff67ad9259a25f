//! What stands between a call and its operator: samples (`vmap`), tangents (forward mode), functions that are differentiated.

pub mod forward;
pub mod func;
pub mod vmap;

/// What transforms make of the calls of pointwise rows.
pub static POINTWISE: crate::operator::pointwise::Transforms = crate::operator::pointwise::Transforms {
    batch: vmap::apply,
    batch_inplace: vmap::apply_inplace,
    tangent: forward::pointwise,
    tangent_inplace: forward::write_pointwise,
};
