//! Eigenvalues and eigenvectors of any square matrix: QR steps make it a triangle (Schur form), whose vectors follow by
//! substitution.

use super::blocks::{Block, Factor, add_product};
use super::columns::{add_columns, adjoint_product};
use super::number::Number;
use super::qr;
use crate::base::{Result, try_alloc};
use crate::cpu::math::complex::Complex;
use std::ops::Range;

type C = Complex<f64>;

/// Maximum number of steps per value, which suffices; every tenth step for a value takes another shift.
const STEPS: usize = 60;

/// A square column-major matrix; an empty one stands for a result that is not wanted.
struct Matrix<'a, T> {
    items: &'a mut [T],
    n: usize,
}

impl<T: Copy> Matrix<'_, T> {
    fn at(&self, row: usize, column: usize) -> T {
        self.items[column * self.n + row]
    }
    fn put(&mut self, row: usize, column: usize, value: T) {
        self.items[column * self.n + row] = value;
    }
}

/// Finds the eigenvalues; with `vectors`, the eigenvectors replace `a`. They have length 1, their largest elements are
/// real, and those of real matrices come in conjugate pairs. Returns the number of values that were not found: 0 if all
/// is well.
pub fn decompose(a: &mut [C], n: usize, values: &mut [C], real: bool, vectors: bool) -> Result<usize> {
    if n == 0 {
        return Ok(0);
    }
    let mut basis = if vectors { try_alloc::filled(C::zero(), n * n)? } else { vec![] };
    let left = if real {
        let mut h = try_alloc::with_capacity(n * n)?;
        h.extend(a.iter().map(|x| x.re));
        let mut z = if vectors { try_alloc::filled(0.0, n * n)? } else { vec![] };
        let left = schur_of_real(&mut Matrix { items: &mut h, n }, &mut Matrix { items: &mut z, n })?;
        for (to, from) in a.iter_mut().zip(&h).chain(basis.iter_mut().zip(&z)) {
            *to = C::real(*from);
        }
        split_pairs(&mut Matrix { items: a, n }, &mut Matrix { items: &mut basis, n });
        left
    } else {
        schur(&mut Matrix { items: a, n }, &mut Matrix { items: &mut basis, n })?
    };
    let triangle = Matrix { items: a, n };
    values.iter_mut().enumerate().for_each(|(k, value)| *value = triangle.at(k, k));
    if !vectors {
        return Ok(left);
    }
    let mut found = try_alloc::filled(C::zero(), n * n)?;
    let largest = triangle.items.iter().map(|x| x.weight()).fold(0.0, f64::max);
    (0..n).for_each(|k| solve(&triangle, k, &mut found[k * n..=k * n + k], largest));
    a.fill(C::zero());
    let square = Block::new(n, n);
    add_product(a, square, 1.0, Factor::of(&basis, square), Factor::of(&found, square))?;
    for k in 0..n {
        let (before, vector) = a.split_at_mut(k * n);
        let vector = &mut vector[..n];
        if real && k > 0 && values[k].im < 0.0 && values[k - 1].im > 0.0 {
            vector.iter_mut().zip(&before[(k - 1) * n..]).for_each(|(to, x)| *to = x.conj());
            continue;
        }
        normalize(vector);
        if real && values[k].im == 0.0 {
            vector.iter_mut().for_each(|x| x.im = 0.0);
        }
    }
    Ok(left)
}

/// The eigenvector of a triangle for its value number `k`, by substitution.
fn solve(t: &Matrix<C>, k: usize, x: &mut [C], largest: f64) {
    let value = t.at(k, k);
    let norm = if largest > 0.0 { largest } else { 1.0 };
    x.iter_mut().zip(&t.items[k * t.n..]).for_each(|(x, t)| *x = -*t);
    x[k] = C::one();
    for i in (0..k).rev() {
        let gap = t.at(i, i) - value;
        // If values are equal, the vector is nearly parallel to the other one's.
        let gap = if gap.size() < f64::EPSILON * norm { C::real(f64::EPSILON * norm) } else { gap };
        x[i] = x[i] / gap;
        let size = x[i].size();
        if size > 1e100 {
            // Scale all elements found so far as well.
            x.iter_mut().for_each(|x| *x = x.scaled(1.0 / size));
        }
        let found = x[i];
        super::columns::add_scaled(&mut x[..i], -found, &t.items[i * t.n..i * t.n + i]);
    }
}

/// Scales a vector to length 1, and makes its largest element real.
fn normalize(v: &mut [C]) {
    let (mut at, mut most) = (0, 0.0);
    for (i, x) in v.iter().enumerate() {
        // If elements are nearly equal, the choice must not depend on rounding.
        if x.square() > most * (1.0 + 1e-9) {
            (at, most) = (i, x.square());
        }
    }
    let length = super::number::length(v);
    if most > 0.0 {
        let largest = v[at];
        let factor = largest.conj().scaled(1.0 / (largest.size() * length));
        v.iter_mut().for_each(|x| *x = *x * factor);
        v[at] = C::real(v[at].re);
    }
}

/// Reduces `a` to Hessenberg form by reflectors, whose product `q` becomes, unless it is empty.
fn hessenberg<T: Number>(a: &mut Matrix<T>, q: &mut Matrix<T>) -> Result<()> {
    let n = a.n;
    let mut tau = try_alloc::filled(T::zero(), n - 1)?;
    let (mut v, mut w) = (try_alloc::filled(T::zero(), n)?, try_alloc::filled(T::zero(), n)?);
    for k in 0..n.saturating_sub(2) {
        let (column, rest) = a.items[k * n..].split_at_mut(n);
        let factor = qr::reflector(&mut column[k + 1..]);
        tau[k] = factor;
        let v = &mut v[..n - k - 1];
        v.copy_from_slice(&column[k + 1..]);
        v[0] = T::one();
        // Reflect from the right, then from the left.
        w.fill(T::zero());
        add_columns(&mut w, rest, n, v);
        for (column, v) in rest.chunks_exact_mut(n).zip(&*v) {
            add_columns(column, &w, n, &[-(factor * v.conj())]);
        }
        let along = &mut w[..v.len()];
        adjoint_product(along, &rest[k + 1..], n, v);
        for (column, along) in rest.chunks_exact_mut(n).zip(along) {
            add_columns(&mut column[k + 1..], v, n, &[-(factor.conj() * along.conj())]);
        }
    }
    if !q.items.is_empty() {
        q.items.copy_from_slice(a.items);
        qr::product_below(q.items, n, &tau)?;
    }
    (0..n).for_each(|k| a.items[(k * n + k + 2).min((k + 1) * n)..(k + 1) * n].fill(T::zero()));
    Ok(())
}

/// Multiplies the rows from `row` on, in these columns, by `1 - factor v vᵀ` from the left; `v` has two or three
/// elements.
fn reflect_rows(a: &mut Matrix<f64>, row: usize, columns: Range<usize>, v: &[f64], factor: f64) {
    for column in a.items[columns.start * a.n..columns.end * a.n].chunks_exact_mut(a.n) {
        match (v, &mut column[row..]) {
            (&[p, q, r], [x, y, z, ..]) => {
                let along = factor * (p * *x + q * *y + r * *z);
                (*x, *y, *z) = (*x - along * p, *y - along * q, *z - along * r);
            }
            (&[p, q], [x, y, ..]) => {
                let along = factor * (p * *x + q * *y);
                (*x, *y) = (*x - along * p, *y - along * q);
            }
            _ => {}
        }
    }
}

/// Multiplies the columns from `column` on, in these rows, by `1 - factor v vᵀ` from the right; `v` has two or three
/// elements.
fn reflect_columns(a: &mut Matrix<f64>, column: usize, rows: Range<usize>, v: &[f64], factor: f64) {
    let (x, rest) = a.items[column * a.n..].split_at_mut(a.n);
    let (y, rest) = rest.split_at_mut(a.n);
    let pairs = x[rows.clone()].iter_mut().zip(&mut y[rows.clone()]);
    match *v {
        [p, q, r] => {
            for ((x, y), z) in pairs.zip(&mut rest[rows]) {
                let along = factor * (p * *x + q * *y + r * *z);
                (*x, *y, *z) = (*x - along * p, *y - along * q, *z - along * r);
            }
        }
        [p, q] => {
            for (x, y) in pairs {
                let along = factor * (p * *x + q * *y);
                (*x, *y) = (*x - along * p, *y - along * q);
            }
        }
        _ => {}
    }
}

/// The start of the block that ends at `end`: the subdiagonal element before it is negligible.
fn block<T: Number>(h: &mut Matrix<T>, end: usize) -> usize {
    for k in (1..=end).rev() {
        let beside = h.at(k - 1, k - 1).weight() + h.at(k, k).weight();
        let beside = if beside == 0.0 { f64::MIN_POSITIVE } else { beside };
        if h.at(k, k - 1).weight() <= f64::EPSILON * beside {
            h.put(k, k - 1, T::zero());
            return k;
        }
    }
    0
}

/// The rotation `[c, s; -sᴴ, c]`, which multiplies the rows `k` and `k + 1` from the left, and whose inverse multiplies
/// the columns from the right.
#[derive(Clone, Copy)]
struct Rotation {
    c: f64,
    s: C,
}

impl Rotation {
    /// The rotation that turns (x, y) into (r, 0).
    fn of(x: C, y: C) -> Rotation {
        let length = x.size().hypot(y.size());
        if length == 0.0 || y.size() == 0.0 {
            return Rotation { c: 1.0, s: C::zero() };
        }
        if x.size() == 0.0 {
            return Rotation { c: 0.0, s: y.conj().scaled(1.0 / y.size()) };
        }
        let phase = x.scaled(1.0 / x.size());
        Rotation { c: x.size() / length, s: phase * y.conj().scaled(1.0 / length) }
    }

    fn rows(self, a: &mut Matrix<C>, k: usize, columns: Range<usize>) {
        for column in a.items[columns.start * a.n..columns.end * a.n].chunks_exact_mut(a.n) {
            let (x, y) = (column[k], column[k + 1]);
            column[k] = x.scaled(self.c) + self.s * y;
            column[k + 1] = y.scaled(self.c) - self.s.conj() * x;
        }
    }

    fn columns(self, a: &mut Matrix<C>, k: usize, rows: Range<usize>) {
        if a.items.is_empty() {
            return;
        }
        let (left, right) = a.items[k * a.n..(k + 2) * a.n].split_at_mut(a.n);
        let conj = self.s.conj();
        for (x, y) in left[rows.clone()].iter_mut().zip(&mut right[rows]) {
            (*x, *y) = (x.scaled(self.c) + conj * *y, y.scaled(self.c) - self.s * *x);
        }
    }
}

/// The eigenvalue of [[a, b], [c, d]] that is nearer to `d`.
fn nearer(a: C, b: C, c: C, d: C) -> C {
    let half = (a - d).scaled(0.5);
    let product = b * c;
    if product.size() == 0.0 {
        return d;
    }
    let root = root(half * half + product);
    let sum = if (half + root).size() > (half - root).size() { half + root } else { half - root };
    d - product / sum
}

fn root(z: C) -> C {
    let size = z.size();
    if size == 0.0 {
        return C::zero();
    }
    let re = (0.5 * (size + z.re.abs())).sqrt();
    let im = 0.5 * z.im / re;
    if z.re >= 0.0 { C::new(re, im) } else { C::new(im.abs(), if z.im < 0.0 { -re } else { re }) }
}

/// The Schur form of a complex matrix, in `h`, and its basis, in `q`; if `q` is empty, only the diagonal of `h` is
/// valid. Returns the number of values that did not converge.
fn schur(h: &mut Matrix<C>, q: &mut Matrix<C>) -> Result<usize> {
    hessenberg(h, q)?;
    let n = h.n;
    let (mut end, mut steps) = (n - 1, 0);
    while end > 0 {
        let start = block(h, end);
        if start == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        steps += 1;
        if steps > STEPS {
            return Ok(end + 1);
        }
        let shift = if steps % 10 == 0 {
            C::real(h.at(end, end - 1).size() + h.at(end, end).size())
        } else {
            nearer(h.at(end - 1, end - 1), h.at(end - 1, end), h.at(end, end - 1), h.at(end, end))
        };
        let (mut x, mut y) = (h.at(start, start) - shift, h.at(start + 1, start));
        for k in start..end {
            if k > start {
                (x, y) = (h.at(k, k - 1), h.at(k + 1, k - 1));
            }
            let rotation = Rotation::of(x, y);
            // Without vectors, the elements beside the block are not needed any more.
            let (top, last) = if q.items.is_empty() { (start, end + 1) } else { (0, n) };
            rotation.rows(h, k, k.max(start + 1) - 1..last);
            rotation.columns(h, k, top..(k + 3).min(end + 1));
            rotation.columns(q, k, 0..n);
            if k > start {
                h.put(k + 1, k - 1, C::zero());
            }
        }
    }
    Ok(0)
}

/// Like [`schur`], for a real matrix: pairs of complex values stay blocks of two. Each step takes two shifts, which are
/// such a pair or both real.
fn schur_of_real(h: &mut Matrix<f64>, z: &mut Matrix<f64>) -> Result<usize> {
    hessenberg(h, z)?;
    let n = h.n;
    let (mut end, mut steps) = (n - 1, 0);
    while end > 0 {
        let start = block(h, end);
        if start == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        if start + 1 == end {
            split_real(h, z, start);
            if start == 0 {
                break;
            }
            (end, steps) = (start - 1, 0);
            continue;
        }
        steps += 1;
        if steps > STEPS {
            return Ok(end + 1);
        }
        let (sum, product) = if steps % 10 == 0 {
            let size = h.at(end, end - 1).abs() + h.at(end - 1, end - 2).abs();
            (1.5 * size, size * size)
        } else {
            let (a, d) = (h.at(end - 1, end - 1), h.at(end, end));
            (a + d, a * d - h.at(end, end - 1) * h.at(end - 1, end))
        };
        let (a, b) = (h.at(start, start), h.at(start + 1, start));
        let mut first = [
            a * a + h.at(start, start + 1) * b - sum * a + product,
            b * (a + h.at(start + 1, start + 1) - sum),
            b * h.at(start + 2, start + 1),
        ];
        for k in start..end {
            let len = (end + 1 - k).min(3);
            let v = &mut first[..len];
            let size = super::number::length(v);
            if size > 0.0 {
                v[0] += if v[0] < 0.0 { -size } else { size };
                let square: f64 = v.iter().map(|x| x * x).sum();
                let (top, last) = if z.items.is_empty() { (start, end + 1) } else { (0, n) };
                reflect_rows(h, k, k.max(start + 1) - 1..last, v, 2.0 / square);
                reflect_columns(h, k, top..(k + 4).min(end + 1), v, 2.0 / square);
                if !z.items.is_empty() {
                    reflect_columns(z, k, 0..n, v, 2.0 / square);
                }
            }
            if k > start {
                (k + 1..k + len).for_each(|i| h.put(i, k - 1, 0.0));
            }
            if k + 1 < end + 1 {
                for (i, x) in first.iter_mut().enumerate() {
                    *x = if k + 1 + i <= end { h.at(k + 1 + i, k) } else { 0.0 };
                }
            }
        }
    }
    Ok(0)
}

/// Makes a block of two with real eigenvalues a triangle.
fn split_real(h: &mut Matrix<f64>, z: &mut Matrix<f64>, k: usize) {
    let (a, b, c, d) = (h.at(k, k), h.at(k, k + 1), h.at(k + 1, k), h.at(k + 1, k + 1));
    let half = 0.5 * (a - d);
    let square = half * half + b * c;
    if square < 0.0 {
        return;
    }
    let x = half + if half < 0.0 { -square.sqrt() } else { square.sqrt() };
    let length = x.hypot(c);
    if length == 0.0 {
        return;
    }
    let (cosine, sine) = (x / length, c / length);
    for j in k..h.n {
        let (x, y) = (h.at(k, j), h.at(k + 1, j));
        h.put(k, j, cosine * x + sine * y);
        h.put(k + 1, j, cosine * y - sine * x);
    }
    let columns = |m: &mut Matrix<f64>, to: usize| {
        for i in 0..to {
            let (x, y) = (m.at(i, k), m.at(i, k + 1));
            m.put(i, k, cosine * x + sine * y);
            m.put(i, k + 1, cosine * y - sine * x);
        }
    };
    columns(h, k + 2);
    if !z.items.is_empty() {
        columns(z, h.n);
    }
    h.put(k + 1, k, 0.0);
}

/// Makes the blocks of two that real steps left triangles: one eigenvalue with a positive imaginary part, and its
/// conjugate.
fn split_pairs(t: &mut Matrix<C>, q: &mut Matrix<C>) {
    let n = t.n;
    for k in 0..n - 1 {
        let (a, b, c, d) = (t.at(k, k).re, t.at(k, k + 1).re, t.at(k + 1, k).re, t.at(k + 1, k + 1).re);
        if c == 0.0 || t.at(k, k).im != 0.0 {
            continue;
        }
        let half = 0.5 * (a - d);
        let im = (-(half * half + b * c)).max(0.0).sqrt();
        let value = C::new(d + half, im);
        let rotation = Rotation::of(value - C::real(d), C::real(c));
        rotation.rows(t, k, k..n);
        rotation.columns(t, k, 0..k + 2);
        rotation.columns(q, k, 0..n);
        t.put(k, k, value);
        t.put(k + 1, k + 1, value.conj());
        t.put(k + 1, k, C::zero());
    }
}
