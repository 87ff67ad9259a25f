//! Random numbers: on the CPU PyTorch's own, on the GPU from a counter, so that they depend on the seed alone.

use super::batch::draw;
use super::create::default_dtype;
use super::creation::{room_like, wanting};
use super::kernel::{done, fork};
use super::macros::{compose, ops};
use super::refuse::improbable;
use super::row::{Arg, Ints, Sizes, Value};
use super::view::dims_of;
use super::write::writes;
use crate::base::{DType, Device, Error, Fault, Layout, MemoryFormat, Result, Scalar};
use crate::cpu::random as cpu;
use crate::tensor::{Body, Tensor};
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

writes! { "random";
    /// Uniform random numbers, from `from` to just below `to`.
    "UniformBackward0" fn uniform(body, from: f64 = 0.0, to: f64 = 1.0, generator: Option<Generator> = None) {
        if body.dtype.is_complex() {
            return uniform(&body.as_parts(), from, to, generator);
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
    "NormalBackward0" fn normal(body, mean: f64 = 0.0, std: f64 = 1.0, generator: Option<Generator> = None) {
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
    "ExponentialBackward0" fn exponential(body, lambd: f64 = 1.0, generator: Option<Generator> = None) {
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
    "GeometricBackward0" fn geometric(body, p: f64, generator: Option<Generator> = None) {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::runtime(format!("geometric_ expects p to be in (0, 1), but got p={p}")));
        }
        crate::ops::refuse::order("geometric_cpu", body.dtype)?;
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
    "CauchyBackward0" fn cauchy(body, median: f64 = 0.0, sigma: f64 = 1.0, generator: Option<Generator> = None) {
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
    "LogNormalBackward0" fn log_normal(body, mean: f64 = 1.0, std: f64 = 2.0, generator: Option<Generator> = None) {
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
    "RandomBackward0" fn random(body, from: Option<i64> = None, to: Option<i64> = None, generator: Option<Generator> = None) {
        match (from, to) {
            (None, None) => whole_range(body, &generator),
            (Some(to), None) => integers(body, 0, to, &generator),
            (from, Some(to)) => integers(body, from.unwrap_or(0), to, &generator),
        }
    }
    /// Ones with probability `p` (a number, or one for each element), else zeros.
    "BernoulliBackward2" fn bernoulli_(body, p: Value = Value::Scalar(Scalar::Float(0.5)), generator: Option<Generator> = None) {
        match p {
            Value::Scalar(p) => coin(body, p.as_f64(), &generator),
            Value::Tensor(p) => {
                let wide = crate::ops::view::expand(&crate::ops::create::shallow(&p), crate::ops::view::ints(body.shape()))?;
                let given = wide.body().clone();
                coins(body, &given, &generator)
            }
        }
    }
}

/// The variance is shared by real and imaginary parts; a mean would be real.
fn complex_normal(body: &Body, mean: f64, std: f64, generator: Option<Generator>) -> Result<()> {
    normal(&body.as_parts(), 0.0, std * std::f64::consts::FRAC_1_SQRT_2, generator)?;
    if mean == 0.0 {
        return Ok(());
    }
    let shifted =
        crate::ops::reduce::quietly(|| crate::ops::arithmetic::add(&Tensor::new(body.clone()), mean))?;
    crate::ops::kernel::copy(body, &shifted)
}

fn integers(body: &Body, low: i64, high: i64, generator: &Option<Generator>) -> Result<()> {
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

fn whole_range(body: &Body, generator: &Option<Generator>) -> Result<()> {
    crate::ops::refuse::order("random_kernel_cpu", body.dtype)?;
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
pub fn coin(body: &Body, p: f64, generator: &Option<Generator>) -> Result<()> {
    crate::ops::refuse::order("bernoulli_scalar_cpu_", body.dtype)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::runtime(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")));
    }
    if body.numel() == 0 {
        return Ok(());
    }
    let mut s = stream(generator);
    fork!([body], cpu: done(cpu::bernoulli(&mut s.cpu, body.host()?, p)),
        gpu: crate::gpu::bernoulli(body.gpu()?, s.place(body.numel()), crate::gpu::Source::Scalar(Scalar::Float(p))))
}

/// Ones with the probabilities `p`, which has the shape of `body`.
fn coins(body: &Body, p: &Body, generator: &Option<Generator>) -> Result<()> {
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

mod more {
    use super::*;
    ops! { "random";
        /// Ones with the probabilities in `input` (or `p` everywhere), else zeros.
        [out, still] fn bernoulli(input; p: Option<f64> = None, generator: Option<Generator> = None) -> y {
            let body = input.body();
            let out = Body::new(body.shape(), body.dtype, body.device())?;
            match p {
                Some(p) => coin(&out, p, &generator)?,
                None => coins(&out, &body, &generator)?,
            }
            Ok(out)
        }
        input: |g| g * 0.0;
    }
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

mod drawn {
    use super::*;
    compose! { "random";
        /// Uniform random numbers between 0 and 1.
        [no_method, out] fn rand(size: Sizes, generator: Option<Generator> = None, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false) -> Tensor {
            let _ = (layout, pin_memory);
            let (dtype, device) = (dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu));
            let new = |shape: &[usize]| Body::new(shape, dtype, device);
            wanting(draw(&dims_of(&size.0)?, new, |body| super::uniform(body, 0.0, 1.0, generator))?, requires_grad)
        }
        /// Random numbers of the standard normal distribution.
        [no_method, out] fn randn(size: Sizes, generator: Option<Generator> = None, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false) -> Tensor {
            let _ = (layout, pin_memory);
            let (dtype, device) = (dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu));
            let new = |shape: &[usize]| Body::new(shape, dtype, device);
            wanting(draw(&dims_of(&size.0)?, new, |body| super::normal(body, 0.0, 1.0, generator))?, requires_grad)
        }
        /// Random whole numbers from `low` (0 when left out) to below `high`.
        [no_method, out] fn randint(low: Option<Arg> = None, high: Option<Arg> = None, size: Option<Arg> = None, generator: Option<Generator> = None, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false) -> Tensor {
            let _ = (layout, pin_memory);
            let (low, high, size) = bounds("randint", low, high, size)?;
            let (dtype, device) = (dtype.unwrap_or(DType::I64), device.unwrap_or(Device::Cpu));
            let new = |shape: &[usize]| Body::new(shape, dtype, device);
            wanting(draw(&dims_of(&size)?, new, |body| integers(body, low, high, &generator))?, requires_grad)
        }
        /// Uniform random numbers between 0 and 1, like another tensor.
        [no_method] fn rand_like(input: Tensor, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false, memory_format: Option<MemoryFormat> = None, generator: Option<Generator> = None) -> Tensor {
            let _ = (layout, pin_memory);
            let new = |shape: &[usize]| room_of(shape, &input, dtype, device, memory_format);
            wanting(draw(&input.shape(), new, |body| super::uniform(body, 0.0, 1.0, generator))?, requires_grad)
        }
        /// Random numbers of the standard normal distribution, like another tensor.
        [no_method] fn randn_like(input: Tensor, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false, memory_format: Option<MemoryFormat> = None, generator: Option<Generator> = None) -> Tensor {
            let _ = (layout, pin_memory);
            let new = |shape: &[usize]| room_of(shape, &input, dtype, device, memory_format);
            wanting(draw(&input.shape(), new, |body| super::normal(body, 0.0, 1.0, generator))?, requires_grad)
        }
        /// Random whole numbers, like another tensor.
        [no_method] fn randint_like(input: Tensor, low: Option<Arg> = None, high: Option<Arg> = None, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false, memory_format: Option<MemoryFormat> = None, generator: Option<Generator> = None) -> Tensor {
            let _ = (layout, pin_memory);
            let (low, high, _) = bounds("randint_like", low, high, None)?;
            let new = |shape: &[usize]| room_of(shape, &input, dtype, device, memory_format);
            wanting(draw(&input.shape(), new, |body| integers(body, low, high, &generator))?, requires_grad)
        }
        /// The numbers below `n` in random order.
        [no_method, out] fn randperm(n: i64, generator: Option<Generator> = None, dtype: DType = DType::I64, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false) -> Tensor {
            let _ = (layout, pin_memory);
            let shape = crate::ops::view::dims_of(&[n])?;
            check_countable(n, dtype)?;
            let device = device.unwrap_or(Device::Cpu);
            let new = |shape: &[usize]| Body::new(shape, if device.is_cpu() { dtype } else { DType::I64 }, device);
            let out = draw(&shape, new, |body| each_line(body, |body| {
                let mut s = stream(&generator);
                fork!([body], cpu: done(cpu::randperm(&mut s.cpu, body.host()?)),
                    gpu: crate::gpu::randperm(body.gpu()?, s.place(body.numel())))
            }))?;
            wanting(crate::ops::create::to_dtype(&out, dtype)?, requires_grad)
        }
        /// Numbers of categories, drawn by their weights in the last dimension.
        [out] fn multinomial(input: Tensor, num_samples: i64, replacement: bool = false, generator: Option<Generator> = None) -> Tensor {
            crate::ops::batch::choose(&input, |weights| super::choice::multinomial(weights, num_samples, replacement, &generator))
        }
    }
}
mod choice;

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
pub mod means;
pub use drawn::COMPOSED;
pub use more::{ROWS, bernoulli};
