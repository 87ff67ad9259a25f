//! Layers as functions: activations with a choice, linear maps, normalization, dropout.

use super::create::to_dtype;
use super::formal::rsqrt;
use super::macros::{compose, ops};
use super::pointwise::{Operand, Pointwise, apply, apply_inplace};
use super::row::{Arg, Ints};
use super::value::V;
use super::view::{ints, reshape};
use super::{arithmetic as a, linalg, product, random, unary as u, view};
use crate::base::{DType, Dims, Error, Fault, Result, Scalar, caution, numel};
use crate::tensor::{Body, Derivative, Edge, Grads, Recorder, Step, Tensor, packing, records};
use smallvec::SmallVec;

static LAYER_NORM: Derivative = Derivative { name: "NativeLayerNormBackward0", apply: layer_norm_grad };

/// Rows of the normalized dimensions, their mean taken out and their spread made 1; and the factor that made it so.
fn standardized(x: &V, rows: &[usize], eps: f64) -> (V, V) {
    let x = x.clone().reshape(rows);
    let n = rows[1] as f64;
    let centred = &x - x.clone().sum(&[1], true) / n;
    let scale = rsqrt((&centred * &centred).sum(&[1], true) / n + eps);
    (centred * &scale, scale)
}

/// The input as a matrix with one row per normalization.
fn rows_of(shape: &[usize], normalized: usize) -> [usize; 2] {
    let split = shape.len() - normalized;
    [numel(&shape[..split]), numel(&shape[split..])]
}

fn layer_norm_grad(step: &Step) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None; 3];
    let Some(g) = step.grad(0) else { return Ok(grads) };
    let &(normalized, eps, has_weight) = step.params::<(usize, f64, bool)>()?;
    let shape = g.shape();
    let rows = rows_of(&shape, normalized);
    let tail = &shape[shape.len() - normalized..];
    let g = V::from(g).reshape(&rows);
    let (y, scale) = match step.wants(0) || step.wants(1) {
        true => standardized(&step.tensor(0)?.into(), &rows, eps),
        false => (V::from(0.0), V::from(0.0)),
    };
    if step.wants(0) {
        let weighted = if has_weight { &g * V::from(step.tensor(1)?).reshape(&[rows[1]]) } else { g.clone() };
        let mean = |v: V| v.sum(&[1], true) / rows[1] as f64;
        let inner = &weighted - mean(weighted.clone()) - &y * mean(&weighted * &y);
        grads[0] = Some((inner * scale).reshape(&shape).tensor()?);
    }
    if step.wants(1) {
        grads[1] = Some((&g * y).sum(&[0], false).reshape(tail).tensor()?);
    }
    if step.wants(2) {
        grads[2] = Some(g.sum(&[0], false).reshape(tail).tensor()?);
    }
    Ok(grads)
}

/// Halves are normalized in float32.
fn layer_norm_formula(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    normalized: usize,
    eps: f64,
) -> Result<Tensor> {
    let shape = x.shape();
    let rows = rows_of(&shape, normalized);
    let wide = if x.dtype().size() == 2 { DType::F32 } else { x.dtype() };
    let (mut y, _) = standardized(&to_dtype(x, wide)?.into(), &rows, eps);
    let line = |t: &Tensor| reshape(t, &[rows[1]]);
    if let Some(weight) = weight {
        y = y * V::from(line(weight)?);
    }
    if let Some(bias) = bias {
        y = y + V::from(line(bias)?);
    }
    y.reshape(&shape).cast(x.dtype()).tensor()
}

fn layer_norm_body(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    normalized: usize,
    eps: f64,
) -> Result<Body> {
    super::reduce::quietly(|| layer_norm_formula(x, weight, bias, normalized, eps))
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
        return layer_norm_formula(x, weight, bias, normalized, eps);
    }
    let recorder = records(inputs.into_iter().flatten())?.then(|| {
        let mut recorder = Recorder::new(&LAYER_NORM);
        for input in inputs {
            recorder.input(input);
        }
        recorder.params(Box::new((normalized, eps, weight.is_some())));
        if recorder.wanted() & 0b11 != 0 {
            recorder.save_input(x, &x.body(), 0);
        }
        if let (Some(weight), 1) = (weight, recorder.wanted() & 1) {
            recorder.save_input(weight, &weight.body(), 1);
        }
        recorder
    });
    let out = layer_norm_body(x, weight, bias, normalized, eps)?;
    let edge = recorder.map(|r| Edge { node: r.publish(&[&out]), output: 0 });
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

/// The dimension that a softmax is along: without one it is guessed, as it once was.
fn chosen(name: &str, input: &Tensor, dim: Option<i64>) -> Result<i64> {
    let Some(dim) = dim else {
        caution(&format!(
            "Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
        ))?;
        return Ok(i64::from(!matches!(input.ndim(), 0 | 1 | 3)));
    };
    Ok(dim)
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
        activation(&u::leaky_relu::ROW, &input, Some(negative_slope), inplace)
    }
    /// `input` where positive, else `alpha * (exp(input) - 1)`.
    [nn] fn elu_(input: Tensor, alpha: f64 = 1.0, inplace: bool = false) -> Tensor {
        activation(&u::elu::ROW, &input, Some(alpha), inplace)
    }
    /// `input * sigmoid(input)`.
    [nn] fn silu_(input: Tensor, inplace: bool = false) -> Tensor { activation(&u::silu::ROW, &input, None, inplace) }
    /// `exp(input) / sum(exp(input))` along `dim`.
    [nn] fn softmax_(input: Tensor, dim: Option<i64> = None, _stacklevel: i64 = 3, dtype: Option<DType> = None) -> Tensor {
        let dim = chosen("softmax", &input, dim)?;
        super::softmax::softmax(input, dim, dtype)
    }
    /// The logarithm of softmax along `dim`.
    [nn] fn log_softmax_(input: Tensor, dim: Option<i64> = None, _stacklevel: i64 = 3, dtype: Option<DType> = None) -> Tensor {
        let dim = chosen("log_softmax", &input, dim)?;
        super::softmax::log_softmax(input, dim, dtype)
    }
    /// Softmax of `-input` along `dim`.
    [nn] fn softmin_(input: Tensor, dim: Option<i64> = None, _stacklevel: i64 = 3, dtype: Option<DType> = None) -> Tensor {
        let dim = chosen("softmin", &input, dim)?;
        super::softmax::softmax(a::neg(&input)?, dim, dtype)
    }
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
            let product = linalg::matmul(input, if weight.ndim() == 2 { view::t(&weight)? } else { weight })?;
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
