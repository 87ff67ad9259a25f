//! Layers as functions: activations with a choice, linear maps, normalization, dropout.

use super::create::to_dtype;
use super::formal::rsqrt;
use super::macros::{compose, ops};
use super::pointwise::{Operand, Pointwise, apply, apply_inplace};
use super::view::{ints, reshape};
use super::{arithmetic as a, linalg, product, random, unary as u, view};
use crate::base::numel;
use crate::operator::prelude::*;
use crate::tensor::mode;
use smallvec::SmallVec;

/// Rows of the normalized dimensions, their mean taken out and their spread made 1; the mean, and the factor that made it so.
struct Standard {
    y: V,
    mean: V,
    scale: V,
}

fn standardized(x: &V, rows: &[usize], eps: f64) -> Standard {
    let x = x.clone().reshape(rows);
    let n = rows[1] as f64;
    let mean = x.clone().sum(&[1], true) / n;
    let centred = x - &mean;
    let scale = rsqrt((&centred * &centred).sum(&[1], true) / n + eps);
    Standard { y: centred * &scale, mean, scale }
}

/// The input as a matrix with one row per normalization.
fn rows_of(shape: &[usize], normalized: usize) -> [usize; 2] {
    let split = shape.len() - normalized;
    [numel(&shape[..split]), numel(&shape[split..])]
}

/// Halves are normalized in float32. Beside the result, what was taken out.
fn layer_norm_formula(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    normalized: usize,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let shape = x.shape();
    let rows = rows_of(&shape, normalized);
    let wide = if x.dtype().size() == 2 { DType::F32 } else { x.dtype() };
    let Standard { mut y, mean, scale } = standardized(&to_dtype(x, wide)?.into(), &rows, eps);
    let line = |t: &Tensor| reshape(t, &[rows[1]]);
    if let Some(weight) = weight {
        y = y * V::from(line(weight)?);
    }
    if let Some(bias) = bias {
        y = y + V::from(line(bias)?);
    }
    let mut lines = shape.clone();
    lines[shape.len() - normalized..].fill(1);
    let line = |v: V| v.reshape(&lines).tensor();
    Ok([y.reshape(&shape).cast(x.dtype()).tensor()?, line(mean)?, line(scale)?])
}

/// The gradients of a normalization, from its rows.
fn layer_norm_grads(
    g: &Tensor,
    rows: &[usize; 2],
    dims: usize,
    standard: Standard,
    weight: Option<V>,
    wants: [bool; 3],
) -> [Option<V>; 3] {
    let (shape, dtype) = (g.shape(), g.dtype());
    let tail = Dims::from_slice(&shape[shape.len() - dims..]);
    let g = V::from(g).reshape(rows);
    let Standard { y, scale, .. } = standard;
    let of_input = || {
        let weighted = weight.map_or_else(|| g.clone(), |weight| &g * weight.reshape(&[rows[1]]));
        let mean = |v: V| v.sum(&[1], true) / rows[1] as f64;
        let inner = &weighted - mean(weighted.clone()) - &y * mean(&weighted * &y);
        (inner * scale).reshape(&shape).cast(dtype)
    };
    [
        wants[0].then(of_input),
        wants[1].then(|| (&g * &y).sum(&[0], false).reshape(&tail)),
        wants[2].then(|| g.clone().sum(&[0], false).reshape(&tail)),
    ]
}

#[primitive(results(result0, result1, result2), scratch(result1, result2))]
impl NativeLayerNorm {
    fn forward(
        #[shown("input")] input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        #[hidden] eps: f64,
    ) -> Result<[Body; 3]> {
        let made =
            mode::with_grad(false, || layer_norm_formula(input, weight, bias, normalized_shape.len(), eps))?;
        Ok(made.map(|t| t.body().clone()))
    }
    fn derivative(
        g: &Tensor,
        input: V,
        normalized_shape: &[i64],
        weight: Option<V>,
        bias: Unread,
        eps: f64,
        wants: [bool; 3],
    ) -> [Option<V>; 3] {
        let Unread = bias;
        let rows = rows_of(&g.shape(), normalized_shape.len());
        layer_norm_grads(g, &rows, normalized_shape.len(), standardized(&input, &rows, eps), weight, wants)
    }
    /// With the mean and the factor that the call found.
    fn fast_derivative(
        g: &Tensor,
        input: V,
        result1: V,
        result2: V,
        normalized_shape: &[i64],
        weight: Option<V>,
        wants: [bool; 3],
    ) -> [Option<V>; 3] {
        let rows = rows_of(&g.shape(), normalized_shape.len());
        let line = |v: V| v.reshape(&[rows[0], 1]);
        let (mean, scale) = (line(result1), line(result2));
        let standard = Standard { y: (input.reshape(&rows) - &mean) * &scale, mean, scale };
        layer_norm_grads(g, &rows, normalized_shape.len(), standard, weight, wants)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        layer_norm_formula(input, weight, bias, normalized_shape.len(), eps).map(|[y, ..]| y)
    }
}

/// `x @ weightᵀ + bias` for a matrix `x`.
fn affine(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let weight = view::t(weight)?;
    match bias {
        Some(bias) => product::addmm(bias, x, &weight, Scalar::Int(1), Scalar::Int(1)),
        None => linalg::mm(x, &weight),
    }
}

fn check_affine(name: &str, given: &[usize], expected: &[i64]) -> Result<()> {
    if given.iter().map(|&n| n as i64).eq(expected.iter().copied()) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {given:?} and normalized_shape = \
         {expected:?}"
    )))
}

ops! { "nn";
    /// The same elements under another shape, not as a view: nobody sees the product that it comes from.
    [hidden, linear] fn unsafe_view(input; shape: Dims) -> y {
        let body = input.body();
        let layout = body.layout.view(&shape).ok_or_else(|| Error::runtime("a product that is not dense"))?;
        Ok(body.with_layout(layout))
    }
    input: |g, at| g.reshape(&at.shape);
}

/// What dropout multiplies with: 0 with probability `p`, else what keeps the mean.
fn noise(x: &Tensor, p: f64) -> Result<Tensor> {
    let new = |shape: &[usize]| Body::new(shape, x.dtype(), x.device());
    let coins = super::batch::draw(&x.shape(), new, |body| random::coin(body, 1.0 - p, &None))?;
    if p < 1.0 { a::div(&coins, 1.0 - p) } else { Ok(coins) }
}

fn dropped(x: &Tensor, p: f64, training: bool, inplace: bool) -> Result<Tensor> {
    if p == 0.0 || !training || x.numel() == 0 {
        return Ok(x.clone());
    }
    let noise = crate::tensor::mode::with_grad(false, || noise(x, p))?;
    if !inplace {
        return a::mul(x, &noise);
    }
    super::pointwise::apply_inplace(&a::mul::ROW, x, &[x.into(), (&noise).into()])?;
    Ok(x.clone())
}

fn check_probability(p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(Error::value(format!("dropout probability has to be between 0 and 1, but got {p}")))
}

/// An activation of one tensor, over it when `inplace`.
fn activation(op: &'static Pointwise, input: &Tensor, number: Option<f64>, inplace: bool) -> Result<Tensor> {
    let mut operands: SmallVec<[Operand; 4]> = smallvec::smallvec![input.into()];
    operands.extend(number.map(|n| Operand::Scalar(Scalar::Float(n))));
    if !inplace {
        return apply(op, &operands);
    }
    apply_inplace(op, input, &operands)?;
    Ok(input.clone())
}

compose! { "nn";
    /// `input` where positive, else 0.
    [nn] fn relu_(input: Tensor, inplace: bool = false) -> Tensor {
        if !inplace {
            return super::power::relu_(input);
        }
        super::inplace::apply(&super::power::relu_::ROW, &[Arg::Tensor(input.clone())])?;
        Ok(input)
    }
    /// `input` where positive, else `negative_slope * input`.
    [nn] fn leaky_relu_(input: Tensor, negative_slope: f64 = 0.01, inplace: bool = false) -> Tensor {
        let row = if inplace && negative_slope >= 0.0 { &u::leaky_relu_over::ROW } else { &u::leaky_relu::ROW };
        activation(row, &input, Some(negative_slope), inplace)
    }
    /// `input` where positive, else `alpha * (exp(input) - 1)`.
    [nn] fn elu_(input: Tensor, alpha: f64 = 1.0, inplace: bool = false) -> Tensor {
        let row = if inplace && alpha >= 0.0 { &u::elu_over::ROW } else { &u::elu::ROW };
        activation(row, &input, Some(alpha), inplace)
    }
    /// `input * sigmoid(input)`.
    [nn] fn silu_(input: Tensor, inplace: bool = false) -> Tensor { activation(&u::silu::ROW, &input, None, inplace) }
    /// `input` times the normal distribution up to it; `approximate='tanh'` takes tanh for the distribution.
    [nn, out] fn gelu(input: Tensor, approximate: String = "none".to_string()) -> Tensor {
        if !input.dtype().is_float() {
            return Err(Fault::NoKernel { op: "GeluKernelImpl", dtype: input.dtype() }.into());
        }
        match approximate.as_str() {
            "none" => u::gelu_erf(&input),
            "tanh" => u::gelu_tanh(&input),
            _ => Err(Error::runtime("approximate argument must be either none or tanh.")),
        }
    }
    /// `input @ weight.T + bias`.
    [nn, out] fn linear(input: Tensor, weight: Tensor, bias: Option<Tensor>  = None) -> Tensor {
        let shape = input.shape();
        let Some((&width, lead)) = shape.split_last().filter(|_| weight.ndim() == 2) else {
            let product = linalg::matmul(input, if weight.ndim() <= 2 { view::t(&weight)? } else { weight })?;
            return bias.map_or(Ok(product.clone()), |bias| a::add(&product, &bias));
        };
        if lead.is_empty() && bias.is_none() {
            return linalg::matmul(input, view::t(&weight)?);
        }
        if lead.len() == 1 {
            return affine(&input, &weight, bias.as_ref());
        }
        let flat = affine(&reshape(&input, &[numel(lead), width])?, &weight, bias.as_ref())?;
        let mut out = Dims::from_slice(lead);
        out.push(weight.shape()[0]);
        unsafe_view(&flat, out)
    }
}

/// Normalizes over the last dimensions, then multiplies by `weight` and adds `bias`.
#[operator(function, sample = "layered()")]
pub fn layer_norm(
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(1e-5)] eps: f64,
) -> Result<Tensor> {
    let n = normalized_shape.len();
    if n == 0 {
        return Err(Error::runtime(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
             normalized_shape = []",
        ));
    }
    for (name, given) in [("weight", weight), ("bias", bias)] {
        if let Some(given) = given {
            check_affine(name, &given.shape(), normalized_shape)?;
        }
    }
    let shape = input.shape();
    if shape.len() < n || ints(&shape[shape.len() - n..])[..] != *normalized_shape {
        let wanted: Vec<String> = normalized_shape.iter().map(i64::to_string).collect();
        return Err(Error::runtime(format!(
            "Given normalized_shape={:?}, expected input with shape [*, {}], but got input of size{:?}",
            normalized_shape,
            wanted.join(", "),
            shape.as_slice()
        )));
    }
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "LayerNormKernelImpl", dtype: input.dtype() }.into());
    }
    NativeLayerNorm::call(input, normalized_shape, weight, bias, eps)
}

/// Elements zeroed with probability `p`, the others scaled to keep the mean; nothing outside `training`.
#[operator(nn, name = "dropout", sample = "random")]
pub fn nn_dropout(
    input: &Tensor,
    #[default(0.5)] p: f64,
    #[default(true)] training: bool,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    check_probability(p)?;
    dropped(input, p, training, inplace)
}

/// Elements zeroed with probability `p`, the others scaled to keep the mean; nothing unless `train`.
#[operator(function, sample = "random")]
pub fn dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    check_probability(p)?;
    dropped(input, p, train, false)
}
