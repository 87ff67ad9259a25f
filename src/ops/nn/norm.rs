//! Normalization over the last dimensions: `layer_norm` and `rms_norm`.

use crate::base::numel;
use crate::cpu::norm as kernel;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::ints;
use crate::ops::nn::standardize::{NormShape, Standardized, Statistics};
use crate::ops::prelude::*;
use crate::tensor::mode;

/// The dtype that kernels compute in: float32 for half precision.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype.size() == 2 { DType::F32 } else { dtype }
}

/// A GPU workgroup normalizes one set of elements, unless the set is larger than this: some drivers stop the loops of a shader
/// after 65,535 steps.
const LONG: usize = 1 << 22;

/// True if a kernel normalizes sets of `each` elements; otherwise a formula does.
pub(super) fn by_kernel(x: &Body, each: usize) -> bool {
    x.numel() > 0 && (x.device().is_cpu() || each <= LONG)
}

/// Makes the body contiguous and converts it to `dtype`; a copy only if needed.
pub(super) fn dense(body: &Body, dtype: DType) -> Result<Body> {
    if body.dtype == dtype && body.layout.is_contiguous() && body.conj_neg.is_none() {
        return Ok(body.clone());
    }
    converted(body, dtype)
}

/// Converts the results of formulas to bodies.
pub(super) fn bodies<const N: usize>(made: [Option<V>; N]) -> Result<[Option<Body>; N]> {
    let made: Result<Vec<Option<Body>>> =
        made.into_iter().map(|v| v.map(|v| v.tensor().map(|t| t.body().clone())).transpose()).collect();
    made?.try_into().map_err(|_| Error::runtime("a derivative returned the wrong number of gradients"))
}

/// Rejects weights and biases whose dtype does not fit: it must be that of the input, or float32 if the input has half precision.
pub(super) fn check_mixed(input: &Tensor, params: &[Option<&Tensor>]) -> Result<()> {
    let given = || params.iter().flatten().map(|t| t.dtype());
    if given().next().is_none_or(|first| first == input.dtype()) {
        return match given().find(|&dtype| dtype != input.dtype()) {
            Some(other) => Err(Error::runtime(format!(
                "expected scalar type {} but found {}",
                input.dtype().scalar_name(),
                other.scalar_name()
            ))),
            None => Ok(()),
        };
    }
    if given().any(|dtype| dtype != DType::F32) {
        return Err(Error::runtime("mixed dtype (CPU): expect parameter to have scalar type of Float"));
    }
    if input.dtype().size() != 2 {
        return Err(Error::runtime("mixed dtype (CPU): all inputs must share same datatype."));
    }
    Ok(())
}

/// A weight or bias as contiguous numbers in the dtype that kernels compute in.
pub(super) fn wide_line(t: Option<&Body>, dtype: DType) -> Result<Option<Body>> {
    t.map(|t| dense(t, wide(dtype))).transpose()
}

/// A view of the host memory of an optional body.
pub(super) fn host(body: &Option<Body>) -> Result<Option<crate::base::Strided<'_>>> {
    body.as_ref().map(|body| body.host()).transpose()
}

#[cfg(feature = "gpu")]
fn maybe_gpu(body: Option<&Body>) -> Result<Option<crate::gpu::View<'_>>> {
    body.map(Body::gpu).transpose()
}

/// The buffers of weight, bias and statistics for the GPU's kernels.
#[cfg(feature = "gpu")]
pub(super) fn gpu_with<'a>(
    weight: &'a Option<Body>,
    bias: &'a Option<Body>,
    mean: Option<&'a Body>,
    scale: &'a Body,
) -> Result<crate::gpu::norm::NormOperands<'a>> {
    let (weight, bias) = (maybe_gpu(weight.as_ref())?, maybe_gpu(bias.as_ref())?);
    Ok(crate::gpu::norm::NormOperands { weight, bias, mean: maybe_gpu(mean)?, scale: scale.gpu()? })
}

/// The gradients of input, weight and bias for the GPU's kernels.
#[cfg(feature = "gpu")]
pub(super) fn gpu_grads(made: &[Option<Body>; 3]) -> Result<crate::gpu::norm::NormGradients<'_>> {
    let [input, weight, bias] = made.each_ref().map(|body| maybe_gpu(body.as_ref()));
    Ok(crate::gpu::norm::NormGradients { input: input?, weight: weight?, bias: bias? })
}

/// The shape of the input as a matrix with one row per normalization.
fn rows_of(shape: &[usize], normalized: usize) -> [usize; 2] {
    let split = shape.len() - normalized;
    [numel(&shape[..split]), numel(&shape[split..])]
}

/// The shape of one number for each normalization.
fn lines_of(shape: &[usize], normalized: usize) -> Dims {
    let mut lines = Dims::from_slice(shape);
    lines[shape.len() - normalized..].fill(1);
    lines
}

/// Returns the result, the mean and the factor. Half precision is computed in float32.
fn layer_norm_formula(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    normalized: usize,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let shape = x.shape();
    let laid = NormShape::rows(&shape, normalized);
    let Standardized { y, mean, scale, .. } = laid.standardize(to_dtype(x, wide(x.dtype()))?.into(), eps);
    let lines = lines_of(&shape, normalized);
    let line = |v: V| v.reshape(&lines).tensor();
    let y = laid.scale_and_shift(y, weight.map(V::from), bias.map(V::from), x)?;
    Ok([y, line(mean)?, line(scale)?])
}

/// Normalizes rows by the kernel. Returns the result, the means (unless they are not subtracted), and the factors.
fn normalize_rows(
    x: &Body,
    weight: Option<&Body>,
    bias: Option<&Body>,
    normalized: usize,
    eps: f64,
    centred: bool,
) -> Result<[Body; 3]> {
    let (dtype, shape) = (x.dtype, Dims::from_slice(x.shape()));
    let [_, n] = rows_of(&shape, normalized);
    let (weight, bias) = (wide_line(weight, dtype)?, wide_line(bias, dtype)?);
    let lines = lines_of(&shape, normalized);
    let new = |shape: &[usize]| Body::new(shape, wide(dtype), x.device());
    let (x, out, mean, rstd) = (dense(x, wide(dtype))?, new(&shape)?, new(&lines)?, new(&lines)?);
    fork!(over [out], reads [x], with [mean, rstd, weight, bias, n, eps, centred],
    cpu: {
        let (mean, rstd) = (centred.then(|| mean.host()).transpose()?, rstd.host()?);
        let with = kernel::Layer { mean, rstd, weight: host(&weight)?, bias: host(&bias)? };
        kernel::layer(out.host()?, x.host()?, with, n, eps)
    },
    gpu: {
        use crate::gpu::norm as kernel;
        let planes = kernel::NormSizes { n: mean.numel(), channels: n, run: 1, groups: Some(1) };
        let with = gpu_with(&weight, &bias, centred.then_some(&mean), &rstd)?;
        kernel::forward(out.gpu()?, x.gpu()?, with, kernel::Moments::Own { eps, variance: None }, planes)
    })?;
    Ok([in_dtype(out, dtype)?, mean, rstd])
}

/// The gradients of rows, weights and biases by the kernel.
fn rows_backward(
    g: &Body,
    x: &Body,
    mean: Option<&Body>,
    rstd: &Body,
    weight: Option<&Body>,
    normalized: usize,
    wants: [bool; 3],
) -> Result<[Option<Body>; 3]> {
    let (dtype, shape) = (x.dtype, Dims::from_slice(x.shape()));
    let wide = wide(dtype);
    let [_, n] = rows_of(&shape, normalized);
    let tail = &shape[shape.len() - normalized..];
    let of_params = weight.map_or(dtype, |weight| weight.dtype);
    let (g, x, rstd) = (dense(g, wide)?, dense(x, wide)?, dense(rstd, wide)?);
    let (mean, weight) = (wide_line(mean, wide)?, wide_line(weight, wide)?);
    let new = |want: bool, shape: &[usize]| want.then(|| Body::new(shape, wide, x.device())).transpose();
    let made = [new(wants[0], &shape)?, new(wants[1], tail)?, new(wants[2], tail)?];
    fork!(over [g, x], with [mean, rstd, weight, made, n],
    cpu: {
        let with = kernel::Layer { mean: host(&mean)?, rstd: rstd.host()?, weight: host(&weight)?, bias: None };
        let [input, weight, bias] = [host(&made[0])?, host(&made[1])?, host(&made[2])?];
        kernel::layer_backward(kernel::LayerGrads { input, weight, bias }, g.host()?, x.host()?, with, n)
    },
    gpu: {
        use crate::gpu::norm as kernel;
        let planes = kernel::NormSizes { n: rstd.numel(), channels: n, run: 1, groups: Some(1) };
        let with = gpu_with(&weight, &None, mean.as_ref(), &rstd)?;
        kernel::backward(gpu_grads(&made)?, g.gpu()?, x.gpu()?, with, true, planes)
    })?;
    let [input, weight, bias] = made;
    let to = |body: Option<Body>, dtype| body.map(|body| in_dtype(body, dtype)).transpose();
    Ok([to(input, dtype)?, to(weight, of_params)?, to(bias, of_params)?])
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
        let n = normalized_shape.len();
        if !by_kernel(&input.body(), rows_of(&input.shape(), n)[1]) {
            let made = mode::with_grad(false, || layer_norm_formula(input, weight, bias, n, eps))?;
            return Ok(made.map(|t| t.body().clone()));
        }
        let [weight, bias] = [weight, bias].map(|t| t.map(|t| t.body().clone()));
        normalize_rows(&input.body(), weight.as_ref(), bias.as_ref(), n, eps, true)
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
        let laid = NormShape::rows(&g.shape(), normalized_shape.len());
        let Standardized { y, scale, .. } = laid.standardize(input, eps);
        laid.gradients(g, [y, scale], weight, Statistics::MeanAndVariance, wants)
    }
    /// Uses the mean and the factor that the forward saved.
    fn fast_derivative(
        g: Body,
        input: Body,
        result1: Body,
        result2: Body,
        normalized_shape: &[i64],
        weight: Option<Body>,
        wants: [bool; 3],
    ) -> Result<[Option<Body>; 3]> {
        let n = normalized_shape.len();
        if by_kernel(&input, rows_of(input.shape(), n)[1]) {
            return rows_backward(&g, &input, Some(&result1), &result2, weight.as_ref(), n, wants);
        }
        let value = |body: Body| V::from(Tensor::new(body));
        let laid = NormShape::rows(g.shape(), n);
        let Standardized { y, scale, .. } = laid.standardize_by(value(input), value(result1), value(result2));
        let (g, weight) = (Tensor::new(g), weight.map(value));
        bodies(laid.gradients(&g, [y, scale], weight, Statistics::MeanAndVariance, wants))
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

/// Rejects sizes that do not fit. `sep` precedes the sizes in the message.
fn check_sizes(
    input: &Tensor,
    normalized_shape: &[i64],
    params: [(&str, Option<&Tensor>); 2],
    sep: &str,
) -> Result<()> {
    let n = normalized_shape.len();
    if n == 0 {
        return Err(Error::runtime(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
             normalized_shape = []",
        ));
    }
    for (name, given) in params {
        if let Some(given) = given {
            check_affine(name, &given.shape(), normalized_shape)?;
        }
    }
    let shape = input.shape();
    if shape.len() < n || ints(&shape[shape.len() - n..])[..] != *normalized_shape {
        let wanted: Vec<String> = normalized_shape.iter().map(i64::to_string).collect();
        return Err(Error::runtime(format!(
            "Given normalized_shape={:?}, expected input with shape [*{sep}{}], but got input of size{:?}",
            normalized_shape,
            wanted.join(", "),
            shape.as_slice()
        )));
    }
    Ok(())
}

/// Normalize over the last dimensions, then scale and shift.
///
/// Args:
///     normalized_shape: sizes of the dimensions to normalize over.
///     weight: scale, of shape `normalized_shape`.
///     bias: shift, of shape `normalized_shape`.
///
/// Examples:
///     >>> F.layer_norm(torch.tensor([[1.0, 3.0], [2.0, 6.0]]), (2,), eps=0.0)
///     tensor([[-1.,  1.],
///             [-1.,  1.]])
#[operator(function, sample = "layered()")]
pub fn layer_norm(
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    #[default(1e-5)] eps: f64,
) -> Result<Tensor> {
    check_sizes(input, normalized_shape, [("weight", weight), ("bias", bias)], ", ")?;
    check_mixed(input, &[weight, bias])?;
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "LayerNormKernelImpl", dtype: input.dtype() }.into());
    }
    NativeLayerNorm::call(input, normalized_shape, weight, bias, eps)
}

/// Apply layer normalization, and return the mean and the reciprocal standard deviation as well.
///
/// Args:
///     normalized_shape: sizes of the dimensions to normalize over.
///     weight: scale, of shape `normalized_shape`.
///     bias: shift, of shape `normalized_shape`.
///
/// Examples:
///     >>> out, mean, rstd = torch.native_layer_norm(torch.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)
///     >>> out, mean, rstd
///     (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
#[operator(function, sample = "random")]
pub fn native_layer_norm(
    input: &Tensor,
    normalized_shape: &[i64],
    #[required] weight: Option<&Tensor>,
    #[required] bias: Option<&Tensor>,
    eps: f64,
) -> Result<[Tensor; 3]> {
    let out = layer_norm(input, normalized_shape, weight, bias, eps)?;
    // The mean and the factor have no gradient.
    let [_, mean, scale] = layer_norm_formula(
        &crate::operator::primitives::detached::shallow(input),
        None,
        None,
        normalized_shape.len(),
        eps,
    )?;
    Ok([out, to_dtype(&mean, input.dtype())?, to_dtype(&scale, input.dtype())?])
}

/// Divides rows by their root mean square. Also returns the reciprocal of the root.
fn rms_formula(x: &Tensor, weight: Option<&Tensor>, normalized: usize, eps: f64) -> Result<[Tensor; 2]> {
    let laid = NormShape::rows(&x.shape(), normalized);
    let [y, scale] = laid.divide_by_root(to_dtype(x, wide(x.dtype()))?.into(), eps);
    let y = laid.scale_and_shift(y, weight.map(V::from), None, x)?;
    Ok([y, scale.reshape(&lines_of(&x.shape(), normalized)).tensor()?])
}

#[primitive(results(result0, result1), scratch(result1))]
impl FusedRmsNorm {
    fn forward(
        #[shown("input")] input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        #[hidden] eps: f64,
    ) -> Result<[Body; 2]> {
        let n = normalized_shape.len();
        if !by_kernel(&input.body(), rows_of(&input.shape(), n)[1]) {
            let made = mode::with_grad(false, || rms_formula(input, weight, n, eps))?;
            return Ok(made.map(|t| t.body().clone()));
        }
        let weight = weight.map(|t| t.body().clone());
        let [out, _, scale] = normalize_rows(&input.body(), weight.as_ref(), None, n, eps, false)?;
        Ok([out, scale])
    }
    fn derivative(
        g: &Tensor,
        input: V,
        normalized_shape: &[i64],
        weight: Option<V>,
        eps: f64,
        wants: [bool; 2],
    ) -> [Option<V>; 2] {
        let laid = NormShape::rows(&g.shape(), normalized_shape.len());
        let divided = laid.divide_by_root(input.cast(wide(g.dtype())), eps);
        let wants = [wants[0], wants[1], false];
        let [input, weight, _] = laid.gradients(g, divided, weight, Statistics::MeanSquare, wants);
        [input, weight]
    }
    fn fast_derivative(
        g: Body,
        input: Body,
        result1: Body,
        normalized_shape: &[i64],
        weight: Option<Body>,
        wants: [bool; 2],
    ) -> Result<[Option<Body>; 2]> {
        let n = normalized_shape.len();
        let wants = [wants[0], wants[1], false];
        let [input, weight, _] = if by_kernel(&input, rows_of(input.shape(), n)[1]) {
            rows_backward(&g, &input, None, &result1, weight.as_ref(), n, wants)?
        } else {
            let value = |body: Body| V::from(Tensor::new(body));
            let laid = NormShape::rows(g.shape(), n);
            let divided = laid.divide_by(value(input), value(result1));
            let (g, weight) = (Tensor::new(g), weight.map(value));
            bodies(laid.gradients(&g, divided, weight, Statistics::MeanSquare, wants))?
        };
        Ok([input, weight])
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        rms_formula(input, weight, normalized_shape.len(), eps).map(|[y, _]| y)
    }
}

/// Divide by the root mean square over the last dimensions, then scale.
///
/// Args:
///     normalized_shape: sizes of the dimensions to normalize over.
///     weight: scale, of shape `normalized_shape`.
///     eps: number added to the mean square; the epsilon of the dtype if not given.
///
/// Examples:
///     >>> torch.rms_norm(torch.tensor([[3.0, 3.0]]), (2,))
///     tensor([[1., 1.]])
#[operator(function, sample = "layered_by_root()")]
pub fn rms_norm(
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
    eps: Option<f64>,
) -> Result<Tensor> {
    check_sizes(input, normalized_shape, [("weight", weight), ("", None)], "")?;
    let dtype = input.dtype();
    if !dtype.is_differentiable() {
        return Err(Fault::NoKernel { op: "rms_norm", dtype }.into());
    }
    // The epsilon of the dtype that is computed in.
    let smallest =
        if matches!(dtype, DType::F64 | DType::C128) { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let eps = eps.unwrap_or(smallest);
    if dtype.is_complex() {
        let [y, _] = rms_formula(input, weight, normalized_shape.len(), eps)?;
        return Ok(y);
    }
    FusedRmsNorm::call(input, normalized_shape, weight, eps)
}
