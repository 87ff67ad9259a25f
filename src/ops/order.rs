//! In which order the dimensions of a pointwise result lie in memory.

use super::arithmetic::pow_number;
use super::pointwise::{Class, Plan, Pointwise};
use crate::base::Layout;
use crate::base::views::{dense_like, ordered_strides};
use crate::tensor::BodyRef;
use smallvec::SmallVec;

/// Results keep their operands' order of dimensions (a choice asks its condition first); powers of a number do not.
pub fn kept(op: &Pointwise, plan: &Plan, bodies: &[Option<BodyRef>]) -> Option<Layout> {
    let mut found: SmallVec<[&Layout; 4]> =
        bodies.iter().flatten().map(|b| &b.layout).filter(|l| l.ndim() > 0).collect();
    if found.iter().all(|l| l.is_contiguous()) || std::ptr::eq(op, &pow_number::ROW) {
        return None;
    }
    if op.class == Class::Choose {
        found.reverse();
    }
    if let [only] = found.as_slice()
        && only.shape == plan.shape
    {
        return Some(dense_like(only));
    }
    let wide: SmallVec<[Layout; 4]> = found.iter().map(|l| l.broadcast_to(&plan.shape)).collect();
    let strides: SmallVec<[&[usize]; 4]> = wide.iter().map(|l| l.strides.as_slice()).collect();
    Some(Layout { shape: plan.shape.clone(), strides: ordered_strides(&plan.shape, &strides), offset: 0 })
}
