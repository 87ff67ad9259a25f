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
    /// Returns true if `self` wins over `other` in an `ArgMax` or `ArgMin`.
    fn beats(self, other: Self, largest: bool) -> bool;
    /// Divides, and takes the square root if `sqrt` is set; integers have no such results.
    fn over(self, divisor: f64, sqrt: bool) -> Self;

    // One step of every reduction: the value so far, the next element, and, for sums of squares, the number to subtract
    // from it.
    fn sum(a: Self, x: Self, shift: Self) -> Self;
    fn prod(a: Self, x: Self, shift: Self) -> Self;
    fn max(a: Self, x: Self, shift: Self) -> Self;
    fn min(a: Self, x: Self, shift: Self) -> Self;
    fn all(a: Self, x: Self, shift: Self) -> Self;
    fn any(a: Self, x: Self, shift: Self) -> Self;
    fn sum_sq(a: Self, x: Self, shift: Self) -> Self;
    fn sum_abs(a: Self, x: Self, shift: Self) -> Self;

    /// Combines the values of two reductions over different elements.
    #[inline(always)]
    fn join(reduction: Reduction, a: Self, b: Self) -> Self {
        match reduction {
            Reduction::Sum | Reduction::SumSq | Reduction::SumAbs => Self::sum(a, b, Self::ZERO),
            Reduction::Prod => Self::prod(a, b, Self::ZERO),
            Reduction::Max | Reduction::ArgMax => Self::max(a, b, Self::ZERO),
            Reduction::Min | Reduction::ArgMin => Self::min(a, b, Self::ZERO),
            Reduction::All => Self::all(a, b, Self::ZERO),
            Reduction::Any => Self::any(a, b, Self::ZERO),
        }
    }
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
    ($T:ident, $dtype:ident, $low:expr, $high:expr, |$n:ident| $nan:expr;
     $($name:ident |$a:ident, $x:ident, $shift:ident| $value:expr;)*) => {
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
            fn beats(self, other: $T, largest: bool) -> bool {
                let nan = |$n: $T| $nan;
                (if largest { self > other } else { self < other }) | (nan(self) & !nan(other))
            }

            #[inline(always)]
            fn over(self, divisor: f64, sqrt: bool) -> $T {
                let quotient = self as f64 / divisor;
                (if sqrt { quotient.sqrt() } else { quotient }) as $T
            }

            $(#[inline(always)]
            fn $name($a: $T, $x: $T, $shift: $T) -> $T { $value })*
        }
    };
}
wide! { f64, F64, f64::NEG_INFINITY, f64::INFINITY, |x| x.is_nan();
    sum |a, x, _s| a + x;
    prod |a, x, _s| a * x;
    max |a, x, _s| if (x > a) | x.is_nan() { x } else { a };
    min |a, x, _s| if (x < a) | x.is_nan() { x } else { a };
    all |a, x, _s| if x == 0.0 { 0.0 } else { a };
    any |a, x, _s| if x == 0.0 { a } else { 1.0 };
    sum_sq |a, x, s| a + (x - s) * (x - s);
    sum_abs |a, x, _s| a + x.abs();
}
wide! { i64, I64, i64::MIN, i64::MAX, |_x| false;
    sum |a, x, _s| a.wrapping_add(x);
    prod |a, x, _s| a.wrapping_mul(x);
    max |a, x, _s| if x > a { x } else { a };
    min |a, x, _s| if x < a { x } else { a };
    all |a, x, _s| a & i64::from(x != 0);
    any |a, x, _s| a | i64::from(x != 0);
    sum_sq |a, x, s| a.wrapping_add(x.wrapping_sub(s).wrapping_mul(x.wrapping_sub(s)));
    sum_abs |a, x, _s| a.wrapping_add(x.wrapping_abs());
}
