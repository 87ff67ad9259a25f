//! The normal distribution and related functions: scaled error functions, logarithms of tails, the inverse; incomplete
//! gamma functions, the zeta function. They have branches: for loops over single numbers.

use super::erf::erfc;
use super::special::{lgamma, zeta as sum_of_powers};
use std::f64::consts::{PI, SQRT_2};

/// exp(x²) erfc(x).
pub fn erfcx(x: f64) -> f64 {
    if x < -27.0 {
        return f64::INFINITY;
    }
    if x < 25.0 {
        let square = x * x;
        let rest = x.mul_add(x, -square);
        return erfc(x) * square.exp() * (1.0 + rest);
    }
    let z = 1.0 / (2.0 * x * x);
    // The asymptotic series: from 25 on, its next term is below 1e-16.
    let series = [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0].iter().fold(1.0, |sum, odd| 1.0 - odd * z * sum);
    series / (x * PI.sqrt())
}

/// The logarithm of the normal distribution function.
pub fn log_ndtr(x: f64) -> f64 {
    if x < -1.0 { (0.5 * erfcx(-x / SQRT_2)).ln() - 0.5 * x * x } else { (-0.5 * erfc(x / SQRT_2)).ln_1p() }
}

/// The inverse of the normal distribution function.
pub fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 {
        return -ndtri(1.0 - p);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    // A first guess, refined by steps of third order.
    let t = (-2.0 * p.ln()).sqrt();
    let mut x = (2.515517 + t * (0.802853 + t * 0.010328))
        / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
        - t;
    for _ in 0..4 {
        // The error divided by the density, in a form that neither overflows nor underflows.
        let share = 0.5 * erfcx(-x / SQRT_2);
        let u = (2.0 * PI).sqrt() * (share - p * (0.5 * x * x).exp());
        let step = u / (1.0 + 0.5 * x * u);
        if !step.is_finite() {
            break;
        }
        x -= step;
        if step.abs() <= 1e-16 * x.abs() {
            break;
        }
    }
    x
}

/// The sum of (k + q)⁻ˣ over all k ≥ 0.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q > 0.0 {
        return if q == f64::INFINITY { 0.0 } else { sum_of_powers(x, q) };
    }
    if q == q.floor() {
        return f64::INFINITY;
    }
    // The terms below zero would be too many to sum.
    if x != x.floor() || q < -1e6 {
        return f64::NAN;
    }
    let (mut y, mut sum) = (q, 0.0);
    while y < 0.0 {
        sum += y.powf(-x);
        y += 1.0;
    }
    sum + sum_of_powers(x, y)
}

/// From here on, the gamma function uses Stirling's series, and the incomplete gamma functions near x = a use a series
/// in 1 / a.
const LARGE: f64 = 20.0;

/// μ - ln(1 + μ)
fn less_log(mu: f64) -> f64 {
    if mu.abs() > 0.3 {
        return mu - mu.ln_1p();
    }
    // The series of the logarithm in s; its first term and μ together give sμ.
    let s = mu / (2.0 + mu);
    let rest = (1..12).rev().fold(0.0, |sum, k| s * s * (sum + 1.0 / f64::from(2 * k + 1)));
    s * (mu - 2.0 * rest)
}

/// xᵃ exp(-x) / Γ(a)
fn front(a: f64, x: f64) -> f64 {
    if a < LARGE {
        return (a * x.ln() - x - lgamma(a)).exp();
    }
    let square = (1.0 / a).powi(2);
    let stirling =
        (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0)))) / a;
    (a / (2.0 * PI)).sqrt() * (-a * less_log((x - a) / a) - stirling).exp()
}

/// η / μ as a series in η, where η² / 2 = μ - ln(1 + μ).
const BULK: [f64; 27] = {
    // μ = Σ mu[n] ηⁿ, from μ μ' = η (1 + μ); then its reciprocal.
    let (mut mu, mut series) = ([0.0; 28], [0.0; 27]);
    (mu[1], series[0]) = (1.0, 1.0);
    let mut n = 2;
    while n < 28 {
        let (mut sum, mut i) = (mu[n - 1] / (n + 1) as f64, 2);
        while i < n {
            sum -= 0.5 * mu[i] * mu[n + 1 - i];
            i += 1;
        }
        mu[n] = sum;
        n += 1;
    }
    n = 1;
    while n < 27 {
        let mut i = 1;
        while i <= n {
            series[n] -= mu[i + 1] * series[n - i];
            i += 1;
        }
        n += 1;
    }
    series
};

/// Both incomplete gamma functions for large a and x near it: Temme's expansion.
fn near_the_bulk(a: f64, x: f64) -> [f64; 2] {
    let mu = (x - a) / a;
    let half = less_log(mu);
    let eta = (2.0 * half).sqrt().copysign(mu);
    let mut terms = [0.0; 26];
    (terms[25], terms[24]) = (BULK[26], BULK[25]);
    for m in (1..25).rev() {
        terms[m - 1] = BULK[m] + (m + 1) as f64 * terms[m + 1] / a;
    }
    let sum = terms.iter().rev().fold(0.0, |sum, term| sum * eta + term) / (1.0 + terms[1] / a);
    let rest = (-a * half).exp() / (2.0 * PI * a).sqrt() * sum;
    let share = |sign: f64| 0.5 * erfc(sign * eta * (0.5 * a).sqrt());
    [share(-1.0) - rest, share(1.0) + rest]
}

/// The regularized lower incomplete gamma function.
pub fn igamma(a: f64, x: f64) -> f64 {
    match parts(a, x) {
        Some([below, _]) => below,
        None => f64::NAN,
    }
}

/// The regularized upper incomplete gamma function.
pub fn igammac(a: f64, x: f64) -> f64 {
    match parts(a, x) {
        Some([_, above]) => above,
        None => f64::NAN,
    }
}

/// Both of them. The smaller one is computed, by a series for small x and a continued fraction for large x; for large a
/// and x near it, both at once.
fn parts(a: f64, x: f64) -> Option<[f64; 2]> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a == 0.0 && x == 0.0) {
        return None;
    }
    if a == 0.0 {
        return Some([1.0, 0.0]);
    }
    if x == 0.0 {
        return Some([0.0, 1.0]);
    }
    match (a == f64::INFINITY, x == f64::INFINITY) {
        (true, true) => return None,
        (true, false) => return Some([0.0, 1.0]),
        (false, true) => return Some([1.0, 0.0]),
        _ => {}
    }
    if a >= LARGE && ((x - a) / a).abs() < 0.3 {
        return Some(near_the_bulk(a, x));
    }
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..500 {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        let below = sum * front(a, x);
        return Some([below, 1.0 - below]);
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for i in 1..500 {
        let i = f64::from(i);
        let step = -i * (i - a);
        b += 2.0;
        let away = |x: f64| if x.abs() < TINY { TINY } else { x };
        d = 1.0 / away(step * d + b);
        c = away(b + step / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    let above = fraction * front(a, x);
    Some([1.0 - above, above])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 2e-14 * b.abs().max(1e-3), "{a} {b}");
        close(erfcx(1.0), 0.427583576155807);
        close(erfcx(30.0), 0.01879588886141675);
        close(log_ndtr(-10.0), -53.23128515051247);
        close(ndtri(0.975), 1.959963984540054);
        close(ndtri(1e-20), -9.262340089798408);
        close(zeta(3.0, 2.0), 0.2020569031595943);
        close(igamma(2.0, 1.5), 0.4421745996289254);
        close(igammac(2.0, 10.0), 0.0004993992273873325);
    }
}
