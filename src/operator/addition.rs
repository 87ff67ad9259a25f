//! The sum of two tensors, which the machinery needs itself: for gradients that meet, and for tangents. The public operator is
//! this row under its own name.

use crate::operator::declare::{on_values, pointwise};
use crate::operator::grad_value::V;

/// The row's derivatives need no functions.
mod formula {}

#[cfg(feature = "gpu")]
mod complex_formulas {
    use crate::operator::pointwise::complex_formula::{Complex, Made};

    pub fn add(operands: &[Complex]) -> Option<Made> {
        let [a, b] = operands else { return None };
        Some(Complex::new(&a.re + &b.re, &a.im + &b.im).into())
    }
}

pointwise! {
    /// Sum of both operands.
    [complex = add, hidden, narrow, wraps, aten(Tensor, Tensor), unbatched = Misfit, shows(alpha = 1)] add(input, other): Arith = input + other, input: |g| g, other: |g| g;
}

on_values!(Add, add, add::ROW);
