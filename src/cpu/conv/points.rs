//! Convolutions whose windows are single elements: products of matrices, sample by sample.

use super::kernel::Real;
use super::sizes::Conv;
use crate::base::{Result, Strided};
use crate::cpu::element::scratch;
use crate::cpu::matmul::{Product, matmul};
use crate::cpu::par::{self, Shared};

/// Parts of the samples whose sums are made side by side.
const PARTS: usize = 8;

/// The step from one position to the next, if there is one for all.
fn line(x: &Strided) -> Option<usize> {
    let mut step = None;
    let mut next = 0;
    for d in (2..x.shape.len()).rev() {
        if x.shape[d] == 1 {
            continue;
        }
        if step.is_some() && x.strides[d] != next {
            return None;
        }
        step.get_or_insert(x.strides[d]);
        next = x.strides[d] * x.shape[d];
    }
    Some(step.unwrap_or(1))
}

/// Whether `x` and `y`, the image and the result, are such that products do it.
pub fn apply(conv: &Conv, x: &Strided, y: &Strided) -> bool {
    let few = conv.inputs.min(conv.outputs) < 8;
    conv.windows().are_elements() && !few && line(x).is_some() && line(y).is_some()
}

/// `out = weight * x + bias` at each position; `back` with the weights transposed.
///
/// # Safety
/// As `forward` of this module's parent; [`apply`] said yes.
pub unsafe fn product<T: Real>(
    conv: &Conv,
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
    back: bool,
) -> Result<()> {
    let positions: usize = conv.image.iter().product();
    let (to, from) = if back { (conv.inputs, conv.outputs) } else { (conv.outputs, conv.inputs) };
    let steps = |x: &Strided, channels: usize| {
        [x.strides[0], channels * x.strides[1], x.strides[1], line(x).unwrap_or(1)]
    };
    let (out_steps, x_steps) = (steps(&out, to), steps(&x, from));
    let [outer, inner] = [weight.strides[0], weight.strides[1]];
    let w_steps =
        [0, conv.outputs * outer, if back { inner } else { outer }, if back { outer } else { inner }];
    let shape = |rows, columns| [conv.samples, conv.groups, rows, columns];
    let beta = if let Some(bias) = bias {
        let (out, bias) = (&out, &bias);
        par::ranges(conv.samples * conv.groups * to, (par::GRAIN / positions.max(1)).max(1), |range| {
            for i in range {
                let (sample, channel) = (i / (conv.groups * to), i % (conv.groups * to));
                // SAFETY: one element for each channel; the channel's positions are this task's alone.
                unsafe {
                    let value = *bias.ptr.cast::<T>().add(channel * bias.strides[0]);
                    let at = out.ptr.cast::<T>().add(sample * out_steps[0] + channel * out_steps[2]);
                    (0..positions).for_each(|p| *at.add(p * out_steps[3]) = value);
                }
            }
        });
        1.0
    } else {
        0.0
    };
    let (o, w, b) = (shape(to, positions), shape(to, from), shape(from, positions));
    // SAFETY: the same memory by other sizes.
    unsafe {
        matmul(
            Strided { shape: &o, strides: &out_steps, ..out },
            Strided { shape: &w, strides: &w_steps, ..weight },
            Strided { shape: &b, strides: &x_steps, ..x },
            1.0,
            beta,
        )
    }
}

/// The gradient of the weights: `grad * x` over the positions of all samples.
///
/// # Safety
/// As `backward_weight` of this module's parent; [`apply`] said yes.
pub unsafe fn weights<T: Real>(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    let positions: usize = conv.image.iter().product();
    let (rows, columns) = (conv.outputs, conv.inputs);
    let whole = conv.groups * rows * columns;
    let parts = conv.samples.clamp(1, PARTS);
    let mut sums = scratch(whole * parts, T::ZERO)?;
    let (to, x, grad) = (&Shared::new(sums.as_ptr()), &x, &grad);
    let product = Product {
        sizes: [rows, columns, positions],
        out: [columns, 1],
        a: [grad.strides[1], line(grad).unwrap_or(1)],
        b: [line(x).unwrap_or(1), x.strides[1]],
    };
    let work = conv.samples / parts * rows * columns * positions;
    par::try_ranges(parts * conv.groups, (par::GRAIN * 16 / work.max(1)).max(1), |range| {
        for task in range {
            let (part, group) = (task / conv.groups, task % conv.groups);
            for sample in part * conv.samples / parts..(part + 1) * conv.samples / parts {
                // SAFETY: this part's sum is this task's alone; sample and group are the caller's.
                unsafe {
                    let to = to.get().add(part * whole + group * rows * columns);
                    let a =
                        grad.ptr.cast::<T>().add(sample * grad.strides[0] + group * rows * grad.strides[1]);
                    let b = x.ptr.cast::<T>().add(sample * x.strides[0] + group * columns * x.strides[1]);
                    T::product(product, to, a, b)?;
                }
            }
        }
        Ok(())
    })?;
    let (head, rest) = sums.split_at_mut(whole);
    for part in rest.chunks_exact(whole.max(1)) {
        head.iter_mut().zip(part).for_each(|(to, from)| *to += *from);
    }
    // SAFETY: the caller's contiguous result.
    unsafe { head.as_ptr().copy_to_nonoverlapping(out.ptr.cast::<T>(), whole) };
    Ok(())
}
