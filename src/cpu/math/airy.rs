//! The Airy function and its derivative. It has branches: for loops over single numbers.

use super::bessel::scaled_k;
use std::f64::consts::{FRAC_PI_4, PI};

/// The function and its derivative at 0, -1, -2 …
const NEAR: [(f64, f64); 11] = [
    (0.355_028_053_887_817_2, -0.258_819_403_792_806_8),
    (0.535_560_883_292_352_1, -0.010_160_567_116_645_21),
    (0.227_407_428_201_685_58, 0.618_259_020_741_691),
    (-0.378_814_293_677_658_07, 0.314_583_769_216_598_8),
    (-0.070_265_532_949_289_52, -0.790_628_575_368_581_4),
    (0.350_761_009_024_114_32, 0.327_192_818_554_443_14),
    (-0.329_145_173_629_823_1, 0.345_935_487_281_342_9),
    (0.184_280_835_250_505_64, -0.771_008_168_410_126_5),
    (-0.052_705_050_356_386_2, 0.935_560_938_198_306_6),
    (-0.022_133_721_547_341_404, -0.975_663_980_926_331_6),
    (0.040_241_238_486_443_19, 0.996_265_044_132_79),
];

/// The Airy function and its derivative.
pub fn airy(x: f64) -> (f64, f64) {
    if !x.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    if x >= 1.0 {
        let zeta = 2.0 / 3.0 * x * x.sqrt();
        let fall = (-zeta).exp() / PI;
        let thirds = |order: f64| if fall == 0.0 { 0.0 } else { scaled_k(zeta, order / 3.0) * fall };
        return ((x / 3.0).sqrt() * thirds(1.0), -x / 3.0_f64.sqrt() * thirds(2.0));
    }
    if x < -10.0 { far(-x) } else { near(x) }
}

/// By the Taylor series around the nearest integer, whose coefficients follow from y'' = x y.
fn near(x: f64) -> (f64, f64) {
    let at = (-x).round().max(0.0);
    let (centre, h) = (-at, x + at);
    let (mut before, (mut one, mut two)) = (0.0, NEAR[at as usize]);
    let (mut value, mut slope, mut power) = (one + two * h, two, h);
    for n in 0..60 {
        let n = f64::from(n);
        let next = (centre * one + before) / ((n + 1.0) * (n + 2.0));
        slope += (n + 2.0) * next * power;
        power *= h;
        value += next * power;
        (before, one, two) = (one, two, next);
    }
    (value, slope)
}

/// By the asymptotic expansion, which oscillates, for z = -x.
fn far(z: f64) -> (f64, f64) {
    let zeta = 2.0 / 3.0 * z * z.sqrt();
    let (mut even, mut odd, mut even_slope, mut odd_slope) = (1.0, 0.0, 1.0, 0.0);
    let mut term = 1.0;
    for k in 1..60 {
        let n = f64::from(k);
        let next =
            term * (6.0 * n - 5.0) * (6.0 * n - 3.0) * (6.0 * n - 1.0) / (216.0 * n * (2.0 * n - 1.0) * zeta);
        if next.abs() >= f64::abs(term) || next < 1e-18 {
            break;
        }
        term = next;
        let sign = if k / 2 % 2 == 0 { 1.0 } else { -1.0 };
        let turned = sign * term * (6.0 * n + 1.0) / (1.0 - 6.0 * n);
        if k % 2 == 0 {
            even += sign * term;
            even_slope += turned;
        } else {
            odd += sign * term;
            odd_slope += turned;
        }
    }
    let (s, c) = (zeta - FRAC_PI_4).sin_cos();
    let (root, fourth) = (PI.sqrt(), z.sqrt().sqrt());
    ((c * even + s * odd) / (root * fourth), (s * even_slope - c * odd_slope) * fourth / root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-14 * b.abs().max(0.1), "{a} {b}");
        close(airy(1.0).0, 0.135_292_416_312_881_47);
        close(airy(2.0).0, 0.034_924_130_423_274_36);
        close(airy(2.0).1, -0.053_090_384_433_653_88);
        close(airy(-2.4).0, -0.043_334_140_440_309_504);
        close(airy(-20.0).0, -0.176_406_127_077_984_34);
        close(airy(-20.0).1, 0.892_862_856_736_472_6);
    }
}
