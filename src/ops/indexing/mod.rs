//! Operators that read and write at indices or masks.

pub mod advanced;
pub mod combinations;
pub mod index;
pub mod index_put;
pub mod index_reduce;
pub mod masked;
pub mod nonzero;
pub mod scatter;
pub mod scatter_reduce;
pub mod slice_checks;
pub mod take;
