//! LU decomposition with partial pivoting: the pivot is the largest element of a column.

use super::blocks::{Block, Factor, add_product};
use super::columns::add_scaled;
use super::number::{Number, columns};
use super::triangular::{self, Triangle};
use crate::base::Result;

/// Blocks of up to this many columns are eliminated column by column; the second limit is for whole matrices.
const FEW: [usize; 2] = [8, 24];

/// Replaces an `m` by `n` matrix by `L`, without its diagonal of ones, and `U`. `pivots[k]` becomes the row, counted
/// from 1, that was exchanged with row `k`. Returns the first pivot that is zero, counted from 1, or 0.
pub fn factor<T: Number>(a: &mut [T], m: usize, n: usize, pivots: &mut [i32]) -> Result<usize> {
    let whole = Block::new(m, n);
    let info = match [m, n] {
        [2, 2] => square::<T, 2>(a, pivots),
        [3, 3] => square::<T, 3>(a, pivots),
        [4, 4] => square::<T, 4>(a, pivots),
        _ if m.min(n) <= FEW[1] => few(a, whole, pivots),
        _ => block(a, whole, pivots)?,
    };
    Ok(info.map_or(0, |k| k + 1))
}

/// [`few`] for a size known at compile time.
fn square<T: Number, const N: usize>(x: &mut [T], pivots: &mut [i32]) -> Option<usize> {
    few(&mut x[..N * N], Block::new(N, N), &mut pivots[..N])
}

/// Factors the left half, applies it to the right half, and factors that. Pivots count from 1; the first zero pivot,
/// which is returned, counts from 0.
fn block<T: Number>(x: &mut [T], a: Block, pivots: &mut [i32]) -> Result<Option<usize>> {
    let (m, n, count) = (a.rows, a.columns, pivots.len());
    if count <= FEW[0] {
        return Ok(few(x, a, pivots));
    }
    let half = (count / 2).next_multiple_of(FEW[0]);
    let first = block(x, a.part(0..m, 0..half), &mut pivots[..half])?;
    exchange(x, a.part(0..m, half..n), &pivots[..half]);
    let (beside, rest) = (a.part(0..half, half..n), a.part(half..m, half..n));
    let triangle = Triangle { upper: false, unit: true, adjoint: false };
    triangular::solve_blocks(x, None, a.part(0..half, 0..half), beside, triangle)?;
    add_product(x, rest, -1.0, Factor::own(a.part(half..m, 0..half)), Factor::own(beside))?;
    let second = block(x, rest, &mut pivots[half..])?;
    exchange(x, a.part(half..m, 0..half), &pivots[half..]);
    pivots[half..].iter_mut().for_each(|row| *row += half as i32);
    Ok(first.or(second.map(|k| half + k)))
}

/// The index of the largest element, the first of them.
#[inline(always)]
fn largest<T: Number>(column: &[T]) -> usize {
    if column.len() < 8 {
        return (1..column.len())
            .fold(0, |best, i| if column[i].weight() > column[best].weight() { i } else { best });
    }
    // Eight searches at once, because the compiler may not reorder a single one.
    let mut most = [column[0].weight(); 8];
    let larger = |most: &mut f64, x: &T| *most = if x.weight() > *most { x.weight() } else { *most };
    let (eights, rest) = column.as_chunks::<8>();
    for eight in eights {
        most.iter_mut().zip(eight).for_each(|(most, x)| larger(most, x));
    }
    most.iter_mut().zip(rest).for_each(|(most, x)| larger(most, x));
    let most = most.into_iter().fold(column[0].weight(), |a, b| if b > a { b } else { a });
    column.iter().position(|x| x.weight() == most).unwrap_or(0)
}

#[inline(always)]
fn few<T: Number>(x: &mut [T], a: Block, pivots: &mut [i32]) -> Option<usize> {
    let mut zero = None;
    for k in 0..pivots.len() {
        let best = k + largest(&x[a.place(k, k)..a.column(k).end]);
        pivots[k] = best as i32 + 1;
        if x[a.place(best, k)].weight() == 0.0 {
            zero = zero.or(Some(k));
        } else {
            if best != k {
                (0..a.columns).for_each(|j| x.swap(a.place(k, j), a.place(best, j)));
            }
            let scale = T::one() / x[a.place(k, k)];
            x[a.place(k + 1, k)..a.column(k).end].iter_mut().for_each(|x| *x = *x * scale);
        }
        let (left, right) = x[..a.column(a.columns - 1).end].split_at_mut(a.column(k).end);
        let factors = &left[a.place(k + 1, k)..];
        for rest in right.chunks_mut(a.lead) {
            let rest = &mut rest[a.lead - a.rows + k..];
            let factor = -rest[0];
            add_scaled(&mut rest[1..], factor, factors);
        }
    }
    zero
}

/// Exchanges rows one after another.
fn exchange<T: Number>(x: &mut [T], a: Block, pivots: &[i32]) {
    for j in 0..a.columns {
        let column = &mut x[a.column(j)];
        for (k, &pivot) in pivots.iter().enumerate() {
            column.swap(k, (pivot - 1) as usize);
        }
    }
}

/// Solves `a x = b`, or `aᴴ x = b`, for each column of `b`, given the factors that [`factor`] made; `x` replaces `b`.
pub fn solve<T: Number>(lu: &[T], n: usize, pivots: &[i32], b: &mut [T], adjoint: bool) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let exchange = |column: &mut [T], k: usize| {
        // Pivots come from the user; ignore those out of range.
        let other = (pivots[k] as usize).wrapping_sub(1);
        if other < n {
            column.swap(k, other);
        }
    };
    let (lower, upper) =
        (Triangle { upper: false, unit: true, adjoint }, Triangle { upper: true, unit: false, adjoint });
    if adjoint {
        triangular::solve(lu, n, b, upper)?;
        triangular::solve(lu, n, b, lower)?;
        b.chunks_exact_mut(n).for_each(|column| (0..n).rev().for_each(|k| exchange(column, k)));
    } else {
        b.chunks_exact_mut(n).for_each(|column| (0..n).for_each(|k| exchange(column, k)));
        triangular::solve(lu, n, b, lower)?;
        triangular::solve(lu, n, b, upper)?;
    }
    Ok(())
}

/// Number of columns of an inverse that are computed together.
const WIDTH: usize = 64;

/// Replaces a unit matrix by the inverse of the factored matrix.
pub fn invert<T: Number>(lu: &[T], n: usize, pivots: &[i32], x: &mut [T]) -> Result<()> {
    if n <= WIDTH {
        return solve(lu, n, pivots, x, false);
    }
    let whole = Block::new(n, n);
    let (lower, upper) = (
        Triangle { upper: false, unit: true, adjoint: false },
        Triangle { upper: true, unit: false, adjoint: false },
    );
    // The inverse of `L` has zeros above its diagonal, which need no work.
    for first in (0..n).step_by(WIDTH) {
        let beside = whole.part(first..n, first..n.min(first + WIDTH));
        triangular::solve_blocks(x, Some(lu), whole.part(first..n, first..n), beside, lower)?;
    }
    triangular::solve(lu, n, x, upper)?;
    for k in (0..n).rev() {
        let other = (pivots[k] - 1) as usize;
        if other > k && other < n {
            let (left, right) = columns(x, n, k, other);
            left.swap_with_slice(right);
        }
    }
    Ok(())
}

/// `x` scaled to length 1, or zero if it is zero or a real NaN.
fn direction<T: Number>(x: T, length: f64) -> T {
    if length == 0.0 || (!T::COMPLEX && length.is_nan()) { T::zero() } else { x.scaled(1.0 / length) }
}

/// The determinant of the factored matrix and 0; with `logarithm`, its sign and the logarithm of its magnitude.
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

/// The permutation that a sequence of row exchanges makes: where each row comes from, and where it goes.
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
