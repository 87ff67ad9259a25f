//! Images as the kernels read them: padded, and ordered so that the elements that one tap reads at neighbouring
//! positions are neighbours, whatever the stride. Every tap is then an offset, and positions are one long line.

use super::kernel::WIDEST;
use super::sizes::{Image, Window};
use crate::cpu::float::Float;
use crate::cpu::simd::{every_other, fetch};
use std::ops::Range;

/// The offsets of the elements that windows read: the sum of a position's and a tap's.
pub struct Field {
    pub channel: usize,
    sample: usize,
    /// Distance from one position to the next.
    steps: [usize; 3],
    /// The tap whose offset is 0. In the distance of another tap from it, each `step` is worth `steps`, and each element
    /// of the remainder is worth `phases`.
    low: [isize; 3],
    step: [usize; 3],
    phases: [usize; 3],
}

impl Field {
    /// Reads the image itself, for windows with this step that never leave it.
    pub fn of_image(image: &Image, step: [usize; 3]) -> Field {
        let steps = [0, 1, 2].map(|d| step[d] * image.strides[d]);
        Field {
            channel: image.channel,
            sample: image.sample,
            steps,
            low: [0; 3],
            step,
            phases: image.strides,
        }
    }

    /// The offsets of the taps; the last dimension varies fastest.
    pub fn taps(&self, window: &Window) -> Vec<usize> {
        window.all_taps(|d, tap| {
            let at = (tap - self.low[d]) as usize;
            at / self.step[d] * self.steps[d] + at % self.step[d] * self.phases[d]
        })
    }

    /// What each channel and tap adds to the offset of a position.
    pub fn offsets(&self, window: &Window, channels: Range<usize>) -> Vec<usize> {
        let taps = &self.taps(window);
        channels.flat_map(|c| taps.iter().map(move |tap| c * self.channel + tap)).collect()
    }

    /// The offset of a position.
    pub fn place(&self, sample: usize, at: [usize; 3]) -> usize {
        sample * self.sample + (0..3).map(|d| at[d] * self.steps[d]).sum::<usize>()
    }

    /// Distance from one position of a row to the next.
    pub fn along(&self) -> usize {
        self.steps[2]
    }
}

/// Layout of the planes of several examples: `[channel][phase][example][depth][height][width]`.
pub struct Planes {
    pub size: [usize; 3],
    /// The coordinate in the image of the first element of a plane.
    low: [isize; 3],
    step: [usize; 3],
    phases: [usize; 3],
    pub samples: usize,
    /// Distance from one channel to the next.
    pub channel: usize,
    /// Distance that taps reach past a position.
    reach: usize,
}

impl Planes {
    /// Planes for images of this size. Rows share their padding: the elements past the end of one precede the start of
    /// the next.
    pub fn new(window: &Window, image: [usize; 3], samples: usize) -> Planes {
        let (mut size, mut low, mut phases, mut most) = ([0; 3], [0; 3], [1; 3], [0; 3]);
        for d in 0..3 {
            let taps = &window.taps[d];
            low[d] = taps.iter().copied().min().unwrap_or(0);
            let past = |tap: &isize| (tap - low[d]) as usize;
            most[d] = taps.iter().map(|tap| past(tap) / window.step[d]).max().unwrap_or(0);
            let whole = window.positions[d] + most[d];
            phases[d] = taps.iter().map(|tap| past(tap) % window.step[d]).max().unwrap_or(0) + 1;
            let (before, after) = (-low[d], whole as isize - image[d] as isize + low[d]);
            let shared = window.step[d] == 1 && before >= 0 && after >= 0;
            size[d] =
                if shared { window.positions[d].max(image[d] + before.max(after) as usize) } else { whole };
        }
        let [_, height, width] = size;
        let all = samples * size.iter().product::<usize>();
        Planes {
            size,
            low,
            step: window.step,
            phases,
            samples,
            channel: phases.iter().product::<usize>() * all,
            reach: (most[0] * height + most[1]) * width + most[2],
        }
    }

    pub fn field(&self) -> Field {
        let [_, height, width] = self.size;
        let all = self.positions();
        Field {
            channel: self.channel,
            sample: self.plane(),
            steps: [height * width, width, 1],
            low: self.low,
            step: self.step,
            phases: [self.phases[1] * self.phases[2] * all, self.phases[2] * all, all],
        }
    }

    /// For windows with this step, over planes that have one phase.
    pub fn stepped(&self, step: [usize; 3]) -> Field {
        let field = self.field();
        let steps = [0, 1, 2].map(|d| step[d] * field.steps[d]);
        Field { steps, step, phases: field.steps, ..field }
    }

    /// Number of positions in a line, including those in the padding between rows.
    pub fn positions(&self) -> usize {
        self.samples * self.plane()
    }

    pub fn plane(&self) -> usize {
        self.size.iter().product()
    }

    /// Number of elements of memory for `channels` channels, including those that kernels read past the end.
    pub fn buffer_len(&self, channels: usize) -> usize {
        channels * self.channel + self.reach + 2 * WIDEST
    }

    /// Fills the planes in `range`, counted over the examples of a channel before the next channel. Examples start at
    /// `first` and channels at `channel`. `to` holds zeros, or what this function wrote before.
    ///
    /// # Safety
    /// The image is live memory of `T`s, and has these examples and channels; `to` has room for all channels, and
    /// nobody else uses these planes of it.
    pub unsafe fn fill<T: Float>(
        &self,
        to: *mut T,
        image: &Image,
        first: usize,
        channel: usize,
        range: Range<usize>,
    ) {
        let plane = self.plane();
        let [_, height, width] = self.size;
        let steps = [0, 1, 2].map(|d| self.step[d] * image.strides[d]);
        let of_phase = |phase: usize| {
            let split = [
                phase / (self.phases[1] * self.phases[2]),
                phase / self.phases[2] % self.phases[1],
                phase % self.phases[2],
            ];
            let inside = [0, 1, 2].map(|d| self.inside(image, d, split[d]));
            if inside.iter().any(Range::is_empty) {
                return None;
            }
            // The offset in the image of the first of these elements.
            let place = |d: usize| {
                let t = inside[d].start;
                (self.low[d] + (split[d] + t * self.step[d]) as isize) as usize * image.strides[d]
            };
            let corner = place(0) + place(1) + place(2);
            Some((phase, corner, inside))
        };
        let phases: Vec<_> = (0..self.phases.iter().product()).filter_map(of_phase).collect();
        let split = |i: usize| (i / self.samples, i % self.samples);
        let place = |(c, n): (usize, usize)| (first + n) * image.sample + (channel + c) * image.channel;
        // Write all phases of a plane at once, because they share cache lines.
        for i in range {
            let (c, n) = split(i);
            let (from, next) = (place((c, n)), place(split(i + 1)));
            for (phase, corner, [depths, rows, columns]) in &phases {
                let start = c * self.channel + (phase * self.samples + n) * plane;
                for (i, depth) in depths.clone().enumerate() {
                    for (j, row) in rows.clone().enumerate() {
                        let line = start + (depth * height + row) * width + columns.start;
                        let row = corner + i * steps[0] + j * steps[1];
                        let image = image.ptr.cast::<T>();
                        // Prefetch: a plane is too short for the hardware to learn the distance of its rows.
                        fetch::<T, 32>(image.wrapping_add(next + row));
                        // SAFETY: all elements are inside the image, and inside this plane.
                        unsafe {
                            let to = std::slice::from_raw_parts_mut(to.add(line), columns.len());
                            copy_row(image.add(from + row), steps[2], to);
                        }
                    }
                }
            }
        }
    }

    /// The range of a phase's elements, along one dimension, that come from the image rather than the padding.
    fn inside(&self, image: &Image, d: usize, phase: usize) -> Range<usize> {
        let (step, start) = (self.step[d] as isize, self.low[d] + phase as isize);
        let first = if start < 0 { (-start + step - 1) / step } else { 0 };
        let end = (image.size[d] as isize - start + step - 1).div_euclid(step);
        let end = end.clamp(first, self.size[d].max(first as usize) as isize);
        (first as usize).min(self.size[d])..(end as usize).min(self.size[d])
    }

    /// Calls `each` with the runs of positions, without padding, among `count` from `start` on: the index in the line,
    /// the example, the coordinates, and the length.
    pub fn runs(
        &self,
        positions: [usize; 3],
        start: usize,
        count: usize,
        mut each: impl FnMut(usize, usize, [usize; 3], usize),
    ) {
        let [depth, height, width] = self.size;
        let mut at = start;
        let end = (start + count).min(self.positions());
        let line = start / width;
        let (mut place, mut sample) =
            ([line / height % depth, line % height, start % width], line / (height * depth));
        while at < end {
            let rest = (width - place[2]).min(end - at);
            if (0..3).all(|d| place[d] < positions[d]) {
                each(at - start, sample, place, rest.min(positions[2] - place[2]));
            }
            at += rest;
            place = [place[0], place[1] + 1, 0];
            if place[1] == height {
                place = [place[0] + 1, 0, 0];
            }
            if place[0] == depth {
                (place, sample) = ([0; 3], sample + 1);
            }
        }
    }
}

/// Fills `to` from elements that are `step` apart.
///
/// # Safety
/// `from` has as many elements.
#[inline(always)]
pub unsafe fn copy_row<T: Copy>(from: *const T, step: usize, to: &mut [T]) {
    // SAFETY: the caller's contract.
    unsafe {
        match (step, to.len()) {
            (1, 4) => *to.as_mut_ptr().cast::<[T; 4]>() = from.cast::<[T; 4]>().read_unaligned(),
            (1, 8) => *to.as_mut_ptr().cast::<[T; 8]>() = from.cast::<[T; 8]>().read_unaligned(),
            (1, 16) => *to.as_mut_ptr().cast::<[T; 16]>() = from.cast::<[T; 16]>().read_unaligned(),
            (1, 32) => *to.as_mut_ptr().cast::<[T; 32]>() = from.cast::<[T; 32]>().read_unaligned(),
            (1, n) => from.copy_to_nonoverlapping(to.as_mut_ptr(), n),
            (2, n) => every_other(n, from, to.as_mut_ptr()),
            _ => to.iter_mut().enumerate().for_each(|(i, to)| *to = *from.add(i * step)),
        }
    }
}
