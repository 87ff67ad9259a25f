//! Softmax and what is built like it.

use super::formal::{exp, is_finite, log, select};
use super::kernel::{at_least_vector, copy, fork, with_shape};
use super::macros::{compose, ops};
use super::reduce::quietly;
use super::row::Ints;
use super::value::V;
use crate::base::{DType, Fault, Result, wrap_dim};
use crate::tensor::{Body, Tensor, mode};

fn forward(op: &'static str, input: &Tensor, dim: i64, log: bool) -> Result<Body> {
    let x = at_least_vector(&input.body());
    let dim = wrap_dim(dim, x.layout.ndim())?;
    if !x.dtype.is_float() && x.numel() > 0 {
        let op = match (dim + 1 == x.layout.ndim(), log) {
            (true, true) => "log_softmax_lastdim_kernel_impl",
            (true, false) => "softmax_lastdim_kernel_impl",
            _ => op,
        };
        return Err(Fault::NoKernel { op, dtype: x.dtype }.into());
    }
    let out = Body::new(x.shape(), x.dtype, x.device())?;
    if out.numel() > 0 {
        // What lies across the result is turned first, all at once.
        let across = out.device().is_cpu() && x.layout.strides.last() != out.layout.strides.last();
        if across {
            copy(&out, &x)?;
        }
        let x = if across { &out } else { &x };
        fork!([&out, x], cpu: crate::cpu::softmax::softmax(out.host()?, x.host()?, dim, log),
            gpu: crate::gpu::softmax(out.gpu()?, x.gpu()?, dim, log))?;
    }
    Ok(with_shape(out, &input.shape()))
}

/// The gradient by one kernel, or by operators when it is recorded itself.
fn backward(g: V, y: V, dim: i64, log: bool) -> Result<Tensor> {
    // PyTorch's rule for gradients of single numbers gives zeros that know of nothing.
    if g.is_batched() && g.shape().is_empty() {
        return super::unary::zeros_of(&super::create::shallow(&g.tensor()?));
    }
    if mode::grad_enabled() || g.is_special() || y.is_special() {
        return match log {
            true => (&g - exp(&y) * g.clone().sum(&[dim], true)).tensor(),
            false => (&y * (&g - (&g * &y).sum(&[dim], true))).tensor(),
        };
    }
    let (g, y) = (g.tensor()?, y.tensor()?);
    let shape = y.shape();
    let (g, y) = (at_least_vector(&g.body()), at_least_vector(&y.body()));
    let dim = wrap_dim(dim, y.layout.ndim())?;
    let out = Body::new(y.shape(), y.dtype, y.device())?;
    if out.numel() > 0 {
        fork!([&out, &g, &y],
            cpu: crate::cpu::softmax::softmax_backward(out.host()?, g.host()?, y.host()?, dim, log),
            gpu: crate::gpu::softmax_backward(out.gpu()?, g.gpu()?, y.gpu()?, dim, log))?;
    }
    Ok(Tensor::new(with_shape(out, &shape)))
}

/// `log(sum(exp(x)))` without overflow: the largest element is taken out first.
fn log_sum(input: &Tensor, dim: &Ints, keepdim: bool) -> Result<Tensor> {
    let axes = super::reduce::dims_or_all(Some(dim), input.ndim())?;
    let x = V::from(input);
    if input.numel() == 0 {
        return log(exp(x).sum(dim, keepdim)).tensor();
    }
    // (Of complex numbers the one with the largest real part: that is whose exponential is largest.)
    let sizes = V::from(input).re().tensor()?;
    let top = V::from(super::extrema::amax(&sizes, dim.clone(), true));
    // An infinite largest element must not become infinity minus infinity.
    let top = select(0.0, &top, is_finite(&top));
    let sum = log(exp(x - &top).sum(dim, true)) + top;
    let sum = sum.tensor()?;
    let body = sum.body().clone();
    Ok(Tensor::new(if keepdim { body } else { super::kernel::drop_dims(body, &axes) }))
}

ops! { "softmax";
    /// `exp(input) / sum(exp(input))` along `dim`.
    [hidden] fn softmax_along(input; dim: i64) -> y { forward("softmax_kernel_impl", input, dim, false) }
    input: |g, y, dim| backward(g, y, dim, false);
    /// The logarithm of softmax.
    [hidden] fn log_softmax_along(input; dim: i64) -> y { forward("log_softmax_kernel_impl", input, dim, true) }
    input: |g, y, dim| backward(g, y, dim, true);
    /// The logarithm of the sum of exponentials.
    [hidden] fn logsumexp_over(input; dim: Ints, keepdim: bool) -> y { quietly(|| log_sum(input, &dim, keepdim)) }
    input: |g, input, y, at, dim, keepdim| {
        let y = y.unreduce(&at, &Some(dim.clone()), keepdim);
        g.unreduce(&at, &Some(dim), keepdim) * exp(&input - &y).conj()
    };
}

mod more {
    use super::*;
    use crate::ops::create::{default_dtype, to_dtype};

    fn as_dtype(input: Tensor, dtype: Option<DType>) -> Result<Tensor> {
        dtype.map_or(Ok(input.clone()), |dtype| to_dtype(&input, dtype))
    }

    compose! { "softmax";
        /// `exp(input) / sum(exp(input))` along `dim`.
        [out] fn softmax(input: Tensor, dim: i64, dtype: Option<DType> = None) -> Tensor {
            super::softmax_along(&as_dtype(input, dtype)?, dim)
        }
        /// The logarithm of softmax along `dim`.
        [out] fn log_softmax(input: Tensor, dim: i64, dtype: Option<DType> = None) -> Tensor {
            super::log_softmax_along(&as_dtype(input, dtype)?, dim)
        }
        /// The logarithm of the sum of exponentials over `dim`, without overflow.
        [out] fn logsumexp(input: Tensor, dim: Ints, keepdim: bool = false) -> Tensor {
            let input = if input.dtype().is_differentiable() { input } else { to_dtype(&input, default_dtype())? };
            super::logsumexp_over(&input, dim, keepdim)
        }
    }
}
pub use more::{COMPOSED, log_softmax, softmax};
