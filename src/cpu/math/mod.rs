//! The functions that operators' formulas call. `f32`, `f64` and `i64` define functions of the same names for their
//! compute type, and so does the GPU's prelude. All of them are inlined into loops that the compiler vectorizes, so
//! nearly all are free of branches. The compiler fuses no operations by itself, so every machine gives the same bits.

pub mod airy;
mod angle;
pub mod bessel;
mod common;
pub mod complex;
mod erf;
mod exact;
mod exponential;
pub mod f32;
pub mod f64;
pub mod fast_ranges;
mod float;
pub mod i64;
pub mod narrow;
pub mod normal;
pub mod polynomial;
mod power;
mod special;

pub use complex as c128;
pub use complex::single as c64;
