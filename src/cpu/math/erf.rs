//! The error function of f64, its complement, its inverse, and the normal distribution, which share two polynomials.

use super::common::poly;
use super::exponential::{exp, expm1_core, scaled, split_exponent};
use super::f64::log;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, PI};

/// eˣ² erfc x (1 + 2x) for x ≥ 0 is smooth enough for one polynomial in (x - 4) / (x + 4).
#[inline(always)]
fn erfc_core(x: f64) -> f64 {
    let a = if x > 30.0 { 30.0 } else { x };
    let t = (a - 4.0) / (a + 4.0);
    let p = poly!(t; 1.2329951186255526, -0.1396211168405629, 0.015379652102619922, 0.06809705425473522,
        -0.10103906603630877, 0.09373283499686472, -0.06633036581241723, 0.03716751556131269,
        -0.01619773404991162, 0.0050319697673496255, -0.0007577733958838441, -0.00019925557641178388,
        0.00015062243751732846, -2.4402906473094203e-05, -1.1225200987500523e-05, 5.7172522333990035e-06,
        3.018343226981021e-07, -8.342229073640516e-07, 6.249191117066149e-08, 1.1457547953167116e-07,
        -7.817456604775876e-09, -1.3398907591458981e-08, -1.7162455602581445e-09);
    // x² in two parts, because the exponential would magnify its rounding.
    let high = f64::from_bits(a.to_bits() & !0x7ff_ffff);
    let low = (a - high) * (a + high);
    let e = 1.0 - low * (1.0 - low * (0.5 - low / 6.0));
    let p = p / (1.0 + 2.0 * a) * e;
    let (n, r) = split_exponent(-high * high);
    scaled(p + p * expm1_core(r), n)
}

/// erf x for |x| ≤ 1.
#[inline(always)]
fn erf_core(x: f64) -> f64 {
    let z = x * x;
    x * poly!(z; FRAC_2_SQRT_PI, -0.3761263890318355, 0.11283791670945253, -0.02686617064327622,
        0.005223977607423468, -0.0008548325989696758, 0.00012055295320494294, -1.4924744663335489e-05,
        1.6447517677871873e-06, -1.6209175911748696e-07, 1.3722976265924504e-08, -7.801188874097751e-10)
}

#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let a = x.abs();
    let far = erfc_core(a);
    let far = if x < 0.0 { 2.0 - far } else { far };
    if a < 0.7 { 1.0 - erf_core(x) } else { far }
}

#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    (if a > 1.0 { 1.0 - erfc_core(a) } else { erf_core(a) }).copysign(x)
}

/// The cumulative distribution function of the normal distribution.
#[inline(always)]
pub fn ndtr(x: f64) -> f64 {
    0.5 * (erf(x * FRAC_1_SQRT_2) + 1.0)
}

/// The inverse of `erf`: an approximation in single precision (M. Giles, 2010), then two Halley steps.
#[inline(always)]
pub fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    let w = -log((1.0 - a) * (1.0 + a));
    let t = w - 2.5;
    let near = a
        * poly!(t; 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
        -3.5233877e-06, 3.43273939e-07, 2.81022636e-08);
    let t = w.sqrt() - 3.0;
    let far = a
        * poly!(t; 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
        0.00134934322, 0.000100950558, -0.000200214257);
    // Beyond single precision: from the asymptotic form of erfc, refined once.
    let guess = (w + LN_2 - 0.5 * log(PI * w)).sqrt();
    let beyond = (w + LN_2 - log(guess * PI.sqrt() * (1.0 + 0.5 / (guess * guess)))).sqrt();
    let y = if w < 5.0 {
        near
    } else if w < 16.0 {
        far
    } else {
        beyond
    };
    let y = erfinv_step(a, erfinv_step(a, y));
    let y = if a == 1.0 { f64::INFINITY } else { y };
    (if a <= 1.0 { y } else { f64::NAN }).copysign(x)
}

/// One Halley step towards erf y = a.
#[inline(always)]
fn erfinv_step(a: f64, y: f64) -> f64 {
    let miss = if y > 0.5 { (1.0 - a) - erfc_core(y) } else { erf_core(y) - a };
    let u = miss * (0.5 * PI.sqrt()) * exp(y * y);
    y - u / (1.0 + y * u)
}
