//! Variances, standard deviations and norms.

use crate::base::{Reduction, dims_or_all, warn};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::sums::with_kept_dims;
use crate::ops::elementwise::{arithmetic, unary};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::{count, mean, no_grad, ratio, reduce_dims};

fn spread_over(x: &Body, dims: &[usize], correction: f64, root: bool) -> Result<Body> {
    let out = Body::new(&kept_shape(x.shape(), dims), x.dtype, x.device())?;
    if out.numel() > 0 {
        fork!(over [out, x], with [dims, correction, root], cpu: crate::cpu::reduce::var(out.host()?, x.host()?, dims, correction, root),
            gpu: crate::gpu::var(out.gpu()?, x.gpu()?, dims, correction, root))?;
    }
    Ok(out)
}

fn var_or_std(
    input: &Tensor,
    dim: &Option<Ints>,
    correction: Option<Scalar>,
    keepdim: bool,
    root: bool,
) -> Result<Body> {
    let (x, correction) = (input.body(), correction.map_or(1.0, Scalar::as_f64));
    if !x.dtype.is_differentiable() {
        return Err(Error::not_implemented("std and var only support floating point and complex dtypes"));
    }
    let dims = dims_or_all(dim.as_deref(), x.layout.ndim())?;
    let out = if x.dtype.is_complex() {
        crate::ops::complex::variance(spread_over(&x.as_parts(), &dims, correction, false)?, root)?
    } else {
        spread_over(&x, &dims, correction, root)?
    };
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

/// The gradient of a variance: twice the deviation from the mean, divided by the degrees of freedom.
fn variance_grad(
    g: V,
    x: V,
    at: &Meta,
    dim: &Option<Ints>,
    correction: Option<Scalar>,
    keepdim: bool,
) -> Result<V> {
    let n = count(&at.shape, dim.as_deref())?;
    let freedom = (n - correction.map_or(1.0, Scalar::as_f64)).max(0.0);
    let mean = x.clone().sum(dim.as_deref().unwrap_or_default(), true) / n;
    let g = if keepdim || dim.is_none() {
        g
    } else {
        g.reshape(&kept_shape(&at.shape, &dims_or_all(dim.as_deref(), at.shape.len())?))
    };
    // Without degrees of freedom the variance of all elements is not differentiable: the gradient is infinite, and NaN where an
    // element equals the mean.
    if freedom == 0.0 && (dim.is_none() || at.shape.is_empty()) {
        return Ok(g * select(f64::INFINITY, f64::NAN, eq(x, mean)).cast(at.dtype));
    }
    Ok(g * (2.0 / freedom) * (x - mean))
}

/// The gradient of the variance from that of the standard deviation `y`; 0 where `y` is 0.
fn root_grad(g: V, y: V) -> V {
    ratio(g, y * 2.0)
}

#[primitive(batch = over(dim, keepdim), aten = "var.correction")]
impl Var {
    fn forward(input: &Tensor, dim: Option<Ints>, correction: Option<Scalar>, keepdim: bool) -> Result<Body> {
        var_or_std(input, &dim, correction, keepdim, false)
    }
    fn d_input(
        g: V,
        input: V,
        at: Meta,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<V> {
        variance_grad(g, input, &at, &dim, correction, keepdim)
    }
}

#[primitive(batch = over(dim, keepdim), aten = "std.correction")]
impl Std {
    fn forward(input: &Tensor, dim: Option<Ints>, correction: Option<Scalar>, keepdim: bool) -> Result<Body> {
        var_or_std(input, &dim, correction, keepdim, true)
    }
    fn d_input(
        g: V,
        input: V,
        result: V,
        at: Meta,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<V> {
        variance_grad(root_grad(g, result), input, &at, &dim, correction, keepdim)
    }
}

/// The gradient of the variance or standard deviation plus that of the mean.
fn with_mean_grad(
    first: Option<V>,
    mean: Option<V>,
    at: &Meta,
    dim: &Option<Ints>,
    keepdim: bool,
) -> Result<Option<V>> {
    let n = count(&at.shape, dim.as_deref())?;
    let mean = mean.map(|g| (g / n).unreduce(at, dim, keepdim));
    Ok(match (first, mean) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    })
}

fn mean_of(input: &Tensor, dim: Option<Ints>, keepdim: bool) -> Result<Body> {
    no_grad(|| mean(input, dim, keepdim, None))
}

#[primitive(aten = "var_mean.correction")]
impl VarMean {
    fn forward(
        input: &Tensor,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[Body; 2]> {
        Ok([var_or_std(input, &dim, correction, keepdim, false)?, mean_of(input, dim, keepdim)?])
    }
    fn d_input(
        g: [Option<V>; 2],
        input: V,
        at: Meta,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Option<V>> {
        let [var, mean] = g;
        let var = var.map(|g| variance_grad(g, input, &at, &dim, correction, keepdim)).transpose()?;
        with_mean_grad(var, mean, &at, &dim, keepdim)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[Tensor; 2]> {
        Ok([Var::call(input, dim.clone(), correction, keepdim)?, mean(input, dim, keepdim, None)?])
    }
}

#[primitive(aten = "std_mean.correction")]
impl StdMean {
    fn forward(
        input: &Tensor,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[Body; 2]> {
        Ok([var_or_std(input, &dim, correction, keepdim, true)?, mean_of(input, dim, keepdim)?])
    }
    fn d_input(
        g: [Option<V>; 2],
        input: V,
        result0: V,
        at: Meta,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<Option<V>> {
        let [std, mean] = g;
        let var = std.map(|g| root_grad(g, result0));
        let var = var.map(|g| variance_grad(g, input, &at, &dim, correction, keepdim)).transpose()?;
        with_mean_grad(var, mean, &at, &dim, keepdim)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        dim: Option<Ints>,
        correction: Option<Scalar>,
        keepdim: bool,
    ) -> Result<[Tensor; 2]> {
        Ok([Std::call(input, dim.clone(), correction, keepdim)?, mean(input, dim, keepdim, None)?])
    }
}

#[primitive(batch = over(dim, keepdim))]
impl LinalgVectorNorm {
    fn forward(input: &Tensor, ord: Scalar, dim: Option<Ints>, keepdim: bool) -> Result<Body> {
        norm_of(input, ord.as_f64(), &dim, keepdim)
    }
    fn d_input(
        g: V,
        input: V,
        result: V,
        at: Meta,
        ord: Scalar,
        dim: Option<Ints>,
        keepdim: bool,
    ) -> Option<V> {
        // The number of nonzero elements has no gradient.
        let ord = ord.as_f64();
        (ord != 0.0).then(|| {
            let kept = |v: V| v.then(|t| with_kept_dims(&t, at.shape.len(), dim.as_deref(), keepdim));
            norm_grad(kept(g), input, kept(result), at.dtype, ord, dim.as_deref().unwrap_or_default())
        })
    }
}

/// Rejects a maximum or minimum of magnitudes over no elements.
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
    // Sums of half precision would overflow long before the norm does.
    let wide = if x.dtype.to_real() == DType::F64 { DType::F64 } else { DType::F32 };
    let magnitudes = || no_grad(|| unary::abs(input));
    if ord < 0.0 || ord == f64::INFINITY {
        no_identity(&x, ord, dims)?;
    }
    let reduced = dims_or_all(dims, x.layout.ndim())?;
    // Any norm of a single number is its magnitude; powers and roots would only add rounding errors.
    let ord = if ord != 0.0 && reduced.iter().all(|&d| x.shape()[d] == 1) { 1.0 } else { ord };
    let body = match ord {
        0.0 => {
            let marks = no_grad(|| arithmetic::ne(input, 0.0))?;
            reduce_dims(Reduction::Sum, &marks, dims, keepdim, wide)?
        }
        1.0 => reduce_dims(Reduction::SumAbs, &x, dims, keepdim, wide)?,
        2.0 => {
            let squares = Tensor::new(reduce_dims(Reduction::SumSq, &x, dims, keepdim, wide)?);
            no_grad(|| unary::sqrt(&squares))?
        }
        f64::INFINITY | f64::NEG_INFINITY => {
            let fold = if ord > 0.0 { Reduction::Max } else { Reduction::Min };
            if x.numel() == 0 && ord > 0.0 {
                let shape = kept_shape(x.shape(), &reduced);
                let zeros = crate::operator::bodies::filled(&shape, Scalar::Int(0), wide, x.device())?;
                if keepdim { zeros } else { drop_dims(zeros, &reduced) }
            } else {
                crate::ops::reduction::extrema::check_not_empty("linalg.vector_norm", &x, dims)?;
                reduce_dims(fold, &magnitudes()?, dims, keepdim, wide)?
            }
        }
        _ => {
            let powers = no_grad(|| arithmetic::pow(&unary::abs(input)?, ord))?;
            let sum = Tensor::new(reduce_dims(Reduction::Sum, &powers, dims, keepdim, wide)?);
            no_grad(|| arithmetic::pow(&sum, 1.0 / ord))?
        }
    };
    let dtype = x.dtype.to_real();
    no_grad(|| to_dtype(&Tensor::new(body), dtype))
}

/// The gradient of the norm `y` of `x` over `dims`, which `g` and `y` keep. `dtype` is that of `x`.
pub fn norm_grad(g: V, x: V, y: V, dtype: DType, ord: f64, dims: &[i64]) -> V {
    let (g, y) = (g.cast(dtype), y.cast(dtype));
    match ord {
        1.0 => g * sign(x),
        2.0 => g * select(x / &y, 0.0, eq(y, 0.0)),
        _ if ord.is_infinite() => {
            // Elements of equal magnitude share the gradient.
            let winners = eq(abs(&x), y);
            let count = winners.clone().sum(dims, true).cast(dtype);
            sign(x) * select(0.0, g / count, winners)
        }
        _ => {
            let still = eq(&y, 0.0);
            let weight = select(g / pow(select(y, 1.0, &still), ord - 1.0), 0.0, still);
            let slope = select(pow(abs(&x), ord - 1.0), 0.0, eq(&x, 0.0));
            sign(x) * slope * weight
        }
    }
}

/// Rejects dtypes without a variance, and warns if there are too few elements.
fn check(name: &str, input: &Tensor, dim: &Option<Ints>, correction: Option<Scalar>) -> Result<()> {
    if name.ends_with("_mean") && !input.dtype().is_differentiable() {
        return Err(Error::not_implemented(format!("{name} only support floating point and complex dtypes")));
    }
    let few = |n| n <= correction.map_or(1.0, Scalar::as_f64) && input.dtype().is_differentiable();
    if count(&input.shape(), dim.as_deref()).is_ok_and(few) {
        warn(&format!(
            "{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input \
             numel divided by output numel)."
        ))?;
    }
    Ok(())
}

/// `unbiased` as a value of `correction`.
fn correction_of(unbiased: bool) -> Option<Scalar> {
    Some(Scalar::Int(i64::from(unbiased)))
}

/// Variance over `dim`.
#[overload(var.dim, out)]
pub fn var_over(
    input: &Tensor,
    #[required] dim: Option<Ints>,
    #[default(true)] unbiased: bool,
    #[default(false)] keepdim: bool,
) -> Result<Tensor> {
    check("var", input, &dim, correction_of(unbiased))?;
    Var::call(input, dim, correction_of(unbiased), keepdim)
}

/// Compute the variance of all elements, or over the given dimensions.
///
/// Args:
///     correction: number of elements minus the divisor: 1 (Bessel's correction) if not given, 0 for the population's.
///     unbiased: older form of `correction`: True is 1, False is 0. Default: `True`
///
/// Examples:
///     >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0])
///     >>> torch.var(x), torch.var(x, correction=0)
///     (tensor(1.6667), tensor(1.2500))
#[operator(function, method, out, sample = "spread_of(name)")]
pub fn var(
    input: &Tensor,
    dim: Option<Ints>,
    #[keyword] correction: Option<Scalar>,
    #[default(false)] keepdim: bool,
) -> Result<Tensor> {
    check("var", input, &dim, correction)?;
    Var::call(input, dim, correction, keepdim)
}

/// Variance of all elements.
#[overload(var)]
pub fn var_of_all(input: &Tensor, unbiased: bool) -> Result<Tensor> {
    check("var", input, &None, correction_of(unbiased))?;
    Var::call(input, None, correction_of(unbiased), false)
}

/// Standard deviation over `dim`.
#[overload(std.dim, out)]
pub fn std_over(
    input: &Tensor,
    #[required] dim: Option<Ints>,
    #[default(true)] unbiased: bool,
    #[default(false)] keepdim: bool,
) -> Result<Tensor> {
    check("std", input, &dim, correction_of(unbiased))?;
    Std::call(input, dim, correction_of(unbiased), keepdim)
}

/// Compute the standard deviation of all elements, or over the given dimensions.
///
/// Args:
///     correction: number of elements minus the divisor: 1 (Bessel's correction) if not given, 0 for the population's.
///     unbiased: older form of `correction`: True is 1, False is 0. Default: `True`
///
/// Examples:
///     >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0])
///     >>> torch.std(x), torch.std(x, correction=0)
///     (tensor(1.2910), tensor(1.1180))
#[operator(function, method, out, sample = "spread_of(name)")]
pub fn std(
    input: &Tensor,
    dim: Option<Ints>,
    #[keyword] correction: Option<Scalar>,
    #[default(false)] keepdim: bool,
) -> Result<Tensor> {
    check("std", input, &dim, correction)?;
    Std::call(input, dim, correction, keepdim)
}

/// Standard deviation of all elements.
#[overload(std)]
pub fn std_of_all(input: &Tensor, unbiased: bool) -> Result<Tensor> {
    check("std", input, &None, correction_of(unbiased))?;
    Std::call(input, None, correction_of(unbiased), false)
}

/// Variance and mean over `dim`.
#[overload(var_mean.dim)]
pub fn var_mean_over(
    input: &Tensor,
    #[required] dim: Option<Ints>,
    #[default(true)] unbiased: bool,
    #[default(false)] keepdim: bool,
) -> Result<[Tensor; 2]> {
    check("var_mean", input, &dim, correction_of(unbiased))?;
    VarMean::call(input, dim, correction_of(unbiased), keepdim)
}

/// Compute the variance and the mean of all elements, or over the given dimensions.
///
/// Args:
///     correction: number of elements minus the divisor: 1 (Bessel's correction) if not given, 0 for the population's.
///     unbiased: older form of `correction`: True is 1, False is 0. Default: `True`
///
/// Examples:
///     >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0, 4.0]))
///     (tensor(1.6667), tensor(2.5000))
#[operator(function, sample = "spread_of(name)")]
pub fn var_mean(
    input: &Tensor,
    dim: Option<Ints>,
    #[keyword] correction: Option<Scalar>,
    #[default(false)] keepdim: bool,
) -> Result<[Tensor; 2]> {
    check("var_mean", input, &dim, correction)?;
    VarMean::call(input, dim, correction, keepdim)
}

/// Variance and mean of all elements.
#[overload(var_mean)]
pub fn var_mean_of_all(input: &Tensor, unbiased: bool) -> Result<[Tensor; 2]> {
    check("var_mean", input, &None, correction_of(unbiased))?;
    VarMean::call(input, None, correction_of(unbiased), false)
}

/// Standard deviation and mean over `dim`.
#[overload(std_mean.dim)]
pub fn std_mean_over(
    input: &Tensor,
    #[required] dim: Option<Ints>,
    #[default(true)] unbiased: bool,
    #[default(false)] keepdim: bool,
) -> Result<[Tensor; 2]> {
    check("std_mean", input, &dim, correction_of(unbiased))?;
    StdMean::call(input, dim, correction_of(unbiased), keepdim)
}

/// Compute the standard deviation and the mean of all elements, or over the given dimensions.
///
/// Args:
///     correction: number of elements minus the divisor: 1 (Bessel's correction) if not given, 0 for the population's.
///     unbiased: older form of `correction`: True is 1, False is 0. Default: `True`
///
/// Examples:
///     >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0, 4.0]))
///     (tensor(1.2910), tensor(2.5000))
#[operator(function, sample = "spread_of(name)")]
pub fn std_mean(
    input: &Tensor,
    dim: Option<Ints>,
    #[keyword] correction: Option<Scalar>,
    #[default(false)] keepdim: bool,
) -> Result<[Tensor; 2]> {
    check("std_mean", input, &dim, correction)?;
    StdMean::call(input, dim, correction, keepdim)
}

/// Standard deviation and mean of all elements.
#[overload(std_mean)]
pub fn std_mean_of_all(input: &Tensor, unbiased: bool) -> Result<[Tensor; 2]> {
    check("std_mean", input, &None, correction_of(unbiased))?;
    StdMean::call(input, None, correction_of(unbiased), false)
}

fn order(p: Option<Arg>) -> Result<Scalar> {
    match p {
        None => Ok(Scalar::Int(2)),
        Some(Arg::Str(name)) if name == "fro" => Ok(Scalar::Int(2)),
        Some(Arg::Str(name)) => {
            Err(Error::runtime(format!("linalg.matrix_norm: Order {name} not supported.")))
        }
        Some(other) => other.number().ok_or_else(|| Error::type_error("norm(): argument 'p' must be Number")),
    }
}

/// Compute the norm of all elements, or over the given dimensions.
///
/// `torch.linalg.vector_norm` and `torch.linalg.matrix_norm` say more clearly which norm is meant.
///
/// Args:
///     p: order of the norm: a number, `inf`, `"fro"` or `"nuc"`; 2 if not given.
///     dtype: data type that the elements are converted to first.
///
/// Examples:
///     >>> x = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
///     >>> torch.norm(x[0]), torch.norm(x, p=1, dim=1)
///     (tensor(5.), tensor([ 7., 14.]))
#[operator(function, method, out(declared, called = "linalg_vector_norm"), sample = "normed(name)")]
pub fn norm(
    input: &Tensor,
    p: Option<Arg>,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    if let Some(Arg::Str(name)) = &p
        && name == "nuc"
    {
        let dim = dim.unwrap_or_else(|| smallvec::smallvec![-2, -1]);
        return crate::ops::linalg::norms::named_matrix_norm(input, name.clone(), dim, keepdim, dtype);
    }
    LinalgVectorNorm::call(&in_dtype("linalg.vector_norm", input, dtype)?, order(p)?, dim, keepdim)
}

/// Converts the operand of a norm to the requested dtype, which must not be narrower.
pub fn in_dtype(name: &str, input: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    let given = input.dtype();
    if !given.is_differentiable() {
        return Err(Error::not_implemented(format!(
            "{name}: Expected a floating point or complex tensor as input. Got {}",
            given.scalar_name()
        )));
    }
    match dtype {
        Some(wanted) if !wanted.is_differentiable() => Err(Error::runtime(format!(
            "{name}: dtype should be floating point or complex, but got {}",
            wanted.scalar_name()
        ))),
        Some(wanted) if given.promote(wanted) != wanted => Err(Error::runtime(format!(
            "{name}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})",
            given.scalar_name(),
            wanted.scalar_name()
        ))),
        Some(wanted) => to_dtype(input, wanted),
        None => Ok(input.clone()),
    }
}
