//! The functions of f32 and f64 for kernels that are generic over them.

use crate::cpu::float::Float;
use crate::cpu::lanes;

macro_rules! float {
    ($T:ident: $($std:ident($($x:ident),*))*; $($math:ident = $as:ident),*) => {
        impl Float for $T {
            const ZERO: $T = 0.0;
            const ONE: $T = 1.0;
            const INFINITY: $T = $T::INFINITY;
            const NEG_INFINITY: $T = $T::NEG_INFINITY;
            #[inline(always)]
            fn and_bits(self, other: $T) -> $T { $T::from_bits(self.to_bits() & other.to_bits()) }
            #[inline(always)]
            fn without_bits(self, other: $T) -> $T { $T::from_bits(self.to_bits() & !other.to_bits()) }
            #[inline(always)]
            fn or_bits(self, other: $T) -> $T { $T::from_bits(self.to_bits() | other.to_bits()) }
            #[inline(always)]
            fn is_nan(self) -> bool { $T::is_nan(self) }
            $(#[inline(always)]
            fn $std(self $(, $x: $T)*) -> $T { $T::$std(self $(, $x)*) })*
            $(#[inline(always)]
            fn $math(self) -> $T { super::$T::$as(self) })*
            #[inline(always)]
            fn multiply_add(self, by: $T, more: $T) -> $T { super::$T::multiply_add(self, by, more) }
            #[inline(always)]
            fn std_exp(self) -> $T { $T::exp(self) }
            #[inline(always)]
            fn std_ln(self) -> $T { $T::ln(self) }
            #[inline(always)]
            fn sum_lanes<const N: usize>(lanes: &[$T; N]) -> $T { lanes::$T::total(lanes) }
            #[inline(always)]
            fn max_lanes<const N: usize>(lanes: &[$T; N]) -> $T { lanes::$T::most(lanes) }
        }
    };
    ($($T:ident),*) => { $(float! {
        $T: abs() floor() ceil() trunc() copysign(sign) round_ties_even() sqrt() mul_add(by, more) powf(power);
        exp = exp, exp_below = exp_below, ln = log, sigmoid = sigmoid, tanh = tanh
    })* };
}
float!(f32, f64);
