//! Bessel functions of orders 0 and 1, of both kinds. They have branches: for loops over single numbers.

use std::f64::consts::PI;

/// Beyond this, the asymptotic expansion is exact to rounding.
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

/// The asymptotic expansion, without its exponential.
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

/// The modified function of order 0, divided by `exp(|x|)`.
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
    // Multiplies twice by the root of the exponential, so that only results that are too large overflow.
    let half = (0.5 * x).exp();
    if half == f64::INFINITY { half } else { far(x, 0.0) * half * half }
}

/// The modified function of order 1, divided by `exp(|x|)`.
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

/// The function of an integer order, for x ≥ 0: near 0 as the mean of cos(order τ - x sin τ), else by the asymptotic
/// expansion.
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
    let (along, _) = waves(x, order);
    along
}

/// The functions of the first and the second kind of an integer order, far from 0.
fn waves(x: f64, order: f64) -> (f64, f64) {
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
    // Subtracts (2 order + 1) π / 4 from the angle by the addition theorem, because x may be large.
    let (s, c) = if order == 0.0 { (sine - cosine, sine + cosine) } else { (-sine - cosine, sine - cosine) };
    let size = (PI * x).sqrt();
    ((even * c - odd * s) / size, (even * s + odd * c) / size)
}

pub fn j0(x: f64) -> f64 {
    wave(x.abs(), 0.0)
}

pub fn j1(x: f64) -> f64 {
    if x < 0.0 { -wave(-x, 1.0) } else { wave(x, 1.0) }
}

/// The functions of the second kind of orders 0 and 1, for x > 0: by Neumann series over the functions of the first
/// kind, which a recurrence from high orders down gives.
fn second(x: f64) -> (f64, f64) {
    if x.is_nan() || x < 0.0 || x == f64::INFINITY {
        return (f64::NAN, f64::NAN);
    }
    if x > FAR {
        return (waves(x, 0.0).1, waves(x, 1.0).1);
    }
    let log = (0.5 * x).ln() + EULER;
    if x < 1e-8 {
        return (2.0 / PI * log, -2.0 / (PI * x));
    }
    let top = match x {
        _ if x < 1e-3 => 8,
        _ if x < 2.0 => 24,
        _ => 2 * ((x as i32 + 50) / 2),
    };
    let (mut above, mut here) = (0.0, 1e-100);
    let (mut whole, mut even, mut odd) = (0.0, 0.0, 0.0);
    for n in (1..=top).rev() {
        let k = f64::from(n / 2);
        let sign = if n / 2 % 2 == 0 { 1.0 } else { -1.0 };
        if n % 2 == 0 {
            whole += 2.0 * here;
            even += sign * here / k;
        } else if n > 1 {
            odd += sign * f64::from(n) * here / (k * (k + 1.0));
        }
        (above, here) = (here, 2.0 * f64::from(n) / x * here - above);
    }
    let (zeroth, first) = (here, above);
    let whole = whole + zeroth;
    let y0 = (log * zeroth - 2.0 * even) * 2.0 / PI;
    let y1 = ((log - 1.0) * first - zeroth / x - odd) * 2.0 / PI;
    (y0 / whole, y1 / whole)
}

const EULER: f64 = 0.577_215_664_901_532_9;

pub fn y0(x: f64) -> f64 {
    second(x).0
}

pub fn y1(x: f64) -> f64 {
    second(x).1
}

/// The modified function of the second kind of any order, multiplied by `exp(x)`: the integral of exp(-x (cosh t - 1))
/// cosh(order t).
pub fn scaled_k(x: f64, order: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    // The sum over equidistant points converges as fast as for a Gaussian, whose width falls as x grows.
    let step = f64::min(0.2, 0.6 / x.sqrt());
    let (mut sum, mut t) = (0.5, step);
    loop {
        let half = (0.5 * t).sinh();
        let fall = 2.0 * x * half * half;
        if fall > 60.0 + order * t {
            return sum * step;
        }
        sum += (-fall).exp() * (order * t).cosh();
        t += step;
    }
}

/// Up to here, the first term of the series suffices.
const NEAR: f64 = 1e-9;

pub fn k0e(x: f64) -> f64 {
    if x > 0.0 && x < NEAR { (-(0.5 * x).ln() - EULER) * x.exp() } else { scaled_k(x, 0.0) }
}

pub fn k1e(x: f64) -> f64 {
    if x > 0.0 && x < NEAR { x.exp() / x } else { scaled_k(x, 1.0) }
}

pub fn k0(x: f64) -> f64 {
    k0e(x) * (-x).exp()
}

pub fn k1(x: f64) -> f64 {
    k1e(x) * (-x).exp()
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
        close(y0(1.0), 0.08825696421567697);
        close(y1(1.0), -0.7812128213002887);
        close(y0(20.0), 0.06264059680938384);
        close(y1(50.0), -0.05679566856201477);
        close(k0(1.0), 0.42102443824070834);
        close(k1(0.1), 9.853844780870606);
        close(k0e(40.0), 0.19755558495729816);
        close(k1e(1e6), 0.0012533146073081549);
        assert_eq!(i0(800.0), f64::INFINITY);
    }
}
