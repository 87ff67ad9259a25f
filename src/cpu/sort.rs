//! Sorting and selecting along one dimension, and selecting elements by a mask. NaN counts as the largest number; equal
//! elements keep their order.

use super::element::{Bit, Element, by_dtype, no_element, scratch};
use super::par;
use super::walk::Walk;
use crate::base::{DType, Dims, Error, Result, Strided, try_alloc};
use std::ops::Range;

/// Sorts along `dim`: writes the sorted elements and the indices (int64) that they come from.
///
/// # Safety
/// The views are live, and the outputs overlap nothing.
pub unsafe fn sort(
    values: Strided,
    indices: Strided,
    x: Strided,
    dim: usize,
    descending: bool,
) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        each_line([values, indices], x, dim, descending, |line, sorted| {
            line.each(|element| sorted.push(element));
            sorted.sort_unstable();
        })
    }
}

/// The `k` largest (or smallest) elements along `dim`, best first; of equal elements the first ones. The outputs have
/// size `k` along `dim`.
///
/// # Safety
/// See [`sort`].
pub unsafe fn topk(
    values: Strided,
    indices: Strided,
    x: Strided,
    k: usize,
    dim: usize,
    largest: bool,
) -> Result<()> {
    if k > length(&x, dim) {
        return Err(Error::runtime("selected index k out of range"));
    }
    // Collect candidates until the buffer is full, then keep the best `k`; later candidates must beat the worst of
    // those.
    let room = (4 * k).max(128);
    // SAFETY: the caller's contract.
    unsafe {
        each_line([values, indices], x, dim, largest, |line, best| {
            if k == 0 {
                return;
            }
            let keep_best = |best: &mut Vec<Ranked>| {
                let bar = *best.select_nth_unstable(k - 1).1;
                best.truncate(k);
                bar
            };
            let mut bar = Ranked::LAST;
            line.each(|candidate| {
                if candidate < bar {
                    best.push(candidate);
                    if best.len() == room {
                        bar = keep_best(best);
                    }
                }
            });
            keep_best(best);
            best.sort_unstable();
        })
    }
}

/// The `k`-th smallest element along `dim`, counted from 1, and its index. The outputs have size 1 along `dim`.
///
/// # Safety
/// See [`sort`].
pub unsafe fn kthvalue(values: Strided, indices: Strided, x: Strided, k: usize, dim: usize) -> Result<()> {
    if k == 0 || k > length(&x, dim) {
        return Err(Error::runtime(format!(
            "kthvalue(): selected number k out of range for dimension {dim}"
        )));
    }
    // SAFETY: the caller's contract.
    unsafe {
        each_line([values, indices], x, dim, false, |line, found| {
            line.each(|element| found.push(element));
            found[0] = *found.select_nth_unstable(k - 1).1;
            found.truncate(1);
        })
    }
}

fn length(x: &Strided, dim: usize) -> usize {
    x.shape.get(dim).map_or(1, |&n| n)
}

/// An element as an unsigned number of the same order, and its index. One sort serves all dtypes and both directions;
/// and as no two are equal, every algorithm is stable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    key: u64,
    index: u64,
}

impl Ranked {
    const LAST: Ranked = Ranked { key: u64::MAX, index: u64::MAX };
}

const SIGN: u64 = 1 << 63;

#[inline(always)]
fn key<T: Element>(x: T) -> u64 {
    if !T::DTYPE.is_float() {
        return x.to_i64() as u64 ^ if T::DTYPE == DType::U64 { 0 } else { SIGN };
    }
    let x = x.to_f64();
    // Makes -0 equal to 0.
    let bits = (x + 0.0).to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    if x.is_nan() { u64::MAX } else { ordered }
}

struct SortLine {
    load: unsafe fn(from: *const u8, step: usize, keys: &mut [u64]),
    from: *const u8,
    step: usize,
    size: usize,
    flip: u64,
    length: usize,
}

impl SortLine {
    #[inline]
    fn each(&self, mut body: impl FnMut(Ranked)) {
        let mut keys = [0u64; 256];
        for first in (0..self.length).step_by(keys.len()) {
            let keys = &mut keys[..(self.length - first).min(256)];
            // SAFETY: elements of the line, which is live while this is.
            unsafe { (self.load)(self.from.add(first * self.step * self.size), self.step, keys) };
            for (i, key) in keys.iter().enumerate() {
                body(Ranked { key: key ^ self.flip, index: (first + i) as u64 });
            }
        }
    }
}

unsafe fn load_keys<T: Element>(from: *const u8, step: usize, keys: &mut [u64]) {
    for (i, to) in keys.iter_mut().enumerate() {
        // SAFETY: the caller's elements.
        *to = key(unsafe { *from.cast::<T>().add(i * step) });
    }
}

/// Calls `pick` with each line along `dim`; it lists the wanted elements in order, which are then stored.
unsafe fn each_line(
    outs: [Strided; 2],
    x: Strided,
    dim: usize,
    descending: bool,
    pick: impl Fn(&SortLine, &mut Vec<Ranked>) + Sync,
) -> Result<()> {
    let n = length(&x, dim);
    if x.numel() == 0 {
        return Ok(());
    }
    let others: Dims = (0..x.shape.len()).filter(|&d| d != dim).collect();
    let walk = Walk::over(&others, x.shape, [outs[0].strides, outs[1].strides, x.strides]);
    let step = |strides: &[usize]| strides.get(dim).map_or(1, |&s| s);
    let steps = [step(outs[0].strides), step(outs[1].strides), step(x.strides)];
    let load = match x.dtype {
        DType::U16 => load_keys::<u16>,
        DType::U32 => load_keys::<u32>,
        DType::U64 => load_keys::<u64>,
        dtype => by_dtype!(dtype, T => load_keys::<T>),
    };
    let size = x.dtype.size();
    // Sorting costs about ten times as much per element as other kernels.
    let grain = (par::GRAIN / 8 / n).max(1);
    par::try_ranges(walk.numel(), grain, |range| {
        let ([values, indices], x) = (&outs, &x);
        let mut picked: Vec<Ranked> = scratch(n, Ranked::LAST)?;
        walk.each(range, |[v, p, from]| {
            picked.clear();
            let from = x.ptr.wrapping_add(from * size).cast_const();
            let flip = if descending { u64::MAX } else { 0 };
            pick(&SortLine { load, from, step: steps[2], size, flip, length: n }, &mut picked);
            for (i, &Ranked { index, .. }) in picked.iter().enumerate() {
                // SAFETY: the lines are inside the views, and this task alone writes them.
                unsafe {
                    let value = from.add(index as usize * steps[2] * size);
                    let to = values.ptr.add((v + i * steps[0]) * size);
                    copy_element(value, to, size);
                    *indices.ptr.cast::<i64>().add(p + i * steps[1]) = index as i64;
                }
            }
        });
        Ok(())
    })
}

#[inline(always)]
unsafe fn copy_element(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's two elements, aligned for their type.
    unsafe {
        match size {
            1 => *to = *from,
            2 => *to.cast::<u16>() = *from.cast(),
            4 => *to.cast::<u32>() = *from.cast(),
            8 => *to.cast::<u64>() = *from.cast(),
            _ => from.copy_to_nonoverlapping(to, size),
        }
    }
}

/// Number of nonzero elements.
///
/// # Safety
/// `x` is live.
pub unsafe fn nonzero_count(x: Strided) -> Result<usize> {
    let walk = Walk::new(x.shape, [x.strides]);
    // SAFETY: the caller's contract.
    Ok(unsafe { counts(&x, &walk, blocks(walk.numel()))? }.iter().sum())
}

/// Writes the indices of the nonzero elements in order, `ndim` numbers for each.
///
/// # Safety
/// See [`nonzero_count`]; `out` has room for `room` rows, which is the count that it returned.
pub unsafe fn nonzero_into(x: Strided, out: *mut i64, room: usize) -> Result<()> {
    let (ndim, small) = (x.shape.len(), x.numel() <= u32::MAX as usize);
    let out = par::Shared::new(out);
    // SAFETY: each element writes its own row.
    unsafe {
        each_nonzero(x, room, |linear, row| {
            let mut rest = linear;
            for dim in (1..ndim).rev() {
                let (size, whole) = (x.shape[dim], rest);
                // A 32-bit division takes half the time.
                rest = if small { (whole as u32 / size as u32) as usize } else { whole / size };
                *out.get().add(row * ndim + dim) = (whole - rest * size) as i64;
            }
            if ndim > 0 {
                *out.get().add(row * ndim) = rest as i64;
            }
        })
    }
}

/// Copies the elements of `x` where `mask` (bool, of the same shape) is true.
///
/// # Safety
/// See [`nonzero_into`]; `out` has room for as many elements as `mask` has true ones.
pub unsafe fn masked_select(out: *mut u8, room: usize, x: Strided, mask: Strided) -> Result<()> {
    let out = par::Shared::new(out);
    let walk = Walk::new(x.shape, [x.strides]);
    let (size, dense) = (x.dtype.size(), x.is_contiguous());
    // SAFETY: each element has its own place.
    unsafe {
        each_nonzero(mask, room, |linear, place| {
            let x = &x;
            let offset = if dense { linear } else { walk.at(linear)[0] };
            copy_element(x.ptr.add(offset * size), out.get().add(place * size), size);
        })
    }
}

/// Number of indices that are collected before they are used.
const SOME: usize = 256;
/// Number of elements that one task counts and then places.
const BLOCK: usize = 65_536;

fn blocks(n: usize) -> impl Fn(usize) -> Range<usize> + Sync + Send + Copy {
    move |i| i * BLOCK..n.min((i + 1) * BLOCK)
}

unsafe fn counts(
    x: &Strided,
    walk: &Walk<1>,
    block: impl Fn(usize) -> Range<usize> + Sync + Send,
) -> Result<Vec<usize>> {
    let count = walk.numel().div_ceil(BLOCK);
    par::map(count, 1, |i| {
        let mut count = 0;
        // SAFETY: the walk stays inside the view.
        unsafe { scan_block(x, walk, block(i), |_| count += 1) };
        count
    })
}

/// Calls `found` with the linear index of each nonzero element, and its rank among them. Blocks are counted first, so
/// that each knows the rank of its first; elements that another thread makes nonzero meanwhile are left out.
unsafe fn each_nonzero(x: Strided, room: usize, found: impl Fn(usize, usize) + Sync) -> Result<()> {
    let walk = Walk::new(x.shape, [x.strides]);
    let block = blocks(walk.numel());
    // SAFETY: the caller's contract.
    let counts = unsafe { counts(&x, &walk, block)? };
    let mut sum = 0;
    let starts = try_alloc::all(counts.iter().map(|count| {
        sum += count;
        sum - count
    }))?;
    par::ranges(counts.len(), 1, |range| {
        for i in range {
            let (mut place, end) = (starts[i], room.min(starts[i] + counts[i]));
            // SAFETY: the walk stays inside the view.
            unsafe {
                scan_block(&x, &walk, block(i), |linear| {
                    if place < end {
                        found(linear, place);
                        place += 1;
                    }
                });
            }
        }
    });
    Ok(())
}

/// Calls `found` with the linear index of each nonzero element. The indices are collected without a branch, which could
/// not be predicted.
unsafe fn scan_block(x: &Strided, walk: &Walk<1>, range: Range<usize>, mut found: impl FnMut(usize)) {
    let mut linear = range.start;
    let (mut some, mut n) = ([0; SOME], 0);
    macro_rules! scan {
        ($T:ty, $nonzero:expr) => {{
            let nonzero = $nonzero;
            walk.each(range, |[at]| {
                some[n % SOME] = linear;
                // SAFETY: the walk stays inside the view.
                n += usize::from(nonzero(unsafe { *x.ptr.cast::<$T>().add(at) }));
                linear += 1;
                if n == SOME {
                    some.into_iter().for_each(&mut found);
                    n = 0;
                }
            })
        }};
    }
    match x.dtype {
        DType::Bool => scan!(Bit, |b: Bit| b.0 != 0),
        DType::U8 | DType::I8 => scan!(u8, |b| b != 0),
        DType::I16 => scan!(i16, |b| b != 0),
        DType::I32 => scan!(i32, |b| b != 0),
        DType::I64 => scan!(i64, |b| b != 0),
        // The sign of a half is its top bit: shifted out, both zeros are 0.
        DType::F16 | DType::BF16 => scan!(u16, |b: u16| b << 1 != 0),
        DType::F32 => scan!(f32, |b: f32| b != 0.0),
        DType::F64 => scan!(f64, |b: f64| b != 0.0),
        DType::C64 => scan!([f32; 2], |b: [f32; 2]| b != [0.0; 2]),
        DType::C128 => scan!([f64; 2], |b: [f64; 2]| b != [0.0; 2]),
        other => no_element(other),
    }
    some.into_iter().take(n).for_each(found);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<T: Element>(data: &[T], shape: &'static [usize]) -> Strided<'static> {
        Strided { ptr: data.as_ptr().cast_mut().cast(), dtype: T::DTYPE, shape, strides: &[1] }
    }

    #[test]
    fn nan_is_largest_and_equals_keep_their_order() {
        let x = [2f32, f32::NAN, 1.0, 2.0];
        let (mut values, mut indices) = ([0f32; 4], [0i64; 4]);
        // SAFETY: the views cover the arrays above.
        unsafe { sort(view(&values, &[4]), view(&indices, &[4]), view(&x, &[4]), 0, true) }.unwrap();
        assert!(values[0].is_nan());
        assert_eq!((&values[1..], indices), (&[2.0, 2.0, 1.0][..], [1, 0, 3, 2]));
        // SAFETY: as above.
        unsafe { topk(view(&values, &[2]), view(&indices, &[2]), view(&x, &[4]), 2, 0, false) }.unwrap();
        assert_eq!((&values[..2], &indices[..2]), (&[1.0, 2.0][..], &[2, 0][..]));
        (values, indices) = ([0.0; 4], [0; 4]);
        // SAFETY: as above.
        unsafe { kthvalue(view(&values, &[1]), view(&indices, &[1]), view(&x, &[4]), 3, 0) }.unwrap();
        assert_eq!((values[0], indices[0]), (2.0, 3));
    }

    #[test]
    fn places_of_what_is_not_zero() {
        let x = [0.0f32, 1.0, -0.0, f32::NAN];
        let mut rows = [0i64; 2];
        // SAFETY: two elements are nonzero, and the tensor has one dimension.
        unsafe {
            assert_eq!(nonzero_count(view(&x, &[4])).ok(), Some(2));
            nonzero_into(view(&x, &[4]), rows.as_mut_ptr(), 2).unwrap();
        }
        assert_eq!(rows, [1, 3]);
    }
}
