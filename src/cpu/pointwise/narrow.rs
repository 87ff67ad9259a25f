//! Narrow integers computed in their own width, where that gives the same numbers: sums, products, comparisons.

use super::{Loop, Source};
use crate::base::{DType, Scalar, Strided};

/// The loops of one expression over integers narrower than those of eight bytes.
pub struct Narrow {
    pub i32: &'static Loop,
    pub i16: &'static Loop,
    pub i8: &'static Loop,
    pub u8: &'static Loop,
}

/// Compiles an expression into [`Narrow`] loops with elements of a type as their results.
macro_rules! narrow {
    ($out:ty; $names:tt $value:expr) => {{
        use $crate::cpu::pointwise::narrow::{Narrow, narrow};
        &Narrow {
            i32: narrow!(@ i32; $out; $names $value),
            i16: narrow!(@ i16; $out; $names $value),
            i8: narrow!(@ i8; $out; $names $value),
            u8: narrow!(@ u8; $out; $names $value),
        }
    }};
    (@ $t:ident; $out:ty; $names:tt $value:expr) => {{
        #[allow(unused_imports, reason = "a formula of signs alone names no function")]
        use $crate::cpu::math::narrow::$t::*;
        const EACH: $crate::cpu::pointwise::Each = $crate::cpu::pointwise::wide_loop!(put; $out; $names $value);
        &$crate::cpu::pointwise::Loop { each: EACH, over: Some(EACH), past: None, rows: None }
    }};
}
pub(crate) use narrow;

impl Narrow {
    /// The type to compute in instead of I64, and its loop, if all operands have it.
    pub fn of(&self, predicate: bool, out: &Strided, ins: &[Source]) -> Option<(DType, &'static Loop)> {
        let strided = |source: &Source| if let Source::Strided(s) = source { Some(s.dtype) } else { None };
        let dtype = if predicate { ins.iter().find_map(strided)? } else { out.dtype };
        let (element_loop, low, high) = match dtype {
            DType::I32 => (self.i32, i64::from(i32::MIN), i64::from(i32::MAX)),
            DType::I16 => (self.i16, i64::from(i16::MIN), i64::from(i16::MAX)),
            DType::I8 => (self.i8, i64::from(i8::MIN), i64::from(i8::MAX)),
            DType::U8 => (self.u8, 0, i64::from(u8::MAX)),
            _ => return None,
        };
        let fits = |source: &Source| match source {
            Source::Strided(s) => s.dtype == dtype,
            Source::Scalar(Scalar::Int(number)) => (low..=high).contains(number),
            Source::Scalar(_) => false,
        };
        (ins.iter().all(fits) && (!predicate || out.dtype == DType::Bool)).then_some((dtype, element_loop))
    }
}
