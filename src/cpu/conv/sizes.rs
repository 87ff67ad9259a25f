//! The operands of a convolution: sizes, images and windows.

use crate::base::{Strided, Windows};

/// The sizes of a convolution. `inputs` and `outputs` are the channels of one group.
#[derive(Clone, Debug)]
pub struct Conv {
    pub samples: usize,
    pub groups: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub windows: Windows,
}

impl Conv {
    /// The kernel's window, moved over the image.
    pub fn window(&self) -> Window {
        let Windows { kernel, stride, padding, dilation, result, .. } = &self.windows;
        let place = |d: usize| move |k| (k * dilation[d]) as isize - padding[d] as isize;
        let taps = [0, 1, 2].map(|d| (0..kernel[d]).map(place(d)).collect());
        Window { step: *stride, positions: *result, taps }
    }
}

/// A tensor `[batch, channel, …]` with its strides.
pub struct Image {
    pub ptr: *mut u8,
    pub size: [usize; 3],
    pub strides: [usize; 3],
    pub sample: usize,
    pub channel: usize,
}

// SAFETY: it only describes memory, like the `Strided` that it comes from.
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

/// A window moved over an image: in each dimension, position `t` reads through each tap the element `t * step + tap`.
pub struct Window {
    pub step: [usize; 3],
    pub positions: [usize; 3],
    /// The offsets of the taps in each dimension; a tap of the window is a triple.
    pub taps: [Vec<isize>; 3],
}

impl Window {
    /// The union of windows with equal steps.
    pub fn union<'a>(windows: impl Iterator<Item = &'a Window> + Clone) -> Window {
        let most = |d: usize| windows.clone().map(|window| window.positions[d]).max().unwrap_or(0);
        let taps = |d: usize| {
            let mut taps: Vec<isize> = windows.clone().flat_map(|window| &window.taps[d]).copied().collect();
            taps.sort_unstable();
            taps.dedup();
            taps
        };
        let step = windows.clone().next().map_or([1; 3], |window| window.step);
        Window { step, positions: [0, 1, 2].map(most), taps: [0, 1, 2].map(taps) }
    }

    /// The same window, moved by one element at a time.
    pub fn every_step(&self) -> Window {
        let positions = [0, 1, 2].map(|d| self.positions[d].saturating_sub(1) * self.step[d] + 1);
        Window { step: [1; 3], positions, taps: self.taps.clone() }
    }

    /// True if the window never leaves an image of this size.
    pub fn inside(&self, image: [usize; 3]) -> bool {
        (0..3).all(|d| {
            let last = ((self.positions[d] - 1) * self.step[d]) as isize;
            self.taps[d].iter().all(|&tap| tap >= 0 && last + tap < image[d] as isize)
        })
    }

    /// For each tap, the sum of `of` over the three dimensions; the last dimension varies fastest.
    pub fn all_taps(&self, of: impl Fn(usize, isize) -> usize) -> Vec<usize> {
        sums([0, 1, 2].map(|d| self.taps[d].iter().map(|&tap| of(d, tap)).collect()))
    }
}

/// The sums of one element of each list, for all combinations.
fn sums([a, b, c]: [Vec<usize>; 3]) -> Vec<usize> {
    let mut sums = Vec::with_capacity(a.len() * b.len() * c.len());
    for a in &a {
        for b in &b {
            sums.extend(c.iter().map(|c| a + b + c));
        }
    }
    sums
}

/// A window moved over an image, and where its results are written.
pub struct MovedWindow {
    pub window: Window,
    /// The kernel's taps that make the window, in each dimension.
    pub chosen: [Vec<usize>; 3],
    /// Number of channels of a group that are summed, and that result.
    pub from: [usize; 2],
    /// True if the first dimension of the weights is summed over.
    pub swapped: bool,
    /// Results are written from `start` on, to every `every`-th element in each dimension.
    pub start: [usize; 3],
    pub every: [usize; 3],
}

impl MovedWindow {
    /// The weights, the distance from one resulting channel to the next, and the offset of each summed channel and tap.
    pub fn weights(&self, weight: &Strided) -> (Image, usize, Vec<usize>) {
        let w = Image::new(weight);
        let (sum, row) = if self.swapped { (w.sample, w.channel) } else { (w.channel, w.sample) };
        let taps = sums([0, 1, 2].map(|d| self.chosen[d].iter().map(|tap| tap * w.strides[d]).collect()));
        let all = (0..self.from[0]).flat_map(|i| taps.iter().map(move |tap| i * sum + tap)).collect();
        (w, row, all)
    }
}
