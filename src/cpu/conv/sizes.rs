//! What a convolution is given: its sizes, and images.

use crate::base::{Strided, Windows};

/// The sizes of a convolution; dimensions that an image does not have come first and are 1. Channels are those of a group.
#[derive(Clone, Debug)]
pub struct Conv {
    pub samples: usize,
    pub groups: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub image: [usize; 3],
    pub kernel: [usize; 3],
    pub result: [usize; 3],
    pub stride: [usize; 3],
    pub padding: [usize; 3],
    pub dilation: [usize; 3],
}

impl Conv {
    pub fn windows(&self) -> Windows {
        let &Conv { image, kernel, result, stride, padding, dilation, .. } = self;
        Windows { image, kernel, result, stride, padding, dilation }
    }
}

/// A tensor `[sample, channel, …]` with its steps in elements.
pub struct Image {
    pub ptr: *mut u8,
    pub size: [usize; 3],
    pub strides: [usize; 3],
    pub sample: usize,
    pub channel: usize,
}

// SAFETY: a plain description, as the `Strided` it is made of.
unsafe impl Sync for Image {}

impl Image {
    pub fn new(x: &Strided) -> Image {
        let missing = 5 - x.shape.len();
        let of = |list: &[usize], d: usize, none| if d < missing { none } else { list[2 + d - missing] };
        Image {
            ptr: x.ptr,
            size: [0, 1, 2].map(|d| of(x.shape, d, 1)),
            strides: [0, 1, 2].map(|d| of(x.strides, d, 0)),
            sample: x.strides[0],
            channel: x.strides[1],
        }
    }
}

/// A window that is moved over an image: position `t` meets, by each tap, the element `t * step + tap` of every dimension.
pub struct Window {
    pub step: [usize; 3],
    pub positions: [usize; 3],
    /// One list of places for each dimension; a tap is a triple.
    pub taps: [Vec<isize>; 3],
}

/// A window moved over an image, and where its results go.
pub struct Moved {
    pub window: Window,
    /// Which of the kernel's taps those of the window are.
    pub chosen: [Vec<usize>; 3],
    /// Channels of a group that are summed, and that come out.
    pub from: [usize; 2],
    /// Whether the weights' first dimension is summed over.
    pub swapped: bool,
    /// Results go to every so many elements from here on.
    pub start: [usize; 3],
    pub every: [usize; 3],
}
