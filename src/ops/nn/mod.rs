//! Functions of `torch.nn.functional`: activations, linear maps, dropout, normalization, losses, convolutions, pools.

mod activation;
pub mod activation_formulas;
mod attention;
mod bag;
mod batch_norm;
pub mod conv;
mod conv_whole;
mod ctc;
mod distance;
mod embedding;
mod grid;
mod group_norm;
pub mod loss;
pub mod loss_classes;
pub mod loss_formula;
mod margin;
mod norm;
pub mod pad;
pub mod pool;
mod recurrent_layer;
mod resize;
mod rnn;
mod shuffle;
mod standardize;
pub mod unfold;

use crate::base::numel;
use crate::operator::pointwise::{Pointwise, apply, apply_inplace};
use crate::operator::primitives::views::{self, reshape};
use crate::ops::elementwise::{arithmetic as a, unary as u};
use crate::ops::linalg::{add_product, matmul};
use crate::ops::prelude::*;
use crate::ops::random;
use crate::ops::shape::view;
use smallvec::SmallVec;

/// `x @ weightᵀ + bias` for a matrix `x`.
fn affine(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let weight = view::t(weight)?;
    match bias {
        Some(bias) => add_product::addmm(bias, x, &weight, Scalar::Int(1), Scalar::Int(1)),
        None => matmul::mm(x, &weight),
    }
}

/// The factor of dropout: 0 with probability `p`, else the scale that preserves the mean.
fn noise(x: &Tensor, p: f64) -> Result<Tensor> {
    // Drawn in memory order, as PyTorch does. Complex numbers are kept or dropped as a whole.
    let dtype = x.dtype().to_real();
    let new = |shape: &[usize]| match x.is_batched() || *shape != *x.shape() {
        true => Body::new(shape, dtype, x.device()),
        false => crate::ops::creation::factories::empty_body_like(x, Some(dtype), None, None),
    };
    let coins = crate::operator::batch::randomness::draw(&x.shape(), new, |body| {
        random::fill::fill_coin(body, 1.0 - p, None)
    })?;
    if p < 1.0 { a::div(&coins, 1.0 - p) } else { Ok(coins) }
}

fn apply_dropout(x: &Tensor, p: f64, training: bool, inplace: bool) -> Result<Tensor> {
    if p == 0.0 || !training || x.numel() == 0 {
        return Ok(x.clone());
    }
    let dtype = x.dtype();
    if !dtype.is_differentiable() {
        let (float, name) = (crate::base::DType::F32.scalar_name(), dtype.scalar_name());
        return Err(Error::runtime(format!(
            "result type {float} can't be cast to the desired output type {name}"
        )));
    }
    let noise = crate::tensor::mode::with_grad(false, || noise(x, p))?;
    if !inplace {
        return a::mul(x, &noise);
    }
    crate::operator::pointwise::apply_inplace(&a::mul::ROW, x, &[x.into(), (&noise).into()])?;
    Ok(x.clone())
}

/// `refuse` makes the error: functions of `nn` raise a `ValueError`, other operators a `RuntimeError`.
fn check_probability(p: f64, refuse: fn(String) -> Error) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(refuse(format!("dropout probability has to be between 0 and 1, but got {p}")))
}

/// Applies a pointwise activation, in place if `inplace` is set.
fn activation(op: &'static Pointwise, input: &Tensor, number: Option<f64>, inplace: bool) -> Result<Tensor> {
    let mut operands: SmallVec<[Operand; 4]> = smallvec::smallvec![input.into()];
    operands.extend(number.map(|n| Operand::Scalar(Scalar::Float(n))));
    if !inplace {
        return apply(op, &operands);
    }
    apply_inplace(op, input, &operands)?;
    Ok(input.clone())
}

/// Apply the rectified linear unit (ReLU): `max(0, input)`.
#[operator(nn, name = "relu", sample = "pointwise(F.relu, 1, WIDE)")]
pub fn nn_relu(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    if !inplace {
        return crate::ops::elementwise::power::relu(input);
    }
    crate::operator::inplace::row::apply(
        &crate::ops::elementwise::power::RELU,
        &[Arg::Tensor(input.clone())],
    )?;
    Ok(input.clone())
}

/// Apply leaky ReLU: negative elements are multiplied by `negative_slope`.
///
/// Args:
///     negative_slope: factor of negative elements.
#[operator(nn, sample = "pointwise(F.leaky_relu, 1, WIDE)")]
pub fn leaky_relu(
    input: &Tensor,
    #[default(0.01)] negative_slope: f64,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    let row = if inplace && negative_slope >= 0.0 { &u::leaky_relu_over::ROW } else { &u::leaky_relu::ROW };
    activation(row, input, Some(negative_slope), inplace)
}

/// Apply the exponential linear unit (ELU): `input` where positive, else `alpha * (exp(input) - 1)`.
///
/// Args:
///     alpha: minus the limit for large negative elements.
///
/// Examples:
///     >>> F.elu(torch.tensor([-1.0, 2.0]))
///     tensor([-0.6321,  2.0000])
#[operator(nn, sample = "pointwise(F.elu, 1, WIDE)")]
pub fn elu(input: &Tensor, #[default(1.0)] alpha: f64, #[default(false)] inplace: bool) -> Result<Tensor> {
    let row = if inplace && alpha >= 0.0 { &u::elu_over::ROW } else { &u::elu::ROW };
    activation(row, input, Some(alpha), inplace)
}

/// Apply the SiLU (swish) activation: `input * sigmoid(input)`.
///
/// Examples:
///     >>> F.silu(torch.tensor([-1.0, 0.0, 1.0]))
///     tensor([-0.2689,  0.0000,  0.7311])
#[operator(nn, sample = "pointwise(F.silu, 1, WIDE)")]
pub fn silu(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    activation(&u::silu::ROW, input, None, inplace)
}

/// Apply the Gaussian error linear unit (GELU): `input` times the normal distribution function of it.
///
/// Args:
///     approximate: `"none"`, or `"tanh"` for an approximation by the hyperbolic tangent.
///
/// Examples:
///     >>> F.gelu(torch.tensor([-1.0, 0.0, 1.0]))
///     tensor([-0.1587,  0.0000,  0.8413])
#[operator(
    nn,
    out(found),
    sample = "pointwise(lambda x: [F.gelu(x), F.gelu(x, approximate='tanh')], 1, WIDE)"
)]
pub fn gelu(
    input: &Tensor,
    #[keyword]
    #[default("none".into())]
    approximate: &str,
) -> Result<Tensor> {
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "GeluKernelImpl", dtype: input.dtype() }.into());
    }
    match approximate {
        "none" => u::gelu_erf(input),
        "tanh" => u::gelu_tanh(input),
        _ => Err(Error::runtime("approximate argument must be either none or tanh.")),
    }
}

/// The floating point operations of `linear`: two per term.
fn flops(operands: &[Vec<usize>], _: Option<&str>) -> u64 {
    let [input, weight, ..] = operands else { return 0 };
    (2 * numel(input) * weight.split_last().map_or(1, |(_, rows)| numel(rows))) as u64
}

/// Apply an affine map to the last dimension: `input @ weight.T + bias`.
///
/// Args:
///     input: the input, `(*, in_features)`.
///     weight: the matrix, `(out_features, in_features)`.
///     bias: vector to add, `(out_features,)`.
///
/// Examples:
///     >>> F.linear(torch.ones(8, 3), torch.ones(4, 3)).shape
///     torch.Size([8, 4])
#[operator(nn, out(declared), autocast = lower, flops = flops, sample = "fixed([(2, 3), (4, 3), (4,)], F.linear)")]
pub fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let shape = input.shape();
    if input.ndim() == 0 || weight.ndim() == 0 {
        return Err(Error::runtime(format!(
            "both arguments to linear need to be at least 1D, but they are {}D and {}D",
            input.ndim(),
            weight.ndim()
        )));
    }
    let Some((&width, lead)) = shape.split_last().filter(|_| weight.ndim() == 2) else {
        let weight = if weight.ndim() <= 2 { view::t(weight)? } else { weight.clone() };
        let product = matmul::matmul(input, &weight)?;
        return bias.map_or(Ok(product.clone()), |bias| a::add(&product, bias));
    };
    if lead.is_empty() && bias.is_none() {
        return matmul::matmul(input, &view::t(weight)?);
    }
    if lead.len() == 1 {
        return affine(input, weight, bias);
    }
    let flat = affine(&reshape(input, &[numel(lead), width])?, weight, bias)?;
    let mut out = Dims::from_slice(lead);
    out.push(weight.shape()[0]);
    views::unsafe_view(&flat, out)
}

/// Set random elements to zero with probability `p`, and scale the others by `1 / (1 - p)`.
///
/// Args:
///     p: probability that an element becomes zero.
///     training: whether to apply dropout; else the input is returned as it is.
///
/// Examples:
///     >>> F.dropout(torch.ones(3), p=0.5, training=False)
///     tensor([1., 1., 1.])
#[operator(nn, name = "dropout", sample = "random")]
pub fn nn_dropout(
    input: &Tensor,
    #[default(0.5)] p: f64,
    #[default(true)] training: bool,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    check_probability(p, Error::value)?;
    apply_dropout(input, p, training, inplace)
}

/// Set random elements to zero with probability `p`, and scale the others by `1 / (1 - p)`.
///
/// Args:
///     p: probability that an element becomes zero.
///     train: whether to apply dropout; else the input is returned as it is.
///
/// Examples:
///     >>> torch.dropout(torch.ones(3), 0.5, False)
///     tensor([1., 1., 1.])
#[operator(function, sample = "random")]
pub fn dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    check_probability(p, Error::runtime)?;
    apply_dropout(input, p, train, false)
}
