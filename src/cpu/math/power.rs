//! Powers of f64, within about an ulp and without branches. The logarithm is a sum of two floats, and so is its product
//! with the exponent.

use super::common::poly;
use super::exponential::{LN2_HIGH, LN2_LOW, clamp, exp_of_sum};
use super::f64::{log_range, split_power};

/// The upper half of the digits of a float, and the rest.
#[inline(always)]
fn halves(x: f64) -> (f64, f64) {
    let high = f64::from_bits(x.to_bits() & !0x7ff_ffff);
    (high, x - high)
}

/// `a * b`, and its rounding error.
#[inline(always)]
fn product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    let ((a, a_low), (b, b_low)) = (halves(a), halves(b));
    (p, ((a * b - p) + a * b_low + a_low * b) + a_low * b_low)
}

/// `a + b`, and its rounding error, for |a| ≥ |b|.
#[inline(always)]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, (a - s) + b)
}

/// ln x as a sum of two, to some 66 bits, for 0 < x < ∞: it is 2s + ⅔s³ + s⁵ … with s = (m - 1) / (m + 1).
#[inline(always)]
fn log(x: f64) -> (f64, f64) {
    let (k, f) = split_power(x);
    let (below, below_low) = sum(2.0, f);
    let s = f / below;
    let (back, back_low) = product(s, below);
    let s_low = ((f - back) - back_low - s * below_low) / below;
    let (z, z_low) = product(s, s);
    let z_low = z_low + 2.0 * s * s_low;
    let rest = z
        * poly!(z; 0.40000000000002256, 0.28571428570098456, 0.22222222520099966, 0.18181784353119623,
        0.15386757921943436, 0.1325680501990414, 0.1319643890786093);
    let (q, q_low) = sum(TWO_THIRDS.0, rest);
    let q_low = q_low + TWO_THIRDS.1;
    let (cube, cube_low) = product(z, s);
    let cube_low = cube_low + z * s_low + z_low * s;
    let (t, t_low) = product(cube, q);
    let t_low = t_low + cube * q_low + cube_low * q;
    let (l, l_low) = sum(2.0 * s, t);
    let (high, low) = sum(k * LN2_HIGH, l);
    sum(high, low + (l_low + t_low + 2.0 * s_low) + k * LN2_LOW)
}

/// ⅔ as a sum of two.
const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);

/// `a` to the power `b`, with the special cases of C.
#[inline(always)]
pub fn pow(a: f64, b: f64) -> f64 {
    let x = a.abs();
    let (l, l_low) = log(x);
    let l = log_range(x, l);
    let (p, p_low) = product(b, l);
    let p_low = if p.abs() < 800.0 { p_low + b * l_low } else { 0.0 };
    let y = exp_of_sum(clamp(p, -800.0, 800.0), p_low);
    let whole = b == b.trunc();
    let odd = whole & (b.abs() < 9007199254740992.0) & ((b * 0.5) != (b * 0.5).trunc());
    let y = if odd { y.copysign(a) } else { y };
    let y = if (a < 0.0) & !whole & (a > f64::NEG_INFINITY) { f64::NAN } else { y };
    let y = if (a == -1.0) & b.is_infinite() { 1.0 } else { y };
    if (b == 0.0) | (a == 1.0) { 1.0 } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_cases_as_in_c() {
        let (inf, nan, tiny) = (f64::INFINITY, f64::NAN, f64::from_bits(1));
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.5,
            -2.5,
            3.0,
            -3.0,
            -2.0,
            0.5,
            1e-200,
            -1e300,
            9007199254740993.0,
            inf,
            -inf,
            nan,
            tiny,
            -tiny,
            f64::MAX,
            f64::MIN_POSITIVE,
            1.0 + f64::EPSILON,
            1.0 - f64::EPSILON,
            710.0,
            -745.0,
        ];
        for a in numbers {
            for b in numbers {
                let (got, want) = (pow(a, b), a.powf(b));
                let near = (got - want).abs() <= want.abs().next_up() - want.abs();
                let same = got == want && got.is_sign_negative() == want.is_sign_negative();
                assert!(
                    same || near && want != 0.0 || got.is_nan() && want.is_nan(),
                    "pow({a:e}, {b:e}) = {got:e}, not {want:e}"
                );
            }
        }
    }

    /// The library's powers are almost correctly rounded, so the limit is slightly more than an ulp.
    #[test]
    fn within_about_an_ulp() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for i in 0..300_000 {
            let a = match i % 3 {
                0 => 2.0 * draw(),
                1 => (700.0 * (draw() - draw())).exp(),
                _ => 1.0 + (draw() - 0.5) * (-40.0 * draw()).exp2(),
            };
            let b = (draw() - 0.5) * 1400.0 / a.ln().abs().max(1e-12);
            let (got, want) = (pow(a, b), a.powf(b));
            assert!(
                (got - want).abs() <= 1.5 * (want.next_up() - want),
                "pow({a:e}, {b:e}) = {got:e}, not {want:e}"
            );
        }
    }
}
