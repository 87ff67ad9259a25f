//! Converts contiguous runs of elements from one dtype to another. There are no loops for all hundred pairs: every
//! dtype converts to and from the types that kernels compute in, and other pairs go through one of these.

use super::tile::Tile;
use crate::base::DType;
use crate::base::float8::{E4M3, E5M2};
use crate::cpu::simd::{self, simd_fn};
use half::{bf16, f16};
use std::mem::MaybeUninit;

/// Converts `n` contiguous elements; the two runs do not overlap.
pub type Convert = unsafe fn(n: usize, from: *const u8, to: *mut u8);

/// A stored bool: one byte, 0 or 1.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Bit(u8);

/// The conversions of an element type. Floats that do not fit an integer give the same as on x86, as in PyTorch.
trait Castable: Copy {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    fn from_f32(x: f32) -> Self;
    fn from_f64(x: f64) -> Self;
    fn from_i64(x: i64) -> Self;
}

macro_rules! integer_element {
    ($($ty:ty, $via:ident);*) => { $(impl Castable for $ty {
        #[inline(always)]
        fn to_f32(self) -> f32 { self as f32 }
        #[inline(always)]
        fn to_f64(self) -> f64 { self as f64 }
        #[inline(always)]
        fn to_i64(self) -> i64 { self as i64 }
        #[inline(always)]
        fn from_f32(x: f32) -> Self { truncate::$via(x as f64) as Self }
        #[inline(always)]
        fn from_f64(x: f64) -> Self { truncate::$via(x) as Self }
        #[inline(always)]
        fn from_i64(x: i64) -> Self { x as Self }
    })* };
}
integer_element!(u8, i32; i8, i32; i16, i32; i32, i32; i64, i64; u16, i32; u32, u32; u64, u64);

/// Truncates a float to an integer; a float that does not fit becomes the smallest integer.
mod truncate {
    #[inline(always)]
    pub fn i32(x: f64) -> i32 {
        let fits = x > -2147483649.0 && x < 2147483648.0;
        // SAFETY: the operand is in range, because it is replaced if it does not fit.
        unsafe { (if fits { x } else { -2147483648.0 }).to_int_unchecked::<i32>() }
    }

    #[inline(always)]
    pub fn i64(x: f64) -> i64 {
        let fits = (-9223372036854775808.0..9223372036854775808.0).contains(&x);
        // SAFETY: as above.
        unsafe { (if fits { x } else { -9223372036854775808.0 }).to_int_unchecked::<i64>() }
    }

    /// Numbers of the upper half go through the lower one.
    #[inline(always)]
    pub fn u32(x: f64) -> u32 {
        let upper = x >= 2147483648.0;
        self::i32(if upper { x - 2147483648.0 } else { x }) as u32 ^ u32::from(upper) << 31
    }

    #[inline(always)]
    pub fn u64(x: f64) -> u64 {
        let upper = x >= 9223372036854775808.0;
        self::i64(if upper { x - 9223372036854775808.0 } else { x }) as u64 ^ u64::from(upper) << 63
    }
}

macro_rules! float_element {
    ($($ty:ty: |$x:ident| $to_f32:expr, $to_f64:expr;
        |$y:ident| $from_f32:expr, $from_f64:expr, $from_i64:expr);* $(;)?) => {
        $(impl Castable for $ty {
            #[inline(always)]
            fn to_f32(self) -> f32 { let $x = self; $to_f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { let $x = self; $to_f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { truncate::i64(self.to_f64()) }
            #[inline(always)]
            fn from_f32($y: f32) -> Self { $from_f32 }
            #[inline(always)]
            fn from_f64($y: f64) -> Self { $from_f64 }
            #[inline(always)]
            fn from_i64($y: i64) -> Self { $from_i64 }
        })*
    };
}
float_element! {
    f32: |x| x, x as f64; |y| y, y as f32, y as f32;
    f64: |x| x as f32, x; |y| y as f64, y, y as f64;
    f16: |x| f16_to_f32(x), f16_to_f32(x) as f64;
         |y| f32_to_f16(y), f32_to_f16(round_to_odd(y)), f32_to_f16(y as f32);
    bf16: |x| bf16_to_f32(x), bf16_to_f32(x) as f64;
          |y| f32_to_bf16(y), f32_to_bf16(round_to_odd(y)), f32_to_bf16(y as f32);
    E4M3: |x| E4M3::to_f32(x), E4M3::to_f32(x) as f64;
          |y| E4M3::from_f32(y), E4M3::from_f32(y as f32), E4M3::from_f32(y as f32);
    E5M2: |x| E5M2::to_f32(x), E5M2::to_f32(x) as f64;
          |y| E5M2::from_f32(y), E5M2::from_f32(y as f32), E5M2::from_f32(y as f32);
}

impl Castable for Bit {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.0 as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.0 as f64
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.0 as i64
    }
    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        Bit((x != 0.0) as u8)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Bit((x != 0.0) as u8)
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Self {
        Bit((x != 0) as u8)
    }
}

/// Rounds such that a second rounding, to a type with fewer bits, gives the same as a single rounding.
#[inline(always)]
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let inexact = near as f64 != x && near.is_finite();
    let beyond = (near as f64).abs() > x.abs();
    let toward_zero = near.to_bits().wrapping_sub((inexact && beyond) as u32);
    f32::from_bits(toward_zero | (inexact as u32))
}

#[inline(always)]
fn f16_to_f32(h: f16) -> f32 {
    let bits = h.to_bits() as u32;
    let magnitude = (bits & 0x7fff) << 13;
    // A product changes the bias of the exponent, which is also right for subnormal numbers.
    let finite = f32::from_bits(magnitude) * f32::from_bits((254 - 15) << 23);
    let special = magnitude | 0x7f80_0000;
    let value = if magnitude >= 0x0f80_0000 { special } else { finite.to_bits() };
    f32::from_bits(value | (bits & 0x8000) << 16)
}

#[inline(always)]
fn f32_to_f16(x: f32) -> f16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Normal results: changes the bias of the exponent, and adds half an ulp (minus a bit if the result is even) before
    // truncation.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // Subnormal results: adding 0.5 makes the hardware round at the right bit.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let value = if magnitude >= 143 << 23 { special } else { finite };
    f16::from_bits((sign | value) as u16)
}

#[inline(always)]
fn bf16_to_f32(h: bf16) -> f32 {
    f32::from_bits((h.to_bits() as u32) << 16)
}

#[inline(always)]
fn f32_to_bf16(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    bf16::from_bits((if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded }) as u16)
}

/// One loop, as a [`Convert`].
macro_rules! convert {
    ($from:ty => $to:ty, |$x:ident| $value:expr) => {{
        simd_fn! {
            unsafe fn each(from: *const $from, to: &mut [MaybeUninit<$to>]) {
                for i in 0..to.len() {
                    let $x = from.add(i).read();
                    to[i].write($value);
                }
            }
        }
        unsafe fn run(n: usize, from: *const u8, to: *mut u8) {
            // SAFETY: the contract of `Convert`.
            unsafe { each(from.cast(), std::slice::from_raw_parts_mut(to.cast(), n)) }
        }
        run as Convert
    }};
}

/// A conversion that is not compiled for each instruction set, for types whose speed matters less.
macro_rules! plain {
    ($from:ty => $to:ty, |$x:ident| $value:expr) => {{
        unsafe fn run(n: usize, from: *const u8, to: *mut u8) {
            for i in 0..n {
                // SAFETY: the contract of `Convert`.
                unsafe {
                    let $x = from.cast::<$from>().add(i).read();
                    to.cast::<$to>().add(i).write($value);
                }
            }
        }
        run as Convert
    }};
}

/// Converts complex numbers as twice as many real ones.
macro_rules! parts {
    ($from:ty => $to:ty) => {{
        unsafe fn run(n: usize, from: *const u8, to: *mut u8) {
            // SAFETY: the contract of `Convert`: n numbers are 2n real ones.
            unsafe { convert!($from => $to, |x| x as $to)(2 * n, from, to) }
        }
        run as Convert
    }};
}

/// Converts halves by a machine instruction, and the rest by a plain loop.
macro_rules! by_machine {
    ($some:path, $rest:expr, $from_size:literal, $to_size:literal) => {{
        unsafe fn run(n: usize, from: *const u8, to: *mut u8) {
            // SAFETY: the contract of `Convert`.
            unsafe {
                let done = $some(n, from, to);
                if done < n {
                    $rest(n - done, from.add($from_size * done), to.add($to_size * done));
                }
            }
        }
        run as Convert
    }};
}

/// Evaluates an expression with `$E` as the type of a real dtype, or another expression for complex dtypes.
macro_rules! for_dtype {
    ($dtype:expr, $E:ident => $value:expr, complex: $complex:expr) => {
        for_dtype!(@ $dtype, $E => $value, $complex,
            [Bool: Bit, U8: u8, I8: i8, I16: i16, I32: i32, I64: i64, U16: u16, U32: u32, U64: u64,
             F8E4M3: E4M3, F8E5M2: E5M2, F16: f16, BF16: bf16, F32: f32, F64: f64])
    };
    (@ $dtype:expr, $E:ident => $value:expr, $complex:expr, [$($name:ident: $ty:ty),*]) => {
        match $dtype {
            $(DType::$name => {
                type $E = $ty;
                $value
            })*
            DType::C32 | DType::C64 | DType::C128 => $complex,
        }
    };
}

/// Converts from any dtype to one that kernels compute in (F32, F64, I64, C64, C128).
pub fn widen(from: DType, compute: DType) -> Convert {
    match compute {
        DType::F32 if from == DType::F16 => {
            by_machine!(simd::widen_halves, convert!(f16 => f32, |x| f16_to_f32(x)), 2, 4)
        }
        DType::F32 => for_dtype!(from, E => convert!(E => f32, |x| <E as Castable>::to_f32(x)),
            complex: real_part(from, compute)),
        DType::F64 => for_dtype!(from, E => convert!(E => f64, |x| <E as Castable>::to_f64(x)),
            complex: real_part(from, compute)),
        DType::C64 => for_dtype!(from, E => plain!(E => [f32; 2], |x| [<E as Castable>::to_f32(x), 0.0]),
        complex: match from {
            DType::C32 => plain!([f16; 2] => [f32; 2], |x| x.map(f16_to_f32)),
            DType::C64 => plain!([f32; 2] => [f32; 2], |x| x),
            _ => parts!(f64 => f32),
        }),
        DType::C128 => for_dtype!(from, E => plain!(E => [f64; 2], |x| [<E as Castable>::to_f64(x), 0.0]),
        complex: match from {
            DType::C32 => plain!([f16; 2] => [f64; 2], |x| x.map(|part| f16_to_f32(part) as f64)),
            DType::C64 => parts!(f32 => f64),
            _ => plain!([f64; 2] => [f64; 2], |x| x),
        }),
        _ => for_dtype!(from, E => convert!(E => i64, |x| <E as Castable>::to_i64(x)),
            complex: real_part(from, compute)),
    }
}

/// Converts from a dtype that kernels compute in to any.
pub fn narrow(compute: DType, to: DType) -> Convert {
    match compute {
        DType::F32 if to == DType::F16 => {
            by_machine!(simd::narrow_to_halves, convert!(f32 => f16, |x| f32_to_f16(x)), 4, 2)
        }
        DType::F32 => for_dtype!(to, E => convert!(f32 => E, |x| <E as Castable>::from_f32(x)),
            complex: with_zero(compute, to)),
        DType::F64 => for_dtype!(to, E => convert!(f64 => E, |x| <E as Castable>::from_f64(x)),
            complex: with_zero(compute, to)),
        DType::C64 if to == DType::Bool => plain!([f32; 2] => u8, |x| u8::from(x[0] != 0.0 || x[1] != 0.0)),
        DType::C64 => for_dtype!(to, E => plain!([f32; 2] => E, |x| <E as Castable>::from_f32(x[0])),
        complex: match to {
            DType::C32 => plain!([f32; 2] => [f16; 2], |x| x.map(f32_to_f16)),
            DType::C64 => plain!([f32; 2] => [f32; 2], |x| x),
            _ => parts!(f32 => f64),
        }),
        DType::C128 if to == DType::Bool => plain!([f64; 2] => u8, |x| u8::from(x[0] != 0.0 || x[1] != 0.0)),
        DType::C128 => for_dtype!(to, E => plain!([f64; 2] => E, |x| <E as Castable>::from_f64(x[0])),
        complex: match to {
            DType::C32 => plain!([f64; 2] => [f16; 2], |x| x.map(|part| f32_to_f16(round_to_odd(part)))),
            DType::C64 => parts!(f64 => f32),
            _ => plain!([f64; 2] => [f64; 2], |x| x),
        }),
        _ => for_dtype!(to, E => convert!(i64 => E, |x| <E as Castable>::from_i64(x)),
            complex: with_zero(compute, to)),
    }
}

/// Takes the real parts of a complex dtype.
fn real_part(from: DType, compute: DType) -> Convert {
    match (from, compute) {
        (DType::C32, DType::F32) => plain!([f16; 2] => f32, |x| f16_to_f32(x[0])),
        (DType::C32, DType::F64) => plain!([f16; 2] => f64, |x| f16_to_f32(x[0]) as f64),
        (DType::C32, _) => plain!([f16; 2] => i64, |x| truncate::i64(f16_to_f32(x[0]) as f64)),
        (DType::C64, DType::F32) => plain!([f32; 2] => f32, |x| x[0]),
        (DType::C64, DType::F64) => plain!([f32; 2] => f64, |x| x[0] as f64),
        (DType::C64, _) => plain!([f32; 2] => i64, |x| truncate::i64(x[0] as f64)),
        (_, DType::F32) => plain!([f64; 2] => f32, |x| x[0] as f32),
        (_, DType::F64) => plain!([f64; 2] => f64, |x| x[0]),
        _ => plain!([f64; 2] => i64, |x| truncate::i64(x[0])),
    }
}

/// Makes complex numbers with these real parts.
fn with_zero(compute: DType, to: DType) -> Convert {
    match (compute, to) {
        (DType::F32, DType::C32) => plain!(f32 => [f16; 2], |x| [f32_to_f16(x), f16::ZERO]),
        (DType::F64, DType::C32) => plain!(f64 => [f16; 2], |x| [f32_to_f16(round_to_odd(x)), f16::ZERO]),
        (_, DType::C32) => plain!(i64 => [f16; 2], |x| [f32_to_f16(x as f32), f16::ZERO]),
        (DType::F32, DType::C64) => plain!(f32 => [f32; 2], |x| [x, 0.0]),
        (DType::F64, DType::C64) => plain!(f64 => [f32; 2], |x| [x as f32, 0.0]),
        (_, DType::C64) => plain!(i64 => [f32; 2], |x| [x as f32, 0.0]),
        (DType::F32, _) => plain!(f32 => [f64; 2], |x| [x as f64, 0.0]),
        (DType::F64, _) => plain!(f64 => [f64; 2], |x| [x, 0.0]),
        _ => plain!(i64 => [f64; 2], |x| [x as f64, 0.0]),
    }
}

/// Converts any dtype to any other, in one step or two.
pub struct Conversion {
    first: Convert,
    second: Option<Convert>,
}

impl Conversion {
    pub fn new(from: DType, to: DType) -> Conversion {
        let middle = through(from, to);
        if middle == from {
            return Conversion { first: narrow(from, to), second: None };
        }
        let second = (middle != to).then(|| narrow(middle, to));
        Conversion { first: widen(from, middle), second }
    }

    /// The first step, and the second if there are two.
    pub fn steps(&self) -> (Convert, Option<Convert>) {
        (self.first, self.second)
    }

    /// # Safety
    /// `from` and `to` are valid for `n` elements, at most a tile, and do not overlap.
    pub unsafe fn run(&self, n: usize, from: *const u8, to: *mut u8, middle: &mut Tile) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.second {
                None => (self.first)(n, from, to),
                Some(second) => {
                    (self.first)(n, from, middle.at());
                    second(n, middle.at(), to);
                }
            }
        }
    }
}

/// The dtype that a conversion goes through; equal to `to` if one step is enough.
fn through(from: DType, to: DType) -> DType {
    match (from.is_float(), to.is_float()) {
        _ if from == DType::C128 => from,
        _ if from.is_complex() => DType::C64,
        _ if to == DType::C32 => DType::C64,
        _ if to.is_complex() => to,
        (_, true) if from == DType::F64 || to == DType::F64 => DType::F64,
        (_, true) => DType::F32,
        (true, false) if from == DType::F64 => DType::F64,
        (true, false) => DType::F32,
        (false, false) => DType::I64,
    }
}
