//! Eigenvalues and eigenvectors of Hermitian matrices: reduced to tridiagonal form, which divide and conquer or QL and
//! QR steps make diagonal.

use super::blocks::{Block, Factor, add_product, lower_triangle};
use super::columns::{add_scaled, adjoint_product, dot, hermitian_product, subtract_columns};
use super::number::{Double, columns, rescale, scale_of};
use super::rotations::{Rotations, rotation};
use super::{divide, qr};
use crate::base::{Result, try_alloc};
use crate::cpu::element::scratch;

/// Maximum number of steps per value, which always suffices, except for NaN.
const STEPS: usize = 30;
/// Number of columns that are reflected before the reflectors are applied to the rest of the matrix.
const PANEL: usize = 32;
/// Larger matrices use divide and conquer.
const DIVIDED: usize = 48;

/// Finds the eigenvalues in ascending order. The lower triangle of `a` is read; with `vectors`, the eigenvectors
/// replace it. Returns the number of subdiagonal elements that did not converge to zero: 0 if all is well.
pub fn decompose<T: Double>(a: &mut [T], n: usize, values: &mut [f64], vectors: bool) -> Result<usize> {
    if n == 0 {
        return Ok(0);
    }
    if a.iter().any(|x| !x.weight().is_finite()) {
        a.fill(T::real(f64::NAN));
        values.fill(f64::NAN);
        return Ok(0);
    }
    let scale = scale_of((0..n).flat_map(|j| &a[j * n + j..(j + 1) * n]));
    rescale(a, scale);
    let mut beside = try_alloc::filled(0.0, n)?;
    let tau = tridiagonal(a, n, values, &mut beside)?;
    let left = if vectors && n > DIVIDED {
        let mut of_three = scratch(n * n, 0.0)?;
        let left = divide::decompose(values, &beside[..n - 1], &mut of_three)?;
        let mut whole = try_alloc::all(of_three.iter().map(|x| T::real(*x)))?;
        drop(of_three);
        qr::apply_below(a, n, &tau, &mut whole)?;
        a.copy_from_slice(&whole);
        left
    } else {
        if vectors {
            qr::product_below(a, n, &tau)?;
        }
        let mut rotations = Rotations::of(vectors.then_some(&mut *a), n, n)?;
        let left = diagonalize(values, &mut beside, &mut rotations)?;
        rotations.finish()?;
        left
    };
    values.iter_mut().for_each(|x| *x /= scale);
    if left == 0 {
        sort(a, n, values, vectors);
    }
    Ok(left)
}

/// Sorts the values, and their vectors with them.
fn sort<T: Double>(a: &mut [T], n: usize, values: &mut [f64], vectors: bool) {
    if !vectors {
        return values.sort_unstable_by(f64::total_cmp);
    }
    for i in 0..n {
        let least = (i..n).fold(i, |least, j| if values[j] < values[least] { j } else { least });
        if least != i {
            values.swap(i, least);
            let (x, y) = columns(a, n, i, least);
            x.swap_with_slice(y);
        }
    }
}

/// Reduces `a` to tridiagonal form: writes its diagonal and its subdiagonal (`beside`), leaves the reflectors in `a`,
/// and returns their factors. A panel subtracts `v wᴴ + w vᴴ` from the rest of the matrix, where the columns of `v` are
/// its reflectors.
fn tridiagonal<T: Double>(a: &mut [T], n: usize, diagonal: &mut [f64], beside: &mut [f64]) -> Result<Vec<T>> {
    let mut tau = try_alloc::filled(T::zero(), n - 1)?;
    let mut w = scratch(n * PANEL.min(n), T::zero())?;
    let mut factors = [T::zero(); PANEL];
    for first in (0..n).step_by(PANEL) {
        let last = n.min(first + PANEL);
        for i in first..last {
            let factors = &mut factors[..i - first];
            let (before, rest) = a.split_at_mut(i * n);
            let (column, behind) = rest.split_at_mut(n);
            let v = &before[first * n..];
            let (earlier, w) = w.split_at_mut((i - first) * n);
            // First apply the panel's updates so far to this column.
            factors.iter_mut().enumerate().for_each(|(p, x)| *x = earlier[p * n + i].conj());
            subtract_columns(&mut column[i..], &v[i.min(v.len())..], n, factors);
            factors.iter_mut().enumerate().for_each(|(p, x)| *x = v[p * n + i].conj());
            subtract_columns(&mut column[i..], &earlier[i.min(earlier.len())..], n, factors);
            diagonal[i] = column[i].re();
            if i + 1 == n {
                break;
            }
            let column = &mut column[i + 1..];
            let factor = qr::reflector(column);
            (tau[i], beside[i]) = (factor, column[0].re());
            column[0] = T::one();
            let w = &mut w[i + 1..n];
            hermitian_product(w, &behind[i + 1..], n, column);
            let (v, earlier) = (&v[(i + 1).min(v.len())..], &earlier[(i + 1).min(earlier.len())..]);
            adjoint_product(factors, earlier, n, column);
            subtract_columns(w, v, n, factors);
            adjoint_product(factors, v, n, column);
            subtract_columns(w, earlier, n, factors);
            w.iter_mut().for_each(|x| *x = *x * factor);
            let half = (factor * dot(w, column)).scaled(-0.5);
            add_scaled(w, half, column);
        }
        let width = last - first;
        let square = Block::new(n, n);
        let (rest, v) = (square.part(last..n, last..n), square.part(last..n, first..last));
        subtract_squares(a, rest, v, &w, Block::new(n, width).part(last..n, 0..width))?;
    }
    Ok(tau)
}

/// Subtracts `v wᴴ + w vᴴ` from the lower triangle of a block of `a`.
fn subtract_squares<T: Double>(a: &mut [T], rest: Block, v: Block, w: &[T], of_w: Block) -> Result<()> {
    let of_v = |rows| Factor::own(v.part(rows, 0..v.columns));
    let of_w = |rows| Factor::of(w, of_w.part(rows, 0..v.columns));
    lower_triangle(0..rest.rows, &mut |rows, columns| {
        let out = rest.part(rows.clone(), columns.clone());
        add_product(a, out, -1.0, of_v(rows.clone()), of_w(columns.clone()).adjoint())?;
        add_product(a, out, -1.0, of_w(rows), of_v(columns).adjoint())
    })
}

/// The eigenvalues of [[a, b], [b, c]], the larger by magnitude first, and the vector (cosine, sine) of that one.
fn pair(a: f64, b: f64, c: f64) -> (f64, f64, f64, f64) {
    let (sum, gap, twice) = (a + c, a - c, b + b);
    let (wide, narrow) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let root = gap.abs().hypot(twice.abs());
    let (first, second, one) = if sum < 0.0 {
        let first = 0.5 * (sum - root);
        (first, (wide / first) * narrow - (b / first) * b, -1.0)
    } else if sum > 0.0 {
        let first = 0.5 * (sum + root);
        (first, (wide / first) * narrow - (b / first) * b, 1.0)
    } else {
        (0.5 * root, -0.5 * root, 1.0)
    };
    let (along, two) = if gap >= 0.0 { (gap + root, 1.0) } else { (gap - root, -1.0) };
    let (cosine, sine) = if along.abs() > twice.abs() {
        let t = -twice / along;
        let sine = 1.0 / t.hypot(1.0);
        (t * sine, sine)
    } else if b == 0.0 {
        (1.0, 0.0)
    } else {
        let t = -along / twice;
        let cosine = 1.0 / t.hypot(1.0);
        (cosine, t * cosine)
    };
    if one == two { (first, second, -sine, cosine) } else { (first, second, cosine, sine) }
}

/// Replaces `d` by the eigenvalues of the tridiagonal matrix, in any order, and rotates their vectors.
pub fn diagonalize<T: Double>(d: &mut [f64], e: &mut [f64], rotations: &mut Rotations<T>) -> Result<usize> {
    let n = d.len();
    let (epsilon, safe) = (f64::EPSILON / 2.0, f64::MIN_POSITIVE);
    let mut steps = n * STEPS;
    let mut start = 0;
    while start < n {
        if start > 0 {
            e[start - 1] = 0.0;
        }
        // A block ends where a subdiagonal element vanishes.
        let mut end = start;
        while end + 1 < n {
            let size = e[end].abs();
            if size == 0.0 || size <= d[end].abs().sqrt() * d[end + 1].abs().sqrt() * epsilon {
                e[end] = 0.0;
                break;
            }
            end += 1;
        }
        let (first, last) = (start, end);
        start = end + 1;
        let largest = (first..=last).flat_map(|i| [d[i], if i < last { e[i] } else { 0.0 }]);
        let norm = largest.fold(0.0, |top: f64, x| if x.abs() > top || x.is_nan() { x.abs() } else { top });
        if first == last || norm == 0.0 {
            continue;
        }
        if !norm.is_finite() {
            return Ok(last - first);
        }
        // Start from the smaller end.
        let done = if d[last].abs() < d[first].abs() {
            upwards(d, e, rotations, [first, last], [epsilon, safe], &mut steps)?
        } else {
            downwards(d, e, rotations, [first, last], [epsilon, safe], &mut steps)?
        };
        if !done {
            return Ok(e[..n - 1].iter().filter(|x| **x != 0.0).count().max(1));
        }
    }
    Ok(0)
}

/// QL steps over the block, which find the values from its first on.
fn downwards<T: Double>(
    d: &mut [f64],
    e: &mut [f64],
    rotations: &mut Rotations<T>,
    [mut l, last]: [usize; 2],
    [epsilon, safe]: [f64; 2],
    steps: &mut usize,
) -> Result<bool> {
    while l <= last {
        let small = |m: usize| e[m] * e[m] <= epsilon * epsilon * d[m].abs() * d[m + 1].abs() + safe;
        let m = (l..last).find(|&m| small(m)).unwrap_or(last);
        if m < last {
            e[m] = 0.0;
        }
        let mut p = d[l];
        if m == l {
            l += 1;
            continue;
        }
        if m == l + 1 {
            let (first, second, cosine, sine) = pair(d[l], e[l], d[l + 1]);
            rotations.push(l, cosine, sine)?;
            (d[l], d[l + 1], e[l]) = (first, second, 0.0);
            l += 2;
            continue;
        }
        if *steps == 0 {
            return Ok(false);
        }
        *steps -= 1;
        let mut g = (d[l + 1] - p) / (2.0 * e[l]);
        g = d[m] - p + e[l] / (g + g.hypot(1.0).copysign(g));
        let (mut s, mut c) = (1.0, 1.0);
        p = 0.0;
        for i in (l..m).rev() {
            let (f, b) = (s * e[i], c * e[i]);
            let (cosine, sine, r) = rotation(g, f);
            (c, s) = (cosine, sine);
            if i != m - 1 {
                e[i + 1] = r;
            }
            g = d[i + 1] - p;
            let r = (d[i] - g) * s + 2.0 * c * b;
            p = s * r;
            d[i + 1] = g + p;
            g = c * r - b;
            rotations.push(i, c, -s)?;
        }
        d[l] -= p;
        e[l] = g;
    }
    Ok(true)
}

/// QR steps over the block, which find the values from its last on.
fn upwards<T: Double>(
    d: &mut [f64],
    e: &mut [f64],
    rotations: &mut Rotations<T>,
    [first, last]: [usize; 2],
    [epsilon, safe]: [f64; 2],
    steps: &mut usize,
) -> Result<bool> {
    // One beyond the value that is sought.
    let mut end = last + 1;
    while end > first {
        let l = end - 1;
        let small = |m: usize| e[m - 1] * e[m - 1] <= epsilon * epsilon * d[m].abs() * d[m - 1].abs() + safe;
        let m = (first + 1..=l).rev().find(|&m| small(m)).unwrap_or(first);
        if m > first {
            e[m - 1] = 0.0;
        }
        let mut p = d[l];
        if m == l {
            end -= 1;
            continue;
        }
        if m + 1 == l {
            let (one, two, cosine, sine) = pair(d[l - 1], e[l - 1], d[l]);
            rotations.push(l - 1, cosine, sine)?;
            (d[l - 1], d[l], e[l - 1]) = (one, two, 0.0);
            end -= 2;
            continue;
        }
        if *steps == 0 {
            return Ok(false);
        }
        *steps -= 1;
        let mut g = (d[l - 1] - p) / (2.0 * e[l - 1]);
        g = d[m] - p + e[l - 1] / (g + g.hypot(1.0).copysign(g));
        let (mut s, mut c) = (1.0, 1.0);
        p = 0.0;
        for i in m..l {
            let (f, b) = (s * e[i], c * e[i]);
            let (cosine, sine, r) = rotation(g, f);
            (c, s) = (cosine, sine);
            if i != m {
                e[i - 1] = r;
            }
            g = d[i] - p;
            let r = (d[i + 1] - g) * s + 2.0 * c * b;
            p = s * r;
            d[i] = g + p;
            g = c * r - b;
            rotations.push(i, c, s)?;
        }
        d[l] -= p;
        e[l - 1] = g;
    }
    Ok(true)
}
