//! Rarely used functions that need branches: the gamma family, in f64.

use super::common::poly;
use std::f64::consts::PI;

/// ln Γ by Stirling's series, for x ≥ 8.
fn stirling(x: f64) -> f64 {
    const HALF_LN_2PI: f64 = 0.9189385332046728;
    let z = 1.0 / (x * x);
    let series = poly!(z; 1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0,
        1.0 / 156.0, -3617.0 / 122400.0)
        / x;
    (x - 0.5) * (x.ln() - 1.0) + (HALF_LN_2PI - 0.5 + series)
}

/// ln |Γ(x)|; infinite at the poles.
pub fn lgamma(x: f64) -> f64 {
    if !x.is_finite() {
        return x.abs();
    }
    if x <= 0.0 {
        if x == x.floor() {
            return f64::INFINITY;
        }
        // The reflection formula; the sine of a reduced argument stays exact near the poles.
        let sine = (PI * (x - x.round())).sin().abs();
        return if x > -1e-20 { -(-x).ln() } else { (PI / sine).ln() - lgamma(1.0 - x) };
    }
    if x >= 8.0 {
        return stirling(x);
    }
    let (mut y, mut product) = (x, 1.0);
    while y > 2.5 {
        y -= 1.0;
        product *= y;
    }
    match y {
        _ if y <= 0.5 => lgamma_from_two(y) - y.ln_1p() - y.ln(),
        _ if y < 1.5 => lgamma_from_two(y - 1.0) - (y - 1.0).ln_1p(),
        _ if product == 1.0 => lgamma_from_two(y - 2.0),
        _ => product.ln() + lgamma_from_two(y - 2.0),
    }
}

/// ln Γ(2 + z) for |z| ≤ ½.
fn lgamma_from_two(z: f64) -> f64 {
    z * poly!(z; 0.42278433509846713, 0.32246703342411326, -0.0673523010531956, 0.020580808427777205,
        -0.0073855510289379716, 0.002890510331212008, -0.0011927539009206499, 0.0005096695109438671,
        -0.00022315497868452666, 9.945773312175258e-05, -4.492371712602682e-05, 2.050514024157414e-05,
        -9.4563379276148e-06, 4.386645152495017e-06, -1.974188896090214e-06, 9.15616535278139e-07,
        -5.812497213319138e-07, 2.82916391188987e-07)
}

/// The derivative of ln Γ: NaN at the negative integers, and an infinity at 0, whose sign depends on that of the zero.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * (x - x.round())).tan();
    }
    let (mut y, mut sum) = (x, 0.0);
    while y < 10.0 {
        sum -= 1.0 / y;
        y += 1.0;
    }
    let z = 1.0 / (y * y);
    let series = z
        * poly!(z; 1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0,
        1.0 / 12.0, -3617.0 / 8160.0);
    sum + (y.ln() - 0.5 / y - series)
}

/// The derivative of digamma.
pub fn trigamma(x: f64) -> f64 {
    if x <= 0.0 {
        if x == x.floor() {
            return f64::INFINITY;
        }
        let s = PI / (PI * (x - x.round())).sin();
        return s * s - trigamma(1.0 - x);
    }
    let (mut y, mut sum) = (x, 0.0);
    while y < 10.0 {
        sum += 1.0 / (y * y);
        y += 1.0;
    }
    let z = 1.0 / (y * y);
    let series =
        poly!(z; 1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0);
    sum + 1.0 / y + 0.5 * z + z / y * series
}

/// The sum of (x + k)⁻ˢ over all k ≥ 0, for x > 0 and s ≥ 2.
pub fn zeta(s: f64, x: f64) -> f64 {
    let (mut y, mut sum) = (x, 0.0);
    while y < 10.0 {
        sum += y.powf(-s);
        y += 1.0;
    }
    // The Euler-Maclaurin formula: Bernoulli numbers over factorials, times the derivatives of y⁻ˢ.
    let last = y.powf(-s);
    sum += y * last / (s - 1.0) + 0.5 * last;
    let mut factor = last * s / y;
    for (k, b) in (1..).zip([
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30240.0,
        -1.0 / 1209600.0,
        1.0 / 47900160.0,
        -691.0 / 1307674368000.0,
        1.0 / 74724249600.0,
    ]) {
        sum += b * factor;
        let step = f64::from(2 * k);
        factor *= (s + step - 1.0) * (s + step) / (y * y);
    }
    sum
}

/// The `n`-th derivative of digamma, for an integer n ≥ 1.
pub fn polygamma(n: f64, x: f64) -> f64 {
    let (s, odd) = (n + 1.0, n % 2.0 == 1.0);
    let sum = if x == f64::INFINITY {
        0.0
    } else if x > 0.0 {
        zeta(s, x)
    } else if x == x.floor() {
        f64::INFINITY
    } else {
        // The terms below zero, mirrored, are a sum that ends where another sum begins.
        let above = x - x.floor();
        let below = zeta(s, 1.0 - above) - zeta(s, 1.0 - x);
        zeta(s, above) + if odd { below } else { -below }
    };
    let factorial: f64 = (2..=n.clamp(1.0, 171.0) as i32).map(f64::from).product();
    sum * if odd { factorial } else { -factorial }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_digamma() {
        for x in [0.1, 0.7, 1.0, 3.5, 12.0, -0.3, -2.6] {
            assert!((polygamma(1.0, x) / trigamma(x) - 1.0).abs() < 1e-12, "{x}");
            for n in [1.0, 2.0, 3.0] {
                let slope = (polygamma(n, x + 1e-6) - polygamma(n, x - 1e-6)) / 2e-6;
                assert!((polygamma(n + 1.0, x) / slope - 1.0).abs() < 1e-6, "{n} {x}");
            }
        }
        assert_eq!(polygamma(2.0, -1.0), f64::NEG_INFINITY);
    }
}
