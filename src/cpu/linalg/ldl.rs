//! LDL decomposition (Bunch and Kaufman) of symmetric and Hermitian matrices that need not be positive: triangles
//! around a diagonal with blocks of one or two rows.

use super::columns::add_scaled;
use super::number::{Number, columns};

/// Symmetric or Hermitian, which is the same for real numbers.
#[derive(Clone, Copy)]
pub struct LdlKind {
    pub hermitian: bool,
}

impl LdlKind {
    /// The element across the diagonal.
    fn across<T: Number>(self, x: T) -> T {
        if self.hermitian { x.conj() } else { x }
    }

    fn on<T: Number>(self, x: T) -> T {
        if self.hermitian { T::real(x.re()) } else { x }
    }
}

/// The index and the value of the largest weight, the first of them.
fn largest(weights: impl Iterator<Item = (usize, f64)>) -> (usize, f64) {
    weights.fold((0, 0.0), |best, one| if one.1 > best.1 { one } else { best })
}

/// Chooses the block that comes next: returns the row to exchange with the block's last row, and the number of rows in
/// the block. Returns `None` if the column is zero.
fn pivot<T: Number>(a: &[T], n: usize, k: usize, kind: LdlKind) -> Option<(usize, usize)> {
    let alpha = (1.0 + 17.0f64.sqrt()) / 8.0;
    let own = kind.on(a[k * n + k]).weight();
    let (row, high) = largest((k + 1..n).map(|i| (i, a[k * n + i].weight())));
    if own.max(high) == 0.0 {
        return None;
    }
    if own >= alpha * high {
        return Some((k, 1));
    }
    let left = (k..row).map(|j| (j, a[j * n + row].weight()));
    let below = (row + 1..n).map(|i| (i, a[row * n + i].weight()));
    let (_, wide) = largest(left.chain(below));
    Some(if own >= alpha * high * (high / wide) {
        (k, 1)
    } else if kind.on(a[row * n + row]).weight() >= alpha * wide {
        (row, 1)
    } else {
        (row, 2)
    })
}

/// Exchanges the rows and columns `at < other` of the rest of the matrix, from column `from` on; only the lower
/// triangle is stored.
fn exchange<T: Number>(a: &mut [T], n: usize, from: usize, at: usize, other: usize, kind: LdlKind) {
    (from..at).for_each(|j| a.swap(j * n + at, j * n + other));
    (other + 1..n).for_each(|i| a.swap(at * n + i, other * n + i));
    for j in at + 1..other {
        let (below, left) = (a[at * n + j], a[j * n + other]);
        a[at * n + j] = kind.across(left);
        a[j * n + other] = kind.across(below);
    }
    a[at * n + other] = kind.across(a[at * n + other]);
    a.swap(at * n + at, other * n + other);
}

/// Replaces `a` by `L`, without its diagonal of ones, around the diagonal of `D`, with zeros above it; the second
/// element of a block of two stands below its first. `pivots` become the rows that were exchanged, counted from 1; they
/// are negative for both rows of a block of two, of which the second one was exchanged. Returns the first element of
/// `D` that is zero, counted from 1, or 0.
pub fn factor<T: Number>(a: &mut [T], n: usize, pivots: &mut [i32], kind: LdlKind) -> usize {
    let (mut info, mut k) = (0, 0);
    while k < n {
        let (row, size) = match pivot(a, n, k, kind) {
            Some(found) => found,
            None => {
                info = if info == 0 { k + 1 } else { info };
                (k, 1)
            }
        };
        let last = k + size - 1;
        if row != last {
            exchange(a, n, k, last, row, kind);
        }
        for at in k..=last {
            pivots[at] = if size == 1 { row as i32 + 1 } else { -(row as i32 + 1) };
            a[at * n + at] = kind.on(a[at * n + at]);
        }
        if size == 1 {
            let pivot = a[k * n + k];
            if pivot != T::zero() {
                let scale = T::one() / pivot;
                for j in k + 1..n {
                    let (left, right) = columns(a, n, k, j);
                    let factor = scale * left[j];
                    add_scaled(&mut right[j..], -kind.across(factor), &left[j..]);
                    right[j] = kind.on(right[j]);
                }
                a[k * n + k + 1..(k + 1) * n].iter_mut().for_each(|x| *x = *x * scale);
            }
        } else {
            let below = a[k * n + last];
            let (first, second) = (a[last * n + last] / below, a[k * n + k] / kind.across(below));
            let scale = T::one() / (first * second - T::one());
            let (scale_first, scale_second) = (scale / kind.across(below), scale / below);
            for j in last + 1..n {
                let (x, y) = (a[k * n + j], a[last * n + j]);
                let (w, z) = ((first * x - y) * scale_first, (second * y - x) * scale_second);
                for (column, factor) in [(k, w), (last, z)] {
                    let (left, right) = columns(a, n, column, j);
                    add_scaled(&mut right[j..], -kind.across(factor), &left[j..]);
                }
                a[j * n + j] = kind.on(a[j * n + j]);
                // Later columns still read their own rows of these two.
                (a[k * n + j], a[last * n + j]) = (w, z);
            }
        }
        k += size;
    }
    (1..n).for_each(|j| a[j * n..j * n + j].fill(T::zero()));
    info
}

/// Solves `a x = b` for each column of `b`, given the factors that [`factor`] made; `x` replaces `b`.
pub fn solve<T: Number>(ld: &[T], n: usize, pivots: &[i32], b: &mut [T], kind: LdlKind) {
    if n == 0 {
        return;
    }
    // Pivots come from the user; ignore those out of range.
    let swap = |x: &mut [T], k: usize| {
        let other = (pivots[k].unsigned_abs() as usize).wrapping_sub(1);
        if other < n {
            x.swap(k, other);
        }
    };
    let element = |i: usize, j: usize| ld[j * n + i];
    let below = |from: usize, k: usize| &ld[k * n + from..(k + 1) * n];
    let known = |x: &[T], from: usize, k: usize| {
        below(from, k).iter().zip(&x[from..]).fold(T::zero(), |sum, (&l, &x)| sum + kind.across(l) * x)
    };
    for x in b.chunks_exact_mut(n) {
        let mut k = 0;
        while k < n {
            if pivots[k] > 0 || k + 1 == n {
                swap(x, k);
                let found = x[k];
                add_scaled(&mut x[k + 1..], -found, below(k + 1, k));
                x[k] = found / kind.on(element(k, k));
                k += 1;
            } else {
                swap(x, k + 1);
                let (first, second) = (x[k], x[k + 1]);
                add_scaled(&mut x[k + 2..], -first, below(k + 2, k));
                add_scaled(&mut x[k + 2..], -second, below(k + 2, k + 1));
                let low = element(k + 1, k);
                let (p, q) =
                    (kind.on(element(k + 1, k + 1)) / low, kind.on(element(k, k)) / kind.across(low));
                let scale = T::one() / (p * q - T::one());
                let (first, second) = (first / kind.across(low), second / low);
                x[k] = (p * first - second) * scale;
                x[k + 1] = (q * second - first) * scale;
                k += 2;
            }
        }
        while k > 0 {
            k -= 1;
            if pivots[k] > 0 || k == 0 {
                x[k] = x[k] - known(x, k + 1, k);
                swap(x, k);
            } else {
                x[k] = x[k] - known(x, k + 1, k);
                x[k - 1] = x[k - 1] - known(x, k + 1, k - 1);
                swap(x, k);
                k -= 1;
            }
        }
    }
}
