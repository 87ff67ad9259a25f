//! Gather and scatter: one general pair of kernels behind `gather`, `index_select`, `embedding`, advanced indexing, and
//! their in-place and accumulating forms. Every index is checked before an existing tensor is written.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::element::{Element, by_dtype};
use super::par;
use super::simd::simd_fn;
use super::walk::Walk;
use crate::base::{DType, Dims, Fault, IndexBy, Put, Result, Strided};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of positions whose offsets are computed at once.
const CHUNK: usize = 256;

/// `out[i] = src[base(i) + indexed(i)]`. `src` has the shape of `out`, with stride 0 in the dimensions that `by`
/// indexes. `negative` allows indices that count from the end. If an index is out of bounds, part of `out` may have
/// been written.
///
/// # Safety
/// The views are live, `out` overlaps nothing else, and `by` gives the true sizes and strides of the indexed dimensions
/// of `src`.
pub unsafe fn get(out: Strided, src: Strided, by: &[IndexBy], negative: bool) -> Result<()> {
    let dims: Dims = (0..out.shape.len()).collect();
    // The result is new memory, so a single index may be checked while elements are read.
    let check_late = matches!(by, [by] if goes_by_singles(by) && !by.index.strides.contains(&0));
    let low = check_late.then(|| lowest(&by[0], negative));
    // SAFETY: the caller's contract.
    unsafe {
        if !check_late {
            by.iter().try_for_each(|by| check(by, negative))?;
        }
        if run(src, out, by, low, &dims, getter(out.dtype.size())) {
            return Ok(());
        }
        by.iter().try_for_each(|by| check(by, negative))
    }
}

/// `dst[base(i) + indexed(i)] = src[i]`, or combined with the old value. Elements of `src` are taken in order, so with
/// repeated indices the result does not depend on the number of threads: the last one wins, and sums have a fixed
/// order.
///
/// # Safety
/// See [`get`], with `dst` in place of `src` and `src` in place of `out`.
pub unsafe fn put(dst: Strided, src: Strided, by: &[IndexBy], mode: Put, negative: bool) -> Result<()> {
    // Threads split only dimensions that are not indexed, so that no two write the same element.
    let dims: Dims = (0..dst.shape.len()).filter(|&d| dst.strides[d] != 0).collect();
    let mover = match mode {
        Put::Assign => mover::<Assign>(dst.dtype.size()),
        Put::Add if dst.dtype == DType::F32 => Mover { runs: add_f32, ..Mover::of::<f32, Add>() },
        Put::Add => by_dtype!(dst.dtype, T => Mover::of::<T, Add>()),
        Put::Mul => by_dtype!(dst.dtype, T => Mover::of::<T, Mul>()),
        Put::Max => by_dtype!(dst.dtype, T => Mover::of::<T, Max>()),
        Put::Min => by_dtype!(dst.dtype, T => Mover::of::<T, Min>()),
    };
    // SAFETY: the caller's contract.
    unsafe {
        by.iter().try_for_each(|by| check(by, negative))?;
        run(dst, src, by, None, &dims, mover);
    }
    Ok(())
}

/// Moves a run of elements for each pair of offsets, between the indexed operand and the plain one.
type Runs =
    unsafe fn(indexed: *mut u8, plain: *mut u8, offsets: &[[usize; 2]], run: usize, steps: [usize; 2]);
/// Moves one element for each of `n` indices. The steps are those of the two operands and of the index.
type Singles =
    unsafe fn(indexed: *mut u8, plain: *mut u8, by: &IndexBy, at: usize, steps: [usize; 3], n: usize);
/// Moves elements along `count` rows of `n` indices, which have not been checked; the steps lead from row to row.
/// Returns false if an index is out of bounds.
type Along = unsafe fn(
    indexed: *mut u8,
    plain: *mut u8,
    by: &IndexBy,
    at: usize,
    sizes: [usize; 2],
    steps: [usize; 3],
    negative: bool,
) -> bool;

/// The loops that move elements of one size or dtype.
#[derive(Clone, Copy)]
struct Mover {
    runs: Runs,
    singles: Singles,
    along: Option<Along>,
}

impl Mover {
    fn of<T, O: Op<T>>() -> Mover {
        Mover { runs: apply::<T, O>, singles: apply_singles::<T, O>, along: None }
    }
}

/// What a move does to one element.
trait Op<T> {
    unsafe fn one(indexed: *mut T, plain: *mut T);
    /// Moves `n` consecutive elements.
    #[inline(always)]
    unsafe fn line(indexed: *mut T, plain: *mut T, n: usize) {
        // SAFETY: the caller's n elements.
        (0..n).for_each(|i| unsafe { Self::one(indexed.add(i), plain.add(i)) });
    }
}

macro_rules! ops {
    ($(
        $name:ident: $bound:path, |$indexed:ident, $plain:ident| $body:expr $(, $n:ident, $line:expr)?;
    )*) => { $(
        struct $name;
        impl<T: $bound> Op<T> for $name {
            #[inline(always)]
            unsafe fn one($indexed: *mut T, $plain: *mut T) {
                // SAFETY: the caller's two elements.
                unsafe { $body }
            }
            $(#[inline(always)]
            unsafe fn line($indexed: *mut T, $plain: *mut T, $n: usize) {
                // SAFETY: the caller's `n` elements; the operands do not overlap.
                unsafe { $line }
            })?
        }
    )* };
}
ops! {
    Get: Copy, |indexed, plain| *plain = *indexed, n, plain.copy_from_nonoverlapping(indexed, n);
    Assign: Copy, |indexed, plain| *indexed = *plain, n, indexed.copy_from_nonoverlapping(plain, n);
    Add: Element, |indexed, plain| *indexed = (*indexed).plus(*plain);
    Mul: Element, |indexed, plain| *indexed = (*indexed).times(*plain);
    Max: Element, |indexed, plain| *indexed = (*indexed).larger(*plain);
    Min: Element, |indexed, plain| *indexed = (*indexed).smaller(*plain);
}

fn mover<O: Op<u8> + Op<u16> + Op<u32> + Op<u64> + Op<[u64; 2]>>(size: usize) -> Mover {
    match size {
        1 => Mover::of::<u8, O>(),
        2 => Mover::of::<u16, O>(),
        4 => Mover::of::<u32, O>(),
        8 => Mover::of::<u64, O>(),
        _ => Mover::of::<[u64; 2], O>(),
    }
}

/// The loops that read elements of a size.
fn getter(size: usize) -> Mover {
    let along: Along = match size {
        1 => along_1,
        2 => along_2,
        4 => along_4,
        8 => along_8,
        _ => along_16,
    };
    Mover { along: Some(along), ..mover::<Get>(size) }
}

/// Number of indices whose places are computed and checked together.
const PLACES: usize = 16;

#[inline(always)]
unsafe fn along<T: Copy>(
    from: *const T,
    to: *mut T,
    by: &IndexBy,
    at: usize,
    [count, n]: [usize; 2],
    steps: [usize; 3],
    negative: bool,
) -> bool {
    let (index, last) = (by.index.ptr.cast::<i64>().wrapping_add(at), by.size - 1);
    let round = if negative { by.size as i64 } else { 0 };
    let mut outside = false;
    let whole = n - n % PLACES;
    for row in 0..count {
        let from = from.wrapping_add(row.wrapping_mul(steps[0]));
        let to = to.wrapping_add(row.wrapping_mul(steps[1]));
        let index = index.wrapping_add(row.wrapping_mul(steps[2]));
        let mut place = |i: usize| {
            // SAFETY: the caller's `n` indices.
            let value = unsafe { *index.add(i) };
            let place = value.wrapping_add(value >> 63 & round) as usize;
            outside |= place > last;
            place.min(last)
        };
        // SAFETY: places are within the row, and there are `n` elements to write.
        unsafe {
            for first in (0..whole).step_by(PLACES) {
                let mut places = [0; PLACES];
                for j in 0..PLACES {
                    places[j] = place(first + j);
                }
                for j in 0..PLACES {
                    *to.add(first + j) = *from.add(places[j]);
                }
            }
            for i in whole..n {
                *to.add(i) = *from.add(place(i));
            }
        }
    }
    !outside
}

macro_rules! along {
    ($($name:ident: $T:ty),*) => { $(
        simd_fn! {
            unsafe fn $name(
                indexed: *mut u8,
                plain: *mut u8,
                by: &IndexBy,
                at: usize,
                sizes: [usize; 2],
                steps: [usize; 3],
                negative: bool,
            ) -> bool {
                along::<$T>(indexed.cast(), plain.cast(), by, at, sizes, steps, negative)
            }
        }
    )* };
}
along!(along_1: u8, along_2: u16, along_4: u32, along_8: u64, along_16: [u64; 2]);

unsafe fn apply_singles<T, O: Op<T>>(
    indexed: *mut u8,
    plain: *mut u8,
    by: &IndexBy,
    at: usize,
    steps: [usize; 3],
    n: usize,
) {
    // A copy, which the stores below cannot alias, so it stays in registers.
    let by = &IndexBy { ..*by };
    let (indexed, plain) = (indexed.cast::<T>(), plain.cast::<T>());
    for i in 0..n {
        // SAFETY: the plain operand has `n` elements, as does the index, which has been checked.
        unsafe {
            let offset = offset::<i64>(by, at + i * steps[2]);
            O::one(indexed.add(i * steps[0] + offset), plain.add(i * steps[1]));
        }
    }
}

/// The offset that an index adds.
#[inline(always)]
unsafe fn offset<T: Element>(by: &IndexBy, at: usize) -> usize {
    // SAFETY: the caller's element of the index.
    let value = unsafe { *by.index.ptr.cast::<T>().add(at) }.to_i64();
    let place = value.wrapping_add(if value < 0 { by.size as i64 } else { 0 }) as usize;
    // Clamp, because another thread may have written the index since it was checked.
    place.min(by.size - 1) * by.stride
}

#[inline(always)]
unsafe fn apply<T, O: Op<T>>(
    indexed: *mut u8,
    plain: *mut u8,
    offsets: &[[usize; 2]],
    run: usize,
    steps: [usize; 2],
) {
    let (indexed, plain) = (indexed.cast::<T>(), plain.cast::<T>());
    for &[i, p] in offsets {
        // SAFETY: the caller's offsets, and the runs that start there, are inside the two operands.
        unsafe {
            let (i, p) = (indexed.add(i), plain.add(p));
            if run == 1 {
                O::one(i, p);
            } else if steps == [1, 1] {
                O::line(i, p, run);
            } else {
                (0..run).for_each(|j| O::one(i.add(j * steps[0]), p.add(j * steps[1])));
            }
        }
    }
}

simd_fn! {
    /// Accumulates the gradient of an embedding.
    unsafe fn add_f32(
        indexed: *mut u8,
        plain: *mut u8,
        offsets: &[[usize; 2]],
        run: usize,
        steps: [usize; 2],
    ) {
        apply::<f32, Add>(indexed, plain, offsets, run, steps)
    }
}

/// The dimension that threads split: among those of `dims` that are long enough, the outermost in memory.
fn shared(plain: &Strided, dims: &[usize]) -> Option<usize> {
    const ENOUGH: usize = 64;
    let longest = dims.iter().map(|&d| plain.shape[d]).max()?;
    let enough = dims.iter().copied().filter(|&d| plain.shape[d] >= longest.min(ENOUGH));
    enough.max_by_key(|&d| plain.strides[d])
}

/// Splits one of the dimensions `dims` over threads. The indices have been checked, or, if `low` is given, are checked
/// on the way against it and their dimension's size: returns false if one is out of bounds.
unsafe fn run(
    indexed: Strided,
    plain: Strided,
    by: &[IndexBy],
    low: Option<i64>,
    dims: &[usize],
    mover: Mover,
) -> bool {
    let total = plain.numel();
    if total == 0 {
        return true;
    }
    if by.iter().any(|by| by.size == 0) {
        return false;
    }
    let Some(dim) = shared(&plain, dims).filter(|_| total >= 2 * par::GRAIN) else {
        // SAFETY: the caller's contract.
        return unsafe { serial(indexed, plain, by, low, mover) };
    };
    let inside = AtomicBool::new(true);
    let size = plain.shape[dim];
    // Fewer pieces mean longer rows in each.
    let grain = (par::GRAIN * size / total).max(size / (4 * par::threads())).max(1);
    par::ranges(size, grain, |range| {
        let mut shape = Dims::from_slice(plain.shape);
        shape[dim] = range.len();
        let narrow = |x: &Strided| {
            // SAFETY: the range lies within the dimension.
            (unsafe { x.ptr.add(range.start * x.strides[dim] * x.dtype.size()) }, x.dtype)
        };
        let part = |(ptr, dtype), strides| Strided { ptr, dtype, shape: &shape, strides };
        let by: SmallVec<[IndexBy; 4]> =
            by.iter().map(|by| IndexBy { index: part(narrow(&by.index), by.index.strides), ..*by }).collect();
        let (indexed, plain) = (part(narrow(&indexed), indexed.strides), part(narrow(&plain), plain.strides));
        // SAFETY: these are parts of the caller's views, and no two ranges write to the same element.
        inside.fetch_and(unsafe { serial(indexed, plain, &by, low, mover) }, Ordering::Relaxed);
    });
    inside.into_inner()
}

/// Walks the dimensions in which an index varies; the others form slices that move as a whole.
unsafe fn serial(indexed: Strided, plain: Strided, by: &[IndexBy], low: Option<i64>, mover: Mover) -> bool {
    let (varying, fixed): (Dims, Dims) =
        (0..plain.shape.len()).partition(|&d| by.iter().any(|by| by.index.strides[d] != 0));
    let strides = [indexed.strides, plain.strides];
    let walk = Walk::over(&varying, plain.shape, strides);
    let indices: SmallVec<[_; 4]> =
        by.iter().map(|by| (by, Walk::over(&varying, plain.shape, [by.index.strides]))).collect();
    let mut slice = Walk::over(&fixed, plain.shape, strides);
    // If a slice's last stride is larger than that of the indexed elements, move single elements, so that memory is
    // read in order.
    let picked = by.iter().map(|by| by.stride).min();
    let apart = (slice.strides[1].last(), slice.strides[0].last())
        > (walk.strides[1].last(), picked.as_ref())
        && !walk.shape.is_empty();
    let (run, steps) = if apart { (1, [0; 2]) } else { slice.pop() };
    let slices = slice.numel();
    let size = plain.dtype.size();
    let total = walk.numel();
    if let ([by], [], 1) = (by, &slice.shape[..], run)
        && goes_by_singles(by)
    {
        let mut walk = Walk::over(&varying, plain.shape, [indexed.strides, plain.strides, by.index.strides]);
        let last = (walk.strides[0].last(), walk.strides[1].last(), walk.strides[2].last());
        if let (Some(along), (Some(0), Some(1), Some(1)), 1) = (mover.along, last, by.stride) {
            let negative = low.is_none_or(|low| low < 0);
            let (n, _) = walk.pop();
            let mut inside = true;
            walk.runs(0..walk.numel(), |[i, p, at], steps, count| {
                let (indexed, plain) = (indexed.ptr.wrapping_add(i * size), plain.ptr.wrapping_add(p * size));
                // SAFETY: the indices are checked on the way, so all these elements are inside their views.
                inside &= unsafe { along(indexed, plain, by, at, [count, n], steps, negative) };
            });
            return inside;
        }
        let mut inside = true;
        walk.runs(0..total, |[i, p, at], steps, n| {
            // SAFETY: the indices have been checked, so all these elements are inside their views.
            unsafe {
                inside = inside
                    && low.is_none_or(|low| !any_outside(n, by.index, [at, steps[2]], low, by.size as i64));
                if inside {
                    (mover.singles)(indexed.ptr.add(i * size), plain.ptr.add(p * size), by, at, steps, n);
                }
            }
        });
        return inside;
    }
    debug_assert!(low.is_none());
    let mut chunk = [[0usize; 2]; CHUNK];
    for first in (0..total).step_by(CHUNK) {
        let range = first..total.min(first + CHUNK);
        let offsets = &mut chunk[..range.len()];
        let mut rest = &mut *offsets;
        walk.runs(range.clone(), |start, steps, n| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(n);
            now.iter_mut()
                .enumerate()
                .for_each(|(i, to)| *to = [start[0] + i * steps[0], start[1] + i * steps[1]]);
            rest = later;
        });
        for (by, walk) in &indices {
            // SAFETY: the walk stays inside the index tensor.
            unsafe {
                match by.index.dtype {
                    DType::I32 => add_indices::<i32>(by, walk, range.clone(), offsets),
                    _ => add_indices::<i64>(by, walk, range.clone(), offsets),
                }
            }
        }
        slice.each(0..slices, |[i, p]| {
            // SAFETY: the indices have been checked, so all these offsets are inside their views.
            unsafe { (mover.runs)(indexed.ptr.add(i * size), plain.ptr.add(p * size), offsets, run, steps) }
        });
    }
    true
}

/// True if the loops for single elements can read this index.
fn goes_by_singles(by: &IndexBy) -> bool {
    by.index.dtype == DType::I64
}

/// The smallest index in bounds.
fn lowest(by: &IndexBy, negative: bool) -> i64 {
    if negative { -(by.size as i64) } else { 0 }
}

unsafe fn add_indices<T: Element>(
    by: &IndexBy,
    walk: &Walk<1>,
    range: Range<usize>,
    mut offsets: &mut [[usize; 2]],
) {
    walk.runs(range, |[start], [step], n| {
        let (now, later) = std::mem::take(&mut offsets).split_at_mut(n);
        for (i, to) in now.iter_mut().enumerate() {
            // SAFETY: the caller's walk stays inside the index tensor.
            to[0] += unsafe { offset::<T>(by, start + i * step) };
        }
        offsets = later;
    });
}

/// Returns the error of the first index out of bounds. Expanded dimensions are checked once.
unsafe fn check(by: &IndexBy, negative: bool) -> Result<()> {
    let index = &by.index;
    let dims: Dims = (0..index.shape.len()).filter(|&d| index.strides[d] != 0).collect();
    let walk = Walk::over(&dims, index.shape, [index.strides]);
    par::try_ranges(walk.numel(), par::GRAIN, |range| {
        // SAFETY: the walk stays inside the index tensor.
        let outside = unsafe {
            match by.index.dtype {
                DType::I32 => outside::<i32>(by, &walk, range, negative),
                _ => outside::<i64>(by, &walk, range, negative),
            }
        };
        match outside {
            None => Ok(()),
            Some(value) => {
                Err(Fault::Beyond { index: Some((value, by.dim)), size: by.size, along: false }.into())
            }
        }
    })
}

unsafe fn outside<T: Element>(
    by: &IndexBy,
    walk: &Walk<1>,
    range: Range<usize>,
    negative: bool,
) -> Option<i64> {
    let low = lowest(by, negative);
    let mut found = None;
    walk.runs(range, |[start], [step], n| {
        // SAFETY: the caller's walk stays inside the index tensor.
        let value = |i: usize| unsafe { *by.index.ptr.cast::<T>().add(start + i * step) }.to_i64();
        let bad = |v: i64| (v < low) | (v >= by.size as i64);
        // SAFETY: as above.
        let all_good = T::DTYPE == DType::I64
            && step == 1
            && !unsafe { any_outside(n, by.index, [start, step], low, by.size as i64) };
        if found.is_none() && !all_good {
            found = (0..n).map(value).find(|&v| bad(v));
        }
    });
    found
}

simd_fn! {
    /// True if an index is out of bounds. No early exit, so that the loop vectorizes; the culprit is sought only if
    /// there is one.
    unsafe fn any_outside(n: usize, index: Strided, place: [usize; 2], low: i64, high: i64) -> bool {
        let [start, step] = place;
        let index = index.ptr.cast::<i64>().add(start);
        let mut any = false;
        if step == 1 {
            for i in 0..n {
                let value = *index.add(i);
                any |= (value < low) | (value >= high);
            }
            return any;
        }
        for i in 0..n {
            let value = *index.add(i * step);
            any |= (value < low) | (value >= high);
        }
        any
    }
}

/// True if an int64 tensor contains `value`.
///
/// # Safety
/// The view is live.
pub unsafe fn holds(x: Strided, value: i64) -> bool {
    let (walk, mut found) = (Walk::new(x.shape, [x.strides]), false);
    walk.runs(0..walk.numel(), |[start], [step], n| {
        // SAFETY: the walk stays inside the view.
        found = found || (0..n).any(|i| unsafe { *x.ptr.cast::<i64>().add(start + i * step) } == value);
    });
    found
}

/// Writes the elements from `next` on where `mask` is true. Sequential, because the source may overlap the target.
///
/// # Safety
/// The views are live and share a shape, and `mask` is bool. At least as many elements of `out`'s dtype follow `next`
/// as `mask` has true ones.
pub unsafe fn put_masked(out: Strided, mask: Strided, mut next: *const u8) {
    let (walk, size) = (Walk::new(out.shape, [out.strides, mask.strides]), out.dtype.size());
    walk.each(0..walk.numel(), |[to, at]| {
        // SAFETY: the walk stays inside the views, and no more elements are taken than `mask` has true ones.
        unsafe {
            if *mask.ptr.add(at) != 0 {
                std::ptr::copy(next, out.ptr.add(to * size), size);
                next = next.add(size);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a, T>(data: &'a [T], dtype: DType, shape: &'a [usize], strides: &'a [usize]) -> Strided<'a> {
        Strided { ptr: data.as_ptr().cast_mut().cast(), dtype, shape, strides }
    }

    #[test]
    fn rows_are_gathered_and_added_back() {
        let (src, index) = ([1f32, 2.0, 3.0, 4.0], [1i64, -2, 1]);
        let (mut out, mut sums) = ([0f32; 6], [0f32; 4]);
        let by = [IndexBy { index: view(&index, DType::I64, &[3, 2], &[1, 0]), size: 2, stride: 2, dim: 0 }];
        let rows =
            Strided { ptr: out.as_mut_ptr().cast(), dtype: DType::F32, shape: &[3, 2], strides: &[2, 1] };
        let to =
            Strided { ptr: sums.as_mut_ptr().cast(), dtype: DType::F32, shape: &[3, 2], strides: &[0, 1] };
        // SAFETY: the views cover the arrays above.
        unsafe {
            get(rows, view(&src, DType::F32, &[3, 2], &[0, 1]), &by, true).unwrap();
            put(to, rows, &by, Put::Add, true).unwrap();
        }
        assert_eq!(out, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(sums, [1.0, 2.0, 6.0, 8.0]);
    }

    #[test]
    fn an_index_out_of_bounds_is_refused_and_puts_nothing() {
        let (index, from) = ([0i64, 5], [1f32; 3]);
        let (mut out, mut to) = ([0f32; 2], [7f32; 3]);
        let by = [IndexBy { index: view(&index, DType::I64, &[2], &[1]), size: 3, stride: 1, dim: 0 }];
        let out = Strided { ptr: out.as_mut_ptr().cast(), dtype: DType::F32, shape: &[2], strides: &[1] };
        let into = Strided { ptr: to.as_mut_ptr().cast(), dtype: DType::F32, shape: &[2], strides: &[0] };
        // SAFETY: the views cover the arrays above.
        let errors = unsafe {
            [
                get(out, view(&from, DType::F32, &[2], &[0]), &by, true).unwrap_err(),
                put(into, view(&from, DType::F32, &[2], &[1]), &by, Put::Assign, true).unwrap_err(),
            ]
        };
        for error in errors {
            assert_eq!(error.to_string(), "index 5 is out of bounds for dimension 0 with size 3");
        }
        assert_eq!(to, [7.0; 3]);
    }
}
