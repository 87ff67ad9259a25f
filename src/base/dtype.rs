//! Element types and their promotion.

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    Bool,
    U8,
    I8,
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    F8E4M3,
    F8E5M2,
    F16,
    BF16,
    F32,
    F64,
    C32,
    C64,
    C128,
}

/// The first criterion of type promotion: a higher category always wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    Bool,
    Int,
    Float,
    Complex,
}

use super::float8;
use DType::{
    BF16, Bool, C32, C64, C128, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64,
};

impl DType {
    pub const ALL: [DType; 18] =
        [Bool, U8, I8, I16, I32, I64, U16, U32, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64, C32, C64, C128];

    /// The real ones for which there are kernels.
    pub const REAL: [DType; 10] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64];

    /// The number rounded to this floating point type.
    pub fn round(self, x: f64) -> f64 {
        match self {
            DType::F32 => f64::from(x as f32),
            DType::F16 => half::f16::from_f64(x).to_f64(),
            DType::BF16 => half::bf16::from_f64(x).to_f64(),
            DType::F8E4M3 => f64::from(float8::E4M3::from_f32(x as f32).to_f32()),
            DType::F8E5M2 => f64::from(float8::E5M2::from_f32(x as f32).to_f32()),
            _ => x,
        }
    }

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Bool | U8 | I8 | F8E4M3 | F8E5M2 => 1,
            I16 | U16 | F16 | BF16 => 2,
            I32 | U32 | F32 | C32 => 4,
            I64 | U64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    pub const fn category(self) -> Category {
        match self {
            Bool => Category::Bool,
            U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64 => Category::Int,
            F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64 => Category::Float,
            C32 | C64 | C128 => Category::Complex,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64)
    }

    /// True for the dtypes that tensors store and convert, but in which no kernel computes.
    pub const fn is_stored_only(self) -> bool {
        matches!(self, U16 | U32 | U64 | F8E4M3 | F8E5M2 | C32)
    }

    /// True if there are negative numbers.
    pub const fn is_signed(self) -> bool {
        !matches!(self, Bool | U8) && !self.is_wide_unsigned()
    }

    /// The unsigned integers wider than a byte.
    pub const fn is_wide_unsigned(self) -> bool {
        matches!(self, U16 | U32 | U64)
    }

    pub const fn is_float8(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2)
    }

    /// The integer dtype that moves the elements of a dtype without kernels; other dtypes are returned unchanged.
    pub const fn bits(self) -> DType {
        match self {
            F8E4M3 | F8E5M2 => U8,
            U16 => I16,
            U32 | C32 => I32,
            U64 => I64,
            other => other,
        }
    }

    pub const fn is_half(self) -> bool {
        matches!(self, F16 | BF16)
    }

    pub const fn is_complex(self) -> bool {
        matches!(self, C32 | C64 | C128)
    }

    /// True if elements of this type have gradients.
    pub const fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The dtype of a complex number's parts; other dtypes are returned unchanged.
    pub const fn to_real(self) -> DType {
        match self {
            C32 => F16,
            C64 => F32,
            C128 => F64,
            other => other,
        }
    }

    /// The complex dtype in which numbers with parts of this dtype are computed.
    pub const fn to_complex(self) -> DType {
        match self {
            C32 => C32,
            F64 | C128 => C128,
            _ => C64,
        }
    }

    /// The complex dtype whose parts are stored in this dtype.
    pub const fn of_parts(self) -> DType {
        match self {
            F16 => C32,
            other => other.to_complex(),
        }
    }

    pub const fn is_int(self) -> bool {
        matches!(self, U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64)
    }

    /// PyTorch's attribute name: `torch.float32` prints this after the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            I8 => "int8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            U16 => "uint16",
            U32 => "uint32",
            U64 => "uint64",
            F8E4M3 => "float8_e4m3fn",
            F8E5M2 => "float8_e5m2",
            C32 => "complex32",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            C64 => "complex64",
            C128 => "complex128",
        }
    }

    /// The name in most of PyTorch's error messages: `Float`, `Long`.
    pub const fn scalar_name(self) -> &'static str {
        match self {
            Bool => "Bool",
            U8 => "Byte",
            I8 => "Char",
            I16 => "Short",
            I32 => "Int",
            I64 => "Long",
            U16 => "UInt16",
            U32 => "UInt32",
            U64 => "UInt64",
            F8E4M3 => "Float8_e4m3fn",
            F8E5M2 => "Float8_e5m2",
            C32 => "ComplexHalf",
            F16 => "Half",
            BF16 => "BFloat16",
            F32 => "Float",
            F64 => "Double",
            C64 => "ComplexFloat",
            C128 => "ComplexDouble",
        }
    }

    /// The name of the C type, used in some of PyTorch's error messages.
    pub const fn c_name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "unsigned char",
            I8 => "signed char",
            I16 => "short int",
            I32 => "int",
            I64 => "long int",
            U16 => "short unsigned int",
            U32 => "unsigned int",
            U64 => "long unsigned int",
            F8E4M3 => "c10::Float8_e4m3fn",
            F8E5M2 => "c10::Float8_e5m2",
            C32 => "c10::complex<c10::Half>",
            F16 => "c10::Half",
            BF16 => "c10::BFloat16",
            F32 => "float",
            F64 => "double",
            C64 => "c10::complex<float>",
            C128 => "c10::complex<double>",
        }
    }

    /// The C++ name with the number of bits: `int64_t`.
    pub const fn fixed_name(self) -> &'static str {
        match self {
            U8 => "uint8_t",
            I8 => "int8_t",
            I16 => "int16_t",
            I64 => "int64_t",
            U16 => "uint16_t",
            U32 => "uint32_t",
            U64 => "uint64_t",
            other => other.c_name(),
        }
    }

    /// The smallest and the greatest number of an integer type; those of `U64` exceed an `i64`.
    pub const fn range(self) -> Option<(i64, i64)> {
        Some(match self {
            U8 => (0, 255),
            I8 => (-128, 127),
            I16 => (-32_768, 32_767),
            I32 => (i32::MIN as i64, i32::MAX as i64),
            I64 => (i64::MIN, i64::MAX),
            U16 => (0, u16::MAX as i64),
            U32 => (0, u32::MAX as i64),
            _ => return None,
        })
    }

    /// The number after a round trip through this type, with wrap-around.
    pub fn wrap(self, number: i64) -> i64 {
        match self {
            U8 => i64::from(number as u8),
            I8 => i64::from(number as i8),
            I16 => i64::from(number as i16),
            I32 => i64::from(number as i32),
            U16 => i64::from(number as u16),
            U32 => i64::from(number as u32),
            _ => number,
        }
    }

    /// The dtype of promotion with another dtype, if both have the same rank. [`DType::promoted_with`] refuses those
    /// pairs that PyTorch refuses.
    pub const fn promote(self, other: DType) -> DType {
        if self as u8 == other as u8 {
            return self;
        }
        let (low, high) = if (self as u8) < (other as u8) { (self, other) } else { (other, self) };
        match (low, high) {
            (U8, I8) => I16,
            (F16, BF16) => F32,
            (BF16 | F32, C32) => C64,
            (F64, C32 | C64) => C128,
            _ => high,
        }
    }
}
