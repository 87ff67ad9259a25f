//! Loops over dense f64 or i64 numbers, for functions that are not worth a loop for each dtype.

use super::par;
use crate::base::Strided;

/// Writes `f` of each element over it. About how many steps it takes says when threads are worth it.
///
/// # Safety
/// The view is dense, alive, of float64, and used by nobody else.
pub unsafe fn map(x: Strided, steps: usize, f: impl Fn(f64) -> f64 + Sync) {
    let start = par::Shared::new(x.ptr.cast::<f64>().cast_const());
    par::ranges(x.shape.iter().product(), (par::GRAIN / steps.max(1)).max(1), |range| {
        // SAFETY: ranges do not meet, and the rest is the caller's promise.
        let part = unsafe { std::slice::from_raw_parts_mut(start.get().add(range.start), range.len()) };
        part.iter_mut().for_each(|x| *x = f(*x));
    });
}

/// Writes `f` of both elements over the first.
///
/// # Safety
/// As [`map`], for two views of one shape; the second is only read.
pub unsafe fn map_pair(x: Strided, y: Strided, steps: usize, f: impl Fn(f64, f64) -> f64 + Sync) {
    let (start, other) = (
        par::Shared::new(x.ptr.cast::<f64>().cast_const()),
        par::Shared::new(y.ptr.cast::<f64>().cast_const()),
    );
    par::ranges(x.shape.iter().product(), (par::GRAIN / steps.max(1)).max(1), |range| {
        // SAFETY: ranges do not meet, and the rest is the caller's promise.
        unsafe {
            let part = std::slice::from_raw_parts_mut(start.get().add(range.start), range.len());
            let seconds = std::slice::from_raw_parts(other.get().add(range.start), range.len());
            part.iter_mut().zip(seconds).for_each(|(x, &y)| *x = f(*x, y));
        }
    });
}

/// Maps whole numbers.
///
/// # Safety
/// As [`map_pair`], for int64.
pub unsafe fn map_whole(x: Strided, y: Strided, f: impl Fn(i64, i64) -> i64 + Sync) {
    let (start, other) = (
        par::Shared::new(x.ptr.cast::<i64>().cast_const()),
        par::Shared::new(y.ptr.cast::<i64>().cast_const()),
    );
    par::ranges(x.shape.iter().product(), par::GRAIN / 64, |range| {
        // SAFETY: ranges do not meet, and the rest is the caller's promise.
        unsafe {
            let part = std::slice::from_raw_parts_mut(start.get().add(range.start), range.len());
            let seconds = std::slice::from_raw_parts(other.get().add(range.start), range.len());
            part.iter_mut().zip(seconds).for_each(|(x, &y)| *x = f(*x, y));
        }
    });
}
