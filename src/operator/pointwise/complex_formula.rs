//! The reading of a pointwise row over complex numbers by their parts.

use crate::operator::grad_value::V;

/// A complex number, or a tensor of them, by its parts.
#[derive(Clone)]
pub struct Complex {
    pub re: V,
    pub im: V,
}

/// What an operator makes of complex numbers.
pub enum Made {
    Complex(Complex),
    Real(V),
}

/// What an operator makes of its operands, by their parts; nothing of another number of operands.
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
