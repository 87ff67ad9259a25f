//! Loops for constant exponents that need no logarithm; rows declare them.

use super::{Loop, Loops};
use crate::base::{DType, Scalar};

/// An expression for one exponent.
pub struct Power {
    pub exponent: f64,
    pub loops: Loops,
    /// The text of the expression, for shaders.
    pub wgsl: &'static str,
}

/// The expression for this exponent, if there is one.
pub fn find(loops: &Loops, exponent: Scalar) -> Option<&'static Power> {
    let same = |power: &&Power| power.exponent == exponent.as_f64() && exponent.imaginary() == 0.0;
    loops.powers.iter().find(same)
}

/// The loop for this exponent, if there is one.
#[cold]
pub fn choose(loops: &Loops, exponent: Scalar, compute: DType) -> Option<&'static Loop> {
    find(loops, exponent)?.loops.of(compute)
}
