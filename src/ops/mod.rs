//! The operators: one row each, in one file a family, in one folder a topic.

pub mod complex;
pub mod creation;
pub mod elementwise;
pub mod fft;
pub mod indexing;
pub mod linalg;
pub mod nn;
pub mod random;
pub mod reduction;
pub mod shape;
pub mod sorting;
pub mod special;

// Where things stood before: for branches on their way.
#[allow(unused_imports, reason = "a bridge")]
mod bridge {
    pub use super::creation::{create, fill as write};
    pub use super::elementwise::{arithmetic, compare, differences, formula as formal, power, unary};
    pub use super::indexing::{
        advanced, index, index_reduce, nonzero as positions, scatter, scatter_reduce,
        slice_checks as slice_rules,
    };
    pub use super::linalg::{einsum, product, tensordot as contract};
    pub use super::nn::{loss, loss_classes, loss_formula, pad};
    pub use super::reduction::{areas, extrema, reduce, scan, softmax, spread as stats};
    pub use super::shape::{join, split, triangle, view, view_copies as copies, view_scatter};
    pub use super::sorting::{search, sort, unique};
    pub use crate::operator::pointwise::small as quick;
    pub use crate::operator::*;
    pub use crate::operator::{
        conj_neg as lazy, copy_slices, devices, dtype_checks as refuse, inplace, kernel, names, operand, out,
        pointwise, program, record, row, view_part,
    };
    pub use crate::transforms::{forward as tangent, func as transform, vmap as batch};
}
#[allow(unused_imports, reason = "a bridge")]
pub use bridge::*;

pub fn pointwise_rows() -> impl Iterator<Item = &'static crate::operator::pointwise::Pointwise> {
    [
        elementwise::arithmetic::ROWS,
        elementwise::arithmetic::RENAMED,
        elementwise::unary::ROWS,
        elementwise::compare::ROWS,
        elementwise::differences::ROWS,
        nn::activation_formulas::ROWS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Every row, by family.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    pointwise_rows().map(|p| &p.row).chain(crate::operator::rows().iter().copied())
}
