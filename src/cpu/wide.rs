//! Loops over dense f64 or i64 numbers, for functions that are not worth a loop for each dtype.

use super::par;
use crate::base::Strided;

/// Replaces each element by `f` of it. `steps` is the approximate cost of a call, from which the number of elements per
/// thread follows.
///
/// # Safety
/// The view is dense, live, of float64, and used by nobody else.
pub unsafe fn map(x: Strided, steps: usize, f: impl Fn(f64) -> f64 + Sync) {
    let start = par::Shared::new(x.ptr.cast::<f64>().cast_const());
    par::ranges(x.shape.iter().product(), (par::GRAIN / steps.max(1)).max(1), |range| {
        // SAFETY: ranges do not overlap; the rest is the caller's contract.
        let part = unsafe { std::slice::from_raw_parts_mut(start.get().add(range.start), range.len()) };
        part.iter_mut().for_each(|x| *x = f(*x));
    });
}

/// Replaces each element of `x` by `f` of it and the element of `y`.
///
/// # Safety
/// The same as for [`map`], for two views of one shape; `y` is only read.
pub unsafe fn map_pair(x: Strided, y: Strided, steps: usize, f: impl Fn(f64, f64) -> f64 + Sync) {
    let (start, other) = (
        par::Shared::new(x.ptr.cast::<f64>().cast_const()),
        par::Shared::new(y.ptr.cast::<f64>().cast_const()),
    );
    par::ranges(x.shape.iter().product(), (par::GRAIN / steps.max(1)).max(1), |range| {
        // SAFETY: ranges do not overlap; the rest is the caller's contract.
        unsafe {
            let part = std::slice::from_raw_parts_mut(start.get().add(range.start), range.len());
            let seconds = std::slice::from_raw_parts(other.get().add(range.start), range.len());
            part.iter_mut().zip(seconds).for_each(|(x, &y)| *x = f(*x, y));
        }
    });
}

/// Like [`map_pair`], for int64.
///
/// # Safety
/// The same as for [`map_pair`], for int64.
pub unsafe fn map_whole(x: Strided, y: Strided, f: impl Fn(i64, i64) -> i64 + Sync) {
    let (start, other) = (
        par::Shared::new(x.ptr.cast::<i64>().cast_const()),
        par::Shared::new(y.ptr.cast::<i64>().cast_const()),
    );
    par::ranges(x.shape.iter().product(), par::GRAIN / 64, |range| {
        // SAFETY: ranges do not overlap; the rest is the caller's contract.
        unsafe {
            let part = std::slice::from_raw_parts_mut(start.get().add(range.start), range.len());
            let seconds = std::slice::from_raw_parts(other.get().add(range.start), range.len());
            part.iter_mut().zip(seconds).for_each(|(x, &y)| *x = f(*x, y));
        }
    });
}
