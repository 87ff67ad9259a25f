//! What a kernel reads and writes.

use crate::base::{DType, Scalar, numel};
use crate::gpu::device::memory::Buffer;

/// GPU memory seen through a layout. Strides and offset count elements.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub buffer: &'a Buffer,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
    pub offset: usize,
}

impl View<'_> {
    pub fn numel(&self) -> usize {
        numel(self.shape)
    }
}

/// An operand: memory, or a number.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    View(View<'a>),
    Scalar(Scalar),
}
