//! Gamma distributed samples, equal to PyTorch's, and the derivatives of gamma and beta samples with respect to their
//! parameters.

use super::{Generator, normal, unit};
use crate::cpu::math::f64::digamma;

/// A sample of the gamma distribution with rate 1, by Marsaglia and Tsang's rejection. `round` rounds to the precision
/// of `alpha`, in which PyTorch computes.
pub fn gamma(generator: &mut Generator, alpha: f64, round: fn(f64) -> f64) -> f64 {
    let (mut alpha, mut scale) = (alpha, 1.0);
    if alpha < 1.0 {
        if alpha == 0.0 {
            return 0.0;
        }
        // For a small shape, draws with a shape larger by one, and scales the sample down.
        scale = (1.0 - unit(generator)).powf(round(1.0 / alpha));
        alpha = round(alpha + 1.0);
    }
    let d = round(alpha - f64::from(1f32 / 3.0));
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal::one(generator);
        let y = 1.0 + c * x;
        if y <= 0.0 {
            continue;
        }
        let (v, square) = (y * y * y, x * x);
        let u = 1.0 - unit(generator);
        let near = u < 1.0 - f64::from(0.0331f32) * square * square;
        if near || u.ln() < 0.5 * square + d * (1.0 - v + v.ln()) {
            return scale * d * v;
        }
    }
}

/// The derivative of a sample `x` of the gamma distribution with respect to its shape, at the same probability.
///
/// With the weights `(t/x)^(alpha-1) exp(x-t)`, it is an integral over `t` on one side of `x`, where all terms have one
/// sign.
pub fn gamma_slope(alpha: f64, x: f64) -> f64 {
    if alpha.is_nan() || x.is_nan() || alpha <= 0.0 || x < 0.0 || alpha.is_infinite() {
        return f64::NAN;
    }
    if x == 0.0 {
        return 0.0;
    }
    let push = x.ln() - digamma(alpha);
    let scale = 1.0 / ((alpha - x).abs() + alpha.sqrt());
    // Below 1, the integrand on the other side ends too abruptly; little cancels here.
    if push < 0.0 || x < 0.8 {
        // t = x exp(-y)
        let [sum, first] = integrals(scale, |y| (-alpha * y - x * (-y).exp_m1(), y));
        x * (first - push * sum)
    } else {
        // t = x exp(y)
        let [sum, first] = integrals(scale, |y| (alpha * y - x * y.exp_m1(), y));
        x * (push * sum + first)
    }
}

/// The derivative of a sample `x` of the beta distribution with respect to `alpha`, at the same probability, divided by
/// `1 - x`.
pub fn dirichlet_slope(x: f64, alpha: f64, total: f64) -> f64 {
    let beta = total - alpha;
    if !(x > 0.0 && x < 1.0 && alpha > 0.0 && beta > 0.0 && total.is_finite()) {
        return if x == 0.0 || x == 1.0 { 0.0 } else { f64::NAN };
    }
    let push = digamma(total) - digamma(alpha) + x.ln();
    let left = 1.0 - x;
    let (slope, bend) = (alpha - (beta - 1.0) * x / left, (beta - 1.0).abs() * x / (left * left));
    if push < 0.0 {
        // t = x exp(-y)
        let scale = 1.0 / (slope.abs() + bend.sqrt() + alpha.min(1.0));
        let [sum, first] =
            integrals(scale, |y| (-alpha * y + (beta - 1.0) * (-x * (-y).exp_m1() / left).ln_1p(), y));
        x * (first - push * sum) / left
    } else {
        // t = 1 - (1 - x) exp(-y)
        let (slope, bend) = (beta - (alpha - 1.0) * left / x, (alpha - 1.0).abs() * left / (x * x));
        let scale = 1.0 / (slope.abs() + bend.sqrt() + beta.min(1.0));
        let [sum, first] = integrals(scale, |y| {
            let log = (-left * (-y).exp_m1() / x).ln_1p();
            (-beta * y + (alpha - 1.0) * log, log)
        });
        push * sum + first
    }
}

/// The integrals of `exp(e)` and `w exp(e)` over positive `y`, where `f(y)` is `(e, w)`, by the trapezoidal rule in `u`
/// with `y = scale exp(u - exp(-u))`. It converges fast for smooth functions that decay at about the given scale.
fn integrals(scale: f64, f: impl Fn(f64) -> (f64, f64)) -> [f64; 2] {
    const STEP: f64 = 0.1;
    let mut sums = [0.0f64; 2];
    for i in -36..700 {
        let u = f64::from(i) * STEP;
        let fall = (-u).exp();
        let y = scale * (u - fall).exp();
        let (exponent, weight) = f(y);
        let term = exponent.exp() * y * (1.0 + fall);
        if !term.is_finite() {
            break;
        }
        sums[0] += term;
        sums[1] += weight * term;
        // Stop past the largest terms, once the rest is negligible.
        if u > 1.0 && (1.0 + weight.abs()) * term < 1e-17 * sums[0].min(sums[1].abs()) {
            break;
        }
    }
    sums.map(|sum| sum * STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the definition, in 30-digit arithmetic.
    #[test]
    fn slopes_of_samples() {
        let near = |found: f64, known: f64| assert!((found / known - 1.0).abs() < 1e-6, "{found} {known}");
        GAMMAS.iter().for_each(|&(alpha, x, known)| near(gamma_slope(alpha, x), known));
        BETAS.iter().for_each(|&(x, alpha, total, known)| near(dirichlet_slope(x, alpha, total), known));
        assert_eq!(gamma_slope(2.0, 0.0), 0.0);
        assert!(gamma_slope(-1.0, 1.0).is_nan() && dirichlet_slope(0.5, 2.0, 1.0).is_nan());
        // In the tails, and for large shapes, nothing overflows.
        assert!((gamma_slope(1e8, 1e8) - 1.0).abs() < 1e-3);
        assert!(gamma_slope(2.0, 1e4).is_finite() && gamma_slope(0.001, 1e-300) > 0.0);
    }

    const GAMMAS: &[(f64, f64, f64)] = &[
        (0.01, 1e-20, 4.5490816402012235e-17),
        (0.01, 0.79, 55.79620783119069),
        (0.01, 0.81, 56.297647442839384),
        (0.02, 3.0, 40.95937236383121),
        (0.3, 0.05, 0.4947109870041313),
        (0.3, 2.0, 3.5641103212469214),
        (1.0, 0.5, 0.806979116825318),
        (1.0, 4.0, 2.1698556759224794),
        (2.5, 2.5, 1.0686730199876306),
        (2.5, 0.1, 0.1405497929736699),
        (2.5, 12.0, 2.110481520182),
        (40.0, 30.0, 0.8666398251504487),
        (40.0, 41.0, 1.0166258763799658),
        (40.0, 60.0, 1.2214508415791072),
        (1000.0, 950.0, 0.9747350236971637),
        (1000.0, 1100.0, 1.048586678561617),
    ];
    const BETAS: &[(f64, f64, f64, f64)] = &[
        (1e-20, 0.01, 0.02, 9.603560571246841e-17),
        (0.001, 0.01, 5.0, 0.48687159648638895),
        (0.001, 4.0, 5.0, 0.001728667487232767),
        (1e-06, 0.2, 0.4, 8.043930006511526e-05),
        (0.999999, 0.2, 0.4, 13.638266834515942),
        (0.99, 0.05, 0.2, 100.54498508919282),
        (0.3, 0.5, 1.0, 1.3220415512632513),
        (0.9, 0.2, 3.0, 2.1417354245795943),
        (0.01, 2.0, 2.5, 0.024323982148701184),
        (0.5, 5.0, 10.0, 0.10692435696827407),
        (0.4, 50.0, 100.0, 0.008983774899885449),
        (0.7, 50.0, 100.0, 0.011858627543297431),
        (0.02, 0.05, 0.1, 5.538859150810507),
        (0.999, 3.0, 3.5, 0.3605588772688157),
        (0.6, 300.0, 500.0, 0.0020024462808407514),
    ];
}
