//! Distances between all pairs of vectors, for any norm, and the gradient for the first vector of each pair.

use super::par;
use super::simd::simd_fn;
use crate::base::{DType, Fault, Result, Strided};
use std::ops::{Add, AddAssign};

/// Batch size, number of vectors on both sides, and their length.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    pub batch: usize,
    pub first: usize,
    pub second: usize,
    pub length: usize,
}

/// Number of partial sums, which are faster and more exact than one sum.
const LANES: usize = 8;

/// The sum of `n` terms.
#[inline(always)]
fn total<T: Copy + Default + AddAssign + Add<Output = T>>(n: usize, term: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::default(); LANES];
    let whole = n - n % LANES;
    for i in (0..whole).step_by(LANES) {
        (0..LANES).for_each(|j| lanes[j] += term(i + j));
    }
    (whole..n).for_each(|i| lanes[i - whole] += term(i));
    join(&lanes)
}

/// A function that is not inlined, so that the lanes end in memory: otherwise compilers add the lanes in pairs of
/// registers.
#[inline(never)]
fn join<T: Copy + Add<Output = T>>(&[a, b, c, d, e, f, g, h]: &[T; LANES]) -> T {
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

macro_rules! kernels {
    ($($T:ident, $forward:ident, $backward:ident, $distance:ident;)*) => { $(
        simd_fn! {
            unsafe fn $distance(n: usize, a: *const $T, b: *const $T, p: f64) -> $T {
                let gap = |i: usize| (*a.add(i) - *b.add(i)).abs();
                let power = p as $T;
                if p == 2.0 {
                    total(n, |i| gap(i) * gap(i)).sqrt()
                } else if p == 1.0 {
                    total(n, gap)
                } else if p == 0.0 {
                    total(n, |i| if gap(i) == 0.0 { 0.0 } else { 1.0 })
                } else if p.is_infinite() {
                    (0..n).map(gap).fold(0.0, |top: $T, d| if d > top || d.is_nan() { d } else { top })
                } else {
                    f64::from(total(n, |i| gap(i).powf(power))).powf(1.0 / p) as $T
                }
            }
        }

        unsafe fn $forward(pairs: Pairs, out: *mut u8, [x, y]: [*const u8; 2], p: f64) {
            let Pairs { first, second, length, .. } = pairs;
            let to = par::Shared::new(out.cast::<$T>().cast_const());
            let (x, y) = (par::Shared::new(x.cast::<$T>()), par::Shared::new(y.cast::<$T>()));
            let row = |i: usize| {
                let (batch, y, to) = (i / first, y.get(), to.get());
                // SAFETY: the tensors are dense and have the sizes in `pairs`; this row of the result belongs to this
                // task alone.
                unsafe {
                    for j in 0..second {
                        let (a, b) = (x.get().add(i * length), y.add((batch * second + j) * length));
                        *to.add(i * second + j) = $distance(length, a, b, p);
                    }
                }
            };
            let grain = (par::GRAIN / (second * length).max(1)).max(1);
            par::ranges(pairs.batch * first, grain, |range| range.for_each(row));
        }

        unsafe fn $backward(pairs: Pairs, out: *mut u8, [g, x, y, dist]: [*const u8; 4], p: f64) {
            let Pairs { first, second, length, .. } = pairs;
            let to = par::Shared::new(out.cast::<$T>().cast_const());
            let [g, x, y, dist] = [g, x, y, dist].map(|from| par::Shared::new(from.cast::<$T>()));
            let power = p as $T;
            let row = |i: usize| {
                let batch = i / first;
                // SAFETY: as above.
                unsafe {
                    let a = std::slice::from_raw_parts(x.get().add(i * length), length);
                    let to = std::slice::from_raw_parts_mut(to.get().add(i * length), length);
                    to.fill(0.0);
                    for j in 0..second {
                        let b = std::slice::from_raw_parts(y.get().add((batch * second + j) * length), length);
                        let (g, dist) = (*g.get().add(i * second + j), *dist.get().add(i * second + j));
                        // The gradient is zero if the distance is 0, and for p = 0, which counts elements that differ.
                        if p == 0.0 || g == 0.0 || (dist == 0.0 && p != 1.0) {
                            continue;
                        }
                        let sign = |d: $T| if d > 0.0 { 1.0 } else if d < 0.0 { -1.0 } else { 0.0 };
                        let all = to.iter_mut().zip(a.iter().zip(b).map(|(a, b)| a - b));
                        if p == 2.0 {
                            let g = g / dist;
                            all.for_each(|(to, d)| *to += g * d);
                        } else if p == 1.0 {
                            all.for_each(|(to, d)| *to += g * sign(d));
                        } else if p.is_infinite() {
                            all.for_each(|(to, d)| *to += if d.abs() == dist { g * sign(d) } else { 0.0 });
                        } else {
                            let g = g / dist.powf(power - 1.0);
                            all.for_each(|(to, d)| {
                                *to += if d == 0.0 { 0.0 } else { g * sign(d) * d.abs().powf(power - 1.0) };
                            });
                        }
                    }
                }
            };
            let grain = (par::GRAIN / (second * length).max(1)).max(1);
            par::ranges(pairs.batch * first, grain, |range| range.for_each(row));
        }
    )* };
}
kernels! {
    f32, forward_f32, backward_f32, distance_f32;
    f64, forward_f64, backward_f64, distance_f64;
}

/// `out[b, i, j]` is the distance of `x[b, i]` and `y[b, j]`.
///
/// # Safety
/// The views are dense, live, of one dtype and have the sizes in `pairs`; `out` overlaps nothing.
pub unsafe fn cdist(pairs: Pairs, out: Strided, x: Strided, y: Strided, p: f64) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        match out.dtype {
            DType::F32 => forward_f32(pairs, out.ptr, [x.ptr, y.ptr], p),
            DType::F64 => forward_f64(pairs, out.ptr, [x.ptr, y.ptr], p),
            dtype => return Err(Fault::NoKernel { op: "cdist", dtype }.into()),
        }
    }
    Ok(())
}

/// The gradient for `x`. `ins` are the gradient of the distances, `x`, `y` and the distances.
///
/// # Safety
/// See [`cdist`].
pub unsafe fn cdist_backward(pairs: Pairs, out: Strided, ins: [Strided; 4], p: f64) -> Result<()> {
    let from = ins.map(|x| x.ptr.cast_const());
    // SAFETY: the caller's contract.
    unsafe {
        match out.dtype {
            DType::F32 => backward_f32(pairs, out.ptr, from, p),
            DType::F64 => backward_f64(pairs, out.ptr, from, p),
            dtype => return Err(Fault::NoKernel { op: "cdist_backward", dtype }.into()),
        }
    }
    Ok(())
}
