//! Products of integer matrices; all arithmetic wraps, as in PyTorch.

use super::Sizes;
use crate::base::Result;
use crate::cpu::element::Element;
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::simd_fn;
use std::ops::Range;

/// Number of columns of an output row that are summed at once.
const TILE: usize = 256;
/// Number of multiplications that are worth a thread.
const GRAIN: usize = 65_536;

/// Adds the products of a row of `a` and `width` columns of `b` to `sums`.
pub type Tile<T> = unsafe fn(s: &Sizes, width: usize, a: *const T, b: *const T, sums: &mut [T; TILE]);

/// # Safety
/// The same as for the f32 product; `T` is the element type.
pub unsafe fn product<T: Element>(
    s: &Sizes,
    out: *mut T,
    a: *const T,
    b: *const T,
    [alpha, beta]: [i64; 2],
    threads: bool,
    tile: Tile<T>,
) -> Result<()> {
    let (alpha, scale) = (T::from_i64(alpha), T::from_i64(beta));
    let (out, a, b) = (Shared::new(out), Shared::new(a), Shared::new(b));
    let rows = |range: Range<usize>| {
        for i in range {
            for first in (0..s.n).step_by(TILE) {
                let (out, a, b) = (out.get(), a.get(), b.get());
                let width = TILE.min(s.n - first);
                let mut sums = [T::from_i64(0); TILE];
                // SAFETY: row `i` and columns `first..first + width` are inside the matrices, and this row of `out`
                // belongs to this call alone.
                unsafe {
                    tile(s, width, a.add(i * s.a[0]), b.add(first * s.b[1]), &mut sums);
                    let row = out.add(i * s.out[0] + first * s.out[1]);
                    for (j, sum) in sums.iter().enumerate().take(width) {
                        let to = row.add(j * s.out[1]);
                        let product = alpha.times(*sum);
                        *to = if beta == 0 { product } else { product.plus(scale.times(*to)) };
                    }
                }
            }
        }
    };
    let grain = (GRAIN / (s.n * s.k).max(1)).max(1);
    if threads {
        par::ranges(s.m, grain, rows)
    } else {
        rows(0..s.m)
    }
    Ok(())
}

simd_fn! {
    /// # Safety
    /// The pointers are to live matrices of these sizes; `sums` overlaps neither.
    pub unsafe fn tile_i64(s: &Sizes, width: usize, a: *const i64, b: *const i64, sums: &mut [i64; TILE]) {
        tile(s, width, a, b, sums)
    }
}
simd_fn! {
    /// # Safety
    /// The pointers are to live matrices of these sizes; `sums` overlaps neither.
    pub unsafe fn tile_i32(s: &Sizes, width: usize, a: *const i32, b: *const i32, sums: &mut [i32; TILE]) {
        tile(s, width, a, b, sums)
    }
}

/// # Safety
/// The pointers are to live matrices of these sizes; `sums` overlaps neither.
#[inline(always)]
pub unsafe fn tile<T: Element>(s: &Sizes, width: usize, a: *const T, b: *const T, sums: &mut [T; TILE]) {
    for p in 0..s.k {
        // SAFETY: the caller's contract, for all `p` below `k`.
        unsafe {
            let (x, row) = (*a.add(p * s.a[1]), b.add(p * s.b[0]));
            if s.b[1] == 1 {
                sums.iter_mut()
                    .enumerate()
                    .take(width)
                    .for_each(|(j, sum)| *sum = sum.plus(x.times(*row.add(j))));
            } else {
                let step = s.b[1];
                sums.iter_mut()
                    .enumerate()
                    .take(width)
                    .for_each(|(j, sum)| *sum = sum.plus(x.times(*row.add(j * step))));
            }
        }
    }
}
