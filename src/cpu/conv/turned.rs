//! Convolutions with the channels of the result in the lanes of registers: for images of short rows, of whose planes much is no
//! position. Positions of a row are taken a few at a time, and nothing between them.

use super::kernel::{CHANNELS, DEPTH, POSITIONS, Real, Turned};
use super::planes::Planes;
use super::sizes::{Image, Window};
use super::{CACHED, Moved, pack, together};
use crate::base::Result;
use crate::cpu::element::scratch;
use crate::cpu::par;
use crate::cpu::simd::turn_square;

/// How a row is cut: pieces of so many positions, of which the last one may begin before the end of the one before it.
struct Pieces<T> {
    block: Turned<T>,
    row: usize,
}

impl<T: Real> Pieces<T> {
    fn new(row: usize) -> Option<Pieces<T>> {
        let count = row.div_ceil(T::turned(usize::MAX)?.positions);
        Some(Pieces { block: T::turned(row.div_ceil(count))?, row })
    }

    fn starts(&self) -> impl Iterator<Item = usize> + use<T> {
        let (step, last) = (self.block.positions, self.row.saturating_sub(self.block.positions));
        (0..self.row).step_by(step).map(move |start| start.min(last))
    }

    /// Cycles for a tap of a row: what is loaded takes longer than what is multiplied, unless it waits for results.
    fn cycles(&self) -> usize {
        (self.block.positions + 2).max(8) * self.row.div_ceil(self.block.positions)
    }
}

/// Whether this takes less time than whole planes, in blocks of so many rows of weights and positions.
pub fn pay<T: Real>(window: &Window, plane: usize, sums: usize, rows: usize, height: usize) -> bool {
    let Some(pieces) = Pieces::<T>::new(window.positions[2]) else { return false };
    let taps: usize = window.taps.iter().map(Vec::len).product();
    let panels = rows.div_ceil(pieces.block.channels);
    let weights = panels * pieces.block.channels * sums * taps * size_of::<T>();
    let lines = window.positions[0] * window.positions[1];
    let own = panels * lines * pieces.cycles() * pieces.block.channels;
    let planes = rows.div_ceil(height) * height * plane;
    weights <= CACHED && own * 10 < planes * 9
}

/// As [`super::products`], where [`pay`] said yes.
///
/// # Safety
/// As there; the image and the result hold `T`s.
pub unsafe fn product<T: Real>(
    conv: &super::Conv,
    moved: &Moved,
    result: &Image,
    image: &Image,
    weight: &crate::base::Strided,
    bias: Option<&[T]>,
) -> Result<()> {
    let Some(pieces) = Pieces::<T>::new(moved.window.positions[2]) else { return Ok(()) };
    let [sums, rows] = moved.from;
    let block = pieces.block;
    let panels = rows.div_ceil(block.channels);
    let k = sums * moved.window.taps.iter().map(Vec::len).product::<usize>();
    // SAFETY: the caller's weights.
    let packed = unsafe { pack::<T>(conv, moved, weight, block.channels, panels)? };
    let one = Planes::new(&moved.window, image.size, 1);
    let samples = together(conv.samples, one.room(sums) * size_of::<T>());
    let blocks = conv.samples.div_ceil(samples);
    let work = samples * one.plane() * k * rows;
    let (packed, pieces) = (&packed, &pieces);
    par::try_ranges(blocks * conv.groups, (par::GRAIN * 16 / work.max(1)).max(1), |range| {
        for task in range {
            let (part, group) = (task / conv.groups, task % conv.groups);
            let first = part * samples;
            let planes = Planes::new(&moved.window, image.size, samples.min(conv.samples - first));
            let mut memory = scratch(planes.room(sums), T::ZERO)?;
            // SAFETY: the caller's image, of which this is a part.
            unsafe { planes.fill(&mut memory, image, first, group * sums, sums) };
            let offsets: Vec<usize> =
                (0..sums).flat_map(|c| planes.taps.iter().map(move |tap| c * planes.channel + tap)).collect();
            for panel in 0..panels {
                let channels = block.channels.min(rows - panel * block.channels);
                let channel = group * rows + panel * block.channels;
                let weights = packed.as_ptr().wrapping_add((group * panels + panel) * k * block.channels);
                let mut start = [T::ZERO; CHANNELS];
                if let Some(bias) = bias {
                    start[..channels].copy_from_slice(&bias[channel..channel + channels]);
                }
                planes.runs(moved.window.positions, 0, planes.positions(), |at, sample, place, n| {
                    let d = |d: usize| (moved.start[d] + place[d] * moved.every[d]) * result.strides[d];
                    let to = (first + sample) * result.sample + channel * result.channel;
                    let (to, step) = (to + d(0) + d(1) + d(2), moved.every[2] * result.strides[2]);
                    for from in pieces.starts() {
                        let mut acc = [[T::ZERO; CHANNELS]; POSITIONS];
                        let acc = acc.as_mut_ptr().cast::<T>();
                        // SAFETY: the panel has k rows; planes have room past every offset; the result has these places,
                        // and they are this task's alone.
                        unsafe {
                            for i in 0..block.positions {
                                acc.add(i * block.channels)
                                    .copy_from_nonoverlapping(start.as_ptr(), block.channels);
                            }
                            for first in (0..k).step_by(DEPTH) {
                                let a = weights.add(first * block.channels);
                                let b = memory.as_ptr().add(at + from);
                                (block.run)(DEPTH.min(k - first), a, b, offsets.as_ptr().add(first), acc);
                            }
                            let to = result.ptr.cast::<T>().add(to + from * step);
                            let sizes = [channels, block.positions.min(n)];
                            put(sizes, acc, block.channels, to, result.channel, step);
                        }
                    }
                });
            }
        }
        Ok(())
    })
}

/// Writes results, `[position][channel]`, to where they belong: channels are `far` from each other, positions `step`.
///
/// # Safety
/// Both have so many channels and positions.
unsafe fn put<T: Real>(
    [channels, positions]: [usize; 2],
    from: *const T,
    width: usize,
    to: *mut T,
    far: usize,
    step: usize,
) {
    let squares = if step == 1 { [channels & !3, positions & !3] } else { [0; 2] };
    let size = size_of::<T>();
    // SAFETY: the caller's contract.
    unsafe {
        for c in (0..squares[0]).step_by(4) {
            for p in (0..squares[1]).step_by(4) {
                let (from, to) = (from.add(p * width + c), to.add(c * far + p));
                turn_square::<T>(from.cast(), width * size, to.cast(), far * size);
            }
        }
        for c in 0..channels {
            let done = if c < squares[0] { squares[1] } else { 0 };
            for p in done..positions {
                *to.add(c * far + p * step) = *from.add(p * width + c);
            }
        }
    }
}
