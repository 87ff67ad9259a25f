//! Activation functions of `nn.functional` on one tensor, and their in-place forms.

use crate::operator::batch::randomness;
use crate::operator::bodies;
use crate::operator::bodies::overlap::check_writable;
use crate::operator::pointwise::{Pointwise, apply, apply_inplace};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::{constant, sums, views};
use crate::operator::row::generator::Generator;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::elementwise::unary::leaky_relu;
use crate::ops::indexing::index;
use crate::ops::nn::activation_formulas as f;
use crate::ops::prelude::*;
use crate::ops::random;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::reduction::scan;
use crate::ops::shape::{join, slices};
use crate::tensor::mode;
use smallvec::SmallVec;

/// Rejects dtypes for which PyTorch has no kernel, under the name of its kernel.
fn need_float(kernel: &'static str, input: &Tensor) -> Result<()> {
    if input.dtype().is_float() {
        return Ok(());
    }
    Err(Fault::NoKernel { op: kernel, dtype: input.dtype() }.into())
}

/// Calls `row` on `input` and numbers, or its in-place form `over` if `inplace` is set.
fn run(
    [row, over]: [&'static Pointwise; 2],
    input: &Tensor,
    numbers: &[Scalar],
    inplace: bool,
) -> Result<Tensor> {
    let mut operands: SmallVec<[Operand; 4]> = smallvec::smallvec![input.into()];
    operands.extend(numbers.iter().map(|n| Operand::Scalar(*n)));
    if !inplace {
        return apply(row, &operands);
    }
    apply_inplace(over, input, &operands)?;
    Ok(input.clone())
}

/// Uses the same row for both forms.
fn both_ways(row: &'static Pointwise) -> [&'static Pointwise; 2] {
    [row, row]
}

fn between(input: &Tensor, min_val: Scalar, max_val: Scalar, inplace: bool) -> Result<Tensor> {
    if input.dtype() == DType::Bool {
        return Err(Error::not_implemented("Bool inputs not supported for hardtanh"));
    }
    if input.dtype().is_complex() {
        return Err(Error::not_implemented("clamp is not supported for complex types"));
    }
    if input.dtype() == DType::U8 && (min_val.as_f64() < 0.0 || max_val.as_f64() < 0.0) {
        return Err(Error::runtime("cannot do hardtanh on an unsigned type with negative limits"));
    }
    run(both_ways(&f::hardtanh::ROW), input, &[min_val, max_val], inplace)
}

/// Apply the hardtanh activation: clamp the elements into `[min_val, max_val]`.
///
/// Args:
///     min_val: lower end of the range.
///     max_val: upper end of the range.
///
/// Examples:
///     >>> F.hardtanh(torch.tensor([-2.0, 0.5, 3.0]))
///     tensor([-1.0000,  0.5000,  1.0000])
#[operator(nn, sample = "pointwise(F.hardtanh, 1, WIDE)")]
pub fn hardtanh(
    input: &Tensor,
    #[default(Scalar::Float(-1.0))] min_val: Scalar,
    #[default(Scalar::Float(1.0))] max_val: Scalar,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    if min_val.as_f64() > max_val.as_f64() {
        return Err(Error::value("min_val cannot be greater than max_val"));
    }
    between(input, min_val, max_val, inplace)
}

/// Apply hardtanh in place: clamp the elements into `[min_val, max_val]`.
///
/// Args:
///     min_val: lower end of the range.
///     max_val: upper end of the range.
///
/// Examples:
///     >>> F.hardtanh_(torch.tensor([-2.0, 0.5, 3.0]))
///     tensor([-1.0000,  0.5000,  1.0000])
#[operator(nn, name = "hardtanh_", sample = "pointwise(lambda x: F.hardtanh_(x * 1), 1, WIDE)")]
pub fn hardtanh_over(
    input: &Tensor,
    #[default(Scalar::Int(-1))] min_val: Scalar,
    #[default(Scalar::Int(1))] max_val: Scalar,
) -> Result<Tensor> {
    between(input, min_val, max_val, true)
}

/// Apply the ReLU6 activation: `min(max(0, input), 6)`.
///
/// Examples:
///     >>> F.relu6(torch.tensor([-1.0, 3.0, 9.0]))
///     tensor([0., 3., 6.])
#[operator(nn, sample = "pointwise(F.relu6, 1, (-2.0, 8.0))")]
pub fn relu6(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    between(input, Scalar::Int(0), Scalar::Int(6), inplace)
}

fn above(input: &Tensor, threshold: Scalar, value: Scalar, inplace: bool) -> Result<Tensor> {
    if input.dtype() == DType::Bool || input.dtype().is_complex() {
        return Err(Fault::NoKernel { op: "threshold_cpu", dtype: input.dtype() }.into());
    }
    run([&f::threshold::ROW, &f::threshold_over::ROW], input, &[threshold, value], inplace)
}

/// Replace the elements that are not above a threshold by a value.
///
/// Args:
///     threshold: elements up to it are replaced.
///     value: what replaces them.
///
/// Examples:
///     >>> torch.threshold(torch.tensor([0.5, 2.0]), 1.0, 0.0)
///     tensor([0., 2.])
#[operator(
    function,
    name = "threshold",
    out,
    sample = "pointwise(lambda x: T.threshold(x, 0.1, 2.0), 1, WIDE)"
)]
pub fn above_threshold(input: &Tensor, threshold: Scalar, value: Scalar) -> Result<Tensor> {
    above(input, threshold, value, false)
}

/// Replace the elements that are not above a threshold by a value.
///
/// Args:
///     threshold: elements up to it are replaced.
///     value: what replaces them.
///
/// Examples:
///     >>> F.threshold(torch.tensor([0.5, 2.0]), 1.0, 0.0)
///     tensor([0., 2.])
#[operator(nn, name = "threshold", sample = "pointwise(lambda x: F.threshold(x, 0.1, 2.0), 1, WIDE)")]
pub fn nn_threshold(
    input: &Tensor,
    threshold: Scalar,
    value: Scalar,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    above(input, threshold, value, inplace)
}

/// Replace the elements that are not above a threshold by a value, in place.
///
/// Args:
///     threshold: elements up to it are replaced.
///     value: what replaces them.
///
/// Examples:
///     >>> F.threshold_(torch.tensor([0.5, 2.0]), 1.0, 0.0)
///     tensor([0., 2.])
#[operator(
    function,
    nn,
    name = "threshold_",
    sample = "pointwise(lambda x: T.threshold_(x * 1, 0.1, 2.0), 1, WIDE)"
)]
pub fn threshold_over(input: &Tensor, threshold: Scalar, value: Scalar) -> Result<Tensor> {
    above(input, threshold, value, true)
}

/// Apply the hard sigmoid, a piecewise linear approximation: `clamp(input / 6 + 1 / 2, 0, 1)`.
///
/// Examples:
///     >>> F.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
///     tensor([0.0000, 0.5000, 0.7500])
#[operator(nn, sample = "pointwise(F.hardsigmoid, 1, (-4.0, 4.0))")]
pub fn hardsigmoid(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    need_float("hardsigmoid_cpu", input)?;
    run(both_ways(&f::hardsigmoid::ROW), input, &[], inplace)
}

/// Apply the hard swish activation: `input * clamp(input + 3, 0, 6) / 6`.
///
/// Examples:
///     >>> F.hardswish(torch.tensor([-4.0, 0.0, 1.0]))
///     tensor([-0.0000, 0.0000, 0.6667])
#[operator(nn, sample = "pointwise(F.hardswish, 1, (-4.0, 4.0))")]
pub fn hardswish(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    need_float("hardswish_cpu", input)?;
    run(both_ways(&f::hardswish::ROW), input, &[], inplace)
}

/// Apply the Mish activation: `input * tanh(softplus(input))`.
///
/// Examples:
///     >>> F.mish(torch.tensor([-1.0, 0.0, 1.0]))
///     tensor([-0.3034,  0.0000,  0.8651])
#[operator(nn, sample = "pointwise(F.mish, 1, WIDE)")]
pub fn mish(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    need_float("mish_cpu", input)?;
    run(both_ways(&f::mish::ROW), input, &[], inplace)
}

fn with_exponential(input: &Tensor, alpha: Scalar, inplace: bool) -> Result<Tensor> {
    if alpha.as_f64() == 0.0 {
        return Err(Error::runtime("ZeroDivisionError: alpha cannot be 0 for CELU"));
    }
    need_float("elu_cpu", input)?;
    run([&f::celu::ROW, &f::celu_over::ROW], input, &[alpha], inplace)
}

/// Apply the continuously differentiable ELU (CELU): `max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`.
///
/// Args:
///     alpha: minus the limit for large negative elements.
///
/// Examples:
///     >>> torch.celu(torch.tensor([-1.0, 2.0]))
///     tensor([-0.6321,  2.0000])
#[operator(function, sample = "pointwise(T.celu, 1, WIDE)")]
pub fn celu(input: &Tensor, #[default(Scalar::Float(1.0))] alpha: Scalar) -> Result<Tensor> {
    with_exponential(input, alpha, false)
}

/// Apply the continuously differentiable ELU (CELU): `max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`.
///
/// Args:
///     alpha: minus the limit for large negative elements.
///
/// Examples:
///     >>> F.celu(torch.tensor([-1.0, 2.0]))
///     tensor([-0.6321,  2.0000])
#[operator(nn, name = "celu", sample = "pointwise(lambda x: F.celu(x, 0.7), 1, WIDE)")]
pub fn nn_celu(
    input: &Tensor,
    #[default(Scalar::Float(1.0))] alpha: Scalar,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    with_exponential(input, alpha, inplace)
}

/// Apply the CELU activation in place; see `torch.celu`.
///
/// Args:
///     alpha: minus the limit for large negative elements.
///
/// Examples:
///     >>> F.celu_(torch.tensor([-1.0, 2.0]))
///     tensor([-0.6321,  2.0000])
#[operator(function, nn, name = "celu_", sample = "pointwise(lambda x: T.celu_(x * 1, 0.7), 1, WIDE)")]
pub fn celu_over(input: &Tensor, #[default(Scalar::Float(1.0))] alpha: Scalar) -> Result<Tensor> {
    with_exponential(input, alpha, true)
}

/// `elu` with the constants of SELU, which preserve mean 0 and variance 1.
fn self_normalizing(input: &Tensor, inplace: bool) -> Result<Tensor> {
    need_float("elu_cpu", input)?;
    let numbers = [Scalar::Float(1.6732632423543772), Scalar::Float(1.0507009873554805), Scalar::Int(1)];
    run([&f::elu_scaled::ROW, &f::elu_scaled_over::ROW], input, &numbers, inplace)
}

/// Apply the self-normalizing activation SELU: a scaled ELU that keeps mean and variance.
///
/// Examples:
///     >>> torch.selu(torch.tensor([-1.0, 2.0]))
///     tensor([-1.1113,  2.1014])
#[operator(function, sample = "pointwise(T.selu, 1, WIDE)")]
pub fn selu(input: &Tensor) -> Result<Tensor> {
    self_normalizing(input, false)
}

/// Apply the self-normalizing activation SELU: a scaled ELU that keeps mean and variance.
///
/// Examples:
///     >>> F.selu(torch.tensor([-1.0, 2.0]))
///     tensor([-1.1113,  2.1014])
#[operator(nn, name = "selu", sample = "pointwise(F.selu, 1, WIDE)")]
pub fn nn_selu(input: &Tensor, #[default(false)] inplace: bool) -> Result<Tensor> {
    self_normalizing(input, inplace)
}

/// Apply the SELU activation in place; see `torch.selu`.
///
/// Examples:
///     >>> F.selu_(torch.tensor([-1.0, 2.0]))
///     tensor([-1.1113,  2.1014])
#[operator(function, nn, name = "selu_", sample = "pointwise(lambda x: T.selu_(x * 1), 1, WIDE)")]
pub fn selu_over(input: &Tensor) -> Result<Tensor> {
    self_normalizing(input, true)
}

/// Apply the exponential linear unit (ELU) in place.
///
/// Args:
///     alpha: minus the limit for large negative elements.
///
/// Examples:
///     >>> F.elu_(torch.tensor([-1.0, 2.0]))
///     tensor([-0.6321,  2.0000])
#[operator(nn, name = "elu_", sample = "pointwise(lambda x: F.elu_(x * 1, 0.7), 1, WIDE)")]
pub fn elu_in_place(input: &Tensor, #[default(Scalar::Float(1.0))] alpha: Scalar) -> Result<Tensor> {
    super::elu(input, alpha.as_f64(), true)
}

/// Apply leaky ReLU in place: negative elements are multiplied by `negative_slope`.
///
/// Args:
///     negative_slope: factor of negative elements.
///
/// Examples:
///     >>> F.leaky_relu_(torch.tensor([-1.0, 2.0]), 0.1)
///     tensor([-0.1000,  2.0000])
#[operator(nn, name = "leaky_relu_", sample = "pointwise(lambda x: F.leaky_relu_(x * 1, 0.2), 1, WIDE)")]
pub fn leaky_relu_in_place(
    input: &Tensor,
    #[default(Scalar::Float(0.01))] negative_slope: Scalar,
) -> Result<Tensor> {
    super::leaky_relu(input, negative_slope.as_f64(), true)
}

/// Apply the rectified linear unit (ReLU) in place: `max(0, input)`.
///
/// Examples:
///     >>> F.relu_(torch.tensor([-1.0, 2.0]))
///     tensor([0., 2.])
#[operator(nn, name = "relu_", sample = "pointwise(lambda x: F.relu_(x * 1), 1, WIDE)")]
pub fn relu_in_place(input: &Tensor) -> Result<Tensor> {
    super::nn_relu(input, true)
}

/// Apply hard shrinkage: set the elements within `[-lambd, lambd]` to zero.
///
/// Args:
///     lambd: half of the width of the range.
///
/// Examples:
///     >>> F.hardshrink(torch.tensor([-1.0, 0.3, 2.0]))
///     tensor([-1.,  0.,  2.])
#[operator(function, method, nn, out(found), sample = "pointwise(T.hardshrink, 1, WIDE)")]
pub fn hardshrink(input: &Tensor, #[default(Scalar::Float(0.5))] lambd: Scalar) -> Result<Tensor> {
    need_float("hardshrink_cpu", input)?;
    run(both_ways(&f::hardshrink::ROW), input, &[lambd.rounded(input.dtype())], false)
}

/// Apply soft shrinkage: move elements towards zero by `lambd`, those within `[-lambd, lambd]` to zero.
///
/// Args:
///     lambd: by how much to move; not negative.
///
/// Examples:
///     >>> F.softshrink(torch.tensor([-1.0, 0.3, 2.0]))
///     tensor([-0.5000,  0.0000,  1.5000])
#[operator(nn, out(found), sample = "pointwise(F.softshrink, 1, WIDE)")]
pub fn softshrink(input: &Tensor, #[default(Scalar::Float(0.5))] lambd: Scalar) -> Result<Tensor> {
    need_float("softshrink_check", input)?;
    let most = match input.dtype() {
        DType::F16 => 65504.0,
        DType::BF16 => 3.3895313892515355e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    if !(0.0..=most).contains(&lambd.as_f64()) {
        return Err(Error::runtime(format!(
            "lambda must be in range [0, {}] for input dtype {}, but found {}",
            general(most),
            input.dtype().scalar_name(),
            general(lambd.as_f64())
        )));
    }
    run(both_ways(&f::softshrink::ROW), input, &[lambd.rounded(input.dtype())], false)
}

/// Formats a number as C++ streams do: with six significant digits.
fn general(x: f64) -> String {
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) {
        let text = format!("{x:.*}", 5 - x.abs().max(1.0).log10() as usize);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return text.to_owned();
    }
    let text = format!("{x:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Apply parametric ReLU (PReLU): negative elements are multiplied by a learned slope.
///
/// Args:
///     weight: the slopes of negative elements: one, or one for each channel (dimension 1).
///
/// Examples:
///     >>> F.prelu(torch.tensor([-2.0, 3.0]), torch.tensor([0.25]))
///     tensor([-0.5000,  3.0000])
#[operator(function, method, nn, autocast = lower, sample = "leaky(F.prelu)")]
pub fn prelu(input: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if input.dtype() != weight.dtype() {
        return Err(Error::runtime(format!(
            "prelu: Type promoting not supported. Got {} and {}",
            input.dtype().scalar_name(),
            weight.dtype().scalar_name()
        )));
    }
    let (shape, ndim) = (input.shape(), input.ndim());
    let mut lying: Dims = smallvec::smallvec![1; ndim];
    if weight.numel() != 1 {
        if ndim == 0 {
            return Err(Error::runtime("Not allow zero-dim input tensor."));
        }
        let channels = shape.get(1).copied().unwrap_or(1);
        if weight.numel() != channels {
            return Err(Error::runtime(format!(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = \
                 {channels}.",
                weight.numel()
            )));
        }
        if ndim > 1 {
            lying[1] = channels;
        }
    }
    if weight.ndim() > 1 {
        return Err(Error::runtime(format!(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
            weight.ndim()
        )));
    }
    need_float("prelu_cpu", input)?;
    let weight = if weight.shape() == lying { weight.clone() } else { views::reshape(weight, &lying)? };
    f::prelu_kernel(input, &weight)
}

/// Splits the tensor in two halves along a dimension.
fn halves(x: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    let half = x.shape()[dim as usize] as i64 / 2;
    Ok([slices::narrow(x, dim, 0, half)?, slices::narrow(x, dim, half, half)?])
}

#[primitive(batch = along(dim))]
impl Glu {
    fn forward(input: &Tensor, dim: i64) -> Result<Body> {
        let [a, b] = split_halves(input, dim)?;
        no_grad(|| f::gated(&a, &b))
    }
    fn d_input(g: V, input: V, dim: i64) -> V {
        g.with(input, |g, input| {
            let dim = wrap_dim(dim, input.ndim())? as i64;
            let [a, b] = halves(input, dim)?;
            let (g, open) = (V::from(g), sigmoid(&b));
            let first = &g * &open;
            let second = &first * (1.0 - open) * V::from(a);
            join::cat(&[first.tensor()?, second.tensor()?], dim)
        })
    }
}

fn split_halves(input: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    let dim = wrap_dim(dim, input.ndim())?;
    let (body, half) = (input.body(), input.shape()[dim] as i64 / 2);
    let part = |start| -> Result<Tensor> {
        Ok(Tensor::new(body.with_layout(body.layout.narrow(dim as i64, start, half)?)))
    };
    Ok([part(0)?, part(half)?])
}

/// Apply the gated linear unit (GLU): `a * sigmoid(b)`, where `a` and `b` are the halves of the input.
///
/// Args:
///     dim: dimension to split into halves.
///
/// Examples:
///     >>> F.glu(torch.tensor([1.0, 2.0, 0.0, 100.0]))
///     tensor([0.5000, 2.0000])
#[operator(
    nn,
    sample = "shaped(lambda draw, shape: lambda x: F.glu(x, 1), st.sampled_from([(2, 4), (3, 2, 2), (1, 6)]))"
)]
pub fn glu(input: &Tensor, #[default(-1)] dim: i64) -> Result<Tensor> {
    if input.ndim() == 0 {
        return Err(Error::runtime("glu does not support scalars because halving size must be even"));
    }
    let at = wrap_dim(dim, input.ndim())?;
    let size = input.shape()[at];
    if !size.is_multiple_of(2) {
        return Err(Error::runtime(format!(
            "Halving dimension must be even, but dimension {at} is size {size}"
        )));
    }
    need_float("glu_cpu", input)?;
    Glu::call(input, dim)
}

/// The gradient of `rrelu`: negative elements are scaled by the random factors in training, else by the mean of the bounds.
fn rrelu_gradient(g: V, x: V, noise: V, [lower, upper]: [Scalar; 2], training: bool) -> V {
    if training {
        return g * noise + zero_of(x);
    }
    select(&g * middle(lower, upper), select(zero_of(&x), &g, gt(&x, 0.0)), gt(&x, 0.0))
}

fn middle(lower: Scalar, upper: Scalar) -> f64 {
    (lower.as_f64() + upper.as_f64()) / 2.0
}

fn randomly_leaky(x: &Tensor, noise: &Tensor, [lower, upper]: [Scalar; 2], training: bool) -> Result<Body> {
    no_grad(|| {
        if training {
            return a::mul(x, noise);
        }
        apply(&leaky_relu::ROW, &[x.into(), Operand::Scalar(Scalar::Float(middle(lower, upper)))])
    })
}

#[primitive(batch = pointwise)]
impl RreluWithNoise {
    fn forward(
        input: &Tensor,
        #[constant] noise: &Tensor,
        lower: Scalar,
        upper: Scalar,
        training: bool,
    ) -> Result<Body> {
        randomly_leaky(input, noise, [lower, upper], training)
    }
    fn d_input(g: V, input: V, noise: V, lower: Scalar, upper: Scalar, training: bool) -> V {
        rrelu_gradient(g, input, noise, [lower, upper], training)
    }
}

#[primitive(batch = pointwise)]
impl RreluWithNoise1 {
    fn write(
        input: &Body,
        #[constant] noise: &Tensor,
        lower: Scalar,
        upper: Scalar,
        training: bool,
    ) -> Result<()> {
        check_writable(input)?;
        let made = randomly_leaky(&Tensor::new(input.clone()), noise, [lower, upper], training)?;
        bodies::copy(input, &made)
    }
    fn d_input(g: V, result: V, noise: V, lower: Scalar, upper: Scalar, training: bool) -> V {
        rrelu_gradient(g, result, noise, [lower, upper], training)
    }
}

/// Returns 1 for positive elements and a random slope for the others. On the CPU only the latter draw a number, in their order.
fn draw_factors(x: &Tensor, lower: f64, upper: f64, generator: &Option<Generator>) -> Result<Tensor> {
    let draw = |shape: &[usize], dtype| {
        let new = |shape: &[usize]| Body::new(shape, dtype, x.device());
        randomness::draw(shape, new, |body| random::fill::fill_uniform(body, lower, upper, generator.clone()))
    };
    let leaking = le(x, 0.0).tensor()?;
    if x.is_batched() || !x.device().is_cpu() {
        return select(1.0, draw(&x.shape(), x.dtype())?, leaking).cast(x.dtype()).tensor();
    }
    let numbers = to_dtype(&views::reshape(&leaking, &[x.numel()])?, DType::I64)?;
    let count = sums::Sum::call(&numbers)?.item()?.as_i64() as usize;
    if count == 0 {
        return constant::ones(&x.shape(), x.dtype(), x.device());
    }
    let drawn = draw(&[count], DType::F64)?;
    let places = maximum(V::from(scan::Cumsum::call(&numbers, 0)?) - 1.0, 0.0).cast(DType::I64).tensor()?;
    let spread = index::index_select(&drawn, 0, &places)?;
    select(1.0, views::reshape(&spread, &x.shape())?, leaking).cast(x.dtype()).tensor()
}

fn randomize(
    input: &Tensor,
    [lower, upper]: [Scalar; 2],
    training: bool,
    generator: &Option<Generator>,
    inplace: bool,
) -> Result<Tensor> {
    let (low, high) = (lower.as_f64(), upper.as_f64());
    if low > high {
        return Err(Error::runtime("Lower bound should be less than or equal to the upper bound"));
    }
    if training && input.dtype() == DType::F16 {
        return Err(Fault::NoKernel { op: "rrelu_with_noise_out_cpu", dtype: input.dtype() }.into());
    }
    need_float(if training { "rrelu_with_noise_out_cpu" } else { "leaky_relu_cpu" }, input)?;
    let noise = mode::with_grad(false, || {
        if training {
            draw_factors(input, low, high, generator)
        } else {
            constant::zeros(&input.shape(), input.dtype(), input.device())
        }
    })?;
    if !inplace {
        return RreluWithNoise::call(input, &noise, lower, upper, training);
    }
    let slope = middle(lower, upper);
    if !training && slope < 0.0 {
        // With a negative slope the sign of the result is not that of the input, which the in-place derivative needs.
        return run(both_ways(&leaky_relu::ROW), input, &[Scalar::Float(slope)], true);
    }
    RreluWithNoise1::over(input, &noise, lower, upper, training)?;
    Ok(input.clone())
}

/// Apply randomized leaky ReLU: negative elements are multiplied by random slopes.
///
/// Args:
///     lower: lower bound of the slopes.
///     upper: upper bound of the slopes.
///     training: whether to draw a slope for each element; else the mean of both bounds is taken.
///
/// Examples:
///     >>> torch.rrelu(torch.tensor([-1.0, 2.0]))
///     tensor([-0.2292,  2.0000])
#[operator(function, sample = "pointwise(T.rrelu, 1, WIDE)")]
pub fn rrelu(
    input: &Tensor,
    #[default(Scalar::Float(0.125))] lower: Scalar,
    #[default(Scalar::Float(0.3333333333333333))] upper: Scalar,
    #[default(false)] training: bool,
    generator: Option<Generator>,
) -> Result<Tensor> {
    randomize(input, [lower, upper], training, &generator, false)
}

/// Apply randomized leaky ReLU: negative elements are multiplied by random slopes.
///
/// Args:
///     lower: lower bound of the slopes.
///     upper: upper bound of the slopes.
///     training: whether to draw a slope for each element; else the mean of both bounds is taken.
///
/// Examples:
///     >>> F.rrelu(torch.tensor([-1.0, 2.0]))
///     tensor([-0.2292,  2.0000])
#[operator(nn, name = "rrelu", sample = "pointwise(F.rrelu, 1, WIDE)")]
pub fn nn_rrelu(
    input: &Tensor,
    #[default(Scalar::Float(0.125))] lower: Scalar,
    #[default(Scalar::Float(0.3333333333333333))] upper: Scalar,
    #[default(false)] training: bool,
    #[default(false)] inplace: bool,
) -> Result<Tensor> {
    randomize(input, [lower, upper], training, &None, inplace)
}

/// Apply randomized leaky ReLU in place; see `torch.rrelu`.
///
/// Args:
///     lower: lower bound of the slopes.
///     upper: upper bound of the slopes.
///     training: whether to draw a slope for each element; else the mean of both bounds is taken.
///
/// Examples:
///     >>> F.rrelu_(torch.tensor([-1.0, 2.0]))
///     tensor([-0.2292,  2.0000])
#[operator(function, nn, name = "rrelu_", sample = "pointwise(lambda x: T.rrelu_(x * 1), 1, WIDE)")]
pub fn rrelu_over(
    input: &Tensor,
    #[default(Scalar::Float(0.125))] lower: Scalar,
    #[default(Scalar::Float(0.3333333333333333))] upper: Scalar,
    #[default(false)] training: bool,
    generator: Option<Generator>,
) -> Result<Tensor> {
    randomize(input, [lower, upper], training, &generator, true)
}
