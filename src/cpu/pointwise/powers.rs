//! Powers with a constant exponent that need no logarithm: their own loops, in the place of those of `pow`.

use super::{Loop, Loops, pointwise_loop};
use crate::base::{DType, Scalar};

/// The loops for some exponents, of an expression whose last operand is the exponent.
pub struct Powers(&'static [(f64, Loops)]);

impl Powers {
    fn of(&self, exponent: Scalar, compute: DType) -> Option<&'static Loop> {
        if exponent.imaginary() != 0.0 {
            return None;
        }
        self.0.iter().find(|(known, _)| *known == exponent.as_f64()).and_then(|(_, loops)| loops.of(compute))
    }
}

/// The loop for this exponent, of an expression that has some.
#[inline(always)]
pub fn chosen(
    loops: &Loops,
    exponent: impl FnOnce() -> Option<Scalar>,
    compute: DType,
) -> Option<&'static Loop> {
    loops.powers?.of(exponent()?, compute)
}

macro_rules! powers {
    ($($exponent:literal => $names:tt $value:expr;)*) => {
        Powers(&[$(($exponent, Loops {
            f32: Some(pointwise_loop!(f32; $names $value)),
            f64: Some(pointwise_loop!(f64; $names $value)),
            ..Loops::NONE
        })),*])
    };
}

/// The powers themselves, as PyTorch takes them apart.
static FORWARD: Powers = powers! {
    3.0 => (input, _exponent) (input * input) * input;
    0.5 => (input, _exponent) sqrt(input);
    -0.5 => (input, _exponent) rsqrt(input);
    -1.0 => (input, _exponent) recip(input);
    -2.0 => (input, _exponent) recip(input * input);
};

/// Their gradients, with the power of an exponent that is less by one.
static GRADIENT: Powers = powers! {
    4.0 => (g, input, exponent) g * (exponent * ((input * input) * input));
    3.0 => (g, input, exponent) g * (exponent * (input * input));
    1.5 => (g, input, exponent) g * (exponent * sqrt(input));
    0.5 => (g, input, exponent) g * (exponent * rsqrt(input));
    -1.0 => (g, input, exponent) g * (exponent * recip(input * input));
};

/// Those of an expression that is a power or the gradient of one, by its operands and its formula.
pub const fn of(operands: &str, formula: &str) -> Option<&'static Powers> {
    if same(operands, "(input, exponent)") && same(formula, "pow(input, exponent)") {
        Some(&FORWARD)
    } else if same(operands, "(g, input, exponent)")
        && same(formula, "g * conj(exponent * pow(input, exponent - 1.0))")
    {
        Some(&GRADIENT)
    } else {
        None
    }
}

pub(super) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
