//! Recurrent layers: all time steps of one layer in one direction. One loop computes the gates of a step. Examples are
//! independent, so each task takes some of them through all steps.

use super::element::scratch;
use super::matmul::panels::{Panels, ROWS};
use super::par;
use super::simd::simd_fn;
use crate::base::kernel_args::recurrent::{Cell, RecurrentArgs as Layer};
use crate::base::{DType, Fault, Result, Strided};

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
    unsafe {
        match out.dtype {
            DType::F32 => single::forward(out, layer),
            DType::F64 => double::forward(out, layer),
            dtype => Err(Fault::NoKernel { op: "rnn", dtype }.into()),
        }
    }
}

/// The backward of a layer. `g` is the gradient of all hidden states; `hidden` and `cells` hold the gradients of the
/// last states, and end as those of the first ones. The gradient of the inputs' part of the gates goes to `sums`, that
/// of the states' part, where it differs (GRU), to `other`.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward(g: Option<Strided>, other: Option<Strided>, layer: Layer<Strided>) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        match layer.sums.dtype {
            DType::F32 => single::backward(g, other, layer),
            DType::F64 => double::backward(g, other, layer),
            dtype => Err(Fault::NoKernel { op: "rnn_backward", dtype }.into()),
        }
    }
}

macro_rules! kernels {
    ($T:ident, $name:ident) => {
        mod $name {
            use super::*;
            use crate::cpu::math::$T::{multiply_add, sigmoid, tanh};

            fn at(view: &Strided, offset: usize) -> *mut $T {
                view.ptr.cast::<$T>().wrapping_add(offset)
            }

            fn maybe(view: &Option<Strided>, offset: usize) -> *mut $T {
                view.as_ref().map_or(std::ptr::null_mut(), |view| at(view, offset))
            }

            simd_fn! {
                /// One step of one example: `sums` comes from the inputs, `own` from the states (with their bias).
                unsafe fn lstm(n: usize, sums: *const $T, own: *const $T, kept: *mut $T, c: *mut $T, h: *mut $T) {
                    for i in 0..n {
                        let input = sigmoid(*sums.add(i) + *own.add(i));
                        let forget = sigmoid(*sums.add(n + i) + *own.add(n + i));
                        let new = tanh(*sums.add(2 * n + i) + *own.add(2 * n + i));
                        let output = sigmoid(*sums.add(3 * n + i) + *own.add(3 * n + i));
                        let cell = forget * *c.add(i) + input * new;
                        *kept.add(i) = input;
                        *kept.add(n + i) = forget;
                        *kept.add(2 * n + i) = new;
                        *kept.add(3 * n + i) = output;
                        *c.add(i) = cell;
                        *h.add(i) = output * tanh(cell);
                    }
                }
            }

            simd_fn! {
                unsafe fn lstm_backward(
                    n: usize, to: *mut $T, kept: *const $T, c: *const $T, dh: *const $T, dc: *mut $T,
                ) {
                    for i in 0..n {
                        let (input, forget) = (*kept.add(i), *kept.add(n + i));
                        let (new, output) = (*kept.add(2 * n + i), *kept.add(3 * n + i));
                        let t = tanh(forget * *c.add(i) + input * new);
                        let g = *dc.add(i) + *dh.add(i) * output * multiply_add(-t, t, 1.0);
                        *to.add(i) = g * new * input * (1.0 - input);
                        *to.add(n + i) = g * *c.add(i) * forget * (1.0 - forget);
                        *to.add(2 * n + i) = g * input * multiply_add(-new, new, 1.0);
                        *to.add(3 * n + i) = *dh.add(i) * t * output * (1.0 - output);
                        *dc.add(i) = g * forget;
                    }
                }
            }

            simd_fn! {
                unsafe fn gru(n: usize, sums: *const $T, own: *const $T, kept: *mut $T, h: *mut $T) {
                    for i in 0..n {
                        let reset = sigmoid(*sums.add(i) + *own.add(i));
                        let update = sigmoid(*sums.add(n + i) + *own.add(n + i));
                        let state = *own.add(2 * n + i);
                        let new = tanh(*sums.add(2 * n + i) + reset * state);
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
                unsafe fn gru_backward(
                    n: usize, to: *mut $T, other: *mut $T, kept: *const $T, h: *const $T, dh: *mut $T,
                ) {
                    for i in 0..n {
                        let (reset, update) = (*kept.add(i), *kept.add(n + i));
                        let (new, state) = (*kept.add(2 * n + i), *kept.add(3 * n + i));
                        let g = *dh.add(i);
                        let of_new = g * (1.0 - update) * multiply_add(-new, new, 1.0);
                        let of_reset = of_new * state * reset * (1.0 - reset);
                        let of_update = g * (*h.add(i) - new) * update * (1.0 - update);
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
                unsafe fn plain(n: usize, sums: *const $T, own: *const $T, kept: *mut $T, h: *mut $T, relu: bool) {
                    for i in 0..n {
                        let sum = *sums.add(i) + *own.add(i);
                        // NaN stays NaN.
                        let made = if relu { if sum <= 0.0 { 0.0 } else { sum } } else { tanh(sum) };
                        *kept.add(i) = made;
                        *h.add(i) = made;
                    }
                }
            }

            simd_fn! {
                unsafe fn plain_backward(n: usize, to: *mut $T, kept: *const $T, dh: *const $T, relu: bool) {
                    for i in 0..n {
                        let y = *kept.add(i);
                        let slope = if relu { if y > 0.0 { 1.0 } else { 0.0 } } else { multiply_add(-y, y, 1.0) };
                        *to.add(i) = *dh.add(i) * slope;
                    }
                }
            }

            simd_fn! {
                unsafe fn add_row(n: usize, x: *mut $T, y: *const $T) {
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

            pub unsafe fn forward(out: Strided, layer: Layer<Strided>) -> Result<()> {
                let (n, cell) = (layer.units, layer.cell);
                let (width, kept) = (cell.gates() * n, cell.kept() * n);
                // SAFETY: the caller's matrix.
                let weight = unsafe { Panels::<$T>::new(n, width, at(&layer.weight, 0), [1, n])? };
                let (block, own_step) = (block(layer.samples), weight.columns());
                par::try_ranges(layer.samples.div_ceil(block), 1, |range| {
                    let mut own = scratch(block * own_step, 0.0 as $T)?;
                    for task in range {
                        layer.steps.each(false, |start, size| {
                            let (first, rows) = part(task, block, size);
                            if rows == 0 {
                                return Ok(());
                            }
                            // SAFETY: the rows of this block, which belongs to this task alone.
                            unsafe {
                                let hidden = at(&layer.hidden, first * n);
                                at(&layer.before, (start + first) * n).copy_from_nonoverlapping(hidden, rows * n);
                                weight.multiply(rows, hidden, own.as_mut_ptr());
                                for row in 0..rows {
                                    let (line, at_step) = (own.as_mut_ptr().add(row * own_step), start + first + row);
                                    if layer.bias.is_some() {
                                        add_row(width, line, maybe(&layer.bias, 0));
                                    }
                                    let (sums, kept) = (at(&layer.sums, at_step * width), at(&layer.kept, at_step * kept));
                                    let h = hidden.add(row * n);
                                    match cell {
                                        Cell::Tanh | Cell::Relu => plain(n, sums, line, kept, h, cell == Cell::Relu),
                                        Cell::Gru => gru(n, sums, line, kept, h),
                                        Cell::Lstm => {
                                            let c = maybe(&layer.cells, (first + row) * n);
                                            maybe(&layer.cell_before, at_step * n).copy_from_nonoverlapping(c, n);
                                            lstm(n, sums, line, kept, c, h);
                                        }
                                    }
                                    at(&out, at_step * n).copy_from_nonoverlapping(h, n);
                                }
                            }
                            Ok(())
                        })?;
                    }
                    Ok(())
                })
            }

            pub unsafe fn backward(g: Option<Strided>, other: Option<Strided>, layer: Layer<Strided>) -> Result<()> {
                let (n, cell) = (layer.units, layer.cell);
                let (width, kept) = (cell.gates() * n, cell.kept() * n);
                // SAFETY: the caller's matrix.
                let weight = unsafe { Panels::<$T>::new(width, n, at(&layer.weight, 0), [n, 1])? };
                let (block, back_step) = (block(layer.samples), weight.columns());
                par::try_ranges(layer.samples.div_ceil(block), 1, |range| {
                    let mut back = scratch(block * back_step, 0.0 as $T)?;
                    for task in range {
                        layer.steps.each(true, |start, size| {
                            let (first, rows) = part(task, block, size);
                            if rows == 0 {
                                return Ok(());
                            }
                            // SAFETY: the rows of this block, which belongs to this task alone.
                            unsafe {
                                let hidden = at(&layer.hidden, first * n);
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
                                    if cell == Cell::Gru { add_row(n, dh, line) } else { dh.copy_from_nonoverlapping(line, n) }
                                }
                            }
                            Ok(())
                        })?;
                    }
                    Ok(())
                })
            }
        }
    };
}
kernels!(f32, single);
kernels!(f64, double);
