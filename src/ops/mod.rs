//! The operators. Each has a row; a file holds a family of operators, a folder a topic.

pub mod complex;
pub mod creation;
mod derivatives;
pub mod elementwise;
pub mod fft;
pub mod indexing;
pub mod linalg;
pub mod nn;
pub(crate) mod prelude;
pub mod random;
pub mod reduction;
pub mod shape;
pub mod sorting;
pub mod sparse;
pub mod special;

pub fn pointwise_rows() -> impl Iterator<Item = &'static crate::operator::pointwise::Pointwise> {
    [
        crate::operator::primitives::addition::ROWS,
        elementwise::arithmetic::ROWS,
        elementwise::arithmetic::LIKE,
        elementwise::unary::ROWS,
        elementwise::compare::ROWS,
        elementwise::differences::ROWS,
        nn::activation_formulas::ROWS,
        nn::loss_formula::ROWS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

pub fn rows() -> impl Iterator<Item = &'static crate::operator::Row> {
    pointwise_rows().map(|p| &p.row).chain(crate::operator::rows().iter().copied())
}
