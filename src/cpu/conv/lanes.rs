//! Convolutions with channels in the lanes of registers. What the window meets is read element by element, so that nothing is laid
//! out for it but padding, where there is any; weights, or gradients, are turned a piece at a time.

use super::kernel::{LARGEST, LanesBlock, Real, short};
use super::planes::{Field, Planes};
use super::sizes::{Conv, Image, Moved, Window};
use crate::base::{Result, Strided};
use crate::cpu::element::scratch;
use crate::cpu::par::{self, GRAIN, Shared};
use crate::cpu::simd::{fetch, turn_square};
use std::ops::Range;

/// Positions that one piece of the weights is multiplied with, and rows of weights whose gradients are summed together.
const STRIP: usize = 240;
/// Bytes of padded images, and of turned gradients, that are laid out at once.
const ROOM: usize = 2 << 20;

/// Writes the places of `range` of the positions of all samples to `to`.
fn places(field: &Field, positions: [usize; 3], range: Range<usize>, to: &mut [usize]) {
    rows(positions, range, |at, sample, place, n| {
        let (first, along) = (field.place(sample, place), field.along());
        to[at..at + n].iter_mut().enumerate().for_each(|(j, to)| *to = first + j * along);
    });
}

/// The rows that `range` of the positions consists of: where in it each begins, its sample, its place there, how long it is.
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

/// Calls `each` with parts of the samples, and where what the window meets there lies from which element on. A part has so
/// many that it fits, `beside` bytes for each of them included: as the sizes say, on any number of threads.
///
/// # Safety
/// The image has these samples and channels.
unsafe fn parts<T: Real>(
    window: &Window,
    image: &Image,
    samples: usize,
    channels: usize,
    [room, beside]: [usize; 2],
    mut each: impl FnMut(Range<usize>, &Field, Shared<T>) -> Result<()>,
) -> Result<()> {
    let own = window.inside(image.size).then(|| Field::of_image(image, window.step));
    // Elements are read one by one, so that those a step apart may stay so.
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
            // SAFETY: there is room for these channels, whose planes are this task's alone; the image is the caller's.
            unsafe { planes.fill(to.get(), image, first, 0, range) };
        });
        each(part, &planes.stepped(window.step), to)?;
    }
    Ok(())
}

/// How channels are cut: all pieces but the last fill the widest block.
struct Panels {
    channels: usize,
    width: usize,
    /// Terms that are multiplied at a time.
    depth: usize,
    /// Of a group.
    count: usize,
}

impl Panels {
    fn new<T: Real>(channels: usize) -> Panels {
        let LanesBlock { width, depth, .. } = T::lanes(channels);
        Panels { channels, width, depth, count: channels.div_ceil(width) }
    }

    /// Its group, its first channel, how many it has, their block.
    fn get<T: Real>(&self, panel: usize) -> (usize, usize, usize, LanesBlock<T>) {
        let (group, first) = (panel / self.count, panel % self.count * self.width);
        let block = T::lanes(self.channels - first);
        (group, first, block.width.min(self.channels - first), block)
    }
}

/// How many strips `n` is cut into, for so many panels: each thread gets as many as the others.
fn strips(n: usize, panels: usize) -> usize {
    let threads = par::threads();
    let most = n.div_ceil(STRIP / 8);
    let strips = n.div_ceil(STRIP).max((4 * threads).div_ceil(panels.max(1)).min(most));
    let even = (1..threads).find(|m| (m * panels).is_multiple_of(threads)).unwrap_or(threads);
    let shared = strips.next_multiple_of(even);
    if shared <= most { shared } else { strips }
}

/// A window that is moved, and how its terms are cut.
struct Part<'a> {
    moved: &'a Moved,
    weight: Image,
    /// From the weights of one channel to the next, and where those of each term are.
    far: usize,
    weights_at: Vec<usize>,
    pieces: usize,
    /// Terms of a piece.
    depth: usize,
    /// Terms of the parts before this one.
    before: usize,
    /// Positions of a sample.
    one: usize,
    /// Results of a sample as rows.
    rows: [usize; 3],
}

impl Part<'_> {
    fn new<'a>(moved: &'a Moved, weight: &Strided, result: &Image, depth: usize, before: usize) -> Part<'a> {
        let (weight, far, weights_at) = moved.weights(weight);
        let positions = moved.window.positions;
        let one = positions.iter().product();
        // Results that lie one after the other are one row.
        let steps = [positions[1] * positions[2], positions[2], 1];
        let follows = |d: usize| moved.every[d] == 1 && result.strides[d] == steps[d];
        let dense = (0..3).all(|d| positions[d] == 1 || follows(d));
        let rows = if dense { [1, 1, one] } else { positions };
        let pieces = weights_at.len().div_ceil(depth);
        let depth = weights_at.len().div_ceil(pieces.max(1));
        Part { moved, weight, far, weights_at, pieces, depth, before, one, rows }
    }

    /// How many terms a result is the sum of.
    fn k(&self) -> usize {
        self.weights_at.len()
    }

    fn piece(&self, piece: usize) -> Range<usize> {
        piece * self.depth..self.k().min((piece + 1) * self.depth)
    }
}

/// The results of all `moves`, which take the same steps: sums of products of the image and the weights, plus `bias`.
///
/// # Safety
/// As [`super::few::product`]; no two moves have a result in common.
pub unsafe fn product<T: Real>(
    conv: &Conv,
    moves: &[Moved],
    result: &Image,
    image: &Image,
    weight: &Strided,
    bias: Option<&[T]>,
) -> Result<()> {
    let Some(&Moved { from: [sums, channels], .. }) = moves.first() else { return Ok(()) };
    let panels = &Panels::new::<T>(channels);
    let all = conv.groups * panels.count;
    let mut cut: Vec<Part> = Vec::with_capacity(moves.len());
    for moved in moves {
        let before = cut.last().map_or(0, |part| part.before + part.k());
        cut.push(Part::new(moved, weight, result, panels.depth, before));
    }
    let cut = &cut;
    // SAFETY: weights of the caller's; there is room for a piece.
    let turn = |part: &Part, panel: usize, piece: usize, to: *mut T| unsafe {
        let (group, first, lanes, block) = panels.get::<T>(panel);
        let from =
            part.weight.ptr.cast::<T>().add(group * conv.outputs * part.weight.sample + first * part.far);
        turn_in(from, part.far, lanes, &part.weights_at[part.piece(piece)], to, block.width);
    };
    // Weights that several strips meet are turned before.
    let often = cut.iter().any(|part| conv.samples * part.one > STRIP);
    let terms = if often { cut.iter().map(Part::k).sum() } else { 0 };
    let turned = scratch(all * terms * panels.width, T::ZERO)?;
    let turned_at = |part: &Part, panel: usize, piece: usize| {
        let place = (part.before * all + panel * part.k() + piece * part.depth) * panels.width;
        Shared::new(turned.as_ptr().wrapping_add(place))
    };
    if often {
        let mut tasks = vec![];
        for part in cut {
            tasks.extend((0..all * part.pieces).map(|i| (part, i / part.pieces, i % part.pieces)));
        }
        par::ranges(tasks.len(), (GRAIN / (panels.depth * panels.width)).max(1), |range| {
            for &(part, panel, piece) in &tasks[range] {
                turn(part, panel, piece, turned_at(part, panel, piece).get());
            }
        });
    }
    let each = |samples: Range<usize>, field: &Field, memory: Shared<T>| {
        let offsets: Vec<_> = cut.iter().map(|part| field.offsets(&part.moved.window, 0..sums)).collect();
        // All panels of a strip before the next: what it reads, here and there, stays in the second cache.
        let (mut tasks, mut longest, mut work) = (vec![], 0, 0);
        for (part, offsets) in cut.iter().zip(&offsets) {
            let total = samples.len() * part.one;
            let strips = strips(total, all * cut.len());
            // Cut where lines of the cache are, so that results fill whole ones.
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
                    let b = if often { turned_at(part, *panel, piece).get() } else { packed.as_mut_ptr() };
                    if !often {
                        turn(part, *panel, piece, b);
                    }
                    // SAFETY: the planes have every offset; blocks of these sizes.
                    unsafe {
                        let a = memory.get().add(group * sums * field.channel);
                        for i in (0..count).step_by(block.rows) {
                            let (rows, steps) = (at.as_ptr().add(i), offsets.as_ptr().add(terms.start));
                            let (to, size) =
                                (acc.as_mut_ptr().add(i * block.width), block.rows * block.width);
                            let terms = [terms.len(), short(k, terms.len())];
                            if piece == 0 {
                                (block.run)(terms, a, rows, steps, b, to, bias.is_some());
                                continue;
                            }
                            // Sums of pieces are sums of their own, which keeps long ones exact.
                            (block.run)(terms, a, rows, steps, b, own.as_mut_ptr(), false);
                            T::add_up(size, own.as_ptr(), to);
                        }
                    }
                }
                rows(part.rows, mine.clone(), |at, sample, place, n| {
                    let d = |d: usize| (moved.start[d] + place[d] * moved.every[d]) * result.strides[d];
                    let to = (samples.start + sample) * result.sample + channel * result.channel;
                    let to = to + d(0) + d(1) + d(2);
                    let step = moved.every[2] * result.strides[2];
                    // SAFETY: the result has these places, and they are this task's alone.
                    unsafe {
                        let (from, to) = (acc.as_ptr().add(at * block.width), result.ptr.cast::<T>().add(to));
                        turn_out([lanes, n], from, block.width, to, [result.channel, step], false);
                    }
                });
            }
            Ok(())
        })
    };
    let window = Window::over(moves.iter().map(|moved| &moved.window));
    // SAFETY: the caller's image.
    unsafe { parts(&window, image, conv.samples, conv.groups * sums, [ROOM, 0], each) }
}

/// The gradient of the weights; `out` is contiguous.
///
/// # Safety
/// As `backward_weight` of this module's parent.
pub unsafe fn weights<T: Real>(
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
    let mut turned = vec![];
    let each = |samples: Range<usize>, field: &Field, memory: Shared<T>| {
        let total = samples.len() * one;
        let (mut at, mut from) = (scratch(total, 0)?, scratch(total, 0)?);
        places(field, positions, 0..total, &mut at);
        places(&gradient, positions, 0..total, &mut from);
        if turned.is_empty() {
            // The first part is the largest.
            turned = scratch(all * panels.width * total, T::ZERO)?;
        }
        let packed = Shared::new(turned.as_ptr());
        let depth = panels.depth;
        let pieces = total.div_ceil(depth);
        let piece = |i: usize| i * depth..total.min((i + 1) * depth);
        let taps = field.taps(window);
        let (at, from, taps) = (&at, &from, &taps);
        par::ranges(all * pieces, (GRAIN / (depth * panels.width)).max(1), |range| {
            for task in range {
                let (panel, piece) = (task / pieces, piece(task % pieces));
                let (group, first, lanes, block) = panels.get::<T>(panel);
                // SAFETY: the caller's gradients; this piece of the panel is this task's alone.
                unsafe {
                    let channel = (group * conv.outputs + first) * grads.channel;
                    let own = grads.ptr.cast::<T>().add(samples.start * grads.sample + channel);
                    let to = packed.get().add(panel * panels.width * total + piece.start * block.width);
                    turn_in(own, grads.channel, lanes, &from[piece], to, block.width);
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
                // SAFETY: the planes have every offset; blocks of these sizes; this part of the result is this task's alone.
                unsafe {
                    for piece in (0..pieces).map(piece) {
                        let b = packed.get().add(panel * panels.width * total + piece.start * block.width);
                        for i in (0..mine.len()).step_by(block.rows) {
                            let (rows, steps) = (offsets.as_ptr().add(i), at.as_ptr().add(piece.start));
                            let (to, size) =
                                (acc.as_mut_ptr().add(i * block.width), block.rows * block.width);
                            let (terms, a) =
                                ([piece.len(), short(conv.samples * one, piece.len())], memory.get());
                            if piece.start == 0 {
                                (block.run)(terms, a, rows, steps, b, to, false);
                                continue;
                            }
                            (block.run)(terms, a, rows, steps, b, own.as_mut_ptr(), false);
                            T::add_up(size, own.as_ptr(), to);
                        }
                    }
                    let to = to.get().add((group * conv.outputs + first) * columns + mine.start);
                    let add = samples.start > 0;
                    turn_out([lanes, mine.len()], acc.as_ptr(), block.width, to, [columns, 1], add);
                }
            }
            Ok(())
        })
    };
    // What is added up in several parts is read and written again for each: large weights want few parts.
    let bytes = out.numel() * size_of::<T>();
    let beside = all * panels.width * one * size_of::<T>();
    // SAFETY: the caller's image.
    unsafe { parts(window, image, conv.samples, conv.groups * conv.inputs, [ROOM.max(bytes), beside], each) }
}

/// Positions that are turned together, in and out: as many as make whole lines of the cache, and on the way out so long ones that
/// lines whose addresses collide are rarely changed.
const LINE: usize = 16;
const LONG: usize = 128;

/// `to[p][c] = from[c * far + steps[p]]`, in rows of `width`, of which the rest gets zeros.
///
/// # Safety
/// These are elements of `from`; `to` has `width` for each of the steps.
pub unsafe fn turn_in<T: Real>(
    from: *const T,
    far: usize,
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
        let squares = if near < 4 || far == 1 { 0 } else { channels & !3 };
        if squares > 0
            && let Some(next) = steps.get(p + 2 * n)
        {
            (0..channels).for_each(|c| fetch::<T, 1>(from.wrapping_add(c * far + next)));
        }
        // SAFETY: the caller's contract.
        unsafe {
            let (from, to) = (from.add(step), to.add(p * width));
            for c in (0..squares).step_by(4) {
                for i in (0..n).step_by(4) {
                    let (from, to) = (from.add(c * far + i), to.add(i * width + c));
                    turn_square::<T>(from.cast(), far * size, to.cast(), width * size);
                }
            }
            for i in 0..n {
                let (from, to) = (from.add(i), to.add(i * width));
                if far == 1 {
                    to.copy_from_nonoverlapping(from, channels);
                } else {
                    (squares..channels).for_each(|c| *to.add(c) = *from.add(c * far));
                }
                (channels..width).for_each(|c| *to.add(c) = T::ZERO);
            }
        }
        p += n;
    }
}

/// `to[c * far + p * step] = from[p][c]`, of rows of `width`; or that is added to what is there.
///
/// # Safety
/// Both have so many channels and positions.
pub unsafe fn turn_out<T: Real>(
    [channels, positions]: [usize; 2],
    from: *const T,
    width: usize,
    to: *mut T,
    [far, step]: [usize; 2],
    add: bool,
) {
    let size = size_of::<T>();
    let squares = [channels & !3, positions & !3];
    // SAFETY: the caller's contract.
    unsafe {
        let put = |to: *mut T, value: T| if add { *to += value } else { *to = value };
        if far == 1 && !add {
            for p in 0..positions {
                to.add(p * step).copy_from_nonoverlapping(from.add(p * width), channels);
            }
            return;
        }
        for first in (0..squares[1]).step_by(LONG) {
            for c in (0..squares[0]).step_by(4) {
                for p in (first..squares[1].min(first + LONG)).step_by(4) {
                    let (from, to) = (from.add(p * width + c), to.add(c * far + p * step));
                    if !add && step == 1 {
                        turn_square::<T>(from.cast(), width * size, to.cast(), far * size);
                        continue;
                    }
                    let mut square = [[T::ZERO; 4]; 4];
                    turn_square::<T>(from.cast(), width * size, square.as_mut_ptr().cast(), 4 * size);
                    for (i, line) in square.into_iter().enumerate() {
                        line.into_iter().enumerate().for_each(|(j, v)| put(to.add(i * far + j * step), v));
                    }
                }
            }
        }
        for c in 0..channels {
            let done = if c < squares[0] { squares[1] } else { 0 };
            (done..positions).for_each(|p| put(to.add(c * far + p * step), *from.add(p * width + c)));
        }
    }
}
