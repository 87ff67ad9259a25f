//! Leaves: their `.grad`, and the node of a leaf whose tensor is gone.

pub mod grad;
pub mod grad_changes;
pub mod grad_epoch;
pub mod grad_type;
pub mod orphan;
