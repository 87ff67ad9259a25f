//! `embedding_bag`: sums, means and maxima of bags of rows of a table, without a copy of the rows.

use super::float::Float;
use super::par::{self, Shared};
use super::simd::simd_fn;
use crate::base::{DType, Strided};

/// How bags are reduced: the row to ignore (or -1), and whether sums are divided by the number of rows.
#[derive(Clone, Copy)]
pub struct BagOptions {
    pub padding: i64,
    pub mean: bool,
}

/// The rows of each bag: the numbers from its start to the next one's.
struct Bags<'a> {
    numbers: &'a [i64],
    starts: &'a [i64],
    kept: BagOptions,
}

/// The results: a row per bag, the bag of each number, the number of rows that count in each bag, and, for maxima
/// rather than sums, the row of the table that each element comes from.
pub struct BagResults<'a> {
    pub rows: Strided<'a>,
    pub bags: Strided<'a>,
    pub sizes: Strided<'a>,
    pub which: Option<Strided<'a>>,
}

/// The first `n` elements of a contiguous int64 view.
unsafe fn list<'a>(x: Strided<'a>, n: usize) -> &'a [i64] {
    // SAFETY: the caller's view.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(x.ptr.cast(), n) } }
}

impl Bags<'_> {
    /// True if the starts ascend from 0 and all numbers are below `rows`.
    fn are_sound(&self, rows: usize) -> bool {
        // No early exit, so that compilers vectorize the loop.
        let outside = self.numbers.iter().fold(false, |any, &row| any | (row as u64 >= rows as u64));
        !outside && self.starts.first() == Some(&0) && self.starts.is_sorted()
    }

    fn range(&self, bag: usize) -> std::ops::Range<usize> {
        let at = |bag: usize| {
            let start = self.starts.get(bag).map_or(self.numbers.len(), |&start| start as usize);
            start.min(self.numbers.len())
        };
        at(bag)..at(bag + 1)
    }
}

/// Reduces bags (`numbers` from each of `starts` on; starts beyond the number of bags are ignored), each row times its
/// `share` if there is one. Returns false, and writes nothing, if a bag is invalid or this kernel cannot read the
/// operands' layouts.
///
/// # Safety
/// The views are live and have matching sizes; results are contiguous and overlap nothing.
pub unsafe fn reduce(
    made: &BagResults,
    table: Strided,
    numbers: Strided,
    starts: Strided,
    share: Option<Strided>,
    kept: BagOptions,
) -> bool {
    let whole = |x: &Strided| x.dtype == DType::I64 && x.is_contiguous();
    let rows = table.strides[1] == 1 || table.shape[1] <= 1;
    let shares = share.is_none_or(|share| share.is_contiguous() && share.dtype == table.dtype);
    if !whole(&numbers) || !whole(&starts) || !rows || !shares {
        return false;
    }
    // SAFETY: the caller's contract; there are at least as many starts as bags.
    unsafe {
        let (numbers, starts) = (list(numbers, numbers.numel()), list(starts, made.sizes.numel()));
        let bags = &Bags { numbers, starts, kept };
        if !bags.are_sound(table.shape[0]) {
            return false;
        }
        match table.dtype {
            DType::F32 => each::<f32>(made, table, share, bags),
            DType::F64 => each::<f64>(made, table, share, bags),
            _ => return false,
        }
    }
    true
}

unsafe fn each<T: Float>(made: &BagResults, table: Strided, share: Option<Strided>, bags: &Bags) {
    let width = table.shape[1];
    let count = bags.starts.len();
    let work = (bags.numbers.len() * width / count.max(1)).max(1);
    let weight = Shared::new(table.ptr.cast::<T>());
    let share = share.map(|share| Shared::new(share.ptr.cast::<T>()));
    let rows = Shared::new(made.rows.ptr.cast::<T>());
    let whole = |x: Strided| Shared::new(x.ptr.cast_const().cast::<i64>());
    let (of, sizes, which) = (whole(made.bags), whole(made.sizes), made.which.map(whole));
    par::ranges(count, (par::GRAIN / work).max(1), |range| {
        for i in range {
            let places = bags.range(i);
            let numbers = &bags.numbers[places.clone()];
            let counted = numbers.iter().filter(|&&row| row != bags.kept.padding).count();
            let divisor = if bags.kept.mean { T::from_f64(counted.max(1) as f64) } else { T::ONE };
            // SAFETY: the numbers are rows of the table; this task alone writes the bag's results.
            unsafe {
                let share =
                    share.map_or(std::ptr::null(), |share| share.get().add(places.start).cast_const());
                let (from, step, to) = (weight.get(), table.strides[0], rows.get().add(i * width));
                match which {
                    None => bag(numbers, share, bags.kept.padding, from, step, to, width, divisor),
                    Some(which) => {
                        top(numbers, bags.kept.padding, from, step, to, which.get().add(i * width), width);
                    }
                }
                std::slice::from_raw_parts_mut(of.get().add(places.start), places.len()).fill(i as i64);
                *sizes.get().add(i) = counted as i64;
            }
        }
    });
}

simd_fn! {
    /// Reduces one bag to sums, which are divided by `divisor`: the rows of the table, `step` apart, that `numbers` name,
    /// each times its share, if `share` is not null. Rows of number `padding` are left out.
    unsafe fn bag<T: Float>(
        numbers: &[i64], share: *const T, padding: i64, table: *const T, step: usize, out: *mut T, width: usize,
        divisor: T,
    ) {
        let mut first = 0;
        while first < width {
            let (table, out) = (table.add(first), out.add(first));
            first += match width - first {
                64.. => columns::<T, 64>(numbers, share, padding, table, step, out, divisor),
                16.. => columns::<T, 16>(numbers, share, padding, table, step, out, divisor),
                4.. => columns::<T, 4>(numbers, share, padding, table, step, out, divisor),
                _ => columns::<T, 1>(numbers, share, padding, table, step, out, divisor),
            };
        }
    }
}

/// Sums `N` columns, which stay in registers. Returns `N`.
#[inline(always)]
unsafe fn columns<T: Float, const N: usize>(
    numbers: &[i64],
    share: *const T,
    padding: i64,
    table: *const T,
    step: usize,
    out: *mut T,
    divisor: T,
) -> usize {
    let mut sums = [T::ZERO; N];
    // SAFETY: the caller's rows and shares.
    unsafe {
        for (i, &row) in numbers.iter().enumerate() {
            if row == padding {
                continue;
            }
            let mut row = table.add(row as usize * step).cast::<[T; N]>().read_unaligned();
            if !share.is_null() {
                let share = *share.add(i);
                row.iter_mut().for_each(|x| *x *= share);
            }
            for j in 0..N {
                sums[j] += row[j];
            }
        }
        sums.iter_mut().for_each(|sum| *sum = *sum / divisor);
        out.cast::<[T; N]>().write_unaligned(sums);
    }
    N
}

simd_fn! {
    /// Reduces one bag to the maximum of each column (the first of equal ones; NaN wins), and the rows that they come
    /// from; zeros if there are no rows.
    unsafe fn top<T: Float>(
        numbers: &[i64], padding: i64, table: *const T, step: usize, out: *mut T, which: *mut i64, width: usize,
    ) {
        let out = std::slice::from_raw_parts_mut(out, width);
        let which = std::slice::from_raw_parts_mut(which, width);
        largest(numbers, padding, table, step, out, which)
    }
}

#[inline(always)]
unsafe fn largest<T: Float>(
    numbers: &[i64],
    padding: i64,
    table: *const T,
    step: usize,
    out: &mut [T],
    which: &mut [i64],
) {
    let mut first = true;
    for &row in numbers.iter().filter(|&&row| row != padding) {
        // SAFETY: the caller's rows.
        let from = unsafe { std::slice::from_raw_parts(table.add(row as usize * step), out.len()) };
        if first {
            out.copy_from_slice(from);
            which.fill(row);
            first = false;
            continue;
        }
        for j in 0..out.len() {
            let (x, best) = (from[j], out[j]);
            let wins = (x > best) | (x.is_nan() & !best.is_nan());
            out[j] = if wins { x } else { best };
            which[j] = if wins { row } else { which[j] };
        }
    }
    if first {
        out.fill(T::ZERO);
        which.fill(0);
    }
}
