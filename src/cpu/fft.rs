//! Discrete Fourier transforms of any length: by the length's factors, or as a convolution where they are large. Several rows are
//! transformed side by side, in the lanes of registers.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::par;
use super::simd::simd_fn;
use crate::base::{Result, Strided, try_alloc};
use std::f64::consts::TAU;

/// A complex number of full width, as it lies in memory.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct C {
    re: f64,
    im: f64,
}

impl C {
    fn turn(angle: f64) -> C {
        let (im, re) = angle.sin_cos();
        C { re, im }
    }
}

/// What is transformed: a number, or one of each of several rows. (All of it must be inlined into the loops of its level.)
trait Value: Copy + Default {
    fn times(self, by: C) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn scaled(self, by: f64) -> Self;
    fn conj(self) -> Self;
    /// Times -i.
    fn turned(self) -> Self;
}

impl Value for C {
    #[inline(always)]
    fn times(self, by: C) -> C {
        C { re: self.re * by.re - self.im * by.im, im: self.re * by.im + self.im * by.re }
    }
    #[inline(always)]
    fn plus(self, other: C) -> C {
        C { re: self.re + other.re, im: self.im + other.im }
    }
    #[inline(always)]
    fn minus(self, other: C) -> C {
        C { re: self.re - other.re, im: self.im - other.im }
    }
    #[inline(always)]
    fn scaled(self, by: f64) -> C {
        C { re: self.re * by, im: self.im * by }
    }
    #[inline(always)]
    fn conj(self) -> C {
        C { re: self.re, im: -self.im }
    }
    #[inline(always)]
    fn turned(self) -> C {
        C { re: self.im, im: -self.re }
    }
}

const LANES: usize = 8;
/// Fewer rows, or longer ones, are transformed one by one.
const FEW: usize = 3;
const LONG: usize = 1 << 16;

/// An element of each of several rows.
#[derive(Clone, Copy, Default)]
struct Lanes {
    re: [f64; LANES],
    im: [f64; LANES],
}

/// Sets each lane of a new value.
macro_rules! lanes {
    (|$l:ident| $re:expr, $im:expr) => {{
        let mut to = Lanes::default();
        for $l in 0..LANES {
            to.re[$l] = $re;
            to.im[$l] = $im;
        }
        to
    }};
}

impl Value for Lanes {
    #[inline(always)]
    fn times(self, by: C) -> Lanes {
        lanes!(|l| self.re[l] * by.re - self.im[l] * by.im, self.re[l] * by.im + self.im[l] * by.re)
    }
    #[inline(always)]
    fn plus(self, other: Lanes) -> Lanes {
        lanes!(|l| self.re[l] + other.re[l], self.im[l] + other.im[l])
    }
    #[inline(always)]
    fn minus(self, other: Lanes) -> Lanes {
        lanes!(|l| self.re[l] - other.re[l], self.im[l] - other.im[l])
    }
    #[inline(always)]
    fn scaled(self, by: f64) -> Lanes {
        lanes!(|l| self.re[l] * by, self.im[l] * by)
    }
    #[inline(always)]
    fn conj(self) -> Lanes {
        lanes!(|l| self.re[l], -self.im[l])
    }
    #[inline(always)]
    fn turned(self) -> Lanes {
        lanes!(|l| self.im[l], -self.re[l])
    }
}

/// Larger prime factors are done as convolutions.
const LARGE: usize = 61;

/// What the transforms of one length share.
struct Plan {
    n: usize,
    factors: Vec<usize>,
    /// exp(-τ i k / n)
    roots: Vec<C>,
    convolution: Option<Box<Convolution>>,
}

/// A transform of a length with large factors as a convolution with a chirp.
struct Convolution {
    inner: Plan,
    chirp: Vec<C>,
    kernel: Vec<C>,
}

fn factors_of(mut n: usize) -> Vec<usize> {
    let mut found = Vec::new();
    for p in [4, 2, 3, 5] {
        while n.is_multiple_of(p) && n > 1 {
            found.push(p);
            n /= p;
        }
    }
    let mut p = 7;
    while p * p <= n {
        while n.is_multiple_of(p) {
            found.push(p);
            n /= p;
        }
        p += 2;
    }
    if n > 1 {
        found.push(n);
    }
    found
}

impl Plan {
    fn of(n: usize) -> Result<Plan> {
        let factors = factors_of(n);
        if factors.iter().all(|&p| p <= LARGE) {
            let roots = try_alloc::all((0..n).map(|k| C::turn(-TAU * k as f64 / n as f64)))?;
            return Ok(Plan { n, factors, roots, convolution: None });
        }
        let inner = Plan::of((2 * n - 1).next_power_of_two())?;
        // k² modulo 2n, so that angles stay small and exact.
        let angle = |k| -TAU * 0.5 * ((k as u128 * k as u128) % (2 * n as u128)) as f64 / n as f64;
        let chirp = try_alloc::all((0..n).map(|k| C::turn(angle(k))))?;
        let mut spread = try_alloc::filled(C::default(), inner.n)?;
        for (k, c) in chirp.iter().enumerate() {
            spread[k] = c.conj();
            spread[(inner.n - k) % inner.n] = c.conj();
        }
        let mut kernel = try_alloc::filled(C::default(), inner.n)?;
        inner.run(&spread, &mut kernel)?;
        let convolution = Some(Box::new(Convolution { inner, chirp, kernel }));
        Ok(Plan { n, factors, roots: Vec::new(), convolution })
    }

    fn run<V: Value>(&self, input: &[V], out: &mut [V]) -> Result<()> {
        let Some(by) = &self.convolution else {
            self.step(input, 1, out, 0);
            return Ok(());
        };
        let size = by.inner.n;
        let (mut wide, mut turned) =
            (try_alloc::filled(V::default(), size)?, try_alloc::filled(V::default(), size)?);
        for k in 0..self.n {
            wide[k] = input[k].times(by.chirp[k]);
        }
        by.inner.run(&wide, &mut turned)?;
        // The inverse transform is the transform of conjugates.
        turned.iter_mut().zip(&by.kernel).for_each(|(x, &k)| *x = x.times(k).conj());
        by.inner.run(&turned, &mut wide)?;
        for k in 0..self.n {
            out[k] = wide[k].conj().scaled(1.0 / size as f64).times(by.chirp[k]);
        }
        Ok(())
    }

    /// The transform of every `stride`-th element, which has the factors from `level` on.
    fn step<V: Value>(&self, input: &[V], stride: usize, out: &mut [V], level: usize) {
        let Some(&p) = self.factors.get(level) else {
            out[0] = input[0];
            return;
        };
        let m = out.len() / p;
        if m == 1 {
            out.iter_mut().enumerate().for_each(|(r, to)| *to = input[r * stride]);
        } else {
            for (r, part) in out.chunks_exact_mut(m).enumerate() {
                self.step(&input[r * stride..], stride * p, part, level + 1);
            }
        }
        let join = match p {
            2 => join::<V, 2>,
            3 => join::<V, 3>,
            4 => join::<V, 4>,
            5 => join::<V, 5>,
            _ => join::<V, LARGE>,
        };
        // SAFETY: the parts are equal, and the roots are those of a multiple of their length.
        unsafe { join(p, out, &self.roots) }
    }
}

simd_fn! {
    /// Makes one transform of those of `p` parts, where `P` is `p` or, for any other, the largest there is.
    ///
    /// # Safety
    /// `out` has `p` parts of one length, and `roots` those of a multiple of it.
    unsafe fn join<V; P>(p: usize, out: &mut [V], roots: &[C]) where [V: Value] {
        let m = out.len() / p;
        // The angle of one step, in parts of the whole length.
        let (unit, apart) = (roots.len() / out.len(), roots.len() / p);
        let (out, roots) = (out.as_mut_ptr(), roots.as_ptr());
        for k in 0..m {
            let mut terms = [V::default(); P];
            let count = if P == LARGE { p } else { P };
            for r in 0..count {
                let term = *out.add(r * m + k);
                terms[r] = if r * k == 0 { term } else { term.times(*roots.add(r * k * unit)) };
            }
            if P == 2 {
                *out.add(k) = terms[0].plus(terms[1]);
                *out.add(m + k) = terms[0].minus(terms[1]);
            } else if P == 4 {
                let (even, odd) = (terms[0].plus(terms[2]), terms[0].minus(terms[2]));
                let (sum, turned) = (terms[1].plus(terms[3]), terms[1].minus(terms[3]).turned());
                *out.add(k) = even.plus(sum);
                *out.add(m + k) = odd.plus(turned);
                *out.add(2 * m + k) = even.minus(sum);
                *out.add(3 * m + k) = odd.minus(turned);
            } else {
                // Terms r and p - r have roots that are conjugate: their sum and their difference, times -i, have real factors.
                let half = count / 2;
                let mut all = terms[0];
                for r in 1..=half {
                    let (a, b) = (terms[r], terms[count - r]);
                    (terms[r], terms[count - r]) = (a.plus(b), a.minus(b).turned());
                    all = all.plus(terms[r]);
                }
                *out.add(k) = all;
                for q in 1..=half {
                    let (mut even, mut odd) = (terms[0], V::default());
                    for r in 1..=half {
                        let root = *roots.add(r * q % p * apart);
                        even = even.plus(terms[r].scaled(root.re));
                        odd = odd.minus(terms[count - r].scaled(root.im));
                    }
                    *out.add(q * m + k) = even.plus(odd);
                    *out.add((count - q) * m + k) = even.minus(odd);
                }
            }
        }
    }
}

simd_fn! {
    /// Reads rows side by side, their imaginary parts times `sign`. What has no row stays as it is.
    ///
    /// # Safety
    /// There are so many rows of `n` elements, and as many in `to`.
    unsafe fn lanes_in(n: usize, rows: usize, from: *const C, sign: f64, to: *mut Lanes) {
        for k in 0..n {
            let to = &mut *to.add(k);
            for l in 0..rows {
                let C { re, im } = *from.add(l * n + k);
                (to.re[l % LANES], to.im[l % LANES]) = (re, im * sign);
            }
        }
    }
}

simd_fn! {
    /// Writes rows that lie side by side, their parts times these.
    ///
    /// # Safety
    /// As [`lanes_in`].
    unsafe fn lanes_out(n: usize, rows: usize, from: *const Lanes, by: [f64; 2], to: *mut C) {
        for k in 0..n {
            let from = &*from.add(k);
            for l in 0..rows {
                *to.add(l * n + k) = C { re: from.re[l % LANES] * by[0], im: from.im[l % LANES] * by[1] };
            }
        }
    }
}

/// Transforms the rows of complex numbers in their place, and scales them.
///
/// # Safety
/// The view is dense, alive, of complex128, and used by nobody else.
pub unsafe fn transform(x: Strided, inverse: bool, scale: f64) -> Result<()> {
    let n = x.shape.last().copied().unwrap_or(1);
    let rows: usize = x.shape[..x.shape.len().saturating_sub(1)].iter().product();
    if n == 0 || rows == 0 {
        return Ok(());
    }
    let plan = Plan::of(n)?;
    let start = par::Shared::new(x.ptr.cast::<C>().cast_const());
    let work = n * (usize::BITS - n.leading_zeros()) as usize * 4;
    let sign = if inverse { -1.0 } else { 1.0 };
    if rows < FEW || n > LONG {
        return par::try_ranges(rows, (par::GRAIN / work.max(1)).max(1), |range| {
            let (mut own, mut made) =
                (try_alloc::filled(C::default(), n)?, try_alloc::filled(C::default(), n)?);
            for at in range {
                // SAFETY: rows do not meet, and the rest is the caller's promise.
                let row = unsafe { std::slice::from_raw_parts_mut(start.get().add(at * n), n) };
                for (to, &from) in own.iter_mut().zip(&*row) {
                    *to = C { re: from.re, im: from.im * sign };
                }
                plan.run(&own, &mut made)?;
                for (to, &from) in row.iter_mut().zip(&made) {
                    *to = C { re: from.re * scale, im: from.im * sign * scale };
                }
            }
            Ok(())
        });
    }
    par::try_ranges(rows.div_ceil(LANES), (par::GRAIN / (work * LANES).max(1)).max(1), |range| {
        let (mut own, mut made) =
            (try_alloc::filled(Lanes::default(), n)?, try_alloc::filled(Lanes::default(), n)?);
        for first in range.map(|i| i * LANES) {
            let count = LANES.min(rows - first);
            // SAFETY: as above, of these rows.
            unsafe {
                let some = start.get().add(first * n);
                lanes_in(n, count, some, sign, own.as_mut_ptr());
                plan.run(&own, &mut made)?;
                lanes_out(n, count, made.as_ptr(), [scale, sign * scale], some);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::DType;

    #[test]
    fn all_lengths_are_the_sum() -> Result<()> {
        for n in (1..40).chain([64, 67, 120, 134, 211]) {
            let x: Vec<C> = (0..n).map(|k| C { re: (k * k % 7) as f64, im: (k % 3) as f64 - 1.0 }).collect();
            let mut made = vec![C::default(); n];
            Plan::of(n)?.run(&x, &mut made)?;
            for (q, found) in made.iter().enumerate() {
                let sum = (0..n).fold(C::default(), |sum, k| {
                    sum.plus(x[k].times(C::turn(-TAU * ((q * k) % n) as f64 / n as f64)))
                });
                assert!(found.minus(sum).re.abs() + found.minus(sum).im.abs() < 1e-10 * n as f64, "{n} {q}");
            }
        }
        Ok(())
    }

    #[test]
    fn rows_side_by_side_are_those_alone() -> Result<()> {
        for (rows, n) in [(1, 12), (3, 1), (3, 60), (8, 16), (13, 7), (17, 67)] {
            let of = |i: usize| C { re: (i * i % 11) as f64, im: (i % 5) as f64 - 2.0 };
            for inverse in [false, true] {
                let all: Vec<C> = (0..rows * n).map(of).collect();
                let apart: Vec<C> = all.clone();
                let run = |from: &[C], shape: &[usize]| {
                    let strides = crate::base::contiguous_strides(shape);
                    let ptr = from.as_ptr().cast_mut().cast();
                    // SAFETY: the list is as long, and is this test's alone.
                    unsafe {
                        transform(Strided { ptr, dtype: DType::C128, shape, strides: &strides }, inverse, 0.5)
                    }
                };
                run(&all, &[rows, n])?;
                for row in apart.chunks_exact(n) {
                    run(row, &[1, n])?;
                }
                let bits =
                    |list: &[C]| list.iter().map(|c| [c.re, c.im].map(f64::to_bits)).collect::<Vec<_>>();
                assert_eq!(bits(&all), bits(&apart), "{rows} {n}");
            }
        }
        Ok(())
    }
}
