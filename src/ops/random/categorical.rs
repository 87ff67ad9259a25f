//! `multinomial`: draws categories by their weights.

use crate::base::{DType, Error, Reduction, Result, Scalar};
use crate::cpu::random as cpu;
use crate::operator::batch::randomness::own_draws;
use crate::operator::bodies::conj_neg;
use crate::operator::bodies::{self, fork};
use crate::operator::primitives::{copies, views};
use crate::operator::row::generator::Generator;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::shape::slices;
use crate::tensor::{Body, Tensor, mode};

fn refuse(message: &str) -> Result<Tensor> {
    Err(Error::runtime(message))
}

fn check(weights: &Tensor, count: i64, replacement: bool) -> Result<()> {
    let shape = weights.shape();
    let categories = shape.last().copied().unwrap_or(0);
    if shape.is_empty() || shape.len() > 2 {
        refuse("prob_dist must be 1 or 2 dim")?;
    }
    if !weights.dtype().is_float() {
        return Err(Error::runtime(format!(
            "multinomial only supports floating-point dtypes for input, got: {}",
            weights.dtype().scalar_name()
        )));
    }
    if count <= 0 {
        refuse("cannot sample n_sample <= 0 samples")?;
    }
    if !replacement && count as usize > categories {
        refuse("cannot sample n_sample > prob_dist.size(-1) samples without replacement")?;
    }
    if categories > 1 << 24 {
        refuse("number of categories cannot exceed 2^24")?;
    }
    if weights.numel() > 0 {
        let (body, several) = (&conj_neg::values(&weights.body())?, replacement && count > 1);
        fork!(over [body], with [several], cpu: check_extremes(cpu::extremes(body.host()?), several), gpu: check_extremes(gpu_extremes(body)?, several))?;
    }
    Ok(())
}

/// Checks the least and the largest weight, and the least sum of a row.
fn check_extremes([least, most, sum]: [f64; 3], several: bool) -> Result<()> {
    let message = if !(least >= 0.0 && most.is_finite()) {
        match (several, least >= 0.0) {
            (false, _) => "probability tensor contains either `inf`, `nan` or element < 0",
            (true, false) => "invalid multinomial distribution (encountering probability entry < 0)",
            (true, true) => {
                "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
            }
        }
    } else if sum <= 0.0 {
        "invalid multinomial distribution (sum of probabilities <= 0)"
    } else {
        return Ok(());
    };
    Err(Error::runtime(message))
}

/// The least and the largest weight, and the least sum of a row, read in one transfer.
#[cfg(feature = "gpu")]
fn gpu_extremes(weights: &Body) -> Result<[f64; 3]> {
    use crate::base::{Device, Dims};
    use crate::ops::reduction::reduce;
    let weights = &Tensor::new(weights.clone());
    let fold = |fold, t: &Tensor| -> Result<Tensor> {
        let all: Dims = (0..t.ndim()).collect();
        let found = bodies::reduce(fold, &t.body(), &all, work_type(weights))?;
        Ok(Tensor::new(bodies::with_shape(found, &[1])))
    };
    let sums = reduce::sum(weights, Some(smallvec::smallvec![-1]), false, None)?;
    let three =
        [fold(Reduction::Min, weights)?, fold(Reduction::Max, weights)?, fold(Reduction::Min, &sums)?];
    let found = copies::to_device(&crate::ops::shape::join::cat(&three, 0)?, Device::Cpu)?;
    let number = |i| slices::select(&found, 0, i)?.item().map(Scalar::as_f64);
    Ok([number(0)?, number(1)?, number(2)?])
}

/// Draws `count` categories for each row of weights.
pub fn multinomial(
    weights: &Tensor,
    count: i64,
    replacement: bool,
    generator: &Option<Generator>,
) -> Result<Tensor> {
    check(weights, count, replacement)?;
    mode::with_grad(false, || {
        if replacement && count > 1 {
            draw_with_replacement(weights, count, generator)
        } else {
            distinct(weights, count, generator)
        }
    })
}

/// Without replacement: the largest quotients of weights and exponential noise.
fn distinct(weights: &Tensor, count: i64, generator: &Option<Generator>) -> Result<Tensor> {
    let noise = Body::new(&weights.shape(), weights.dtype(), weights.device())?;
    crate::ops::random::fill::fill_exponential(&noise, 1.0, generator.clone())?;
    let race = a::div(weights, &Tensor::new(noise))?;
    if count == 1 {
        let last = race.ndim() - 1;
        let body = bodies::reduce(Reduction::ArgMax, &race.body(), &[last], DType::I64)?;
        return Ok(Tensor::new(body));
    }
    let order = crate::ops::sorting::sort::argsort(&race, -1, true, false)?;
    slices::narrow(&order, -1, 0, count).and_then(|t| copies::clone_dense(&t))
}

/// With replacement: searches uniform numbers in the cumulative sums.
fn draw_with_replacement(weights: &Tensor, count: i64, generator: &Option<Generator>) -> Result<Tensor> {
    let shape = weights.shape();
    let (rows, categories) = if shape.len() == 2 { (shape[0], shape[1]) } else { (1, shape[0]) };
    let wide = views::reshape(&copies::to_dtype(weights, work_type(weights))?, &[rows, 1, categories])?;
    let sums = crate::ops::reduction::scan::Cumsum::call(&wide, 2)?;
    let total = slices::narrow(&sums, 2, categories as i64 - 1, 1)?;
    let draws = Body::new(&[rows, count as usize, 1], wide.dtype(), wide.device())?;
    crate::ops::random::fill::fill_uniform(&draws, 0.0, 1.0, generator.clone())?;
    let below = a::lt(&sums, &a::mul(&Tensor::new(draws), &total)?)?;
    let found = bodies::drop_dims(
        bodies::reduce(crate::base::Reduction::Sum, &below.body(), &[2], DType::I64)?,
        &[2],
    );
    let found = a::minimum(&Tensor::new(found), Scalar::Int(categories as i64 - 1))?;
    if shape.len() == 2 { Ok(found) } else { views::reshape(&found, &[count as usize]) }
}

pub(super) fn work_type(weights: &Tensor) -> DType {
    if weights.device().is_cpu() { DType::F64 } else { DType::F32 }
}

/// The batching rule: each example has a vector or matrix of weights.
pub fn for_samples(weights: &Tensor, draw: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let Some(batch) = own_draws(weights)? else { return draw(weights) };
    let shape = weights.shape();
    if shape.is_empty() || shape.len() > 2 {
        return refuse("prob_dist must be 1 or 2 dim");
    }
    let lead = batch.shape(&shape[..shape.len() - 1]);
    let rows: usize = lead.iter().product();
    let drawn = draw(&views::reshape(&batch.full(weights)?, &[rows, shape[shape.len() - 1]])?)?;
    let mut out = lead;
    out.push(drawn.shape()[1]);
    Ok(batch.wrap(views::reshape(&drawn, &out)?))
}
