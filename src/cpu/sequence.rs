//! Evenly spaced numbers: `arange` and `linspace`.

use super::par;
use super::simd::simd_fn;
use crate::base::{DType, Scalar, Strided};
use half::{bf16, f16};

/// The memory of a dense view, as the threads that fill it share it.
#[derive(Clone, Copy)]
struct Target {
    start: *mut u8,
    dtype: DType,
}

// SAFETY: the ranges that write through it are disjoint.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// # Safety
    /// The view has an element `i`, which nobody else uses.
    unsafe fn put_scalar(&self, i: usize, value: Scalar) {
        // SAFETY: the caller's contract.
        unsafe { value.write(self.dtype, self.start.add(i * self.dtype.size())) };
    }
}

/// Fills `out` with `start + i * step`.
///
/// # Safety
/// `out` is live, contiguous, and nobody else uses it.
pub unsafe fn arange(out: Strided, start: Scalar, step: Scalar) {
    let to = Target { start: out.ptr, dtype: out.dtype };
    let (a, d) = (start.as_f64(), step.as_f64());
    let (i0, di) = (start.as_i64(), step.as_i64());
    let whole = |i: usize| i0.wrapping_add(di.wrapping_mul(i as i64));
    par::ranges(out.numel(), par::GRAIN, |range| {
        // SAFETY: the range lies inside the view and belongs to this task alone.
        unsafe {
            match to.dtype {
                DType::F32 => {
                    range_f32(range.len(), to.start.cast::<f32>().add(range.start), range.start, (a, d))
                }
                DType::F64 => {
                    range_f64(range.len(), to.start.cast::<f64>().add(range.start), range.start, (a, d))
                }
                DType::I64 => {
                    range_i64(range.len(), to.start.cast::<i64>().add(range.start), whole(range.start), di)
                }
                float if float.is_float() => {
                    range.for_each(|i| to.put_scalar(i, Scalar::Float(a + d * i as f64)))
                }
                _ => range.for_each(|i| to.put_scalar(i, Scalar::Int(whole(i)))),
            }
        }
    });
}

/// Writes `a + count * d` for `n` counts from `first` on.
macro_rules! range {
    ($name:ident, $t:ident) => {
        simd_fn! {
            unsafe fn $name(n: usize, to: *mut $t, first: usize, by: (f64, f64)) {
                for start in (0..n).step_by(COUNTED) {
                    let first = (first + start) as f64;
                    for i in 0..(n - start).min(COUNTED) {
                        to.add(start + i).write((by.0 + by.1 * (first + i as i32 as f64)) as $t);
                    }
                }
            }
        }
    };
}
range!(range_f32, f32);
range!(range_f64, f64);

simd_fn! {
    unsafe fn range_i64(n: usize, to: *mut i64, first: i64, step: i64) {
        for i in 0..n {
            to.add(i).write(first.wrapping_add(step.wrapping_mul(i as i64)));
        }
    }
}

/// Writes `from + step * count`, rounded once, for `n` counts from `first` on, counting up or down.
macro_rules! steps {
    ($name:ident, $t:ident) => {
        simd_fn! {
            unsafe fn $name(n: usize, to: *mut $t, count: (f64, f64), step: $t, from: $t) {
                let (first, sign) = count;
                for start in (0..n).step_by(COUNTED) {
                    let first = first + sign * start as f64;
                    for i in 0..(n - start).min(COUNTED) {
                        let count = first + sign * i as i32 as f64;
                        to.add(start + i).write(step.mul_add(count as $t, from));
                    }
                }
            }
        }
    };
}
steps!(steps_f32, f32);
steps!(steps_f64, f64);

/// Number of counts per block: small enough for i32, which converts to floats with SIMD.
const COUNTED: usize = 1 << 20;

/// Fills `out` with numbers from `start` to `end`, both included. Each is counted from the nearer end, as in PyTorch.
///
/// # Safety
/// See [`arange`].
pub unsafe fn linspace(out: Strided, start: f64, end: f64) {
    let to = Target { start: out.ptr, dtype: out.dtype };
    let n = out.numel();
    let last = n.saturating_sub(1);
    let step = if last == 0 { 0.0 } else { (end - start) / last as f64 };
    // For halves, the bounds are first rounded to halves.
    let short = |bound: f64| match to.dtype {
        DType::F16 => f16::from_f64(bound).to_f32(),
        DType::BF16 => bf16::from_f64(bound).to_f32(),
        _ => bound as f32,
    };
    let (a, b) = (short(start), short(end));
    let short = if last == 0 { 0.0 } else { (b - a) / last as f32 };
    let middle = if n == 1 { 1 } else { n / 2 };
    par::ranges(n, par::GRAIN, |range| {
        let split = middle.clamp(range.start, range.end);
        for (part, sign) in [(range.start..split, 1.0), (split..range.end, -1.0)] {
            let from_start = sign > 0.0;
            let first = if from_start { part.start as f64 } else { last as f64 - part.start as f64 };
            let n = part.len();
            // SAFETY: the range lies inside the view and belongs to this task alone.
            unsafe {
                match to.dtype {
                    DType::F32 => {
                        let at = to.start.cast::<f32>().add(part.start);
                        steps_f32(n, at, (first, sign), sign as f32 * short, if from_start { a } else { b });
                    }
                    DType::F64 => {
                        let at = to.start.cast::<f64>().add(part.start);
                        steps_f64(n, at, (first, sign), sign * step, if from_start { start } else { end });
                    }
                    DType::F16 | DType::BF16 => part.enumerate().for_each(|(i, at)| {
                        let from = if from_start { a } else { b };
                        let value = sign as f32 * short * (first as f32 + sign as f32 * i as f32) + from;
                        to.put_scalar(at, Scalar::Float(f64::from(value)));
                    }),
                    _ => part.enumerate().for_each(|(i, at)| {
                        let from = if from_start { start } else { end };
                        let value = (sign * step).mul_add(first + sign * i as f64, from);
                        to.put_scalar(at, Scalar::Float(value));
                    }),
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_exact() {
        let mut x = [0f64; 7];
        let view = Strided { ptr: x.as_mut_ptr().cast(), dtype: DType::F64, shape: &[7], strides: &[1] };
        // SAFETY: the view covers the array.
        unsafe { linspace(view, 0.1, 0.7) };
        assert_eq!((x[0], x[6]), (0.1, 0.7));
        // SAFETY: as above.
        unsafe { arange(view, Scalar::Int(3), Scalar::Float(-0.5)) };
        assert_eq!(x[..3], [3.0, 2.5, 2.0]);
    }
}
