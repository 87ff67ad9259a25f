//! Convolutions of one to three dimensions, their transposes and the gradients of both. They are implicit matrix
//! products whose blocks stay in registers (`kernel.rs`); SIMD lanes hold channels (`lanes.rs`) or, if there are few,
//! positions (`few.rs`). Windows of 3x3 over many channels use Winograd's algorithm (`winograd.rs`). Each result is
//! summed in a fixed order, so it has the same bits on any number of threads.

mod few;
mod kernel;
mod lanes;
mod planes;
mod sizes;
mod winograd;

pub use sizes::Conv;

use super::element::scratch;
use super::float::Float;
use crate::base::{DType, Fault, Result, Strided, try_alloc};
use sizes::{Image, MovedWindow, Window};

/// With at most this many channels, most lanes would be empty.
const FEW: usize = 8;
/// Gradients of at most this many weights are summed over several parts of the batch at once.
const SMALL: usize = 1 << 16;

/// `out = x * weight + bias`.
///
/// # Safety
/// The views are live, have the sizes in `conv` and one dtype; `out` overlaps nothing.
pub unsafe fn forward(
    conv: &Conv,
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    check(conv)?;
    let window = conv.window();
    let all = [0, 1, 2].map(|d| (0..conv.windows.kernel[d]).collect::<Vec<_>>());
    let moved = MovedWindow {
        window,
        chosen: all,
        from: [conv.inputs, conv.outputs],
        swapped: false,
        start: [0; 3],
        every: [1; 3],
    };
    // SAFETY: the caller's contract.
    unsafe { by_dtype(conv, &[moved], out, x, weight, bias) }
}

/// The gradient of the image, which is also the transposed convolution of `grad`.
///
/// # Safety
/// See [`forward`]; `grad` has the sizes of the result, `out` those of the image.
pub unsafe fn backward_input(
    conv: &Conv,
    out: Strided,
    grad: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    check(conv)?;
    // Elements of the image that are a stride apart are read by the same taps: each such part is a convolution of its
    // own.
    let s = conv.windows.stride;
    let [depth, height, width] = [0, 1, 2].map(|d| s[d].min(conv.windows.image[d]));
    let part = |part: usize| {
        let start = [part / (height * width), part / width % height, part % width];
        let chosen: [Vec<usize>; 3] = [0, 1, 2].map(|d| {
            let meets = |k: &usize| {
                (start[d]
                    + conv.windows.padding[d]
                    + s[d] * conv.windows.dilation[d] * conv.windows.kernel[d]
                    - k * conv.windows.dilation[d])
                    .is_multiple_of(s[d])
            };
            (0..conv.windows.kernel[d]).filter(meets).collect()
        });
        let taps = [0, 1, 2].map(|d| {
            let place = |&k: &usize| {
                let at =
                    (start[d] + conv.windows.padding[d]) as isize - (k * conv.windows.dilation[d]) as isize;
                at.div_euclid(s[d] as isize)
            };
            chosen[d].iter().map(place).collect()
        });
        let positions = [0, 1, 2].map(|d| (conv.windows.image[d] - start[d]).div_ceil(s[d]));
        let window = Window { step: [1; 3], positions, taps };
        let (from, every) = ([conv.outputs, conv.inputs], conv.windows.stride);
        MovedWindow { window, chosen, from, swapped: true, start, every }
    };
    let parts: Vec<MovedWindow> = (0..depth * height * width).map(part).collect();
    // SAFETY: the caller's contract.
    unsafe { by_dtype(conv, &parts, out, grad, weight, bias) }
}

/// Returns an error if there is no memory for a list of all taps of all channels that are summed.
fn check(conv: &Conv) -> Result<()> {
    let taps: usize = conv.windows.kernel.iter().product();
    try_alloc::check(taps.saturating_mul(conv.inputs.max(conv.outputs)), 128)
}

unsafe fn by_dtype(
    conv: &Conv,
    parts: &[MovedWindow],
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        match out.dtype {
            DType::F32 if winograd::product(conv, parts, &out, &x, &weight, bias.as_ref())? => Ok(()),
            DType::F32 => products::<f32>(conv, parts, out, x, weight, bias),
            DType::F64 => products::<f64>(conv, parts, out, x, weight, bias),
            dtype => Err(Fault::NoKernel { op: "convolution", dtype }.into()),
        }
    }
}

unsafe fn products<T: Float>(
    conv: &Conv,
    parts: &[MovedWindow],
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    if conv.samples == 0 || parts.iter().any(|moved| moved.window.positions.contains(&0)) {
        return Ok(());
    }
    let Some(&MovedWindow { from: [_, channels], .. }) = parts.first() else { return Ok(()) };
    let bias = match bias {
        None => None,
        Some(bias) => {
            let mut values = scratch(conv.groups * channels, T::ZERO)?;
            // SAFETY: the bias has one element per channel.
            let value = |i: usize| unsafe { *bias.ptr.cast::<T>().add(i * bias.strides[0]) };
            values.iter_mut().enumerate().for_each(|(i, v)| *v = value(i));
            Some(values)
        }
    };
    let (result, image, bias) = (&Image::new(&out), &Image::new(&x), bias.as_deref());
    // SAFETY: the caller's contract.
    unsafe {
        if channels <= FEW {
            return parts
                .iter()
                .try_for_each(|moved| few::product::<T>(conv, moved, result, image, &weight, bias));
        }
        lanes::product::<T>(conv, parts, result, image, &weight, bias)
    }
}

/// The gradient of the weights.
///
/// # Safety
/// See [`forward`]; `out` has the sizes of the weights and is contiguous, `grad` has those of the result.
pub unsafe fn backward_weight(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    check(conv)?;
    // SAFETY: the caller's contract.
    unsafe {
        match out.dtype {
            DType::F32 if winograd::weights(conv, &out, &x, &grad)? => Ok(()),
            DType::F32 => weights::<f32>(conv, out, x, grad),
            DType::F64 => weights::<f64>(conv, out, x, grad),
            dtype => Err(Fault::NoKernel { op: "convolution_backward", dtype }.into()),
        }
    }
}

unsafe fn weights<T: Float>(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    let small = conv.outputs <= FEW && out.numel() <= SMALL;
    let run = if small { few::weights::<T> } else { lanes::weights::<T> };
    // SAFETY: the caller's contract.
    unsafe { run(conv, &conv.window(), out, &Image::new(&x), &Image::new(&grad)) }
}

#[cfg(test)]
mod tests;
