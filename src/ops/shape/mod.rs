//! Operators that change the shape: views and copies of the same elements.

pub mod as_strided;
pub mod block_diag;
pub mod join;
pub mod rearrange;
pub mod slices;
pub mod split;
pub mod squeeze;
pub mod triangle;
pub mod view;
pub mod view_copies;
pub mod view_scatter;
