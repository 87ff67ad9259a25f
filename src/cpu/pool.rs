//! Pools: the largest element of each window and its place, or the mean, and their gradients. Tensors are dense planes.

use super::element::{Element, by_dtype, scratch};
use super::par::{self, GRAIN};
use super::simd::simd_fn;
use crate::base::lock;
use crate::base::pool::{Count, Line, Pool};
use crate::base::{DType, Error, Fault, Result, Strided};

/// The types that kernels compute in.
trait Number: Copy + Send + Sync + PartialOrd + std::ops::AddAssign + 'static {
    const ZERO: Self;
    const LOWEST: Self;
    fn over(self, count: i64) -> Self;
    fn planes() -> Planes<Self>;
}

/// A plane: its windows, the image, what is made of it, memory for a row.
type Largest<T> = unsafe fn(&[Line; 3], [usize; 2], *const T, *mut T, *mut i64, *mut T, *mut u32);
/// The largest values alone, without their places.
type Highest<T> = unsafe fn(&[Line; 3], [usize; 2], *const T, *mut T);
type Mean<T> = unsafe fn(&[Line; 3], [usize; 2], Option<i64>, *const T, *mut T);
type Spread<T> = unsafe fn(&[Line; 3], [usize; 2], Option<i64>, *const T, *mut [T], &mut [T]);

struct Planes<T> {
    largest: Largest<T>,
    highest: Highest<T>,
    mean: Mean<T>,
    spread: Spread<T>,
}

/// Walks the elements under a row of windows: `take` gets each window, and the place of its element.
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
unsafe fn largest<T: Number>(
    lines: &[Line; 3],
    size: [usize; 2],
    x: *const T,
    values: *mut T,
    indices: *mut i64,
    best: *mut T,
    place: *mut u32,
) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    // SAFETY: windows lie inside the image, results in theirs; the row's memory has a place for each window.
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
fn higher<T: Number>(best: T, value: T) -> T {
    if value > best || value != value { value } else { best }
}

/// Windows that are processed together: their best elements stay in registers, or in the first cache.
const TOGETHER: usize = 64;

/// Raises each of the best elements to that of `x`, whose elements are `stride` apart.
#[inline(always)]
unsafe fn raise<T: Number>(best: &mut [T], x: *const T, stride: usize) {
    for (i, best) in best.iter_mut().enumerate() {
        // SAFETY: the caller's elements.
        *best = higher(*best, unsafe { *x.add(i * stride) });
    }
}

#[inline(always)]
unsafe fn highest<T: Number>(lines: &[Line; 3], size: [usize; 2], x: *const T, values: *mut T) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    let across = &lines[2];
    let one_line = lines[..2].iter().all(|line| line.starts == [0] && line.ends == [1]);
    // SAFETY: as in `largest`.
    unsafe {
        // Pairs side by side are read once.
        if let ([a, b], 2, true) = (across.runs.as_slice(), across.stride, one_line)
            && (a.low, a.high, a.from + 1) == (0, counts[2], b.from)
            && (b.low, b.high) == (0, counts[2])
        {
            let pairs = std::slice::from_raw_parts(x.add(a.from).cast::<[T; 2]>(), counts[2]);
            for (j, &[one, other]) in pairs.iter().enumerate() {
                *values.add(j) = higher(one, other);
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
                                    1 => raise(best, x, 1),
                                    2 => raise(best, x, 2),
                                    stride => raise(best, x, stride),
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

/// The starts of the rows of elements under a row of windows.
#[inline(always)]
fn rows(lines: &[Line; 3], [height, width]: [usize; 2], d: usize, h: usize) -> impl Iterator<Item = usize> {
    let [deep, high, _] = lines;
    let planes = (deep.starts[d]..deep.ends[d]).step_by(deep.step);
    planes.flat_map(move |d| {
        (high.starts[h]..high.ends[h]).step_by(high.step).map(move |h| (d * height + h) * width)
    })
}

/// Adds what lies `stride` apart.
#[inline(always)]
unsafe fn add<T: Number>(sums: &mut [T], x: *const T, stride: usize) {
    for (i, sum) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's elements.
        *sum += unsafe { *x.add(i * stride) };
    }
}

/// What the averages of a row are divided by.
struct Divisors<'a> {
    lines: &'a [Line; 3],
    given: Option<i64>,
    /// Whether all of a row are the same.
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

    /// Divides the sums, or gradients, of windows from `first` on.
    #[inline(always)]
    fn divide<T: Number>(&self, sums: &mut [T], [d, h, first]: [usize; 3]) {
        if self.alike {
            let count = self.of(d, h, first);
            sums.iter_mut().for_each(|sum| *sum = sum.over(count));
        } else {
            sums.iter_mut().enumerate().for_each(|(j, sum)| *sum = sum.over(self.of(d, h, first + j)));
        }
    }
}

#[inline(always)]
unsafe fn mean<T: Number>(lines: &[Line; 3], size: [usize; 2], given: Option<i64>, x: *const T, out: *mut T) {
    let counts = [0, 1, 2].map(|d: usize| lines[d].starts.len());
    let (across, divisors) = (&lines[2], Divisors::new(lines, given));
    // SAFETY: as in `largest`.
    unsafe {
        for d in 0..counts[0] {
            for h in 0..counts[1] {
                let out = out.add((d * counts[1] + h) * counts[2]);
                for first in (0..counts[2]).step_by(TOGETHER) {
                    let end = (first + TOGETHER).min(counts[2]);
                    let mut sums = [T::ZERO; TOGETHER];
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

/// Whether the windows of a line lie side by side, each of so many elements.
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

/// Each element so many times.
#[inline(always)]
unsafe fn repeat<T: Number, const N: usize>(parts: &[T], out: *mut T) {
    for (j, &part) in parts.iter().enumerate() {
        // SAFETY: the caller's elements.
        unsafe { *out.cast::<[T; N]>().add(j) = [part; N] };
    }
}

/// The transpose of [`mean`]: `x` are the gradients of the means.
#[inline(always)]
unsafe fn spread<T: Number>(
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
    // SAFETY: as in `largest`.
    unsafe {
        (*out).fill(T::ZERO);
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

macro_rules! numbers {
    ($($T:ident $name:ident $lowest:expr, $zero:literal;)*) => { $(
        mod $name {
            use super::*;

            simd_fn! {
                pub unsafe fn of_largest(
                    lines: &[Line; 3], size: [usize; 2], x: *const $T, values: *mut $T, indices: *mut i64, best: *mut $T,
                    place: *mut u32
                ) { largest::<$T>(lines, size, x, values, indices, best, place) }
            }
            simd_fn! {
                pub unsafe fn of_highest(lines: &[Line; 3], size: [usize; 2], x: *const $T, values: *mut $T) {
                    highest::<$T>(lines, size, x, values)
                }
            }
            simd_fn! {
                pub unsafe fn of_mean(
                    lines: &[Line; 3], size: [usize; 2], given: Option<i64>, x: *const $T, out: *mut $T
                ) { mean::<$T>(lines, size, given, x, out) }
            }
            simd_fn! {
                pub unsafe fn of_spread(
                    lines: &[Line; 3], size: [usize; 2], given: Option<i64>, x: *const $T, out: *mut [$T], parts: &mut [$T]
                ) { spread::<$T>(lines, size, given, x, out, parts) }
            }
        }

        impl Number for $T {
            const ZERO: $T = $zero;
            const LOWEST: $T = $lowest;
            #[inline(always)]
            fn over(self, count: i64) -> $T { self / count as $T }
            fn planes() -> Planes<$T> {
                Planes {
                    largest: $name::of_largest,
                    highest: $name::of_highest,
                    mean: $name::of_mean,
                    spread: $name::of_spread,
                }
            }
        }
    )* };
}
numbers! {
    f32 single f32::NEG_INFINITY, 0.0;
    f64 double f64::NEG_INFINITY, 0.0;
    i64 whole i64::MIN, 0;
}

/// The planes' layout in memory, and how many of them make a task.
struct Job {
    lines: [Line; 3],
    size: [usize; 2],
    image: usize,
    result: usize,
    planes: usize,
    grain: usize,
}

impl Job {
    fn new(pool: &Pool, planes: usize) -> Job {
        let windows = &pool.windows;
        let lines = [0, 1, 2].map(|d| pool.line(d));
        let (image, result) = (windows.image.iter().product(), windows.positions());
        let work: usize = lines
            .iter()
            .map(|line| line.ends.iter().zip(&line.starts).map(|(end, start)| end - start).sum::<usize>())
            .product();
        Job {
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

/// Runs for the types that are computed in.
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

/// The largest element of each window, and its place in the plane.
///
/// # Safety
/// The views are dense, live, and have so many planes of the pool's sizes; results overlap nothing.
pub unsafe fn max_pool(
    pool: &Pool,
    planes: usize,
    values: Strided,
    indices: Strided,
    x: Strided,
) -> Result<()> {
    let job = &Job::new(pool, planes);
    let (x, values, indices, dtype) = (&x, &values, &indices, x.dtype);
    by_number!(dtype, T => par::try_ranges(job.planes, job.grain, |range| {
        let run = T::planes().largest;
        let (mut best, mut place) = (scratch(job.row(), T::ZERO)?, scratch(job.row(), 0u32)?);
        for plane in range {
            // SAFETY: this plane is in all three, and this task's alone.
            unsafe {
                run(
                    &job.lines,
                    job.size,
                    x.ptr.cast::<T>().add(plane * job.image),
                    values.ptr.cast::<T>().add(plane * job.result),
                    indices.ptr.cast::<i64>().add(plane * job.result),
                    best.as_mut_ptr(),
                    place.as_mut_ptr(),
                );
            }
        }
        Ok(())
    }))
}

/// The largest element of each window alone.
///
/// # Safety
/// As [`max_pool`].
pub unsafe fn max_pool_values(pool: &Pool, planes: usize, values: Strided, x: Strided) -> Result<()> {
    let job = &Job::new(pool, planes);
    let (x, values, dtype) = (&x, &values, x.dtype);
    by_number!(dtype, T => par::try_ranges(job.planes, job.grain, |range| {
        for plane in range {
            // SAFETY: as above.
            unsafe {
                let (x, values) = (x.ptr.cast::<T>().add(plane * job.image), values.ptr.cast::<T>().add(plane * job.result));
                (T::planes().highest)(&job.lines, job.size, x, values);
            }
        }
        Ok(())
    }))
}

/// The mean of each window; or, back, what the gradients of the means are for the image.
///
/// # Safety
/// As [`max_pool`].
pub unsafe fn avg_pool(pool: &Pool, planes: usize, out: Strided, x: Strided, back: bool) -> Result<()> {
    let job = &Job::new(pool, planes);
    let given = if let Count::Given(n) = pool.count { Some(n) } else { None };
    let (from, to) = if back { (job.result, job.image) } else { (job.image, job.result) };
    let (x, out, dtype) = (&x, &out, x.dtype);
    by_number!(dtype, T => par::try_ranges(job.planes, job.grain, |range| {
        let Planes { mean, spread, .. } = T::planes();
        let mut row = scratch(if back { job.row() } else { 0 }, T::ZERO)?;
        for plane in range {
            // SAFETY: as above.
            unsafe {
                let (x, out) = (x.ptr.cast::<T>().add(plane * from), out.ptr.cast::<T>().add(plane * to));
                if back {
                    spread(&job.lines, job.size, given, x, std::ptr::slice_from_raw_parts_mut(out, to), &mut row);
                } else {
                    mean(&job.lines, job.size, given, x, out);
                }
            }
        }
        Ok(())
    }))
}

/// What happens at the places that indices name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// `out[i] = x[index[i]]`
    Pick,
    /// `out[index[i]] = x[i]`
    Put,
    /// `out[index[i]] += x[i]`
    Add,
}

/// Reads or writes at places in planes; an index that lies outside is the error, and is given back.
///
/// # Safety
/// The views are dense, live, and have so many planes; `indices` has the sizes of what is not indexed.
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
            // SAFETY: this plane is in all three, and this task's alone; places are looked at.
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
