//! The steps of reductions: with one element, or with the values of two partial reductions. Floats are reduced in f64
//! and integers in i64, so results are as exact as their type allows in any order of summation.

use crate::base::{DType, Reduction};

/// The value of a partial reduction, and, for `ArgMax` and `ArgMin`, the index where it was found.
#[derive(Clone, Copy, Debug)]
pub struct Partial<A> {
    pub value: A,
    pub index: i64,
}

/// The two types that reductions compute in.
pub trait Wide: Copy + Send + Sync + PartialEq + 'static {
    const DTYPE: DType;
    const ZERO: Self;
    /// The initial value.
    fn first(reduction: Reduction) -> Self;
    /// Combines the values of two reductions over different elements.
    fn join(reduction: Reduction, a: Self, b: Self) -> Self;
    /// Returns true if `self` wins over `other` in an `ArgMax` or `ArgMin`.
    fn beats(self, other: Self, largest: bool) -> bool;
    /// Divides, and takes the square root if `sqrt` is set; integers have no such results.
    fn over(self, divisor: f64, sqrt: bool) -> Self;
}

impl<A: Wide> Partial<A> {
    #[inline(always)]
    pub fn join(reduction: Reduction, a: Partial<A>, b: Partial<A>) -> Partial<A> {
        if !reduction.is_arg() {
            return Partial { value: A::join(reduction, a.value, b.value), index: 0 };
        }
        let largest = reduction == Reduction::ArgMax;
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

            #[inline(always)]
            fn first(reduction: Reduction) -> $T {
                match reduction {
                    Reduction::Sum | Reduction::SumSq | Reduction::SumAbs | Reduction::Any => 0 as $T,
                    Reduction::Prod | Reduction::All => 1 as $T,
                    Reduction::Max | Reduction::ArgMax => $low,
                    Reduction::Min | Reduction::ArgMin => $high,
                }
            }

            #[inline(always)]
            fn join(reduction: Reduction, a: $T, b: $T) -> $T {
                match reduction {
                    Reduction::Sum | Reduction::SumSq | Reduction::SumAbs => {
                        <$T as Steps>::sum(a, b, 0 as $T)
                    }
                    Reduction::Prod => <$T as Steps>::prod(a, b, 0 as $T),
                    Reduction::Max | Reduction::ArgMax => <$T as Steps>::max(a, b, 0 as $T),
                    Reduction::Min | Reduction::ArgMin => <$T as Steps>::min(a, b, 0 as $T),
                    Reduction::All => <$T as Steps>::all(a, b, 0 as $T),
                    Reduction::Any => <$T as Steps>::any(a, b, 0 as $T),
                }
            }

            #[inline(always)]
            fn beats(self, other: $T, largest: bool) -> bool {
                let nan: fn($T) -> bool = $nan;
                (if largest { self > other } else { self < other }) | (nan(self) & !nan(other))
            }

            #[inline(always)]
            fn over(self, divisor: f64, sqrt: bool) -> $T {
                let quotient = self as f64 / divisor;
                (if sqrt { quotient.sqrt() } else { quotient }) as $T
            }
        }
    };
}
wide!(f64, F64, f64::NEG_INFINITY, f64::INFINITY, |x| x.is_nan());
wide!(i64, I64, i64::MIN, i64::MAX, |_| false);

/// One step of every reduction: the value so far, the next element, and, for sums of squares, the number to subtract
/// from it.
pub trait Steps: Wide {
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
    all |a, x, _s| a & i64::from(x != 0);
    any |a, x, _s| a | i64::from(x != 0);
    sum_sq |a, x, s| a.wrapping_add(x.wrapping_sub(s).wrapping_mul(x.wrapping_sub(s)));
    sum_abs |a, x, _s| a.wrapping_add(x.wrapping_abs());
}

/// Operations on `f32` elements before they are widened. One rounding in four additions costs no more precision than
/// rounding the result, and saves three conversions.
pub trait Pairs: Copy {
    fn pair_sum(a: Self, b: Self) -> Self;
    fn pair_max(a: Self, b: Self) -> Self;
    fn pair_min(a: Self, b: Self) -> Self;
}

macro_rules! pairs {
    ($($T:ident, $sum:expr, $nan:expr);*) => { $(impl Pairs for $T {
        #[inline(always)]
        fn pair_sum(a: $T, b: $T) -> $T { let sum: fn($T, $T) -> $T = $sum; sum(a, b) }
        // Compilers vectorize this form; of zeros with different signs, the first wins.
        #[inline(always)]
        fn pair_max(a: $T, b: $T) -> $T {
            let nan: fn($T) -> bool = $nan;
            let larger = if b > a { b } else { a };
            if nan(b) { b } else { larger }
        }
        #[inline(always)]
        fn pair_min(a: $T, b: $T) -> $T {
            let nan: fn($T) -> bool = $nan;
            let smaller = if b < a { b } else { a };
            if nan(b) { b } else { smaller }
        }
    })* };
}
pairs!(f32, |a, b| a + b, f32::is_nan; f64, |a, b| a + b, f64::is_nan; i64, i64::wrapping_add, |_| false);
