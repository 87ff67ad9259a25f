//! Distributions with parameters per element: Poisson, binomial, gamma and Dirichlet.

use super::stream;
use crate::base::{Dims, Reduction};
use crate::cpu::random as cpu;
use crate::operator::bodies;
use crate::operator::primitives::copies;
use crate::operator::primitives::detached::shallow;
use crate::operator::primitives::views::ints;
use crate::operator::row::generator::Generator;
use crate::ops::derivatives::not_in_autograd;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::view::expand;

/// A new contiguous body with the shape, dtype and device of `like`.
fn empty_body(like: &Body) -> Result<Body> {
    Body::new(like.shape(), like.dtype, like.device())
}

fn need(kernel: &'static str, dtype: DType, halves: bool) -> Result<()> {
    let known = matches!(dtype, DType::F32 | DType::F64) || (halves && dtype.is_float());
    if known { Ok(()) } else { Err(Fault::NoKernel { op: kernel, dtype }.into()) }
}

/// Broadcasts operands of the same dtype to the same shape.
fn together<const N: usize>(tensors: [&Tensor; N]) -> Result<[Tensor; N]> {
    let dtype = tensors[0].dtype();
    let mut shape = tensors[0].shape();
    for t in &tensors[1..] {
        if t.dtype() != dtype {
            let (found, expected) = (t.dtype().scalar_name(), dtype.scalar_name());
            return Err(Error::runtime(format!("Found dtype {found} but expected {expected}")));
        }
        shape = crate::base::broadcast(&shape, &t.shape())?;
    }
    let mut wide = tensors.map(shallow);
    for t in &mut wide {
        *t = expand(t, ints(&shape))?;
    }
    Ok(wide)
}

#[primitive(tangent = still, batch = none)]
impl Poisson {
    fn forward(input: &Tensor, #[hidden] generator: Option<Generator>) -> Result<Body> {
        let rate = input.body();
        need("poisson_cpu", rate.dtype, true)?;
        let out = empty_body(&rate)?;
        if out.numel() == 0 {
            return Ok(out);
        }
        let dims: Dims = (0..rate.layout.ndim()).collect();
        if Tensor::new(bodies::reduce(Reduction::Min, &rate, &dims, DType::F64)?).item()?.as_f64() < 0.0 {
            return Err(Error::runtime("invalid Poisson rate, expected rate to be non-negative"));
        }
        fork!(over [out, rate], with [generator], cpu: done(cpu::poisson(&mut stream(&generator).cpu, out.host()?, rate.host()?)),
            gpu: no_shader("poisson", out.dtype))?;
        Ok(out)
    }
    fn d_input(g: V) -> V {
        constant_zero(g)
    }
}

#[primitive(node = "NotImplemented", tangent = fn, batch = none)]
impl Binomial {
    fn forward(count: &Tensor, prob: &Tensor, #[hidden] generator: Option<Generator>) -> Result<Body> {
        let (count, prob) = (count.body(), prob.body());
        need("binomial_cpu", count.dtype, false)?;
        let out = empty_body(&count)?;
        fork!(over [out, count, prob], with [generator],
            cpu: done(cpu::binomial(&mut stream(&generator).cpu, out.host()?, count.host()?, prob.host()?)),
            gpu: no_shader("binomial", out.dtype))?;
        Ok(out)
    }
    fn d_count() -> Result<V> {
        not_in_autograd("binomial")
    }
    fn d_prob() -> Result<V> {
        not_in_autograd("binomial")
    }
    fn tangent() -> Result<Tensor> {
        not_in_autograd("binomial")
    }
}

#[primitive(batch = none)]
impl StandardGamma {
    fn forward(input: &Tensor, #[hidden] generator: Option<Generator>) -> Result<Body> {
        let alpha = input.body();
        need("gamma_cpu", alpha.dtype, false)?;
        let out = empty_body(&alpha)?;
        fork!(over [out, alpha], with [generator], cpu: done(cpu::gamma(&mut stream(&generator).cpu, out.host()?, alpha.host()?)),
            gpu: no_shader("_standard_gamma", out.dtype))?;
        Ok(out)
    }
    fn d_input(g: &Tensor, input: &Tensor, result: &Tensor) -> Result<Tensor> {
        a::mul(g, &_standard_gamma_grad(input, result)?)
    }
}

#[primitive(tangent = fn, batch = none)]
impl StandardGammaGrad {
    fn forward(input: &Tensor, output: &Tensor) -> Result<Body> {
        let (alpha, sample) = (input.body(), output.body());
        need("_standard_gamma_grad_cpu", alpha.dtype, false)?;
        let out = empty_body(&alpha)?;
        fork!(over [out, alpha, sample], with [],
            cpu: done(cpu::gamma_slope(out.host()?, alpha.host()?, sample.host()?)),
            gpu: no_shader("_standard_gamma_grad", out.dtype))?;
        Ok(out)
    }
    fn d_input() -> Result<V> {
        Err(Error::not_implemented("the derivative for '_standard_gamma_grad' is not implemented."))
    }
    fn d_output() -> Result<V> {
        Err(Error::not_implemented("the derivative for '_standard_gamma_grad' is not implemented."))
    }
    fn tangent() -> Result<Tensor> {
        not_in_autograd("_standard_gamma_grad")
    }
}

#[primitive(node = "NotImplemented", tangent = fn, batch = none)]
impl SampleDirichlet {
    fn forward(input: &Tensor, #[hidden] generator: Option<Generator>) -> Result<Body> {
        let alpha = input.body();
        need("dirichlet", alpha.dtype, false)?;
        let wide = copies::to_dtype(&shallow(input), DType::F64)?;
        let drawn = StandardGamma::call(&wide, generator)?;
        let shares = a::div(&drawn, &reduce::sum(&drawn, Some(smallvec::smallvec![-1]), true, None)?)?;
        // Clamp to the open interval from 0 to 1.
        let single = alpha.dtype == DType::F32;
        let least = if single { f32::MIN_POSITIVE.into() } else { f64::MIN_POSITIVE };
        let most = if single { (1.0 - f32::EPSILON / 2.0).into() } else { 1.0 - f64::EPSILON / 2.0 };
        let inside = a::minimum(&a::maximum(&shares, least)?, most)?;
        Ok(copies::to_dtype(&inside, alpha.dtype)?.body().clone())
    }
    fn d_input() -> Result<V> {
        not_in_autograd("_sample_dirichlet")
    }
    fn tangent() -> Result<Tensor> {
        not_in_autograd("_sample_dirichlet")
    }
}

#[primitive(node = "NotImplemented", tangent = fn, batch = none)]
impl DirichletGrad {
    fn forward(x: &Tensor, alpha: &Tensor, total: &Tensor) -> Result<Body> {
        let (x, alpha, total) = (x.body(), alpha.body(), total.body());
        need("_dirichlet_grad_cpu", x.dtype, false)?;
        let out = empty_body(&x)?;
        fork!(over [out, x, alpha, total], with [],
            cpu: done(cpu::dirichlet_slope(out.host()?, x.host()?, alpha.host()?, total.host()?)),
            gpu: no_shader("_dirichlet_grad", out.dtype))?;
        Ok(out)
    }
    fn derivative(wants: [bool; 3]) -> Result<[Option<V>; 3]> {
        let _ = wants;
        not_in_autograd("_dirichlet_grad")
    }
    fn tangent() -> Result<Tensor> {
        not_in_autograd("_dirichlet_grad")
    }
}

/// Draw from Poisson distributions with the rates in `input`.
///
/// Args:
///     input: the rates, which are not negative.
///
/// Examples:
///     >>> torch.poisson(torch.full((2, 3), 4.0)).shape
///     torch.Size([2, 3])
#[operator(function, sample = "random")]
pub fn poisson(input: &Tensor, generator: Option<Generator>) -> Result<Tensor> {
    Poisson::call(input, generator)
}

/// Draw from binomial distributions: the number of successes of independent trials.
///
/// Args:
///     count: numbers of trials.
///     prob: probabilities of success, broadcast with `count`.
///
/// Examples:
///     >>> torch.binomial(torch.tensor([10.0, 10.0]), torch.tensor([0.0, 1.0]))
///     tensor([ 0., 10.])
#[operator(function, sample = "random")]
pub fn binomial(count: &Tensor, prob: &Tensor, generator: Option<Generator>) -> Result<Tensor> {
    for (name, t) in [("count", count), ("prob", prob)] {
        if !t.dtype().is_float() {
            return Err(Error::value(format!(
                "binomial only supports floating-point dtypes for {name}, got: {}",
                t.dtype().scalar_name()
            )));
        }
    }
    let [count, prob] = together([count, prob])?;
    Binomial::call(&count, &prob, generator)
}

/// Draw from gamma distributions with the given shape parameters and rate 1.
#[operator(function, sample = "random")]
pub fn _standard_gamma(input: &Tensor, generator: Option<Generator>) -> Result<Tensor> {
    StandardGamma::call(input, generator)
}

/// Compute the derivative of `output`, drawn by `_standard_gamma`, with respect to the shape parameter.
#[operator(function, sample = "random")]
pub fn _standard_gamma_grad(input: &Tensor, output: &Tensor) -> Result<Tensor> {
    let [input, output] = together([input, output])?;
    StandardGammaGrad::call(&input, &output)
}

/// Draw from Dirichlet distributions with concentrations along the last dimension of `input`.
#[operator(function, sample = "random")]
pub fn _sample_dirichlet(input: &Tensor, generator: Option<Generator>) -> Result<Tensor> {
    SampleDirichlet::call(input, generator)
}

/// Compute the derivative of a share `x` with respect to its concentration, divided by `1 - x`.
#[operator(function, sample = "random")]
pub fn _dirichlet_grad(x: &Tensor, alpha: &Tensor, total: &Tensor) -> Result<Tensor> {
    let [x, alpha, total] = together([x, alpha, total])?;
    DirichletGrad::call(&x, &alpha, &total)
}
