//! Convolutions with channels in the lanes of registers. The elements of a window are read one by one, so the image is
//! copied only if it needs padding; weights, or gradients, are transposed a piece at a time.

use super::kernel::{LARGEST, LanesBlock, add_up, lanes_block, terms_per_sum};
use super::planes::{Field, Planes};
use super::sizes::{Conv, Image, MovedWindow, Window};
use crate::base::{Result, Strided};
use crate::cpu::element::scratch;
use crate::cpu::float::Float;
use crate::cpu::par::{self, GRAIN, Shared};
use crate::cpu::simd::{fetch, transpose_square};
use std::ops::Range;

/// Number of positions that are multiplied with one piece of the weights; number of rows of weights whose gradients are
/// summed together.
const STRIP: usize = 240;
/// Bytes of padded images, and of transposed gradients, that are in memory at once.
const ROOM: usize = 2 << 20;

/// Writes the offsets of a `range` of the positions of all examples to `to`.
fn places(field: &Field, positions: [usize; 3], range: Range<usize>, to: &mut [usize]) {
    rows(positions, range, |at, sample, place, n| {
        let (first, along) = (field.place(sample, place), field.along());
        to[at..at + n].iter_mut().enumerate().for_each(|(j, to)| *to = first + j * along);
    });
}

/// Calls `each` for the rows that a `range` of positions consists of, with the index in the range, the example, its
/// coordinates, and the length.
fn rows(
    [depth, height, width]: [usize; 3],
    range: Range<usize>,
    mut each: impl FnMut(usize, usize, [usize; 3], usize),
) {
    let mut at = range.start;
    while at < range.end {
        let row = at / width;
        let place = [row / height % depth, row % height, at % width];
        let n = (width - place[2]).min(range.end - at);
        each(at - range.start, row / (height * depth), place, n);
        at += n;
    }
}

/// Calls `each` with parts of the batch, and the memory and offsets of the elements that windows read there. The size
/// of a part follows from `room` and from `beside`, the bytes needed per example besides, but not from the number of
/// threads.
///
/// # Safety
/// The image has these examples and channels.
unsafe fn parts<T: Float>(
    window: &Window,
    image: &Image,
    samples: usize,
    channels: usize,
    [room, beside]: [usize; 2],
    mut each: impl FnMut(Range<usize>, &Field, Shared<T>) -> Result<()>,
) -> Result<()> {
    let own = window.inside(image.size).then(|| Field::of_image(image, window.step));
    // Elements are read one by one, so those a step apart need not become neighbours.
    let padded = window.every_step();
    let bytes = match own {
        Some(_) => 0,
        None => Planes::new(&padded, image.size, 1).buffer_len(channels) * size_of::<T>(),
    };
    let most = (room / (bytes + beside).max(1)).clamp(1, samples);
    let most = samples.div_ceil(samples.div_ceil(most));
    let (mut memory, mut laid): (Vec<T>, _) = (vec![], 0);
    for first in (0..samples).step_by(most) {
        let part = first..samples.min(first + most);
        if let Some(field) = &own {
            each(part, field, Shared::new(image.ptr.cast::<T>().wrapping_add(first * image.sample)))?;
            continue;
        }
        let planes = Planes::new(&padded, image.size, part.len());
        if laid != part.len() {
            drop(std::mem::take(&mut memory));
            (memory, laid) = (scratch(planes.buffer_len(channels), T::ZERO)?, part.len());
        }
        let to = Shared::new(memory.as_ptr());
        let one = planes.channel / planes.samples.max(1);
        par::ranges(channels * planes.samples, (GRAIN / one.max(1)).max(1), |range| {
            // SAFETY: there is room for these channels, whose planes belong to this task alone; the image is the
            // caller's.
            unsafe { planes.fill(to.get(), image, first, 0, range) };
        });
        each(part, &planes.stepped(window.step), to)?;
    }
    Ok(())
}

/// How channels are cut: all panels but the last fill the widest block.
struct Panels {
    channels: usize,
    width: usize,
    /// Number of terms that are multiplied at a time.
    depth: usize,
    /// Number of panels in a group.
    count: usize,
}

impl Panels {
    fn new<T: Float>(channels: usize) -> Panels {
        let LanesBlock { width, depth, .. } = lanes_block::<T>(channels);
        Panels { channels, width, depth, count: channels.div_ceil(width) }
    }

    /// The group of a panel, its first channel, its number of channels, and their block.
    fn get<T: Float>(&self, panel: usize) -> (usize, usize, usize, LanesBlock<T>) {
        let (group, first) = (panel / self.count, panel % self.count * self.width);
        let block = lanes_block::<T>(self.channels - first);
        (group, first, block.width.min(self.channels - first), block)
    }
}

/// Number of strips that `n` positions are cut into, for `panels` panels, so that threads get equal work.
fn strips(n: usize, panels: usize) -> usize {
    let threads = par::threads();
    let most = n.div_ceil(STRIP / 8);
    let strips = n.div_ceil(STRIP).max((4 * threads).div_ceil(panels.max(1)).min(most));
    let even = (1..threads).find(|m| (m * panels).is_multiple_of(threads)).unwrap_or(threads);
    let shared = strips.next_multiple_of(even);
    if shared <= most { shared } else { strips }
}

/// A window that is moved, and how the terms of its sums are cut into pieces.
struct Part<'a> {
    moved: &'a MovedWindow,
    weight: Image,
    /// Distance between the weights of neighbouring channels, and the offset of each term's weight.
    channel_step: usize,
    weights_at: Vec<usize>,
    pieces: usize,
    /// Number of terms of a piece.
    depth: usize,
    /// Number of terms of the parts before this one.
    before: usize,
    /// Number of positions of an example.
    one: usize,
    /// Sizes of an example's result, in rows that are contiguous.
    rows: [usize; 3],
}

impl Part<'_> {
    fn new<'a>(
        moved: &'a MovedWindow,
        weight: &Strided,
        result: &Image,
        depth: usize,
        before: usize,
    ) -> Part<'a> {
        let (weight, channel_step, weights_at) = moved.weights(weight);
        let positions = moved.window.positions;
        let one = positions.iter().product();
        // Join rows of results that follow one another in memory.
        let steps = [positions[1] * positions[2], positions[2], 1];
        let follows = |d: usize| moved.every[d] == 1 && result.strides[d] == steps[d];
        let dense = (0..3).all(|d| positions[d] == 1 || follows(d));
        let rows = if dense { [1, 1, one] } else { positions };
        let pieces = weights_at.len().div_ceil(depth);
        let depth = weights_at.len().div_ceil(pieces.max(1));
        Part { moved, weight, channel_step, weights_at, pieces, depth, before, one, rows }
    }

    /// Number of terms of a result.
    fn k(&self) -> usize {
        self.weights_at.len()
    }

    fn piece(&self, piece: usize) -> Range<usize> {
        piece * self.depth..self.k().min((piece + 1) * self.depth)
    }
}

/// Computes the results of all `moves`, whose windows have equal steps: sums of products of the image and the weights,
/// plus `bias`.
///
/// # Safety
/// See [`super::few::product`]; no two moves write the same result.
pub unsafe fn product<T: Float>(
    conv: &Conv,
    moves: &[MovedWindow],
    result: &Image,
    image: &Image,
    weight: &Strided,
    bias: Option<&[T]>,
) -> Result<()> {
    let Some(&MovedWindow { from: [sums, channels], .. }) = moves.first() else { return Ok(()) };
    let panels = &Panels::new::<T>(channels);
    let all = conv.groups * panels.count;
    let mut cut: Vec<Part> = Vec::with_capacity(moves.len());
    for moved in moves {
        let before = cut.last().map_or(0, |part| part.before + part.k());
        cut.push(Part::new(moved, weight, result, panels.depth, before));
    }
    let cut = &cut;
    // SAFETY: the caller's weights; there is room for a piece.
    let transpose = |part: &Part, panel: usize, piece: usize, to: *mut T| unsafe {
        let (group, first, lanes, block) = panels.get::<T>(panel);
        let from = part
            .weight
            .ptr
            .cast::<T>()
            .add(group * conv.outputs * part.weight.sample + first * part.channel_step);
        transpose_in(from, part.channel_step, lanes, &part.weights_at[part.piece(piece)], to, block.width);
    };
    // Weights that several strips read are transposed beforehand.
    let often = cut.iter().any(|part| conv.samples * part.one > STRIP);
    let terms = if often { cut.iter().map(Part::k).sum() } else { 0 };
    let transposed = scratch(all * terms * panels.width, T::ZERO)?;
    let transposed_at = |part: &Part, panel: usize, piece: usize| {
        let place = (part.before * all + panel * part.k() + piece * part.depth) * panels.width;
        Shared::new(transposed.as_ptr().wrapping_add(place))
    };
    if often {
        let mut tasks = vec![];
        for part in cut {
            tasks.extend((0..all * part.pieces).map(|i| (part, i / part.pieces, i % part.pieces)));
        }
        par::ranges(tasks.len(), (GRAIN / (panels.depth * panels.width)).max(1), |range| {
            for &(part, panel, piece) in &tasks[range] {
                transpose(part, panel, piece, transposed_at(part, panel, piece).get());
            }
        });
    }
    let each = |samples: Range<usize>, field: &Field, memory: Shared<T>| {
        let offsets: Vec<_> = cut.iter().map(|part| field.offsets(&part.moved.window, 0..sums)).collect();
        // Do all panels of a strip before the next strip, so that its elements stay in the second cache.
        let (mut tasks, mut longest, mut work) = (vec![], 0, 0);
        for (part, offsets) in cut.iter().zip(&offsets) {
            let total = samples.len() * part.one;
            let strips = strips(total, all * cut.len());
            // Cut at cache lines, so that results fill whole ones.
            let lines = total.div_ceil(LINE);
            let at = |i: usize| (i * lines / strips * LINE).min(total);
            let of = |strip| (0..all).map(move |panel| (part, offsets, at(strip)..at(strip + 1), panel));
            tasks.extend((0..strips).flat_map(of));
            longest = longest.max((lines.div_ceil(strips) * LINE).next_multiple_of(STRIP / 8));
            work = work.max(total.div_ceil(strips) * panels.width * part.k());
        }
        par::try_ranges(tasks.len(), (GRAIN * 16 / work.max(1)).max(1), |range| {
            let mut packed = scratch(if often { 0 } else { panels.depth * panels.width }, T::ZERO)?;
            let mut acc = scratch(longest * panels.width, T::ZERO)?;
            let mut at = scratch(longest, 0)?;
            let mut own = [T::ZERO; LARGEST];
            for (part, offsets, mine, panel) in &tasks[range] {
                let (moved, k) = (part.moved, part.k());
                let (group, first, lanes, block) = panels.get::<T>(*panel);
                let channel = group * channels + first;
                let count = mine.len();
                places(field, moved.window.positions, mine.clone(), &mut at);
                let last = at[count - 1];
                at[count..].fill(last);
                if let Some(bias) = bias {
                    let bias = &bias[channel..channel + lanes];
                    acc.chunks_exact_mut(block.width).for_each(|row| row[..lanes].copy_from_slice(bias));
                } else if k == 0 {
                    acc.fill(T::ZERO);
                }
                for piece in 0..part.pieces {
                    let terms = part.piece(piece);
                    let b =
                        if often { transposed_at(part, *panel, piece).get() } else { packed.as_mut_ptr() };
                    if !often {
                        transpose(part, *panel, piece, b);
                    }
                    // SAFETY: the planes have every offset, and the buffers hold such blocks.
                    unsafe {
                        let a = memory.get().add(group * sums * field.channel);
                        for i in (0..count).step_by(block.rows) {
                            let (rows, steps) = (at.as_ptr().add(i), offsets.as_ptr().add(terms.start));
                            let (to, size) =
                                (acc.as_mut_ptr().add(i * block.width), block.rows * block.width);
                            let terms = [terms.len(), terms_per_sum(k, terms.len())];
                            if piece == 0 {
                                (block.run)(terms, a, rows, steps, b, to, bias.is_some());
                                continue;
                            }
                            // Each piece has a sum of its own, which keeps long sums exact.
                            (block.run)(terms, a, rows, steps, b, own.as_mut_ptr(), false);
                            add_up(size, own.as_ptr(), to);
                        }
                    }
                }
                rows(part.rows, mine.clone(), |at, sample, place, n| {
                    let d = |d: usize| (moved.start[d] + place[d] * moved.every[d]) * result.strides[d];
                    let to = (samples.start + sample) * result.sample + channel * result.channel;
                    let to = to + d(0) + d(1) + d(2);
                    let step = moved.every[2] * result.strides[2];
                    // SAFETY: the result has these elements, which belong to this task alone.
                    unsafe {
                        let (from, to) = (acc.as_ptr().add(at * block.width), result.ptr.cast::<T>().add(to));
                        transpose_out([lanes, n], from, block.width, to, [result.channel, step], false);
                    }
                });
            }
            Ok(())
        })
    };
    let window = Window::union(moves.iter().map(|moved| &moved.window));
    // SAFETY: the caller's image.
    unsafe { parts(&window, image, conv.samples, conv.groups * sums, [ROOM, 0], each) }
}

/// The gradient of the weights; `out` is contiguous.
///
/// # Safety
/// See [`super::backward_weight`].
pub unsafe fn weights<T: Float>(
    conv: &Conv,
    window: &Window,
    out: Strided,
    image: &Image,
    grads: &Image,
) -> Result<()> {
    let positions = window.positions;
    let one: usize = positions.iter().product();
    let columns = conv.inputs * conv.windows.kernel_numel();
    let panels = &Panels::new::<T>(conv.outputs);
    let all = conv.groups * panels.count;
    let strips = strips(columns, all);
    let longest = columns.div_ceil(strips).next_multiple_of(STRIP / 8);
    let gradient = Field::of_image(grads, [1; 3]);
    let to = Shared::new(out.ptr.cast::<T>());
    let mut transposed = vec![];
    let each = |samples: Range<usize>, field: &Field, memory: Shared<T>| {
        let total = samples.len() * one;
        let (mut at, mut from) = (scratch(total, 0)?, scratch(total, 0)?);
        places(field, positions, 0..total, &mut at);
        places(&gradient, positions, 0..total, &mut from);
        if transposed.is_empty() {
            // The first part is the largest.
            transposed = scratch(all * panels.width * total, T::ZERO)?;
        }
        let packed = Shared::new(transposed.as_ptr());
        let depth = panels.depth;
        let pieces = total.div_ceil(depth);
        let piece = |i: usize| i * depth..total.min((i + 1) * depth);
        let taps = field.taps(window);
        let (at, from, taps) = (&at, &from, &taps);
        par::ranges(all * pieces, (GRAIN / (depth * panels.width)).max(1), |range| {
            for task in range {
                let (panel, piece) = (task / pieces, piece(task % pieces));
                let (group, first, lanes, block) = panels.get::<T>(panel);
                // SAFETY: the caller's gradients; this piece of the panel belongs to this task alone.
                unsafe {
                    let channel = (group * conv.outputs + first) * grads.channel;
                    let own = grads.ptr.cast::<T>().add(samples.start * grads.sample + channel);
                    let to = packed.get().add(panel * panels.width * total + piece.start * block.width);
                    transpose_in(own, grads.channel, lanes, &from[piece], to, block.width);
                }
            }
        });
        let work = total * panels.width * columns.div_ceil(strips);
        par::try_ranges(all * strips, (GRAIN * 16 / work.max(1)).max(1), |range| {
            let mut acc = scratch(longest * panels.width, T::ZERO)?;
            let mut own = [T::ZERO; LARGEST];
            for task in range {
                let (panel, strip) = (task / strips, task % strips);
                let (group, first, lanes, block) = panels.get::<T>(panel);
                let mine = strip * columns / strips..(strip + 1) * columns / strips;
                let offset = |column: usize| {
                    let column = (mine.start + column).min(mine.end - 1);
                    let channel = group * conv.inputs + column / taps.len();
                    channel * field.channel + taps[column % taps.len()]
                };
                let offsets: Vec<usize> = (0..mine.len().next_multiple_of(block.rows)).map(offset).collect();
                // SAFETY: the planes have every offset, and the buffers hold such blocks; this part of the result
                // belongs to this task alone.
                unsafe {
                    for piece in (0..pieces).map(piece) {
                        let b = packed.get().add(panel * panels.width * total + piece.start * block.width);
                        for i in (0..mine.len()).step_by(block.rows) {
                            let (rows, steps) = (offsets.as_ptr().add(i), at.as_ptr().add(piece.start));
                            let (to, size) =
                                (acc.as_mut_ptr().add(i * block.width), block.rows * block.width);
                            let (terms, a) =
                                ([piece.len(), terms_per_sum(conv.samples * one, piece.len())], memory.get());
                            if piece.start == 0 {
                                (block.run)(terms, a, rows, steps, b, to, false);
                                continue;
                            }
                            (block.run)(terms, a, rows, steps, b, own.as_mut_ptr(), false);
                            add_up(size, own.as_ptr(), to);
                        }
                    }
                    let to = to.get().add((group * conv.outputs + first) * columns + mine.start);
                    let add = samples.start > 0;
                    transpose_out([lanes, mine.len()], acc.as_ptr(), block.width, to, [columns, 1], add);
                }
            }
            Ok(())
        })
    };
    // The result is read and written once for each part of the batch, so if it is large, use few parts.
    let bytes = out.numel() * size_of::<T>();
    let beside = all * panels.width * one * size_of::<T>();
    // SAFETY: the caller's image.
    unsafe { parts(window, image, conv.samples, conv.groups * conv.inputs, [ROOM.max(bytes), beside], each) }
}

/// Number of positions that are transposed together, in and out. `LINE` fills whole cache lines; on the way out, `LONG`
/// rarely switches between lines whose addresses collide.
const LINE: usize = 16;
const LONG: usize = 128;

/// `to[p][c] = from[c * channel_step + steps[p]]`, in rows of `width`, which are filled up with zeros.
///
/// # Safety
/// `from` has these elements; `to` has `width` for each step.
pub unsafe fn transpose_in<T: Float>(
    from: *const T,
    channel_step: usize,
    channels: usize,
    steps: &[usize],
    to: *mut T,
    width: usize,
) {
    let size = size_of::<T>();
    let mut p = 0;
    while let Some(&step) = steps.get(p) {
        let near = steps[p..].iter().take(LINE).zip(step..).take_while(|(a, b)| **a == *b).count();
        let n = if near < 4 { near } else { near & !3 };
        let squares = if near < 4 || channel_step == 1 { 0 } else { channels & !3 };
        if squares > 0
            && let Some(next) = steps.get(p + 2 * n)
        {
            (0..channels).for_each(|c| fetch::<T, 1>(from.wrapping_add(c * channel_step + next)));
        }
        // SAFETY: the caller's contract.
        unsafe {
            let (from, to) = (from.add(step), to.add(p * width));
            for c in (0..squares).step_by(4) {
                for i in (0..n).step_by(4) {
                    let (from, to) = (from.add(c * channel_step + i), to.add(i * width + c));
                    transpose_square::<T>(from.cast(), channel_step * size, to.cast(), width * size);
                }
            }
            for i in 0..n {
                let (from, to) = (from.add(i), to.add(i * width));
                if channel_step == 1 {
                    to.copy_from_nonoverlapping(from, channels);
                } else {
                    (squares..channels).for_each(|c| *to.add(c) = *from.add(c * channel_step));
                }
                (channels..width).for_each(|c| *to.add(c) = T::ZERO);
            }
        }
        p += n;
    }
}

/// `to[c * channel_step + p * step] = from[p][c]`, from rows of `width`; with `add`, adds to the old values.
///
/// # Safety
/// Both have these channels and positions.
pub unsafe fn transpose_out<T: Float>(
    [channels, positions]: [usize; 2],
    from: *const T,
    width: usize,
    to: *mut T,
    [channel_step, step]: [usize; 2],
    add: bool,
) {
    let size = size_of::<T>();
    let squares = [channels & !3, positions & !3];
    // SAFETY: the caller's contract.
    unsafe {
        let put = |to: *mut T, value: T| if add { *to += value } else { *to = value };
        if channel_step == 1 && !add {
            for p in 0..positions {
                to.add(p * step).copy_from_nonoverlapping(from.add(p * width), channels);
            }
            return;
        }
        for first in (0..squares[1]).step_by(LONG) {
            for c in (0..squares[0]).step_by(4) {
                for p in (first..squares[1].min(first + LONG)).step_by(4) {
                    let (from, to) = (from.add(p * width + c), to.add(c * channel_step + p * step));
                    if !add && step == 1 {
                        transpose_square::<T>(from.cast(), width * size, to.cast(), channel_step * size);
                        continue;
                    }
                    let mut square = [[T::ZERO; 4]; 4];
                    transpose_square::<T>(from.cast(), width * size, square.as_mut_ptr().cast(), 4 * size);
                    for (i, line) in square.into_iter().enumerate() {
                        line.into_iter()
                            .enumerate()
                            .for_each(|(j, v)| put(to.add(i * channel_step + j * step), v));
                    }
                }
            }
        }
        for c in 0..channels {
            let done = if c < squares[0] { squares[1] } else { 0 };
            (done..positions)
                .for_each(|p| put(to.add(c * channel_step + p * step), *from.add(p * width + c)));
        }
    }
}
