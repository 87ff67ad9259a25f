//! Orthogonal polynomials and their derivatives, by their recurrences. They have branches: for loops over single
//! numbers.

/// The families of orthogonal polynomials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Chebyshev polynomials, whose kinds differ in the first polynomial: `factor x + constant`.
    Chebyshev {
        factor: i32,
        constant: i32,
    },
    /// The physicists' Hermite polynomials.
    Hermite,
    /// The probabilists' Hermite polynomials.
    HermiteE,
    Laguerre,
    Legendre,
}

impl Family {
    pub fn named(name: &str) -> Option<Family> {
        Some(match name {
            "chebyshev_polynomial_t" => Family::Chebyshev { factor: 1, constant: 0 },
            "chebyshev_polynomial_u" => Family::Chebyshev { factor: 2, constant: 0 },
            "chebyshev_polynomial_v" => Family::Chebyshev { factor: 2, constant: -1 },
            "chebyshev_polynomial_w" => Family::Chebyshev { factor: 2, constant: 1 },
            "hermite_polynomial_h" => Family::Hermite,
            "hermite_polynomial_he" => Family::HermiteE,
            "laguerre_polynomial_l" => Family::Laguerre,
            "legendre_polynomial_p" => Family::Legendre,
            _ => return None,
        })
    }

    /// The polynomial of order 1, as factor and constant.
    fn first(self) -> (f64, f64) {
        match self {
            Family::Chebyshev { factor, constant } => (f64::from(factor), f64::from(constant)),
            Family::Hermite => (2.0, 0.0),
            Family::HermiteE | Family::Legendre => (1.0, 0.0),
            Family::Laguerre => (-1.0, 1.0),
        }
    }

    /// (a, b, c) such that the next polynomial is `(a x + b) p - c q`, given the last two, `p` and `q`.
    fn step(self, k: f64) -> (f64, f64, f64) {
        match self {
            Family::Chebyshev { .. } => (2.0, 0.0, 1.0),
            Family::Hermite => (2.0, 0.0, 2.0 * k),
            Family::HermiteE => (1.0, 0.0, k),
            Family::Laguerre => (-1.0 / (k + 1.0), (2.0 * k + 1.0) / (k + 1.0), k / (k + 1.0)),
            Family::Legendre => ((2.0 * k + 1.0) / (k + 1.0), 0.0, k / (k + 1.0)),
        }
    }
}

/// The highest order of derivatives.
pub const MOST: usize = 7;

/// The polynomial of an order, or its derivative of the order `derivative`. Polynomials of negative orders are zero.
pub fn polynomial(family: Family, derivative: usize, x: f64, order: f64) -> f64 {
    let order = order.trunc();
    if order.is_nan() || order < 0.0 {
        return 0.0;
    }
    let (a, b) = family.first();
    let (mut last, mut made) = ([0.0; MOST + 1], [0.0; MOST + 1]);
    last[0] = 1.0;
    if order == 0.0 {
        return last[derivative];
    }
    (made[0], made[1]) = (a * x + b, a);
    let mut k = 1.0;
    while k < order {
        let (a, b, c) = family.step(k);
        for d in (1..=derivative).rev() {
            let next = (a * x + b) * made[d] + d as f64 * a * made[d - 1] - c * last[d];
            (last[d], made[d]) = (made[d], next);
        }
        let next = (a * x + b) * made[0] - c * last[0];
        (last[0], made[0]) = (made[0], next);
        k += 1.0;
    }
    made[derivative]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let of = |name: &str, derivative, x, n| Family::named(name).map(|f| polynomial(f, derivative, x, n));
        assert_eq!(of("chebyshev_polynomial_t", 0, 0.5, 3.0), Some(-1.0));
        assert_eq!(of("chebyshev_polynomial_t", 1, 0.5, 3.0), Some(0.0));
        assert_eq!(of("chebyshev_polynomial_t", 2, 0.5, 3.0), Some(12.0));
        assert_eq!(of("hermite_polynomial_h", 0, 2.0, 3.0), Some(40.0));
        assert_eq!(of("hermite_polynomial_he", 3, 2.0, 3.0), Some(6.0));
        assert_eq!(of("laguerre_polynomial_l", 0, 2.0, 2.0), Some(-1.0));
        assert_eq!(of("legendre_polynomial_p", 1, 1.0, 2.0), Some(3.0));
        assert_eq!(of("legendre_polynomial_p", 0, 1.0, -1.0), Some(0.0));
    }
}
