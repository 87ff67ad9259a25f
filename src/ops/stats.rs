//! Spread and size: variances, standard deviations, norms.

use super::formal::{abs, eq, pow, select, sign};
use super::kernel::{drop_dims, fork, kept_shape};
use super::macros::{compose, ops};
use super::record::{begin, end_many};
use super::reduce::{count, dims_or_all, folded, quietly};
use super::row::{Arg, Ints};
use super::value::V;
use super::{arithmetic, unary};
use crate::base::{DType, Error, Fold, Result, Scalar, caution, wrap_dim};
use crate::tensor::{Body, Derivative, Grads, Meta, Saved, Tensor};

fn spread_over(x: &Body, dims: &[usize], correction: f64, root: bool) -> Result<Body> {
    let out = Body::new(&kept_shape(x.shape(), dims), x.dtype, x.device())?;
    if out.numel() > 0 {
        fork!([&out, x], cpu: crate::cpu::reduce::var(out.host()?, x.host()?, dims, correction, root),
            gpu: crate::gpu::var(out.gpu()?, x.gpu()?, dims, correction, root))?;
    }
    Ok(out)
}

fn spread(
    input: &Tensor,
    dim: &Option<Ints>,
    correction: Option<f64>,
    keepdim: bool,
    root: bool,
) -> Result<Body> {
    let (x, correction) = (input.body(), correction.unwrap_or(1.0));
    if !x.dtype.is_differentiable() {
        return Err(Error::not_implemented("std and var only support floating point and complex dtypes"));
    }
    let dims = dims_or_all(dim.as_deref(), x.layout.ndim())?;
    let out = if x.dtype.is_complex() {
        super::complex::variance(spread_over(&x.as_parts(), &dims, correction, false)?, root)?
    } else {
        spread_over(&x, &dims, correction, root)?
    };
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

/// The gradient of a variance: twice the distance from the mean, over the degrees of freedom.
fn spread_grad(
    g: V,
    x: V,
    at: &Meta,
    dim: &Option<Ints>,
    correction: Option<f64>,
    keepdim: bool,
) -> Result<V> {
    let n = count(&at.shape, dim.as_deref())?;
    let freedom = (n - correction.unwrap_or(1.0)).max(0.0);
    let mean = x.clone().sum(dim.as_deref().unwrap_or_default(), true) / n;
    let g = if keepdim || dim.is_none() {
        g
    } else {
        g.reshape(&kept_shape(&at.shape, &dims_or_all(dim.as_deref(), at.shape.len())?))
    };
    // Of all elements, and too few: a constant without a history, infinite but where nothing varies.
    if freedom == 0.0 && (dim.is_none() || at.shape.is_empty()) {
        return Ok(g * select(f64::INFINITY, f64::NAN, eq(x, mean)).cast(at.dtype));
    }
    Ok(g * (2.0 / freedom) * (x - mean))
}

/// From the gradient of a standard deviation `y` to that of its variance; 0 where nothing varies.
fn root_grad(g: V, y: V) -> V {
    select(g / (&y * 2.0), 0.0, eq(y, 0.0))
}

ops! { "reduce";
    /// Variance.
    [hidden] fn variance(input; dim: Option<Ints>, correction: Option<f64>, keepdim: bool) -> y { spread(input, &dim, correction, keepdim, false) }
    input: |g, input, at, dim, correction, keepdim| spread_grad(g, input, &at, &dim, correction, keepdim)?;
    /// Standard deviation.
    [hidden] fn deviation(input; dim: Option<Ints>, correction: Option<f64>, keepdim: bool) -> y { spread(input, &dim, correction, keepdim, true) }
    input: |g, input, y, at, dim, correction, keepdim| spread_grad(root_grad(g, y), input, &at, &dim, correction, keepdim)?;
    /// The norm of order `ord` over dimensions.
    [hidden] fn linalg_vector_norm(input; ord: f64, dim: Option<Ints>, keepdim: bool) -> y { norm_of(input, ord, &dim, keepdim) }
    input: |g, input, y, at, ord, dim, keepdim| match ord {
        // The number of elements that are not zero has no slope.
        0.0 => Ok(None),
        _ => norm_grad(g, input, y, &at, ord, &dim, keepdim).tensor().map(Some),
    };
}

/// A largest or smallest magnitude needs an element.
fn no_identity(x: &Body, ord: f64, dims: Option<&[i64]>) -> Result<()> {
    let refuse = |place: String| {
        let name = if ord > 0.0 { "inf".into() } else { ord.to_string() };
        Err(Error::runtime(format!(
            "linalg.vector_norm cannot compute the {name} norm on {place} empty and the operation does not have an identity"
        )))
    };
    match dims {
        None if x.numel() == 0 => refuse("an empty tensor because the tensor is".into()),
        Some(dims) => match dims
            .iter()
            .find(|&&d| wrap_dim(d, x.layout.ndim()).is_ok_and(|at| x.shape().get(at) == Some(&0)))
        {
            Some(d) => refuse(format!("the dimension {d}because this dimension is")),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

fn norm_of(input: &Tensor, ord: f64, dim: &Option<Ints>, keepdim: bool) -> Result<Body> {
    let x = input.body();
    let dims = dim.as_deref();
    // Sums of halves overflow long before their norm does.
    let wide = if x.dtype.to_real() == DType::F64 { DType::F64 } else { DType::F32 };
    let magnitudes = || quietly(|| unary::abs(input));
    if ord < 0.0 || ord == f64::INFINITY {
        no_identity(&x, ord, dims)?;
    }
    let reduced = dims_or_all(dims, x.layout.ndim())?;
    // Any norm of one number is its magnitude, which powers and roots would round.
    let ord = if ord != 0.0 && reduced.iter().all(|&d| x.shape()[d] == 1) { 1.0 } else { ord };
    let body = match ord {
        0.0 => {
            let marks = quietly(|| arithmetic::ne(input, 0.0))?;
            folded(Fold::Sum, &marks, dims, keepdim, wide)?
        }
        1.0 => folded(Fold::SumAbs, &x, dims, keepdim, wide)?,
        2.0 => {
            let squares = Tensor::new(folded(Fold::SumSq, &x, dims, keepdim, wide)?);
            quietly(|| unary::sqrt(&squares))?
        }
        f64::INFINITY | f64::NEG_INFINITY => {
            let fold = if ord > 0.0 { Fold::Max } else { Fold::Min };
            if x.numel() == 0 && ord > 0.0 {
                let shape = kept_shape(x.shape(), &reduced);
                let zeros = super::kernel::filled(&shape, Scalar::Int(0), wide, x.device())?;
                if keepdim { zeros } else { drop_dims(zeros, &reduced) }
            } else {
                super::extrema::check_not_empty("linalg.vector_norm", &x, dims)?;
                folded(fold, &magnitudes()?, dims, keepdim, wide)?
            }
        }
        _ => {
            let powers = quietly(|| arithmetic::pow(&unary::abs(input)?, ord))?;
            let sum = Tensor::new(folded(Fold::Sum, &powers, dims, keepdim, wide)?);
            quietly(|| arithmetic::pow(&sum, 1.0 / ord))?
        }
    };
    let dtype = x.dtype.to_real();
    quietly(|| super::create::to_dtype(&Tensor::new(body), dtype))
}

fn norm_grad(g: V, x: V, y: V, at: &Meta, ord: f64, dim: &Option<Ints>, keepdim: bool) -> V {
    let kept =
        |v: V| v.then(|t| super::reduce::kept(&t, at.shape.len(), dim.as_deref(), keepdim)).cast(at.dtype);
    let (g, y) = (kept(g), kept(y));
    match ord {
        1.0 => g * sign(x),
        2.0 => g * select(x / &y, 0.0, eq(y, 0.0)),
        _ if ord.is_infinite() => {
            // Equal ones share the gradient.
            let winners = eq(abs(&x), y);
            let count = winners.clone().sum(dim.as_deref().unwrap_or_default(), true).cast(at.dtype);
            sign(x) * select(0.0, g / count, winners)
        }
        _ => {
            let weight = select(g / pow(&y, ord - 1.0), 0.0, eq(y, 0.0));
            let slope = select(pow(abs(&x), ord - 1.0), 0.0, eq(&x, 0.0));
            sign(x) * slope * weight
        }
    }
}

/// Variance (or standard deviation) and mean at once.
fn with_mean(derivative: &'static Derivative, input: &Tensor, of: Spread, root: bool) -> Result<Vec<Tensor>> {
    let Spread { dim, correction, keepdim } = of;
    if input.is_batched() {
        let spread = if root { deviation } else { variance }(input, dim.clone(), correction, keepdim)?;
        return Ok(vec![spread, super::reduce::mean(input.clone(), dim, keepdim, None)?]);
    }
    let recorder = begin(derivative, &[input], || Some(Box::new((dim.clone(), correction, keepdim))));
    let spread = spread(input, &dim, correction, keepdim, root)?;
    let mean = quietly(|| super::reduce::mean(input.clone(), dim.clone(), keepdim, None))?;
    let made = end_many(recorder, &[(0, if root { 1 | 1 << 63 } else { 1 })], &[input], vec![spread, mean])?;
    if input.is_dual() {
        super::tangent::attach(&made, &[input], super::tangent::Rule::Transposed, &|xs| {
            with_mean(derivative, &xs[0], Spread { dim: dim.clone(), correction, keepdim }, root)
        })?;
    }
    Ok(made)
}

fn with_mean_grad(step: &crate::tensor::Step, root: bool) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None];
    if !step.wants(0) {
        return Ok(grads);
    }
    let (dim, correction, keepdim) = step.params::<(Option<Ints>, Option<f64>, bool)>()?;
    let at = super::meta_of(step, 0)?;
    let mut total = None;
    if let Some(g) = step.grad(0).map(V::from) {
        let g = if root { root_grad(g, step.tensor(Saved::OUTPUT)?.into()) } else { g };
        total = Some(spread_grad(g, step.tensor(0)?.into(), &at, dim, *correction, *keepdim)?);
    }
    if let Some(g) = step.grad(1).map(V::from) {
        let part = (g / count(&at.shape, dim.as_deref())?).unreduce(&at, dim, *keepdim);
        total = Some(total.map_or(part.clone(), |sum| sum + part));
    }
    grads[0] = total.map(V::tensor).transpose()?;
    Ok(grads)
}

static VAR_MEAN: Derivative =
    Derivative { facts: None, name: "VarMeanBackward0", apply: |step| with_mean_grad(step, false) };
static STD_MEAN: Derivative =
    Derivative { facts: None, name: "StdMeanBackward0", apply: |step| with_mean_grad(step, true) };

/// What a variance is taken over, and what its divisor is less by.
struct Spread {
    dim: Option<Ints>,
    /// 1 where nobody said anything else.
    correction: Option<f64>,
    keepdim: bool,
}

impl Spread {
    /// From `(dim, unbiased, keepdim)`, `(dim, correction=…)` or `(unbiased)`: all are allowed.
    fn new(
        dim: Option<Arg>,
        unbiased: Option<bool>,
        keepdim: bool,
        correction: Option<f64>,
    ) -> Result<Spread> {
        let given = dim.is_some();
        let (dim, unbiased) = match dim {
            Some(Arg::Bool(unbiased)) => (None, Some(unbiased)),
            dim => (dims_from(dim)?, unbiased),
        };
        let unbiased = unbiased.or(given.then_some(true));
        let correction = correction.or(unbiased.map(|unbiased| f64::from(u8::from(unbiased))));
        Ok(Spread { dim, correction, keepdim })
    }

    /// Refuses what varies in no way that counts, and warns of too few elements to vary.
    fn check(&self, name: &str, input: &Tensor) -> Result<()> {
        if name.ends_with("_mean") && !input.dtype().is_differentiable() {
            return Err(Error::not_implemented(format!(
                "{name} only support floating point and complex dtypes"
            )));
        }
        let few = |n| n <= self.correction.unwrap_or(1.0) && input.dtype().is_differentiable();
        if count(&input.shape(), self.dim.as_deref()).is_ok_and(few) {
            caution(&format!(
                "{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input \
                 numel divided by output numel)."
            ))?;
        }
        Ok(())
    }
}

fn dims_from(dim: Option<Arg>) -> Result<Option<Ints>> {
    match dim {
        None => Ok(None),
        Some(Arg::Int(d)) => Ok(Some(smallvec::smallvec![d])),
        Some(Arg::Ints(dims)) => Ok(Some(dims)),
        Some(_) => Err(Error::type_error("argument 'dim' must be tuple of ints")),
    }
}

mod more {
    use super::*;

    fn order(p: Option<Arg>) -> Result<f64> {
        match p {
            None => Ok(2.0),
            Some(Arg::Str(name)) if name == "fro" => Ok(2.0),
            Some(Arg::Str(name)) => {
                Err(Error::runtime(format!("linalg.matrix_norm: Order {name} not supported.")))
            }
            Some(other) => other
                .number()
                .map(Scalar::as_f64)
                .ok_or_else(|| Error::type_error("norm(): argument 'p' must be Number")),
        }
    }

    compose! { "reduce";
        /// Variance of all elements, or over `dim`; divided by their number less `correction`.
        [out] fn var(input: Tensor, dim: Option<Arg> = None, unbiased: Option<bool> = None, keepdim: bool = false, correction: Option<f64> = None) -> Tensor {
            let of = Spread::new(dim, unbiased, keepdim, correction)?;
            of.check("var", &input)?;
            let Spread { dim, correction, keepdim } = of;
            super::variance(&input, dim, correction, keepdim)
        }
        /// Standard deviation of all elements, or over `dim`.
        [out] fn std_(input: Tensor, dim: Option<Arg> = None, unbiased: Option<bool> = None, keepdim: bool = false, correction: Option<f64> = None) -> Tensor {
            let of = Spread::new(dim, unbiased, keepdim, correction)?;
            of.check("std", &input)?;
            let Spread { dim, correction, keepdim } = of;
            super::deviation(&input, dim, correction, keepdim)
        }
        /// Variance and mean.
        [no_method] fn var_mean(input: Tensor, dim: Option<Arg> = None, unbiased: Option<bool> = None, keepdim: bool = false, correction: Option<f64> = None) -> Vec<Tensor> {
            let of = Spread::new(dim, unbiased, keepdim, correction)?;
            of.check("var_mean", &input)?;
            with_mean(&VAR_MEAN, &input, of, false)
        }
        /// Standard deviation and mean.
        [no_method] fn std_mean(input: Tensor, dim: Option<Arg> = None, unbiased: Option<bool> = None, keepdim: bool = false, correction: Option<f64> = None) -> Vec<Tensor> {
            let of = Spread::new(dim, unbiased, keepdim, correction)?;
            of.check("std_mean", &input)?;
            with_mean(&STD_MEAN, &input, of, true)
        }
        /// The norm of order `p` of all elements, or over `dim`.
        [out] fn norm(input: Tensor, p: Option<Arg> = None, dim: Option<Ints> = None, keepdim: bool = false, dtype: Option<DType> = None) -> Tensor {
            let ord = order(p)?;
            let given = input.dtype();
            if !given.is_differentiable() {
                return Err(Error::not_implemented(format!(
                    "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}", given.scalar_name()
                )));
            }
            let input = match dtype {
                Some(wanted) if !wanted.is_differentiable() => return Err(Error::runtime(format!(
                    "linalg.vector_norm: dtype should be floating point or complex, but got {}", wanted.scalar_name()
                ))),
                Some(wanted) if given.promote(wanted) != wanted => return Err(Error::runtime(format!(
                    "linalg.vector_norm: the dtype of the input ({}) should be convertible without narrowing to the specified \
                     dtype ({})", given.scalar_name(), wanted.scalar_name()
                ))),
                Some(wanted) => crate::ops::create::to_dtype(&input, wanted)?,
                None => input,
            };
            linalg_vector_norm(&input, ord, dim, keepdim)
        }
    }
}
pub use more::{COMPOSED, norm};
