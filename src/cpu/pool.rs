//! Pooling: the maximum of each window and its place, or the mean, and their gradients. Tensors are dense planes.

use super::element::{Element, by_dtype, scratch};
use super::par::{self, GRAIN};
use super::simd::simd_fn;
use crate::base::kernel_args::pool::{PoolDivisor as Count, PoolLine as Line, PoolWindows as Pool};
use crate::base::lock;
use crate::base::{DType, Error, Fault, Result, Strided};
use std::ops::{AddAssign, Div};

/// A type that pools are computed in.
trait Pooled: Element + PartialOrd + AddAssign + Div<Output = Self> {
    const LOWEST: Self;
}
impl Pooled for f32 {
    const LOWEST: f32 = f32::NEG_INFINITY;
}
impl Pooled for f64 {
    const LOWEST: f64 = f64::NEG_INFINITY;
}
impl Pooled for i64 {
    const LOWEST: i64 = i64::MIN;
}

/// Walks the elements under a row of windows; `$take` sees the number of each window, and the offset of its element.
macro_rules! walk {
    ($lines:ident, $size:ident, $d:expr, $h:expr, |$j:ident, $at:ident| $take:expr) => {{
        let [height, width] = $size;
        let across = &$lines[2];
        let mut d = $lines[0].starts[$d];
        while d < $lines[0].ends[$d] {
            let mut h = $lines[1].starts[$h];
            while h < $lines[1].ends[$h] {
                let row = (d * height + h) * width;
                if across.stride == 0 {
                    for $j in 0..across.starts.len() {
                        for w in across.starts[$j]..across.ends[$j] {
                            let $at = row + w;
                            $take
                        }
                    }
                }
                for run in &across.runs {
                    let from = row + run.from;
                    match across.stride {
                        1 => {
                            for i in 0..run.high - run.low {
                                let ($j, $at) = (run.low + i, from + i);
                                $take
                            }
                        }
                        2 => {
                            for i in 0..run.high - run.low {
                                let ($j, $at) = (run.low + i, from + 2 * i);
                                $take
                            }
                        }
                        stride => {
                            for i in 0..run.high - run.low {
                                let ($j, $at) = (run.low + i, from + stride * i);
                                $take
                            }
                        }
                    }
                }
                h += $lines[1].step;
            }
            d += $lines[0].step;
        }
    }};
}

#[inline(always)]
#[allow(clippy::eq_op, reason = "the test for NaN")]
unsafe fn plane_max_with_indices<T: Pooled>(
    lines: &[Line; 3],
    size: [usize; 2],
    x: *const T,
    values: *mut T,
    indices: *mut i64,
    best: *mut T,
    place: *mut u32,
) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    // SAFETY: windows lie inside the image, and results in the result; the row's memory has an element for each window.
    unsafe {
        for d in 0..counts[0] {
            for h in 0..counts[1] {
                let first = (lines[0].starts[d] * size[0] + lines[1].starts[h]) * size[1];
                for j in 0..counts[2] {
                    *best.add(j) = T::LOWEST;
                    *place.add(j) = (first + lines[2].starts[j]) as u32;
                }
                walk!(lines, size, d, h, |j, at| {
                    let value = *x.add(at);
                    let more = value > *best.add(j) || value != value;
                    *best.add(j) = if more { value } else { *best.add(j) };
                    *place.add(j) = if more { at as u32 } else { *place.add(j) };
                });
                let to = (d * counts[1] + h) * counts[2];
                for j in 0..counts[2] {
                    *values.add(to + j) = *best.add(j);
                    *indices.add(to + j) = i64::from(*place.add(j));
                }
            }
        }
    }
}

/// The larger of the two; NaN wins.
#[inline(always)]
#[allow(clippy::eq_op, reason = "the test for NaN")]
fn max_or_nan<T: Pooled>(best: T, value: T) -> T {
    if value > best || value != value { value } else { best }
}

/// Number of windows that are processed together: their maxima stay in registers, or in the first cache.
const TOGETHER: usize = 64;

/// Takes the maximum of each of `best` and the matching element of `x`, whose elements are `stride` apart.
#[inline(always)]
unsafe fn take_max<T: Pooled>(best: &mut [T], x: *const T, stride: usize) {
    for (i, best) in best.iter_mut().enumerate() {
        // SAFETY: the caller's elements.
        *best = max_or_nan(*best, unsafe { *x.add(i * stride) });
    }
}

#[inline(always)]
unsafe fn plane_max<T: Pooled>(lines: &[Line; 3], size: [usize; 2], x: *const T, values: *mut T) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    let across = &lines[2];
    let one_line = lines[..2].iter().all(|line| line.starts == [0] && line.ends == [1]);
    // SAFETY: as in [`max_with_indices`].
    unsafe {
        // Adjacent pairs are read in one load.
        if let ([a, b], 2, true) = (across.runs.as_slice(), across.stride, one_line)
            && (a.low, a.high, a.from + 1) == (0, counts[2], b.from)
            && (b.low, b.high) == (0, counts[2])
        {
            let pairs = std::slice::from_raw_parts(x.add(a.from).cast::<[T; 2]>(), counts[2]);
            for (j, &[one, other]) in pairs.iter().enumerate() {
                *values.add(j) = max_or_nan(one, other);
            }
            return;
        }
        for d in 0..counts[0] {
            for h in 0..counts[1] {
                let values = values.add((d * counts[1] + h) * counts[2]);
                for first in (0..counts[2]).step_by(TOGETHER) {
                    let end = (first + TOGETHER).min(counts[2]);
                    let mut best = [T::LOWEST; TOGETHER];
                    for row in rows(lines, size, d, h) {
                        for run in &across.runs {
                            let (low, high) = (run.low.max(first), run.high.min(end));
                            if low < high {
                                let x = x.add(row + run.from + across.stride * (low - run.low));
                                let best = &mut best[low - first..high - first];
                                match across.stride {
                                    1 => take_max(best, x, 1),
                                    2 => take_max(best, x, 2),
                                    stride => take_max(best, x, stride),
                                }
                            }
                        }
                    }
                    values.add(first).copy_from_nonoverlapping(best.as_ptr(), end - first);
                }
            }
        }
    }
}

/// The offsets of the rows of elements under a row of windows.
#[inline(always)]
fn rows(lines: &[Line; 3], [height, width]: [usize; 2], d: usize, h: usize) -> impl Iterator<Item = usize> {
    let [deep, high, _] = lines;
    let planes = (deep.starts[d]..deep.ends[d]).step_by(deep.step);
    planes.flat_map(move |d| {
        (high.starts[h]..high.ends[h]).step_by(high.step).map(move |h| (d * height + h) * width)
    })
}

/// Adds elements of `x` that are `stride` apart.
#[inline(always)]
unsafe fn add<T: Pooled>(sums: &mut [T], x: *const T, stride: usize) {
    for (i, sum) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's elements.
        *sum += unsafe { *x.add(i * stride) };
    }
}

/// The divisors of the means in a row.
struct Divisors<'a> {
    lines: &'a [Line; 3],
    given: Option<i64>,
    /// True if all windows of a row have the same divisor.
    alike: bool,
}

impl Divisors<'_> {
    #[inline(always)]
    fn new(lines: &[Line; 3], given: Option<i64>) -> Divisors<'_> {
        let counts = &lines[2].counts;
        let alike = given.is_some() || counts.iter().fold(true, |alike, count| alike & (count == &counts[0]));
        Divisors { lines, given, alike }
    }

    #[inline(always)]
    fn of(&self, d: usize, h: usize, j: usize) -> i64 {
        let [deep, high, across] = self.lines;
        self.given.unwrap_or_else(|| (deep.counts[d] * high.counts[h] * across.counts[j]) as i64)
    }

    /// Divides the sums, or gradients, of the windows from `first` on.
    #[inline(always)]
    fn divide<T: Pooled>(&self, sums: &mut [T], [d, h, first]: [usize; 3]) {
        if self.alike {
            let count = T::from_i64(self.of(d, h, first));
            sums.iter_mut().for_each(|sum| *sum = *sum / count);
        } else {
            sums.iter_mut()
                .enumerate()
                .for_each(|(j, sum)| *sum = *sum / T::from_i64(self.of(d, h, first + j)));
        }
    }
}

#[inline(always)]
unsafe fn plane_mean<T: Pooled>(
    lines: &[Line; 3],
    size: [usize; 2],
    given: Option<i64>,
    x: *const T,
    out: *mut T,
) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    let (across, divisors) = (&lines[2], Divisors::new(lines, given));
    // SAFETY: as in [`max_with_indices`].
    unsafe {
        for d in 0..counts[0] {
            for h in 0..counts[1] {
                let out = out.add((d * counts[1] + h) * counts[2]);
                for first in (0..counts[2]).step_by(TOGETHER) {
                    let end = (first + TOGETHER).min(counts[2]);
                    let mut sums = [T::from_i64(0); TOGETHER];
                    for row in rows(lines, size, d, h) {
                        if across.stride == 0 {
                            for j in first..end {
                                (across.starts[j]..across.ends[j])
                                    .for_each(|w| sums[j - first] += *x.add(row + w));
                            }
                        }
                        for run in &across.runs {
                            let (low, high) = (run.low.max(first), run.high.min(end));
                            if low < high {
                                let x = x.add(row + run.from + across.stride * (low - run.low));
                                let sums = &mut sums[low - first..high - first];
                                match across.stride {
                                    1 => add(sums, x, 1),
                                    2 => add(sums, x, 2),
                                    stride => add(sums, x, stride),
                                }
                            }
                        }
                    }
                    divisors.divide(&mut sums[..end - first], [d, h, first]);
                    out.add(first).copy_from_nonoverlapping(sums.as_ptr(), end - first);
                }
            }
        }
    }
}

/// If the windows of a line cover it without gaps or overlaps and have equal size, returns that size.
fn side_by_side(line: &Line) -> Option<usize> {
    let size = line.ends.first()? - line.starts.first()?;
    let alike = line
        .starts
        .iter()
        .zip(&line.ends)
        .enumerate()
        .all(|(j, (&start, &end))| (start, end) == (j * size, (j + 1) * size));
    (alike && line.step == 1).then_some(size)
}

/// Repeats each element `N` times.
#[inline(always)]
unsafe fn repeat<T: Pooled, const N: usize>(parts: &[T], out: *mut T) {
    for (j, &part) in parts.iter().enumerate() {
        // SAFETY: the caller's elements.
        unsafe { *out.cast::<[T; N]>().add(j) = [part; N] };
    }
}

/// The transpose of [`mean`]: `x` is the gradient of the means.
#[inline(always)]
unsafe fn plane_mean_backward<T: Pooled>(
    lines: &[Line; 3],
    size: [usize; 2],
    given: Option<i64>,
    x: *const T,
    out: *mut [T],
    parts: &mut [T],
) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    let divisors = Divisors::new(lines, given);
    let beside =
        side_by_side(&lines[2]).filter(|_| side_by_side(&lines[0]).and(side_by_side(&lines[1])).is_some());
    // SAFETY: as in [`max_with_indices`].
    unsafe {
        (*out).fill(T::from_i64(0));
        let out = out.cast::<T>();
        for d in 0..counts[0] {
            for h in 0..counts[1] {
                parts.copy_from_slice(std::slice::from_raw_parts(
                    x.add((d * counts[1] + h) * counts[2]),
                    counts[2],
                ));
                divisors.divide(parts, [d, h, 0]);
                match beside {
                    None => walk!(lines, size, d, h, |j, at| *out.add(at) += parts[j]),
                    Some(n) => {
                        for row in rows(lines, size, d, h) {
                            let out = out.add(row);
                            match n {
                                1 => repeat::<T, 1>(parts, out),
                                2 => repeat::<T, 2>(parts, out),
                                n => (0..counts[2]).for_each(|j| {
                                    std::slice::from_raw_parts_mut(out.add(j * n), n).fill(parts[j])
                                }),
                            }
                        }
                    }
                }
            }
        }
    }
}

simd_fn! {
    /// The maxima of one plane, and their places; `best` and `place` have room for a row of both.
    unsafe fn max_with_indices<T: Pooled>(
        lines: &[Line; 3], size: [usize; 2], x: *const T, values: *mut T, indices: *mut i64, best: *mut T,
        place: *mut u32,
    ) {
        plane_max_with_indices(lines, size, x, values, indices, best, place)
    }
}

simd_fn! {
    /// The maxima of one plane.
    unsafe fn max_values<T: Pooled>(lines: &[Line; 3], size: [usize; 2], x: *const T, values: *mut T) {
        plane_max(lines, size, x, values)
    }
}

simd_fn! {
    /// The means of one plane, with the divisor that is `given`, if any.
    unsafe fn mean<T: Pooled>(lines: &[Line; 3], size: [usize; 2], given: Option<i64>, x: *const T, out: *mut T) {
        plane_mean(lines, size, given, x, out)
    }
}

simd_fn! {
    /// The transpose of [`mean`]; `parts` has room for a row of means.
    unsafe fn mean_backward<T: Pooled>(
        lines: &[Line; 3], size: [usize; 2], given: Option<i64>, x: *const T, out: *mut [T], parts: &mut [T],
    ) {
        plane_mean_backward(lines, size, given, x, out, parts)
    }
}

/// The windows, the sizes of planes, their number, and how many make a task.
struct PlaneTasks {
    lines: [Line; 3],
    size: [usize; 2],
    image: usize,
    result: usize,
    planes: usize,
    grain: usize,
}

impl PlaneTasks {
    fn new(pool: &Pool, planes: usize) -> PlaneTasks {
        let windows = &pool.windows;
        let lines = [0, 1, 2].map(|d| pool.line(d));
        let (image, result) = (windows.image.iter().product(), windows.positions());
        let work: usize = lines
            .iter()
            .map(|line| line.ends.iter().zip(&line.starts).map(|(end, start)| end - start).sum::<usize>())
            .product();
        PlaneTasks {
            lines,
            size: [windows.image[1], windows.image[2]],
            image,
            result,
            planes,
            grain: (GRAIN / (work + image).max(1)).max(1),
        }
    }

    fn row(&self) -> usize {
        self.lines[2].starts.len()
    }
}

fn unknown(dtype: DType) -> Error {
    Fault::NoKernel { op: "pool", dtype }.into()
}

/// Runs the code with the type that the dtype is computed in.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            dtype => Err(unknown(dtype)),
        }
    };
}

/// The maximum of each window, and its index in the plane.
///
/// # Safety
/// The views are dense, live, and have `planes` planes of the pool's sizes; results overlap nothing.
pub unsafe fn max_pool(
    pool: &Pool,
    planes: usize,
    values: Strided,
    indices: Strided,
    x: Strided,
) -> Result<()> {
    let tasks = &PlaneTasks::new(pool, planes);
    let (x, values, indices, dtype) = (&x, &values, &indices, x.dtype);
    by_number!(dtype, T => par::try_ranges(tasks.planes, tasks.grain, |range| {
        let (mut best, mut place) = (scratch(tasks.row(), T::from_i64(0))?, scratch(tasks.row(), 0u32)?);
        for plane in range {
            // SAFETY: all three have this plane, and it belongs to this task alone.
            unsafe {
                max_with_indices(
                    &tasks.lines,
                    tasks.size,
                    x.ptr.cast::<T>().add(plane * tasks.image),
                    values.ptr.cast::<T>().add(plane * tasks.result),
                    indices.ptr.cast::<i64>().add(plane * tasks.result),
                    best.as_mut_ptr(),
                    place.as_mut_ptr(),
                );
            }
        }
        Ok(())
    }))
}

/// The maximum of each window, without its index.
///
/// # Safety
/// See [`max_pool`].
pub unsafe fn max_pool_values(pool: &Pool, planes: usize, values: Strided, x: Strided) -> Result<()> {
    let tasks = &PlaneTasks::new(pool, planes);
    let (x, values, dtype) = (&x, &values, x.dtype);
    by_number!(dtype, T => par::try_ranges(tasks.planes, tasks.grain, |range| {
        for plane in range {
            // SAFETY: as above.
            unsafe {
                let (x, values) = (x.ptr.cast::<T>().add(plane * tasks.image), values.ptr.cast::<T>().add(plane * tasks.result));
                max_values(&tasks.lines, tasks.size, x, values);
            }
        }
        Ok(())
    }))
}

/// The mean of each window; or, with `back`, the gradient of the image, given that of the means.
///
/// # Safety
/// See [`max_pool`].
pub unsafe fn avg_pool(pool: &Pool, planes: usize, out: Strided, x: Strided, back: bool) -> Result<()> {
    let tasks = &PlaneTasks::new(pool, planes);
    let given = if let Count::Given(n) = pool.count { Some(n) } else { None };
    let (from, to) = if back { (tasks.result, tasks.image) } else { (tasks.image, tasks.result) };
    let (x, out, dtype) = (&x, &out, x.dtype);
    by_number!(dtype, T => par::try_ranges(tasks.planes, tasks.grain, |range| {
        let mut row = scratch(if back { tasks.row() } else { 0 }, T::from_i64(0))?;
        for plane in range {
            // SAFETY: as above.
            unsafe {
                let (x, out) = (x.ptr.cast::<T>().add(plane * from), out.ptr.cast::<T>().add(plane * to));
                if back {
                    mean_backward(&tasks.lines, tasks.size, given, x, std::ptr::slice_from_raw_parts_mut(out, to), &mut row);
                } else {
                    mean(&tasks.lines, tasks.size, given, x, out);
                }
            }
        }
        Ok(())
    }))
}

/// What [`at_places`] does with the elements that indices name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// `out[i] = x[index[i]]`
    Pick,
    /// `out[index[i]] = x[i]`
    Put,
    /// `out[index[i]] += x[i]`
    Add,
}

/// Reads or writes elements of planes by index. Returns the first index found to be out of bounds, if there is one.
///
/// # Safety
/// The views are dense, live, and have `planes` planes; `indices` has the sizes of the operand that is not indexed.
pub unsafe fn at_places(
    at: At,
    planes: usize,
    out: Strided,
    indices: Strided,
    x: Strided,
) -> Result<Option<i64>> {
    let (many, plane) = (indices.numel() / planes.max(1), if at == At::Pick { &x } else { &out });
    let size = plane.numel() / planes.max(1);
    let wrong = std::sync::Mutex::new(None);
    let (out, x, indices, missed) = (&out, &x, &indices, &wrong);
    by_dtype!(out.dtype, T => par::ranges(planes, (GRAIN / (many + size).max(1)).max(1), |range| {
        for plane in range {
            // SAFETY: all three have this plane, and it belongs to this task alone; indices are checked.
            unsafe {
                let index = indices.ptr.cast::<i64>().add(plane * many);
                let step = |of: usize| plane * if (at == At::Pick) == (of == 0) { many } else { size };
                let (out, x) = (out.ptr.cast::<T>().add(step(0)), x.ptr.cast::<T>().add(step(1)));
                for i in 0..many {
                    let place = *index.add(i);
                    let Some(p) = usize::try_from(place).ok().filter(|&p| p < size) else {
                        lock(missed).get_or_insert(place);
                        break;
                    };
                    match at {
                        At::Pick => *out.add(i) = *x.add(p),
                        At::Put => *out.add(p) = *x.add(i),
                        At::Add => *out.add(p) = T::plus(*out.add(p), *x.add(i)),
                    }
                }
            }
        }
    }));
    Ok(wrong.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}
