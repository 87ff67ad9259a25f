//! Formulas of pointwise rows for complex numbers in terms of their real and imaginary parts.

use crate::operator::row::grad_value::V;

/// A complex number or tensor, as real and imaginary parts.
#[derive(Clone)]
pub struct Complex {
    pub re: V,
    pub im: V,
}

/// The result of such a formula.
pub enum FormulaResult {
    Complex(Complex),
    Real(V),
}

/// An operator in terms of the parts of its operands. `None` if the number of operands does not fit.
pub type Formula = fn(&[Complex]) -> Option<FormulaResult>;

impl From<Complex> for FormulaResult {
    fn from(value: Complex) -> FormulaResult {
        FormulaResult::Complex(value)
    }
}
impl From<V> for FormulaResult {
    fn from(value: V) -> FormulaResult {
        FormulaResult::Real(value)
    }
}

impl Complex {
    pub fn new(re: V, im: V) -> Complex {
        Complex { re, im }
    }
}
