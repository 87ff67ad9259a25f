//! Sorting, searching, and finding unique elements.

pub mod search;
pub mod sort;
pub mod unique;
