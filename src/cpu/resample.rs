//! Weighted sums along one dimension: what resizing is made of, and its gradient. Each place of the result is a sum of a few
//! places of the source, in double precision; both are dense blocks `[outer, along, inner]`.

use super::par;
use super::simd::simd_fn;
use crate::base::{DType, Fault, ResampleWeights, Result, Strided};

/// Elements that are summed side by side.
const TOGETHER: usize = 32;

macro_rules! kernels {
    ($($T:ident, $run:ident, $block:ident, $lines:ident, $line:ident;)*) => { $(
        /// Elements beside one another, of lines that are `n` long.
        #[inline(always)]
        unsafe fn $block<const N: usize>(n: usize, to: *mut $T, from: *const $T, places: &[u32], weights: &[f64]) {
            let mut sums = [0.0; N];
            // SAFETY: the caller's lines.
            unsafe {
                for (&place, &weight) in places.iter().zip(weights) {
                    let from = from.add(place as usize * n).cast::<[$T; N]>().read_unaligned();
                    (0..N).for_each(|i| sums[i] += weight * f64::from(from[i]));
                }
                to.cast::<[$T; N]>().write_unaligned(sums.map(|sum| sum as $T));
            }
        }

        simd_fn! {
            unsafe fn $lines(n: usize, to: *mut $T, from: *const $T, places: &[u32], weights: &[f64]) {
                let whole = n - n % TOGETHER;
                for i in (0..whole).step_by(TOGETHER) {
                    $block::<TOGETHER>(n, to.add(i), from.add(i), places, weights);
                }
                for i in whole..n {
                    $block::<1>(n, to.add(i), from.add(i), places, weights);
                }
            }
        }

        simd_fn! {
            unsafe fn $line(to: *mut $T, from: *const $T, starts: &[u32], places: &[u32], weights: &[f64]) {
                for i in 0..starts.len() - 1 {
                    let mut sum = 0.0;
                    for k in starts[i] as usize..starts[i + 1] as usize {
                        sum += weights[k] * f64::from(*from.add(places[k] as usize));
                    }
                    *to.add(i) = sum as $T;
                }
            }
        }

        unsafe fn $run(out: *mut u8, x: *const u8, outer: usize, inner: usize, taps: &ResampleWeights) {
            let (to, from) = (par::Shared::new(out.cast::<$T>().cast_const()), par::Shared::new(x.cast::<$T>()));
            let (n, length) = (taps.places(), taps.length);
            let per = (n * inner + taps.from.len() * inner).max(1);
            if inner == 1 {
                par::ranges(outer, (par::GRAIN / per).max(1), |range| range.for_each(|o| {
                    // SAFETY: the blocks have the sizes that `taps` and the counts say; this line is this task's own.
                    unsafe {
                        let from = from.get().add(o * length).cast_const();
                        $line(to.get().add(o * n), from, &taps.starts, &taps.from, &taps.weights);
                    }
                }));
                return;
            }
            let each = (per / n.max(1)).max(1);
            par::ranges(outer * n, (par::GRAIN / each).max(1), |range| range.for_each(|row| {
                let (o, i) = (row / n, row % n);
                // SAFETY: as above.
                unsafe {
                    let taps_of = taps.starts[i] as usize..taps.starts[i + 1] as usize;
                    let from = from.get().add(o * length * inner).cast_const();
                    let (places, weights) = (&taps.from[taps_of.clone()], &taps.weights[taps_of]);
                    $lines(inner, to.get().add(row * inner), from, places, weights);
                }
            }));
        }
    )* };
}
kernels! {
    f32, run_f32, block_f32, lines_f32, line_f32;
    f64, run_f64, block_f64, lines_f64, line_f64;
}

/// `out[o, i, :]` is the sum of `weight * x[o, from, :]` over the taps of `i`.
///
/// # Safety
/// The views are dense and live: `out` has `outer * taps.places() * inner` elements, `x` has `outer * taps.length * inner`, of one
/// dtype; `out` overlaps nothing.
pub unsafe fn resample(
    out: Strided,
    x: Strided,
    outer: usize,
    inner: usize,
    taps: &ResampleWeights,
) -> Result<()> {
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F32 => run_f32(out.ptr, x.ptr, outer, inner, taps),
            DType::F64 => run_f64(out.ptr, x.ptr, outer, inner, taps),
            dtype => return Err(Fault::NoKernel { op: "upsample", dtype }.into()),
        }
    }
    Ok(())
}
