//! Convolutions of one to three dimensions, their transposes and the gradients of both: implicit matrix products whose blocks stay
//! in registers (`kernel.rs`), with channels (`lanes.rs`) or, where they are few, positions (`few.rs`) in the lanes; windows of 3x3
//! over many channels by Winograd's transforms (`winograd.rs`). Each result is summed in one order, so that it has the same bits on any
//! number of threads.

mod few;
mod kernel;
mod lanes;
mod planes;
mod sizes;
mod winograd;

pub use sizes::Conv;

use super::element::scratch;
use crate::base::{DType, Fault, Result, Strided, try_alloc};
use kernel::Real;
use sizes::{Image, Moved, Window};

/// So many channels would leave most lanes empty.
const FEW: usize = 8;
/// Gradients of so many weights are summed over parts of the samples side by side.
const SMALL: usize = 1 << 16;

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
    let window = conv.window();
    let all = [0, 1, 2].map(|d| (0..conv.windows.kernel[d]).collect::<Vec<_>>());
    let moved = Moved {
        window,
        chosen: all,
        from: [conv.inputs, conv.outputs],
        swapped: false,
        start: [0; 3],
        every: [1; 3],
    };
    // SAFETY: handed on.
    unsafe { by_dtype(conv, &[moved], out, x, weight, bias) }
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
        Moved { window, chosen, from, swapped: true, start, every }
    };
    let parts: Vec<Moved> = (0..depth * height * width).map(part).collect();
    // SAFETY: handed on.
    unsafe { by_dtype(conv, &parts, out, grad, weight, bias) }
}

/// Refuses more taps than there is room to list, for each of the channels that are summed.
fn check(conv: &Conv) -> Result<()> {
    let taps: usize = conv.windows.kernel.iter().product();
    try_alloc::check(taps.saturating_mul(conv.inputs.max(conv.outputs)), 128)
}

unsafe fn by_dtype(
    conv: &Conv,
    parts: &[Moved],
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F32 if winograd::product(conv, parts, &out, &x, &weight, bias.as_ref())? => Ok(()),
            DType::F32 => products::<f32>(conv, parts, out, x, weight, bias),
            DType::F64 => products::<f64>(conv, parts, out, x, weight, bias),
            dtype => Err(Fault::NoKernel { op: "convolution", dtype }.into()),
        }
    }
}

unsafe fn products<T: Real>(
    conv: &Conv,
    parts: &[Moved],
    out: Strided,
    x: Strided,
    weight: Strided,
    bias: Option<Strided>,
) -> Result<()> {
    if conv.samples == 0 || parts.iter().any(|moved| moved.window.positions.contains(&0)) {
        return Ok(());
    }
    let Some(&Moved { from: [_, channels], .. }) = parts.first() else { return Ok(()) };
    let bias = match bias {
        None => None,
        Some(bias) => {
            let mut values = scratch(conv.groups * channels, T::ZERO)?;
            // SAFETY: one element for each channel.
            let value = |i: usize| unsafe { *bias.ptr.cast::<T>().add(i * bias.strides[0]) };
            values.iter_mut().enumerate().for_each(|(i, v)| *v = value(i));
            Some(values)
        }
    };
    let (result, image, bias) = (&Image::new(&out), &Image::new(&x), bias.as_deref());
    // SAFETY: handed on.
    unsafe {
        if channels <= FEW {
            return parts
                .iter()
                .try_for_each(|moved| few::product::<T>(conv, moved, result, image, &weight, bias));
        }
        lanes::product::<T>(conv, parts, result, image, &weight, bias)
    }
}

/// The gradient of a convolution's weights.
///
/// # Safety
/// As [`forward`]; `out` has the sizes of the weights and is contiguous, `grad` those of the result.
pub unsafe fn backward_weight(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    check(conv)?;
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F32 if winograd::weights(conv, &out, &x, &grad)? => Ok(()),
            DType::F32 => weights::<f32>(conv, out, x, grad),
            DType::F64 => weights::<f64>(conv, out, x, grad),
            dtype => Err(Fault::NoKernel { op: "convolution_backward", dtype }.into()),
        }
    }
}

unsafe fn weights<T: Real>(conv: &Conv, out: Strided, x: Strided, grad: Strided) -> Result<()> {
    let small = conv.outputs <= FEW && out.numel() <= SMALL;
    let run = if small { few::weights::<T> } else { lanes::weights::<T> };
    // SAFETY: handed on.
    unsafe { run(conv, &conv.window(), out, &Image::new(&x), &Image::new(&grad)) }
}

#[cfg(test)]
mod tests;
