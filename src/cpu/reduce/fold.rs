//! The inner loops of reductions. Floats are folded in f64 and integers in i64, so results are as exact as
//! their type allows in any order of summation.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use crate::base::{DType, Fold};
use crate::cpu::simd::{fetch, simd_fn};

/// What a fold has come to: a value, and for `ArgMax` and `ArgMin` where it was found.
#[derive(Clone, Copy, Debug)]
pub struct Partial<A> {
    pub value: A,
    pub index: i64,
}

/// The two types that are folded in.
pub trait Wide: Copy + Send + Sync + PartialEq + 'static {
    const DTYPE: DType;
    const ZERO: Self;
    /// What a fold starts from.
    fn first(fold: Fold) -> Self;
    /// The values of two folds over different elements as one.
    fn join(fold: Fold, a: Self, b: Self) -> Self;
    /// Whether `self` wins over `other` in an `ArgMax` or `ArgMin`.
    fn beats(self, other: Self, largest: bool) -> bool;
    /// Divided, and perhaps its square root; integers have no such results.
    fn over(self, divisor: f64, sqrt: bool) -> Self;
}

impl<A: Wide> Partial<A> {
    #[inline(always)]
    pub fn join(fold: Fold, a: Partial<A>, b: Partial<A>) -> Partial<A> {
        if !fold.is_arg() {
            return Partial { value: A::join(fold, a.value, b.value), index: 0 };
        }
        let largest = fold == Fold::ArgMax;
        let b_wins =
            b.value.beats(a.value, largest) || (!a.value.beats(b.value, largest) && b.index < a.index);
        if b_wins { b } else { a }
    }
}

macro_rules! wide {
    ($T:ident, $dtype:ident, $low:expr, $high:expr, $nan:expr) => {
        impl Wide for $T {
            const DTYPE: DType = DType::$dtype;
            const ZERO: $T = 0 as $T;

            fn first(fold: Fold) -> $T {
                match fold {
                    Fold::Sum | Fold::SumSq | Fold::SumAbs | Fold::Any => 0 as $T,
                    Fold::Prod | Fold::All => 1 as $T,
                    Fold::Max | Fold::ArgMax => $low,
                    Fold::Min | Fold::ArgMin => $high,
                }
            }

            #[inline(always)]
            fn join(fold: Fold, a: $T, b: $T) -> $T {
                match fold {
                    Fold::Sum | Fold::SumSq | Fold::SumAbs => <$T as Steps>::sum(a, b, 0 as $T),
                    Fold::Prod => <$T as Steps>::prod(a, b, 0 as $T),
                    Fold::Max | Fold::ArgMax => <$T as Steps>::max(a, b, 0 as $T),
                    Fold::Min | Fold::ArgMin => <$T as Steps>::min(a, b, 0 as $T),
                    Fold::All => <$T as Steps>::all(a, b, 0 as $T),
                    Fold::Any => <$T as Steps>::any(a, b, 0 as $T),
                }
            }

            #[inline(always)]
            fn beats(self, other: $T, largest: bool) -> bool {
                let nan: fn($T) -> bool = $nan;
                (if largest { self > other } else { self < other }) | (nan(self) & !nan(other))
            }

            fn over(self, divisor: f64, sqrt: bool) -> $T {
                let quotient = self as f64 / divisor;
                (if sqrt { quotient.sqrt() } else { quotient }) as $T
            }
        }
    };
}
wide!(f64, F64, f64::NEG_INFINITY, f64::INFINITY, |x| x.is_nan());
wide!(i64, I64, i64::MIN, i64::MAX, |_| false);

/// One step of every fold: the value so far, the next element, and for sums of squares what to subtract from
/// it.
trait Steps: Wide {
    fn sum(a: Self, x: Self, shift: Self) -> Self;
    fn prod(a: Self, x: Self, shift: Self) -> Self;
    fn max(a: Self, x: Self, shift: Self) -> Self;
    fn min(a: Self, x: Self, shift: Self) -> Self;
    fn all(a: Self, x: Self, shift: Self) -> Self;
    fn any(a: Self, x: Self, shift: Self) -> Self;
    fn sum_sq(a: Self, x: Self, shift: Self) -> Self;
    fn sum_abs(a: Self, x: Self, shift: Self) -> Self;
}

macro_rules! steps {
    ($T:ident: $($name:ident |$a:ident, $x:ident, $shift:ident| $value:expr;)*) => {
        impl Steps for $T {
            $(#[inline(always)]
            fn $name($a: $T, $x: $T, $shift: $T) -> $T { $value })*
        }
    };
}
steps! { f64:
    sum |a, x, _s| a + x;
    prod |a, x, _s| a * x;
    max |a, x, _s| if (x > a) | x.is_nan() { x } else { a };
    min |a, x, _s| if (x < a) | x.is_nan() { x } else { a };
    all |a, x, _s| if x == 0.0 { 0.0 } else { a };
    any |a, x, _s| if x == 0.0 { a } else { 1.0 };
    sum_sq |a, x, s| a + (x - s) * (x - s);
    sum_abs |a, x, _s| a + x.abs();
}
steps! { i64:
    sum |a, x, _s| a.wrapping_add(x);
    prod |a, x, _s| a.wrapping_mul(x);
    max |a, x, _s| if x > a { x } else { a };
    min |a, x, _s| if x < a { x } else { a };
    all |a, x, _s| if x == 0 { 0 } else { a };
    any |a, x, _s| if x == 0 { a } else { 1 };
    sum_sq |a, x, s| a.wrapping_add(x.wrapping_sub(s).wrapping_mul(x.wrapping_sub(s)));
    sum_abs |a, x, _s| a.wrapping_add(x.wrapping_abs());
}

/// What `f32` elements do among themselves before they are widened: one rounding in four additions costs no
/// more than the rounding of the result, and three conversions less.
trait Pairs: Copy {
    fn pair_sum(a: Self, b: Self) -> Self;
    fn pair_max(a: Self, b: Self) -> Self;
    fn pair_min(a: Self, b: Self) -> Self;
}

macro_rules! pairs {
    ($($T:ident, $sum:expr, $nan:expr);*) => { $(impl Pairs for $T {
        #[inline(always)]
        fn pair_sum(a: $T, b: $T) -> $T { let sum: fn($T, $T) -> $T = $sum; sum(a, b) }
        #[inline(always)]
        fn pair_max(a: $T, b: $T) -> $T {
            let nan: fn($T) -> bool = $nan;
            if (b > a) | nan(b) { b } else { a }
        }
        #[inline(always)]
        fn pair_min(a: $T, b: $T) -> $T {
            let nan: fn($T) -> bool = $nan;
            if (b < a) | nan(b) { b } else { a }
        }
    })* };
}
pairs!(f32, |a, b| a + b, f32::is_nan; f64, |a, b| a + b, f64::is_nan; i64, i64::wrapping_add, |_| false);

/// A type that elements are read as.
pub trait Source: Copy + Send + Sync + 'static {
    type Wide: Wide;
    const DTYPE: DType;
    /// Folds each of `tile.values.len()` rows of `n` elements, `stride` apart.
    unsafe fn rows(
        fold: Fold,
        tile: &mut Columns<Self::Wide>,
        x: *const Self,
        n: usize,
        stride: usize,
        index: i64,
    );
    /// Folds `rows` rows, `stride` apart, into a tile of columns.
    unsafe fn columns(
        fold: Fold,
        tile: &mut Columns<Self::Wide>,
        x: *const Self,
        rows: usize,
        stride: usize,
        index: i64,
    );
}

/// Folds side by side. The indices count for `ArgMax` and `ArgMin`; `shift`, unless empty, for sums of
/// squares.
pub struct Columns<'a, A> {
    pub values: &'a mut [A],
    pub indices: &'a mut [i64],
    pub shift: &'a [A],
}

const LANES: usize = 32;
/// So many elements before a sum needs them, memory is asked for them.
const AHEAD: usize = 4096;

/// Folds `n` elements. `four` is what four of them come to before they are widened, where that is the same.
#[inline(always)]
unsafe fn row<S: Copy, A: Wide>(
    fold: Fold,
    x: *const S,
    n: usize,
    shift: A,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
    four: Option<impl Fn(S, S) -> S>,
) -> A {
    // SAFETY: the caller's n elements.
    let at = |i: usize| unsafe { *x.add(i) };
    let mut lanes = [A::first(fold); LANES];
    let mut i = 0;
    if let Some(pair) = four {
        while i + 4 * LANES <= n {
            fetch::<S, { 4 * LANES }>(x.wrapping_add(i + AHEAD));
            for j in 0..LANES {
                let part = |k: usize| at(i + k * LANES + j);
                let (low, high) = (pair(part(0), part(1)), pair(part(2), part(3)));
                lanes[j] = step(lanes[j], wide(pair(low, high)), shift);
            }
            i += 4 * LANES;
        }
    }
    while i + LANES <= n {
        for j in 0..LANES {
            lanes[j] = step(lanes[j], wide(at(i + j)), shift);
        }
        i += LANES;
    }
    let mut rest = A::first(fold);
    if i > 0 {
        let join = |a, b| A::join(fold, a, b);
        let mut eight = [A::first(fold); 8];
        for j in 0..8 {
            eight[j] = join(join(lanes[j], lanes[j + 8]), join(lanes[j + 16], lanes[j + 24]));
        }
        let [a, b, c, d, e, f, g, h] = eight;
        rest = join(join(join(a, e), join(b, f)), join(join(c, g), join(d, h)));
    }
    while i < n {
        rest = step(rest, wide(at(i)), shift);
        i += 1;
    }
    rest
}

/// Folds `n` elements as rows of some columns: for steps that compilers turn into vectors only in loops whose length they
/// do not know.
#[inline(always)]
unsafe fn in_columns<S: Copy, A: Copy>(
    first: A,
    x: *const S,
    n: usize,
    step: impl Fn(A, S) -> A,
    join: impl Fn(A, A) -> A,
) -> A {
    let mut values = [first; 2 * LANES];
    let mut width = (n / 8).clamp(1, 2 * LANES).next_power_of_two().min(2 * LANES);
    let row = &mut values[..width];
    // SAFETY: the caller's n elements.
    unsafe {
        for start in (0..n / width).map(|i| i * width) {
            for j in 0..width {
                row[j] = step(row[j], *x.add(start + j));
            }
        }
        for i in n - n % width..n {
            row[0] = step(row[0], *x.add(i));
        }
    }
    while width > 1 {
        width /= 2;
        let (low, high) = values[..2 * width].split_at_mut(width);
        for j in 0..width {
            low[j] = join(low[j], high[j]);
        }
    }
    values[0]
}

/// The same for a fold whose values are joined as its elements are.
#[inline(always)]
unsafe fn steps<S: Copy, A: Wide>(
    fold: Fold,
    x: *const S,
    n: usize,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
) -> A {
    // SAFETY: the caller's n elements.
    unsafe { in_columns(A::first(fold), x, n, |a, x| step(a, wide(x), A::ZERO), |a, b| step(a, b, A::ZERO)) }
}

/// Finds the best value of a chunk at full speed, and looks for its place only when it is the best so far.
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
    let fold = if largest { Fold::Max } else { Fold::Min };
    let mut best = Partial { value: A::first(fold), index };
    let mut done = 0;
    while done < n {
        let len = CHUNK.min(n - done);
        let start = x.wrapping_add(done);
        let value = best_of(start, len);
        if value.beats(best.value, largest) {
            // SAFETY: the caller's n elements.
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
            best = Partial { value, index: index + (done + i) as i64 };
        }
        done += len;
    }
    best
}

#[inline(always)]
unsafe fn columns<S: Copy, A: Wide>(
    tile: &mut Columns<A>,
    x: *const S,
    rows: usize,
    stride: usize,
    wide: impl Fn(S) -> A,
    step: impl Fn(A, A, A) -> A,
    four: Option<impl Fn(S, S) -> S>,
) {
    let width = tile.values.len();
    let values = &mut *tile.values;
    let mut row = 0;
    // SAFETY: the caller's rows are as wide as the tile.
    unsafe {
        if let Some(pair) = four {
            while row + 4 <= rows {
                let x = x.add(row * stride);
                for j in 0..width {
                    let low = pair(*x.add(j), *x.add(stride + j));
                    let high = pair(*x.add(2 * stride + j), *x.add(3 * stride + j));
                    values[j] = step(values[j], wide(pair(low, high)), A::ZERO);
                }
                row += 4;
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

macro_rules! source {
    ($S:ident, $dtype:ident, $A:ident, $low:expr, $high:expr, $rows:ident, $columns:ident) => {
        simd_fn! {
            unsafe fn $rows(
                fold: Fold,
                tile: &mut Columns<$A>,
                x: *const $S,
                n: usize,
                stride: usize,
                index: i64,
            ) {
                let wide = |x: $S| x as $A;
                let none = None::<fn($S, $S) -> $S>;
                #[inline(always)]
                unsafe fn largest(x: *const $S, n: usize) -> $A {
                    // SAFETY: the caller's n elements, here and below.
                    unsafe { in_columns($low, x, n, $S::pair_max, $S::pair_max) as $A }
                }
                #[inline(always)]
                unsafe fn smallest(x: *const $S, n: usize) -> $A {
                    // SAFETY: as above.
                    unsafe { in_columns($high, x, n, $S::pair_min, $S::pair_min) as $A }
                }
                for i in 0..tile.values.len() {
                    let x = x.add(i * stride);
                    let shift = if tile.shift.is_empty() { $A::ZERO } else { tile.shift[i] };
                    tile.values[i] = match fold {
                        Fold::Sum => {
                            row(Fold::Sum, x, n, shift, wide, <$A as Steps>::sum, Some($S::pair_sum))
                        }
                        Fold::Prod => steps(Fold::Prod, x, n, wide, <$A as Steps>::prod),
                        Fold::Max => largest(x, n),
                        Fold::Min => smallest(x, n),
                        Fold::All => steps(Fold::All, x, n, wide, <$A as Steps>::all),
                        Fold::Any => steps(Fold::Any, x, n, wide, <$A as Steps>::any),
                        Fold::SumSq => row(Fold::SumSq, x, n, shift, wide, <$A as Steps>::sum_sq, none),
                        Fold::SumAbs => row(Fold::SumAbs, x, n, shift, wide, <$A as Steps>::sum_abs, none),
                        Fold::ArgMax | Fold::ArgMin => {
                            let best = if fold == Fold::ArgMax {
                                row_index(true, x, n, index, wide, |x, n| largest(x, n))
                            } else {
                                row_index(false, x, n, index, wide, |x, n| smallest(x, n))
                            };
                            tile.indices[i] = best.index;
                            best.value
                        }
                    };
                }
            }
        }
        simd_fn! {
            unsafe fn $columns(
                fold: Fold,
                tile: &mut Columns<$A>,
                x: *const $S,
                rows: usize,
                stride: usize,
                index: i64,
            ) {
                let wide = |x: $S| x as $A;
                let none = None::<fn($S, $S) -> $S>;
                match fold {
                    Fold::Sum => columns(tile, x, rows, stride, wide, <$A as Steps>::sum, Some($S::pair_sum)),
                    Fold::Prod => columns(tile, x, rows, stride, wide, <$A as Steps>::prod, none),
                    Fold::Max => columns(tile, x, rows, stride, wide, <$A as Steps>::max, Some($S::pair_max)),
                    Fold::Min => columns(tile, x, rows, stride, wide, <$A as Steps>::min, Some($S::pair_min)),
                    Fold::All => columns(tile, x, rows, stride, wide, <$A as Steps>::all, none),
                    Fold::Any => columns(tile, x, rows, stride, wide, <$A as Steps>::any, none),
                    Fold::SumSq => columns(tile, x, rows, stride, wide, <$A as Steps>::sum_sq, none),
                    Fold::SumAbs => columns(tile, x, rows, stride, wide, <$A as Steps>::sum_abs, none),
                    Fold::ArgMax => columns_index(true, tile, x, rows, stride, index, wide),
                    Fold::ArgMin => columns_index(false, tile, x, rows, stride, index, wide),
                }
            }
        }
        impl Source for $S {
            type Wide = $A;
            const DTYPE: DType = DType::$dtype;
            unsafe fn rows(
                fold: Fold,
                tile: &mut Columns<$A>,
                x: *const $S,
                n: usize,
                stride: usize,
                index: i64,
            ) {
                // SAFETY: handed on.
                unsafe { $rows(fold, tile, x, n, stride, index) }
            }
            unsafe fn columns(
                fold: Fold,
                tile: &mut Columns<$A>,
                x: *const $S,
                rows: usize,
                stride: usize,
                index: i64,
            ) {
                // SAFETY: handed on.
                unsafe { $columns(fold, tile, x, rows, stride, index) }
            }
        }
    };
}
source!(f32, F32, f64, f32::NEG_INFINITY, f32::INFINITY, rows_f32, columns_f32);
source!(f64, F64, f64, f64::NEG_INFINITY, f64::INFINITY, rows_f64, columns_f64);
source!(i64, I64, i64, i64::MIN, i64::MAX, rows_i64, columns_i64);
