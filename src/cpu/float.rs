//! The types that float kernels compute in, f32 and f64, as generic code sees them.

use super::element::Element;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

/// A float type that kernels compute in. `exp`, `ln`, `sigmoid` and `tanh` are those of `cpu::math`, which loops
/// vectorize and which have the same bits on every machine; `std_exp`, `std_ln` and `powf` are the standard library's.
pub trait Float:
    Element
    + PartialOrd
    + Default
    + Into<f64>
    + Sum
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    /// The bits that both numbers have.
    fn and_bits(self, other: Self) -> Self;
    /// The bits of `self` that `other` does not have.
    fn without_bits(self, other: Self) -> Self;
    /// The bits that either number has.
    fn or_bits(self, other: Self) -> Self;

    fn is_nan(self) -> bool;
    fn abs(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn round_ties_even(self) -> Self;
    fn sqrt(self) -> Self;
    /// `self * by + more`, rounded once.
    fn mul_add(self, by: Self, more: Self) -> Self;
    /// `self * by + more` as in formulas: rounded once in f32, twice in f64, as on GPUs.
    fn multiply_add(self, by: Self, more: Self) -> Self;
    fn exp(self) -> Self;
    /// `exp` of numbers up to 0.
    fn exp_below(self) -> Self;
    fn ln(self) -> Self;
    fn sigmoid(self) -> Self;
    fn tanh(self) -> Self;
    fn std_exp(self) -> Self;
    fn std_ln(self) -> Self;
    fn powf(self, power: Self) -> Self;

    /// The sum of lanes, added by halves.
    fn sum_lanes<const N: usize>(lanes: &[Self; N]) -> Self;
    /// The maximum of lanes. It need not be NaN if a lane is.
    fn max_lanes<const N: usize>(lanes: &[Self; N]) -> Self;
}

/// Evaluates a result in which `$T` names the type of a float dtype that kernels compute in; other dtypes have no
/// kernel of `$op`.
macro_rules! by_float {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::base::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::base::DType::F64 => {
                type $T = f64;
                $body
            }
            dtype => Err($crate::base::Fault::NoKernel { op: $op, dtype }.into()),
        }
    };
}
pub(crate) use by_float;
