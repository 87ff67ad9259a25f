//! How shapes and strides become the parameters of a launch.

pub mod index_space;
pub mod row_walk;
