//! Rotations of neighbouring columns, which QR steps make by the thousand. They are collected, and then applied to a
//! few rows at a time, which stay in the first cache meanwhile.

use super::number::Double;
use crate::base::{Result, try_alloc};
use crate::cpu::element::scratch;
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::simd_fn;

/// Number of rotations that are collected.
const GATHERED: usize = 8192;
/// Number of rows of real numbers that are rotated together.
const ROWS: usize = 16;
/// The same, for matrices with at most this many rows.
const FEW_ROWS: usize = 8;

/// Replaces columns `x` and `y`, which are number `at` and the next, by `c x + s y` and `c y - s x`.
#[derive(Clone, Copy)]
struct Rotation {
    at: usize,
    c: f64,
    s: f64,
}

/// A matrix whose columns are rotated; without one, nothing is collected.
pub struct Rotations<'a, T> {
    matrix: Option<&'a mut [T]>,
    rows: usize,
    list: Vec<Rotation>,
}

impl<'a, T: Double> Rotations<'a, T> {
    /// Rotations of the first `columns` columns of a matrix.
    pub fn of(matrix: Option<&'a mut [T]>, rows: usize, columns: usize) -> Result<Rotations<'a, T>> {
        let most = if matrix.is_some() { GATHERED.min(columns.saturating_mul(columns)) } else { 0 };
        Ok(Rotations { matrix, rows, list: try_alloc::with_capacity(most)? })
    }

    pub fn push(&mut self, at: usize, c: f64, s: f64) -> Result<()> {
        if self.matrix.is_none() {
            return Ok(());
        }
        if self.list.len() == self.list.capacity() {
            self.flush()?;
        }
        self.list.push(Rotation { at, c, s });
        Ok(())
    }

    /// Applies the rotations that are left.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let Some(matrix) = self.matrix.as_deref_mut() else { return Ok(()) };
        let lead = self.rows * if T::COMPLEX { 2 } else { 1 };
        if lead <= FEW_ROWS {
            rotate_all::<FEW_ROWS>(T::parts(matrix), lead, &self.list)?;
        } else {
            rotate_all::<ROWS>(T::parts(matrix), lead, &self.list)?;
        }
        self.list.clear();
        Ok(())
    }
}

/// Rotates columns with `lead` rows, `N` rows at a time.
fn rotate_all<const N: usize>(matrix: &mut [f64], lead: usize, list: &[Rotation]) -> Result<()> {
    let (Some(first), Some(last)) = (list.iter().map(|t| t.at).min(), list.iter().map(|t| t.at + 1).max())
    else {
        return Ok(());
    };
    assert!(matrix.len() >= (last + 1) * lead);
    let columns = last + 1 - first;
    let whole = Shared::new(matrix.as_ptr());
    let grain = (par::GRAIN / (list.len() * N)).max(1);
    par::try_ranges(lead.div_ceil(N), grain, |range| {
        let mut copy = scratch(columns, [0.0; N])?;
        for part in range {
            let (row, rows) = (part * N, N.min(lead - part * N));
            // SAFETY: the element is inside the matrix, and no other range has these rows.
            let place = |j: usize| unsafe { whole.get().add((first + j) * lead + row) };
            for (j, to) in copy.iter_mut().enumerate() {
                // SAFETY: as above, and there is room for `N` rows.
                unsafe { place(j).copy_to_nonoverlapping(to.as_mut_ptr(), rows) };
            }
            // SAFETY: the copy has all columns.
            unsafe { rotate_few::<f64, N>(list.len(), list.as_ptr(), first, copy.as_mut_ptr().cast()) };
            for (j, from) in copy.iter().enumerate() {
                // SAFETY: as above.
                unsafe { place(j).copy_from_nonoverlapping(from.as_ptr(), rows) };
            }
        }
        Ok(())
    })
}

simd_fn! {
    /// Rotates the columns of `x`, each `N` numbers long; its first column is number `first` of the matrix.
    ///
    /// # Safety
    /// There are `count` rotations, and `x` has all columns that they name.
    unsafe fn rotate_few<T; N>(count: usize, list: *const Rotation, first: usize, x: *mut T) where [T: Double] {
        let column = |at: usize| x.add((at - first) * N).cast::<[T; N]>();
        let mut i = 0;
        while i < count {
            // Keep the column that two rotations in a row share in registers.
            let mut at = (*list.add(i)).at;
            let leftwards = i + 1 < count && (*list.add(i + 1)).at + 1 == at;
            let mut shared = column(at + usize::from(leftwards)).read_unaligned();
            loop {
                let Rotation { c, s, .. } = *list.add(i);
                let (c, s) = (T::real(c), T::real(s));
                if leftwards {
                    let mut left = column(at).read_unaligned();
                    for l in 0..N {
                        (shared[l], left[l]) = (c * left[l] + s * shared[l], c * shared[l] - s * left[l]);
                    }
                    column(at + 1).write_unaligned(left);
                } else {
                    let mut right = column(at + 1).read_unaligned();
                    for l in 0..N {
                        (right[l], shared[l]) = (c * shared[l] + s * right[l], c * right[l] - s * shared[l]);
                    }
                    column(at).write_unaligned(right);
                }
                i += 1;
                let next = if leftwards { at.wrapping_sub(1) } else { at + 1 };
                if i == count || (*list.add(i)).at != next {
                    break;
                }
                at = next;
            }
            column(at + usize::from(!leftwards)).write_unaligned(shared);
        }
    }
}

/// The rotation (c, s) that turns (f, g) into (r, 0), and r.
#[inline]
pub fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, g.signum(), g.abs());
    }
    let square = f * f + g * g;
    // Squares that overflow, or lose digits because they nearly underflow, need more care.
    let size = if square > 1e-290 && square < 1e290 { square.sqrt() } else { f.hypot(g) };
    let r = size.copysign(f);
    (f / r, g / r, r)
}
