//! Cholesky decomposition: factors the first half, subtracts its product from the second, and factors that.

use super::blocks::{Block, Factor, add_product, lower_triangle};
use super::columns::add_scaled;
use super::number::Number;
use super::triangular;
use crate::base::Result;

/// Up to this many columns are factored one after another.
const FEW: usize = 24;

/// Replaces the lower triangle of `a` by `L`, and sets the elements above it to zero. Returns the order of the first
/// leading minor that is not positive, or 0.
pub fn factor<T: Number>(a: &mut [T], n: usize) -> Result<usize> {
    let info = match n {
        2 => square::<T, 2>(a),
        3 => square::<T, 3>(a),
        4 => square::<T, 4>(a),
        _ => block(a, Block::new(n, n))?,
    };
    for j in 1..n {
        a[j * n..j * n + j].fill(T::zero());
    }
    Ok(info)
}

/// [`few`] for a size known at compile time.
fn square<T: Number, const N: usize>(x: &mut [T]) -> usize {
    few(&mut x[..N * N], Block::new(N, N))
}

fn block<T: Number>(x: &mut [T], a: Block) -> Result<usize> {
    let n = a.rows;
    if n <= FEW {
        return Ok(few(x, a));
    }
    let half = n / 2;
    let (above, rest) = (a.part(0..half, 0..half), a.part(half..n, half..n));
    let info = block(x, above)?;
    if info > 0 {
        return Ok(info);
    }
    let below = a.part(half..n, 0..half);
    triangular::solve_from_right(x, above, below)?;
    subtract_square(x, rest, below)?;
    let info = block(x, rest)?;
    Ok(if info > 0 { half + info } else { 0 })
}

#[inline(always)]
fn few<T: Number>(x: &mut [T], a: Block) -> usize {
    for j in 0..a.rows {
        let pivot = x[a.place(j, j)].re();
        if pivot <= 0.0 || pivot.is_nan() {
            return j + 1;
        }
        let root = pivot.sqrt();
        let end = a.column(a.columns - 1).end;
        let (left, right) = x[..end].split_at_mut(a.column(j).end);
        let column = &mut left[a.place(j, j)..];
        column[0] = T::real(root);
        column[1..].iter_mut().for_each(|x| *x = x.scaled(1.0 / root));
        for (k, rest) in right.chunks_mut(a.lead).enumerate() {
            // Each column begins where the one before it ends.
            let rest = &mut rest[a.lead - (a.rows - j - k - 1)..];
            add_scaled(rest, -column[k + 1].conj(), &column[k + 1..]);
        }
    }
    0
}

/// Subtracts `b bᴴ` from the lower triangle of a block.
fn subtract_square<T: Number>(x: &mut [T], a: Block, b: Block) -> Result<()> {
    let of = |rows| Factor::own(b.part(rows, 0..b.columns));
    lower_triangle(0..a.rows, &mut |rows, columns| {
        add_product(x, a.part(rows.clone(), columns.clone()), -1.0, of(rows), of(columns).adjoint())
    })
}
