//! Convolutions over small or narrow images: products with the matrix whose columns are the windows. (Planes compute what lies between
//! the rows, too, which is then too much.)

use super::kernel::Real;
use super::planes::Planes;
use super::sizes::{Conv, Image, Moved, Window};
use crate::base::{DType, Result, Strided, room};
use crate::cpu::element::scratch;
use crate::cpu::matmul::matmul;
use crate::cpu::par::{self, GRAIN, Shared};

/// Elements of the matrix that is made at once.
const ROOM: usize = 1 << 21;
/// An element of the matrix takes as long to lay as to multiply with so many rows.
const LAID: usize = 16;
/// Rows of weights that are gathered together.
const ROWS: usize = 16;

/// Whether so much of a plane is no position that it takes longer.
pub fn pay(window: &Window, plane: usize, sums: usize, rows: usize) -> bool {
    let taps: usize = window.taps.iter().map(Vec::len).product();
    let positions: usize = window.positions.iter().product();
    sums > 0 && taps > 1 && rows * plane > (rows + LAID) * positions
}

/// How many samples make one matrix: as the sizes say, on any number of threads.
fn together(conv: &Conv, k: usize, window: &Window) -> usize {
    let one = k * window.positions.iter().product::<usize>();
    let most = (ROOM / one.max(1)).clamp(1, conv.samples);
    conv.samples.div_ceil(conv.samples.div_ceil(most))
}

/// Where the rows of the results are in a line of planes: one after another in the matrix.
struct Runs {
    /// Elements of a row.
    width: usize,
    starts: Vec<usize>,
    /// The sample and the place in it.
    places: Vec<(usize, [usize; 3])>,
}

impl Runs {
    fn new(planes: &Planes, window: &Window) -> Result<Runs> {
        let rows = planes.samples * window.positions[0] * window.positions[1];
        let (mut starts, mut places) = (room::list(rows)?, room::list(rows)?);
        planes.runs(window.positions, 0, planes.positions(), |at, sample, place, _| {
            starts.push(at);
            places.push((sample, place));
        });
        Ok(Runs { width: window.positions[2], starts, places })
    }

    fn columns(&self) -> usize {
        self.width * self.starts.len()
    }

    /// Copies the rows to `to`, side by side, in pieces that may reach into the next row, which then follows.
    ///
    /// # Safety
    /// `from` has a widest block past the last start; `to` has room for all rows.
    unsafe fn join<T: Copy>(&self, from: *const T, to: *mut T) {
        // SAFETY: handed on.
        unsafe {
            match self.width {
                8.. => self.join_by::<T, 16>(from, to),
                4.. => self.join_by::<T, 8>(from, to),
                2.. => self.join_by::<T, 4>(from, to),
                _ => self.join_by::<T, 1>(from, to),
            }
        }
    }

    #[inline(always)]
    unsafe fn join_by<T: Copy, const PIECE: usize>(&self, from: *const T, to: *mut T) {
        let Some((last, rest)) = self.starts.split_last() else { return };
        // SAFETY: the caller's contract; a piece is at most twice as long as a row.
        unsafe {
            for (i, start) in rest.iter().enumerate() {
                for j in (0..self.width).step_by(PIECE) {
                    let piece = from.add(start + j).cast::<[T; PIECE]>().read_unaligned();
                    to.add(i * self.width + j).cast::<[T; PIECE]>().write_unaligned(piece);
                }
            }
            to.add(rest.len() * self.width).copy_from_nonoverlapping(from.add(*last), self.width);
        }
    }
}

/// Fills `to` with a row for each channel and tap.
///
/// # Safety
/// The image has these samples and channels.
unsafe fn fill<T: Real>(
    planes: &Planes,
    runs: &Runs,
    to: &mut [T],
    image: &Image,
    first: usize,
    channels: std::ops::Range<usize>,
) -> Result<()> {
    let columns = runs.columns();
    let rows = planes.taps.len() * columns;
    let to = Shared::new(to.as_ptr());
    par::try_ranges(channels.len(), (GRAIN / rows.max(1)).max(1), |range| {
        let mut memory = scratch(planes.room(1), T::ZERO)?;
        for c in range {
            // SAFETY: the caller's image; the rows of a channel are this task's alone.
            unsafe {
                planes.fill(&mut memory, image, first, channels.start + c, 1);
                for (tap, offset) in planes.taps.iter().enumerate() {
                    let to = to.get().add(c * rows + tap * columns);
                    runs.join(memory.as_ptr().add(*offset), to);
                }
            }
        }
        Ok(())
    })
}

/// The weights as `[group][row][sum, tap]`.
unsafe fn gather<T: Real>(conv: &Conv, moved: &Moved, weight: &Strided) -> Result<Vec<T>> {
    let w = &Image::new(weight);
    let [sums, rows] = moved.from;
    let (sum_step, row_step) = if moved.swapped { (w.sample, w.channel) } else { (w.channel, w.sample) };
    let mut taps = vec![];
    for d in &moved.chosen[0] {
        for h in &moved.chosen[1] {
            taps.extend(
                moved.chosen[2].iter().map(|x| d * w.strides[0] + h * w.strides[1] + x * w.strides[2]),
            );
        }
    }
    let k = sums * taps.len();
    let gathered = scratch(conv.groups * rows * k, T::ZERO)?;
    let (to, taps) = (Shared::new(gathered.as_ptr()), &taps);
    let blocks = rows.div_ceil(ROWS);
    par::ranges(conv.groups * blocks, (GRAIN / (ROWS * k).max(1)).max(1), |range| {
        for job in range {
            let (group, first) = (job / blocks, job % blocks * ROWS);
            for sum in 0..sums {
                for row in first..rows.min(first + ROWS) {
                    let from = group * conv.outputs * w.sample + sum * sum_step + row * row_step;
                    let at = (group * rows + row) * k + sum * taps.len();
                    for (i, tap) in taps.iter().enumerate() {
                        // SAFETY: an element of the caller's weights; the row is this task's alone.
                        unsafe { *to.get().add(at + i) = *w.ptr.cast::<T>().add(from + tap) };
                    }
                }
            }
        }
    });
    Ok(gathered)
}

/// As [`super::products`], where [`pay`] said yes.
///
/// # Safety
/// As there.
pub unsafe fn product<T: Real>(
    conv: &Conv,
    moved: &Moved,
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<&[T]>,
) -> Result<()> {
    let [sums, rows] = moved.from;
    let (image, result) = (&Image::new(&x), &Image::new(&out));
    let taps: usize = moved.window.taps.iter().map(Vec::len).product();
    let k = sums * taps;
    let as_it_is = !moved.swapped && weight.is_contiguous();
    // SAFETY: the caller's weights.
    let gathered = if as_it_is { vec![] } else { unsafe { gather::<T>(conv, moved, &weight)? } };
    let weights = if as_it_is { weight.ptr.cast::<T>().cast_const() } else { gathered.as_ptr() };
    let most = together(conv, k, &moved.window);
    let positions: usize = moved.window.positions.iter().product();
    let mut matrix = scratch(k * most * positions, T::ZERO)?;
    let mut sum = scratch(rows * most * positions, T::ZERO)?;
    let step = moved.every[2] * result.strides[2];
    for first in (0..conv.samples).step_by(most) {
        let planes = Planes::new(&moved.window, image.size, most.min(conv.samples - first));
        let runs = &Runs::new(&planes, &moved.window)?;
        let columns = runs.columns();
        for group in 0..conv.groups {
            let own = weights.wrapping_add(group * rows * k);
            // SAFETY: the caller's image; matrices of these sizes.
            unsafe {
                fill(&planes, runs, &mut matrix, image, first, group * sums..(group + 1) * sums)?;
                let sizes = [rows, k, columns];
                multiply(sizes, out.dtype, sum.as_mut_ptr(), own, matrix.as_ptr(), [columns, 1], 0.0)?;
            }
            let from = &sum;
            par::ranges(rows, (GRAIN / columns).max(1), |range| {
                for row in range {
                    let channel = group * rows + row;
                    let plus = bias.map(|bias| bias[channel]);
                    for (i, (sample, place)) in runs.places.iter().enumerate() {
                        let from = &from[row * columns + i * runs.width..][..runs.width];
                        let d = |d: usize| (moved.start[d] + place[d] * moved.every[d]) * result.strides[d];
                        let to =
                            (first + sample) * result.sample + channel * result.channel + d(0) + d(1) + d(2);
                        // SAFETY: the result has these places, and the channel is this task's alone.
                        unsafe {
                            let to = result.ptr.cast::<T>().add(to);
                            for (j, &value) in from.iter().enumerate() {
                                let mut value = value;
                                plus.into_iter().for_each(|plus| value += plus);
                                *to.add(j * step) = value;
                            }
                        }
                    }
                }
            });
        }
    }
    Ok(())
}

/// `out = a * b + beta * out` for `sizes` `[m, k, n]`, of which `b` has any steps and the others lie row by row.
///
/// # Safety
/// They are matrices of these sizes, and `out` overlaps neither.
unsafe fn multiply<T>(
    [m, k, n]: [usize; 3],
    dtype: DType,
    out: *mut T,
    a: *const T,
    b: *const T,
    steps: [usize; 2],
    beta: f64,
) -> Result<()> {
    let view = |ptr: *const T, shape, strides| Strided { ptr: ptr.cast_mut().cast(), dtype, shape, strides };
    // SAFETY: handed on.
    unsafe {
        matmul(view(out, &[m, n], &[n, 1]), view(a, &[m, k], &[k, 1]), view(b, &[k, n], &steps), 1.0, beta)
    }
}

/// As [`super::weights`], where [`pay`] said yes: `out` is contiguous.
///
/// # Safety
/// As there.
pub unsafe fn weights<T: Real>(
    conv: &Conv,
    window: &Window,
    out: Strided,
    x: Strided,
    grad: Strided,
) -> Result<()> {
    let (image, grads) = (&Image::new(&x), &Image::new(&grad));
    let k = conv.inputs * conv.kernel.iter().product::<usize>();
    let most = together(conv, k, window);
    let positions: usize = window.positions.iter().product();
    let mut matrix = scratch(k * most * positions, T::ZERO)?;
    let lines = scratch(conv.outputs * most * positions, T::ZERO)?;
    for first in (0..conv.samples).step_by(most) {
        let planes = Planes::new(window, image.size, most.min(conv.samples - first));
        let runs = &Runs::new(&planes, window)?;
        let columns = runs.columns();
        for group in 0..conv.groups {
            let to = Shared::new(lines.as_ptr());
            par::ranges(conv.outputs, (GRAIN / columns).max(1), |range| {
                for row in range {
                    let from = (group * conv.outputs + row) * grads.channel;
                    for (i, (sample, place)) in runs.places.iter().enumerate() {
                        let from = from + (first + sample) * grads.sample;
                        let from = from + (0..3).map(|d| place[d] * grads.strides[d]).sum::<usize>();
                        // SAFETY: a row of the caller's gradient; the line is this task's alone.
                        unsafe {
                            let from = grads.ptr.cast::<T>().add(from);
                            let to = to.get().add(row * columns + i * runs.width);
                            (0..runs.width).for_each(|j| *to.add(j) = *from.add(j * grads.strides[2]));
                        }
                    }
                }
            });
            let beta = if first == 0 { 0.0 } else { 1.0 };
            // SAFETY: the caller's image and result; matrices of these sizes.
            unsafe {
                fill(
                    &planes,
                    runs,
                    &mut matrix,
                    image,
                    first,
                    group * conv.inputs..(group + 1) * conv.inputs,
                )?;
                let to = out.ptr.cast::<T>().add(group * conv.outputs * k);
                let sizes = [conv.outputs, columns, k];
                multiply(sizes, out.dtype, to, lines.as_ptr(), matrix.as_ptr(), [1, columns], beta)?;
            }
        }
    }
    Ok(())
}
