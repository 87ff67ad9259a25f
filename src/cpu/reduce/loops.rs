//! The inner loops of reductions, over rows and over columns.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::steps::{Partial, Wide};
use crate::base::{DType, Reduction};
use crate::cpu::float::Float;
use crate::cpu::lanes::{LANES, combine};
use crate::cpu::simd::{Level, simd_fn, total_of_few};

/// A type as which elements are read. Pairs of elements may be combined before they are widened: one rounding in four
/// additions costs no more precision than rounding the result, and saves three conversions.
pub trait ReduceInput: Copy + Send + Sync + 'static {
    type Wide: Wide;
    const DTYPE: DType;
    const LOWEST: Self;
    const HIGHEST: Self;
    /// The highest level that rows are compiled for.
    const MOST: Level;
    fn wide(self) -> Self::Wide;
    fn pair_sum(a: Self, b: Self) -> Self;
    fn pair_max(a: Self, b: Self) -> Self;
    fn pair_min(a: Self, b: Self) -> Self;
    /// The sum of `n` elements, if there are few, and the type is exact enough for sums of four.
    ///
    /// # Safety
    /// `x` has `n` elements.
    #[inline(always)]
    unsafe fn few(_x: *const Self, _n: usize) -> Option<Self::Wide> {
        None
    }
    /// The sum of the squares, unless they overflow or underflow in the type.
    ///
    /// # Safety
    /// See [`ReduceInput::few`].
    #[inline(always)]
    unsafe fn squares(_x: *const Self, _n: usize) -> Option<Self::Wide> {
        None
    }
}

macro_rules! input {
    ($S:ident, $dtype:ident, $Wide:ident, $lowest:expr, $highest:expr, $most:expr, $sum:expr, |$n:ident| $nan:expr $(; $($few:item)*)?) => {
        impl ReduceInput for $S {
            type Wide = $Wide;
            const DTYPE: DType = DType::$dtype;
            const LOWEST: $S = $lowest;
            const HIGHEST: $S = $highest;
            const MOST: Level = $most;
            #[inline(always)]
            fn wide(self) -> $Wide { self as $Wide }
            #[inline(always)]
            fn pair_sum(a: $S, b: $S) -> $S { $sum(a, b) }
            // Compilers vectorize this form; of zeros with different signs, the first wins.
            #[inline(always)]
            fn pair_max(a: $S, $n: $S) -> $S {
                let larger = if $n > a { $n } else { a };
                if $nan { $n } else { larger }
            }
            #[inline(always)]
            fn pair_min(a: $S, $n: $S) -> $S {
                let smaller = if $n < a { $n } else { a };
                if $nan { $n } else { smaller }
            }
            $($($few)*)?
        }
    };
}
input!(f64, F64, f64, f64::NEG_INFINITY, f64::INFINITY, Level::V4, std::ops::Add::add, |b| b.is_nan());
// With wider registers, the compiler would gather integers one by one.
input!(i64, I64, i64, i64::MIN, i64::MAX, Level::V3, i64::wrapping_add, |b| false);
input!(f32, F32, f64, f32::NEG_INFINITY, f32::INFINITY, Level::V4, std::ops::Add::add, |b| b.is_nan();
    #[inline(always)]
    unsafe fn few(x: *const f32, n: usize) -> Option<f64> {
        // SAFETY: the caller's `n` elements.
        (n < 4 * LANES).then(|| unsafe { total_of_few::<false>(x, n) })
    }
    #[inline(always)]
    unsafe fn squares(x: *const f32, n: usize) -> Option<f64> {
        // SAFETY: the caller's `n` elements.
        let sum = unsafe { if n < 4 * LANES { total_of_few::<true>(x, n) } else { total_of_squares(x, n) } };
        // Smaller squares may have lost digits, larger ones are infinite. (A NaN passes as the result.)
        let far = sum < n as f64 * 1e-36 || sum == f64::INFINITY;
        (!far).then_some(sum)
    }
);

/// Reductions side by side. `indices` are for `ArgMax` and `ArgMin`; `shift`, unless it is empty, for sums of squares.
pub struct Columns<'a, A> {
    pub values: &'a mut [A],
    pub indices: &'a mut [i64],
    pub shift: &'a [A],
}

/// The elements that are combined before they are widened: four for each lane.
pub const CHUNK: usize = 4 * LANES;

/// Adds whole chunks to the lanes.
#[inline(always)]
unsafe fn add_chunks<S: Copy, A: Wide>(
    lanes: &mut [A; LANES],
    x: *const S,
    n: usize,
    shift: A,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
    pair: impl Fn(S, S) -> S,
) {
    // SAFETY: the caller's `n` elements.
    let at = |i: usize| unsafe { *x.add(i) };
    for i in (0..n).step_by(CHUNK) {
        for j in 0..LANES {
            let part = |k: usize| at(i + k * LANES + j);
            let (low, high) = (pair(part(0), part(1)), pair(part(2), part(3)));
            lanes[j] = step(lanes[j], wide(pair(low, high)), shift);
        }
    }
}

/// Reduces `n` elements. `four` combines elements before they are widened, if that gives the same result.
#[inline(always)]
unsafe fn row<S: Copy, A: Wide>(
    reduction: Reduction,
    x: *const S,
    n: usize,
    shift: A,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
    four: Option<impl Fn(S, S) -> S>,
) -> A {
    let mut lanes = [A::first(reduction); LANES];
    let mut done = 0;
    // SAFETY: the caller's `n` elements.
    unsafe {
        if let Some(pair) = four {
            done = n - n % CHUNK;
            add_chunks(&mut lanes, x, done, shift, &wide, &step, pair);
        }
        end_row(reduction, lanes, x.add(done), n - done, n, shift, wide, step)
    }
}

/// Reduces the last `n` of `total` elements, of which the others are in the lanes.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "kernels take plain numbers and pointers")]
unsafe fn end_row<S: Copy, A: Wide>(
    reduction: Reduction,
    mut lanes: [A; LANES],
    x: *const S,
    n: usize,
    total: usize,
    shift: A,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
) -> A {
    // SAFETY: the caller's `n` elements.
    let at = |i: usize| unsafe { *x.add(i) };
    let mut i = 0;
    while i + LANES <= n {
        for j in 0..LANES {
            lanes[j] = step(lanes[j], wide(at(i + j)), shift);
        }
        i += LANES;
    }
    let join = |a, b| A::join(reduction, a, b);
    let mut few = [A::first(reduction); 4];
    while i + 4 <= n {
        for j in 0..4 {
            few[j] = step(few[j], wide(at(i + j)), shift);
        }
        i += 4;
    }
    let mut rest = join(join(few[0], few[2]), join(few[1], few[3]));
    if total >= LANES {
        rest = join(rest, combine(|j| lanes[j], join));
    }
    while i < n {
        rest = step(rest, wide(at(i)), shift);
        i += 1;
    }
    rest
}

/// The sum of the squares of at least [`LANES`] elements: groups of four are added in f32.
///
/// # Safety
/// `x` has `n` elements.
#[inline(always)]
unsafe fn total_of_squares(x: *const f32, n: usize) -> f64 {
    // SAFETY: the caller's `n` elements.
    let square = |i: usize| unsafe { *x.add(i) * *x.add(i) };
    let mut lanes = [0.0f64; LANES];
    let mut i = 0;
    while i + 4 * LANES <= n {
        for j in 0..LANES {
            let part = |k: usize| square(i + k * LANES + j);
            lanes[j] += f64::from((part(0) + part(1)) + (part(2) + part(3)));
        }
        i += 4 * LANES;
    }
    // The rest: whole registers, and the last one, which may overlap the one before.
    let mut rest = [0.0f32; LANES];
    while i + LANES <= n {
        for j in 0..LANES {
            rest[j] += square(i + j);
        }
        i += LANES;
    }
    let before = (LANES - (n - i)) as i32;
    for j in 0..LANES {
        let last = square(n - LANES + j);
        rest[j] += if j as i32 >= before { last } else { 0.0 };
    }
    for j in 0..LANES {
        lanes[j] += f64::from(rest[j]);
    }
    f64::sum_lanes(&lanes)
}

/// Reduces `n` elements in any order and in their own type.
#[inline(always)]
unsafe fn in_lanes<S: Copy>(first: S, x: *const S, n: usize, join: impl Fn(S, S) -> S) -> S {
    // SAFETY: the caller's `n` elements.
    unsafe { end_lanes(first, [first; LANES], x, n, n, join) }
}

/// Reduces whole rows of lanes.
#[inline(always)]
unsafe fn join_lanes<S: Copy>(lanes: &mut [S; LANES], x: *const S, n: usize, join: impl Fn(S, S) -> S) {
    for i in (0..n).step_by(LANES) {
        for j in 0..LANES {
            // SAFETY: the caller's `n` elements.
            lanes[j] = join(lanes[j], unsafe { *x.add(i + j) });
        }
    }
}

/// Reduces the last `n` of `total` elements, of which the others are in the lanes.
#[inline(always)]
unsafe fn end_lanes<S: Copy>(
    first: S,
    mut lanes: [S; LANES],
    x: *const S,
    n: usize,
    total: usize,
    join: impl Fn(S, S) -> S,
) -> S {
    let whole = n - n % LANES;
    // SAFETY: the caller's `n` elements.
    unsafe { join_lanes(&mut lanes, x, whole, &join) };
    // SAFETY: as above.
    let rest = (whole..n).fold(first, |found, i| join(found, unsafe { *x.add(i) }));
    if total < LANES {
        return rest;
    }
    for width in [16, 8, 4, 2, 1] {
        for j in 0..width {
            lanes[j] = join(lanes[j], lanes[j + width]);
        }
    }
    join(lanes[0], rest)
}

/// Reduces `n` elements as rows of some columns, for steps that compilers vectorize only in loops of unknown length.
/// Values are combined like elements.
#[inline(always)]
unsafe fn in_columns<S: Copy, A: Wide>(
    reduction: Reduction,
    x: *const S,
    n: usize,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
) -> A {
    let mut values = [A::first(reduction); 2 * LANES];
    let mut width = (n / 8).clamp(1, 2 * LANES).next_power_of_two().min(2 * LANES);
    let row = &mut values[..width];
    // SAFETY: the caller's `n` elements.
    unsafe {
        for start in (0..n / width).map(|i| i * width) {
            for j in 0..width {
                row[j] = step(row[j], wide(*x.add(start + j)), A::ZERO);
            }
        }
        for i in n - n % width..n {
            row[0] = step(row[0], wide(*x.add(i)), A::ZERO);
        }
    }
    while width > 1 {
        width /= 2;
        let (low, high) = values[..2 * width].split_at_mut(width);
        for j in 0..width {
            low[j] = step(low[j], high[j], A::ZERO);
        }
    }
    values[0]
}

/// Finds the best value of a chunk at full speed, and searches its index only if it is the best so far.
#[inline(always)]
unsafe fn row_index<S: Copy, A: Wide>(
    largest: bool,
    x: *const S,
    n: usize,
    index: i64,
    wide: impl Fn(S) -> A + Copy,
    best_of: impl Fn(*const S, usize) -> A,
) -> Partial<A> {
    const CHUNK: usize = 2048;
    let reduction = if largest { Reduction::Max } else { Reduction::Min };
    let mut best = Partial { value: A::first(reduction), index };
    let mut done = 0;
    while done < n {
        let len = CHUNK.min(n - done);
        let start = x.wrapping_add(done);
        let value = best_of(start, len);
        if value.beats(best.value, largest) {
            // SAFETY: the caller's `n` elements.
            let same = |i: usize| unsafe { !value.beats(wide(*start.add(i)), largest) };
            let mut i = 0;
            while i + LANES <= len {
                let mut any = false;
                for j in 0..LANES {
                    any |= same(i + j);
                }
                if any {
                    break;
                }
                i += LANES;
            }
            while !same(i) {
                i += 1;
            }
            // SAFETY: as above. Read the element itself, because the best value may be a zero of the other sign.
            let value = unsafe { wide(*start.add(i)) };
            best = Partial { value, index: index + (done + i) as i64 };
        }
        done += len;
    }
    best
}

/// Reduces rows of columns; `N` rows (4 or 16) at a time by `pair`, if that gives the same result.
#[inline(always)]
unsafe fn step_columns<const N: usize, S: Copy, A: Wide>(
    tile: &mut Columns<A>,
    x: *const S,
    rows: usize,
    stride: usize,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
    pair: Option<impl Fn(S, S) -> S>,
) {
    let width = tile.values.len();
    let values = &mut *tile.values;
    let mut row = 0;
    // SAFETY: the caller's rows are as wide as the tile.
    unsafe {
        if let Some(pair) = pair {
            while row + N <= rows {
                let x = x.add(row * stride);
                for j in 0..width {
                    let at = |k: usize| *x.add(k * stride + j);
                    let four = |k: usize| pair(pair(at(k), at(k + 1)), pair(at(k + 2), at(k + 3)));
                    let part = match N {
                        4 => four(0),
                        _ => pair(pair(four(0), four(4)), pair(four(8), four(12))),
                    };
                    values[j] = step(values[j], wide(part), A::ZERO);
                }
                row += N;
            }
        }
        while row < rows {
            let x = x.add(row * stride);
            if tile.shift.len() == width {
                for j in 0..width {
                    values[j] = step(values[j], wide(*x.add(j)), tile.shift[j]);
                }
            } else {
                for j in 0..width {
                    values[j] = step(values[j], wide(*x.add(j)), A::ZERO);
                }
            }
            row += 1;
        }
    }
}

#[inline(always)]
unsafe fn columns_index<S: Copy, A: Wide>(
    largest: bool,
    tile: &mut Columns<A>,
    x: *const S,
    rows: usize,
    stride: usize,
    index: i64,
    wide: impl Fn(S) -> A,
) {
    let width = tile.values.len();
    let (values, indices) = (&mut *tile.values, &mut tile.indices[..width]);
    for row in 0..rows {
        let here = index + row as i64;
        for j in 0..width {
            // SAFETY: the caller's rows are as wide as the tile.
            let x = unsafe { wide(*x.add(row * stride + j)) };
            let wins = x.beats(values[j], largest);
            values[j] = if wins { x } else { values[j] };
            indices[j] = if wins { here } else { indices[j] };
        }
    }
}

/// The largest of `n` elements, widened.
#[inline(always)]
unsafe fn largest<S: ReduceInput>(x: *const S, n: usize) -> S::Wide {
    // SAFETY: the caller's `n` elements.
    unsafe { in_lanes(S::LOWEST, x, n, S::pair_max).wide() }
}

/// The smallest of `n` elements, widened.
#[inline(always)]
unsafe fn smallest<S: ReduceInput>(x: *const S, n: usize) -> S::Wide {
    // SAFETY: the caller's `n` elements.
    unsafe { in_lanes(S::HIGHEST, x, n, S::pair_min).wide() }
}

simd_fn! {
    [S::MOST]
    /// Reduces each of `tile.values.len()` rows of `n` elements, `stride` apart.
    pub unsafe fn rows<S: ReduceInput>(
        reduction: Reduction, tile: &mut Columns<S::Wide>, x: *const S, n: usize, stride: usize, index: i64,
    ) {
        let none = None::<fn(S, S) -> S>;
        for i in 0..tile.values.len() {
            let x = x.add(i * stride);
            let shift = if tile.shift.is_empty() { S::Wide::ZERO } else { tile.shift[i] };
            tile.values[i] = match reduction {
                Reduction::Sum => match S::few(x, n) {
                    Some(sum) => sum,
                    None => row(Reduction::Sum, x, n, shift, S::wide, S::Wide::sum, Some(S::pair_sum)),
                },
                Reduction::Prod => in_columns(Reduction::Prod, x, n, S::wide, S::Wide::prod),
                Reduction::Max => largest(x, n),
                Reduction::Min => smallest(x, n),
                Reduction::All => in_columns(Reduction::All, x, n, S::wide, S::Wide::all),
                Reduction::Any => in_columns(Reduction::Any, x, n, S::wide, S::Wide::any),
                Reduction::SumSq => match if tile.shift.is_empty() { S::squares(x, n) } else { None } {
                    Some(sum) => sum,
                    None => row(Reduction::SumSq, x, n, shift, S::wide, S::Wide::sum_sq, none),
                },
                Reduction::SumAbs => row(Reduction::SumAbs, x, n, shift, S::wide, S::Wide::sum_abs, none),
                Reduction::ArgMax | Reduction::ArgMin => {
                    let best = if reduction == Reduction::ArgMax {
                        row_index(true, x, n, index, S::wide, |x, n| largest(x, n))
                    } else {
                        row_index(false, x, n, index, S::wide, |x, n| smallest(x, n))
                    };
                    tile.indices[i] = best.index;
                    best.value
                }
            };
        }
    }
}

/// A row of which some elements are reduced.
#[derive(Clone, Copy)]
pub struct Lanes<S: ReduceInput> {
    wide: [S::Wide; LANES],
    own: [S; LANES],
}

impl<S: ReduceInput> Lanes<S> {
    /// The lanes of no elements, for sums, maxima and minima.
    pub fn new(reduction: Reduction) -> Lanes<S> {
        let own = if reduction == Reduction::Min { S::HIGHEST } else { S::LOWEST };
        Lanes { wide: [S::Wide::first(reduction); LANES], own: [own; LANES] }
    }
}

simd_fn! {
    [S::MOST]
    /// Adds `n` elements, which are whole chunks, to a row.
    pub unsafe fn add_to_row<S: ReduceInput>(reduction: Reduction, row: &mut Lanes<S>, x: *const S, n: usize) {
        let Lanes { mut wide, mut own } = *row;
        match reduction {
            Reduction::Max => join_lanes(&mut own, x, n, S::pair_max),
            Reduction::Min => join_lanes(&mut own, x, n, S::pair_min),
            _ => add_chunks(&mut wide, x, n, S::Wide::ZERO, S::wide, S::Wide::sum, S::pair_sum),
        }
        *row = Lanes { wide, own };
    }
}

simd_fn! {
    [S::MOST]
    /// Reduces the last `n` of a row's `total` elements, less than a chunk: the value that [`rows`] finds.
    pub unsafe fn end_of_row<S: ReduceInput>(
        reduction: Reduction, row: &Lanes<S>, x: *const S, n: usize, total: usize,
    ) -> S::Wide {
        match (reduction, if n == total { S::few(x, n) } else { None }) {
            (Reduction::Max, _) => end_lanes(S::LOWEST, row.own, x, n, total, S::pair_max).wide(),
            (Reduction::Min, _) => end_lanes(S::HIGHEST, row.own, x, n, total, S::pair_min).wide(),
            (_, Some(sum)) => sum,
            (_, None) => end_row(Reduction::Sum, row.wide, x, n, total, S::Wide::ZERO, S::wide, S::Wide::sum),
        }
    }
}

simd_fn! {
    /// Reduces `rows` rows, `stride` apart, into a tile of columns.
    pub unsafe fn columns<S: ReduceInput>(
        reduction: Reduction, tile: &mut Columns<S::Wide>, x: *const S, rows: usize, stride: usize, index: i64,
    ) {
        let (wide, none) = (S::wide, None::<fn(S, S) -> S>);
        match reduction {
            Reduction::Sum => step_columns::<4, _, _>(tile, x, rows, stride, wide, S::Wide::sum, Some(S::pair_sum)),
            Reduction::Prod => step_columns::<4, _, _>(tile, x, rows, stride, wide, S::Wide::prod, none),
            Reduction::Max => step_columns::<16, _, _>(tile, x, rows, stride, wide, S::Wide::max, Some(S::pair_max)),
            Reduction::Min => step_columns::<16, _, _>(tile, x, rows, stride, wide, S::Wide::min, Some(S::pair_min)),
            Reduction::All => step_columns::<4, _, _>(tile, x, rows, stride, wide, S::Wide::all, none),
            Reduction::Any => step_columns::<4, _, _>(tile, x, rows, stride, wide, S::Wide::any, none),
            Reduction::SumSq => step_columns::<4, _, _>(tile, x, rows, stride, wide, S::Wide::sum_sq, none),
            Reduction::SumAbs => step_columns::<4, _, _>(tile, x, rows, stride, wide, S::Wide::sum_abs, none),
            Reduction::ArgMax => columns_index(true, tile, x, rows, stride, index, wide),
            Reduction::ArgMin => columns_index(false, tile, x, rows, stride, index, wide),
        }
    }
}
