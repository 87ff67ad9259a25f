//! In which dtype the gradients of a leaf come.

use crate::base::DType;
use std::sync::atomic::{AtomicU8, Ordering};

/// In which dtype a leaf's gradients come: that of its values, whichever they have, or another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GradType {
    Own,
    Any,
    Other(DType),
}

/// A [`GradType`] in one byte, which may be read while another thread changes it.
#[derive(Default)]
pub(in crate::tensor) struct GradTypeCell(AtomicU8);

impl GradTypeCell {
    pub fn new(kind: GradType) -> GradTypeCell {
        let cell = GradTypeCell::default();
        cell.set(kind);
        cell
    }

    #[inline]
    pub fn get(&self) -> GradType {
        match self.0.load(Ordering::Relaxed) {
            0 => GradType::Own,
            1 => GradType::Any,
            code => GradType::Other(DType::ALL[usize::from(code) - 2]),
        }
    }

    pub fn set(&self, kind: GradType) {
        let code = match kind {
            GradType::Own => 0,
            GradType::Any => 1,
            GradType::Other(dtype) => dtype as u8 + 2,
        };
        self.0.store(code, Ordering::Relaxed);
    }
}
