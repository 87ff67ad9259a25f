//! Singular value decomposition, by way of a bidiagonal matrix.

use super::bidiagonal::{diagonalize, reduce};
use super::blocks::{Block, Factor, add_product};
use super::number::{Double, columns, rescale, scale_of};
use super::rotations::Rotations;
use super::{qr, quotients};
use crate::base::Result;
use crate::cpu::element::scratch;

/// Number of rows that are multiplied at a time.
const ROWS: usize = 64;

/// Decomposes an `m` by `n` matrix with `m >= n`: values in descending order. With `v`, the left vectors replace the
/// matrix, the columns behind them complete the basis, and the right vectors become the columns of `v`. Returns 1 if an
/// element is not finite, 2 if the iteration did not converge, else 0.
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
    // A tall matrix has the same values as its triangle.
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

/// Like [`decompose`], for a matrix that is not very tall and needs no scale. Returns true if all values were found.
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
        // The first row and column of the product of the reflectors from the right are those of the unit matrix.
        v[..n].fill(T::zero());
        v.iter_mut().step_by(n.max(1)).for_each(|x| *x = T::zero());
        if n > 0 {
            v[0] = T::one();
            qr::product(v, Block::new(n, n).part(1..n, 1..n), &made.right)?;
        }
    }
    let mut rotations =
        [Rotations::of(vectors.then_some(&mut *whole), m, n)?, Rotations::of(v.as_deref_mut(), n, n)?];
    let found = diagonalize(&mut made.diagonal, &mut made.above, &mut rotations)?;
    rotations.into_iter().try_for_each(Rotations::finish)?;
    values.copy_from_slice(&made.diagonal);
    for j in 0..n {
        // Values become positive; the right vectors take their signs.
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

/// Multiplies the first `n` columns of a matrix with `m` rows by a square matrix from the right.
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
