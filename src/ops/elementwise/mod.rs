//! Pointwise operators, and the functions that formulas of derivatives use.

pub mod arithmetic;
pub mod compare;
#[cfg(feature = "gpu")]
pub mod complex_numbers;
pub mod differences;
#[cfg(test)]
mod example;
pub mod float_parts;
pub mod formula;
pub mod gcd;
pub mod power;
pub mod unary;
