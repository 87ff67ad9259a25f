//! Systems of equations with triangles, solved one unknown after the other.

use super::number::{Number, add_scaled, dot};

/// Solves `a x = b` for each column of `b`, in its place; of `a` only one triangle is read.
pub fn solve<T: Number>(a: &[T], n: usize, b: &mut [T], upper: bool, unit: bool) {
    if n == 0 {
        return;
    }
    for column in b.chunks_exact_mut(n) {
        for step in 0..n {
            let k = if upper { n - 1 - step } else { step };
            let line = &a[k * n..(k + 1) * n];
            if !unit {
                column[k] = column[k] / line[k];
            }
            let found = column[k];
            if upper {
                add_scaled(&mut column[..k], -found, &line[..k]);
            } else {
                add_scaled(&mut column[k + 1..], -found, &line[k + 1..]);
            }
        }
    }
}

/// Solves `aᴴ x = b` for each column of `b`, in its place; `upper` says which triangle of `a` itself is read.
pub fn solve_adjoint<T: Number>(a: &[T], n: usize, b: &mut [T], upper: bool, unit: bool) {
    if n == 0 {
        return;
    }
    for column in b.chunks_exact_mut(n) {
        for step in 0..n {
            let k = if upper { step } else { n - 1 - step };
            let line = &a[k * n..(k + 1) * n];
            let known =
                if upper { dot(&line[..k], &column[..k]) } else { dot(&line[k + 1..], &column[k + 1..]) };
            let rest = column[k] - known;
            column[k] = if unit { rest } else { rest / line[k].conj() };
        }
    }
}
