//! Evenly spaced numbers.

use super::par;
use crate::base::{DType, Scalar, Strided};

/// Where the elements of a dense view are written, by number.
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
    /// The view has an element `i` of type T, which nobody else uses.
    unsafe fn put<T>(&self, i: usize, value: T) {
        // SAFETY: by the caller.
        unsafe { self.start.cast::<T>().add(i).write(value) };
    }

    /// # Safety
    /// The view has an element `i`, which nobody else uses.
    unsafe fn put_scalar(&self, i: usize, value: Scalar) {
        // SAFETY: by the caller.
        unsafe { value.write(self.dtype, self.start.add(i * self.dtype.size())) };
    }
}

/// `start + i * step`.
///
/// # Safety
/// `out` describes live memory that nobody else uses, contiguous.
pub unsafe fn arange(out: Strided, start: Scalar, step: Scalar) {
    let to = Target { start: out.ptr, dtype: out.dtype };
    let (a, d) = (start.as_f64(), step.as_f64());
    let (i0, di) = (start.as_i64(), step.as_i64());
    let whole = |i: usize| i0.wrapping_add(di.wrapping_mul(i as i64));
    par::ranges(out.numel(), par::GRAIN, |range| {
        // SAFETY: the range lies inside the view and is this thread's alone.
        unsafe {
            match to.dtype {
                DType::F32 => range.for_each(|i| to.put(i, (a + d * i as f64) as f32)),
                DType::F64 => range.for_each(|i| to.put(i, a + d * i as f64)),
                DType::I64 => range.for_each(|i| to.put(i, whole(i))),
                float if float.is_float() => {
                    range.for_each(|i| to.put_scalar(i, Scalar::Float(a + d * i as f64)))
                }
                _ => range.for_each(|i| to.put_scalar(i, Scalar::Int(whole(i)))),
            }
        }
    });
}

/// From `start` to `end`, both included, counted from the nearer of them.
///
/// # Safety
/// As [`arange`].
pub unsafe fn linspace(out: Strided, start: f64, end: f64) {
    let to = Target { start: out.ptr, dtype: out.dtype };
    let n = out.numel();
    let last = n.saturating_sub(1);
    let step = if last == 0 { 0.0 } else { (end - start) / last as f64 };
    let wide = |i: usize| {
        if i < n / 2 || n == 1 {
            step.mul_add(i as f64, start)
        } else {
            (-step).mul_add((last - i) as f64, end)
        }
    };
    let (a, b) = (start as f32, end as f32);
    let short = if last == 0 { 0.0 } else { (b - a) / last as f32 };
    let narrow = |i: usize| {
        if i < n / 2 || n == 1 { short.mul_add(i as f32, a) } else { (-short).mul_add((last - i) as f32, b) }
    };
    par::ranges(n, par::GRAIN, |range| {
        // SAFETY: the range lies inside the view and is this thread's alone.
        unsafe {
            match to.dtype {
                DType::F32 => range.for_each(|i| to.put(i, narrow(i))),
                DType::F64 => range.for_each(|i| to.put(i, wide(i))),
                _ => range.for_each(|i| to.put_scalar(i, Scalar::Float(wide(i)))),
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
