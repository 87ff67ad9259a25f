//! Batch normalization (channels over a batch) and instance normalization (each channel of each example).

use crate::cpu::norm::{Sets, sets as kernel};
use crate::operator::bodies::copy;
use crate::operator::inplace;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::{ints, reshape};
use crate::operator::primitives::{constant, detached};
use crate::ops::elementwise::formula::rsqrt;
use crate::ops::nn::norm::{self, bodies, check_mixed, dense, host, wide, wide_line};
use crate::ops::nn::standardize::{NormShape, Standardized, Statistics};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::rearrange;
use crate::tensor::mode;

/// The number of elements per channel.
fn each(shape: &[usize]) -> usize {
    crate::base::numel(shape) / shape[1].max(1)
}

/// Running means and variances. They are updated in training and used otherwise.
#[derive(Clone, Copy)]
struct RunningStatistics<'a> {
    mean: Option<&'a Tensor>,
    var: Option<&'a Tensor>,
    /// Use the statistics of the batch.
    training: bool,
}

fn standardize(laid: &NormShape, input: V, running: RunningStatistics, eps: f64) -> Standardized {
    match (running.training, running.mean, running.var) {
        (false, Some(mean), Some(var)) => laid.standardize_by(input, mean.into(), rsqrt(V::from(var) + eps)),
        _ => laid.standardize(input, eps),
    }
}

/// Returns the result, the means, the factors `1 / sqrt(variance + eps)`, and in training the variances.
fn formula(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running: RunningStatistics,
    eps: f64,
) -> Result<([Tensor; 3], Option<Tensor>)> {
    let laid = NormShape::channels(&input.shape());
    let x = V::from(to_dtype(input, wide(input.dtype()))?);
    let Standardized { y, mean, scale, variance } = standardize(&laid, x, running, eps);
    let y = laid.scale_and_shift(y, weight.map(V::from), bias.map(V::from), input)?;
    let line = |v: V| v.reshape(&[input.shape()[1]]).tensor();
    Ok(([y, line(mean)?, line(scale)?], variance.map(line).transpose()?))
}

/// The statistics that depend on the input.
const fn statistics(training: bool) -> Statistics {
    if training { Statistics::MeanAndVariance } else { Statistics::Nothing }
}

/// True if channels are innermost in memory, and the other dimensions in order.
fn channels_last(body: &Body) -> bool {
    body.layout.ndim() > 2 && !body.layout.is_contiguous() && innermost(body).layout.is_contiguous()
}

/// A view with the channels as the last dimension.
fn innermost(body: &Body) -> Body {
    let order = |of: &Dims| -> Dims { of.iter().take(1).chain(&of[2..]).chain(&of[1..2]).copied().collect() };
    let layout = Layout {
        shape: order(&body.layout.shape),
        strides: order(&body.layout.strides),
        offset: body.layout.offset,
    };
    body.with_layout(layout)
}

/// The inverse of [`innermost`].
fn as_before(body: Body) -> Body {
    let order = |of: &Dims| -> Dims {
        let last = of.len() - 1;
        of.iter().take(1).chain(&of[last..]).chain(&of[1..last]).copied().collect()
    };
    let layout = Layout {
        shape: order(&body.layout.shape),
        strides: order(&body.layout.strides),
        offset: body.layout.offset,
    };
    body.with_layout(layout)
}

/// The memory layout in which the kernels read a batch.
#[derive(Clone, Copy)]
pub(super) struct ChannelLayout {
    last: bool,
    pub sets: Sets,
}

impl ChannelLayout {
    pub fn of(x: &Body) -> ChannelLayout {
        let (shape, last) = (x.shape(), channels_last(x));
        let run: usize = shape[2..].iter().product();
        let (n, sets) = (shape[0], shape[1]);
        ChannelLayout {
            last,
            sets: if last { Sets { n: n * run, sets, run: 1 } } else { Sets { n, sets, run } },
        }
    }

    /// The elements contiguously, in the order that the kernels expect.
    pub fn dense(&self, x: &Body, dtype: DType) -> Result<Body> {
        if self.last { dense(&innermost(x), dtype) } else { dense(x, dtype) }
    }

    #[cfg(feature = "gpu")]
    fn planes(&self) -> crate::gpu::norm::NormSizes {
        let Sets { n, sets, run } = self.sets;
        crate::gpu::norm::NormSizes { n, channels: sets, run, groups: None }
    }

    pub fn back(&self, x: Body) -> Body {
        if self.last { as_before(x) } else { x }
    }
}

fn line(body: &Body) -> Result<kernel::Line<'_>> {
    Ok(kernel::Line(body.host()?))
}

pub(super) fn maybe_line(body: &Option<Body>) -> Result<Option<kernel::Line<'_>>> {
    body.as_ref().map(line).transpose()
}

/// The result by the kernel, the means, the factors, and the variances.
fn by_kernel(
    x: &Body,
    weight: Option<&Body>,
    bias: Option<&Body>,
    running: RunningStatistics,
    eps: f64,
) -> Result<[Body; 4]> {
    let laid = ChannelLayout::of(x);
    let dtype = wide(x.dtype);
    let (weight, bias) = (wide_line(weight, dtype)?, wide_line(bias, dtype)?);
    let own = laid.dense(x, dtype)?;
    let out = Body::new(own.shape(), dtype, x.device())?;
    let new = || Body::new(&[laid.sets.sets], dtype, x.device());
    let (mut mean, mut scale, variance) = (new()?, new()?, new()?);
    if let (false, Some(m), Some(var)) = (running.training, running.mean, running.var) {
        mean = dense(&m.body(), dtype)?;
        let inverse = rsqrt(V::from(Tensor::new(dense(&var.body(), dtype)?)) + eps);
        scale = dense(&reduce::no_grad(|| inverse.tensor())?, dtype)?;
    }
    let training = running.training;
    fork!(over [out, own], with [mean, scale, variance, weight, bias, laid, eps, training],
    cpu: {
        let (weight, bias) = (maybe_line(&weight)?, maybe_line(&bias)?);
        let with = kernel::With { weight, bias, mean: line(&mean)?, scale: line(&scale)? };
        match training {
            true => kernel::batch(out.host()?, own.host()?, with, line(&variance)?, laid.sets, eps),
            false => kernel::normalize_by(out.host()?, own.host()?, with, laid.sets),
        }
    },
    gpu: {
        use crate::gpu::norm as kernel;
        let with = norm::gpu_with(&weight, &bias, Some(&mean), &scale)?;
        let moments = match training {
            true => kernel::Moments::Own { eps, variance: Some(variance.gpu()?) },
            false => kernel::Moments::Given,
        };
        kernel::forward(out.gpu()?, own.gpu()?, with, moments, laid.planes())
    })?;
    Ok([laid.back(in_dtype(out, x.dtype)?), mean, scale, variance])
}

/// Updates the running means and variances with those of this batch, without recording a graph.
fn update_running(
    running: RunningStatistics,
    mean: &Body,
    variance: &Body,
    count: usize,
    momentum: f64,
) -> Result<()> {
    let unbiased = count as f64 / (count as f64 - 1.0);
    for (old, new, factor) in [(running.mean, mean, 1.0), (running.var, variance, unbiased)] {
        let Some(old) = old else { continue };
        let value = || {
            let new = V::from(Tensor::new(new.clone())) * (factor * momentum);
            (V::from(&detached::shallow(old)) * (1.0 - momentum) + new).tensor()
        };
        let body = old.body();
        fork!([&body, new],
            cpu: copy(&body, &reduce::no_grad(value)?),
            gpu: crate::gpu::norm::running(body.gpu()?, new.gpu()?, 1.0 - momentum, factor * momentum))?;
    }
    Ok(())
}

#[primitive(results(result0, result1, result2, variance), scratch(result1, result2, variance))]
impl NativeBatchNorm {
    #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
    fn forward(
        #[shown("input")] input: &Tensor,
        weight: Option<&Tensor>,
        #[hidden] bias: Option<&Tensor>,
        #[constant] running_mean: Option<&Tensor>,
        #[constant] running_var: Option<&Tensor>,
        training: bool,
        #[hidden] momentum: f64,
        eps: f64,
    ) -> Result<[Body; 4]> {
        let running = RunningStatistics { mean: running_mean, var: running_var, training };
        let made = if !norm::by_kernel(&input.body(), each(&input.shape())) {
            let ([y, mean, scale], variance) =
                mode::with_grad(false, || formula(input, weight, bias, running, eps))?;
            let variance = variance.unwrap_or_else(|| scale.clone());
            [y, mean, scale, variance].map(|t| t.body().clone())
        } else {
            let [weight, bias] = [weight, bias].map(|t| t.map(|t| t.body().clone()));
            by_kernel(&input.body(), weight.as_ref(), bias.as_ref(), running, eps)?
        };
        if training && input.numel() > 0 {
            update_running(running, &made[1], &made[3], input.numel() / input.shape()[1], momentum)?;
        }
        Ok(made)
    }
    fn derivative(
        g: &Tensor,
        input: V,
        weight: Option<V>,
        running_mean: Option<Tensor>,
        running_var: Option<Tensor>,
        training: bool,
        eps: f64,
        wants: [bool; 3],
    ) -> [Option<V>; 3] {
        let running = RunningStatistics { mean: running_mean.as_ref(), var: running_var.as_ref(), training };
        let laid = NormShape::channels(&g.shape());
        let Standardized { y, scale, .. } = standardize(&laid, input.cast(wide(g.dtype())), running, eps);
        laid.gradients(g, [y, scale], weight, statistics(training), wants)
    }
    #[allow(clippy::too_many_arguments, reason = "they are what is saved")]
    fn fast_derivative(
        g: Body,
        input: Body,
        result1: Body,
        result2: Body,
        weight: Option<Body>,
        training: bool,
        wants: [bool; 3],
    ) -> Result<[Option<Body>; 3]> {
        if !norm::by_kernel(&input, each(input.shape())) {
            let value = |body: Body| V::from(Tensor::new(body));
            let laid = NormShape::channels(input.shape());
            let x = value(input).cast(wide(g.dtype));
            let Standardized { y, scale, .. } = laid.standardize_by(x, value(result1), value(result2));
            let (g, weight) = (Tensor::new(g), weight.map(value));
            return bodies(laid.gradients(&g, [y, scale], weight, statistics(training), wants));
        }
        let laid = ChannelLayout::of(&input);
        let (dtype, of_params) = (wide(input.dtype), weight.as_ref().map_or(input.dtype, |w| w.dtype));
        let (g, x) = (laid.dense(&g, dtype)?, laid.dense(&input, dtype)?);
        let weight = wide_line(weight.as_ref(), dtype)?;
        let new = |want: bool, shape: &[usize]| want.then(|| Body::new(shape, dtype, x.device())).transpose();
        let channels = [laid.sets.sets];
        let made = [new(wants[0], x.shape())?, new(wants[1], &channels)?, new(wants[2], &channels)?];
        fork!(over [g, x], with [result1, result2, weight, made, laid, training],
        cpu: {
            let (mean, scale) = (line(&result1)?, line(&result2)?);
            let with = kernel::With { weight: maybe_line(&weight)?, bias: None, mean, scale };
            let (weight, bias) = (maybe_line(&made[1])?, maybe_line(&made[2])?);
            let to = kernel::Grads { input: host(&made[0])?, weight, bias };
            kernel::batch_backward(to, g.host()?, x.host()?, with, laid.sets, training)
        },
        gpu: {
            let with = norm::gpu_with(&weight, &None, Some(&result1), &result2)?;
            let to = norm::gpu_grads(&made)?;
            crate::gpu::norm::backward(to, g.gpu()?, x.gpu()?, with, training, laid.planes())
        })?;
        let [of_input, of_weight, of_bias] = made;
        let to = |body: Option<Body>, dtype| body.map(|body| in_dtype(body, dtype)).transpose();
        let of_input = to(of_input, input.dtype)?.map(|body| laid.back(body));
        Ok([of_input, to(of_weight, of_params)?, to(of_bias, of_params)?])
    }
    #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
    fn batch(
        _b: &Batch,
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Tensor> {
        let running = RunningStatistics { mean: running_mean, var: running_var, training };
        let ([out, mean, _], variance) = formula(input, weight, bias, running, eps)?;
        let Some(variance) = variance else { return Ok(out) };
        let count = input.numel() as f64 / input.shape()[1] as f64;
        for (old, new, factor) in [(running.mean, mean, 1.0), (running.var, variance, count / (count - 1.0))]
        {
            let Some(old) = old else { continue };
            if input.is_batched() && !old.is_batched() {
                return Err(Error::runtime(
                    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated \
                     in place, were not batched.\nIf you are using a module and do not need eval mode, please set \
                     `track_running_stats` to be False.",
                ));
            }
            let value = || {
                let new = V::from(detached::shallow(&new)) * (factor * momentum);
                (V::from(detached::shallow(old)) * (1.0 - momentum) + new).tensor()
            };
            let value = mode::with_grad(false, value)?;
            inplace::copy_into(old, &value)?;
        }
        Ok(out)
    }
}

fn check_channels(name: &str, given: Option<&Tensor>, channels: usize) -> Result<()> {
    match given {
        Some(t) if t.numel() != channels => {
            Err(Error::runtime(format!("{name} should contain {channels} elements not {}", t.numel())))
        }
        _ => Ok(()),
    }
}

/// Normalize each channel (dimension 1) over the batch, then scale and shift it.
///
/// Args:
///     weight: scale of each channel.
///     bias: shift of each channel.
///     running_mean, running_var: running estimates; updated in training, used otherwise.
///     training: whether to normalize by the statistics of the batch.
///     momentum: share of the batch in the update of the running estimates.
///     _cudnn_enabled: not used.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
///     >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)
///     tensor([[-1., -1.],
///             [ 1.,  1.]])
#[operator(function, sample = "channelled()")]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn batch_norm(
    input: &Tensor,
    #[required] weight: Option<&Tensor>,
    #[required] bias: Option<&Tensor>,
    #[required] running_mean: Option<&Tensor>,
    #[required] running_var: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
    _cudnn_enabled: bool,
) -> Result<Tensor> {
    let channels = input.shape().get(1).copied().unwrap_or(0);
    for (name, running) in [("running_mean", running_mean), ("running_var", running_var)] {
        check_channels(name, running, channels)?;
        if running.is_none() && !training {
            return Err(Error::runtime(format!("{name} must be defined in evaluation mode")));
        }
    }
    if running_mean.is_some() != running_var.is_some() {
        return Err(Error::value("running_mean and running_var must either both be None or neither be None"));
    }
    check_channels("weight", weight, channels)?;
    check_channels("bias", bias, channels)?;
    if input.ndim() < 2 {
        return Err(Error::index("Dimension out of range (expected to be in range of [-1, 0], but got 1)"));
    }
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "batch_norm", dtype: input.dtype() }.into());
    }
    check_mixed(input, &[weight, bias, running_mean, running_var])?;
    NativeBatchNorm::call(input, weight, bias, running_mean, running_var, training, momentum, eps)
}

/// Apply batch normalization, and return the mean and the reciprocal standard deviation as well.
///
/// Args:
///     weight: scale of each channel.
///     bias: shift of each channel.
///     running_mean, running_var: running estimates; updated in training, used otherwise.
///     training: whether to normalize by the statistics of the batch; if not, the other results are empty.
///     momentum: share of the batch in the update of the running estimates.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
///     >>> out, mean, invstd = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)
///     >>> mean, invstd
///     (tensor([2., 4.]), tensor([1.0000, 0.5000]))
#[operator(function, sample = "random")]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn native_batch_norm(
    input: &Tensor,
    #[required] weight: Option<&Tensor>,
    #[required] bias: Option<&Tensor>,
    #[required] running_mean: Option<&Tensor>,
    #[required] running_var: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let out = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, false)?;
    if !training {
        let none = || constant::zeros(&[0], wide(input.dtype()), input.device());
        return Ok([out, none()?, none()?]);
    }
    let running = RunningStatistics { mean: None, var: None, training };
    // The statistics have no gradient.
    let ([_, mean, scale], _) = formula(&detached::shallow(input), None, None, running, eps)?;
    Ok([out, mean, scale])
}

/// Normalize each channel of each sample on its own, then scale and shift it.
///
/// Args:
///     weight: scale of each channel.
///     bias: shift of each channel.
///     running_mean, running_var: running estimates of mean and variance.
///     use_input_stats: whether to normalize by the statistics of the input, else by the running estimates.
///     momentum: share of the input in the update of the running estimates.
///     cudnn_enabled: not used.
///
/// Examples:
///     >>> x = torch.tensor([[[1.0, 3.0], [2.0, 6.0]]])
///     >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
///     tensor([[[-1.,  1.],
///              [-1.,  1.]]])
#[operator(function, composite, sample = "channelled_alone()")]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn instance_norm(
    input: &Tensor,
    #[required] weight: Option<&Tensor>,
    #[required] bias: Option<&Tensor>,
    #[required] running_mean: Option<&Tensor>,
    #[required] running_var: Option<&Tensor>,
    use_input_stats: bool,
    momentum: f64,
    eps: f64,
    cudnn_enabled: bool,
) -> Result<Tensor> {
    if !use_input_stats && (running_mean.is_none() || running_var.is_none()) {
        return Err(Error::runtime(
            "Expected running_mean and running_var to be defined when use_input_stats is false",
        ));
    }
    let sizes = input.shape();
    if sizes.len() < 2 {
        return Err(Error::index("Dimension out of range (expected to be in range of [-1, 0], but got 1)"));
    }
    let (samples, channels) = (sizes[0], sizes[1]);
    // The channels of all examples become channels of a single example.
    let repeated = |t: Option<&Tensor>| t.map(|t| rearrange::repeat(t, Sizes(ints(&[samples])))).transpose();
    let statistics = |t: Option<&Tensor>| -> Result<Option<Tensor>> {
        let t = repeated(t.map(detached::shallow).as_ref())?;
        let other = input.dtype().size() != 2 && t.as_ref().is_some_and(|t| t.dtype() != input.dtype());
        if other { t.map(|t| to_dtype(&t, input.dtype())).transpose() } else { Ok(t) }
    };
    let (weight, bias) = (repeated(weight)?, repeated(bias)?);
    let (mean, var) = (statistics(running_mean)?, statistics(running_var)?);
    let mut flat = sizes.clone();
    (flat[0], flat[1]) = (1, samples * channels);
    let out = batch_norm(
        &reshape(input, &flat)?,
        weight.as_ref(),
        bias.as_ref(),
        mean.as_ref(),
        var.as_ref(),
        use_input_stats,
        momentum,
        eps,
        cudnn_enabled,
    )?;
    for (running, all) in [(running_mean, mean), (running_var, var)] {
        let (Some(running), Some(all), true) = (running, all, use_input_stats) else { continue };
        let average = || {
            let all = V::from(all).reshape(&[samples, channels]);
            (all.sum(&[0], false) / samples as f64).tensor()
        };
        let average = mode::with_grad(false, average)?;
        mode::with_grad(false, || inplace::copy_into(running, &average))?;
    }
    reshape(&out, &sizes)
}

crate::capture::retain_copy!(ChannelLayout);
