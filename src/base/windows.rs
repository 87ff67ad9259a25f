//! Windows that slide over an image: of convolutions, of pools, of images that are laid out as columns.

use super::{Result, try_alloc};

/// Their sizes and steps; dimensions that an image does not have come first, with size and step 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub image: [usize; 3],
    pub kernel: [usize; 3],
    /// How many windows there are.
    pub result: [usize; 3],
    pub stride: [usize; 3],
    pub padding: [usize; 3],
    pub dilation: [usize; 3],
}

impl Windows {
    /// Refuses more windows, or taps, than kernels have room to list.
    pub fn check(&self) -> Result<()> {
        (0..3).try_for_each(|d| try_alloc::check(self.result[d].saturating_add(self.kernel[d]), 128))
    }

    /// Elements of a window.
    pub fn kernel_numel(&self) -> usize {
        self.kernel.iter().product()
    }

    pub fn positions(&self) -> usize {
        self.result.iter().product()
    }

    /// Whether every window is one element, and they stand side by side.
    pub fn are_elements(&self) -> bool {
        self.kernel_numel() == 1 && self.stride == [1; 3] && self.padding == [0; 3]
    }
}
