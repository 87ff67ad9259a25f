//! Recurrent layers: all time steps of one layer in one direction. One loop computes the gates of a step. Examples are
//! independent, so each task takes some of them through all steps.

use super::element::{at, scratch};
use super::float::{Float, by_float};
use super::matmul::panels::{Panels, ROWS};
use super::par;
use super::simd::simd_fn;
use crate::base::kernel_args::recurrent::{Cell, RecurrentArgs as Layer};
use crate::base::{Result, Strided};

/// The largest number of examples in a task.
const MOST: usize = 64;

/// Number of examples in a task.
fn block(samples: usize) -> usize {
    samples.div_ceil(par::threads().max(1)).next_multiple_of(ROWS).min(MOST)
}

/// Runs a layer. `out` becomes the hidden states, `[total, units]`; `hidden` and `cells` end as the last states.
///
/// # Safety
/// All buffers are live, dense, of one float dtype and have the sizes that [`Layer`] gives; those that are written
/// overlap nothing.
pub unsafe fn forward(out: Strided, layer: Layer<Strided>) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("rnn", out.dtype, T => forward_of::<T>(out, layer)) }
}

/// The backward of a layer. `g` is the gradient of all hidden states; `hidden` and `cells` hold the gradients of the
/// last states, and end as those of the first ones. The gradient of the inputs' part of the gates goes to `sums`, that
/// of the states' part, where it differs (GRU), to `other`.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward(g: Option<Strided>, other: Option<Strided>, layer: Layer<Strided>) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("rnn_backward", layer.sums.dtype, T => backward_of::<T>(g, other, layer)) }
}

fn maybe<T: Float>(view: &Option<Strided>, offset: usize) -> *mut T {
    view.as_ref().map_or(std::ptr::null_mut(), |view| at(view, offset))
}

/// The gradient of the operand of a sigmoid, given the result `y` and the gradient `g` of that.
#[inline(always)]
fn sigmoid_gradient<T: Float>(g: T, y: T) -> T {
    g * y * (T::ONE - y)
}

/// The gradient of the operand of a tanh, given the result `y` and the gradient `g` of that.
#[inline(always)]
fn tanh_gradient<T: Float>(g: T, y: T) -> T {
    g * (-y).multiply_add(y, T::ONE)
}

/// The new cell of an LSTM.
#[inline(always)]
fn next_cell<T: Float>(input: T, forget: T, new: T, cell: T) -> T {
    forget * cell + input * new
}

simd_fn! {
    /// One step of one example: `sums` comes from the inputs, `own` from the states (with their bias).
    unsafe fn lstm<T: Float>(n: usize, sums: *const T, own: *const T, kept: *mut T, c: *mut T, h: *mut T) {
        for i in 0..n {
            let input = (*sums.add(i) + *own.add(i)).sigmoid();
            let forget = (*sums.add(n + i) + *own.add(n + i)).sigmoid();
            let new = (*sums.add(2 * n + i) + *own.add(2 * n + i)).tanh();
            let output = (*sums.add(3 * n + i) + *own.add(3 * n + i)).sigmoid();
            let cell = next_cell(input, forget, new, *c.add(i));
            *kept.add(i) = input;
            *kept.add(n + i) = forget;
            *kept.add(2 * n + i) = new;
            *kept.add(3 * n + i) = output;
            *c.add(i) = cell;
            *h.add(i) = output * cell.tanh();
        }
    }
}

simd_fn! {
    unsafe fn lstm_backward<T: Float>(
        n: usize, to: *mut T, kept: *const T, c: *const T, dh: *const T, dc: *mut T,
    ) {
        for i in 0..n {
            let (input, forget) = (*kept.add(i), *kept.add(n + i));
            let (new, output) = (*kept.add(2 * n + i), *kept.add(3 * n + i));
            let t = next_cell(input, forget, new, *c.add(i)).tanh();
            let g = *dc.add(i) + tanh_gradient(*dh.add(i) * output, t);
            *to.add(i) = sigmoid_gradient(g * new, input);
            *to.add(n + i) = sigmoid_gradient(g * *c.add(i), forget);
            *to.add(2 * n + i) = tanh_gradient(g * input, new);
            *to.add(3 * n + i) = sigmoid_gradient(*dh.add(i) * t, output);
            *dc.add(i) = g * forget;
        }
    }
}

simd_fn! {
    unsafe fn gru<T: Float>(n: usize, sums: *const T, own: *const T, kept: *mut T, h: *mut T) {
        for i in 0..n {
            let reset = (*sums.add(i) + *own.add(i)).sigmoid();
            let update = (*sums.add(n + i) + *own.add(n + i)).sigmoid();
            let state = *own.add(2 * n + i);
            let new = (*sums.add(2 * n + i) + reset * state).tanh();
            *kept.add(i) = reset;
            *kept.add(n + i) = update;
            *kept.add(2 * n + i) = new;
            *kept.add(3 * n + i) = state;
            *h.add(i) = (*h.add(i) - new) * update + new;
        }
    }
}

simd_fn! {
    /// `dh` becomes the part of the gradient that bypasses the gates.
    unsafe fn gru_backward<T: Float>(
        n: usize, to: *mut T, other: *mut T, kept: *const T, h: *const T, dh: *mut T,
    ) {
        for i in 0..n {
            let (reset, update) = (*kept.add(i), *kept.add(n + i));
            let (new, state) = (*kept.add(2 * n + i), *kept.add(3 * n + i));
            let g = *dh.add(i);
            let of_new = tanh_gradient(g * (T::ONE - update), new);
            let of_reset = sigmoid_gradient(of_new * state, reset);
            let of_update = sigmoid_gradient(g * (*h.add(i) - new), update);
            *to.add(i) = of_reset;
            *to.add(n + i) = of_update;
            *to.add(2 * n + i) = of_new;
            *other.add(i) = of_reset;
            *other.add(n + i) = of_update;
            *other.add(2 * n + i) = of_new * reset;
            *dh.add(i) = g * update;
        }
    }
}

simd_fn! {
    unsafe fn plain<T: Float>(n: usize, sums: *const T, own: *const T, kept: *mut T, h: *mut T, relu: bool) {
        for i in 0..n {
            let sum = *sums.add(i) + *own.add(i);
            // NaN stays NaN.
            let made = if relu { if sum <= T::ZERO { T::ZERO } else { sum } } else { sum.tanh() };
            *kept.add(i) = made;
            *h.add(i) = made;
        }
    }
}

simd_fn! {
    unsafe fn plain_backward<T: Float>(n: usize, to: *mut T, kept: *const T, dh: *const T, relu: bool) {
        for i in 0..n {
            let (g, y) = (*dh.add(i), *kept.add(i));
            let relu_slope = if y > T::ZERO { T::ONE } else { T::ZERO };
            *to.add(i) = if relu { g * relu_slope } else { tanh_gradient(g, y) };
        }
    }
}

simd_fn! {
    unsafe fn add_row<T: Float>(n: usize, x: *mut T, y: *const T) {
        for i in 0..n {
            *x.add(i) += *y.add(i);
        }
    }
}

/// The first example of a task, and their number, at a step that has `size` examples.
fn part(task: usize, block: usize, size: usize) -> (usize, usize) {
    let first = task * block;
    (first, size.min(first + block).saturating_sub(first))
}

unsafe fn forward_of<T: Float>(out: Strided, layer: Layer<Strided>) -> Result<()> {
    let (n, cell) = (layer.units, layer.cell);
    let (width, kept) = (cell.gates() * n, cell.kept() * n);
    // SAFETY: the caller's matrix.
    let weight = unsafe { Panels::<T>::new(n, width, at(&layer.weight, 0), [1, n])? };
    let (block, own_step) = (block(layer.samples), weight.columns());
    par::try_ranges(layer.samples.div_ceil(block), 1, |range| {
        let mut own = scratch(block * own_step, T::ZERO)?;
        for task in range {
            layer.steps.each(false, |start, size| {
                let (first, rows) = part(task, block, size);
                if rows == 0 {
                    return Ok(());
                }
                // SAFETY: the rows of this block, which belongs to this task alone.
                unsafe {
                    let hidden = at::<T>(&layer.hidden, first * n);
                    at::<T>(&layer.before, (start + first) * n).copy_from_nonoverlapping(hidden, rows * n);
                    weight.multiply(rows, hidden, own.as_mut_ptr());
                    for row in 0..rows {
                        let (line, at_step) = (own.as_mut_ptr().add(row * own_step), start + first + row);
                        if layer.bias.is_some() {
                            add_row(width, line, maybe(&layer.bias, 0));
                        }
                        let (sums, kept) =
                            (at(&layer.sums, at_step * width), at(&layer.kept, at_step * kept));
                        let h = hidden.add(row * n);
                        match cell {
                            Cell::Tanh | Cell::Relu => plain(n, sums, line, kept, h, cell == Cell::Relu),
                            Cell::Gru => gru(n, sums, line, kept, h),
                            Cell::Lstm => {
                                let c = maybe(&layer.cells, (first + row) * n);
                                maybe::<T>(&layer.cell_before, at_step * n).copy_from_nonoverlapping(c, n);
                                lstm(n, sums, line, kept, c, h);
                            }
                        }
                        at::<T>(&out, at_step * n).copy_from_nonoverlapping(h, n);
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}

unsafe fn backward_of<T: Float>(
    g: Option<Strided>,
    other: Option<Strided>,
    layer: Layer<Strided>,
) -> Result<()> {
    let (n, cell) = (layer.units, layer.cell);
    let (width, kept) = (cell.gates() * n, cell.kept() * n);
    // SAFETY: the caller's matrix.
    let weight = unsafe { Panels::<T>::new(width, n, at(&layer.weight, 0), [n, 1])? };
    let (block, back_step) = (block(layer.samples), weight.columns());
    par::try_ranges(layer.samples.div_ceil(block), 1, |range| {
        let mut back = scratch(block * back_step, T::ZERO)?;
        for task in range {
            layer.steps.each(true, |start, size| {
                let (first, rows) = part(task, block, size);
                if rows == 0 {
                    return Ok(());
                }
                // SAFETY: the rows of this block, which belongs to this task alone.
                unsafe {
                    let hidden = at::<T>(&layer.hidden, first * n);
                    for row in 0..rows {
                        let (dh, at_step) = (hidden.add(row * n), start + first + row);
                        if g.is_some() {
                            add_row(n, dh, maybe(&g, at_step * n));
                        }
                        let (to, kept) = (at(&layer.sums, at_step * width), at(&layer.kept, at_step * kept));
                        match cell {
                            Cell::Tanh | Cell::Relu => plain_backward(n, to, kept, dh, cell == Cell::Relu),
                            Cell::Gru => {
                                let h = at(&layer.before, at_step * n);
                                gru_backward(n, to, maybe(&other, at_step * width), kept, h, dh);
                            }
                            Cell::Lstm => {
                                let dc = maybe(&layer.cells, (first + row) * n);
                                let c = maybe(&layer.cell_before, at_step * n);
                                lstm_backward(n, to, kept, c, dh, dc);
                            }
                        }
                    }
                    let from = other.as_ref().unwrap_or(&layer.sums);
                    let from = at(from, (start + first) * width);
                    weight.multiply(rows, from, back.as_mut_ptr());
                    for row in 0..rows {
                        let (dh, line) = (hidden.add(row * n), back.as_ptr().add(row * back_step));
                        // A part of a GRU's state bypasses the gates.
                        if cell == Cell::Gru {
                            add_row(n, dh, line)
                        } else {
                            dh.copy_from_nonoverlapping(line, n)
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}
