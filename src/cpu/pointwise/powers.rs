//! Constant exponents that need no logarithm have loops of their own, which rows declare.

use super::{Loop, Loops};
use crate::base::{DType, Scalar};

/// An expression for one exponent.
pub struct Power {
    pub exponent: f64,
    pub loops: Loops,
    /// The expression's text, for shaders.
    pub wgsl: &'static str,
}

/// The expression for this exponent, if there is one.
pub fn known(loops: &Loops, exponent: Scalar) -> Option<&'static Power> {
    let same = |power: &&Power| power.exponent == exponent.as_f64() && exponent.imaginary() == 0.0;
    loops.powers.iter().find(same)
}

/// The loop for this exponent, of an expression that has some.
#[cold]
pub fn chosen(loops: &Loops, exponent: Scalar, compute: DType) -> Option<&'static Loop> {
    known(loops, exponent)?.loops.of(compute)
}
