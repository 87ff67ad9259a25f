//! Triangular systems of equations: solves for half of the unknowns, subtracts them from the other equations, and
//! solves those.

use super::blocks::{Block, Factor, add_product};
use super::columns::{add_scaled, dot};
use super::number::Number;
use crate::base::Result;
use crate::cpu::simd::simd_fn;

/// Up to this many unknowns are solved for one after another.
const FEW: usize = 32;
/// Number of right-hand sides that are solved for together.
const SIDES: usize = 8;

/// The triangle of a matrix that is meant.
#[derive(Clone, Copy)]
pub struct Triangle {
    pub upper: bool,
    /// True if its diagonal is taken to be ones.
    pub unit: bool,
    /// True if its conjugate transpose is meant.
    pub adjoint: bool,
}

/// Solves `a x = b` for each column of `b`, which `x` replaces; only the triangle of `a` is read.
pub fn solve<T: Number>(a: &[T], n: usize, b: &mut [T], kind: Triangle) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let sides = Block::new(n, b.len() / n);
    match n {
        2 if sides.columns < SIDES => each::<T, 2>(a, b, kind),
        3 if sides.columns < SIDES => each::<T, 3>(a, b, kind),
        4 if sides.columns < SIDES => each::<T, 4>(a, b, kind),
        _ => return solve_blocks(b, Some(a), Block::new(n, n), sides, kind),
    }
    Ok(())
}

/// Solves for right-hand sides of a size known at compile time.
fn each<T: Number, const N: usize>(a: &[T], b: &mut [T], kind: Triangle) {
    b.as_chunks_mut::<N>().0.iter_mut().for_each(|side| one(&a[..N * N], N, side, kind));
}

/// Like [`solve`], for the blocks `a` of `memory` and `b` of `x`; without `memory`, `a` is a block of `x`, too.
pub fn solve_blocks<T: Number>(
    x: &mut [T],
    memory: Option<&[T]>,
    a: Block,
    b: Block,
    kind: Triangle,
) -> Result<()> {
    let (n, sides) = (b.rows, b.columns);
    if n <= FEW {
        few(x, memory, a, b, kind);
        return Ok(());
    }
    let half = (n / 2).next_multiple_of(SIDES);
    let (low, high) = (0..half, half..n);
    let (first, then) = if kind.upper == kind.adjoint { (low, high) } else { (high, low) };
    let part = |rows: &std::ops::Range<usize>| b.part(rows.clone(), 0..sides);
    let square = |rows: &std::ops::Range<usize>| a.part(rows.clone(), rows.clone());
    solve_blocks(x, memory, square(&first), part(&first), kind)?;
    let (rows, columns) =
        if kind.adjoint { (first.clone(), then.clone()) } else { (then.clone(), first.clone()) };
    let beside = a.part(rows, columns);
    let beside = memory.map_or(Factor::own(beside), |memory| Factor::of(memory, beside));
    let beside = if kind.adjoint { beside.adjoint() } else { beside };
    add_product(x, part(&then), -1.0, beside, Factor::own(part(&first)))?;
    solve_blocks(x, memory, square(&then), part(&then), kind)
}

/// Solves for few unknowns.
fn few<T: Number>(x: &mut [T], memory: Option<&[T]>, a: Block, b: Block, kind: Triangle) {
    let (n, sides) = (b.rows, b.columns);
    let mut copy;
    let (triangle, lead) = match memory {
        Some(memory) => (&memory[a.at.min(memory.len())..], a.lead),
        None => {
            copy = [T::zero(); FEW * FEW];
            (0..n).for_each(|j| copy[j * n..(j + 1) * n].copy_from_slice(&x[a.column(j)]));
            (&copy[..], n)
        }
    };
    assert!(n.saturating_sub(1) * lead + n <= triangle.len());
    let mut j = 0;
    while sides - j >= SIDES {
        let mut rows = [[T::zero(); SIDES]; FEW];
        for s in 0..SIDES {
            let column = &x[b.column(j + s)];
            rows.iter_mut().zip(column).for_each(|(row, &x)| row[s] = x);
        }
        // SAFETY: the rows have `n` elements, and so has the triangle, as checked above.
        unsafe { eliminate::<T, SIDES>(n, triangle.as_ptr(), lead, rows.as_mut_ptr().cast(), kind) };
        for s in 0..SIDES {
            let column = &mut x[b.column(j + s)];
            rows.iter().zip(column).for_each(|(row, x)| *x = row[s]);
        }
        j += SIDES;
    }
    for j in j..sides {
        one(triangle, lead, &mut x[b.column(j)], kind);
    }
}

simd_fn! {
    /// Solves for `N` right-hand sides that are interleaved.
    ///
    /// # Safety
    /// There are `n` rows, and a triangle of that order, whose columns are `lead` elements apart.
    unsafe fn eliminate<T; N>(n: usize, a: *const T, lead: usize, rows: *mut T, kind: Triangle) where [T: Number] {
        let row = |i: usize| rows.add(i * N).cast::<[T; N]>();
        let forwards = kind.upper == kind.adjoint;
        for step in 0..n {
            let k = if forwards { step } else { n - 1 - step };
            let mut known = row(k).read_unaligned();
            if !kind.unit {
                let pivot = *a.add(k * lead + k);
                let pivot = if kind.adjoint { pivot.conj() } else { pivot };
                for x in &mut known {
                    *x = *x / pivot;
                }
                row(k).write_unaligned(known);
            }
            let (from, to) = if forwards { (k + 1, n) } else { (0, k) };
            for i in from..to {
                let factor = if kind.adjoint { (*a.add(i * lead + k)).conj() } else { *a.add(k * lead + i) };
                let mut rest = row(i).read_unaligned();
                for s in 0..N {
                    rest[s] = rest[s] - factor * known[s];
                }
                row(i).write_unaligned(rest);
            }
        }
    }
}

/// Solves for one right-hand side.
#[inline(always)]
fn one<T: Number>(a: &[T], lead: usize, b: &mut [T], kind: Triangle) {
    let n = b.len();
    let forwards = kind.upper == kind.adjoint;
    for step in 0..n {
        let k = if forwards { step } else { n - 1 - step };
        let line = &a[k * lead..k * lead + n];
        if kind.adjoint {
            let known = if forwards { dot(&line[..k], &b[..k]) } else { dot(&line[k + 1..], &b[k + 1..]) };
            let rest = b[k] - known;
            b[k] = if kind.unit { rest } else { rest / line[k].conj() };
            continue;
        }
        if !kind.unit {
            b[k] = b[k] / line[k];
        }
        let found = b[k];
        if forwards {
            add_scaled(&mut b[k + 1..], -found, &line[k + 1..]);
        } else {
            add_scaled(&mut b[..k], -found, &line[..k]);
        }
    }
}

/// Solves `x lᴴ = b` for a lower triangle `l` in the same memory; `x` replaces `b`.
pub fn solve_from_right<T: Number>(x: &mut [T], l: Block, b: Block) -> Result<()> {
    let (m, n) = (b.rows, b.columns);
    if n <= FEW {
        for j in 0..n {
            let mut factors = [T::zero(); FEW];
            for (k, factor) in factors[..j].iter_mut().enumerate() {
                *factor = -x[l.place(j, k)].conj();
            }
            let scale = T::one() / x[l.place(j, j)];
            let (before, column) = x[..b.column(j).end].split_at_mut(b.column(j).start);
            super::columns::add_columns(column, &before[b.at.min(before.len())..], b.lead, &factors[..j]);
            column.iter_mut().for_each(|x| *x = *x * scale);
        }
        return Ok(());
    }
    let half = n / 2;
    let (left, right) = (b.part(0..m, 0..half), b.part(0..m, half..n));
    solve_from_right(x, l.part(0..half, 0..half), left)?;
    let beside = Factor::own(l.part(half..n, 0..half)).adjoint();
    add_product(x, right, -1.0, Factor::own(left), beside)?;
    solve_from_right(x, l.part(half..n, half..n), right)
}
