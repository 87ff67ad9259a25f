//! Bessel's functions of the orders 0 and 1. With branches: for loops over single numbers.

use std::f64::consts::PI;

/// Beyond this the expansion at infinity is exact to rounding.
const FAR: f64 = 30.0;

/// The sum of (x²/4)ᵏ / (k! (k + order)!).
fn series(x: f64, order: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..200 {
        let k = f64::from(k);
        term *= x * x * 0.25 / (k * (k + order));
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

/// The expansion at infinity without its exponential.
fn far(x: f64, order: f64) -> f64 {
    let mu = 4.0 * order * order;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..40 {
        let k = f64::from(k);
        let odd = 2.0 * k - 1.0;
        let next = -term * (mu - odd * odd) / (8.0 * k * x);
        if next.abs() >= term.abs() || next.abs() < 1e-18 {
            break;
        }
        term = next;
        sum += term;
    }
    sum / (2.0 * PI * x).sqrt()
}

/// The modified function of order 0, by `exp(|x|)`.
pub fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x == f64::INFINITY {
        0.0
    } else if x > FAR {
        far(x, 0.0)
    } else {
        series(x, 0.0) * (-x).exp()
    }
}

/// The modified function of order 0.
pub fn i0(x: f64) -> f64 {
    let x = x.abs();
    if x <= FAR {
        return series(x, 0.0);
    }
    // In two steps, so that only what is too large overflows.
    let half = (0.5 * x).exp();
    if half == f64::INFINITY { half } else { far(x, 0.0) * half * half }
}

/// The modified function of order 1, by `exp(|x|)`.
pub fn i1e(x: f64) -> f64 {
    let y = x.abs();
    if y == f64::INFINITY {
        return 0.0;
    }
    let size = if y > FAR { far(y, 1.0) } else { 0.5 * y * series(y, 1.0) * (-y).exp() };
    size.copysign(x)
}

/// The modified function of order 1.
pub fn i1(x: f64) -> f64 {
    let y = x.abs();
    let size = if y <= FAR {
        0.5 * y * series(y, 1.0)
    } else {
        let half = (0.5 * y).exp();
        if half == f64::INFINITY { half } else { far(y, 1.0) * half * half }
    };
    size.copysign(x)
}

/// The function of a whole order, for x ≥ 0: near 0 as the mean of cos(order τ - x sin τ), far away by its waves.
fn wave(x: f64, order: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    if x <= FAR {
        const POINTS: i32 = 64;
        let point = |k: i32| {
            let angle = PI * (f64::from(k) + 0.5) / f64::from(POINTS);
            (order * angle - x * angle.sin()).cos()
        };
        return (0..POINTS).map(point).sum::<f64>() / f64::from(POINTS);
    }
    let mu = 4.0 * order * order;
    let (mut even, mut odd, mut term) = (1.0, 0.0, 1.0);
    for k in 1..40 {
        let step = 2.0 * f64::from(k) - 1.0;
        let next = term * (mu - step * step) / (8.0 * f64::from(k) * x);
        if next.abs() >= f64::abs(term) {
            break;
        }
        term = next;
        match k % 4 {
            0 => even += term,
            1 => odd += term,
            2 => even -= term,
            _ => odd -= term,
        }
    }
    let (sine, cosine) = x.sin_cos();
    // The angle less (2 order + 1) π / 4, by sums: x may be large.
    let (s, c) = if order == 0.0 { (sine - cosine, sine + cosine) } else { (-sine - cosine, sine - cosine) };
    (even * c - odd * s) / (PI * x).sqrt()
}

pub fn j0(x: f64) -> f64 {
    wave(x.abs(), 0.0)
}

pub fn j1(x: f64) -> f64 {
    if x < 0.0 { -wave(-x, 1.0) } else { wave(x, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 4e-15 * b.abs().max(0.1), "{a} {b}");
        close(i0(1.0), 1.2660658777520084);
        close(i1(-1.0), -0.565159103992485);
        close(i0e(50.0), 0.05656162664745419);
        close(i1e(50.0), 0.05599312389289544);
        close(j0(1.0), 0.7651976865579666);
        close(j1(1.0), 0.4400505857449335);
        close(j0(50.0), 0.055812327669251746);
        close(j1(50.0), -0.09751182812517514);
        assert_eq!(i0(800.0), f64::INFINITY);
    }
}
