//! Normalization of groups of channels of each example.

use crate::base::MemoryFormat;
use crate::cpu::norm::sets as kernel;
use crate::operator::bodies::copy;
use crate::operator::primitives::copies::to_dtype;
use crate::ops::nn::batch_norm::maybe_line;
use crate::ops::nn::norm::{self, bodies, check_mixed, dense, host, wide, wide_line};
use crate::ops::nn::standardize::{NormShape, Standardized, Statistics};
use crate::ops::prelude::*;
use crate::tensor::mode;

#[derive(Clone, Copy)]
struct GroupSizes {
    n: usize,
    channels: usize,
    run: usize,
    groups: usize,
}

impl GroupSizes {
    fn new(n: i64, channels: i64, run: i64, groups: i64) -> GroupSizes {
        let [n, channels, run, groups] = [n, channels, run, groups].map(|size| size as usize);
        GroupSizes { n, channels, run, groups }
    }

    /// The number of elements of a group.
    fn each(&self) -> usize {
        self.channels / self.groups.max(1) * self.run
    }

    fn norm_shape(&self) -> NormShape {
        NormShape::groups([self.n, self.channels, self.run], self.groups)
    }

    #[cfg(feature = "gpu")]
    fn on_gpu(&self) -> crate::gpu::norm::NormSizes {
        let GroupSizes { n, channels, run, groups } = *self;
        crate::gpu::norm::NormSizes { n, channels, run, groups: Some(groups) }
    }

    fn kernel(&self) -> kernel::Groups {
        kernel::Groups { n: self.n, groups: self.groups, channels: self.channels, run: self.run }
    }
}

fn formula(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    sizes: GroupSizes,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let laid = sizes.norm_shape();
    let x = V::from(to_dtype(input, wide(input.dtype()))?);
    let Standardized { y, mean, scale, .. } = laid.standardize(x, eps);
    let y = laid.scale_and_shift(y, weight.map(V::from), bias.map(V::from), input)?;
    let of_groups = |v: V| v.reshape(&[sizes.n, sizes.groups]).tensor();
    Ok([y, of_groups(mean)?, of_groups(scale)?])
}

fn by_kernel(
    x: &Body,
    weight: Option<&Body>,
    bias: Option<&Body>,
    sizes: GroupSizes,
    eps: f64,
) -> Result<[Body; 3]> {
    let dtype = wide(x.dtype);
    let (weight, bias) = (wide_line(weight, dtype)?, wide_line(bias, dtype)?);
    let own = dense(x, dtype)?;
    let new = |shape: &[usize]| Body::new(shape, dtype, x.device());
    let lines = [sizes.n, sizes.groups];
    let (out, mean, scale) = (new(x.shape())?, new(&lines)?, new(&lines)?);
    fork!(over [out, own], with [mean, scale, weight, bias, sizes, eps],
    cpu: {
        let (mean, scale) = (kernel::Line(mean.host()?), kernel::Line(scale.host()?));
        let with = kernel::With { weight: maybe_line(&weight)?, bias: maybe_line(&bias)?, mean, scale };
        kernel::group(out.host()?, own.host()?, with, sizes.kernel(), eps)
    },
    gpu: {
        use crate::gpu::norm as kernel;
        let with = norm::gpu_with(&weight, &bias, Some(&mean), &scale)?;
        let moments = kernel::Moments::Own { eps, variance: None };
        kernel::forward(out.gpu()?, own.gpu()?, with, moments, sizes.on_gpu())
    })?;
    Ok([in_dtype(out, x.dtype)?, mean, scale])
}

/// Puts the result into the channels-last format if the input has it.
fn like(out: Body, input: &Body) -> Result<Body> {
    let format = MemoryFormat::ChannelsLast(input.layout.ndim());
    if !matches!(input.layout.ndim(), 4 | 5) || input.layout.is_contiguous() || !format.holds(&input.layout) {
        return Ok(out);
    }
    let new = Body::new(out.shape(), out.dtype, out.device())?;
    let new = new.with_layout(format.layout(&new.layout)?);
    copy(&new, &out)?;
    Ok(new)
}

#[primitive(results(result0, result1, result2), scratch(result1, result2))]
impl NativeGroupNorm {
    #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
    fn forward(
        #[shown("input")] input: &Tensor,
        weight: Option<&Tensor>,
        #[hidden] bias: Option<&Tensor>,
        #[shown("N")] n: i64,
        #[shown("C")] channels: i64,
        #[shown("HxW")] run: i64,
        group: i64,
        #[hidden] eps: f64,
    ) -> Result<[Body; 3]> {
        let sizes = GroupSizes::new(n, channels, run, group);
        let [out, mean, scale] = if !norm::by_kernel(&input.body(), sizes.each()) {
            let made = mode::with_grad(false, || formula(input, weight, bias, sizes, eps))?;
            made.map(|t| t.body().clone())
        } else {
            let [weight, bias] = [weight, bias].map(|t| t.map(|t| t.body().clone()));
            by_kernel(&input.body(), weight.as_ref(), bias.as_ref(), sizes, eps)?
        };
        Ok([like(out, &input.body())?, mean, scale])
    }
    #[allow(clippy::too_many_arguments, reason = "they are what is saved")]
    fn derivative(
        g: &Tensor,
        input: V,
        weight: Option<V>,
        n: i64,
        channels: i64,
        run: i64,
        group: i64,
        eps: f64,
        wants: [bool; 3],
    ) -> [Option<V>; 3] {
        let sizes = GroupSizes::new(n, channels, run, group);
        let laid = sizes.norm_shape();
        let Standardized { y, scale, .. } = laid.standardize(input.cast(wide(g.dtype())), eps);
        laid.gradients(g, [y, scale], weight, Statistics::MeanAndVariance, wants)
    }
    #[allow(clippy::too_many_arguments, reason = "they are what is saved")]
    fn fast_derivative(
        g: Body,
        input: Body,
        result1: Body,
        result2: Body,
        weight: Option<Body>,
        n: i64,
        channels: i64,
        run: i64,
        group: i64,
        wants: [bool; 3],
    ) -> Result<[Option<Body>; 3]> {
        let sizes = GroupSizes::new(n, channels, run, group);
        if !norm::by_kernel(&input, sizes.each()) {
            let value = |body: Body| V::from(Tensor::new(body));
            let laid = sizes.norm_shape();
            let x = value(input).cast(wide(g.dtype));
            let Standardized { y, scale, .. } = laid.standardize_by(x, value(result1), value(result2));
            let (g, weight) = (Tensor::new(g), weight.map(value));
            return bodies(laid.gradients(&g, [y, scale], weight, Statistics::MeanAndVariance, wants));
        }
        let (dtype, of_params) = (wide(input.dtype), weight.as_ref().map_or(input.dtype, |w| w.dtype));
        let (g, x) = (dense(&g, dtype)?, dense(&input, dtype)?);
        let weight = wide_line(weight.as_ref(), dtype)?;
        let new = |want: bool, shape: &[usize]| want.then(|| Body::new(shape, dtype, x.device())).transpose();
        let line = [sizes.channels];
        let made = [new(wants[0], x.shape())?, new(wants[1], &line)?, new(wants[2], &line)?];
        fork!(over [g, x], with [result1, result2, weight, made, sizes],
        cpu: {
            let (mean, scale) = (kernel::Line(result1.host()?), kernel::Line(result2.host()?));
            let with = kernel::With { weight: maybe_line(&weight)?, bias: None, mean, scale };
            let (weight, bias) = (maybe_line(&made[1])?, maybe_line(&made[2])?);
            let to = kernel::Grads { input: host(&made[0])?, weight, bias };
            kernel::group_backward(to, g.host()?, x.host()?, with, sizes.kernel())
        },
        gpu: {
            let with = norm::gpu_with(&weight, &None, Some(&result1), &result2)?;
            let to = norm::gpu_grads(&made)?;
            crate::gpu::norm::backward(to, g.gpu()?, x.gpu()?, with, true, sizes.on_gpu())
        })?;
        let [of_input, of_weight, of_bias] = made;
        let to = |body: Option<Body>, dtype| body.map(|body| in_dtype(body, dtype)).transpose();
        Ok([to(of_input, input.dtype)?, to(of_weight, of_params)?, to(of_bias, of_params)?])
    }
    #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
    fn batch(
        _b: &Batch,
        input: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        n: i64,
        channels: i64,
        run: i64,
        group: i64,
        eps: f64,
    ) -> Result<Tensor> {
        formula(input, weight, bias, GroupSizes::new(n, channels, run, group), eps).map(|[y, ..]| y)
    }
}

fn check_channels(name: &str, given: Option<&Tensor>, shape: &[usize]) -> Result<()> {
    match given {
        Some(t) if t.ndim() != 1 || t.numel() != shape[1] => Err(Error::runtime(format!(
            "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {:?} and \
             input of shape {shape:?}",
            t.shape().as_slice()
        ))),
        _ => Ok(()),
    }
}

/// Normalize groups of channels of each sample on their own, then scale and shift each channel.
///
/// Args:
///     input: the input, `(N, C, *)`.
///     num_groups: number of groups, which divides the number of channels.
///     weight: scale of each channel.
///     bias: shift of each channel.
///     _cudnn_enabled: not used.
///
/// Examples:
///     >>> torch.group_norm(torch.tensor([[[1.0], [3.0], [2.0], [6.0]]]), 2, eps=0.0)
///     tensor([[[-1.],
///              [ 1.],
///              [-1.],
///              [ 1.]]])
#[operator(function, sample = "grouped()")]
pub fn group_norm(
    input: &Tensor,
    num_groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(1e-5)] eps: f64,
    #[default(true)] _cudnn_enabled: bool,
) -> Result<Tensor> {
    let shape = input.shape();
    if shape.len() < 2 {
        return Err(Error::runtime(format!(
            "Expected at least 2 dimensions for input tensor but received {}",
            shape.len()
        )));
    }
    if num_groups <= 0 {
        return Err(Error::runtime(format!("Expected num groups to be greater than 0, got {num_groups}")));
    }
    if shape[1] as i64 % num_groups != 0 {
        return Err(Error::runtime(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
             num_groups={num_groups}",
            shape.as_slice()
        )));
    }
    check_channels("weight", weight, &shape)?;
    check_channels("bias", bias, &shape)?;
    let run: usize = shape[2..].iter().product();
    if run == 0 {
        return Err(Error::runtime("Expected HxW to be greater than 0, got 0"));
    }
    check_mixed(input, &[weight, bias])?;
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "GroupNormKernelImpl", dtype: input.dtype() }.into());
    }
    let (n, channels) = (shape[0] as i64, shape[1] as i64);
    NativeGroupNorm::call(input, weight, bias, n, channels, run as i64, num_groups, eps)
}

crate::capture::retain_copy!(GroupSizes);
