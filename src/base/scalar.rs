//! A number outside of tensors, such as a Python number.

use super::{Category, DType, float8};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    /// An integer that exceeds an `i64`.
    Unsigned(u64),
    Float(f64),
    /// Real and imaginary parts.
    Complex(f64, f64),
}

impl Scalar {
    pub const fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) | Scalar::Unsigned(_) => Category::Int,
            Scalar::Float(_) => Category::Float,
            Scalar::Complex(..) => Category::Complex,
        }
    }

    /// Python's name of the number's type.
    pub const fn type_name(self) -> &'static str {
        match self {
            Scalar::Bool(_) => "bool",
            Scalar::Int(_) | Scalar::Unsigned(_) => "int",
            Scalar::Float(_) => "float",
            Scalar::Complex(..) => "complex",
        }
    }

    /// The number, or its real part.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Unsigned(u) => u as f64,
            Scalar::Float(f) | Scalar::Complex(f, _) => f,
        }
    }

    pub fn imaginary(self) -> f64 {
        if let Scalar::Complex(_, part) = self { part } else { 0.0 }
    }

    pub fn conj(self) -> Scalar {
        if let Scalar::Complex(re, im) = self { Scalar::Complex(re, -im) } else { self }
    }

    /// The negative; zeros change sign, too.
    pub fn opposite(self) -> Scalar {
        match self {
            Scalar::Float(f) => Scalar::Float(-f),
            Scalar::Complex(re, im) => Scalar::Complex(-re, -im),
            whole => Scalar::Int(whole.as_i64().wrapping_neg()),
        }
    }

    pub fn is_one(self) -> bool {
        self.as_f64() == 1.0 && self.imaginary() == 0.0
    }

    /// The product; an integer only if both factors are integers.
    pub fn times(self, other: Scalar) -> Scalar {
        let (a, b) = (self.as_f64(), other.as_f64());
        match self.category().max(other.category()) {
            Category::Complex => {
                let (x, y) = (self.imaginary(), other.imaginary());
                Scalar::Complex(a * b - x * y, a * y + x * b)
            }
            Category::Float => Scalar::Float(a * b),
            _ => Scalar::Int(self.as_i64().wrapping_mul(other.as_i64())),
        }
    }

    /// Truncates a float, like a conversion to an integer dtype; an unsigned number keeps its bits.
    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => i64::from(b),
            Scalar::Int(i) => i,
            Scalar::Unsigned(u) => u as i64,
            Scalar::Float(f) | Scalar::Complex(f, _) => f as i64,
        }
    }

    /// The bits of an element of `U64`.
    fn as_u64(self) -> u64 {
        match self {
            Scalar::Float(f) | Scalar::Complex(f, _) if f >= 9_223_372_036_854_775_808.0 => f as u64,
            number => number.as_i64() as u64,
        }
    }

    /// The number whose element of dtype [`DType::bits`] has the same bits as this one's of `dtype`.
    pub fn to_bits(self, dtype: DType) -> Scalar {
        if !dtype.is_stored_only() {
            return self;
        }
        let mut element = [0u8; 16];
        // SAFETY: sixteen bytes hold an element of any dtype.
        unsafe {
            self.write(dtype, element.as_mut_ptr());
            Scalar::read(dtype.bits(), element.as_ptr())
        }
    }

    /// An index or a size; a number that exceeds an `i64` becomes the largest, which no tensor reaches.
    pub fn as_index(self) -> i64 {
        if let Scalar::Unsigned(_) = self { i64::MAX } else { self.as_i64() }
    }

    /// True if the number is in the range of `dtype`. Unsigned dtypes accept negative integers down to minus
    /// their maximum, as in PyTorch.
    pub fn fits(self, dtype: DType) -> bool {
        let (low, high) = match dtype {
            DType::Bool | DType::C32 | DType::C128 => return true,
            DType::U8 => (if let Scalar::Int(_) = self { -255.0 } else { 0.0 }, 255.0),
            DType::U16 => (if let Scalar::Int(_) = self { -65_535.0 } else { 0.0 }, 65_535.0),
            DType::U32 => {
                (if let Scalar::Int(_) = self { -f64::from(u32::MAX) } else { 0.0 }, f64::from(u32::MAX))
            }
            // The largest float below 2 to the power of 64.
            DType::U64 => (0.0, 18_446_744_073_709_549_568.0),
            DType::I8 => (-128.0, 127.0),
            DType::I16 => (-32_768.0, 32_767.0),
            DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            // The largest float below 2 to the power of 63.
            DType::I64 => (i64::MIN as f64, 9_223_372_036_854_774_784.0),
            DType::F8E4M3 => (-448.0, 448.0),
            DType::F8E5M2 => (-57_344.0, 57_344.0),
            DType::F16 => (-65_504.0, 65_504.0),
            DType::BF16 => (f64::from(half::bf16::MIN), f64::from(half::bf16::MAX)),
            DType::F32 | DType::C64 => (f64::from(f32::MIN), f64::from(f32::MAX)),
            DType::F64 => (f64::MIN, f64::MAX),
        };
        let fits =
            |part: f64| (low..=high).contains(&part) || (dtype.is_differentiable() && !part.is_finite());
        match self {
            Scalar::Bool(_) => true,
            Scalar::Int(i) => matches!(dtype, DType::I64 | DType::U64) || fits(i as f64),
            Scalar::Unsigned(u) => dtype == DType::U64 || fits(u as f64),
            Scalar::Float(f) => fits(f),
            Scalar::Complex(re, im) => fits(re) && if dtype.is_complex() { fits(im) } else { im == 0.0 },
        }
    }

    /// Rounds to half precision and less; other dtypes leave the number unchanged.
    pub fn rounded(self, dtype: DType) -> Scalar {
        match dtype {
            DType::F16 => Scalar::Float(half::f16::from_f64(self.as_f64()).to_f64()),
            DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => Scalar::Float(dtype.round(self.as_f64())),
            _ => self,
        }
    }

    pub fn as_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Unsigned(_) => true,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    /// Reads one element of `dtype`.
    ///
    /// # Safety
    /// `at` points to an initialised element of `dtype`; no alignment is needed.
    pub unsafe fn read(dtype: DType, at: *const u8) -> Scalar {
        use half::{bf16, f16};
        // SAFETY: guaranteed by the caller.
        unsafe {
            match dtype {
                DType::Bool => Scalar::Bool(*at != 0),
                DType::U8 => Scalar::Int(i64::from(*at)),
                DType::I8 => Scalar::Int(i64::from(*at.cast::<i8>())),
                DType::I16 => Scalar::Int(i64::from(at.cast::<i16>().read_unaligned())),
                DType::I32 => Scalar::Int(i64::from(at.cast::<i32>().read_unaligned())),
                DType::I64 => Scalar::Int(at.cast::<i64>().read_unaligned()),
                DType::U16 => Scalar::Int(i64::from(at.cast::<u16>().read_unaligned())),
                DType::U32 => Scalar::Int(i64::from(at.cast::<u32>().read_unaligned())),
                DType::U64 => {
                    let number = at.cast::<u64>().read_unaligned();
                    i64::try_from(number).map_or(Scalar::Unsigned(number), Scalar::Int)
                }
                DType::F8E4M3 => Scalar::Float(f64::from(float8::E4M3(*at).to_f32())),
                DType::F8E5M2 => Scalar::Float(f64::from(float8::E5M2(*at).to_f32())),
                DType::F16 => Scalar::Float(at.cast::<f16>().read_unaligned().to_f64()),
                DType::BF16 => Scalar::Float(at.cast::<bf16>().read_unaligned().to_f64()),
                DType::F32 => Scalar::Float(f64::from(at.cast::<f32>().read_unaligned())),
                DType::F64 => Scalar::Float(at.cast::<f64>().read_unaligned()),
                DType::C32 => {
                    let [re, im] = at.cast::<[f16; 2]>().read_unaligned();
                    Scalar::Complex(re.to_f64(), im.to_f64())
                }
                DType::C64 => {
                    let [re, im] = at.cast::<[f32; 2]>().read_unaligned();
                    Scalar::Complex(f64::from(re), f64::from(im))
                }
                DType::C128 => {
                    let [re, im] = at.cast::<[f64; 2]>().read_unaligned();
                    Scalar::Complex(re, im)
                }
            }
        }
    }

    /// Writes the number as one element of `dtype`, converted like in PyTorch.
    ///
    /// # Safety
    /// `at` points to space for one element of `dtype`; no alignment is needed.
    pub unsafe fn write(self, dtype: DType, at: *mut u8) {
        use half::{bf16, f16};
        // SAFETY: guaranteed by the caller.
        unsafe {
            match dtype {
                DType::Bool => *at = u8::from(self.as_bool()),
                DType::U8 => *at = self.as_i64() as u8,
                DType::I8 => *at.cast::<i8>() = self.as_i64() as i8,
                DType::I16 => at.cast::<i16>().write_unaligned(self.as_i64() as i16),
                DType::I32 => at.cast::<i32>().write_unaligned(self.as_i64() as i32),
                DType::I64 => at.cast::<i64>().write_unaligned(self.as_i64()),
                DType::U16 => at.cast::<u16>().write_unaligned(self.as_i64() as u16),
                DType::U32 => at.cast::<u32>().write_unaligned(self.as_i64() as u32),
                DType::U64 => at.cast::<u64>().write_unaligned(self.as_u64()),
                DType::F8E4M3 => *at = float8::E4M3::from_f32(self.as_f64() as f32).0,
                DType::F8E5M2 => *at = float8::E5M2::from_f32(self.as_f64() as f32).0,
                DType::F16 => at.cast::<f16>().write_unaligned(f16::from_f64(self.as_f64())),
                DType::BF16 => at.cast::<bf16>().write_unaligned(bf16::from_f64(self.as_f64())),
                DType::F32 => at.cast::<f32>().write_unaligned(self.as_f64() as f32),
                DType::F64 => at.cast::<f64>().write_unaligned(self.as_f64()),
                DType::C32 => {
                    let parts = [self.as_f64(), self.imaginary()].map(f16::from_f64);
                    at.cast::<[f16; 2]>().write_unaligned(parts);
                }
                DType::C64 => {
                    let parts = [self.as_f64() as f32, self.imaginary() as f32];
                    at.cast::<[f32; 2]>().write_unaligned(parts);
                }
                DType::C128 => {
                    at.cast::<[f64; 2]>().write_unaligned([self.as_f64(), self.imaginary()]);
                }
            }
        }
    }
}
