//! Convolutions of integers. No kernel computes them, so they are composed of views and one matrix product.

use super::conv::{ConvOptions, result_shape};
use crate::operator::primitives::views::reshape;
use crate::ops::linalg::matmul::matmul;
use crate::ops::nn::pad::constant_pad_nd;
use crate::ops::prelude::*;
use crate::ops::shape::rearrange::{contiguous, flip};
use crate::ops::shape::slices::{narrow, slice, unfold};
use crate::ops::shape::squeeze::unsqueeze;
use crate::ops::shape::view::{permute, transpose};
use smallvec::smallvec;

/// The convolution of a batch. The arguments must fit.
pub(super) fn of_whole(input: &Tensor, weight: &Tensor, options: &ConvOptions) -> Result<Tensor> {
    result_shape(&input.shape(), &weight.shape(), options)?;
    if options.transposed {
        return conv_transpose(input, weight, options);
    }
    product(&pad_spatial(input, |d| [options.padding[d]; 2])?, weight, &options.stride, options)
}

/// Pads each spatial dimension with zeros before and after it. Negative padding crops.
fn pad_spatial(x: &Tensor, around: impl Fn(usize) -> [i64; 2]) -> Result<Tensor> {
    constant_pad_nd(x, (0..x.ndim() - 2).rev().flat_map(around).collect(), Scalar::Int(0))
}

/// Multiplies the windows with the weights.
fn product(x: &Tensor, weight: &Tensor, stride: &Ints, options: &ConvOptions) -> Result<Tensor> {
    let (w, groups) = (weight.shape(), options.groups as usize);
    let dims = w.len() - 2;
    let mut windows = x.clone();
    for d in 0..dims {
        let reach = options.dilation[d] * (w[d + 2] as i64 - 1) + 1;
        windows =
            slice(&unfold(&windows, d as i64 + 2, reach, stride[d])?, -1, None, None, options.dilation[d])?;
    }
    let shape = windows.shape();
    let (samples, places) = (shape[0], &shape[2..2 + dims]);
    let count: usize = places.iter().product();
    let inner: usize = w[1..].iter().product();
    let mut split: Dims = smallvec![samples, groups, w[1]];
    split.extend_from_slice(&shape[2..]);
    let mut order: Ints = smallvec![0, 1];
    order.extend((0..dims as i64).map(|d| d + 3));
    order.push(2);
    order.extend((0..dims as i64).map(|d| d + 3 + dims as i64));
    let windows = permute(&reshape(&windows, &split)?, order)?;
    let windows = reshape(&windows, &[samples, groups, count, inner])?;
    let weight = transpose(&reshape(weight, &[groups, w[0] / groups, inner])?, 1, 2)?;
    let made = transpose(&matmul(&windows, &weight)?, -1, -2)?;
    let mut result: Dims = smallvec![samples, w[0]];
    result.extend_from_slice(places);
    contiguous(&reshape(&made, &result)?, None)
}

/// The transposed convolution: the dilated input is convolved with the flipped weights.
fn conv_transpose(input: &Tensor, weight: &Tensor, options: &ConvOptions) -> Result<Tensor> {
    let (w, groups) = (weight.shape(), options.groups as usize);
    let dims = w.len() - 2;
    let mut x = input.clone();
    for d in 0..dims {
        let (at, stride) = (d as i64 + 2, options.stride[d]);
        let mut shape = x.shape();
        let length = shape[d + 2] as i64;
        // Inserts `stride - 1` zeros after each element.
        let mut behind: Ints = smallvec![0; 2 * (dims - d)];
        behind[2 * (dims - d) - 1] = stride - 1;
        x = constant_pad_nd(&unsqueeze(&x, at + 1)?, behind, Scalar::Int(0))?;
        shape[d + 2] = (length * stride) as usize;
        x = narrow(&reshape(&x, &shape)?, at, 0, (length - 1) * stride + 1)?;
    }
    let x = pad_spatial(&x, |d| {
        let before = options.dilation[d] * (w[d + 2] as i64 - 1) - options.padding[d];
        [before, before + options.output_padding[d]]
    })?;
    let mut split: Dims = smallvec![groups, w[0] / groups];
    split.extend_from_slice(&w[1..]);
    let mut shape: Dims = smallvec![groups * w[1], w[0] / groups];
    shape.extend_from_slice(&w[2..]);
    let weight = reshape(&transpose(&reshape(weight, &split)?, 1, 2)?, &shape)?;
    let turned = flip(&weight, Sizes((2..2 + dims as i64).collect()))?;
    product(&x, &turned, &smallvec![1; dims], options)
}
