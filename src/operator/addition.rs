//! The sum of two tensors, which the machinery needs itself: for gradients that meet, and for tangents. The public operator is
//! this row under its own name.

use crate::operator::declare::{on_values, pointwise};
use crate::operator::grad_value::V;
#[cfg(feature = "gpu")]
use crate::operator::pointwise::complex_formula::Complex;

/// The row's derivatives need no functions.
mod formula {
    pub mod layouts {}
}

pointwise! {
    /// Sum of both operands.
    [complex = |a, b| Complex::new(&a.re + &b.re, &a.im + &b.im), hidden, narrow, wraps, aten(Tensor, Tensor), unbatched = Misfit, shows(alpha = 1), rounds] add(input, other): Arith = input + other, input: |g| g, other: |g| g;
}

on_values!(Add, add, add::ROW);
