//! Weighted sums along one dimension: what resizing is made of, and its gradient. Each place of the result is a sum of a few
//! places of the source; both are dense blocks `[outer, along, inner]`.

use super::par;
use super::simd::simd_fn;
use crate::base::{DType, Fault, ResampleWeights, Result, Strided};

macro_rules! kernels {
    ($($T:ident, $run:ident, $add:ident, $line:ident;)*) => { $(
        simd_fn! {
            unsafe fn $add(n: usize, to: *mut $T, from: *const $T, weight: $T, first: bool) {
                for i in 0..n {
                    let one = weight * *from.add(i);
                    *to.add(i) = if first { one } else { *to.add(i) + one };
                }
            }
        }

        simd_fn! {
            unsafe fn $line(to: *mut $T, from: *const $T, starts: &[u32], places: &[u32], weights: &[f64]) {
                for i in 0..starts.len() - 1 {
                    let mut sum = 0.0;
                    for k in starts[i] as usize..starts[i + 1] as usize {
                        sum += weights[k] as $T * *from.add(places[k] as usize);
                    }
                    *to.add(i) = sum;
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
                    let to = to.get().add(row * inner);
                    let all = taps.starts[i] as usize..taps.starts[i + 1] as usize;
                    if all.is_empty() {
                        std::slice::from_raw_parts_mut(to, inner).fill(0.0);
                    }
                    let first = all.start;
                    for k in all {
                        let from = from.get().add((o * length + taps.from[k] as usize) * inner).cast_const();
                        $add(inner, to, from, taps.weights[k] as $T, k == first);
                    }
                }
            }));
        }
    )* };
}
kernels! {
    f32, run_f32, add_f32, line_f32;
    f64, run_f64, add_f64, line_f64;
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
