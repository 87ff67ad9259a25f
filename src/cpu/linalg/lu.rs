//! Gauss' elimination, with the largest element of a column as its pivot.

use super::number::{Number, add_scaled, columns};
use super::triangular;

/// `L` without its diagonal of ones, and `U`, over an `m` by `n` matrix; `pivots[k]` is the row, counted from 1, that changed
/// places with row `k`. The first pivot that is zero, counted from 1, or 0.
pub fn factor<T: Number>(a: &mut [T], m: usize, n: usize, pivots: &mut [i32]) -> usize {
    let mut info = 0;
    for k in 0..m.min(n) {
        let column = &a[k * m..(k + 1) * m];
        let mut best = k;
        for i in k + 1..m {
            if column[i].weight() > column[best].weight() {
                best = i;
            }
        }
        pivots[k] = best as i32 + 1;
        if column[best].weight() == 0.0 {
            info = if info == 0 { k + 1 } else { info };
        } else {
            if best != k {
                (0..n).for_each(|j| a.swap(j * m + k, j * m + best));
            }
            let scale = T::one() / a[k * m + k];
            a[k * m + k + 1..(k + 1) * m].iter_mut().for_each(|x| *x = *x * scale);
        }
        for j in k + 1..n {
            let (left, right) = columns(a, m, k, j);
            let factor = -right[k];
            add_scaled(&mut right[k + 1..], factor, &left[k + 1..]);
        }
    }
    info
}

/// Solves `a x = b`, or `aᴴ x = b`, for each column of `b`, in its place, by what [`factor`] made of `a`.
pub fn solve<T: Number>(lu: &[T], n: usize, pivots: &[i32], b: &mut [T], adjoint: bool) {
    if n == 0 {
        return;
    }
    let exchange = |b: &mut [T], k: usize| {
        let other = (pivots[k] - 1) as usize;
        if other != k && other < n {
            b.chunks_exact_mut(n).for_each(|column| column.swap(k, other));
        }
    };
    if adjoint {
        triangular::solve_adjoint(lu, n, b, true, false);
        triangular::solve_adjoint(lu, n, b, false, true);
        (0..n).rev().for_each(|k| exchange(b, k));
    } else {
        (0..n).for_each(|k| exchange(b, k));
        triangular::solve(lu, n, b, false, true);
        triangular::solve(lu, n, b, true, false);
    }
}

/// `x` with length 1, or zero; a real NaN has none.
fn direction<T: Number>(x: T, length: f64) -> T {
    if length == 0.0 || (!T::COMPLEX && length.is_nan()) { T::zero() } else { x.scaled(1.0 / length) }
}

/// The determinant of the matrix that was factored: with `logarithm` its direction and the logarithm of its size, else itself and 0.
pub fn determinant<T: Number>(lu: &[T], n: usize, pivots: &[i32], logarithm: bool) -> (T, f64) {
    let (mut product, mut size) = (T::one(), 0.0);
    for k in 0..n {
        let element = lu[k * n + k];
        if pivots[k] != k as i32 + 1 {
            product = -product;
        }
        if !logarithm {
            product = product * element;
            continue;
        }
        let length = element.size();
        size += length.ln();
        product = product * direction(element, length);
    }
    (product, size)
}

/// Where rows come from when they are exchanged one after the other, and where they go.
pub fn exchanges(pivots: &[i32], from: &mut [i64], to: &mut [i64]) {
    from.iter_mut().enumerate().for_each(|(i, row)| *row = i as i64);
    for (k, &pivot) in pivots.iter().enumerate() {
        let other = (pivot - 1) as usize;
        if other < from.len() {
            from.swap(k, other);
        }
    }
    from.iter().enumerate().for_each(|(i, &row)| to[row as usize] = i as i64);
}
