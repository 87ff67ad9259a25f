//! Float functions that are exact, or rounded once, or consist only of such.

use crate::cpu::float::Float;

#[inline(always)]
pub fn abs<T: Float>(x: T) -> T {
    x.abs()
}

#[inline(always)]
pub fn neg<T: Float>(x: T) -> T {
    -x
}

#[inline(always)]
fn number<T: Float>(b: bool) -> T {
    T::from_i64(i64::from(b))
}

/// -1, 0 or 1; NaN gives 0, as in PyTorch.
#[inline(always)]
pub fn sign<T: Float>(x: T) -> T {
    number::<T>(x > T::ZERO) - number::<T>(x < T::ZERO)
}

/// 0, or π for negative numbers.
#[inline(always)]
pub fn angle<T: Float>(x: T) -> T {
    if x.is_nan() {
        x
    } else if x < T::ZERO {
        T::from_f64(std::f64::consts::PI)
    } else {
        T::ZERO
    }
}

/// The derivative of acosh.
#[inline(always)]
pub fn acosh_slope<T: Float>(x: T) -> T {
    rsqrt(x * x - T::ONE)
}

/// The gradients of [`angle`] and of `sgn`: 0, because a real number's direction does not change.
#[inline(always)]
pub fn angle_gradient<T: Float>(_g: T, _x: T) -> T {
    T::ZERO
}

#[inline(always)]
pub fn sgn_gradient<T: Float>(_g: T, _x: T, _y: T) -> T {
    T::ZERO
}

/// The logarithm of a base, which is real for real powers.
#[inline(always)]
pub fn log_of_base<T: Float>(x: T, _y: T) -> T {
    x.ln()
}

#[inline(always)]
pub fn sqrt<T: Float>(x: T) -> T {
    x.sqrt()
}

#[inline(always)]
pub fn rsqrt<T: Float>(x: T) -> T {
    T::ONE / x.sqrt()
}

#[inline(always)]
pub fn recip<T: Float>(x: T) -> T {
    T::ONE / x
}

#[inline(always)]
pub fn floor<T: Float>(x: T) -> T {
    x.floor()
}

#[inline(always)]
pub fn ceil<T: Float>(x: T) -> T {
    x.ceil()
}

/// Rounds to the nearest integer, and to the even one if there are two.
#[inline(always)]
pub fn round<T: Float>(x: T) -> T {
    x.round_ties_even()
}

#[inline(always)]
pub fn trunc<T: Float>(x: T) -> T {
    x.trunc()
}

#[inline(always)]
pub fn frac<T: Float>(x: T) -> T {
    x - x.trunc()
}

#[inline(always)]
pub fn copysign<T: Float>(a: T, b: T) -> T {
    a.copysign(b)
}

#[inline(always)]
pub fn trunc_div<T: Float>(a: T, b: T) -> T {
    trunc(a / b)
}

/// The larger; NaN if either is.
#[inline(always)]
pub fn maximum<T: Float>(a: T, b: T) -> T {
    let larger = if a >= b { a } else { b };
    if a.is_nan() { a } else { larger }
}

#[inline(always)]
pub fn minimum<T: Float>(a: T, b: T) -> T {
    let smaller = if a <= b { a } else { b };
    if a.is_nan() { a } else { smaller }
}

/// The larger; the other one if one is NaN.
#[inline(always)]
pub fn fmax<T: Float>(a: T, b: T) -> T {
    if (a >= b) | b.is_nan() { a } else { b }
}

#[inline(always)]
pub fn fmin<T: Float>(a: T, b: T) -> T {
    if (a <= b) | b.is_nan() { a } else { b }
}

/// The step function with the value `at_zero` at 0; NaN gives 0, as in PyTorch.
#[inline(always)]
pub fn heaviside<T: Float>(x: T, at_zero: T) -> T {
    if x == T::ZERO { at_zero } else { number(x > T::ZERO) }
}

#[inline(always)]
pub fn is_nan<T: Float>(x: T) -> bool {
    x.is_nan()
}

#[inline(always)]
pub fn is_inf<T: Float>(x: T) -> bool {
    x.abs() == T::INFINITY
}

#[inline(always)]
pub fn is_finite<T: Float>(x: T) -> bool {
    x.abs() < T::INFINITY
}
