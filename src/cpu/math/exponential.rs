//! Exponentials of f64, nearly always correctly rounded, and their parts.

use super::common::poly;
use std::f64::consts::{LN_2, LOG2_E};

/// Adding and subtracting it rounds to an integer; after the addition, the low bits hold that integer.
const MAGIC: f64 = 6755399441055744.0;

/// ln 2 in two parts; products of the first with exponents are exact.
pub const LN2_HIGH: f64 = 0.6931471804855391;
pub const LN2_LOW: f64 = 7.440617110012397e-11;

#[inline(always)]
fn nearest(x: f64) -> f64 {
    (x + MAGIC) - MAGIC
}

/// 2ⁿ for an integer -1023 < n ≤ 1024; infinite for 1024.
#[inline(always)]
pub fn power_of_two(n: f64) -> f64 {
    f64::from_bits((n + (MAGIC + 1023.0)).to_bits() << 52)
}

/// The sum of `a`, which is 0 or the larger number, `b`, and a small number, which also takes the rounding error of `a
/// + b`.
#[inline(always)]
pub fn add_small(a: f64, b: f64, small: f64) -> f64 {
    let sum = a + b;
    sum + (((a - sum) + b) + small)
}

/// `p` 2ⁿ for |n| ≤ 2000, rounded once if it becomes subnormal.
#[inline(always)]
pub fn scaled(p: f64, n: f64) -> f64 {
    let half = nearest(n * 0.5);
    p * power_of_two(half) * power_of_two(n - half)
}

/// eʳ - 1 for |r| ≤ ln √2.
#[inline(always)]
pub fn expm1_core(r: f64) -> f64 {
    r + expm1_rest(r)
}

/// eʳ - 1 - r.
#[inline(always)]
fn expm1_rest(r: f64) -> f64 {
    r * r
        * poly!(r; 0.5000000000000007, 0.16666666666666688, 0.04166666666656598, 0.008333333333313124,
            0.0013888888935032202, 0.000198412699067105, 2.4801501108576206e-05, 2.7557224322115463e-06,
            2.7627703042639613e-07, 2.5115710301313927e-08)
}

/// Returns (n, r) such that x = n ln 2 + r.
#[inline(always)]
pub fn split_exponent(x: f64) -> (f64, f64) {
    let n = nearest(x * LOG2_E);
    (n, (x - n * LN2_HIGH) - n * LN2_LOW)
}

#[inline(always)]
pub fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// Returns (p, n) such that e to the `x + small` is p 2ⁿ.
#[inline(always)]
fn exp_parts(x: f64, small: f64) -> (f64, f64) {
    let n = nearest(x * LOG2_E);
    let (high, low) = (x - n * LN2_HIGH, n * LN2_LOW - small);
    (add_small(1.0, high, expm1_rest(high - low) - low), n)
}

/// eˣ 2ᵏ for a small k, exact to the end of the range.
#[inline(always)]
pub fn exp_times(x: f64, k: f64) -> f64 {
    let (p, n) = exp_parts(clamp(x, -800.0, 800.0), 0.0);
    scaled(p, n + k)
}

/// e to the `x + small`, for |x| ≤ 800.
#[inline(always)]
pub fn exp_of_sum(x: f64, small: f64) -> f64 {
    let (p, n) = exp_parts(x, small);
    scaled(p, n)
}

#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_times(x, 0.0)
}

#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = clamp(x, -1200.0, 1200.0);
    let n = nearest(x);
    scaled(1.0 + expm1_core((x - n) * LN_2), n)
}

#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    let (n, r) = split_exponent(clamp(x, -60.0, 709.9));
    // Multiplies by half of 2ⁿ first, so that it does not overflow too early.
    let half = power_of_two(n - 1.0);
    (2.0 * (expm1_core(r) * half + (half - 0.5))).copysign(x)
}
