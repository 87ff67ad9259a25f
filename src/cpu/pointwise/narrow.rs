//! Loops that compute narrow integers in their own width, if that gives the same result as i64: sums, products,
//! comparisons.

use super::{Loop, Source};
use crate::base::{DType, Scalar, Strided};
use smallvec::SmallVec;

/// The loops of one expression over integers of less than eight bytes.
pub struct Narrow {
    pub i32: Loop,
    pub i16: Loop,
    pub i8: Loop,
    pub u8: Loop,
}

/// Compiles an expression to [`Narrow`] loops, whose results have the type of their elements.
macro_rules! narrow {
    ($out:ty; $names:tt $value:expr) => {
        $crate::cpu::pointwise::narrow::Narrow {
            i32: $crate::cpu::pointwise::pointwise_loop!(@narrow i32; $out; $names $value),
            i16: $crate::cpu::pointwise::pointwise_loop!(@narrow i16; $out; $names $value),
            i8: $crate::cpu::pointwise::pointwise_loop!(@narrow i8; $out; $names $value),
            u8: $crate::cpu::pointwise::pointwise_loop!(@narrow u8; $out; $names $value),
        }
    };
}
pub(crate) use narrow;

/// An operand, as far as the choice of a loop depends on it.
#[derive(Clone, Copy)]
pub enum Typed {
    Elements(DType),
    Number(Scalar),
}

impl Narrow {
    /// The dtype to compute in instead of I64, and its loop, if all operands have that dtype.
    pub fn of(&self, predicate: bool, out: &Strided, ins: &[Source]) -> Option<(DType, &Loop)> {
        let typed = |source: &Source| match source {
            Source::Strided(s) => Typed::Elements(s.dtype),
            Source::Scalar(number) => Typed::Number(*number),
        };
        let ins: SmallVec<[Typed; 4]> = ins.iter().map(typed).collect();
        self.for_types(predicate, out.dtype, &ins)
    }

    /// The same for an output and inputs of these dtypes.
    pub fn for_types(&self, predicate: bool, out: DType, ins: &[Typed]) -> Option<(DType, &Loop)> {
        let elements = |typed: &Typed| if let Typed::Elements(dtype) = typed { Some(*dtype) } else { None };
        let dtype = if predicate { ins.iter().find_map(elements)? } else { out };
        let (element_loop, low, high) = match dtype {
            DType::I32 => (&self.i32, i64::from(i32::MIN), i64::from(i32::MAX)),
            DType::I16 => (&self.i16, i64::from(i16::MIN), i64::from(i16::MAX)),
            DType::I8 => (&self.i8, i64::from(i8::MIN), i64::from(i8::MAX)),
            DType::U8 => (&self.u8, 0, i64::from(u8::MAX)),
            // Bools are the bytes 0 and 1.
            DType::Bool if predicate => (&self.u8, 0, 1),
            _ => return None,
        };
        let fits = |typed: &Typed| match typed {
            Typed::Elements(own) => *own == dtype,
            Typed::Number(Scalar::Int(number)) => (low..=high).contains(number),
            Typed::Number(_) => false,
        };
        (ins.iter().all(fits) && (!predicate || out == DType::Bool)).then_some((dtype, element_loop))
    }
}
