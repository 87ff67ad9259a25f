//! Eigenvalues and vectors of Hermitian matrices: reflected to three diagonals, which QL and QR steps then make one.

use super::number::{Number, add_scaled, dot};
use super::qr;
use crate::base::{Result, try_alloc};

/// This many steps for each value always suffice, except for NaN.
const STEPS: usize = 30;

/// Values ascend; of `a` the lower triangle is read, and the vectors replace it. The number of elements beside the diagonal
/// that did not vanish: 0 if all is well.
pub fn decompose<T: Number>(a: &mut [T], n: usize, values: &mut [f64]) -> Result<usize> {
    if n == 0 {
        return Ok(0);
    }
    if a.iter().any(|x| !x.weight().is_finite()) {
        a.fill(T::real(f64::NAN));
        values.fill(f64::NAN);
        return Ok(0);
    }
    let (mut diagonal, mut beside) = (try_alloc::filled(0.0, n)?, try_alloc::filled(0.0, n)?);
    tridiagonal(a, n, &mut diagonal, &mut beside)?;
    let left = diagonalize::<T>(&mut diagonal, &mut beside, a, n);
    values.copy_from_slice(&diagonal);
    Ok(left)
}

/// Leaves the diagonal and what lies beside it, and the product of the reflectors in `a`.
fn tridiagonal<T: Number>(a: &mut [T], n: usize, diagonal: &mut [f64], beside: &mut [f64]) -> Result<()> {
    let mut tau = try_alloc::filled(T::zero(), n.saturating_sub(1))?;
    let (mut v, mut w) = (try_alloc::filled(T::zero(), n)?, try_alloc::filled(T::zero(), n)?);
    a[0] = T::real(a[0].re());
    for i in 0..n - 1 {
        let factor = qr::reflector(&mut a[i * n + i + 1..(i + 1) * n]);
        beside[i] = a[i * n + i + 1].re();
        tau[i] = factor;
        if factor != T::zero() {
            a[i * n + i + 1] = T::one();
            let (v, w) = (&mut v[..n - i - 1], &mut w[..n - i - 1]);
            v.copy_from_slice(&a[i * n + i + 1..(i + 1) * n]);
            multiply(a, n, i + 1, v, w);
            w.iter_mut().for_each(|x| *x = *x * factor);
            let half = (factor * dot(w, v)).scaled(-0.5);
            add_scaled(w, half, v);
            for j in 0..v.len() {
                let column = &mut a[(i + 1 + j) * n + i + 1 + j..(i + 2 + j) * n];
                add_scaled(column, -w[j].conj(), &v[j..]);
                add_scaled(column, -v[j].conj(), &w[j..]);
            }
        }
        let next = (i + 1) * n + i + 1;
        a[next] = T::real(a[next].re());
        diagonal[i] = a[i * n + i].re();
    }
    diagonal[n - 1] = a[n * n - 1].re();
    // The reflectors move one column to the right, below a first unit vector.
    for j in (1..n).rev() {
        let (left, right) = a.split_at_mut(j * n);
        right[1..n].copy_from_slice(&left[(j - 1) * n + 1..j * n]);
        right[0] = T::zero();
    }
    a[..n].fill(T::zero());
    a[0] = T::one();
    if n > 1 {
        // Without its first row and column, the rest is a square of its own.
        let m = n - 1;
        let mut inner = try_alloc::with_capacity(m * m)?;
        (1..n).for_each(|j| inner.extend_from_slice(&a[j * n + 1..(j + 1) * n]));
        qr::product(&mut inner, m, m, &tau);
        for j in 0..m {
            a[(j + 1) * n + 1..(j + 2) * n].copy_from_slice(&inner[j * m..(j + 1) * m]);
        }
    }
    Ok(())
}

/// The product of a Hermitian matrix, the lower triangle of `a` from row `first` on, with `v`.
fn multiply<T: Number>(a: &[T], n: usize, first: usize, v: &[T], out: &mut [T]) {
    out.fill(T::zero());
    for j in 0..v.len() {
        let column = &a[(first + j) * n + first + j..(first + j + 1) * n];
        out[j] = out[j] + T::real(column[0].re()) * v[j];
        add_scaled(&mut out[j + 1..], v[j], &column[1..]);
        out[j] = out[j] + dot(&column[1..], &v[j + 1..]);
    }
}

/// The rotation (c, s) that turns (f, g) to (r, 0), and r.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, if g < 0.0 { -1.0 } else { 1.0 }, g.abs());
    }
    let r = f.hypot(g).copysign(f);
    (f / r, g / r, r)
}

/// The eigenvalues of [[a, b], [b, c]], the larger by magnitude first, and the vector (cosine, sine) of that.
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

/// Turns columns `j` and `j + 1`.
fn turn<T: Number>(z: &mut [T], n: usize, j: usize, cosine: f64, sine: f64) {
    if cosine == 1.0 && sine == 0.0 {
        return;
    }
    let (left, right) = z[j * n..(j + 2) * n].split_at_mut(n);
    let (c, s) = (T::real(cosine), T::real(sine));
    for (x, y) in left.iter_mut().zip(right) {
        let next = *y;
        *y = c * next - s * *x;
        *x = s * next + c * *x;
    }
}

/// Makes `d` the eigenvalues of the three diagonals, and `z` times their vectors of `z`.
fn diagonalize<T: Number>(d: &mut [f64], e: &mut [f64], z: &mut [T], n: usize) -> usize {
    let (epsilon, safe) = (f64::EPSILON / 2.0, f64::MIN_POSITIVE);
    let mut steps = n * STEPS;
    let mut start = 0;
    while start < n {
        if start > 0 {
            e[start - 1] = 0.0;
        }
        // A block ends where what lies beside the diagonal vanishes.
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
            return last - first;
        }
        // From the smaller end.
        let done = if d[last].abs() < d[first].abs() {
            upwards(d, e, z, n, [first, last], [epsilon, safe], &mut steps)
        } else {
            downwards(d, e, z, n, [first, last], [epsilon, safe], &mut steps)
        };
        if !done {
            return e[..n - 1].iter().filter(|x| **x != 0.0).count().max(1);
        }
    }
    for i in 0..n.saturating_sub(1) {
        let mut least = i;
        for j in i + 1..n {
            if d[j] < d[least] {
                least = j;
            }
        }
        if least != i {
            d.swap(i, least);
            (0..n).for_each(|r| z.swap(i * n + r, least * n + r));
        }
    }
    0
}

/// QL steps over the block: values are found from its first on.
fn downwards<T: Number>(
    d: &mut [f64],
    e: &mut [f64],
    z: &mut [T],
    n: usize,
    [mut l, last]: [usize; 2],
    [epsilon, safe]: [f64; 2],
    steps: &mut usize,
) -> bool {
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
            turn(z, n, l, cosine, sine);
            (d[l], d[l + 1], e[l]) = (first, second, 0.0);
            l += 2;
            continue;
        }
        if *steps == 0 {
            return false;
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
            turn(z, n, i, c, -s);
        }
        d[l] -= p;
        e[l] = g;
    }
    true
}

/// QR steps over the block: values are found from its last on.
fn upwards<T: Number>(
    d: &mut [f64],
    e: &mut [f64],
    z: &mut [T],
    n: usize,
    [first, last]: [usize; 2],
    [epsilon, safe]: [f64; 2],
    steps: &mut usize,
) -> bool {
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
            turn(z, n, l - 1, cosine, sine);
            (d[l - 1], d[l], e[l - 1]) = (one, two, 0.0);
            end -= 2;
            continue;
        }
        if *steps == 0 {
            return false;
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
            turn(z, n, i, c, s);
        }
        d[l] -= p;
        e[l - 1] = g;
    }
    true
}
