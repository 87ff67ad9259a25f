//! The dtype of a leaf's gradients.

use crate::base::DType;
use std::sync::atomic::{AtomicU8, Ordering};

/// The dtype of a leaf's gradients: the tensor's own, any, or a given one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GradType {
    Own,
    Any,
    Other(DType),
}

/// A [`GradType`] in one byte, which threads may read while another changes it.
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
