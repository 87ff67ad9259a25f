//! Weighted sums along one dimension, for resizing and its gradient. Each element of the result is a sum of a few
//! elements of the source, in double precision. Both are dense blocks `[outer, along, inner]`.

use super::float::{Float, by_float};
use super::par;
use super::simd::simd_fn;
use crate::base::{ResampleWeights, Result, Strided};

/// Number of neighbouring elements that are summed side by side; number of lines that are if the elements of a line are
/// neighbours.
const TOGETHER: usize = 32;
const LINES: usize = 8;

/// Sums `N` neighbouring elements, from rows of length `n`.
#[inline(always)]
unsafe fn sum_block<T: Float, const N: usize>(
    n: usize,
    to: *mut T,
    from: *const T,
    places: &[u32],
    weights: &[f64],
) {
    let mut sums = [0.0; N];
    // SAFETY: the caller's lines.
    unsafe {
        for (&place, &weight) in places.iter().zip(weights) {
            let from = &*from.add(place as usize * n).cast::<[T; N]>();
            for i in 0..N {
                sums[i] += weight * from[i].to_f64();
            }
        }
        let to = &mut *to.cast::<[T; N]>();
        for i in 0..N {
            to[i] = T::from_f64(sums[i]);
        }
    }
}

simd_fn! {
    unsafe fn sum_rows<T: Float>(n: usize, to: *mut T, from: *const T, places: &[u32], weights: &[f64]) {
        let mut i = 0;
        while i < n {
            let (to, from) = (to.add(i), from.add(i));
            i += match n - i {
                TOGETHER.. => {
                    sum_block::<T, TOGETHER>(n, to, from, places, weights);
                    TOGETHER
                }
                8.. => {
                    sum_block::<T, 8>(n, to, from, places, weights);
                    8
                }
                _ => {
                    sum_block::<T, 1>(n, to, from, places, weights);
                    1
                }
            };
        }
    }
}

/// Sums of `N` lines whose own elements are neighbours.
unsafe fn sum_lines<T: Float, const N: usize>(to: *mut T, from: *const T, taps: &ResampleWeights) {
    for (i, ends) in taps.starts.windows(2).enumerate() {
        let mut sums = [0.0; N];
        // SAFETY: the caller's lines.
        unsafe {
            for k in ends[0] as usize..ends[1] as usize {
                let (from, weight) = (from.add(taps.from[k] as usize), taps.weights[k]);
                for line in 0..N {
                    sums[line] += weight * (*from.add(line * taps.length)).to_f64();
                }
            }
            for line in 0..N {
                *to.add(line * taps.places() + i) = T::from_f64(sums[line]);
            }
        }
    }
}

unsafe fn sum_taps<T: Float>(out: *mut u8, x: *const u8, outer: usize, inner: usize, taps: &ResampleWeights) {
    let (to, from) = (par::Shared::new(out.cast::<T>().cast_const()), par::Shared::new(x.cast::<T>()));
    let (n, length) = (taps.places(), taps.length);
    let per = (n * inner + taps.from.len() * inner).max(1);
    if inner == 1 {
        let groups = outer.div_ceil(LINES);
        par::ranges(groups, (par::GRAIN / (per * LINES)).max(1), |range| {
            let mut o = range.start * LINES;
            while o < outer.min(range.end * LINES) {
                // SAFETY: the blocks have the sizes that `taps` and the counts give; these lines belong to this
                // task alone.
                unsafe {
                    let (to, from) = (to.get().add(o * n), from.get().add(o * length).cast_const());
                    if outer - o >= LINES {
                        sum_lines::<T, LINES>(to, from, taps);
                        o += LINES;
                    } else {
                        sum_lines::<T, 1>(to, from, taps);
                        o += 1;
                    }
                }
            }
        });
        return;
    }
    let each = (per / n.max(1)).max(1);
    par::ranges(outer * n, (par::GRAIN / each).max(1), |range| {
        range.for_each(|row| {
            let (o, i) = (row / n, row % n);
            // SAFETY: as above.
            unsafe {
                let taps_of = taps.starts[i] as usize..taps.starts[i + 1] as usize;
                let from = from.get().add(o * length * inner).cast_const();
                let (places, weights) = (&taps.from[taps_of.clone()], &taps.weights[taps_of]);
                sum_rows(inner, to.get().add(row * inner), from, places, weights);
            }
        })
    });
}

/// Copies: each element of the result is one of the source.
unsafe fn pick<T: Copy>(out: *mut u8, x: *const u8, outer: usize, inner: usize, taps: &ResampleWeights) {
    let (to, from) = (par::Shared::new(out.cast::<T>().cast_const()), par::Shared::new(x.cast::<T>()));
    let line = taps.places() * inner;
    par::ranges(outer, (par::GRAIN / line.max(1)).max(1), |range| {
        for o in range {
            // SAFETY: the blocks have the sizes that `taps` and the counts give; this one belongs to this task alone.
            unsafe {
                let (to, from) = (to.get().add(o * line), from.get().add(o * taps.length * inner));
                for (i, &place) in taps.from.iter().enumerate() {
                    let (to, from) = (to.add(i * inner), from.add(place as usize * inner));
                    if inner == 1 { *to = *from } else { from.copy_to_nonoverlapping(to, inner) }
                }
            }
        }
    });
}

/// `out[o, i, :]` is the sum of `weight * x[o, from, :]` over the taps of `i`.
///
/// # Safety
/// The views are dense, live and of one dtype. `out` has `outer * taps.places() * inner` elements, `x` has `outer *
/// taps.length * inner`. `out` overlaps nothing.
pub unsafe fn resample(
    out: Strided,
    x: Strided,
    outer: usize,
    inner: usize,
    taps: &ResampleWeights,
) -> Result<()> {
    by_float!("upsample", out.dtype, T => {
        let run = if taps.picks() { pick::<T> } else { sum_taps::<T> };
        // SAFETY: the caller's contract.
        unsafe { run(out.ptr, x.ptr, outer, inner, taps) };
        Ok(())
    })
}
