//! Layers as functions: activations with a choice, linear maps, normalization, dropout.

use super::create::to_dtype;
use super::formal::rsqrt;
use super::macros::{compose, ops};
use super::pointwise::{Operand, Pointwise, apply, apply_inplace};
use super::row::{Arg, Ints};
use super::value::V;
use super::view::{ints, reshape};
use super::{arithmetic as a, linalg, product, random, unary as u, view};
use crate::base::{DType, Dims, Error, Fault, Result, Scalar, numel};
use crate::tensor::{Body, Derivative, Edge, Grads, Recorder, Saved, Step, Tensor, mode, packing, records};
use smallvec::SmallVec;

static LAYER_NORM: Derivative =
    Derivative { facts: None, name: "NativeLayerNormBackward0", apply: layer_norm_grad };

/// What a normalization keeps beside its values: over how many dimensions it goes, and what was given.
pub struct Normalized {
    pub dims: usize,
    eps: f64,
    weight: bool,
    bias: bool,
}

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

fn layer_norm_grad(step: &Step) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None; 3];
    let Some(g) = step.grad(0) else { return Ok(grads) };
    let &Normalized { dims, eps, weight, bias } = step.params::<Normalized>()?;
    let (shape, dtype) = (g.shape(), g.dtype());
    let rows = rows_of(&shape, dims);
    let tail = &shape[shape.len() - dims..];
    let g = V::from(g).reshape(&rows);
    if bias {
        // Not read, but saved: who wrote over it is told.
        step.tensor(2)?;
    }
    let x = V::from(step.tensor(0)?);
    let Standard { y, scale, .. } = if mode::grad_enabled() || x.is_special() {
        standardized(&x, &rows, eps)
    } else {
        let line = |output| step.tensor(Saved::OUTPUT + output).map(|t| V::from(t).reshape(&[rows[0], 1]));
        let (mean, scale) = (line(1)?, line(2)?);
        Standard { y: (x.reshape(&rows) - &mean) * &scale, mean, scale }
    };
    if step.wants(0) {
        let weighted = if weight { &g * V::from(step.tensor(1)?).reshape(&[rows[1]]) } else { g.clone() };
        let mean = |v: V| v.sum(&[1], true) / rows[1] as f64;
        let inner = &weighted - mean(weighted.clone()) - &y * mean(&weighted * &y);
        grads[0] = Some((inner * scale).reshape(&shape).cast(dtype).tensor()?);
    }
    if step.wants(1) {
        grads[1] = Some((&g * y).sum(&[0], false).reshape(tail).tensor()?);
    }
    if step.wants(2) {
        grads[2] = Some(g.sum(&[0], false).reshape(tail).tensor()?);
    }
    Ok(grads)
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

/// Normalizes over the last `normalized` dimensions, then scales and shifts.
pub fn native_layer_norm(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    normalized: usize,
    eps: f64,
) -> Result<Tensor> {
    let inputs = [Some(x), weight, bias];
    if inputs.into_iter().flatten().any(Tensor::is_batched) {
        let [y, ..] = layer_norm_formula(x, weight, bias, normalized, eps)?;
        return Ok(y);
    }
    let recorder = records(inputs.into_iter().flatten())?.then(|| {
        let mut recorder = Recorder::new(&LAYER_NORM);
        for input in inputs {
            recorder.input(input);
        }
        let (weight, bias) = (weight.is_some(), bias.is_some());
        recorder.params(Box::new(Normalized { dims: normalized, eps, weight, bias }));
        for (at, input) in [2, 0, 1].map(|at| (at, inputs[at])) {
            if let Some(input) = input {
                recorder.save_input(input, &input.body(), at);
            }
        }
        recorder
    });
    let made = mode::with_grad(false, || layer_norm_formula(x, weight, bias, normalized, eps))?;
    let [out, mean, scale] = made.map(|t| t.body().clone());
    let edge = recorder.map(|mut r| {
        r.save_output(&mean, 1).save_output(&scale, 2);
        Edge { node: r.publish(&[&out]), output: 0 }
    });
    if let Some(edge) = &edge {
        packing::pack(&edge.node, |i| inputs.get(i).copied().flatten(), &[&out])?;
    }
    let made = Tensor::made_by(out, edge);
    let given: Vec<&Tensor> = inputs.into_iter().flatten().collect();
    if given.iter().any(|t| t.is_dual()) {
        super::tangent::attach_one(&made, &given, super::tangent::Rule::Transposed, &|xs| {
            let bias = bias.map(|_| &xs[given.len() - 1]);
            native_layer_norm(&xs[0], weight.map(|_| &xs[1]), bias, normalized, eps)
        })?;
    }
    Ok(made)
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
    /// Elements zeroed with probability `p`, the others scaled to keep the mean; nothing outside `training`.
    [nn] fn dropout(input: Tensor, p: f64 = 0.5, training: bool = true, inplace: bool = false) -> Tensor {
        check_probability(p)?;
        dropped(&input, p, training, inplace)
    }
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
    /// Normalizes over the last dimensions, then multiplies by `weight` and adds `bias`.
    [no_method] fn layer_norm(input: Tensor, normalized_shape: Ints, weight: Option<Tensor> = None, bias: Option<Tensor> = None, eps: f64 = 1e-5) -> Tensor {
        let n = normalized_shape.len();
        if n == 0 {
            return Err(Error::runtime(
                "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
                 normalized_shape = []",
            ));
        }
        for (name, given) in [("weight", &weight), ("bias", &bias)] {
            if let Some(given) = given {
                check_affine(name, &given.shape(), &normalized_shape)?;
            }
        }
        let shape = input.shape();
        if shape.len() < n || ints(&shape[shape.len() - n..]) != normalized_shape {
            let wanted: Vec<String> = normalized_shape.iter().map(i64::to_string).collect();
            return Err(Error::runtime(format!(
                "Given normalized_shape={:?}, expected input with shape [*, {}], but got input of size{:?}",
                normalized_shape.as_slice(), wanted.join(", "), shape.as_slice()
            )));
        }
        if !input.dtype().is_float() {
            return Err(Fault::NoKernel { op: "LayerNormKernelImpl", dtype: input.dtype() }.into());
        }
        native_layer_norm(&input, weight.as_ref(), bias.as_ref(), n, eps)
    }
}

mod plain {
    use super::*;
    compose! { "dropout";
        /// Elements zeroed with probability `p`, the others scaled to keep the mean; nothing unless `train`.
        [no_method] fn dropout(input: Tensor, p: f64, train: bool) -> Tensor {
            check_probability(p)?;
            dropped(&input, p, train, false)
        }
    }
}
pub use plain::COMPOSED as PLAIN;
