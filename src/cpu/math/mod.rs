//! The vocabulary of the operators' formulas, once per compute type: `f32`, `f64` and `i64` hold functions of the same
//! names, and so does the GPU's prelude. Everything is inlined into loops that the compiler vectorises, so nearly all
//! of it is free of branches; nothing is left to the compiler to fuse, so every machine gives the same bits.

pub mod airy;
mod angle;
pub mod bessel;
mod common;
pub mod complex;
mod erf;
mod exponential;
pub mod f32;
pub mod f64;
pub mod fast_ranges;
pub mod i64;
pub mod narrow;
pub mod normal;
pub mod polynomial;
mod power;
mod special;

pub use complex as c128;
pub use complex::single as c64;
