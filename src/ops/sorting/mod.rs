//! Order among elements: sorting, searching, what differs.

pub mod search;
pub mod sort;
pub mod unique;
