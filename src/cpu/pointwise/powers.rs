//! Constant exponents that need no logarithm have loops of their own, which rows declare.

use super::{Loop, Loops};
use crate::base::{DType, Scalar};

/// The loop for this exponent, of an expression that has some.
#[cold]
pub fn chosen(loops: &Loops, exponent: Scalar, compute: DType) -> Option<&'static Loop> {
    let same = |known: f64| known == exponent.as_f64() && exponent.imaginary() == 0.0;
    loops.powers.iter().find(|(known, _)| same(*known)).and_then(|(_, loops)| loops.of(compute))
}
