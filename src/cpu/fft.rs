//! Discrete Fourier transforms of any length: by the length's factors, or as a convolution where they are large.

use super::par;
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
    fn times(self, other: C) -> C {
        C { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
    fn plus(self, other: C) -> C {
        C { re: self.re + other.re, im: self.im + other.im }
    }
    fn minus(self, other: C) -> C {
        C { re: self.re - other.re, im: self.im - other.im }
    }
    fn scaled(self, by: f64) -> C {
        C { re: self.re * by, im: self.im * by }
    }
    fn conj(self) -> C {
        C { re: self.re, im: -self.im }
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

    fn run(&self, input: &[C], out: &mut [C]) -> Result<()> {
        let Some(by) = &self.convolution else {
            self.step(input, 1, out, 0);
            return Ok(());
        };
        let size = by.inner.n;
        let (mut wide, mut turned) =
            (try_alloc::filled(C::default(), size)?, try_alloc::filled(C::default(), size)?);
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
    fn step(&self, input: &[C], stride: usize, out: &mut [C], level: usize) {
        let Some(&p) = self.factors.get(level) else {
            out[0] = input[0];
            return;
        };
        let m = out.len() / p;
        for (r, part) in out.chunks_exact_mut(m).enumerate() {
            self.step(&input[r * stride..], stride * p, part, level + 1);
        }
        // The angle of one step, in parts of the whole length.
        let unit = self.n / out.len();
        match p {
            2 => {
                let (low, high) = out.split_at_mut(m);
                for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                    let t = b.times(self.roots[k * unit]);
                    (*a, *b) = (a.plus(t), a.minus(t));
                }
            }
            4 => {
                let (low, high) = out.split_at_mut(2 * m);
                let ((a, b), (c, d)) = (low.split_at_mut(m), high.split_at_mut(m));
                for k in 0..m {
                    let (x, y) = (a[k], b[k].times(self.roots[k * unit]));
                    let (z, w) = (c[k].times(self.roots[2 * k * unit]), d[k].times(self.roots[3 * k * unit]));
                    let (even, odd, sum, gap) = (x.plus(z), x.minus(z), y.plus(w), y.minus(w));
                    let turned = C { re: gap.im, im: -gap.re };
                    (a[k], b[k], c[k], d[k]) =
                        (even.plus(sum), odd.plus(turned), even.minus(sum), odd.minus(turned));
                }
            }
            _ => {
                let mut terms = [C::default(); LARGE];
                for k in 0..m {
                    for (r, term) in terms[..p].iter_mut().enumerate() {
                        *term = out[r * m + k].times(self.roots[r * k * unit]);
                    }
                    for q in 0..p {
                        let turn = |r: usize| self.roots[(r * q % p) * (self.n / p)];
                        out[q * m + k] = (1..p).fold(terms[0], |sum, r| sum.plus(terms[r].times(turn(r))));
                    }
                }
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
    par::try_ranges(rows, (par::GRAIN / work.max(1)).max(1), |range| {
        let (mut own, mut made) = (try_alloc::filled(C::default(), n)?, try_alloc::filled(C::default(), n)?);
        for at in range {
            // SAFETY: rows do not meet, and the rest is the caller's promise.
            let row = unsafe { std::slice::from_raw_parts_mut(start.get().add(at * n), n) };
            for (to, &from) in own.iter_mut().zip(&*row) {
                *to = if inverse { from.conj() } else { from };
            }
            plan.run(&own, &mut made)?;
            for (to, &from) in row.iter_mut().zip(&made) {
                *to = if inverse { from.conj() } else { from }.scaled(scale);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
