//! Reduces matrices to bidiagonal form by reflectors from both sides, and finds the singular values by QR steps (Golub
//! and Kahan; steps without a shift by Demmel and Kahan).

use super::blocks::{Block, Factor, add_product};
use super::columns::{add_columns, adjoint_product, subtract_columns};
use super::number::Double;
use super::qr::reflector;
use super::rotations::{Rotations, rotation};
use crate::base::Result;
use crate::cpu::element::scratch;

/// Number of columns and rows that are reflected before the reflectors are applied to the rest of the matrix.
const PANEL: usize = 32;
/// Maximum number of steps per value, which always suffices, except for NaN.
const STEPS: usize = 30;

/// The diagonal, the one above it, and the factors of the reflectors from the left and from the right.
pub struct Bidiagonal<T> {
    pub diagonal: Vec<f64>,
    pub above: Vec<f64>,
    pub left: Vec<T>,
    pub right: Vec<T>,
}

/// The update that a panel subtracts from the rest of the matrix: `v yᴴ + x uᴴ`. The columns of `v` are the reflectors
/// from the left, which are stored in the matrix itself; those of `u` are the ones from the right.
struct Panel<T> {
    x: Vec<T>,
    y: Vec<T>,
    u: Vec<T>,
    factors: [T; PANEL],
}

/// Reduces an `m` by `n` matrix with `m >= n` to bidiagonal form. The reflectors from the left stay in the matrix;
/// those from the right become the columns of `v` behind its first.
pub fn reduce<T: Double>(a: &mut [T], m: usize, n: usize, mut v: Option<&mut [T]>) -> Result<Bidiagonal<T>> {
    let mut made = Bidiagonal {
        diagonal: scratch(n, 0.0)?,
        above: scratch(n.saturating_sub(1), 0.0)?,
        left: scratch(n, T::zero())?,
        right: scratch(n.saturating_sub(1), T::zero())?,
    };
    let width = PANEL.min(n);
    let mut panel = Panel {
        x: scratch(m * width, T::zero())?,
        y: scratch(n * width, T::zero())?,
        u: scratch(n * width, T::zero())?,
        factors: [T::zero(); PANEL],
    };
    for first in (0..n).step_by(PANEL) {
        let last = n.min(first + PANEL);
        for i in first..last {
            panel.column(a, [m, n], [first, i], &mut made);
            if i + 1 < n {
                panel.row(a, [m, n], [first, i], &mut made);
                if let Some(v) = v.as_deref_mut() {
                    let from = (i - first) * n;
                    v[(i + 1) * n..(i + 2) * n].copy_from_slice(&panel.u[from..from + n]);
                }
            }
        }
        if last < n {
            let width = last - first;
            let (of_x, of_y) =
                (Block::new(m, width).part(last..m, 0..width), Block::new(n, width).part(last..n, 0..width));
            let (rest, own) =
                (Block::new(m, n).part(last..m, last..n), Block::new(m, n).part(last..m, first..last));
            add_product(a, rest, -1.0, Factor::own(own), Factor::of(&panel.y, of_y).adjoint())?;
            add_product(a, rest, -1.0, Factor::of(&panel.x, of_x), Factor::of(&panel.u, of_y).adjoint())?;
        }
    }
    Ok(made)
}

impl<T: Double> Panel<T> {
    /// Reflects column `i`, and computes the update of the columns behind it.
    fn column(&mut self, a: &mut [T], [m, n]: [usize; 2], [first, i]: [usize; 2], made: &mut Bidiagonal<T>) {
        let (s, Panel { x, y, u, factors }) = (i - first, self);
        let (before, rest) = a.split_at_mut(i * m);
        let (column, behind) = rest.split_at_mut(m);
        let (column, v) = (&mut column[i..], &before[(first * m + i).min(before.len())..]);
        // First apply the panel's updates so far to this column.
        let factors = &mut factors[..s];
        (0..s).for_each(|p| factors[p] = y[p * n + i].conj());
        subtract_columns(column, v, m, factors);
        (0..s).for_each(|p| factors[p] = u[p * n + i].conj());
        subtract_columns(column, &x[i..], m, factors);
        let factor = reflector(column);
        made.left[i] = factor;
        made.diagonal[i] = column[0].re();
        column[0] = T::one();
        let (earlier, y) = y.split_at_mut(s * n);
        let y = &mut y[i + 1..n];
        if y.is_empty() {
            return;
        }
        adjoint_product(y, &behind[i..], m, column);
        adjoint_product(factors, v, m, column);
        subtract_columns(y, &earlier[(i + 1).min(earlier.len())..], n, factors);
        adjoint_product(factors, &x[i..], m, column);
        subtract_columns(y, &u[i + 1..], n, factors);
        y.iter_mut().for_each(|y| *y = *y * factor);
    }

    /// Reflects row `i` right of the diagonal, and computes the update of the rows below it.
    fn row(&mut self, a: &mut [T], [m, n]: [usize; 2], [first, i]: [usize; 2], made: &mut Bidiagonal<T>) {
        let (s, Panel { x, y, u, factors }) = (i - first, self);
        let (earlier, u) = u.split_at_mut(s * n);
        u[..i + 1].fill(T::zero());
        let u = &mut u[i + 1..n];
        for (j, u) in u.iter_mut().enumerate() {
            *u = a[(i + 1 + j) * m + i].conj();
        }
        let (y, earlier) = (&y[i + 1..], &earlier[(i + 1).min(earlier.len())..]);
        (0..=s).for_each(|p| factors[p] = a[(first + p) * m + i].conj());
        subtract_columns(u, y, n, &mut factors[..=s]);
        (0..s).for_each(|p| factors[p] = x[p * m + i].conj());
        subtract_columns(u, earlier, n, &mut factors[..s]);
        let factor = reflector(u);
        made.right[i] = factor;
        made.above[i] = u[0].re();
        u[0] = T::one();
        let (before, x) = x.split_at_mut(s * m);
        let x = &mut x[i + 1..m];
        if x.is_empty() {
            return;
        }
        x.fill(T::zero());
        add_columns(x, &a[(i + 1) * m + i + 1..], m, u);
        adjoint_product(&mut factors[..=s], y, n, u);
        subtract_columns(x, &a[first * m + i + 1..], m, &mut factors[..=s]);
        adjoint_product(&mut factors[..s], earlier, n, u);
        subtract_columns(x, &before[(i + 1).min(before.len())..], m, &mut factors[..s]);
        x.iter_mut().for_each(|x| *x = *x * factor);
    }
}

/// A part of the bidiagonal matrix that is separate from the rest, walked from its larger end. If it is walked upwards,
/// it is read as its transpose with rows and columns reversed.
#[derive(Clone, Copy)]
struct Walk {
    start: usize,
    end: usize,
    upwards: bool,
}

impl Walk {
    #[inline]
    fn on(self, i: usize) -> usize {
        if self.upwards { self.end - i } else { self.start + i }
    }

    /// The index of the element between the elements `i` and `i + 1` of the diagonal.
    #[inline]
    fn above(self, i: usize) -> usize {
        if self.upwards { self.end - i - 1 } else { self.start + i }
    }

    #[inline]
    fn push<T: Double>(
        self,
        i: usize,
        of_column: [f64; 2],
        of_row: [f64; 2],
        rotations: &mut [Rotations<T>; 2],
    ) -> Result<()> {
        let [left, right] = rotations;
        let (at, [first, second], sign) = if self.upwards {
            (self.end - i - 1, [right, left], -1.0)
        } else {
            (self.start + i, [left, right], 1.0)
        };
        first.push(at, of_row[0], sign * of_row[1])?;
        second.push(at, of_column[0], sign * of_column[1])
    }

    /// The shift: the smaller singular value of the last two rows and columns.
    fn shift(self, d: &[f64], e: &[f64]) -> f64 {
        let last = self.end - self.start;
        let (f, g, h) = (d[self.on(last - 1)].abs(), e[self.above(last - 1)].abs(), d[self.on(last)].abs());
        let largest = 0.5 * ((f + h).hypot(g) + (f - h).hypot(g));
        if largest == 0.0 { 0.0 } else { f.min(h) * (f.max(h) / largest) }
    }

    /// A step without a shift, which finds even small values to full relative precision.
    fn plain<T: Double>(self, d: &mut [f64], e: &mut [f64], rotations: &mut [Rotations<T>; 2]) -> Result<()> {
        let last = self.end - self.start;
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in 0..last {
            let (at, next) = (self.on(i), self.on(i + 1));
            let (c_new, s, r) = rotation(d[at] * c, e[self.above(i)]);
            if i > 0 {
                e[self.above(i - 1)] = old_s * r;
            }
            let (c_row, s_row, on) = rotation(old_c * r, d[next] * s);
            (d[at], c, old_c, old_s) = (on, c_new, c_row, s_row);
            self.push(i, [c_new, s], [c_row, s_row], rotations)?;
        }
        let h = d[self.on(last)] * c;
        (d[self.on(last)], e[self.above(last - 1)]) = (h * old_c, h * old_s);
        Ok(())
    }

    /// A step with a shift.
    fn shifted<T: Double>(
        self,
        shift: f64,
        d: &mut [f64],
        e: &mut [f64],
        rotations: &mut [Rotations<T>; 2],
    ) -> Result<()> {
        let last = self.end - self.start;
        let head = d[self.on(0)];
        let (mut f, mut g) = ((head.abs() - shift) * (1f64.copysign(head) + shift / head), e[self.above(0)]);
        for i in 0..last {
            let (at, next, above) = (self.on(i), self.on(i + 1), self.above(i));
            let (c, s, r) = rotation(f, g);
            if i > 0 {
                e[self.above(i - 1)] = r;
            }
            f = c * d[at] + s * e[above];
            e[above] = c * e[above] - s * d[at];
            (g, d[next]) = (s * d[next], c * d[next]);
            let (c_row, s_row, on) = rotation(f, g);
            d[at] = on;
            f = c_row * e[above] + s_row * d[next];
            d[next] = c_row * d[next] - s_row * e[above];
            if i + 1 < last {
                let beyond = self.above(i + 1);
                (g, e[beyond]) = (s_row * e[beyond], c_row * e[beyond]);
            }
            self.push(i, [c, s], [c_row, s_row], rotations)?;
        }
        e[self.above(last - 1)] = f;
        Ok(())
    }
}

/// Replaces `d` by the singular values of the bidiagonal matrix, of any sign and in any order, and rotates the left and
/// right vectors with them. Returns true if all were found.
pub fn diagonalize<T: Double>(
    d: &mut [f64],
    e: &mut [f64],
    rotations: &mut [Rotations<T>; 2],
) -> Result<bool> {
    let n = d.len();
    let mut steps = STEPS * n;
    let small = |d: &[f64], e: &[f64], i: usize| {
        e[i].abs() <= 0.5 * f64::EPSILON * (d[i].abs() + d[i + 1].abs()) + f64::MIN_POSITIVE
    };
    let mut end = n.saturating_sub(1);
    while end > 0 {
        if small(d, e, end - 1) {
            e[end - 1] = 0.0;
            end -= 1;
            continue;
        }
        let start = (0..end - 1).rev().find(|&i| small(d, e, i)).map_or(0, |i| i + 1);
        if start > 0 {
            e[start - 1] = 0.0;
        }
        if steps == 0 {
            return Ok(false);
        }
        steps -= 1;
        let walk = Walk { start, end, upwards: d[start].abs() < d[end].abs() };
        let (shift, head) = (walk.shift(d, e), d[walk.on(0)].abs());
        // A shift that rounding would lose only costs digits; and a zero on the diagonal moves to the end only without
        // one.
        let zero = d[start..=end].contains(&0.0);
        if zero || (shift / head).powi(2) < f64::EPSILON {
            walk.plain(d, e, rotations)?;
        } else {
            walk.shifted(shift, d, e, rotations)?;
        }
    }
    Ok(true)
}
