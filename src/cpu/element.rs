//! Rust types of the dtypes, for kernels that are generic over them.

use crate::base::{DType, Error, Fault, Result, Strided};
use half::{bf16, f16};

/// A boolean as stored in memory: one byte, 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct Bit(pub u8);

/// A complex number as stored in memory.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
pub struct Complex<F> {
    pub re: F,
    pub im: F,
}

/// The Rust type of a dtype: how its values widen to the types that kernels compute in, and how results are narrowed
/// again (to halves by way of f32, as in PyTorch).
pub trait Element: Copy + Send + Sync + 'static {
    const DTYPE: DType;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    fn from_f64(value: f64) -> Self;
    fn from_i64(value: i64) -> Self;
    fn to_f32(self) -> f32;
    fn from_f32(value: f32) -> Self;
    #[inline(always)]
    fn to_complex(self) -> Complex<f64> {
        Complex { re: self.to_f64(), im: 0.0 }
    }
    #[inline(always)]
    fn from_complex(value: Complex<f64>) -> Self {
        Self::from_f64(value.re)
    }
    /// Returns true if `self` sorts before `other`; NaN is greater than every number.
    fn less(self, other: Self) -> bool;
    /// The sum. Integers wrap; for booleans it is `or`.
    fn plus(self, other: Self) -> Self;
    /// The product. Integers wrap; for booleans it is `and`.
    fn times(self, other: Self) -> Self;
    /// The maximum; NaN if either is.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self.less(other) { other } else { self }
    }
    /// The minimum; NaN if either is.
    fn smaller(self, other: Self) -> Self;
}

macro_rules! element {
    ($($ty:ty: $dtype:ident),*) => { $(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn from_f64(value: f64) -> $ty { element!(@from_f64 $dtype, value, $ty) }
            #[inline(always)]
            fn from_i64(value: i64) -> $ty { value as $ty }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn from_f32(value: f32) -> $ty { Self::from_f64(value as f64) }
            #[inline(always)]
            #[allow(clippy::eq_op, reason = "the NaN test of the float instances")]
            fn less(self, other: $ty) -> bool { self < other || (other != other && self == self) }
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty { element!(@arith $dtype, self, other, +, wrapping_add) }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty { element!(@arith $dtype, self, other, *, wrapping_mul) }
            #[inline(always)]
            #[allow(clippy::eq_op, reason = "the NaN test of the float instances")]
            fn smaller(self, other: $ty) -> $ty { if other < self || other != other { other } else { self } }
        }
    )* };
    (@arith F32, $a:expr, $b:expr, $op:tt, $wrapping:ident) => { $a $op $b };
    (@arith F64, $a:expr, $b:expr, $op:tt, $wrapping:ident) => { $a $op $b };
    (@arith $int:ident, $a:expr, $b:expr, $op:tt, $wrapping:ident) => { $a.$wrapping($b) };
    (@from_f64 F32, $value:expr, $ty:ty) => { $value as f32 };
    (@from_f64 F64, $value:expr, $ty:ty) => { $value };
    // Integers narrow by wrapping, as in PyTorch.
    (@from_f64 $other:ident, $value:expr, $ty:ty) => { $value as i64 as $ty };
}
element!(u8: U8, i8: I8, i16: I16, i32: I32, i64: I64, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64);

macro_rules! half_element {
    ($($ty:ident: $dtype:ident, $widen:path);*) => { $(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from($widen(self)) }
            #[inline(always)]
            fn to_i64(self) -> i64 { $widen(self) as i64 }
            #[inline(always)]
            fn from_f64(value: f64) -> $ty { $ty::from_f32(value as f32) }
            #[inline(always)]
            fn from_i64(value: i64) -> $ty { $ty::from_f32(value as f32) }
            #[inline(always)]
            fn to_f32(self) -> f32 { $widen(self) }
            #[inline(always)]
            fn from_f32(value: f32) -> $ty { $ty::from_f32(value) }
            #[inline(always)]
            fn less(self, other: $ty) -> bool { $widen(self).less($widen(other)) }
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty { $ty::from_f32($widen(self) + $widen(other)) }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty { $ty::from_f32($widen(self) * $widen(other)) }
            #[inline(always)]
            fn smaller(self, other: $ty) -> $ty { $ty::from_f32($widen(self).smaller($widen(other))) }
        }
    )* };
}
half_element!(f16: F16, widen_f16; bf16: BF16, widen_bf16);

impl Element for Bit {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.0)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Bit {
        Bit(u8::from(value != 0.0))
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Bit {
        Bit(u8::from(value != 0))
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(self.0)
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Bit {
        Bit(u8::from(value != 0.0))
    }
    #[inline(always)]
    fn less(self, other: Bit) -> bool {
        self.0 < other.0
    }
    #[inline(always)]
    fn plus(self, other: Bit) -> Bit {
        Bit(self.0 | other.0)
    }
    #[inline(always)]
    fn times(self, other: Bit) -> Bit {
        Bit(self.0 & other.0)
    }
    #[inline(always)]
    fn smaller(self, other: Bit) -> Bit {
        self.times(other)
    }
}

/// Complex numbers have no order; a conversion to a real number takes the real part.
macro_rules! complex_element {
    ($($part:ty: $dtype:ident),*) => { $(
        impl Element for Complex<$part> {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 { self.re as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self.re as i64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Complex { re: value as $part, im: 0.0 } }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { Complex { re: value as $part, im: 0.0 } }
            #[inline(always)]
            fn to_f32(self) -> f32 { self.re as f32 }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { Self::from_f64(value as f64) }
            #[inline(always)]
            fn to_complex(self) -> Complex<f64> { Complex { re: self.re as f64, im: self.im as f64 } }
            #[inline(always)]
            fn from_complex(value: Complex<f64>) -> Self { Complex { re: value.re as $part, im: value.im as $part } }
            #[inline(always)]
            fn less(self, _other: Self) -> bool { false }
            #[inline(always)]
            fn plus(self, other: Self) -> Self { Complex { re: self.re + other.re, im: self.im + other.im } }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
            }
            #[inline(always)]
            fn smaller(self, _other: Self) -> Self { self }
        }
    )* };
}
complex_element!(f32: C64, f64: C128);

#[inline(always)]
fn widen_bf16(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// Written without a branch, so that loops vectorize. A multiplication rebases the exponent, which also gives
/// subnormals their value; infinities and NaN get the largest exponent explicitly.
#[inline(always)]
fn widen_f16(x: f16) -> f32 {
    let bits = u32::from(x.to_bits());
    let magnitude = (bits & 0x7fff) << 13;
    let rebased = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = if magnitude >= 0x0f80_0000 { 0x7f80_0000 } else { 0 };
    f32::from_bits(rebased | special | ((bits & 0x8000) << 16))
}

/// Evaluates an expression in which `$T` names the Rust type of a dtype.
macro_rules! by_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::cpu::element::by_dtype!(
            @arms $dtype, $T => $body,
            [Bool: $crate::cpu::element::Bit, U8: u8, I8: i8, I16: i16, I32: i32, I64: i64,
             F16: half::f16, BF16: half::bf16, F32: f32, F64: f64,
             C64: $crate::cpu::element::Complex<f32>, C128: $crate::cpu::element::Complex<f64>]
        )
    };
    (@arms $dtype:expr, $T:ident => $body:expr, [$($name:ident: $ty:ty),*]) => {
        match $dtype {
            $( $crate::base::DType::$name => { type $T = $ty; $body } )*
            other => $crate::cpu::element::no_element(other),
        }
    };
}
pub(crate) use by_dtype;

/// Dtypes that are only stored never reach a kernel: `Body::host` refuses them.
#[cold]
pub(crate) fn no_element(dtype: DType) -> ! {
    unreachable!("a kernel got elements of {}, which are only stored", dtype.name())
}

/// The address of an element of a view, as a type.
pub fn at<T>(view: &Strided, offset: usize) -> *mut T {
    view.ptr.cast::<T>().wrapping_add(offset)
}

/// Scratch memory that a kernel fills itself. If it cannot be allocated, the result is an error rather than an abort.
pub fn scratch<T: Copy>(n: usize, zero: T) -> Result<Vec<T>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(n).map_err(|_| {
        let bytes = n.saturating_mul(size_of::<T>());
        Error::from(Fault::OutOfMemory {
            message: format!("can't allocate memory: you tried to allocate {bytes} bytes."),
        })
    })?;
    memory.resize(n, zero);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_as_the_crate_says() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (widen_f16(f16::from_bits(bits)), f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{bits:x}");
            let (ours, theirs) = (widen_bf16(bf16::from_bits(bits)), bf16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{bits:x}");
        }
    }
}
