//! The promotion of two dtypes, with PyTorch's refusals.

use super::{DType, Fault, Result};

impl DType {
    /// The dtype of promotion with another dtype, or PyTorch's error where it has none.
    pub fn promoted_with(self, other: DType) -> Result<DType> {
        let has_none = |dtype: DType| {
            dtype.is_float8() || dtype.is_wide_unsigned() && !(self.is_float() || other.is_float())
        };
        if self == other || !(has_none(self) || has_none(other)) {
            return Ok(self.promote(other));
        }
        Err(Fault::Promotion { a: self, b: other }.into())
    }
}
