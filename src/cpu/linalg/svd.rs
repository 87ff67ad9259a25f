//! Singular values and vectors: of a bidiagonal matrix that reflectors leave.

use super::bidiagonal::{diagonalize, reduce};
use super::blocks::{Block, Factor, add_product};
use super::number::{Double, columns, rescale, scale_of};
use super::turns::Turns;
use super::{qr, quotients};
use crate::base::Result;
use crate::cpu::element::scratch;

/// Rows that are multiplied at a time.
const ROWS: usize = 64;

/// Of an `m` by `n` matrix with `m >= n`: values in descending order; with `v`, left vectors in its place, in the columns behind
/// them what completes a basis, and right ones as columns of `v`. 1 if something is not finite, 2 if the steps did not end, else 0.
pub fn decompose<T: Double>(
    whole: &mut [T],
    m: usize,
    n: usize,
    values: &mut [f64],
    mut v: Option<&mut [T]>,
) -> Result<usize> {
    let a = &mut whole[..m * n];
    if a.iter().any(|x| !x.weight().is_finite()) {
        return Ok(1);
    }
    let scale = scale_of(a.iter());
    rescale(a, scale);
    // The triangle of a tall matrix has the same values.
    let tall = 5 * m >= 8 * n && n > 0;
    let left = if tall {
        let mut tau = scratch(n, T::zero())?;
        qr::reflect(a, m, n, &mut tau)?;
        let mut r = scratch(n * n, T::zero())?;
        (0..n).for_each(|j| r[j * n..=j * n + j].copy_from_slice(&a[j * m..=j * m + j]));
        let found = square(&mut r, n, n, n, values, v.as_deref_mut())?;
        if v.is_some() {
            let width = whole.len() / m.max(1);
            qr::product(whole, Block::new(m, width), &tau)?;
            times(whole, m, n, &r)?;
        }
        found
    } else {
        let width = whole.len() / m.max(1);
        square(whole, m, n, width, values, v)?
    };
    values.iter_mut().for_each(|x| *x /= scale);
    Ok(if left { 0 } else { 2 })
}

/// As [`decompose`], for a matrix that is not very tall and needs no scale; whether all values were found.
fn square<T: Double>(
    whole: &mut [T],
    m: usize,
    n: usize,
    width: usize,
    values: &mut [f64],
    mut v: Option<&mut [T]>,
) -> Result<bool> {
    let mut made = reduce(&mut whole[..m * n], m, n, v.as_deref_mut())?;
    let vectors = v.is_some();
    if !vectors && quotients::values(&made.diagonal, &made.above, values)? {
        values.sort_unstable_by(|x, y| y.total_cmp(x));
        return Ok(true);
    }
    if let Some(v) = v.as_deref_mut() {
        qr::product(whole, Block::new(m, width), &made.left)?;
        // The first row and column of the reflectors from the right are those of the unit matrix.
        v[..n].fill(T::zero());
        v.iter_mut().step_by(n.max(1)).for_each(|x| *x = T::zero());
        if n > 0 {
            v[0] = T::one();
            qr::product(v, Block::new(n, n).part(1..n, 1..n), &made.right)?;
        }
    }
    let mut turns = [Turns::of(vectors.then_some(&mut *whole), m, n)?, Turns::of(v.as_deref_mut(), n, n)?];
    let found = diagonalize(&mut made.diagonal, &mut made.above, &mut turns)?;
    turns.into_iter().try_for_each(Turns::done)?;
    values.copy_from_slice(&made.diagonal);
    for j in 0..n {
        // The signs are those of the right vectors.
        if values[j].is_sign_negative() {
            values[j] = -values[j];
            v.iter_mut().flat_map(|v| &mut v[j * n..(j + 1) * n]).for_each(|x| *x = -*x);
        }
    }
    let Some(v) = v else {
        values.sort_unstable_by(|x, y| y.total_cmp(x));
        return Ok(found);
    };
    for j in 0..n {
        let largest = (j..n).fold(j, |best, k| if values[k] > values[best] { k } else { best });
        if largest != j {
            values.swap(j, largest);
            let (x, y) = columns(whole, m, j, largest);
            x.swap_with_slice(y);
            let (x, y) = columns(v, n, j, largest);
            x.swap_with_slice(y);
        }
    }
    Ok(found)
}

/// Multiplies the first `n` columns of a matrix with `m` rows by a square from the right.
fn times<T: Double>(a: &mut [T], m: usize, n: usize, square: &[T]) -> Result<()> {
    let mut copy = scratch(ROWS.min(m) * n, T::zero())?;
    for first in (0..m).step_by(ROWS) {
        let last = m.min(first + ROWS);
        let (rows, block) = (last - first, Block::new(m, n).part(first..last, 0..n));
        for j in 0..n {
            let column = &mut a[block.column(j)];
            copy[j * rows..(j + 1) * rows].copy_from_slice(column);
            column.fill(T::zero());
        }
        let of = (Factor::of(&copy, Block::new(rows, n)), Factor::of(square, Block::new(n, n)));
        add_product(a, block, 1.0, of.0, of.1)?;
    }
    Ok(())
}
