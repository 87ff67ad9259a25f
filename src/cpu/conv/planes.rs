//! Images as the kernels read them: padded, and the elements that one tap of the window meets at neighbouring positions
//! next to one another, whatever the stride. Then every tap is an offset, and positions are one long line.

use super::kernel::{Real, WIDEST};
use super::sizes::{Image, Window};

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
    /// Offsets of the taps, the last dimension fastest.
    pub taps: Vec<usize>,
}

impl Planes {
    /// For images of this size. Rows share their padding: what lies past the end of one is before the start of the next.
    pub fn new(window: &Window, image: [usize; 3], samples: usize) -> Planes {
        let (mut size, mut low, mut phases) = ([0; 3], [0; 3], [1; 3]);
        for d in 0..3 {
            let taps = &window.taps[d];
            low[d] = taps.iter().copied().min().unwrap_or(0);
            let most = taps.iter().map(|t| (t - low[d]) as usize / window.step[d]).max().unwrap_or(0);
            let whole = window.positions[d] + most;
            phases[d] = taps.iter().map(|t| (t - low[d]) as usize % window.step[d]).max().unwrap_or(0) + 1;
            let (before, after) = (-low[d], whole as isize - image[d] as isize + low[d]);
            let shared = window.step[d] == 1 && before >= 0 && after >= 0;
            size[d] =
                if shared { window.positions[d].max(image[d] + before.max(after) as usize) } else { whole };
        }
        let plane: usize = size.iter().product();
        let (mut taps, mut reach) = (Vec::new(), 0);
        for d in &window.taps[0] {
            for h in &window.taps[1] {
                for w in &window.taps[2] {
                    let at = [d - low[0], h - low[1], w - low[2]].map(|t| t as usize);
                    let (mut phase, mut shift) = (0, 0);
                    for i in 0..3 {
                        phase = phase * phases[i] + at[i] % window.step[i];
                        shift = shift * size[i] + at[i] / window.step[i];
                    }
                    reach = reach.max(shift);
                    taps.push(phase * samples * plane + shift);
                }
            }
        }
        let count: usize = phases.iter().product();
        Planes {
            size,
            low,
            step: window.step,
            phases,
            samples,
            channel: count * samples * plane,
            reach,
            taps,
        }
    }

    /// Positions in a line, those between the rows included.
    pub fn positions(&self) -> usize {
        self.samples * self.plane()
    }

    pub fn plane(&self) -> usize {
        self.size.iter().product()
    }

    /// Elements of memory for so many channels: kernels read past the end.
    pub fn room(&self, channels: usize) -> usize {
        channels * self.channel + self.reach + 2 * WIDEST
    }

    /// Lays out samples from `first` on, of channels from `channel` on; `to` holds zeros, or what this wrote before.
    ///
    /// # Safety
    /// The image is live memory of `T`s, and has these samples and channels.
    pub unsafe fn fill<T: Real>(
        &self,
        to: &mut [T],
        image: &Image,
        first: usize,
        channel: usize,
        channels: usize,
    ) {
        let plane = self.plane();
        for c in 0..channels {
            for phase in 0..self.phases.iter().product() {
                let split = [
                    phase / (self.phases[1] * self.phases[2]),
                    phase / self.phases[2] % self.phases[1],
                    phase % self.phases[2],
                ];
                for n in 0..self.samples {
                    let start = c * self.channel + (phase * self.samples + n) * plane;
                    let from = (first + n) * image.sample + (channel + c) * image.channel;
                    // SAFETY: the caller's sample and channel.
                    unsafe { self.fill_plane(&mut to[start..start + plane], image, from, split) };
                }
            }
        }
    }

    unsafe fn fill_plane<T: Real>(&self, to: &mut [T], image: &Image, from: usize, phase: [usize; 3]) {
        // Of each dimension, which elements of the plane are the image's.
        let inside = |d: usize| {
            let (step, start) = (self.step[d] as isize, self.low[d] + phase[d] as isize);
            let first = if start < 0 { (-start + step - 1) / step } else { 0 };
            let end = (image.size[d] as isize - start + step - 1).div_euclid(step);
            let end = end.clamp(first, self.size[d].max(first as usize) as isize);
            ((first as usize).min(self.size[d])..(end as usize).min(self.size[d]), start)
        };
        let ([depths, rows, columns], starts) = {
            let [a, b, c] = [inside(0), inside(1), inside(2)];
            ([a.0, b.0, c.0], [a.1, b.1, c.1])
        };
        let place =
            |d: usize, t: usize| (starts[d] + (t * self.step[d]) as isize) as usize * image.strides[d];
        for depth in depths {
            for row in rows.clone() {
                let line = (depth * self.size[1] + row) * self.size[2];
                let to = &mut to[line + columns.start..line + columns.end];
                if to.is_empty() {
                    continue;
                }
                let at = from + place(0, depth) + place(1, row) + place(2, columns.start);
                let step = self.step[2] * image.strides[2];
                // SAFETY: every place is inside the image.
                unsafe {
                    let from = image.ptr.cast::<T>().add(at);
                    if step == 1 {
                        from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len());
                    } else {
                        to.iter_mut().enumerate().for_each(|(i, to)| *to = *from.add(i * step));
                    }
                }
            }
        }
    }

    /// The runs of true positions among `count` from `start` on: where in the line, of which sample, its place, how many.
    pub fn runs(
        &self,
        positions: [usize; 3],
        start: usize,
        count: usize,
        mut each: impl FnMut(usize, usize, [usize; 3], usize),
    ) {
        let mut at = start;
        let end = (start + count).min(self.positions());
        while at < end {
            let column = at % self.size[2];
            let row = at / self.size[2] % self.size[1];
            let depth = at / (self.size[2] * self.size[1]) % self.size[0];
            let rest = (self.size[2] - column).min(end - at);
            if depth < positions[0] && row < positions[1] && column < positions[2] {
                each(at - start, at / self.plane(), [depth, row, column], rest.min(positions[2] - column));
            }
            at += rest;
        }
    }
}
