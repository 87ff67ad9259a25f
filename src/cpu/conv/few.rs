//! Convolutions to few channels, as implicit matrix products over padded planes (`planes.rs`): positions are one long
//! line, and fill the lanes of registers.

use super::kernel::{COLUMNS, LANES, LARGEST, dots_loop, products_block, terms_per_sum};
use super::planes::{Planes, copy_row};
use super::sizes::{Conv, Image, MovedWindow, Window};
use crate::base::{Result, Strided};
use crate::cpu::element::scratch;
use crate::cpu::float::Float;
use crate::cpu::par::{self, Shared};

/// Bytes of planes that stay in a core's cache beside the weights.
const CACHED: usize = 512 << 10;
/// Number of parts of the batch over which gradients of weights are summed at once.
const PARTS: usize = 8;

/// Number of examples that are computed together: as many as the cache holds, but few enough to give all threads work.
fn examples_per_block(samples: usize, bytes_of_one: usize) -> usize {
    let fit = (CACHED / bytes_of_one.max(1)).max(1);
    fit.min(samples.div_ceil(2 * par::threads())).max(1)
}

/// Computes the results of `moved`: sums of products of the image and the weights, plus `bias`, which has one value per
/// channel.
///
/// # Safety
/// Image, result and weights are live memory of `T`s with the sizes in `conv`; nothing overlaps the result.
pub unsafe fn product<T: Float>(
    conv: &Conv,
    moved: &MovedWindow,
    result: &Image,
    image: &Image,
    weight: &Strided,
    bias: Option<&[T]>,
) -> Result<()> {
    let [sums, rows] = moved.from;
    let taps: usize = moved.window.taps.iter().map(Vec::len).product();
    let one = Planes::new(&moved.window, image.size, 1);
    let block = products_block::<T>(rows);
    let k = sums * taps;
    let short = terms_per_sum(k, k);
    let panels = rows.div_ceil(block.rows);
    // SAFETY: the caller's weights.
    let packed = unsafe { pack::<T>(conv, moved, weight, block.rows, panels)? };
    let samples = examples_per_block(conv.samples, one.buffer_len(sums) * size_of::<T>());
    let blocks = conv.samples.div_ceil(samples);
    // With few blocks, threads split the rows as well.
    let shares = if blocks * conv.groups >= par::threads() { 1 } else { panels.min(2 * par::threads()) };
    let planes = Planes::new(&moved.window, image.size, samples);
    let last = conv.samples - (blocks - 1) * samples;
    let tail = Planes::new(&moved.window, image.size, last);
    let offsets = |planes: &Planes| planes.field().offsets(&moved.window, 0..sums);
    let (all_offsets, tail_offsets) = (offsets(&planes), offsets(&tail));
    let work = samples * one.plane() * k * rows;
    let tasks = blocks * conv.groups * shares;
    let by_panel = size_of_val(packed.as_slice()) / conv.groups > CACHED;
    let packed = &packed;
    par::try_ranges(tasks, (par::GRAIN * 16 / work.max(1)).max(1), |range| {
        let mut memory: Vec<T> = Vec::new();
        let (mut laid, mut filled) = (0, None);
        for task in range {
            let (part, group) = (task / shares / conv.groups, task / shares % conv.groups);
            let (planes, offsets) =
                if part + 1 == blocks { (&tail, &tail_offsets) } else { (&planes, &all_offsets) };
            if laid != planes.samples {
                memory = scratch(planes.buffer_len(sums), T::ZERO)?;
                (laid, filled) = (planes.samples, None);
            }
            if filled != Some((part, group)) {
                // SAFETY: a part of the caller's image.
                unsafe {
                    planes.fill(
                        memory.as_mut_ptr(),
                        image,
                        part * samples,
                        group * sums,
                        0..sums * planes.samples,
                    )
                };
                filled = Some((part, group));
            }
            let share = task % shares;
            let mine = share * panels / shares..(share + 1) * panels / shares;
            let starts = planes.positions().div_ceil(block.width);
            for i in 0..starts * mine.len() {
                // Read the larger operand, which the cache does not hold, only once.
                let (panel, start) =
                    if by_panel { (i / starts, i % starts) } else { (i % mine.len(), i / mine.len()) };
                let (panel, start) = (mine.start + panel, start * block.width);
                let mut acc = [T::ZERO; LARGEST];
                for first in (0..k).step_by(short) {
                    let depth = short.min(k - first);
                    // SAFETY: the panel has `k` rows, and the planes have room past every offset.
                    unsafe {
                        let a = packed.as_ptr().add(((group * panels + panel) * k + first) * block.rows);
                        let b = memory.as_ptr().add(start);
                        (block.run)(depth, a, b, offsets.as_ptr().add(first), acc.as_mut_ptr());
                    }
                }
                for i in 0..block.rows.min(rows - panel * block.rows) {
                    let channel = group * rows + panel * block.rows + i;
                    let line = &mut acc[i * block.width..(i + 1) * block.width];
                    if let Some(bias) = bias {
                        line.iter_mut().for_each(|v| *v += bias[channel]);
                    }
                    planes.runs(moved.window.positions, start, block.width, |at, sample, place, n| {
                        let d = |d: usize| (moved.start[d] + place[d] * moved.every[d]) * result.strides[d];
                        let to = (part * samples + sample) * result.sample + channel * result.channel;
                        let (to, step) = (to + d(0) + d(1) + d(2), moved.every[2] * result.strides[2]);
                        // SAFETY: the result has these elements, which belong to this task alone.
                        unsafe {
                            let to = result.ptr.cast::<T>().add(to);
                            if step == 1 {
                                copy_row(line.as_ptr().add(at), 1, std::slice::from_raw_parts_mut(to, n));
                            } else {
                                (0..n).for_each(|j| *to.add(j * step) = line[at + j]);
                            }
                        }
                    });
                }
            }
        }
        Ok(())
    })
}

/// Packs the weights in panels of `height` rows; the last one is filled with zeros.
unsafe fn pack<T: Float>(
    conv: &Conv,
    moved: &MovedWindow,
    weight: &Strided,
    height: usize,
    panels: usize,
) -> Result<Vec<T>> {
    let rows = moved.from[1];
    let (w, row_step, offsets) = moved.weights(weight);
    let size = offsets.len() * height;
    let packed = scratch(conv.groups * panels * size, T::ZERO)?;
    let to = Shared::new(packed.as_ptr());
    let (w, offsets) = (&w, &offsets);
    par::ranges(conv.groups * panels, (par::GRAIN / size.max(1)).max(1), |range| {
        for job in range {
            let (group, first) = (job / panels, job % panels * height);
            let from = group * conv.outputs * w.sample + first * row_step;
            for (i, offset) in offsets.iter().enumerate() {
                for row in 0..height.min(rows - first) {
                    // SAFETY: the caller's weights have this element; the panel belongs to this task alone.
                    unsafe {
                        let value = *w.ptr.cast::<T>().add(from + row * row_step + offset);
                        *to.get().add(job * size + i * height + row) = value;
                    }
                }
            }
        }
    });
    Ok(packed)
}

/// The gradient of the weights, for groups with few outputs; `out` is contiguous.
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
    let columns = conv.inputs * conv.windows.kernel_numel();
    let whole = conv.groups * conv.outputs * columns;
    let one = Planes::new(window, image.size, 1);
    let parts = conv.samples.clamp(1, PARTS);
    let mut sums = scratch(whole * parts, T::ZERO)?;
    let to = Shared::new(sums.as_ptr());
    let work = conv.samples / parts * one.plane() * columns * conv.outputs;
    let bytes = (one.buffer_len(conv.inputs) + conv.outputs * one.plane()) * size_of::<T>();
    let run = dots_loop::<T>();
    par::try_ranges(parts * conv.groups, (par::GRAIN * 16 / work.max(1)).max(1), |range| {
        let (mut memory, mut lines): (Vec<T>, Vec<T>) = (vec![], vec![]);
        let mut laid = 0;
        for task in range {
            let (part, group) = (task / conv.groups, task % conv.groups);
            let samples = part * conv.samples / parts..(part + 1) * conv.samples / parts;
            let most = (CACHED / bytes).clamp(1, samples.len().max(1));
            for start in samples.clone().step_by(most) {
                let n = most.min(samples.end - start);
                let planes = Planes::new(window, image.size, n);
                let long = planes.positions().next_multiple_of(LANES);
                if laid != n {
                    memory = scratch(planes.buffer_len(conv.inputs), T::ZERO)?;
                    lines = scratch(conv.outputs * long, T::ZERO)?;
                    laid = n;
                }
                // SAFETY: parts of the caller's tensors.
                unsafe {
                    planes.fill(memory.as_mut_ptr(), image, start, group * conv.inputs, 0..conv.inputs * n);
                    planes.runs(window.positions, 0, planes.positions(), |at, sample, place, n| {
                        let from = (start + sample) * grads.sample + group * conv.outputs * grads.channel;
                        let from = from + (0..3).map(|d| place[d] * grads.strides[d]).sum::<usize>();
                        for (output, line) in lines.chunks_exact_mut(long).enumerate() {
                            let from = grads.ptr.cast::<T>().add(from + output * grads.channel);
                            copy_row(from, grads.strides[2], &mut line[at..at + n]);
                        }
                    });
                }
                let offsets = planes.field().offsets(window, 0..conv.inputs);
                for column in (0..columns).step_by(COLUMNS) {
                    let at: [usize; COLUMNS] =
                        std::array::from_fn(|j| offsets[(column + j).min(columns - 1)]);
                    for (output, line) in lines.chunks_exact(long).enumerate() {
                        let mut acc = [T::ZERO; COLUMNS];
                        let sum = part * whole + (group * conv.outputs + output) * columns + column;
                        // SAFETY: the planes have room past every offset; the sums belong to this task alone.
                        unsafe {
                            run(long, line.as_ptr(), memory.as_ptr(), at.as_ptr(), acc.as_mut_ptr());
                            for (j, part) in acc.iter().enumerate().take(columns - column) {
                                *to.get().add(sum + j) += *part;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    })?;
    let (head, rest) = sums.split_at_mut(whole);
    for part in rest.chunks_exact(whole) {
        head.iter_mut().zip(part).for_each(|(to, from)| *to += *from);
    }
    // SAFETY: the caller's contiguous result.
    unsafe { head.as_ptr().copy_to_nonoverlapping(out.ptr.cast::<T>(), whole) };
    Ok(())
}
