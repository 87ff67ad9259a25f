//! Normalization over the last dimensions.

use crate::base::numel;
use crate::operator::prelude::*;
use crate::ops::create::to_dtype;
use crate::ops::formal::rsqrt;
use crate::ops::view::{ints, reshape};
use crate::tensor::mode;

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

fn check_affine(name: &str, given: &[usize], expected: &[i64]) -> Result<()> {
    if given.iter().map(|&n| n as i64).eq(expected.iter().copied()) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {given:?} and normalized_shape = \
         {expected:?}"
    )))
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
