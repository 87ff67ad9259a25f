//! Functions of f64, within about 2 ulp, without branches unless noted. The coefficients are minimax fits.

use super::angle;
pub use super::common::{
    both, conj, constant_zero, differ, either, eq, first_power, ge, gt, le, lt, ne, not, square, truth,
    zero_of, zeroth_power,
};
use super::common::{divisions, poly, typed};
pub use super::erf::{erf, erfc, erfinv, ndtr};
pub use super::exact::*;
use super::exponential::{
    LN2_HIGH, LN2_LOW, add_small, clamp, exp_times, expm1_core, power_of_two, split_exponent,
};
pub use super::exponential::{exp, exp as exp_below, exp2, expm1};
use super::fast_ranges::Ranges;
pub use super::power::pow;
use super::special;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

pub type T = f64;

typed!();

#[inline(always)]
fn rest(a: T, b: T) -> T {
    a % b
}

divisions!();

/// `a * b + c`, rounded as on GPUs.
#[inline(always)]
pub fn multiply_add(a: T, b: T, c: T) -> T {
    a * b + c
}

/// `a * b + c`, rounded once in each type.
#[inline(always)]
pub fn fused_multiply_add(a: T, b: T, c: T) -> T {
    a.mul_add(b, c)
}

/// The fast functions: see [`super::fast_ranges`].
pub mod near {
    use super::super::angle::LARGEST;
    pub use super::super::angle::{cos, sin, tan};
    use super::super::common::divisions;
    use super::super::fast_ranges::{Near, Ranges, near_division};
    use super::{T, num};

    impl Ranges for T {
        const FUNCTIONS: &'static [(&'static str, Near)] = &[
            ("sin", Near::Small),
            ("cos", Near::Small),
            ("tan", Near::Small),
            ("fmod", Near::Quotient),
            ("remainder", Near::Quotient),
            ("floor_div", Near::Quotient),
        ];

        #[inline(always)]
        fn is_small(self) -> bool {
            self.abs() <= LARGEST
        }

        #[inline(always)]
        fn is_small_quotient(self, by: T) -> bool {
            self.abs() <= by.abs() * 1048576.0
        }
    }

    near_division!();
}

/// π/2 and π/4 minus their f64.
const PI_2_LOW: f64 = 6.123233995736766e-17;
const PI_4_LOW: f64 = 3.061616997868383e-17;

/// Returns (k, f) such that x = (1 + f) 2ᵏ with 1 + f in [√½, √2), for x > 0.
#[inline(always)]
pub(super) fn split_power(x: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const BIAS: u64 = 1023 << 52;
    let tiny = x < f64::MIN_POSITIVE;
    let bits = (if tiny { x * 18014398509481984.0 } else { x }).to_bits();
    let biased = bits.wrapping_sub(SQRT_HALF).wrapping_add(BIAS) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(biased << 52).wrapping_add(BIAS));
    // The integer becomes a float by way of its bits, because AVX2 has no such conversion.
    let k = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4503599627370496.0 + 1023.0);
    (if tiny { k - 54.0 } else { k }, m - 1.0)
}

/// (s, R) with s = f / (2 + f) and ln(1 + f) = f - (f²/2 - s (f²/2 + R)).
#[inline(always)]
fn log_core(f: f64) -> (f64, f64) {
    let s = f / (2.0 + f);
    let z = s * s;
    (
        s,
        z * poly!(z; 0.6666666666666666, 0.400000000000009, 0.2857142857079088, 0.22222222394481655,
        0.18181795354765554, 0.15386254752140285, 0.1326838084857783, 0.13090631973202976),
    )
}

/// `y` if the argument of a logarithm is positive and finite, else the result of the special case.
#[inline(always)]
pub(super) fn log_range(x: f64, y: f64) -> f64 {
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < 0.0 { f64::NAN } else { y }
}

#[inline(always)]
pub fn log(x: f64) -> f64 {
    let (k, f) = split_power(x);
    let (s, r) = log_core(f);
    let half = 0.5 * f * f;
    log_range(x, add_small(k * LN2_HIGH, f, s * (half + r) + k * LN2_LOW - half))
}

/// a ln b, and 0 if `a` is 0.
#[inline(always)]
pub fn xlogy(a: f64, b: f64) -> f64 {
    let y = if a == 0.0 { 0.0 } else { a * log(b) };
    if b.is_nan() { b } else { y }
}

/// ln x to about 44 bits, which suffices for a power of f32.
#[inline(always)]
pub(super) fn log_to_f32(x: f64) -> f64 {
    let (k, f) = split_power(x);
    let s = f / (2.0 + f);
    let z = s * s;
    let p = poly!(z; 0.6666666666666197, 0.4000000001142565, 0.2857142407357858, 0.22222868929927747,
        0.18139916624618443, 0.1662584102439885);
    log_range(x, k * LN_2 + (2.0 * s + s * z * p))
}

/// The logarithm to another base: `per` is 1 / ln base, and `two` the logarithm of 2, each in two parts.
#[inline(always)]
fn log_base(x: f64, per: (f64, f64), two: (f64, f64)) -> f64 {
    let (k, f) = split_power(x);
    let (s, r) = log_core(f);
    let half = 0.5 * f * f;
    let high = f64::from_bits((f - half).to_bits() & !0xffff_ffff);
    let low = ((f - high) - half) + s * (half + r);
    let (main, term) = (k * two.0, high * per.0);
    let sum = main + term;
    let rest = (main - sum) + term + (low + high) * per.1 + low * per.0 + k * two.1;
    log_range(x, sum + rest)
}

#[inline(always)]
pub fn log2(x: f64) -> f64 {
    log_base(x, (1.4426950407214463, 1.6751713164886512e-10), (1.0, 0.0))
}

#[inline(always)]
pub fn log10(x: f64) -> f64 {
    log_base(x, (0.4342944818781689, 2.5082946711645275e-11), (0.30102999560767785, 5.630334806675098e-11))
}

#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let u = 1.0 + x;
    // The rounding error of the sum, to first order.
    let lost = (if x > 1.0 { 1.0 - (u - x) } else { x - (u - 1.0) }) / u;
    let (k, f) = split_power(u);
    let (s, r) = log_core(f);
    let half = 0.5 * f * f;
    let y = add_small(k * LN2_HIGH, f, s * (half + r) + (k * LN2_LOW + lost) - half);
    log_range(u, y).copysign(x)
}

#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let e = exp(-x.abs());
    let y = e / (1.0 + e);
    if x < 0.0 { y } else { 1.0 - y }
}

#[inline(always)]
pub fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

/// By e⁻²ˣ - 1 near 0, and by e⁻²ˣ where that would lose bits.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    let (n, r) = split_exponent(clamp(-2.0 * a, -60.0, 0.0));
    let (q, scale) = (expm1_core(r), power_of_two(n));
    let less = q * scale + (scale - 1.0);
    let e = q * scale + scale;
    let y = if a < 0.5 { -less / (less + 2.0) } else { 1.0 - 2.0 * (e / (1.0 + e)) };
    y.copysign(x)
}

#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    let a = x.abs();
    let e = expm1(a);
    let small = 0.5 * (e + e / (e + 1.0));
    (if a > 22.0 { exp_times(a, -1.0) } else { small }).copysign(x)
}

#[inline(always)]
pub fn cosh(x: f64) -> f64 {
    let a = x.abs();
    exp_times(a, -1.0) + exp_times(-a, -1.0)
}

#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let huge = a > 1e150;
    let root = (a * a + 1.0).sqrt();
    let y = log1p(if huge { a } else { a + a * a / (1.0 + root) });
    (if huge { y + LN_2 } else { y }).copysign(x)
}

#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let huge = x > 1e150;
    let t = x - 1.0;
    let y = log1p(if huge { x } else { t + (t * (t + 2.0)).sqrt() });
    let y = if huge { y + LN_2 } else { y };
    if x < 1.0 { f64::NAN } else { y }
}

#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * log1p(2.0 * a / (1.0 - a))).copysign(x)
}

/// asin s - s for |s| ≤ ½ and z = s².
#[inline(always)]
fn asin_core(s: f64, z: f64) -> f64 {
    s * z
        * poly!(z; 0.16666666666666485, 0.07500000000137742, 0.044642856964264795, 0.0303819543419666,
            0.022371858782849217, 0.017358350188809005, 0.013897328767231633, 0.012096668957965143,
            0.006817130945318373, 0.018793639822327166, -0.015147501180892326, 0.03121928450824052)
}

#[inline(always)]
pub fn asin(x: f64) -> f64 {
    let a = x.abs();
    let steep = a > 0.5;
    let z = if steep { (1.0 - a) * 0.5 } else { a * a };
    let s = if steep { z.sqrt() } else { a };
    let p = asin_core(s, z);
    (if steep { (FRAC_PI_2 - 2.0 * s) - (2.0 * p - PI_2_LOW) } else { s + p }).copysign(x)
}

#[inline(always)]
pub fn acos(x: f64) -> f64 {
    let a = x.abs();
    let steep = a > 0.5;
    let z = if steep { (1.0 - a) * 0.5 } else { x * x };
    let s = if steep { z.sqrt() } else { x };
    let p = asin_core(s, z);
    let far = if x > 0.0 { 2.0 * (s + p) } else { PI - (2.0 * (s + p) - 2.0 * PI_2_LOW) };
    if steep { far } else { FRAC_PI_2 - (s - (PI_2_LOW - p)) }
}

/// atan t - t for |t| ≤ tan(π/8).
#[inline(always)]
fn atan_core(t: f64) -> f64 {
    let z = t * t;
    t * z
        * poly!(z; -0.3333333333333288, 0.19999999999630294, -0.14285714233787164, 0.111111080360403,
            -0.09090811022248076, 0.07690430864024095, -0.06643980741035899, 0.05706234018604403,
            -0.04395556023795743, 0.02167381440884255)
}

const TAN_PI_8: f64 = 0.41421356237309503;

#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let a = x.abs();
    let (steep, middle) = (a > 2.414213562373095, a > TAN_PI_8);
    let t = if middle { (a - 1.0) / (a + 1.0) } else { a };
    let t = if steep { -1.0 / a } else { t };
    let base = if middle { (FRAC_PI_4, PI_4_LOW) } else { (0.0, 0.0) };
    let base = if steep { (FRAC_PI_2, PI_2_LOW) } else { base };
    (base.0 + (t + (atan_core(t) + base.1))).copysign(x)
}

/// The angle of the point (x, y), in all quadrants.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let steep = a > b;
    let (low, high) = if steep { (b, a) } else { (a, b) };
    let q = if low == high { 1.0 } else { low / high };
    let q = if high == 0.0 { 0.0 } else { q };
    let middle = q > TAN_PI_8;
    let t = if middle { (q - 1.0) / (q + 1.0) } else { q };
    let base = if middle { (FRAC_PI_4, PI_4_LOW) } else { (0.0, 0.0) };
    let angle = base.0 + (t + (atan_core(t) + base.1));
    let angle = if steep { FRAC_PI_2 - (angle - PI_2_LOW) } else { angle };
    let angle = if x.is_sign_negative() { PI - (angle - 2.0 * PI_2_LOW) } else { angle };
    let sum = a + b;
    if sum.is_nan() { sum } else { angle.copysign(y) }
}

/// The sine; the standard library computes that of huge angles.
#[inline(always)]
pub fn sin(x: f64) -> f64 {
    if x.is_small() { angle::sin(x) } else { x.sin() }
}

#[inline(always)]
pub fn cos(x: f64) -> f64 {
    if x.is_small() { angle::cos(x) } else { x.cos() }
}

#[inline(always)]
pub fn tan(x: f64) -> f64 {
    if x.is_small() { angle::tan(x) } else { x.tan() }
}

/// ln |Γ(x)|. With branches.
#[inline(always)]
pub fn lgamma(x: f64) -> f64 {
    special::lgamma(x)
}

/// The derivative of digamma. With branches.
#[inline(always)]
pub fn trigamma(x: f64) -> f64 {
    special::trigamma(x)
}

/// The `n`-th derivative of digamma. With branches.
#[inline(always)]
pub fn polygamma(n: f64, x: f64) -> f64 {
    special::polygamma(n, x)
}

#[inline(always)]
pub fn digamma(x: f64) -> f64 {
    special::digamma(x)
}

#[inline(always)]
pub fn hypot(a: f64, b: f64) -> f64 {
    let (a, b) = (a.abs(), b.abs());
    let high = fmax(a, b);
    let scale = if high > 1e150 { 2f64.powi(-600) } else { 1.0 };
    let scale = if high < 1e-140 { 2f64.powi(600) } else { scale };
    let (u, v) = (a * scale, b * scale);
    let y = (u * u + v * v).sqrt() / scale;
    if high == f64::INFINITY { high } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(got: f64, want: f64) -> f64 {
        if got == want { 0.0 } else { (got - want).abs() / (want.abs().next_up() - want.abs()) }
    }

    /// Values from 40-digit arithmetic.
    #[test]
    fn known_values() {
        macro_rules! check {
            ($($name:ident: $(($x:expr, $want:expr)),+;)*) => { $($(
                let got = $name($x);
                assert!(ulps(got, $want) <= 3.5, "{}({:e}) = {got:e}, not {:e}", stringify!($name), $x,
                    $want);
            )+)* };
        }
        check! {
            exp: (-700.5, 5.980196118639791e-305), (-0.001, 0.999000499833375), (0.3, 1.3498588075760032),
                (1.75, 5.754602676005731), (709.0, 8.218407461554972e+307);
            exp2: (-1070.3, 6.4e-323), (0.7, 1.624504792712471), (1000.2, 1.2308401744400683e+301);
            expm1: (-3.0, -0.950212931632136), (-1e-09, -9.999999995e-10), (0.36, 0.43332941456034024),
                (5.0, 147.4131591025766);
            log: (1e-310, -713.8013788281542), (0.9999, -0.00010000500033334732),
                (1.6, 0.47000362924573563), (1e+300, 690.7755278982137);
            log2: (0.7, -0.5145731728297583), (1.4, 0.48542682717024166), (3e-300, -994.9934659654875);
            log10: (0.3, -0.5228787452803376), (2000000000.0, 9.301029995663981);
            log1p: (-0.75, -1.3862943611198906), (1e-12, 9.999999999995e-13), (0.4, 0.33647223662121295),
                (10000000000.0, 23.025850930040455);
            sigmoid: (-740.0, 4.2e-322), (-2.0, 0.11920292202211756), (3.0, 0.9525741268224333);
            tanh: (1e-09, 1e-09), (0.2, 0.197375320224904), (0.6, 0.5370495669980353),
                (2.3, 0.9800963962661914);
            sinh: (1e-05, 1.0000000000166668e-05), (0.5, 0.5210953054937474), (30.0, 5343237290762.231),
                (710.0, 1.1169973830808555e+308);
            cosh: (0.3, 1.0453385141288605), (710.0, 1.1169973830808555e+308);
            asinh: (1e-08, 1e-08), (0.4, 0.3900353197707153), (1e+200, 461.2101657793691);
            acosh: (1.0000001, 0.0004472135919037347), (3.0, 1.762747174039086), (1e+200, 461.2101657793691);
            atanh: (1e-08, 1e-08), (0.5, 0.5493061443340549), (0.999999, 7.254328619247669);
            asin: (0.3, 0.3046926540153975), (0.8, 0.9272952180016123), (0.9999999, 1.5703491131957876);
            acos: (-0.9, 2.6905658417935308), (-0.2, 1.7721542475852274), (0.3, 1.2661036727794992),
                (0.9999999, 0.00044721359910904126);
            atan: (0.1, 0.09966865249116204), (0.45, 0.4228539261329407), (2.0, 1.1071487177940904),
                (10000000000.0, 1.5707963266948965);
            erf: (1e-09, 1.1283791670955127e-09), (0.5, 0.5204998778130465), (0.95, 0.8208908072732779),
                (2.0, 0.9953222650189527);
            erfc: (-1.0, 1.8427007929497148), (0.1, 0.887537083981715), (0.69, 0.32915993776492225),
                (3.0, 2.209049699858544e-05), (26.0, 5.663192408856143e-296);
            erfinv: (1e-09, 8.86226925452758e-10), (0.3, 0.2724627147267543), (-0.9, -1.1630871536766743),
                (0.9999999999, 4.572824958544925);
            lgamma: (1e-05, 11.512919692895826), (0.3, 1.0957979948180756), (1.1, -0.049872441259839764),
                (2.2, 0.09694746679063887), (4.5, 2.4537365708424423), (100000.0, 1051287.7089736569),
                (-0.5, 1.2655121234846454);
            digamma: (0.001, -1000.5755719318103), (0.7, -1.2200235536979347), (3.0, 0.9227843350984671),
                (10000.0, 9.210290371142849), (-2.3, 3.3173231575618227);
        }
    }

    #[test]
    fn ends_of_the_range() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!([exp(inf), exp(-inf), exp(710.0), exp(-746.0)], [inf, 0.0, inf, 0.0]);
        assert_eq!([log(0.0), log(inf), log1p(-1.0), log2(0.0)], [-inf, inf, -inf, -inf]);
        assert_eq!([tanh(inf), tanh(-inf), erf(-inf), erfc(inf), erfc(-inf)], [1.0, -1.0, -1.0, 0.0, 2.0]);
        assert_eq!([sigmoid(-inf), sigmoid(inf), atan(inf), hypot(nan, inf)], [0.0, 1.0, FRAC_PI_2, inf]);
        assert_eq!([lgamma(0.0), lgamma(-3.0), digamma(0.0), erfinv(1.0)], [inf, inf, -inf, inf]);
        for f in
            [exp, expm1, log, log1p, tanh, sinh, cosh, asin, acos, atan, acosh, erf, erfc, lgamma, digamma]
        {
            assert!(f(nan).is_nan());
        }
        assert!(
            [log(-1.0), acosh(0.5), asin(1.5), acos(-2.0), atanh(1.5), digamma(-2.0)]
                .iter()
                .all(|y| y.is_nan())
        );
        for f in [expm1, log1p, tanh, sinh, asinh, atanh, asin, atan, erf, erfinv, sin, tan] {
            assert_eq!(f(-0.0).to_bits(), (-0.0f64).to_bits());
        }
    }

    #[test]
    fn angles_in_all_quadrants() {
        for y in [-2.5, -0.0, 0.0, 0.3, 1e-320, f64::INFINITY] {
            for x in [-3.0, -0.0, 0.0, 0.7, 1e300, f64::NEG_INFINITY] {
                assert!(ulps(atan2(y, x), y.atan2(x)) <= 2.0, "atan2({y}, {x})");
            }
        }
    }

    #[test]
    fn division_as_in_python() {
        assert_eq!([remainder(5.0, -3.0), remainder(-5.0, 3.0), fmod(-5.0, 3.0)], [-1.0, 1.0, -2.0]);
        assert_eq!(
            [floor_div(5.0, -3.0), floor_div(-5.0, 3.0), floor_div(1.0, 0.0)],
            [-2.0, -2.0, f64::INFINITY]
        );
        assert_eq!([round(0.5), round(1.5), round(-2.5)], [0.0, 2.0, -2.0]);
        assert!(maximum(f64::NAN, 1.0).is_nan() && minimum(1.0, f64::NAN).is_nan());
        assert_eq!([fmax(f64::NAN, 1.0), fmin(1.0, f64::NAN)], [1.0, 1.0]);
    }
}
