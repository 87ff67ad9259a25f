//! Images as the kernels read them: padded, and the elements that one tap of the window meets at neighbouring positions
//! next to one another, whatever the stride. Then every tap is an offset, and positions are one long line.

use super::kernel::{Real, WIDEST};
use super::sizes::{Image, Window};
use crate::cpu::simd::{every_other, fetch};
use std::ops::Range;

/// Where the elements lie that windows meet: a position's place and a tap's are added.
pub struct Field {
    pub channel: usize,
    sample: usize,
    /// From one position to the next.
    steps: [usize; 3],
    /// The tap whose place is 0, and from one tap to the next: those that are `step` apart are positions apart.
    low: [isize; 3],
    step: [usize; 3],
    phases: [usize; 3],
}

impl Field {
    /// The image itself, for windows that take steps of this size and never leave it.
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

    /// Places of the taps, the last dimension fastest.
    pub fn taps(&self, window: &Window) -> Vec<usize> {
        window.all_taps(|d, tap| {
            let at = (tap - self.low[d]) as usize;
            at / self.step[d] * self.steps[d] + at % self.step[d] * self.phases[d]
        })
    }

    /// What each channel and tap adds to a position's place.
    pub fn offsets(&self, window: &Window, channels: Range<usize>) -> Vec<usize> {
        let taps = &self.taps(window);
        channels.flat_map(|c| taps.iter().map(move |tap| c * self.channel + tap)).collect()
    }

    /// The place of a position.
    pub fn place(&self, sample: usize, at: [usize; 3]) -> usize {
        sample * self.sample + (0..3).map(|d| at[d] * self.steps[d]).sum::<usize>()
    }

    /// From one position of a row to the next.
    pub fn along(&self) -> usize {
        self.steps[2]
    }
}

/// How the planes of a block of samples lie: `[channel][phase][sample][depth][height][width]`.
pub struct Planes {
    pub size: [usize; 3],
    /// The place of the image's element that a plane begins with.
    low: [isize; 3],
    step: [usize; 3],
    phases: [usize; 3],
    pub samples: usize,
    /// Elements from one channel to the next.
    pub channel: usize,
    /// How far the taps reach past a position.
    reach: usize,
}

impl Planes {
    /// For images of this size. Rows share their padding: what lies past the end of one is before the start of the next.
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

    /// For windows that take steps of this size over planes of one phase.
    pub fn stepped(&self, step: [usize; 3]) -> Field {
        let field = self.field();
        let steps = [0, 1, 2].map(|d| step[d] * field.steps[d]);
        Field { steps, step, phases: field.steps, ..field }
    }

    /// Positions in a line, those between the rows included.
    pub fn positions(&self) -> usize {
        self.samples * self.plane()
    }

    pub fn plane(&self) -> usize {
        self.size.iter().product()
    }

    /// Elements of memory for so many channels: kernels read past the end.
    pub fn buffer_len(&self, channels: usize) -> usize {
        channels * self.channel + self.reach + 2 * WIDEST
    }

    /// Lays out planes of samples from `first` on and channels from `channel` on: those of `range`, all samples of a channel before the
    /// next. `to` holds zeros, or what this wrote before.
    ///
    /// # Safety
    /// The image is live memory of `T`s, and has these samples and channels; `to` has room for all channels, and these planes of it are
    /// the caller's alone.
    pub unsafe fn fill<T: Real>(
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
            // Where in the image the first of these elements is.
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
        // All phases of a plane at once: they share lines of the cache.
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
                        // A plane is too short for the machine to see where its rows lie.
                        fetch::<T, 32>(image.wrapping_add(next + row));
                        // SAFETY: every place is inside the image, and inside this plane.
                        unsafe {
                            let to = std::slice::from_raw_parts_mut(to.add(line), columns.len());
                            copy_row(image.add(from + row), steps[2], to);
                        }
                    }
                }
            }
        }
    }

    /// Of a dimension, which elements of the planes of a phase are the image's.
    fn inside(&self, image: &Image, d: usize, phase: usize) -> Range<usize> {
        let (step, start) = (self.step[d] as isize, self.low[d] + phase as isize);
        let first = if start < 0 { (-start + step - 1) / step } else { 0 };
        let end = (image.size[d] as isize - start + step - 1).div_euclid(step);
        let end = end.clamp(first, self.size[d].max(first as usize) as isize);
        (first as usize).min(self.size[d])..(end as usize).min(self.size[d])
    }

    /// The runs of true positions among `count` from `start` on: where in the line, of which sample, its place, how many.
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
/// `from` has that many.
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
