//! Factors multiply to the factored matrix, and vectors are orthonormal: for real and complex numbers, and sizes on
//! both sides of the limits where blocks begin.

use super::blocks::{Block, Factor, add_product};
use super::number::{Double, Number};
use super::triangular::Triangle;
use super::*;
use crate::cpu::math::complex::Complex;

type C = Complex<f64>;

const SIZES: [usize; 15] = [0, 1, 2, 3, 5, 8, 9, 24, 25, 32, 33, 40, 65, 90, 130];
const SHAPES: [[usize; 2]; 11] =
    [[1, 1], [2, 1], [3, 2], [8, 8], [33, 33], [40, 33], [66, 65], [70, 20], [50, 1], [90, 50], [4, 0]];

/// Pseudo-random numbers between -1 and 1 from a seed.
fn draw<T: Number>(count: usize, seed: u64) -> Vec<T> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| T::new(next(), next())).collect()
}

fn unit<T: Number>(n: usize) -> Vec<T> {
    (0..n * n).map(|i| if i % n == i / n { T::one() } else { T::zero() }).collect()
}

/// The product of an `m` by `k` and a `k` by `n` matrix.
fn times<T: Number>(a: &[T], b: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    let mut out = vec![T::zero(); m * n];
    for j in 0..n {
        for p in 0..k {
            for i in 0..m {
                out[j * m + i] = out[j * m + i] + a[p * m + i] * b[j * k + p];
            }
        }
    }
    out
}

fn adjoint<T: Number>(a: &[T], m: usize, n: usize) -> Vec<T> {
    (0..m * n).map(|i| a[i % n * m + i / n].conj()).collect()
}

/// Allows for the rounding errors of sums no longer than the tests' matrices.
#[track_caller]
fn near<T: Number>(actual: &[T], expected: &[T], size: f64) {
    assert_eq!(actual.len(), expected.len());
    let mut far = actual.iter().zip(expected).map(|(&a, &b)| (a - b).size());
    assert_eq!(far.find(|x| x.is_nan() || *x > 1e-12 * size), None);
}

#[track_caller]
fn orthonormal<T: Number>(q: &[T], m: usize, n: usize) {
    near(&times(&adjoint(q, m, n), q, [n, m, n]), &unit(n), 1.0);
}

/// Scales columns.
fn by<T: Number>(a: &[T], m: usize, values: &[f64]) -> Vec<T> {
    values.iter().enumerate().flat_map(|(j, v)| a[j * m..(j + 1) * m].iter().map(|x| x.scaled(*v))).collect()
}

#[test]
fn small_singular_values_keep_their_digits() {
    let steep = |n: usize, per: f64| -> Vec<f64> { (0..n).map(|i| 10f64.powf(per * i as f64)).collect() };
    for n in [1, 2, 3, 4, 13, 40, 100] {
        let x = draw::<f64>(2 * n, 11);
        let scaled =
            |by: Vec<f64>| -> Vec<f64> { x.iter().zip(by.iter().chain(&by)).map(|(x, y)| x * y).collect() };
        let kinds = [
            scaled(vec![1.0; n]),
            scaled(vec![1e-90; n]),
            scaled(steep(n, 14.0 / n as f64)),
            scaled(steep(n, -14.0 / n as f64)),
            scaled((0..n).map(|i| if i % 3 == 0 { 1e-90 } else { 1e3 }).collect()),
            x.iter().enumerate().map(|(i, x)| if i < n { 1.0 } else { x * 1e-9 }).collect(),
            vec![1.0; 2 * n],
        ];
        for (kind, both) in kinds.into_iter().enumerate() {
            let (on, above) = (&both[..n], &both[n + 1..]);
            let mut found = vec![f64::NAN; n];
            assert_eq!(quotients::values(on, above, &mut found).ok(), Some(true), "{kind} {n}");
            // The product of the values is that of the diagonal, to the same precision.
            let logarithm = |x: &[f64]| x.iter().map(|x| x.abs().log2()).sum::<f64>();
            let (got, want) = (logarithm(&found), logarithm(on));
            assert!((got - want).abs() < 1e-14 * (n as f64).max(want.abs()), "{kind} {n}: {got} {want}");
            // The sum of their squares is that of all elements.
            let squares = |x: &[f64]| x.iter().map(|x| (x * 1e140) * (x * 1e140)).sum::<f64>();
            let (got, want) = (squares(&found), squares(on) + squares(above));
            assert!((got / want - 1.0).abs() < 1e-13, "{kind} {n}: {got} {want}");
        }
    }
}

#[test]
fn diagonals_with_zeros_have_as_many_singular_values() {
    for n in [1, 2, 3, 8, 40] {
        for at in [0, n / 2, n - 1] {
            let mut x = draw::<f64>(2 * n, 12);
            x[at] = 0.0;
            let (on, above) = (&x[..n], &x[n + 1..]);
            let mut found = vec![f64::NAN; n];
            assert_eq!(quotients::values(on, above, &mut found).ok(), Some(true));
            assert_eq!(found.iter().filter(|x| **x < 1e-150).count(), 1, "{n} {at} {found:?}");
            found.fill(f64::NAN);
            assert_eq!(quotients::values(&vec![0.0; n], &vec![0.0; n - 1], &mut found).ok(), Some(true));
            assert_eq!(found, vec![0.0; n]);
            x[at] = f64::NAN;
            assert_eq!(quotients::values(&x[..n], &x[n + 1..], &mut found).ok(), Some(false));
        }
    }
}

/// Tests with real and with complex numbers.
macro_rules! both {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            checks::$name::<f64>();
            checks::$name::<C>();
        }
    )* };
}
both! { products_of_blocks systems_of_equations triangles squares_of_triangles reflectors singular_values eigenvalues }

mod checks {
    use super::*;

    pub fn products_of_blocks<T: Number>() {
        let x = draw::<T>(400, 1);
        let whole = Block::new(20, 20);
        let (a, b) = (whole.part(3..9, 0..4), whole.part(10..14, 6..11));
        let taken = |block: Block| -> Vec<T> {
            (0..block.columns).flat_map(|j| x[block.column(j)].to_vec()).collect()
        };
        let (left, right) = (taken(a), taken(b));
        for (out, of, expected) in [
            (whole.part(11..17, 12..17), (Factor::own(a), Factor::own(b)), times(&left, &right, [6, 4, 5])),
            (
                whole.part(0..5, 12..18),
                (Factor::own(b).adjoint(), Factor::of(&x, a).adjoint()),
                times(&adjoint(&right, 4, 5), &adjoint(&left, 6, 4), [5, 4, 6]),
            ),
        ] {
            let mut y = x.clone();
            assert!(add_product(&mut y, out, -2.0, of.0, of.1).is_ok());
            for j in 0..out.columns {
                for i in 0..out.rows {
                    let place = out.place(i, j);
                    near(&[y[place] - x[place]], &[expected[j * out.rows + i].scaled(-2.0)], 1.0);
                    y[place] = x[place];
                }
            }
            assert!(x == y);
        }
    }

    pub fn systems_of_equations<T: Number>() {
        for n in SIZES {
            let (mut a, b) = (draw::<T>(n * n, 2), draw::<T>(n * 11, 3));
            // Far from singular, yet in need of pivots.
            (0..n).for_each(|i| a[i * n + (i + 1) % n] = T::real(n as f64));
            let (mut factors, mut rows) = (a.clone(), vec![0; n]);
            assert_eq!(lu::factor(&mut factors, n, n, &mut rows).ok(), Some(0));
            for (adjoint, a) in [(false, a.clone()), (true, adjoint(&a, n, n))] {
                let mut x = b.clone();
                assert!(lu::solve(&factors, n, &rows, &mut x, adjoint).is_ok());
                near(&times(&a, &x, [n, n, 11]), &b, n as f64);
            }
            let mut inverse = unit::<T>(n);
            assert!(lu::invert(&factors, n, &rows, &mut inverse).is_ok());
            near(&times(&a, &inverse, [n, n, n]), &unit(n), 1.0);
        }
        for [m, n] in SHAPES.into_iter().flat_map(|[m, n]| [[m, n], [n, m]]) {
            let count = m.min(n);
            let (a, mut rows) = (draw::<T>(m * n, 4), vec![0; count]);
            let mut factors = a.clone();
            assert_eq!(lu::factor(&mut factors, m, n, &mut rows).ok(), Some(0));
            let (mut l, mut u) = (vec![T::zero(); m * count], vec![T::zero(); count * n]);
            for j in 0..count {
                l[j * m + j..(j + 1) * m].copy_from_slice(&factors[j * m + j..(j + 1) * m]);
                l[j * m + j] = T::one();
            }
            for j in 0..n {
                let height = (j + 1).min(count);
                u[j * count..j * count + height].copy_from_slice(&factors[j * m..j * m + height]);
            }
            assert!(l.iter().all(|x| x.weight() <= 2.0));
            let mut product = times(&l, &u, [m, count, n]);
            for (k, row) in rows.iter().enumerate().rev() {
                (0..n).for_each(|j| product.swap(j * m + k, j * m + *row as usize - 1));
            }
            near(&product, &a, 1.0);
        }
        // The first pivot that is zero, also behind the first block; NaN is not zero.
        for (n, at) in [(3, 2), (30, 17)] {
            let (mut a, mut rows) = (unit::<T>(n), vec![0; n]);
            a[at * n + at] = T::zero();
            assert_eq!(lu::factor(&mut a.clone(), n, n, &mut rows).ok(), Some(at + 1));
            a[at * n + at] = T::real(f64::NAN);
            assert_eq!(lu::factor(&mut a, n, n, &mut rows).ok(), Some(0));
            assert_eq!(rows, (1..=n as i32).collect::<Vec<_>>());
        }
    }

    pub fn triangles<T: Number>() {
        for (n, case) in SIZES.into_iter().flat_map(|n| (0..8).map(move |case| (n, case))) {
            let kind = Triangle { upper: case & 1 > 0, unit: case & 2 > 0, adjoint: case & 4 > 0 };
            // Elements outside the triangle are not read.
            let (mut a, mut whole) = (vec![T::real(f64::NAN); n * n], unit::<T>(n));
            for (i, x) in draw::<T>(n * n, 5).into_iter().enumerate() {
                let (row, column) = (i % n, i / n);
                if row == column && !kind.unit {
                    (a[i], whole[i]) = (x + T::real(3.0), x + T::real(3.0));
                } else if row != column && (row < column) == kind.upper {
                    (a[i], whole[i]) = (x.scaled(2.0 / n as f64), x.scaled(2.0 / n as f64));
                }
            }
            let whole = if kind.adjoint { adjoint(&whole, n, n) } else { whole };
            for sides in [1, 3, 8, 20] {
                let b = draw::<T>(n * sides, 6);
                let mut x = b.clone();
                assert!(triangular::solve(&a, n, &mut x, kind).is_ok());
                near(&times(&whole, &x, [n, n, sides]), &b, 10.0);
            }
        }
    }

    pub fn squares_of_triangles<T: Number>() {
        for n in SIZES {
            let x = draw::<T>(n * n, 7);
            let mut a = times(&x, &adjoint(&x, n, n), [n, n, n]);
            (0..n).for_each(|i| a[i * n + i] = a[i * n + i] + T::one());
            // The upper triangle is not read.
            let mut l = a.clone();
            (1..n).for_each(|j| l[j * n..j * n + j].fill(T::real(f64::NAN)));
            assert_eq!(cholesky::factor(&mut l, n).ok(), Some(0));
            assert!((1..n).all(|j| l[j * n..j * n + j].iter().all(|x| *x == T::zero())));
            near(&times(&l, &adjoint(&l, n, n), [n, n, n]), &a, n as f64);
            for (at, bad) in [(0, -1.0), (n / 2, 0.0), (n.saturating_sub(1), f64::NAN)] {
                let mut a = unit::<T>(n);
                if n > 0 {
                    a[at * n + at] = T::real(bad);
                    assert_eq!(cholesky::factor(&mut a, n).ok(), Some(at + 1));
                }
            }
        }
    }

    pub fn reflectors<T: Number>() {
        for [m, n] in SHAPES.into_iter().flat_map(|[m, n]| [[m, n], [n, m]]) {
            let (a, count) = (draw::<T>(m * n, 8), m.min(n));
            let (mut r, mut tau) = (a.clone(), vec![T::zero(); count]);
            assert!(qr::reflect(&mut r, m, n, &mut tau).is_ok());
            for width in [count, m] {
                let mut q = vec![T::zero(); m * width];
                q[..m * count].copy_from_slice(&r[..m * count]);
                assert!(qr::product(&mut q, Block::new(m, width), &tau).is_ok());
                orthonormal(&q, m, width);
                let mut triangle = vec![T::zero(); width * n];
                for j in 0..n {
                    let height = (j + 1).min(count);
                    triangle[j * width..j * width + height].copy_from_slice(&r[j * m..j * m + height]);
                }
                near(&times(&q, &triangle, [m, width, n]), &a, 1.0);
            }
            assert!((0..count).all(|j| r[j * m + j].im() == 0.0));
        }
    }

    /// An `m` by `n` matrix of a special kind, and its scale.
    pub fn special<T: Number>(kind: usize, m: usize, n: usize) -> (Vec<T>, f64) {
        let x = draw::<T>(m * n, 9);
        let on = |i: usize| i % m == i / m;
        let rank = n / 2;
        match kind {
            0 => (x, 1.0),
            1 => (times(&x[..m * rank], &draw::<T>(rank * n, 10), [m, rank, n]), 1.0),
            2 => (vec![T::zero(); m * n], 1.0),
            3 => (vec![T::one(); m * n], 1.0),
            // All but equal values.
            4 => {
                (x.iter().enumerate().map(|(i, x)| x.scaled(1e-9) + T::real(f64::from(on(i)))).collect(), 1.0)
            }
            // Values of many magnitudes.
            5 => (
                x.iter().enumerate().map(|(i, x)| x.scaled(10f64.powi(-(((i / m) % 30) as i32)))).collect(),
                1.0,
            ),
            6 => (x.iter().map(|x| x.scaled(1e250)).collect(), 1e250),
            _ => (x.iter().map(|x| x.scaled(1e-250)).collect(), 1e-250),
        }
    }

    pub fn singular_values<T: Double>() {
        for ([m, n], kind) in SHAPES.into_iter().flat_map(|shape| (0..8).map(move |kind| (shape, kind))) {
            let (a, scale) = special::<T>(kind, m, n);
            let (mut alone, mut copy) = (vec![0.0; n], a.clone());
            assert_eq!(svd::decompose(&mut copy, m, n, &mut alone, None).ok(), Some(0));
            for width in [n, m] {
                let (mut u, mut s, mut v) =
                    (vec![T::zero(); m * width], vec![0.0; n], vec![T::zero(); n * n]);
                u[..m * n].copy_from_slice(&a);
                assert_eq!(svd::decompose(&mut u, m, n, &mut s, Some(&mut v)).ok(), Some(0));
                assert!(s.is_sorted_by(|x, y| x >= y) && s.iter().all(|x| *x >= 0.0));
                orthonormal(&u, m, width);
                orthonormal(&v, n, n);
                near(&times(&by(&u, m, &s), &adjoint(&v, n, n), [m, n, n]), &a, scale);
                near(&s, &alone, scale);
            }
        }
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = vec![T::one(), T::real(bad)];
            assert_eq!(svd::decompose(&mut a, 2, 1, &mut [0.0], None).ok(), Some(1));
        }
    }

    pub fn eigenvalues<T: Double>() {
        for (n, kind) in SIZES.into_iter().flat_map(|n| (0..8).map(move |kind| (n, kind))) {
            let (x, scale) = special::<T>(kind, n, n);
            let other = adjoint(&x, n, n);
            let a: Vec<T> = x.iter().zip(other).map(|(&x, y)| (x + y).scaled(0.5)).collect();
            // The upper triangle is not read.
            let mut vectors = a.clone();
            (1..n).for_each(|j| vectors[j * n..j * n + j].fill(T::real(77.0)));
            let (mut alone, mut copy, mut values) = (vec![0.0; n], vectors.clone(), vec![0.0; n]);
            assert_eq!(eigh::decompose(&mut copy, n, &mut alone, false).ok(), Some(0));
            assert_eq!(eigh::decompose(&mut vectors, n, &mut values, true).ok(), Some(0));
            assert!(values.is_sorted());
            orthonormal(&vectors, n, n);
            near(&times(&by(&vectors, n, &values), &adjoint(&vectors, n, n), [n, n, n]), &a, scale);
            near(&values, &alone, scale);
        }
    }
}

#[test]
fn eigenvalues_of_any_matrix() {
    for (n, kind) in SIZES.into_iter().flat_map(|n| (0..4).map(move |kind| (n, kind))) {
        for real in [true, false] {
            let (mut a, _) = checks::special::<C>(kind, n, n);
            if real {
                a.iter_mut().for_each(|x| x.im = 0.0);
            }
            let (mut vectors, mut values) = (a.clone(), vec![C::zero(); n]);
            assert_eq!(eig::decompose(&mut vectors, n, &mut values, real, true).ok(), Some(0));
            let turned = times(&a, &vectors, [n, n, n]);
            for (k, value) in values.iter().enumerate() {
                let (x, y) = (&vectors[k * n..(k + 1) * n], &turned[k * n..(k + 1) * n]);
                near(y, &x.iter().map(|x| *x * *value).collect::<Vec<_>>(), n as f64);
                near(&[number::length(x)], &[1.0], 1.0);
            }
            // Values computed without vectors come in another order, and need not have more digits than their condition
            // allows.
            let mut alone = values.clone();
            assert_eq!(eig::decompose(&mut a, n, &mut alone, real, false).ok(), Some(0));
            for value in values {
                let nearest = alone.iter().map(|x| (*x - value).size()).fold(f64::INFINITY, f64::min);
                assert!(nearest < 1e-7 * n as f64);
            }
        }
    }
}

/// The matrix of second differences, whose values are known exactly.
#[test]
fn values_of_second_differences() {
    for n in [7, 40, 150] {
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            a[i * n + i] = 2.0;
            if i > 0 {
                (a[i * n + i - 1], a[(i - 1) * n + i]) = (-1.0, -1.0);
            }
        }
        let half = std::f64::consts::PI / (2 * (n + 1)) as f64;
        let expected: Vec<f64> = (1..=n).map(|k| (2.0 * (half * k as f64).sin()).powi(2)).collect();
        let (mut values, mut singular, mut vectors) = (vec![0.0; n], vec![0.0; n], a.clone());
        assert_eq!(eigh::decompose(&mut vectors, n, &mut values, true).ok(), Some(0));
        near(&values, &expected, 0.01);
        assert_eq!(eigh::decompose(&mut a.clone(), n, &mut values, false).ok(), Some(0));
        near(&values, &expected, 0.01);
        assert_eq!(svd::decompose(&mut a, n, n, &mut singular, None).ok(), Some(0));
        singular.reverse();
        near(&singular, &expected, 0.01);
    }
}

#[test]
fn blocks_that_overlap_are_seen() {
    let whole = Block::new(9, 9);
    let overlap = |a: Block, b: Block| {
        let mut x = [0.0; 81];
        std::panic::catch_unwind(move || {
            add_product(&mut x, a, 1.0, Factor::own(b), Factor::own(whole.part(8..9, 8..9)))
        })
        .is_err()
    };
    assert!(overlap(whole.part(0..3, 0..1), whole.part(2..5, 0..1)));
    assert!(!overlap(whole.part(0..3, 0..1), whole.part(3..6, 0..1)));
    assert!(!overlap(whole.part(0..3, 0..1), whole.part(0..3, 1..2)));
}
