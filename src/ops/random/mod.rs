//! Random numbers: on the CPU PyTorch's own, on the GPU from a counter, so that they depend on the seed alone.

mod choice;
mod families;
pub mod means;

use self::means::NORMAL;
use crate::base::MemoryFormat;
use crate::cpu::random as cpu;
use crate::operator::dtype_checks::improbable;
use crate::operator::pointwise::check_writable;
use crate::operator::prelude::*;
use crate::ops::creation::create::{default_dtype, shallow, to_dtype, zeros};
use crate::ops::creation::factories::{room_like, wanting};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::shape::view::{dims_of, expand, ints};
use crate::transforms::vmap::{choose, draw, draw_over};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A stream of random numbers that its owner may seed, save and restore.
#[derive(Clone)]
pub struct Generator {
    stream: Arc<Mutex<Stream>>,
    pub device: Device,
}

#[derive(Clone)]
pub struct Stream {
    pub cpu: cpu::Generator,
    /// The place in the GPU's stream: a seed, and how many blocks were drawn.
    seed: u64,
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    drawn: u64,
}

impl Generator {
    pub fn new(device: Device) -> Generator {
        let stream = Stream { cpu: cpu::Generator::default(), seed: cpu::DEFAULT_SEED, drawn: 0 };
        Generator { stream: Arc::new(Mutex::new(stream)), device }
    }

    /// Another one in the same state.
    pub fn apart(&self) -> Generator {
        Generator { stream: Arc::new(Mutex::new(self.stream().clone())), device: self.device }
    }

    /// The generator of operators that are given none.
    pub fn global() -> &'static Generator {
        static GLOBAL: OnceLock<Generator> = OnceLock::new();
        GLOBAL.get_or_init(|| Generator::new(Device::Cpu))
    }

    pub fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream)
    }
}

impl Stream {
    pub fn manual_seed(&mut self, seed: u64) {
        self.cpu.manual_seed(seed);
        (self.seed, self.drawn) = (seed, 0);
    }

    /// Seeds with a number that nobody can foresee.
    pub fn seed(&mut self) -> u64 {
        let seed = self.cpu.seed();
        (self.seed, self.drawn) = (seed, 0);
        seed
    }

    /// The place in the GPU's stream: a seed, and how many blocks were drawn.
    pub fn gpu_state(&self) -> (u64, u64) {
        (self.seed, self.drawn)
    }

    pub fn set_gpu_state(&mut self, seed: u64, drawn: u64) {
        (self.seed, self.drawn) = (seed, drawn);
    }

    /// Where `n` numbers for the GPU are; the next ones come after them.
    #[cfg(feature = "gpu")]
    fn place(&mut self, n: usize) -> crate::gpu::Draw {
        let draw = crate::gpu::Draw { seed: self.seed, offset: self.drawn };
        self.drawn = self.drawn.wrapping_add(crate::gpu::Draw::blocks(n));
        draw
    }
}

fn stream(generator: &Option<Generator>) -> MutexGuard<'_, Stream> {
    generator.as_ref().unwrap_or(Generator::global()).stream()
}

/// Refuses whole numbers to a distribution that has none.
fn need_continuous(distribution: &str, body: &Body, dtype: &str) -> Result<()> {
    if body.dtype.is_float() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{distribution} distribution is a continuous probability distribution. dtype must be a floating point but you \
         specified {dtype}"
    )))
}

fn need_float(op: &'static str, body: &Body) -> Result<()> {
    if body.dtype.is_float() { Ok(()) } else { Err(Fault::NoKernel { op, dtype: body.dtype }.into()) }
}

/// Refuses a bound that the dtype cannot hold, by C's name for it.
fn fits(name: &str, value: i64, dtype: DType) -> Result<()> {
    let (low, high, c_name) = match dtype {
        DType::Bool => (0, 1, "bool"),
        DType::U8 => (0, 255, "unsigned char"),
        DType::I8 => (-128, 127, "signed char"),
        DType::I16 => (-32_768, 32_767, "short"),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX), "int"),
        _ => return Ok(()),
    };
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(Error::runtime(format!("{name} is out of bounds for {c_name}")))
    }
}

/// Uniform random numbers, from `from` to just below `to`.
pub fn fill_uniform(body: &Body, from: f64, to: f64, generator: Option<Generator>) -> Result<()> {
    if body.dtype.is_complex() {
        return fill_uniform(&body.as_parts(), from, to, generator);
    }
    need_float("check_uniform_bounds", body)?;
    if from > to {
        return Err(Error::runtime(format!(
            "uniform_ expects to return a [from, to) range, but found from={from} > to={to}"
        )));
    }
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::uniform(&mut s.cpu, body.host()?, from, to)),
        gpu: crate::gpu::uniform(body.gpu()?, s.place(body.numel()), from, to))
}

/// Normally distributed random numbers.
pub fn fill_normal(body: &Body, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    if std < 0.0 || std.is_nan() {
        return Err(Error::runtime(format!("normal expects std >= 0.0, but found std {std}")));
    }
    if body.dtype.is_complex() {
        return complex_normal(body, mean, std, generator);
    }
    need_float("normal_kernel_cpu", body)?;
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::normal(&mut s.cpu, body.host()?, mean, std)),
        gpu: crate::gpu::normal(body.gpu()?, s.place(body.numel()), mean, std))
}

/// Exponentially distributed random numbers with rate `lambd`.
pub fn fill_exponential(body: &Body, lambd: f64, generator: Option<Generator>) -> Result<()> {
    if lambd <= 0.0 || lambd.is_nan() {
        return Err(Error::runtime(format!("exponential_ expects lambda > 0.0, but found lambda={lambd}")));
    }
    need_continuous("Exponential", body, body.dtype.scalar_name())?;
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::exponential(&mut s.cpu, body.host()?, lambd)),
        gpu: crate::gpu::exponential(body.gpu()?, s.place(body.numel()), lambd))
}

/// How many trials of probability `p` the first success takes.
pub fn fill_geometric(body: &Body, p: f64, generator: Option<Generator>) -> Result<()> {
    if !(p > 0.0 && p < 1.0) {
        return Err(Error::runtime(format!("geometric_ expects p to be in (0, 1), but got p={p}")));
    }
    crate::operator::dtype_checks::order("geometric_cpu", body.dtype)?;
    if body.dtype == DType::Bool {
        return Err(Fault::NoKernel { op: "geometric_cpu", dtype: DType::Bool }.into());
    }
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::geometric(&mut s.cpu, body.host()?, p)),
        gpu: crate::gpu::geometric(body.gpu()?, s.place(body.numel()), p))
}

/// Random numbers of the Cauchy distribution.
pub fn fill_cauchy(body: &Body, median: f64, sigma: f64, generator: Option<Generator>) -> Result<()> {
    if sigma <= 0.0 {
        return Err(Error::runtime(format!("cauchy_ expects sigma > 0.0, but found sigma={sigma}")));
    }
    need_continuous("Cauchy", body, body.dtype.c_name())?;
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::cauchy(&mut s.cpu, body.host()?, median, sigma)),
        gpu: crate::gpu::cauchy(body.gpu()?, s.place(body.numel()), median, sigma))
}

/// Random numbers whose logarithm is normally distributed.
pub fn fill_log_normal(body: &Body, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    if std <= 0.0 {
        return Err(Error::runtime(format!("log_normal_ expects std > 0.0, but found std={std}")));
    }
    need_float("log_normal_cpu", body)?;
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::log_normal(&mut s.cpu, body.host()?, mean, std)),
        gpu: crate::gpu::log_normal(body.gpu()?, s.place(body.numel()), mean, std))
}

/// Random whole numbers: below `to`, from `from` to below `to`, or all that the dtype holds.
pub fn fill_random(
    body: &Body,
    from: Option<i64>,
    to: Option<i64>,
    generator: Option<Generator>,
) -> Result<()> {
    match (from, to) {
        (None, None) => fill_whole_range(body, &generator),
        (Some(to), None) => fill_integers(body, 0, to, &generator),
        (from, Some(to)) => fill_integers(body, from.unwrap_or(0), to, &generator),
    }
}

/// What writes random numbers over a tensor. No gradient comes through.
macro_rules! drawn {
    ($($Name:ident = $fill:ident($($p:ident: $t:ty),*);)*) => { $(
        #[primitive(tangent = still, batch = none)]
        impl $Name {
            fn write(input: &Body, $($p: $t),*) -> Result<()> {
                check_writable(input)?;
                $fill(input, $($p),*)
            }
            fn d_input(g: V) -> V {
                blank(g)
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
        blank(g)
    }
    fn d_p(at: Meta) -> Result<Tensor> {
        zeros(&at.shape, at.dtype, at.device)
    }
}

/// Uniform random numbers, from `from` to just below `to`.
#[inplace]
pub fn uniform_(
    input: &Tensor,
    #[default(0.0)] from: f64,
    #[default(1.0)] to: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Uniform::over(t, from, to, generator.clone()))
}

/// Normally distributed random numbers.
#[inplace(normal, overloads((1, 2), (0, 2), (1, 2), (2, 8)))]
pub fn normal_(
    input: &Tensor,
    #[default(0.0)] mean: f64,
    #[default(1.0)] std: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Normal::over(t, mean, std, generator.clone()))
}

/// Exponentially distributed random numbers with rate `lambd`.
#[inplace]
pub fn exponential_(
    input: &Tensor,
    #[default(1.0)] lambd: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Exponential::over(t, lambd, generator.clone()))
}

/// How many trials of probability `p` the first success takes.
#[inplace]
pub fn geometric_(input: &Tensor, p: f64, #[keyword] generator: Option<Generator>) -> Result<()> {
    draw_over(input, |t| Geometric::over(t, p, generator.clone()))
}

/// Random numbers of the Cauchy distribution.
#[inplace]
pub fn cauchy_(
    input: &Tensor,
    #[default(0.0)] median: f64,
    #[default(1.0)] sigma: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Cauchy::over(t, median, sigma, generator.clone()))
}

/// Random numbers whose logarithm is normally distributed.
#[inplace]
pub fn log_normal_(
    input: &Tensor,
    #[default(1.0)] mean: f64,
    #[default(2.0)] std: f64,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| LogNormal::over(t, mean, std, generator.clone()))
}

/// Random whole numbers: below `to`, from `from` to below `to`, or all that the dtype holds.
#[inplace(overloads((0, 1), (2, 3), (1, 2)))]
pub fn random_(
    input: &Tensor,
    from: Option<i64>,
    to: Option<i64>,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| Random::over(t, from, to, generator.clone()))
}

/// Ones with probability `p` (a number, or one for each element), else zeros.
#[inplace(bernoulli, aten(Tensor, float), overloads((0, 1), (1, 2)))]
pub fn bernoulli_(
    input: &Tensor,
    #[default(Value::Scalar(Scalar::Float(0.5)))] p: Value,
    #[keyword] generator: Option<Generator>,
) -> Result<()> {
    draw_over(input, |t| match &p {
        Value::Scalar(p) => Bernoulli2::over(t, p.as_f64(), generator.clone()),
        Value::Tensor(p) => Bernoulli1::over(t, p, generator.clone()),
    })
}

/// The variance is shared by real and imaginary parts; a mean would be real.
fn complex_normal(body: &Body, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    fill_normal(&body.as_parts(), 0.0, std * std::f64::consts::FRAC_1_SQRT_2, generator)?;
    if mean == 0.0 {
        return Ok(());
    }
    let shifted = crate::ops::reduction::reduce::quietly(|| a::add(&Tensor::new(body.clone()), mean))?;
    crate::operator::kernel::copy(body, &shifted)
}

fn fill_integers(body: &Body, low: i64, high: i64, generator: &Option<Generator>) -> Result<()> {
    if body.dtype.is_complex() {
        return Err(Error::runtime(
            "check_random_bounds handles only integral, floating-point and boolean types",
        ));
    }
    if low >= high {
        return Err(Error::runtime(format!(
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )));
    }
    fits("from", low, body.dtype)?;
    fits("to - 1", high - 1, body.dtype)?;
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(generator);
    fork!([body], cpu: done(cpu::randint(&mut s.cpu, body.host()?, low, high)),
        gpu: crate::gpu::randint(body.gpu()?, s.place(body.numel()), low, high))
}

fn fill_whole_range(body: &Body, generator: &Option<Generator>) -> Result<()> {
    crate::operator::dtype_checks::order("random_kernel_cpu", body.dtype)?;
    let high = match body.dtype {
        DType::Bool => 2,
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::I32 => 1 << 31,
        DType::I64 => i64::MAX,
        DType::F16 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F64 | DType::C64 | DType::C128 => (1 << 53) + 1,
    };
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(generator);
    fork!([body], cpu: { let _: i64 = high; done(cpu::random(&mut s.cpu, body.host()?)) },
        gpu: crate::gpu::randint(body.gpu()?, s.place(body.numel()), 0, high))
}

/// Ones with probability `p`.
pub fn fill_coin(body: &Body, p: f64, generator: Option<Generator>) -> Result<()> {
    crate::operator::dtype_checks::order("bernoulli_scalar_cpu_", body.dtype)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")));
    }
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(&generator);
    fork!([body], cpu: done(cpu::bernoulli(&mut s.cpu, body.host()?, p)),
        gpu: crate::gpu::bernoulli(body.gpu()?, s.place(body.numel()), crate::gpu::Source::Scalar(Scalar::Float(p))))
}

/// Ones with the probabilities `p`, which has the shape of `body`.
fn fill_coins(body: &Body, p: &Body, generator: &Option<Generator>) -> Result<()> {
    need_float("bernoulli_tensor_cpu_p_", p)?;
    if body.numel() == 0 {
        return Ok(());
    }
    improbable("bernoulli", p, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.")?;
    let mut s = stream(generator);
    fork!([body, p], cpu: done(cpu::bernoulli_tensor(&mut s.cpu, body.host()?, p.host()?)),
        gpu: crate::gpu::bernoulli(body.gpu()?, s.place(body.numel()), crate::gpu::Source::View(p.gpu()?)))
}

/// What `randint` was called with: `high, size`, or `low, high, size`, in order or by name.
fn bounds(name: &str, low: Option<Arg>, high: Option<Arg>, size: Option<Arg>) -> Result<(i64, i64, Ints)> {
    let number = |a: &Arg| a.number().map(Scalar::as_i64);
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
        blank(g)
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

/// Ones with the probabilities in `input` (or `p` everywhere), else zeros.
#[operator(function, method, out, overloads((0, 1), (1, 2)), sample = "random")]
pub fn bernoulli(input: &Tensor, p: Option<f64>, #[keyword] generator: Option<Generator>) -> Result<Tensor> {
    Bernoulli::call(input, p, generator)
}

/// Room of this shape that takes after `t`.
fn room_of(
    shape: &[usize],
    t: &Tensor,
    dtype: Option<DType>,
    device: Option<Device>,
    format: Option<MemoryFormat>,
) -> Result<Body> {
    if shape == t.shape().as_slice() && !t.is_batched() {
        return room_like(t, dtype, device, format);
    }
    Body::new(shape, dtype.unwrap_or(t.dtype()), device.unwrap_or(t.device()))
}

/// Calls `fill` for every vector along the last dimension of a dense body.
fn each_line(body: &Body, fill: impl Fn(&Body) -> Result<()>) -> Result<()> {
    let n = body.shape().last().copied().unwrap_or(0);
    let lines = body.numel().checked_div(n).unwrap_or(0);
    let line = |i: usize| {
        body.with_layout(Layout { offset: body.layout.offset + i * n, ..Layout::contiguous(&[n]) })
    };
    (0..lines).try_for_each(|i| fill(&line(i)))
}

/// A new tensor that `fill` draws, of this dtype (by default the default one).
fn made(
    size: &[usize],
    (dtype, device): (Option<DType>, Option<Device>),
    requires_grad: bool,
    fill: impl FnOnce(&Body) -> Result<()>,
) -> Result<Tensor> {
    let (dtype, device) = (dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu));
    wanting(draw(size, |shape| Body::new(shape, dtype, device), fill)?, requires_grad)
}

/// The same, like another tensor.
fn made_like(
    input: &Tensor,
    (dtype, device): (Option<DType>, Option<Device>),
    format: Option<MemoryFormat>,
    requires_grad: bool,
    fill: impl FnOnce(&Body) -> Result<()>,
) -> Result<Tensor> {
    let new = |shape: &[usize]| room_of(shape, input, dtype, device, format);
    wanting(draw(&input.shape(), new, fill)?, requires_grad)
}

/// Uniform random numbers between 0 and 1.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        room
    ),
    overloads((1, 6), (0, 5)),
    sample = "random"
)]
pub fn rand(
    size: Sizes,
    #[keyword] generator: Option<Generator>,
    dtype: Option<DType>,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    made(&dims_of(&size.0)?, (dtype, device), requires_grad, |body| fill_uniform(body, 0.0, 1.0, generator))
}

/// Random numbers of the standard normal distribution.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        room
    ),
    overloads((1, 6), (0, 5)),
    sample = "random"
)]
pub fn randn(
    size: Sizes,
    #[keyword] generator: Option<Generator>,
    dtype: Option<DType>,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    made(&dims_of(&size.0)?, (dtype, device), requires_grad, |body| fill_normal(body, 0.0, 1.0, generator))
}

/// Random whole numbers from `low` (0 when left out) to below `high`.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        room
    ),
    overloads((2, 7), (1, 6), (3, 8), (2, 7)),
    sample = "random"
)]
pub fn randint(
    low: Option<Arg>,
    high: Option<Arg>,
    size: Option<Arg>,
    #[keyword] generator: Option<Generator>,
    dtype: Option<DType>,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let (low, high, size) = bounds("randint", low, high, size)?;
    let dtype = Some(dtype.unwrap_or(DType::I64));
    made(&dims_of(&size)?, (dtype, device), requires_grad, |body| fill_integers(body, low, high, &generator))
}

/// Uniform random numbers between 0 and 1, like another tensor.
#[operator(
    function,
    overloads((1, 7), (0, 6)),
    sample = "random"
)]
pub fn rand_like(
    input: &Tensor,
    #[keyword] dtype: Option<DType>,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
    generator: Option<Generator>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    made_like(input, (dtype, device), memory_format, requires_grad, |body| {
        fill_uniform(body, 0.0, 1.0, generator)
    })
}

/// Random numbers of the standard normal distribution, like another tensor.
#[operator(
    function,
    overloads((1, 7), (0, 6)),
    sample = "random"
)]
pub fn randn_like(
    input: &Tensor,
    #[keyword] dtype: Option<DType>,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
    generator: Option<Generator>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    made_like(input, (dtype, device), memory_format, requires_grad, |body| {
        fill_normal(body, 0.0, 1.0, generator)
    })
}

/// Random whole numbers, like another tensor.
#[operator(
    function,
    overloads((3, 9), (2, 8), (2, 8), (1, 7), (2, 8), (1, 7)),
    sample = "random"
)]
pub fn randint_like(
    input: &Tensor,
    low: Option<Arg>,
    high: Option<Arg>,
    #[keyword] dtype: Option<DType>,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
    memory_format: Option<MemoryFormat>,
    generator: Option<Generator>,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let (low, high, _) = bounds("randint_like", low, high, None)?;
    made_like(input, (dtype, device), memory_format, requires_grad, |body| {
        fill_integers(body, low, high, &generator)
    })
}

/// The numbers below `n` in random order.
#[operator(
    function,
    out(
        message = "dtype {result} does not match dtype of out parameter ({target})",
        computes,
        silent,
        room
    ),
    overloads((1, 6), (0, 5)),
    sample = "random"
)]
pub fn randperm(
    n: i64,
    #[keyword] generator: Option<Generator>,
    #[default(DType::I64)] dtype: DType,
    layout: Option<String>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    #[default(false)] requires_grad: bool,
) -> Result<Tensor> {
    let _ = (layout, pin_memory);
    let shape = dims_of(&[n])?;
    check_countable(n, dtype)?;
    let own = if device.is_none_or(|device| device.is_cpu()) { dtype } else { DType::I64 };
    let line = |body: &Body| {
        let mut s = stream(&generator);
        fork!([body], cpu: done(cpu::randperm(&mut s.cpu, body.host()?)),
            gpu: crate::gpu::randperm(body.gpu()?, s.place(body.numel())))
    };
    let out = made(&shape, (Some(own), device), false, |body| each_line(body, line))?;
    wanting(to_dtype(&out, dtype)?, requires_grad)
}

/// Numbers of categories, drawn by their weights in the last dimension.
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
    choose(input, |weights| choice::multinomial(weights, num_samples, replacement, &generator))
}

/// Refuses a permutation of more numbers than the dtype tells apart.
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
