//! Random numbers. The CPU draws the same numbers as PyTorch; the GPU derives them from a counter, so that they depend on the
//! seed only.

mod categorical;
mod distributions;
pub mod fill;
pub mod normal;

use self::normal::NORMAL;
use crate::base::MemoryFormat;
use crate::cpu::random as cpu;
use crate::operator::batch::randomness::{draw, draw_over};
use crate::operator::bodies::overlap::check_writable;
use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::detached::shallow;
use crate::operator::primitives::views::{dims_of, ints};
use crate::operator::row::generator::{Generator, stream};
use crate::ops::creation::factories::{empty_body_like, wanting};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::prelude::*;
use crate::ops::random::fill::{
    fill_cauchy, fill_coin, fill_coins, fill_exponential, fill_geometric, fill_integers, fill_log_normal,
    fill_normal, fill_random, fill_uniform,
};
use crate::ops::shape::view::expand;

/// Primitives that overwrite a tensor with random numbers. No gradient flows.
macro_rules! drawn {
    ($($Name:ident = $fill:ident($($p:ident: $t:ty),*);)*) => { $(
        #[primitive(tangent = still, batch = none)]
        impl $Name {
            fn write(input: &Body, $($p: $t),*) -> Result<()> {
                check_writable(input)?;
                $fill(input, $($p),*)
            }
            fn d_input(g: V) -> V {
                constant_zero(g)
            }
        }
    )* };
}

drawn! {
    Uniform = fill_uniform(from: f64, to: f64, generator: Option<Generator>);
    Normal = fill_normal(mean: f64, std: f64, generator: Option<Generator>);
    Exponential = fill_exponential(lambd: f64, generator: Option<Generator>);
    Geometric = fill_geometric(p: f64, generator: Option<Generator>);
    Cauchy = fill_cauchy(median: f64, sigma: f64, generator: Option<Generator>);
    LogNormal = fill_log_normal(mean: f64, std: f64, generator: Option<Generator>);
    Random = fill_random(from: Option<i64>, to: Option<i64>, generator: Option<Generator>);
    Bernoulli2 = fill_coin(p: f64, generator: Option<Generator>);
}

#[primitive(tangent = still, batch = none)]
impl Bernoulli1 {
    fn write(input: &Body, #[overlaps] p: &Tensor, generator: Option<Generator>) -> Result<()> {
        check_writable(input)?;
        let wide = expand(&shallow(p), ints(input.shape()))?;
        let p = wide.body().clone();
        fill_coins(input, &p, &generator)
    }
    fn d_input(g: V) -> V {
        constant_zero(g)
    }
    fn d_p(at: Meta) -> Result<Tensor> {
        zeros(&at.shape, at.dtype, at.device)
    }
}

/// Fill the tensor with numbers drawn uniformly from `[from, to)`.
///
/// Args:
///     from: lower bound.
///     to: upper bound.
///
/// Examples:
///     >>> torch.empty(3).uniform_(0, 2).shape
///     torch.Size([3])
#[inplace]
pub fn uniform_(
    input: &Tensor,
    #[default(0.0)] from: f64,
    #[default(1.0)] to: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Uniform::over(t, from, to, generator.clone()))
}

/// Fill the tensor with numbers drawn from a normal distribution.
///
/// Args:
///     mean: mean of the distribution.
///     std: standard deviation of the distribution.
///
/// Examples:
///     >>> torch.empty(3).normal_(mean=5).shape
///     torch.Size([3])
#[inplace(normal, overloads((1, 2), (0, 2), (1, 2), (2, 8)))]
pub fn normal_(
    input: &Tensor,
    #[default(0.0)] mean: f64,
    #[default(1.0)] std: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Normal::over(t, mean, std, generator.clone()))
}

/// Fill the tensor with numbers drawn from an exponential distribution.
///
/// Args:
///     lambd: rate of the distribution.
///
/// Examples:
///     >>> torch.empty(3).exponential_().shape
///     torch.Size([3])
#[inplace]
pub fn exponential_(
    input: &Tensor,
    #[default(1.0)] lambd: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Exponential::over(t, lambd, generator.clone()))
}

/// Fill the tensor with numbers drawn from a geometric distribution: trials up to the first success.
///
/// Args:
///     p: probability of success.
///
/// Examples:
///     >>> torch.empty(3).geometric_(0.5).shape
///     torch.Size([3])
#[inplace]
pub fn geometric_(input: &Tensor, p: f64, #[keyword] generator: Option<Generator>) -> Result<()> {
    draw_over(input, |t| Geometric::over(t, p, generator.clone()))
}

/// Fill the tensor with numbers drawn from a Cauchy distribution.
///
/// Args:
///     median: median of the distribution.
///     sigma: half of the width at half height.
///
/// Examples:
///     >>> torch.empty(3).cauchy_().shape
///     torch.Size([3])
#[inplace]
pub fn cauchy_(
    input: &Tensor,
    #[default(0.0)] median: f64,
    #[default(1.0)] sigma: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Cauchy::over(t, median, sigma, generator.clone()))
}

/// Fill the tensor with numbers whose logarithms are drawn from a normal distribution.
///
/// Args:
///     mean: mean of the logarithms.
///     std: standard deviation of the logarithms.
///
/// Examples:
///     >>> torch.empty(3).log_normal_().shape
///     torch.Size([3])
#[inplace]
pub fn log_normal_(
    input: &Tensor,
    #[default(1.0)] mean: f64,
    #[default(2.0)] std: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| LogNormal::over(t, mean, std, generator.clone()))
}

/// Fill the tensor with integers drawn uniformly from `[from, to)`.
///
/// Called with one number, that is `to`; with none, all that the data type can count exactly are drawn.
///
/// Args:
///     from: lower bound; 0 if not given.
///     to: upper bound, which is left out.
///
/// Examples:
///     >>> torch.empty(3).random_(10).shape
///     torch.Size([3])
#[inplace(overloads((0, 1), (2, 3), (1, 2)))]
pub fn random_(
    input: &Tensor,
    from: Option<i64>,
    #[default(Arg::Missing)] to: Arg,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    let (from, to) = match (from, to) {
        (only, Arg::Missing) => (None, only),
        (from, Arg::None) => (from, None),
        (from, Arg::Int(to)) => (from, Some(to)),
        (from, Arg::Bool(to)) => (from, Some(to.into())),
        _ => return Err(Error::type_error("random_(): argument 'to' (position 2) must be int")),
    };
    draw_over(input, |t| Random::over(t, from, to, generator.clone()))
}

/// Fill the tensor with ones with probability `p`, else zeros.
///
/// Args:
///     p: a number, or a tensor with a probability for each element. Default: `0.5`
///
/// Examples:
///     >>> torch.empty(3).bernoulli_(1.0)
///     tensor([1., 1., 1.])
#[inplace(bernoulli, aten(Tensor, float), overloads((0, 1), (1, 2)))]
pub fn bernoulli_(
    input: &Tensor,
    #[default(Operand::Scalar(Scalar::Float(0.5)))] p: Operand,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| match p {
        Operand::Scalar(p) => Bernoulli2::over(t, p.as_f64(), generator.clone()),
        Operand::Tensor(p) => Bernoulli1::over(t, p, generator.clone()),
    })
}

/// The arguments of `randint`: `high, size`, or `low, high, size`, in order or by name.
pub(super) fn bounds(
    name: &str,
    low: Option<Arg>,
    high: Option<Arg>,
    size: Option<Arg>,
) -> Result<(i64, i64, Ints)> {
    let number = |a: &Arg| match a {
        Arg::Int(n) => Some(*n),
        Arg::Bool(b) => Some(i64::from(*b)),
        _ => None,
    };
    let (low, high, size) = match (low, high, size) {
        (Some(high), Some(size @ Arg::Ints(_)), None) => (Arg::Int(0), high, Some(size)),
        (Some(high), None, size) => (Arg::Int(0), high, size),
        (low, Some(high), size) => (low.unwrap_or(Arg::Int(0)), high, size),
        (None, None, size) => (Arg::Int(0), Arg::Missing, size),
    };
    let size = match size {
        Some(Arg::Ints(size)) => size,
        None if name != "randint" => Ints::new(),
        _ => return Err(Error::type_error(format!("{name}(): argument 'size' must be tuple of ints"))),
    };
    match (number(&low), number(&high)) {
        (Some(low), Some(high)) => Ok((low, high, size)),
        _ => Err(Error::type_error(format!("{name}(): arguments 'low' and 'high' must be int"))),
    }
}

#[primitive(tangent = still)]
impl Bernoulli {
    fn forward(input: &Tensor, p: Option<f64>, generator: Option<Generator>) -> Result<Body> {
        let body = input.body();
        let out = Body::new(body.shape(), body.dtype, body.device())?;
        match p {
            Some(p) => fill_coin(&out, p, generator)?,
            None => fill_coins(&out, &body, &generator)?,
        }
        Ok(out)
    }
    fn d_input(g: V) -> V {
        constant_zero(g)
    }
    fn batch(_b: &Batch, input: &Tensor, p: Option<f64>, generator: Option<Generator>) -> Result<Tensor> {
        let new = |shape: &[usize]| Body::new(shape, DType::F64, input.device());
        let drawn = draw(&input.shape(), new, |body| fill_uniform(body, 0.0, 1.0, generator))?;
        let hit = match p {
            Some(p) => a::lt(&drawn, p)?,
            None => a::lt(&drawn, &shallow(input))?,
        };
        to_dtype(&hit, input.dtype())
    }
}

/// Draw ones and zeros: ones with the probabilities in `input`.
///
/// Args:
///     input: probabilities between 0 and 1.
///     p: one probability for all elements, instead of those in `input`.
///
/// Examples:
///     >>> torch.bernoulli(torch.tensor([0.0, 1.0, 1.0]))
///     tensor([0., 1., 1.])
#[operator(function, method, out(any), overloads((0, 1), (1, 2)), sample = "random")]
pub fn bernoulli(input: &Tensor, p: Option<f64>, #[keyword] generator: Option<Generator>) -> Result<Tensor> {
    Bernoulli::call(input, p, generator)
}

/// A new body with this shape, and the dtype and device of `t`.
fn empty_body_of(
    shape: &[usize],
    t: &Tensor,
    options: TensorOptions,
    format: Option<MemoryFormat>,
) -> Result<Body> {
    if shape == t.shape().as_slice() && !t.is_batched() {
        return empty_body_like(t, options.dtype, options.device, format);
    }
    options.or_those_of(t).body(shape)
}

/// Calls `fill` for every vector along the last dimension of a contiguous body.
fn each_line(body: &Body, fill: impl Fn(&Body) -> Result<()>) -> Result<()> {
    let n = body.shape().last().copied().unwrap_or(0);
    let lines = body.numel().checked_div(n).unwrap_or(0);
    let line = |i: usize| {
        body.with_layout(Layout { offset: body.layout.offset + i * n, ..Layout::contiguous(&[n]) })
    };
    (0..lines).try_for_each(|i| fill(&line(i)))
}

/// A new tensor filled by `fill`, with this dtype or the default one.
fn new_filled_by(
    size: &[usize],
    options: TensorOptions,
    fill: impl FnOnce(&Body) -> Result<()>,
) -> Result<Tensor> {
    wanting(draw(size, |shape| options.body(shape), fill)?, options.requires_grad)
}

/// A new tensor filled by `fill`, with the shape of `input`, and its dtype unless given.
fn made_like(
    input: &Tensor,
    options: TensorOptions,
    format: Option<MemoryFormat>,
    fill: impl FnOnce(&Body) -> Result<()>,
) -> Result<Tensor> {
    let new = |shape: &[usize]| empty_body_of(shape, input, options, format);
    wanting(draw(&input.shape(), new, fill)?, options.requires_grad)
}

/// Return random numbers drawn uniformly from `[0, 1)`.
///
/// Args:
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.rand(2, 3).shape
///     torch.Size([2, 3])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::rand"
    ),
    overloads((1, 6), (0, 5)),
    sample = "random"
)]
pub fn rand(size: Sizes, #[keyword] generator: Option<Generator>, options: TensorOptions) -> Result<Tensor> {
    new_filled_by(&dims_of(&size.0)?, options, |body| fill_uniform(body, 0.0, 1.0, generator))
}

/// Return random numbers drawn from the standard normal distribution.
///
/// Args:
///     dtype: data type of the result; the default dtype if not given.
///
/// Examples:
///     >>> torch.randn(2, 3).shape
///     torch.Size([2, 3])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::randn"
    ),
    overloads((1, 6), (0, 5)),
    sample = "random"
)]
pub fn randn(size: Sizes, #[keyword] generator: Option<Generator>, options: TensorOptions) -> Result<Tensor> {
    new_filled_by(&dims_of(&size.0)?, options, |body| fill_normal(body, 0.0, 1.0, generator))
}

/// Return random integers drawn uniformly from `[low, high)`.
///
/// Called with one number, that is `high`, and `low` is 0.
///
/// Args:
///     low: smallest integer; 0 if not given.
///     high: the integers are less than it.
///     size: shape of the result.
///     dtype: data type of the result; int64 if not given.
///
/// Examples:
///     >>> torch.randint(10, (2, 3)).shape
///     torch.Size([2, 3])
///     >>> torch.randint(3, 4, (2,))
///     tensor([3, 3])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::randint"
    ),
    overloads((2, 7), (1, 6), (3, 8), (2, 7)),
    sample = "random"
)]
pub fn randint(
    low: Option<Arg>,
    high: Option<Arg>,
    size: Option<Arg>,
    #[keyword] generator: Option<Generator>,
    options: TensorOptions,
) -> Result<Tensor> {
    let (low, high, size) = bounds("randint", low, high, size)?;
    let options = options.with_dtype(options.dtype.unwrap_or(DType::I64));
    new_filled_by(&dims_of(&size)?, options, |body| fill_integers(body, low, high, &generator))
}

/// Return random numbers drawn uniformly from `[0, 1)`, with the shape of another tensor.
///
/// Args:
///     input: the tensor whose shape, data type and device are taken.
///
/// Examples:
///     >>> torch.rand_like(torch.zeros(2, 3)).shape
///     torch.Size([2, 3])
#[operator(
    function,
    overloads((1, 7), (0, 6)),
    sample = "random"
)]
pub fn rand_like(
    input: &Tensor,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
    generator: Option<Generator>,
) -> Result<Tensor> {
    made_like(input, options, memory_format, |body| fill_uniform(body, 0.0, 1.0, generator))
}

/// Return random numbers drawn from the standard normal distribution, with the shape of another tensor.
///
/// Args:
///     input: the tensor whose shape, data type and device are taken.
///
/// Examples:
///     >>> torch.randn_like(torch.zeros(2, 3)).shape
///     torch.Size([2, 3])
#[operator(
    function,
    overloads((1, 7), (0, 6)),
    sample = "random"
)]
pub fn randn_like(
    input: &Tensor,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
    generator: Option<Generator>,
) -> Result<Tensor> {
    made_like(input, options, memory_format, |body| fill_normal(body, 0.0, 1.0, generator))
}

/// Return random integers drawn uniformly from `[low, high)`, with the shape of another tensor.
///
/// Called with one number, that is `high`, and `low` is 0.
///
/// Args:
///     input: the tensor whose shape, data type and device are taken.
///     low: smallest integer; 0 if not given.
///     high: the integers are less than it.
///
/// Examples:
///     >>> torch.randint_like(torch.zeros(2, 3), 10).shape
///     torch.Size([2, 3])
#[operator(
    function,
    overloads((3, 9), (2, 8), (2, 8), (1, 7), (2, 8), (1, 7)),
    sample = "random"
)]
pub fn randint_like(
    input: &Tensor,
    low: Option<Arg>,
    high: Option<Arg>,
    #[keyword] options: TensorOptions,
    memory_format: Option<MemoryFormat>,
    generator: Option<Generator>,
) -> Result<Tensor> {
    let (low, high, _) = bounds("randint_like", low, high, None)?;
    made_like(input, options, memory_format, |body| fill_integers(body, low, high, &generator))
}

/// Return a random permutation of the integers from 0 to `n - 1`.
///
/// Args:
///     n: how many integers.
///     dtype: data type of the result; int64 if not given.
///
/// Examples:
///     >>> torch.randperm(5).sort().values
///     tensor([0, 1, 2, 3, 4])
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        called = "aten::randperm"
    ),
    overloads((1, 6), (0, 5)),
    sample = "random"
)]
pub fn randperm(
    n: i64,
    #[keyword] generator: Option<Generator>,
    #[default(DType::I64)] dtype: DType,
    layout: Option<StridedLayout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&[n])?;
    check_countable(n, dtype)?;
    let own = if device.is_none_or(|device| device.is_cpu()) { dtype } else { DType::I64 };
    let line = |body: &Body| {
        fork!(over [body], with [generator], cpu: done(cpu::randperm(&mut stream(&generator).cpu, body.host()?)),
            gpu: crate::gpu::randperm(body.gpu()?, stream(&generator).place(body.numel())))
    };
    let options = TensorOptions { dtype: Some(own), device, requires_grad: false };
    let out = new_filled_by(&shape, options, |body| each_line(body, line))?;
    wanting(to_dtype(&out, dtype)?, requires_grad)
}

/// Draw category indices with probabilities proportional to the weights in each row.
///
/// Args:
///     input: vector of weights, or a matrix with weights in its rows; they need not sum to 1.
///     num_samples: number of draws per row.
///     replacement: whether a category may be drawn several times.
///
/// Examples:
///     >>> torch.multinomial(torch.tensor([0.0, 3.0, 0.0, 1.0]), 2).sort().values
///     tensor([1, 3])
#[operator(
    function,
    method,
    out(message = "multinomial expects Long tensor out, got: {target}", silent),
    sample = "random"
)]
pub fn multinomial(
    input: &Tensor,
    num_samples: i64,
    #[default(false)] replacement: bool,
    #[keyword] generator: Option<Generator>,
) -> Result<Tensor> {
    categorical::for_samples(input, |weights| {
        categorical::multinomial(weights, num_samples, replacement, &generator)
    })
}

/// Rejects a permutation of more integers than the dtype can represent.
fn check_countable(n: i64, dtype: DType) -> Result<()> {
    let most = match dtype {
        DType::Bool | DType::C64 | DType::C128 => {
            return Err(Fault::NoKernel { op: "randperm", dtype }.into());
        }
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::I32 => 1 << 31,
        DType::F16 if n > 2049 => return Err(Error::runtime("n cannot be greater than 2049 for Half type.")),
        DType::F32 if n > (1 << 24) + 1 => {
            return Err(Error::runtime("n cannot be greater than 2^24+1 for Float type."));
        }
        DType::F64 if n > (1 << 53) + 1 => {
            return Err(Error::runtime("n cannot be greater than 2^53+1 for Double type."));
        }
        _ => return Ok(()),
    };
    if n <= most {
        return Ok(());
    }
    Err(Error::runtime(format!("value cannot be converted to type {} without overflow", dtype.c_name())))
}
