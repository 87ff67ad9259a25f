//! Leaves: their `.grad`, and what stays of one that nobody holds.

pub mod grad;
pub mod grad_type;
pub mod orphan;
