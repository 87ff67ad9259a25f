//! Leaves: their `.grad`, and what stays of one whose tensor is gone.

pub mod grad;
pub mod grad_type;
pub mod orphan;
