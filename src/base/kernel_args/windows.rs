//! Sliding windows over an image: of convolutions, of pooling, of `unfold`.

use crate::base::{Result, try_alloc};

/// The sizes and strides of windows. Dimensions that an image does not have come first, with size and stride
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub image: [usize; 3],
    pub kernel: [usize; 3],
    /// The number of windows.
    pub result: [usize; 3],
    pub stride: [usize; 3],
    pub padding: [usize; 3],
    pub dilation: [usize; 3],
}

impl Windows {
    /// Returns an error if memory does not suffice for the kernels' lists of windows and taps.
    pub fn check(&self) -> Result<()> {
        (0..3).try_for_each(|d| try_alloc::check(self.result[d].saturating_add(self.kernel[d]), 128))
    }

    /// The number of elements in a window.
    pub fn kernel_numel(&self) -> usize {
        self.kernel.iter().product()
    }

    pub fn positions(&self) -> usize {
        self.result.iter().product()
    }

    /// True if every window is one element and they are adjacent.
    pub fn are_elements(&self) -> bool {
        self.kernel_numel() == 1 && self.stride == [1; 3] && self.padding == [0; 3]
    }
}
