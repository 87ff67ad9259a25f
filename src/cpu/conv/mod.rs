//! Convolutions of one to three dimensions, their transposes and the gradients of both: implicit matrix products over
//! padded planes (`planes.rs`), whose blocks stay in registers (`kernel.rs`), or plain ones (`columns.rs`, `points.rs`). Each result is
//! summed in one order, so that it has the same bits on any number of threads.

mod columns;
mod kernel;
mod planes;
mod points;
mod sizes;
mod turned;

pub use sizes::Conv;

use super::element::scratch;
use super::par::{self, Shared};
use crate::base::{DType, Fault, Result, Strided, room};
use kernel::{COLUMNS, DEPTH, LANES, LARGEST, Real};
use planes::Planes;
use sizes::{Image, Moved, Window};

/// Bytes of planes that stay in a core's cache beside the weights.
const CACHED: usize = 512 << 10;
/// Gradients of weights up to this many elements are summed over parts of the samples side by side.
const SMALL: usize = 1 << 16;
const PARTS: usize = 8;

/// `out = x * weight + bias`.
///
/// # Safety
/// The views describe live memory of these sizes and one dtype; `out` overlaps nothing.
pub unsafe fn forward(
    conv: &Conv,
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    check(conv)?;
    let taps = [0, 1, 2].map(|d| {
        let place = |k| (k * conv.dilation[d]) as isize - conv.padding[d] as isize;
        (0..conv.kernel[d]).map(place).collect()
    });
    let window = Window { step: conv.stride, positions: conv.result, taps };
    let all = [0, 1, 2].map(|d| (0..conv.kernel[d]).collect::<Vec<_>>());
    let moved = Moved {
        window,
        chosen: all,
        from: [conv.inputs, conv.outputs],
        swapped: false,
        start: [0; 3],
        every: [1; 3],
    };
    // SAFETY: handed on.
    unsafe { by_dtype(conv, &moved, out, x, weight, bias) }
}

/// The gradient of a convolution's image, which is also the transposed convolution of `grad`.
///
/// # Safety
/// As [`forward`]; `grad` has the sizes of the result, `out` those of the image.
pub unsafe fn backward_input(
    conv: &Conv,
    out: Strided,
    grad: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    check(conv)?;
    // Elements of the image that lie a stride apart meet the same taps: each such part is a convolution of its own.
    let s = conv.stride;
    let [depth, height, width] = [0, 1, 2].map(|d| s[d].min(conv.image[d]));
    for part in 0..depth * height * width {
        let start = [part / (height * width), part / width % height, part % width];
        let chosen: [Vec<usize>; 3] = [0, 1, 2].map(|d| {
            let meets = |k: &usize| {
                (start[d] + conv.padding[d] + s[d] * conv.dilation[d] * conv.kernel[d] - k * conv.dilation[d])
                    .is_multiple_of(s[d])
            };
            (0..conv.kernel[d]).filter(meets).collect()
        });
        let taps = [0, 1, 2].map(|d| {
            let place = |&k: &usize| {
                let at = (start[d] + conv.padding[d]) as isize - (k * conv.dilation[d]) as isize;
                at.div_euclid(s[d] as isize)
            };
            chosen[d].iter().map(place).collect()
        });
        let positions = [0, 1, 2].map(|d| (conv.image[d] - start[d]).div_ceil(s[d]));
        let window = Window { step: [1; 3], positions, taps };
        let moved = Moved {
            window,
            chosen,
            from: [conv.outputs, conv.inputs],
            swapped: true,
            start,
            every: conv.stride,
        };
        // SAFETY: handed on.
        unsafe { by_dtype(conv, &moved, out, grad, weight, bias)? };
    }
    Ok(())
}

/// Refuses more taps than there is room to list, for each of the channels that are summed.
fn check(conv: &Conv) -> Result<()> {
    let taps: usize = conv.kernel.iter().product();
    room::check(taps.saturating_mul(conv.inputs.max(conv.outputs)), 128)
}

unsafe fn by_dtype(
    conv: &Conv,
    moved: &Moved,
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    let points = points::apply(conv, &x, &out);
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F32 if points => points::product::<f32>(conv, out, x, weight, bias, moved.swapped),
            DType::F64 if points => points::product::<f64>(conv, out, x, weight, bias, moved.swapped),
            DType::F32 => products::<f32>(conv, moved, out, x, weight, bias),
            DType::F64 => products::<f64>(conv, moved, out, x, weight, bias),
            dtype => Err(Fault::NoKernel { op: "convolution", dtype }.into()),
        }
    }
}

/// How many samples are computed together: as many as the cache holds, and enough parts for all threads.
fn together(samples: usize, bytes_of_one: usize) -> usize {
    let fit = (CACHED / bytes_of_one.max(1)).max(1);
    fit.min(samples.div_ceil(2 * par::threads())).max(1)
}

unsafe fn products<T: Real>(
    conv: &Conv,
    moved: &Moved,
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    let [sums, rows] = moved.from;
    let (image, result) = (Image::new(&x), Image::new(&out));
    let taps: usize = moved.window.taps.iter().map(Vec::len).product();
    let one = Planes::new(&moved.window, image.size, 1);
    if conv.samples == 0 || moved.window.positions.contains(&0) {
        return Ok(());
    }
    let block = T::block(rows);
    let k = sums * taps;
    let panels = rows.div_ceil(block.rows);
    let bias: Option<Vec<T>> = match bias {
        None => None,
        Some(bias) => {
            let mut values = scratch(conv.groups * rows, T::ZERO)?;
            // SAFETY: one element for each channel.
            values
                .iter_mut()
                .enumerate()
                .for_each(|(i, v)| unsafe { *v = *bias.ptr.cast::<T>().add(i * bias.strides[0]) });
            Some(values)
        }
    };
    if turned::pay::<T>(&moved.window, one.plane(), sums, rows, block.rows) {
        // SAFETY: handed on.
        return unsafe { turned::product(conv, moved, &result, &image, &weight, bias.as_deref()) };
    }
    if columns::pay(&moved.window, one.plane(), sums, rows) {
        // SAFETY: handed on.
        return unsafe { columns::product(conv, moved, out, x, weight, bias.as_deref()) };
    }
    // SAFETY: the caller's weights.
    let packed = unsafe { pack::<T>(conv, moved, &weight, block.rows, panels)? };
    let samples = together(conv.samples, one.room(sums) * size_of::<T>());
    let blocks = conv.samples.div_ceil(samples);
    // With few samples, threads share the rows.
    let shares = if blocks * conv.groups >= par::threads() { 1 } else { panels.min(2 * par::threads()) };
    let planes = Planes::new(&moved.window, image.size, samples);
    let last = conv.samples - (blocks - 1) * samples;
    let tail = Planes::new(&moved.window, image.size, last);
    let offsets = |planes: &Planes| -> Vec<usize> {
        (0..sums).flat_map(|c| planes.taps.iter().map(move |tap| c * planes.channel + tap)).collect()
    };
    let (all_offsets, tail_offsets) = (offsets(&planes), offsets(&tail));
    let work = samples * one.plane() * k * rows;
    let tasks = blocks * conv.groups * shares;
    let by_panel = size_of_val(packed.as_slice()) / conv.groups > CACHED;
    let (image, result, bias, packed) = (&image, &result, &bias, &packed);
    par::try_ranges(tasks, (par::GRAIN * 16 / work.max(1)).max(1), |range| {
        let mut memory: Vec<T> = Vec::new();
        let (mut laid, mut filled) = (0, None);
        for task in range {
            let (part, group) = (task / shares / conv.groups, task / shares % conv.groups);
            let (planes, offsets) =
                if part + 1 == blocks { (&tail, &tail_offsets) } else { (&planes, &all_offsets) };
            if laid != planes.samples {
                memory = scratch(planes.room(sums), T::ZERO)?;
                (laid, filled) = (planes.samples, None);
            }
            if filled != Some((part, group)) {
                // SAFETY: the caller's image, of which this is a part.
                unsafe { planes.fill(&mut memory, image, part * samples, group * sums, sums) };
                filled = Some((part, group));
            }
            let share = task % shares;
            let mine = share * panels / shares..(share + 1) * panels / shares;
            let starts = planes.positions().div_ceil(block.width);
            for i in 0..starts * mine.len() {
                // What is too much for the cache is read once.
                let (panel, start) =
                    if by_panel { (i / starts, i % starts) } else { (i % mine.len(), i / mine.len()) };
                let (panel, start) = (mine.start + panel, start * block.width);
                let mut acc = [T::ZERO; LARGEST];
                for first in (0..k).step_by(DEPTH) {
                    let depth = DEPTH.min(k - first);
                    // SAFETY: the panel has k rows; the planes have room past every offset.
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
                        // SAFETY: the result has these places, and they are this task's alone.
                        unsafe {
                            let to = result.ptr.cast::<T>().add(to);
                            if step == 1 {
                                to.copy_from_nonoverlapping(line.as_ptr().add(at), n);
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

/// The weights by panels of so many rows, row by row; the last one is filled with zeros.
unsafe fn pack<T: Real>(
    conv: &Conv,
    moved: &Moved,
    weight: &Strided,
    height: usize,
    panels: usize,
) -> Result<Vec<T>> {
    let w = Image::new(weight);
    let [sums, rows] = moved.from;
    let taps: usize = moved.chosen.iter().map(Vec::len).product();
    let packed = scratch(conv.groups * panels * sums * taps * height, T::ZERO)?;
    let to = Shared::new(packed.as_ptr());
    let size = sums * taps * height;
    let (w, to) = (&w, &to);
    // Weights are [outputs of all groups, inputs of one].
    let (sum_step, row_step) = if moved.swapped { (w.sample, w.channel) } else { (w.channel, w.sample) };
    par::ranges(conv.groups * panels, (par::GRAIN / size.max(1)).max(1), |range| {
        for job in range {
            let (group, first) = (job / panels, job % panels * height);
            let from = group * conv.outputs * w.sample + first * row_step;
            let mut at = job * size;
            for sum in 0..sums {
                for &d in &moved.chosen[0] {
                    for &h in &moved.chosen[1] {
                        for &x in &moved.chosen[2] {
                            let tap = d * w.strides[0] + h * w.strides[1] + x * w.strides[2];
                            for row in 0..height.min(rows - first) {
                                let from = from + sum * sum_step + row * row_step + tap;
                                // SAFETY: the caller's weights have this element; the panel is this task's alone.
                                unsafe { *to.get().add(at + row) = *w.ptr.cast::<T>().add(from) };
                            }
                            at += height;
                        }
                    }
                }
            }
        }
    });
    Ok(packed)
}

/// The gradient of a convolution's weights.
///
/// # Safety
/// As [`forward`]; `out` has the sizes of the weights and is contiguous, `grad` those of the result.
pub unsafe fn backward_weight(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    check(conv)?;
    let points = points::apply(conv, &x, &grad);
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F32 if points => points::weights::<f32>(conv, out, x, grad),
            DType::F64 if points => points::weights::<f64>(conv, out, x, grad),
            DType::F32 => weights::<f32>(conv, out, x, grad),
            DType::F64 => weights::<f64>(conv, out, x, grad),
            dtype => Err(Fault::NoKernel { op: "convolution_backward", dtype }.into()),
        }
    }
}

unsafe fn weights<T: Real>(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    let (image, grads) = (&Image::new(&x), &Image::new(&grad));
    let taps = [0, 1, 2].map(|d| {
        let place = |k| (k * conv.dilation[d]) as isize - conv.padding[d] as isize;
        (0..conv.kernel[d]).map(place).collect()
    });
    let window = Window { step: conv.stride, positions: conv.result, taps };
    let count: usize = conv.kernel.iter().product();
    let whole = conv.groups * conv.outputs * conv.inputs * count;
    let one = Planes::new(&window, image.size, 1);
    if conv.samples > 0 && columns::pay(&window, one.plane(), conv.inputs, conv.outputs) {
        // SAFETY: handed on.
        return unsafe { columns::weights::<T>(conv, &window, out, x, grad) };
    }
    let parts = if whole <= SMALL { conv.samples.clamp(1, PARTS) } else { 1 };
    // Channels of the image that a task sums for; and those that say how many samples it sums together, on any number of threads.
    let (share, few) = match parts > 1 {
        true => (conv.inputs, conv.inputs),
        false => (conv.inputs.div_ceil(2 * par::threads()), conv.inputs.div_ceil(16)),
    };
    let shares = conv.inputs.div_ceil(share.max(1));
    let mut sums = scratch(whole * parts, T::ZERO)?;
    let to = Shared::new(sums.as_ptr());
    // One channel's positions are multiplied in lines; of several, each position has its channels side by side.
    let outer = (conv.outputs > 1).then(|| T::outer(conv.outputs));
    let width = outer.map_or(1, |block| block.width);
    let rows = conv.outputs.next_multiple_of(width);
    let tasks = parts * conv.groups * shares;
    let work = conv.samples / parts * one.plane() * share * count * conv.outputs;
    par::try_ranges(tasks, (par::GRAIN * 16 / work.max(1)).max(1), |range| {
        for task in range {
            let (part, group, first) =
                (task / shares / conv.groups, task / shares % conv.groups, task % shares * share);
            let channels = share.min(conv.inputs - first);
            let samples = part * conv.samples / parts..(part + 1) * conv.samples / parts;
            let bytes = (one.room(few) + rows * one.plane()) * size_of::<T>();
            let most = (CACHED / bytes).clamp(1, samples.len().max(1));
            let mut start = samples.start;
            let (mut memory, mut lines): (Vec<T>, Vec<T>) = (vec![], vec![]);
            let mut laid = 0;
            let columns = channels * count;
            // Where the sum for an output and a column goes: such elements are this task's alone.
            let sum_at = |output: usize, column: usize| {
                let output = group * conv.outputs + output;
                part * whole + (output * conv.inputs + first) * count + column
            };
            let height = outer.map_or(1, |block| columns.next_multiple_of(block.rows));
            let mut acc = scratch(if outer.is_some() { height * rows } else { 0 }, T::ZERO)?;
            while start < samples.end {
                let n = most.min(samples.end - start);
                let planes = Planes::new(&window, image.size, n);
                let long = planes.positions().next_multiple_of(LANES);
                if laid != n {
                    (memory, lines) =
                        (scratch(planes.room(channels), T::ZERO)?, scratch(rows * long, T::ZERO)?);
                    laid = n;
                }
                // SAFETY: parts of the caller's tensors.
                unsafe {
                    planes.fill(&mut memory, image, start, group * conv.inputs + first, channels);
                    for row in 0..conv.outputs {
                        let line = &mut lines[row / width * width * long..];
                        planes.runs(conv.result, 0, planes.positions(), |at, sample, place, n| {
                            let channel = group * conv.outputs + row;
                            let from = (start + sample) * grads.sample + channel * grads.channel;
                            let from = from + (0..3).map(|d| place[d] * grads.strides[d]).sum::<usize>();
                            let from = grads.ptr.cast::<T>().add(from);
                            let lane = row % width;
                            (0..n).for_each(|j| {
                                line[(at + j) * width + lane] = *from.add(j * grads.strides[2]);
                            });
                        });
                    }
                }
                let place = |column: usize| {
                    let column = column.min(columns - 1);
                    column / count * planes.channel + planes.taps[column % count]
                };
                let Some(block) = outer else {
                    let run = T::dots();
                    for column in (0..columns).step_by(COLUMNS) {
                        let at: [usize; COLUMNS] = std::array::from_fn(|j| place(column + j));
                        let mut acc = [T::ZERO; COLUMNS];
                        // SAFETY: lines of `long` elements, and planes with room past every offset.
                        unsafe {
                            run(long, lines.as_ptr(), memory.as_ptr(), at.as_ptr(), acc.as_mut_ptr());
                            for (j, sum) in acc.iter().enumerate().take(columns - column) {
                                *to.get().add(sum_at(0, column + j)) += *sum;
                            }
                        }
                    }
                    start += n;
                    continue;
                };
                let offsets: Vec<usize> = (0..height).map(place).collect();
                for panel in 0..rows / width {
                    for first in (0..long).step_by(DEPTH) {
                        let depth = DEPTH.min(long - first);
                        for column in (0..columns).step_by(block.rows) {
                            // SAFETY: panels of `long` positions, and planes with room past every offset.
                            unsafe {
                                let a = memory.as_ptr().add(first);
                                let b = lines.as_ptr().add((panel * long + first) * width);
                                let acc = acc.as_mut_ptr().add((panel * height + column) * width);
                                (block.run)(depth, a, offsets.as_ptr().add(column), b, acc);
                            }
                        }
                    }
                }
                start += n;
            }
            if outer.is_some() {
                for output in 0..conv.outputs {
                    for column in 0..columns {
                        let sum = acc[(output / width * height + column) * width + output % width];
                        // SAFETY: an element of the sums.
                        unsafe { *to.get().add(sum_at(output, column)) = sum };
                    }
                }
            }
        }
        Ok(())
    })?;
    for part in 1..parts {
        let (head, rest) = sums.split_at_mut(whole);
        let from = &rest[(part - 1) * whole..part * whole];
        head.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
    }
    // SAFETY: the caller's contiguous result.
    unsafe { sums.as_ptr().copy_to_nonoverlapping(out.ptr.cast::<T>(), whole) };
    Ok(())
}

#[cfg(test)]
mod tests;
