//! Repeated products with one right matrix, as the steps of a recurrent layer need them. The matrix is packed once, in
//! panels of as many columns as registers hold.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::float::transpose;
use crate::base::Result;
use crate::cpu::element::scratch;
use crate::cpu::float::Float;
use crate::cpu::simd::{Level, level, simd_fn};

/// Number of rows that are multiplied together.
pub const ROWS: usize = 4;
/// Number of terms that a register sums before the sum is stored, so that long sums stay exact.
const DEPTH: usize = 256;

/// The product of one panel, `out[i][j] = sum over p of a[i][p] * panel[p][j]`; it is added to `out` if `more` is set.
type Run<T> = unsafe fn(
    k: usize,
    a: *const T,
    a_step: usize,
    panel: *const T,
    out: *mut T,
    out_step: usize,
    more: bool,
);

/// The loops for panels of one width: for [`ROWS`] rows, and for a single one.
#[derive(Clone, Copy)]
struct Loops<T> {
    columns: usize,
    rows: Run<T>,
    row: Run<T>,
}

/// A packed matrix: its first columns are in wide panels, the rest in narrow ones; zeros fill the last.
pub struct Panels<T> {
    depth: usize,
    columns: usize,
    packed: Vec<T>,
}

#[inline(always)]
unsafe fn product<T: Float, const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
    k: usize,
    a: *const T,
    a_step: usize,
    panel: *const T,
    out: *mut T,
    out_step: usize,
    more: bool,
) {
    let mut sums = [[T::ZERO; WIDTH]; ROWS];
    // SAFETY: the caller's rows, panel and results.
    unsafe {
        for p in 0..k {
            let y = &*panel.add(p * WIDTH).cast::<[T; WIDTH]>();
            for i in 0..ROWS {
                let x = *a.add(i * a_step + p);
                for j in 0..WIDTH {
                    let sum = sums[i][j];
                    sums[i][j] = if FUSED { x.mul_add(y[j], sum) } else { x * y[j] + sum };
                }
            }
        }
        for i in 0..ROWS {
            let out = &mut *out.add(i * out_step).cast::<[T; WIDTH]>();
            for j in 0..WIDTH {
                out[j] = if more { out[j] + sums[i][j] } else { sums[i][j] };
            }
        }
    }
}

simd_fn! {
    unsafe fn wide<T: Float; ROWS, WIDTH>(
        k: usize, a: *const T, a_step: usize, panel: *const T, out: *mut T, out_step: usize, more: bool,
    ) {
        product::<T, ROWS, WIDTH, true>(k, a, a_step, panel, out, out_step, more)
    }
}

simd_fn! {
    [Level::V3]
    unsafe fn narrow<T: Float; ROWS, WIDTH>(
        k: usize, a: *const T, a_step: usize, panel: *const T, out: *mut T, out_step: usize, more: bool,
    ) {
        product::<T, ROWS, WIDTH, true>(k, a, a_step, panel, out, out_step, more)
    }
}

/// On x86-64 the baseline has no fused multiply-add; elsewhere it is used.
const FUSED: bool = cfg!(not(target_arch = "x86_64"));

impl<T: Float> Loops<T> {
    /// Panels of four registers of AVX-512.
    const WIDE: Loops<T> = match size_of::<T>() {
        4 => Loops { columns: 64, rows: wide::<T, ROWS, 64>, row: wide::<T, 1, 64> },
        _ => Loops { columns: 32, rows: wide::<T, ROWS, 32>, row: wide::<T, 1, 32> },
    };

    fn narrow() -> Loops<T> {
        match size_of::<T>() {
            4 => Loops::narrow_of::<16>(),
            _ => Loops::narrow_of::<8>(),
        }
    }

    fn narrow_of<const WIDTH: usize>() -> Loops<T> {
        let (rows, row): (Run<T>, Run<T>) = match level() {
            Level::Baseline => (product::<T, ROWS, WIDTH, FUSED>, product::<T, 1, WIDTH, FUSED>),
            _ => (narrow::<T, ROWS, WIDTH>, narrow::<T, 1, WIDTH>),
        };
        Loops { columns: WIDTH, rows, row }
    }
}

impl<T: Float> Panels<T> {
    /// Packs a matrix of `depth` rows with strides `[down, along]`.
    ///
    /// # Safety
    /// The matrix is live, and one of its strides is 1.
    pub unsafe fn new(
        depth: usize,
        columns: usize,
        from: *const T,
        [down, along]: [usize; 2],
    ) -> Result<Panels<T>> {
        let padded = columns.next_multiple_of(Loops::<T>::narrow().columns);
        let mut panels = Panels { depth, columns: padded, packed: scratch(depth * padded, T::ZERO)? };
        let to = panels.packed.as_mut_ptr();
        panels.each(|first, loops| {
            let count = loops.columns.min(columns - first);
            // SAFETY: the panel is a part of both matrices.
            unsafe {
                let (from, to) = (from.add(first * along), to.add(first * depth));
                if down == 1 && count == loops.columns {
                    transpose(0, depth, count, from, along, to);
                    return;
                }
                for p in 0..depth {
                    for j in 0..count {
                        *to.add(p * loops.columns + j) = *from.add(p * down + j * along);
                    }
                }
            }
        });
        Ok(panels)
    }

    /// Calls `body` with the first column and the loops of each panel.
    fn each(&self, mut body: impl FnMut(usize, Loops<T>)) {
        let mut first = 0;
        while first < self.columns {
            let wide = level() == Level::V4 && self.columns - first >= Loops::<T>::WIDE.columns;
            let loops = if wide { Loops::WIDE } else { Loops::narrow() };
            body(first, loops);
            first += loops.columns;
        }
    }

    /// `out = a @ matrix` for `rows` rows. The bits of a row do not depend on the other rows.
    ///
    /// # Safety
    /// `a` has dense rows of `depth` elements, `out` dense rows of [`Panels::columns`] elements.
    pub unsafe fn multiply(&self, rows: usize, a: *const T, out: *mut T) {
        for start in (0..self.depth.max(1)).step_by(DEPTH) {
            let k = DEPTH.min(self.depth - start);
            self.each(|first, loops| {
                let panel = self.packed.as_ptr().wrapping_add(first * self.depth + start * loops.columns);
                let together = rows - rows % ROWS;
                let starts = (0..together).step_by(ROWS).map(|row| (row, loops.rows));
                for (row, run) in starts.chain((together..rows).map(|row| (row, loops.row))) {
                    // SAFETY: parts of the caller's rows.
                    unsafe {
                        let (a, out) = (a.add(row * self.depth + start), out.add(row * self.columns + first));
                        run(k, a, self.depth, panel, out, self.columns, start > 0);
                    }
                }
            });
        }
    }

    /// Length of a row of results: the columns, and the padding of the last panel.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sizes_and_both_orders() {
        for (rows, depth, columns) in
            [(1, 1, 1), (4, 3, 16), (5, 7, 17), (9, 1100, 150), (3, 128, 64), (2, 0, 5)]
        {
            let number = |i: usize| (i * 7 % 13) as f32 - 6.0;
            let a: Vec<f32> = (0..rows * depth).map(number).collect();
            let b: Vec<f32> = (0..depth * columns).map(|i| number(i + 3)).collect();
            for steps in [[columns, 1], [1, depth]] {
                // SAFETY: the matrix has these elements.
                let panels = unsafe { Panels::<f32>::new(depth, columns, b.as_ptr(), steps) };
                let panels = panels.expect("little memory");
                let mut out = vec![0.0; rows * panels.columns()];
                // SAFETY: the rows have that length.
                unsafe { panels.multiply(rows, a.as_ptr(), out.as_mut_ptr()) };
                for i in 0..rows {
                    for j in 0..columns {
                        let expected: f32 =
                            (0..depth).map(|p| a[i * depth + p] * b[p * steps[0] + j * steps[1]]).sum();
                        assert_eq!(
                            out[i * panels.columns() + j],
                            expected,
                            "{rows} {depth} {columns} {i} {j}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_others() {
        let (rows, depth, columns) = (6, 33, 90);
        let a: Vec<f64> = (0..rows * depth).map(|i| (i as f64).sin()).collect();
        let b: Vec<f64> = (0..depth * columns).map(|i| (i as f64).cos()).collect();
        // SAFETY: the matrix has these elements.
        let panels =
            unsafe { Panels::<f64>::new(depth, columns, b.as_ptr(), [columns, 1]) }.expect("little memory");
        let width = panels.columns();
        let (mut all, mut one) = (vec![0.0; rows * width], vec![0.0; width]);
        // SAFETY: the rows have that length.
        unsafe {
            panels.multiply(rows, a.as_ptr(), all.as_mut_ptr());
            panels.multiply(1, a.as_ptr().add(2 * depth), one.as_mut_ptr());
        }
        assert_eq!(all[2 * width..3 * width], one);
    }
}
