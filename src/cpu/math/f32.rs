//! Functions of f32: the common ones in f32 itself, within about 2 ulp; the others in f64, practically exact. Without
//! branches unless noted. The coefficients are minimax fits.

pub use super::common::{
    both, conj, constant_zero, differ, either, eq, first_power, ge, gt, le, lt, ne, not, square, truth,
    zero_of, zeroth_power,
};
use super::common::{divisions, long_poly, poly, typed};
pub use super::exact::*;
use super::f64 as wide;
use std::f32::consts::{LN_2, LOG2_E};
use std::f64::consts::FRAC_PI_2;

pub type T = f32;

typed!();

#[inline(always)]
fn rest(a: T, b: T) -> T {
    a % b
}

divisions!();

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn multiply_add(a: T, b: T, c: T) -> T {
    a.mul_add(b, c)
}

/// `a * b + c`, rounded once in each type.
#[inline(always)]
pub fn fused_multiply_add(a: T, b: T, c: T) -> T {
    a.mul_add(b, c)
}

/// The fast functions: see [`super::fast_ranges`].
pub mod near {
    use super::super::common::divisions;
    use super::super::fast_ranges::{Near, Ranges, near_division};
    use super::{T, num};

    impl Ranges for T {
        const FUNCTIONS: &'static [(&'static str, Near)] =
            &[("fmod", Near::Quotient), ("remainder", Near::Quotient), ("floor_div", Near::Quotient)];

        #[inline(always)]
        fn is_small(self) -> bool {
            false
        }

        #[inline(always)]
        fn is_small_quotient(self, by: T) -> bool {
            self.abs() <= by.abs() * 1048576.0
        }
    }

    near_division!();
}

/// Functions that are computed in f64.
macro_rules! through_f64 {
    ($($(#[$meta:meta])* $name:ident($($x:ident),*);)*) => { $(
        $(#[$meta])*
        #[inline(always)]
        pub fn $name($($x: f32),*) -> f32 {
            wide::$name($($x as f64),*) as f32
        }
    )* };
}
through_f64! {
    expm1(x);
    sinh(x);
    cosh(x);
    asinh(x);
    acosh(x);
    atanh(x);
    asin(x);
    acos(x);
    atan(x);
    atan2(y, x);
    erfinv(x);
    /// ln |Γ(x)|. With branches.
    lgamma(x);
    /// The derivative of ln Γ. With branches.
    digamma(x);
    trigamma(x);
    polygamma(n, x);
}

/// Adding and subtracting it rounds to an integer; after the addition, the low bits hold that integer.
const MAGIC: f32 = 12582912.0;

/// ln 2 in two parts; products of the first with exponents are exact.
const LN2_HIGH: f32 = 0.693_145_75;
const LN2_LOW: f32 = 1.4286068e-6;

/// eʳ for r = `high` - `low`, |r| ≤ ln √2, within 0.57 ulp. `near` has so few digits that 1 + `near` + `near`² / 2 is
/// exact, and the terms added to it are so small that their rounding hardly matters.
#[inline(always)]
fn exp_near(high: f32, low: f32) -> f32 {
    const COARSE: f32 = 98304.0;
    let near = (high + COARSE) - COARSE;
    let (rest, sum) = ((high - near) - low, 1.0 + near);
    let r = high - low;
    let s = r * r;
    let cubes = s * r * ((0.166_665_38 + r * 0.041_668_173) + s * (0.008_367_176 + r * 0.001_378_194_7));
    (sum + 0.5 * near * near) + (rest * (sum + 0.5 * rest) + cubes)
}

/// eʳ for r = `x` - `n` ln 2, within 0.8 ulp and in fewer steps: the small terms take the rounding error of 1 + r, and
/// multiply-adds are fused. (A machine without the instruction gets the same bits, slowly.)
#[inline(always)]
fn exp_rough(x: f32, n: f32) -> f32 {
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let s = r * r;
    let far = s.mul_add(0.001381316, r.mul_add(0.008369419, 0.041668456));
    let terms = s.mul_add(far, r.mul_add(0.16666515, 0.49999994));
    let sum = 1.0 + r;
    sum + s.mul_add(terms, (1.0 - sum) + r)
}

/// Like [`MAGIC`], with the biases of two exponents.
const BIASED: f32 = MAGIC + 254.0;

/// eʳ 2ⁿ for r = `high` - `low`, |r| ≤ ln √2, and |n| ≤ 250, where `biased` is n + [`BIASED`]. Multiplies in two steps,
/// so that subnormal results are rounded once and large ones do not overflow too early.
#[inline(always)]
fn exp_core(biased: f32, high: f32, low: f32) -> f32 {
    let (all, half) = (biased.to_bits(), biased.to_bits() >> 1);
    exp_near(high, low) * f32::from_bits(half << 23) * f32::from_bits((all - half) << 23)
}

#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = clamp(x, -110.0, 100.0);
    let biased = x * LOG2_E + BIASED;
    let n = biased - BIASED;
    exp_core(biased, x - n * LN2_HIGH, n * LN2_LOW)
}

/// 2⁶⁴ and 2⁻⁶⁴.
const UP: f32 = f32::from_bits((127 + 64) << 23);
const DOWN: f32 = f32::from_bits((127 - 64) << 23);

/// eˣ 2⁶⁴ if x is at most 0 (or little more); the factor prevents underflow.
#[inline(always)]
fn exp_far(x: f32) -> f32 {
    let x = if x < -110.0 { -110.0 } else { x };
    let shifted = x.mul_add(LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127 + 64) << 23);
    exp_rough(x, n) * power
}

/// eˣ if x is at most 0 (or little more), within 0.8 ulp, in fewer steps than [`exp`]: only the last factor rounds.
#[inline(always)]
pub fn exp_below(x: f32) -> f32 {
    exp_far(x) * DOWN
}

#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = clamp(x, -160.0, 140.0);
    let biased = x + BIASED;
    exp_core(biased, (x - (biased - BIASED)) * LN_2, 0.0)
}

/// Returns (k, f) such that x = (1 + f) 2ᵏ with 1 + f in [√½, √2), for x > 0.
#[inline(always)]
fn split_power(x: f32) -> (f32, f32) {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const BIAS: u32 = 127 << 23;
    let tiny = x < f32::MIN_POSITIVE;
    let bits = (if tiny { x * 33554432.0 } else { x }).to_bits();
    let biased = bits.wrapping_sub(SQRT_HALF).wrapping_add(BIAS) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(biased << 23).wrapping_add(BIAS)) - 1.0;
    (biased as i32 as f32 - if tiny { 127.0 + 25.0 } else { 127.0 }, f)
}

/// (ln(1 + f) - f + f² / 2) / f².
#[inline(always)]
fn log_core(f: f32) -> f32 {
    f * poly!(f; 0.3333331, -0.24999987, 0.20002241, -0.16669272, 0.14218336, -0.12383771, 0.11874984, -0.11794229, 0.06915951)
}

/// ln(1 + f) as a sum of two: the first is exact, because its f² / 2 comes from a few digits of f, and the second is
/// small.
#[inline(always)]
fn log_parts(f: f32) -> (f32, f32) {
    const COARSE: f32 = 49152.0;
    let near = (f + COARSE) - COARSE;
    let (square, rest, core) = (near * near, (f - near) * (f + near), log_core(f));
    (f - 0.5 * square, square * core - rest * (0.5 - core))
}

/// `y` if the argument of a logarithm is positive and finite, else the result of the special case.
#[inline(always)]
fn log_range(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < 0.0 { f32::NAN } else { y }
}

#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (k, f) = split_power(x);
    let square = f * f;
    log_range(x, k * LN2_HIGH + (f + (square * log_core(f) - 0.5 * square + k * LN2_LOW)))
}

/// The logarithm within 0.65 ulp, in more steps.
#[inline(always)]
fn log_sharp(x: f32) -> f32 {
    let (k, f) = split_power(x);
    let (part, rest) = log_parts(f);
    let main = k * LN2_HIGH;
    let sum = main + part;
    log_range(x, sum + (((main - sum) + part) + (rest + k * LN2_LOW)))
}

/// a ln b, and 0 if `a` is 0.
#[inline(always)]
pub fn xlogy(a: f32, b: f32) -> f32 {
    let y = if a == 0.0 { 0.0 } else { a * log_sharp(b) };
    if b.is_nan() { b } else { y }
}

#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // The rounding error of the sum, to first order.
    let lost = (if x > 1.0 { 1.0 - (u - x) } else { x - (u - 1.0) }) / u;
    let (k, f) = split_power(u);
    let (part, rest) = log_parts(f);
    let main = k * LN2_HIGH;
    let sum = main + part;
    log_range(u, sum + (((main - sum) + part) + (rest + (k * LN2_LOW + lost)))).copysign(x)
}

/// The logarithm to another base: `per` is 1 / ln base, and `two` the logarithm of 2, each in two parts.
#[inline(always)]
fn log_base(x: f32, per: (f32, f32), two: (f32, f32)) -> f32 {
    let (k, f) = split_power(x);
    let (part, rest) = log_parts(f);
    let high = f32::from_bits(part.to_bits() & !0xfff);
    let low = (part - high) + rest;
    let (main, term) = (k * two.0, high * per.0);
    let sum = main + term;
    log_range(x, sum + ((main - sum) + term + (low + high) * per.1 + low * per.0 + k * two.1))
}

#[inline(always)]
pub fn log2(x: f32) -> f32 {
    log_base(x, (1.442_871_1, -0.00017605285), (1.0, 0.0))
}

#[inline(always)]
pub fn log10(x: f32) -> f32 {
    log_base(x, (0.434_326_17, -3.168997e-05), (0.301_033_02, -3.0243555e-06))
}

/// The half below ½ is one quotient; the other half is 1 minus that.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp_far(-x.abs());
    let y = e / (UP + e);
    if x < 0.0 { y } else { 1.0 - y }
}

/// x / (1 + e⁻ˣ), which becomes 0 where the exponential overflows.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let a = if x > 40.0 { -40.0 } else { -x };
    let shifted = a.mul_add(LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    let e = exp_rough(a, n) * power;
    x / (1.0 + if a > 88.0 { f32::INFINITY } else { e })
}

/// u / (u + 2) with u = e²ˣ - 1, in f64.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = if x.abs() > 10.0 { 10.0 } else { x.abs() } as f64;
    let (power, part) = wide_exp_parts(a + a);
    let u = power * part + (power - 1.0);
    ((u / (u + 2.0)) as f32).copysign(x)
}

/// In f64. The fourth root of 1 - erf x, which is easy to fit, is 1 - u; the result is 1 - (1 - u)⁴ without
/// cancellation.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = if x.abs() > 3.93 { 3.93 } else { x.abs() } as f64;
    let t = a - 2.0;
    let u = a
        * long_poly!(t; 0.36923879870840326, -0.04018836038726248, -0.02947300755549544, 0.011287766795251524,
            0.00046855600534270454, -0.0010166108371663367, 0.00013409903557745276, 4.3504263761838334e-05,
            -1.3243552975375625e-05, -1.0303587283634467e-06, 6.223795181736329e-07, 6.997504940594836e-08);
    let v = u * (2.0 - u);
    ((v * (2.0 - v)) as f32).copysign(x)
}

/// The cumulative distribution function of the normal distribution, within 2⁻²³. The fourth root of its doubled tail is
/// 1 - u, as in [`erf`].
#[inline(always)]
pub fn ndtr(x: f32) -> f32 {
    let a = x.abs();
    let t = a - 2.8;
    let u = a
        * long_poly!(t; 0.261654, -0.019494593, -0.01066005, 0.0028108075, 9.960969e-5, -0.00012936115, 1.1926627e-5,
            3.2347435e-6, -5.691811e-7, -8.427131e-8);
    let root = if a > 5.6 { 0.0 } else { 1.0 - u * (2.0 - u) };
    let tail = 0.5 * root * root;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// Returns (r, q) such that x = (4m + q) π/2 + r with |r| ≤ π/4, for every finite x. In f64, which has enough bits.
#[inline(always)]
fn reduce_angle(x: f32) -> (f64, u64) {
    const MAGIC: f64 = 6755399441055744.0;
    // A large x is an integer y < 2⁵⁰ times a power of two, whose quotient by π/2 is known modulo 4. The constants are
    // a scale, and that quotient in three parts. The first two have 29 bits, so their products with the 24 bits of y
    // are exact.
    let a = x.abs();
    let parts = (1.0, 0.6366197727620602, -3.9447882200366324e-10, -3.260751408868143e-19);
    let far = (7.450580596923828e-9, -0.552946051582694, 3.054809009916948e-10, -7.799845648143895e-20);
    let parts = if a >= 1.1258999e15 { far } else { parts };
    let far = (1.1102230246251565e-16, -1.3544995225965977, -1.16938760758023e-9, 1.5026591323163072e-18);
    let parts = if a >= 7.5557864e22 { far } else { parts };
    let far = (1.6543612251060553e-24, -0.32847627345472574, -3.6481954002881567e-10, 7.004947394536058e-20);
    let (scale, high, middle, low) = if a >= 5.070602e30 { far } else { parts };
    let y = x as f64 * scale;
    let (high, middle) = (y * high, y * middle);
    let (first, second) = (high + MAGIC, middle + MAGIC);
    let turn = (high - (first - MAGIC)) + (middle - (second - MAGIC));
    let third = turn + MAGIC;
    let r = ((turn - (third - MAGIC)) + y * low) * FRAC_PI_2;
    (r, first.to_bits().wrapping_add(second.to_bits()).wrapping_add(third.to_bits()))
}

/// sin r and cos r for |r| ≤ π/4, exact enough for f32.
#[inline(always)]
fn sin_cos_core(r: f64) -> (f64, f64) {
    let z = r * r;
    let sin = r + r
        * z
        * poly!(z; -0.1666666663955744, 0.008333329143845136, -0.0001983925660998414, 2.7175642326730302e-06);
    let cos =
        1.0 - 0.5 * z + z * z * poly!(z; 0.04166665155741033, -0.0013887542902646169, 2.4454226140732754e-05);
    (sin, cos)
}

#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (r, q) = reduce_angle(x);
    let (sin, cos) = sin_cos_core(r);
    let y = if q & 1 == 0 { sin } else { cos } as f32;
    let y = if q & 2 == 0 { y } else { -y };
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (r, q) = reduce_angle(x);
    let (sin, cos) = sin_cos_core(r);
    let y = if q & 1 == 0 { cos } else { sin } as f32;
    if (q + 1) & 2 == 0 { y } else { -y }
}

#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (r, q) = reduce_angle(x);
    let (sin, cos) = sin_cos_core(r);
    let y = if q & 1 == 0 { sin / cos } else { -cos / sin } as f32;
    if x == 0.0 { x } else { y }
}

/// 2ⁿ and p such that eˣ is 2ⁿ (1 + p), in f64 for |x| ≤ 700, exact enough for f32.
#[inline(always)]
fn wide_exp_parts(x: f64) -> (f64, f64) {
    const MAGIC: f64 = 6755399441055744.0;
    let n = (x * std::f64::consts::LOG2_E + MAGIC) - MAGIC;
    let r = x - n * std::f64::consts::LN_2;
    let p = r + r
        * r
        * long_poly!(r; 0.5000000046651284, 0.1666666681899178, 0.04166635356301171, 0.008333272600408472,
            0.001394110123834066, 0.00019914418391985743);
    (f64::from_bits((n + (MAGIC + 1023.0)).to_bits() << 52), p)
}

/// eˣ in f64, for |x| ≤ 700, exact enough for f32.
#[inline(always)]
fn wide_exp(x: f64) -> f64 {
    let (power, p) = wide_exp_parts(x);
    (1.0 + p) * power
}

/// In f64, as e to the b ln a.
#[inline(always)]
pub fn pow(a: f32, b: f32) -> f32 {
    let log = wide::log_to_f32(a.abs() as f64);
    let exponent = b as f64 * log;
    let exponent = if exponent < -200.0 { -200.0 } else { exponent };
    let exponent = if exponent > 200.0 { 200.0 } else { exponent };
    let y = wide_exp(exponent) as f32;
    let whole = b == b.trunc();
    let odd = whole & (b.abs() < 16777216.0) & ((b * 0.5) != (b * 0.5).trunc());
    let y = if odd { y.copysign(a) } else { y };
    let y = if (a < 0.0) & !whole & (a > f32::NEG_INFINITY) { f32::NAN } else { y };
    let y = if (a == -1.0) & b.is_infinite() { 1.0 } else { y };
    if (b == 0.0) | (a == 1.0) { 1.0 } else { y }
}

/// As in f64, with fewer coefficients.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let a = if x.abs() > 11.0 { 11.0 } else { x.abs() } as f64;
    let t = (a - 3.0) / (a + 3.0);
    let p = poly!(t; 1.2530080599456732, -0.1356211447816517, -0.047562490567585214, 0.12964651452794512,
        -0.11926941273108278, 0.06829620154834887, -0.023805849639393663, 0.0025588800457386723,
        0.002013361508696509, -0.0007563001949521184, -0.0002595142951968479);
    let y = wide_exp(-a * a) * p / (1.0 + 2.0 * a);
    let y = if x < 0.0 { 2.0 - y } else { y } as f32;
    if x.is_nan() { x } else { y }
}

#[inline(always)]
pub fn hypot(a: f32, b: f32) -> f32 {
    let (u, v) = (a as f64, b as f64);
    let y = (u * u + v * v).sqrt() as f32;
    if is_inf(a) | is_inf(b) { f32::INFINITY } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_exponential() {
        let mut x = 40.0f32;
        while x > -120.0 {
            let (got, want) = (exp_below(x), f64::from(x).exp());
            let near = want as f32;
            let ulp = f64::from(near.next_up()) - f64::from(near);
            assert!((f64::from(got) - want).abs() < 0.8 * ulp, "at {x}");
            x -= 0.000_917;
        }
        assert_eq!([0.0, -0.0, f32::NEG_INFINITY, f32::MIN].map(exp_below), [1.0, 1.0, 0.0, 0.0]);
        assert!(exp_below(f32::NAN).is_nan());
    }

    /// The largest error in ulp of an even selection of all f32, compared with f64.
    fn worst(f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let errors = (0..u32::MAX).step_by(39_119).map(f32::from_bits).map(|x| {
            let (got, want) = (f(x), exact(x as f64));
            let near = want as f32;
            if got == near || (got.is_nan() && near.is_nan()) {
                return 0.0;
            }
            (got as f64 - want).abs() / (near.abs().next_up() as f64 - near.abs() as f64)
        });
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn within_two_ulp() {
        // Subnormal results are rounded a second time.
        assert!(worst(exp, f64::exp) < 0.75);
        assert!(worst(|x| exp(x.max(-87.0)), |x| x.max(-87.0).exp()) < 0.58);
        assert!(worst(exp2, f64::exp2) < 0.75);
        assert!(worst(log, f64::ln) < 0.85);
        assert!(worst(log_sharp, f64::ln) < 0.66);
        assert!(worst(|x| silu(x.max(-87.0)), |x| wide::silu(x.max(-87.0))) < 2.5);
        assert!(worst(log1p, f64::ln_1p) < 0.67);
        assert!(worst(log2, f64::log2) < 0.66);
        assert!(worst(log10, f64::log10) < 0.66);
        assert!(worst(tanh, f64::tanh) < 0.51);
        assert!(worst(sigmoid, wide::sigmoid) < 2.0);
        assert!(worst(erf, wide::erf) < 0.53);
    }

    /// The largest absolute error at multiples of 1e-5 between -7 and 7.
    fn farthest(f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let numbers = (-700_000..700_000).map(|i| i as f32 * 1e-5);
        numbers.map(|x| (f64::from(f(x)) - exact(f64::from(x))).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn parts_of_one() {
        assert!(farthest(ndtr, wide::ndtr) < 1.2e-7);
        assert!(farthest(sigmoid, wide::sigmoid) < 7.5e-8);
        for f in [ndtr, sigmoid] {
            assert_eq!(
                [f32::NEG_INFINITY, f32::MIN, 0.0, f32::MAX, f32::INFINITY].map(f),
                [0.0, 0.0, 0.5, 1.0, 1.0]
            );
            assert!(f(f32::NAN).is_nan());
        }
    }

    #[test]
    fn ends_of_silu() {
        let ends = [f32::MIN, -100.0, -0.0, 0.0, 1e-30, f32::MAX, f32::INFINITY].map(silu);
        assert_eq!(ends, [0.0, 0.0, 0.0, 0.0, 5e-31, f32::MAX, f32::INFINITY]);
        assert!(silu(f32::NEG_INFINITY).is_nan() && silu(f32::NAN).is_nan());
    }

    #[test]
    fn angles_of_any_size() {
        assert!(worst(sin, f64::sin) < 1.0);
        assert!(worst(cos, f64::cos) < 1.0);
        assert!(worst(tan, f64::tan) < 1.0);
    }

    #[test]
    fn powers_as_in_c() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let numbers =
            [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 3.0, -3.0, -2.0, 0.5, 1e-20, -1e30, 16777217.0, inf, -inf, nan];
        for a in numbers {
            for b in numbers {
                let (got, want) = (pow(a, b), (a as f64).powf(b as f64) as f32);
                let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
                assert!(same || (got / want - 1.0).abs() < 2e-7, "pow({a}, {b}) = {got}, not {want}");
            }
        }
    }
}
