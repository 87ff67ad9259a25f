//! `softmax`, `log_softmax` and `logsumexp`.

use crate::base::{default_dtype, dims_or_all, warn};
use crate::operator::batch;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::detached;
use crate::ops::elementwise::{arithmetic, unary};
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::amax;
use crate::ops::reduction::reduce::no_grad;

fn apply_softmax(op: &'static str, input: &Tensor, dim: i64, log: bool) -> Result<Body> {
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
        // If the rows' stride differs from that of the result, copying them all first is faster.
        let across = out.device().is_cpu() && x.layout.strides.last() != out.layout.strides.last();
        let x = if across { crate::operator::bodies::duplicate(&x)? } else { x };
        fork!(over [out], reads [x], with [dim, log], cpu: crate::cpu::softmax::softmax(out.host()?, x.host()?, dim, log),
            gpu: crate::gpu::softmax(out.gpu()?, x.gpu()?, dim, log))?;
    }
    Ok(with_shape(out, &input.shape()))
}

/// The gradient, by one kernel.
fn softmax_gradient(g: &Body, y: &Body, dim: i64, log: bool) -> Result<Body> {
    let shape = y.shape();
    let (g, y) = (at_least_vector(g), at_least_vector(y));
    let dim = wrap_dim(dim, y.layout.ndim())?;
    let out = Body::new(y.shape(), y.dtype, y.device())?;
    if out.numel() > 0 {
        fork!(over [out], reads [g, y], with [dim, log],
            cpu: crate::cpu::softmax::softmax_backward(out.host()?, g.host()?, y.host()?, dim, log),
            gpu: crate::gpu::softmax_backward(out.gpu()?, g.gpu()?, y.gpu()?, dim, log))?;
    }
    Ok(with_shape(out, shape))
}

/// For 0-d examples, PyTorch's batching rule returns zeros that are not in the graph.
fn unless_single(g: &V, formula: impl FnOnce() -> V) -> V {
    if g.is_batched() && g.shape().is_empty() {
        return g.clone().then(|g| unary::zeros_of(&detached::shallow(&g)));
    }
    formula()
}

/// The batching rule. The gradient of 0-d examples is zero.
fn of_samples(
    b: &Batch,
    input: &Tensor,
    dim: i64,
    call: impl FnOnce(&Tensor, i64) -> Result<Tensor>,
) -> Result<Tensor> {
    let mut x = b.full(input)?;
    if b.rank(&x) == 0 {
        x = arithmetic::add(&detached::shallow(&x), &unary::zeros_of(&x)?)?;
    }
    batch::along(b, &x, (dim,), |x, (dim,)| call(x, dim))
}

#[primitive(aten = "_softmax")]
impl Softmax {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        apply_softmax("softmax_kernel_impl", input, dim, false)
    }
    fn d_input(g: V, result: V, dim: i64) -> V {
        unless_single(&g, || &result * (&g - (&g * &result).sum(&[dim], true)))
    }
    fn fast_d_input(g: Body, result: Body, dim: i64) -> Result<Body> {
        softmax_gradient(&g, &result, dim, false)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        of_samples(b, input, dim, Softmax::call)
    }
}

#[primitive(aten = "_log_softmax")]
impl LogSoftmax {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        apply_softmax("log_softmax_kernel_impl", input, dim, true)
    }
    fn d_input(g: V, result: V, dim: i64) -> V {
        unless_single(&g, || &g - exp(&result) * g.clone().sum(&[dim], true))
    }
    fn fast_d_input(g: Body, result: Body, dim: i64) -> Result<Body> {
        softmax_gradient(&g, &result, dim, true)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64) -> Result<Tensor> {
        of_samples(b, input, dim, LogSoftmax::call)
    }
}

/// `log(sum(exp(x)))`, without overflow: the maximum is subtracted first.
fn log_sum(input: &Tensor, dim: &Ints, keepdim: bool) -> Result<Tensor> {
    let axes = dims_or_all(Some(dim), input.ndim())?;
    let x = V::from(input);
    if input.numel() == 0 {
        return log(exp(x).sum(dim, keepdim)).tensor();
    }
    // For complex numbers, the maximum is that of the real parts, which determine the magnitude of the exponential.
    let sizes = V::from(input).re().tensor()?;
    let top = V::from(amax(&sizes, Some(dim.clone()), true));
    // Do not subtract infinity from infinity.
    let top = select(0.0, &top, is_finite(&top));
    let sum = log(exp(x - &top).sum(dim, true)) + top;
    let sum = sum.tensor()?;
    let body = sum.body().clone();
    Ok(Tensor::new(if keepdim { body } else { drop_dims(body, &axes) }))
}

#[primitive(batch = over(dim, keepdim))]
impl Logsumexp {
    fn forward(input: &Tensor, dim: Ints, keepdim: bool) -> Result<Body> {
        no_grad(|| log_sum(input, &dim, keepdim))
    }
    fn d_input(g: V, input: V, result: V, at: Meta, dim: Ints, keepdim: bool) -> V {
        let result = result.unreduce(&at, &Some(dim.clone()), keepdim);
        g.unreduce(&at, &Some(dim), keepdim) * exp(&input - &result).conj()
    }
}

fn as_dtype(input: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    dtype.map_or(Ok(input.clone()), |dtype| to_dtype(input, dtype))
}

/// Apply softmax along a dimension: `exp(input) / sum(exp(input))`, so that the elements sum to 1.
///
/// Args:
///     dim: dimension along which the elements sum to 1.
///     dtype: data type that `input` is converted to first, which helps against overflow.
///
/// Examples:
///     >>> torch.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
///     tensor([0.0900, 0.2447, 0.6652])
#[operator(function, method, out(declared, called = "aten::softmax"), sample = "over_dim(name)")]
pub fn softmax(input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    Softmax::call(&as_dtype(input, dtype)?, dim)
}

/// Apply the logarithm of softmax along a dimension; more accurate than `log(softmax(input))`.
///
/// Args:
///     dim: dimension along which the exponentials of the results sum to 1.
///     dtype: data type that `input` is converted to first, which helps against overflow.
///
/// Examples:
///     >>> torch.log_softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
///     tensor([-2.4076, -1.4076, -0.4076])
#[operator(function, method, out(declared, called = "aten::log_softmax"), sample = "over_dim(name)")]
pub fn log_softmax(input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    LogSoftmax::call(&as_dtype(input, dtype)?, dim)
}

/// Compute the logarithm of the sum of exponentials over dimensions, without overflow.
///
/// Args:
///     dim: dimension or dimensions to reduce.
///
/// Examples:
///     >>> torch.logsumexp(torch.tensor([1000.0, 1000.0]), dim=0)
///     tensor(1000.6932)
#[operator(
    function,
    method,
    out(floating = "logsumexp(): Expected floating point type for result tensor, but got: {target}"),
    sample = "over_dim(name)"
)]
pub fn logsumexp(input: &Tensor, dim: Ints, #[default(false)] keepdim: bool) -> Result<Tensor> {
    let input =
        if input.dtype().is_differentiable() { input.clone() } else { to_dtype(input, default_dtype())? };
    Logsumexp::call(&input, dim, keepdim)
}

/// The dimension of a softmax. If it is missing, guesses one with a warning, as PyTorch does.
fn guess_dim(name: &str, input: &Tensor, dim: Option<i64>) -> Result<i64> {
    let Some(dim) = dim else {
        warn(&format!(
            "Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
        ))?;
        return Ok(i64::from(!matches!(input.ndim(), 0 | 1 | 3)));
    };
    Ok(dim)
}

/// Apply softmax along a dimension: `exp(input) / sum(exp(input))`, so that the elements sum to 1.
///
/// Args:
///     dim: dimension along which the elements sum to 1; if not given, one is chosen with a warning.
///
/// Examples:
///     >>> F.softmax(torch.tensor([[1.0, 2.0, 3.0]]), dim=-1)
///     tensor([[0.0900, 0.2447, 0.6652]])
#[operator(nn, name = "softmax", sample = "over_dim(name)")]
pub fn nn_softmax(
    input: &Tensor,
    dim: Option<i64>,
    #[default(3)] _stacklevel: i64,
    dtype: Option<DType>,
) -> Result<Tensor> {
    softmax(input, guess_dim("softmax", input, dim)?, dtype)
}

/// Apply the logarithm of softmax along a dimension; more accurate than `log(softmax(input))`.
///
/// Args:
///     dim: dimension to work along; if not given, one is chosen with a warning.
///
/// Examples:
///     >>> F.log_softmax(torch.tensor([[1.0, 2.0, 3.0]]), dim=-1)
///     tensor([[-2.4076, -1.4076, -0.4076]])
#[operator(nn, name = "log_softmax", sample = "over_dim(name)")]
pub fn nn_log_softmax(
    input: &Tensor,
    dim: Option<i64>,
    #[default(3)] _stacklevel: i64,
    dtype: Option<DType>,
) -> Result<Tensor> {
    log_softmax(input, guess_dim("log_softmax", input, dim)?, dtype)
}

/// Apply softmax to `-input` along a dimension, so that the smallest element gets the largest share.
///
/// Args:
///     dim: dimension along which the elements sum to 1; if not given, one is chosen with a warning.
///     dtype: data type that `input` is converted to first.
///
/// Examples:
///     >>> F.softmin(torch.tensor([1.0, 2.0, 3.0]), dim=0)
///     tensor([0.6652, 0.2447, 0.0900])
#[operator(nn, sample = "over_dim(F.softmin)")]
pub fn softmin(
    input: &Tensor,
    dim: Option<i64>,
    #[default(3)] _stacklevel: i64,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let dim = guess_dim("softmin", input, dim)?;
    softmax(&arithmetic::neg(input)?, dim, dtype)
}
