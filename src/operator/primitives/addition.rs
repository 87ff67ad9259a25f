//! The sum of two tensors, needed by this module itself: to add up gradients and tangents. The public
//! operator is this row under its own name.

#[cfg(feature = "gpu")]
use crate::operator::pointwise::complex_formula::Complex;
use crate::operator::pointwise::declare::{on_values, pointwise};
use crate::operator::row::grad_value::V;

/// The derivatives of this row call no functions.
mod formula {
    pub mod layouts {}
}

pointwise! {
    /// Sum of both operands.
    [complex = |a, b| Complex::new(&a.re + &b.re, &a.im + &b.im), hidden, narrow, wraps, aten(Tensor, Tensor), unbatched = Misfit, shows(alpha = 1), rounds, fused] add(input, other): Arith = input + other, input: |g| g, other: |g| g;
}

on_values!(Add, add, add::ROW);
