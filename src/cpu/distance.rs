//! Distances between all pairs of vectors, for any norm, and the gradient for the first vector of each pair.

use super::float::{Float, by_float};
use super::lanes;
use super::par;
use super::simd::simd_fn;
use crate::base::{Result, Strided};

/// Batch size, number of vectors on both sides, and their length.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    pub batch: usize,
    pub first: usize,
    pub second: usize,
    pub length: usize,
}

/// The sum of `n` terms. Eight partial sums are faster and more exact than one.
#[inline(always)]
fn total<T: Float>(n: usize, term: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::ZERO; 8];
    lanes::add_terms(&mut lanes, 0..n, term);
    lanes::add_eight(&lanes)
}

simd_fn! {
    unsafe fn distance<T: Float>(n: usize, a: *const T, b: *const T, p: f64) -> T {
        let gap = |i: usize| (*a.add(i) - *b.add(i)).abs();
        let power = T::from_f64(p);
        if p == 2.0 {
            total(n, |i| gap(i) * gap(i)).sqrt()
        } else if p == 1.0 {
            total(n, gap)
        } else if p == 0.0 {
            total(n, |i| if gap(i) == T::ZERO { T::ZERO } else { T::ONE })
        } else if p.is_infinite() {
            (0..n).map(gap).fold(T::ZERO, |top: T, d| if d > top || d.is_nan() { d } else { top })
        } else {
            T::from_f64(total(n, |i| gap(i).powf(power)).to_f64().powf(1.0 / p))
        }
    }
}

unsafe fn forward<T: Float>(pairs: Pairs, out: *mut u8, [x, y]: [*const u8; 2], p: f64) -> Result<()> {
    let Pairs { first, second, length, .. } = pairs;
    let to = par::Shared::new(out.cast::<T>().cast_const());
    let (x, y) = (par::Shared::new(x.cast::<T>()), par::Shared::new(y.cast::<T>()));
    let row = |i: usize| {
        let (batch, y, to) = (i / first, y.get(), to.get());
        // SAFETY: the tensors are dense and have the sizes in `pairs`; this row of the result belongs to this
        // task alone.
        unsafe {
            for j in 0..second {
                let (a, b) = (x.get().add(i * length), y.add((batch * second + j) * length));
                *to.add(i * second + j) = distance(length, a, b, p);
            }
        }
    };
    let grain = (par::GRAIN / (second * length).max(1)).max(1);
    par::ranges(pairs.batch * first, grain, |range| range.for_each(row));
    Ok(())
}

/// Adds a term of each gap between `a` and `b`.
#[inline(always)]
fn add_gaps<T: Float>(to: &mut [T], a: &[T], b: &[T], term: impl Fn(T) -> T) {
    let (a, b) = (&a[..to.len()], &b[..to.len()]);
    for k in 0..to.len() {
        to[k] += term(a[k] - b[k]);
    }
}

simd_fn! {
    /// Writes the gradient of vector `i`. `ins` are those of [`cdist_backward`].
    unsafe fn gradient_row<T: Float>(pairs: Pairs, i: usize, out: *mut T, ins: [*const T; 4], p: f64) {
        let Pairs { first, second, length, .. } = pairs;
        let [g, x, y, dist] = ins;
        let power = T::from_f64(p);
        let a = std::slice::from_raw_parts(x.add(i * length), length);
        let to = std::slice::from_raw_parts_mut(out.add(i * length), length);
        to.fill(T::ZERO);
        for j in 0..second {
            let b = std::slice::from_raw_parts(y.add((i / first * second + j) * length), length);
            let (g, dist) = (*g.add(i * second + j), *dist.add(i * second + j));
            // The gradient is zero if the distance is 0, and for p = 0, which counts elements that differ.
            if p == 0.0 || g == T::ZERO || (dist == T::ZERO && p != 1.0) {
                continue;
            }
            let sign = |d: T| if d > T::ZERO { T::ONE } else if d < T::ZERO { -T::ONE } else { T::ZERO };
            if p == 2.0 {
                let g = g / dist;
                add_gaps(to, a, b, |d| g * d);
            } else if p == 1.0 {
                add_gaps(to, a, b, |d| g * sign(d));
            } else if p.is_infinite() {
                add_gaps(to, a, b, |d| if d.abs() == dist { g * sign(d) } else { T::ZERO });
            } else {
                let g = g / dist.powf(power - T::ONE);
                add_gaps(to, a, b, |d| {
                    // Computed for every gap, because branches on signs are mispredicted.
                    let slope = g * T::ONE.copysign(d) * d.abs().powf(power - T::ONE);
                    if d == T::ZERO { T::ZERO } else { slope }
                });
            }
        }
    }
}

unsafe fn backward<T: Float>(pairs: Pairs, out: *mut u8, ins: [*const u8; 4], p: f64) -> Result<()> {
    let to = par::Shared::new(out.cast::<T>().cast_const());
    let ins = ins.map(|from| par::Shared::new(from.cast::<T>()));
    let grain = (par::GRAIN / (pairs.second * pairs.length).max(1)).max(1);
    par::ranges(pairs.batch * pairs.first, grain, |range| {
        // SAFETY: as above.
        range.for_each(|i| unsafe {
            gradient_row(pairs, i, to.get(), ins.each_ref().map(|from| from.get().cast_const()), p);
        });
    });
    Ok(())
}

/// `out[b, i, j]` is the distance of `x[b, i]` and `y[b, j]`.
///
/// # Safety
/// The views are dense, live, of one dtype and have the sizes in `pairs`; `out` overlaps nothing.
pub unsafe fn cdist(pairs: Pairs, out: Strided, x: Strided, y: Strided, p: f64) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("cdist", out.dtype, T => forward::<T>(pairs, out.ptr, [x.ptr, y.ptr], p)) }
}

/// The gradient for `x`. `ins` are the gradient of the distances, `x`, `y` and the distances.
///
/// # Safety
/// See [`cdist`].
pub unsafe fn cdist_backward(pairs: Pairs, out: Strided, ins: [Strided; 4], p: f64) -> Result<()> {
    let from = ins.map(|x| x.ptr.cast_const());
    // SAFETY: the caller's contract.
    unsafe { by_float!("cdist_backward", out.dtype, T => backward::<T>(pairs, out.ptr, from, p)) }
}
