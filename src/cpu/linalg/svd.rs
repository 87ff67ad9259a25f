//! Singular values by Jacobi's rotations from one side: columns are turned until all are orthogonal.

use super::number::{Number, columns, dot, length};
use crate::base::{Result, try_alloc};

/// This many rounds over all pairs of columns always suffice, except for NaN.
const ROUNDS: usize = 60;

/// Of an `m` by `n` matrix with `m >= n`: left vectors in its place, right ones as columns of `v`, values in descending
/// order; columns behind it complete a basis. 1 if something is not finite, 2 if the rotations did not end, else 0.
pub fn decompose<T: Number>(
    whole: &mut [T],
    m: usize,
    n: usize,
    values: &mut [f64],
    v: &mut [T],
) -> Result<usize> {
    let a = &mut whole[..m * n];
    if a.iter().any(|x| !x.weight().is_finite()) {
        return Ok(1);
    }
    v.fill(T::zero());
    (0..n).for_each(|i| v[i * n + i] = T::one());
    let largest = a.iter().fold(0.0, |top: f64, x| top.max(x.weight()));
    // Scaled so that no square overflows or vanishes.
    let scale = if largest > 0.0 { largest } else { 1.0 };
    a.iter_mut().for_each(|x| *x = x.scaled(1.0 / scale));
    let tolerance = f64::EPSILON * (m as f64).sqrt();
    // A column that depends on others is left with rounding errors only: it is not rotated any more.
    let floor = f64::EPSILON * length(a);
    let mut turned = true;
    let mut rounds = 0;
    while turned {
        if rounds == ROUNDS {
            return Ok(2);
        }
        (turned, rounds) = (false, rounds + 1);
        for i in 0..n {
            for j in i + 1..n {
                let (x, y) = columns(a, m, i, j);
                let between = dot(x, y);
                let (p, q, size) = (dot(x, x).re(), dot(y, y).re(), between.size());
                if size == 0.0 || size <= tolerance * (p * q).sqrt() || p.min(q).sqrt() <= floor {
                    continue;
                }
                turned = true;
                let ratio = (q - p) / (2.0 * size);
                let t = if ratio >= 0.0 { 1.0 } else { -1.0 } / (ratio.abs() + ratio.hypot(1.0));
                let cosine = 1.0 / t.hypot(1.0);
                let sine = cosine * t;
                // The phase that makes the product of the two columns real.
                let phase = between.scaled(1.0 / size);
                rotate(x, y, cosine, sine, phase);
                let (x, y) = columns(v, n, i, j);
                rotate(x, y, cosine, sine, phase);
            }
        }
    }
    let mut order = try_alloc::all((0..n).map(|j| (length(&a[j * m..(j + 1) * m]), j)))?;
    // (Not `sort_by`, which takes memory.)
    order.sort_unstable_by(|x, y| y.0.total_cmp(&x.0));
    reorder(a, m, &order)?;
    reorder(v, n, &order)?;
    for (j, &(size, _)) in order.iter().enumerate() {
        values[j] = size * scale;
        if size > floor {
            a[j * m..(j + 1) * m].iter_mut().for_each(|x| *x = x.scaled(1.0 / size));
        } else {
            complete(a, m, j);
        }
    }
    (n..whole.len() / m.max(1)).for_each(|j| complete(whole, m, j));
    Ok(0)
}

/// Turns the plane of two columns.
fn rotate<T: Number>(x: &mut [T], y: &mut [T], cosine: f64, sine: f64, phase: T) {
    let (c, s, back) = (T::real(cosine), T::real(sine), phase.conj());
    for (x, y) in x.iter_mut().zip(y) {
        let (a, b) = (*x, *y * back);
        *x = c * a - s * b;
        *y = s * a + c * b;
    }
}

fn reorder<T: Number>(a: &mut [T], m: usize, order: &[(f64, usize)]) -> Result<()> {
    let old = try_alloc::all(a.iter().copied())?;
    for (to, &(_, from)) in order.iter().enumerate() {
        a[to * m..(to + 1) * m].copy_from_slice(&old[from * m..(from + 1) * m]);
    }
    Ok(())
}

/// Makes column `j` a unit vector that is orthogonal to all before it, for a singular value of zero.
fn complete<T: Number>(a: &mut [T], m: usize, j: usize) {
    for axis in 0..m {
        let (before, rest) = a.split_at_mut(j * m);
        let column = &mut rest[..m];
        column.fill(T::zero());
        column[axis] = T::one();
        // Twice, which is enough to be orthogonal to rounding.
        for _ in 0..2 {
            for other in before.chunks_exact(m) {
                let along = dot(other, column);
                super::number::add_scaled(column, -along, other);
            }
        }
        let size = length(column);
        if size > 0.5 / (m as f64).sqrt() {
            column.iter_mut().for_each(|x| *x = x.scaled(1.0 / size));
            return;
        }
    }
}
