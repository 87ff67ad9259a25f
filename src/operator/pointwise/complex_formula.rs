//! Formulas of pointwise rows for complex numbers in terms of their real and imaginary parts.

use crate::operator::grad_value::V;

/// A complex number or tensor, as real and imaginary parts.
#[derive(Clone)]
pub struct Complex {
    pub re: V,
    pub im: V,
}

/// The result of such a formula.
pub enum Made {
    Complex(Complex),
    Real(V),
}

/// An operator in terms of the parts of its operands. `None` if the number of operands does not fit.
pub type Formula = fn(&[Complex]) -> Option<Made>;

impl From<Complex> for Made {
    fn from(value: Complex) -> Made {
        Made::Complex(value)
    }
}
impl From<V> for Made {
    fn from(value: V) -> Made {
        Made::Real(value)
    }
}

impl Complex {
    pub fn new(re: V, im: V) -> Complex {
        Complex { re, im }
    }
}
