//! `pixel_shuffle`, `pixel_unshuffle` and `channel_shuffle`.

use crate::base::MemoryFormat;
use crate::operator::bodies::{copy, duplicate};
use crate::operator::primitives::copies::clone_dense;
use crate::operator::primitives::views;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::view;

/// Views the elements as `parts`, permutes them by `order` and reshapes them to `shape`. The result has new memory, in the memory
/// format of the input.
fn reorder(input: &Tensor, parts: &[usize], order: &[usize], shape: &[usize]) -> Result<Body> {
    let made = no_grad(|| {
        let apart = views::reshape(input, parts)?;
        let permuted = view::permute(&apart, order.iter().map(|&d| d as i64).collect())?;
        views::reshape(&clone_dense(&permuted)?, shape)
    })?;
    let format = MemoryFormat::suggested(&input.body().layout);
    if format == MemoryFormat::Contiguous {
        return Ok(made);
    }
    let mut out = Body::new(shape, made.dtype, made.device())?;
    out.layout = format.layout(&out.layout)?;
    copy(&out, &made)?;
    Ok(out)
}

/// Splits the shape into the batch dimensions and the last three.
fn image(input: &Tensor) -> (Dims, [usize; 3]) {
    let shape = input.shape();
    let (lead, tail) = shape.split_at(shape.len() - 3);
    (Dims::from_slice(lead), [tail[0], tail[1], tail[2]])
}

fn with(lead: &[usize], more: &[usize]) -> Dims {
    lead.iter().chain(more).copied().collect()
}

fn order(lead: &[usize], more: &[usize]) -> Dims {
    (0..lead.len()).chain(more.iter().map(|d| lead.len() + d)).collect()
}

#[primitive(batch = in_front, tangent = linear)]
impl PixelShuffle {
    fn forward(input: &Tensor, upscale_factor: i64) -> Result<Body> {
        let (n, (lead, [c, h, w])) = (upscale_factor as usize, image(input));
        let parts = with(&lead, &[c / (n * n), n, n, h, w]);
        reorder(input, &parts, &order(&lead, &[0, 3, 1, 4, 2]), &with(&lead, &[c / (n * n), h * n, w * n]))
    }
    fn d_input(g: V, upscale_factor: i64) -> V {
        g.then(|g| PixelUnshuffle::call(&g, upscale_factor))
    }
}

#[primitive(batch = in_front, tangent = linear)]
impl PixelUnshuffle {
    fn forward(input: &Tensor, downscale_factor: i64) -> Result<Body> {
        let (n, (lead, [c, h, w])) = (downscale_factor as usize, image(input));
        let parts = with(&lead, &[c, h / n, n, w / n, n]);
        reorder(input, &parts, &order(&lead, &[0, 2, 4, 1, 3]), &with(&lead, &[c * n * n, h / n, w / n]))
    }
    fn d_input(g: V, downscale_factor: i64) -> V {
        g.then(|g| PixelShuffle::call(&g, downscale_factor))
    }
}

#[primitive(batch = merged, tangent = linear)]
impl ChannelShuffle {
    fn forward(input: &Tensor, groups: i64) -> Result<Body> {
        if input.numel() == 0 {
            return duplicate(&input.body());
        }
        let (shape, n) = (input.shape(), groups as usize);
        let rest = crate::base::numel(&shape[2..]);
        reorder(input, &[shape[0], n, shape[1] / n, rest], &[0, 2, 1, 3], &shape)
    }
    fn d_input(g: V, at: Meta, groups: i64) -> V {
        g.then(|g| ChannelShuffle::call(&g, at.shape[1] as i64 / groups.max(1)))
    }
}

fn need_image(name: &str, input: &Tensor, factor: i64, what: &str) -> Result<()> {
    if input.ndim() < 3 {
        return Err(Error::runtime(format!(
            "{name} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            input.ndim()
        )));
    }
    if factor <= 0 {
        return Err(Error::runtime(format!("{name} expects a positive {what}, but got {factor}")));
    }
    // A size of 0 is divisible by any factor, so a huge factor could overflow the sizes of the result.
    let square = (factor as usize).checked_mul(factor as usize);
    let sizes = input.shape().iter().try_fold(1usize, |all, n| all.checked_mul((*n).max(1)));
    if square.zip(sizes).is_none_or(|(square, sizes)| square.checked_mul(sizes).is_none()) {
        return Err(Error::runtime(format!("{name} got a {what} that is too large: {factor}")));
    }
    Ok(())
}

/// Rearrange channels into space: `(*, C * r**2, H, W)` to `(*, C, H * r, W * r)`.
///
/// Args:
///     upscale_factor: factor `r` by which height and width grow.
///
/// Examples:
///     >>> F.pixel_shuffle(torch.zeros(1, 8, 2, 2), 2).shape
///     torch.Size([1, 2, 4, 4])
#[operator(
    nn,
    sample = "shaped(lambda draw, shape: lambda x: F.pixel_shuffle(x, 2), st.sampled_from([(4, 1, 2), (2, 8, 2, 1)]))"
)]
pub fn pixel_shuffle(input: &Tensor, upscale_factor: i64) -> Result<Tensor> {
    need_image("pixel_shuffle", input, upscale_factor, "upscale_factor")?;
    let (_, [channels, _, _]) = image(input);
    let square = upscale_factor.saturating_mul(upscale_factor);
    if channels as i64 % square != 0 {
        return Err(Error::runtime(format!(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but \
             input.size(-3)={channels} is not divisible by {square}"
        )));
    }
    PixelShuffle::call(input, upscale_factor)
}

/// Rearrange space into channels: `(*, C, H * r, W * r)` to `(*, C * r**2, H, W)`.
///
/// Args:
///     downscale_factor: factor `r` by which height and width shrink.
///
/// Examples:
///     >>> F.pixel_unshuffle(torch.zeros(1, 2, 4, 4), 2).shape
///     torch.Size([1, 8, 2, 2])
#[operator(
    nn,
    sample = "shaped(lambda draw, shape: lambda x: F.pixel_unshuffle(x, 2), st.sampled_from([(1, 2, 4), (2, 3, 2, 2)]))"
)]
pub fn pixel_unshuffle(input: &Tensor, downscale_factor: i64) -> Result<Tensor> {
    need_image("pixel_unshuffle", input, downscale_factor, "downscale_factor")?;
    let (_, [_, height, width]) = image(input);
    for (name, at, size) in [("height", -2, height), ("width", -1, width)] {
        if size as i64 % downscale_factor != 0 {
            return Err(Error::runtime(format!(
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is not \
                 divisible by {downscale_factor}"
            )));
        }
    }
    PixelUnshuffle::call(input, downscale_factor)
}

/// Interleave the channels of several groups.
///
/// Args:
///     input: the input, `(N, C, *)`.
///     groups: number of groups, which divides the number of channels.
///
/// Examples:
///     >>> F.channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).flatten()
///     tensor([0, 2, 1, 3])
#[operator(
    nn,
    alias = "native_channel_shuffle",
    sample = "shaped(lambda draw, shape: lambda x: F.channel_shuffle(x, 3), st.sampled_from([(1, 6, 2), (2, 3, 2, 1)]))"
)]
pub fn channel_shuffle(input: &Tensor, groups: i64) -> Result<Tensor> {
    let shape = input.shape();
    if shape.len() < 3 {
        return Err(Error::runtime(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {:?}",
            shape.as_slice()
        )));
    }
    if groups <= 0 {
        return Err(Error::runtime(format!(
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )));
    }
    if shape[1] as i64 % groups != 0 {
        return Err(Error::runtime(format!(
            "Number of channels must be divisible by groups. Got {} channels and {groups} groups.",
            shape[1]
        )));
    }
    ChannelShuffle::call(input, groups)
}
