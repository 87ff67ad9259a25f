//! How shapes and strides become the parameters of a launch, and how launches are kept.

pub mod index_space;
pub mod kept;
pub mod row_walk;
