//! Samples of the Poisson and the binomial distribution, equal to PyTorch's.

use super::{Generator, unit};
use crate::cpu::math::f64::lgamma;
use std::f64::consts::TAU;

/// A sample of the Poisson distribution.
pub fn poisson(generator: &mut Generator, rate: f64) -> f64 {
    if rate >= 10.0 {
        return poisson_by_rejection(generator, rate);
    }
    if rate == 0.0 {
        return 0.0;
    }
    // Knuth's algorithm: counts uniform numbers while their product stays above exp(-rate).
    let least = (-rate).exp();
    let (mut count, mut product) = (0.0, 1.0);
    loop {
        product *= unit(generator);
        // A NaN rate ends here, too.
        if product.partial_cmp(&least) != Some(std::cmp::Ordering::Greater) {
            return count;
        }
        count += 1.0;
    }
}

/// Hörmann's PTRS: transformed rejection with squeeze.
fn poisson_by_rejection(generator: &mut Generator, rate: f64) -> f64 {
    if rate.is_infinite() {
        return rate;
    }
    let log_rate = rate.ln();
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let v_r = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (u, v) = (unit(generator) - 0.5, unit(generator));
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let height = v.ln() + inverse_alpha.ln() - (a / (us * us) + b).ln();
        if height <= -rate + k * log_rate - lgamma(k + 1.0) {
            return k;
        }
    }
}

/// A sample of the binomial distribution; `round` rounds to the precision that PyTorch computes in.
pub fn binomial(generator: &mut Generator, count: f64, probability: f64, round: fn(f64) -> f64) -> f64 {
    if count <= 0.0 || probability <= 0.0 {
        return 0.0;
    }
    if probability >= 1.0 {
        return count;
    }
    // The loop below would not end for a NaN or infinite count.
    if count.is_nan() || count.is_infinite() {
        return f64::NAN;
    }
    let of = |generator: &mut Generator, p: f64| {
        if round(count * p) >= 10.0 {
            binomial_by_rejection(generator, count, p, round)
        } else {
            binomial_by_waiting(generator, count, p, round)
        }
    };
    if probability <= 0.5 {
        of(generator, probability)
    } else if probability > 0.5 {
        count - of(generator, round(1.0 - probability))
    } else {
        f64::NAN
    }
}

/// Counts how many geometric waiting times fit into the trials.
fn binomial_by_waiting(generator: &mut Generator, count: f64, p: f64, round: fn(f64) -> f64) -> f64 {
    let log_failure = round((-p).ln_1p());
    let (mut trials, mut successes) = (0.0, 0.0);
    loop {
        let u = round(unit(generator));
        trials = round(trials + round(round(u.ln()) / log_failure).ceil());
        if trials > count || trials.is_nan() {
            return successes;
        }
        successes += 1.0;
    }
}

/// Hörmann's BTRS: transformed rejection with squeeze.
fn binomial_by_rejection(generator: &mut Generator, count: f64, p: f64, round: fn(f64) -> f64) -> f64 {
    let deviation = round((count * p * (1.0 - p)).sqrt());
    let b = round(1.15 + 2.53 * deviation);
    let a = round(-0.0873 + 0.0248 * b + 0.01 * p);
    let c = round(count * p + 0.5);
    let v_r = round(0.92 - 4.2 / b);
    let odds = round(p / (1.0 - p));
    let alpha = round((2.83 + 5.1 / b) * deviation);
    let m = ((count + 1.0) * p).floor();
    loop {
        let u = round(unit(generator) - 0.5);
        let v = round(unit(generator));
        let us = round(0.5 - u.abs());
        let k = round((2.0 * a / us + b) * u + c).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || k > count {
            continue;
        }
        let height = (v * alpha / (a / (us * us) + b)).ln();
        let bound = (m + 0.5) * ((m + 1.0) / (odds * (count - m + 1.0))).ln()
            + (count + 1.0) * ((count - m + 1.0) / (count - k + 1.0)).ln()
            + (k + 0.5) * (odds * (count - k + 1.0) / (k + 1.0)).ln()
            + stirling_rest(m)
            + stirling_rest(count - m)
            - stirling_rest(k)
            - stirling_rest(count - k);
        if round(height) <= round(bound) {
            return k;
        }
    }
}

/// The error of Stirling's formula for `ln k!`.
fn stirling_rest(k: f64) -> f64 {
    let n = k + 1.0;
    if k <= 9.0 {
        return lgamma(n) - ((k + 0.5) * n.ln() - n + 0.5 * TAU.ln());
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_count_has_no_samples() {
        let mut generator = Generator::new(0);
        for count in [f64::NAN, f64::INFINITY] {
            for p in [1e-320, 0.3, 0.7] {
                assert!(binomial(&mut generator, count, p, |x| x).is_nan());
            }
        }
    }
}
