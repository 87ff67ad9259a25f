//! Reductions of many elements to one.

use crate::base::{Reduction, dims_or_all};
use crate::capture;
use crate::operator::batch;
use crate::operator::bodies::filled;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::sums::{Sum, Sum1, sum_dtype};
use crate::ops::complex::reduce;
use crate::ops::creation::create::read_as;
use crate::ops::elementwise::{arithmetic, unary};
use crate::ops::prelude::*;
use crate::storage::access;
use crate::tensor::mode;

/// Reduces over `dim`, or over all dimensions. Removes the reduced dimensions unless `keepdim` is set.
pub fn reduce_dims(
    fold: Reduction,
    x: &Body,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: DType,
) -> Result<Body> {
    let dims = dims_or_all(dim, x.layout.ndim())?;
    let out = reduce(fold, x, &dims, dtype)?;
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

fn mean_over(x: &Body, dims: &[usize]) -> Result<Body> {
    let kept = kept_shape(x.shape(), dims);
    if x.numel() == 0 {
        return filled(&kept, Scalar::Float(f64::NAN), x.dtype, x.device());
    }
    let out = Body::new(&kept, x.dtype, x.device())?;
    if out.numel() > 0 {
        if access::is_captured() {
            let count: usize = dims.iter().map(|&d| x.shape()[d]).product();
            capture::describe_fold(Reduction::Sum, dims, Some(count as f64), &out, x)?;
        }
        fork!(over [out], reads [x], with [dims], cpu: done(crate::cpu::reduce::mean(out.host()?, x.host()?, dims)),
            gpu: crate::gpu::mean(out.gpu()?, x.gpu()?, dims))?;
    }
    Ok(out)
}

fn average(x: &Body, dim: Option<&[i64]>, keepdim: bool) -> Result<Body> {
    let dims = dims_or_all(dim, x.layout.ndim())?;
    let out = if x.dtype.is_complex() {
        crate::ops::complex::mean(x, &dims, mean_over)?
    } else {
        mean_over(x, &dims)?
    };
    Ok(if keepdim { out } else { drop_dims(out, &dims) })
}

#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input), self_sym_numel = numel(input)))]
impl Mean {
    fn forward(input: &Tensor) -> Result<Body> {
        average(&input.body(), None, false)
    }
    fn d_input(g: V, at: Meta) -> V {
        g.unreduce(&at, &None, false) / crate::base::numel(&at.shape) as f64
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        batch::over(b, &b.full(input)?, (Ints::new(), false), |x, (dim, keepdim)| {
            Mean1::call(x, dim, keepdim)
        })
    }
}

#[primitive(
    batch = over(dim, keepdim),
    tangent = linear,
    shows(self_sym_sizes = sizes(input), self_sym_numel = numel(input))
)]
impl Mean1 {
    fn forward(input: &Tensor, dim: Ints, keepdim: bool) -> Result<Body> {
        average(&input.body(), Some(&dim), keepdim)
    }
    fn d_input(g: V, at: Meta, dim: Ints, keepdim: bool) -> Result<V> {
        let n = count(&at.shape, Some(&dim))?;
        Ok(g.unreduce(&at, &Some(dim), keepdim) / n)
    }
}

#[primitive]
impl Prod {
    fn forward(input: &Tensor) -> Result<Body> {
        let body = input.body();
        reduce_dims(Reduction::Prod, &body, None, false, sum_dtype(body.dtype))
    }
    fn d_input(g: V, input: V, result: V, at: Meta) -> V {
        if at.shape.is_empty() { g } else { all_but_one(g, input, result) }
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        Prod1::call(&batch::line(b, &b.full(input)?)?, -1, false).map(|t| b.wrap(t))
    }
}

#[primitive(batch = along(dim, keepdim))]
impl Prod1 {
    fn forward(input: &Tensor, dim: i64, keepdim: bool) -> Result<Body> {
        let body = input.body();
        reduce_dims(Reduction::Prod, &body, Some(&[dim]), keepdim, sum_dtype(body.dtype))
    }
    fn d_input(g: V, input: V, result: V, at: Meta, dim: i64, keepdim: bool) -> Result<V> {
        if at.shape.is_empty() {
            return Ok(g);
        }
        let shape = kept_shape(&at.shape, &[wrap_dim(dim, at.shape.len())?]);
        let kept = |v: V| if keepdim { v } else { v.reshape(&shape) };
        Ok(without_one(kept(g), input, kept(result), dim))
    }
}

/// Treats NaN as 0.
#[primitive(batch = over(dim, keepdim))]
impl Nansum {
    fn forward(input: &Tensor, dim: Option<Ints>, keepdim: bool) -> Result<Body> {
        let numbers = no_grad(|| zero_for_nan(input.into()).tensor())?;
        reduce_dims(Reduction::Sum, &numbers, dim.as_deref(), keepdim, numbers.dtype)
    }
    fn d_input(g: V, input: V, at: Meta, dim: Option<Ints>, keepdim: bool) -> V {
        select(g.unreduce(&at, &dim, keepdim), 0.0, is_nan(input))
    }
}

#[primitive(batch = over(dim, keepdim))]
impl All {
    fn forward(#[constant] input: &Tensor, dim: Option<Ints>, keepdim: bool) -> Result<Body> {
        let body = input.body();
        reduce_dims(Reduction::All, &body, dim.as_deref(), keepdim, truth_dtype(body.dtype))
    }
}

#[primitive(batch = over(dim, keepdim))]
impl Any {
    fn forward(#[constant] input: &Tensor, dim: Option<Ints>, keepdim: bool) -> Result<Body> {
        let body = input.body();
        reduce_dims(Reduction::Any, &body, dim.as_deref(), keepdim, truth_dtype(body.dtype))
    }
}

/// `any` and `all` return uint8 for uint8, as in PyTorch, which used it for booleans.
fn truth_dtype(dtype: DType) -> DType {
    if dtype == DType::U8 { DType::U8 } else { DType::Bool }
}

/// Computes a body without recording a graph.
pub fn no_grad(compute: impl FnOnce() -> Result<Tensor>) -> Result<Body> {
    mode::with_grad(false, compute).map(|t| t.body().clone())
}

/// A gradient divided by `result`, and 0 where that is 0, also for tangents.
pub fn ratio(g: V, result: V) -> V {
    let still = eq(&result, 0.0);
    select(g / select(&result, 1.0, &still), 0.0, still)
}

fn zero_for_nan(x: V) -> V {
    select(&x, 0.0, is_nan(&x))
}

/// The gradient of the product `y` of all elements.
fn all_but_one(g: V, x: V, y: V) -> V {
    if !x.is_batched() && matches!(has_zero(&x), Ok(false)) {
        return g * (y / x).conj();
    }
    let (shape, flat) = (x.shape(), x.clone().reshape(&[crate::base::numel(&x.shape())]));
    without_one(g.reshape(&[1]), flat, y.reshape(&[1]), 0).reshape(&shape)
}

/// The gradient of a product `y` along `dim`: `g` times the product of the other elements.
fn without_one(g: V, x: V, y: V, dim: i64) -> V {
    if x.is_batched() {
        return g * x.then(|t| crate::ops::reduction::scan::exclusive_product(&t, dim));
    }
    match has_zero(&x) {
        // With a zero, dividing the product by an element could be 0/0.
        Ok(true) => g * x.then(|t| crate::ops::reduction::scan::exclusive_product(&t, dim)).conj(),
        Ok(false) => g * (y / x).conj(),
        Err(e) => V::from(Err(e)),
    }
}

fn has_zero(x: &V) -> Result<bool> {
    let zeros = x.clone().then(|t| unary::logical_not(&t)).tensor()?;
    any_true(&zeros)
}

/// True if any element is true; false for a meta tensor, which has no values.
pub fn any_true(t: &Tensor) -> Result<bool> {
    Ok(!t.device().is_meta() && any(t, None, false)?.item()?.as_bool())
}

/// The number of elements that are reduced to one.
pub fn count(shape: &[usize], dims: Option<&[i64]>) -> Result<f64> {
    Ok(dims_or_all(dims, shape.len())?.iter().map(|&d| shape[d]).product::<usize>() as f64)
}

fn as_dtype(input: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    dtype.map_or(Ok(input.clone()), |dtype| read_as(input, dtype))
}

/// Converts an integer result, which is accumulated in int64, to the requested dtype.
fn in_dtype(result: Tensor, dtype: Option<DType>) -> Result<Tensor> {
    match dtype {
        Some(dtype) if dtype != result.dtype() => to_dtype(&result, dtype),
        _ => Ok(result),
    }
}

/// Sum all elements, or over the given dimensions.
///
/// Integers and truth values are summed as int64.
///
/// Args:
///     dtype: data type that the elements are converted to before they are summed.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
///     >>> torch.sum(x)
///     tensor(10.)
///     >>> torch.sum(x, dim=1, keepdim=True)
///     tensor([[3.],
///             [7.]])
#[operator(
    function,
    method,
    out(declared, computes, with = "dim"),
    overloads((0, 1), (1, 3)),
    sample = "reduction(name)"
)]
pub fn sum(
    input: &Tensor,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    if dtype == Some(DType::Bool) {
        return any(&to_dtype(input, DType::Bool)?, dim, keepdim);
    }
    let input = &as_dtype(input, dtype)?;
    let sum = match dim {
        None if !keepdim => Sum::call(input),
        dim => Sum1::call(input, dim.unwrap_or_default(), keepdim),
    };
    in_dtype(sum?, dtype)
}

/// Compute the mean of all elements, or over the given dimensions.
///
/// Args:
///     dtype: data type that the elements are converted to before they are averaged; needed for integers.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
///     >>> torch.mean(x)
///     tensor(2.5000)
///     >>> torch.mean(x, dim=0)
///     tensor([2., 3.])
#[operator(function, method, out, overloads((0, 1), (1, 3)), sample = "reduction(name, shapes=FULL)")]
pub fn mean(
    input: &Tensor,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let input = &as_dtype(input, dtype)?;
    if !input.dtype().is_differentiable() {
        let which = if dtype.is_some() { "Optional" } else { "Input" };
        return Err(Error::not_implemented(format!(
            "mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. Got: {}",
            input.dtype().scalar_name()
        )));
    }
    match dim {
        None if !keepdim => Mean::call(input),
        dim => Mean1::call(input, dim.unwrap_or_default(), keepdim),
    }
}

/// Multiply all elements, or those along one dimension.
///
/// Args:
///     dim: dimension to reduce; all elements if not given.
///     dtype: data type that the elements are converted to before they are multiplied.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
///     >>> torch.prod(x), torch.prod(x, dim=1)
///     (tensor(24.), tensor([ 2., 12.]))
#[operator(
    function,
    method,
    out(declared, computes, with = "dim"),
    overloads((0, 1), (1, 3)),
    autocast = single,
    sample = "reduction(name, several=False)"
)]
pub fn prod(
    input: &Tensor,
    dim: Option<i64>,
    #[default(false)] keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let input = &as_dtype(input, dtype)?;
    if dtype == Some(DType::Bool) {
        return all(input, dim.map(|dim| smallvec::smallvec![dim]), keepdim);
    }
    let product = match dim {
        None => Prod::call(input),
        Some(dim) => Prod1::call(input, dim, keepdim),
    };
    in_dtype(product?, dtype)
}

/// Sum all elements, or over the given dimensions, with NaN taken as zero.
///
/// Args:
///     dtype: data type that the elements are converted to before they are summed.
///
/// Examples:
///     >>> torch.nansum(torch.tensor([1.0, float("nan"), 2.0]))
///     tensor(3.)
#[operator(function, method, out, sample = "reduction(name)")]
pub fn nansum(
    input: &Tensor,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    if input.dtype().is_complex() {
        return Err(Error::not_implemented("nansum on CPU does not support complex inputs"));
    }
    if !input.dtype().is_float() {
        return sum(input, dim, keepdim, dtype);
    }
    if dtype.is_some_and(|dtype| !dtype.is_differentiable()) {
        return sum(&zero_for_nan(V::from(input)).tensor()?, dim, keepdim, dtype);
    }
    Nansum::call(&as_dtype(input, dtype)?, dim, keepdim)
}

/// Compute the mean of the elements that are not NaN, of all or over the given dimensions.
///
/// Args:
///     dtype: data type that the elements are converted to before they are averaged; needed for integers.
///
/// Examples:
///     >>> torch.nanmean(torch.tensor([1.0, float("nan"), 2.0]))
///     tensor(1.5000)
#[operator(function, method, out(called = "nansum"), composite, sample = "reduction(name, shapes=FULL)")]
pub fn nanmean(
    input: &Tensor,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    if !input.dtype().is_float() {
        return Err(Error::not_implemented(format!(
            "nanmean(): expected input to have floating point or complex dtype but got {}",
            input.dtype().scalar_name()
        )));
    }
    let numbers = unary::logical_not(&unary::isnan(input)?)?;
    let count = sum(&numbers, Some(dim.clone().unwrap_or_default()), keepdim, None)?;
    arithmetic::div(&Nansum::call(&as_dtype(input, dtype)?, dim, keepdim)?, &count)
}

/// Tell whether all elements are True (not zero), in the whole tensor or over the given dimensions.
///
/// Examples:
///     >>> x = torch.tensor([[True, False], [True, True]])
///     >>> torch.all(x), torch.all(x, dim=1)
///     (tensor(False), tensor([False,  True]))
#[operator(
    function,
    method,
    unrecorded,
    out(truths = "all only supports bool tensor for result, got: {target}"),
    overloads((0, 0), (0, 2), (1, 2))
)]
pub fn all(input: &Tensor, dim: Option<Ints>, #[default(false)] keepdim: bool) -> Result<Tensor> {
    All::call(input, dim, keepdim)
}

/// Tell whether any element is True (not zero), in the whole tensor or over the given dimensions.
///
/// Examples:
///     >>> x = torch.tensor([[True, False], [False, False]])
///     >>> torch.any(x), torch.any(x, dim=1)
///     (tensor(True), tensor([ True, False]))
#[operator(
    function,
    method,
    unrecorded,
    out(truths = "any only supports bool tensor for result, got: {target}"),
    overloads((0, 0), (0, 2), (1, 2))
)]
pub fn any(input: &Tensor, dim: Option<Ints>, #[default(false)] keepdim: bool) -> Result<Tensor> {
    Any::call(input, dim, keepdim)
}

/// Count the elements that are not zero, in the whole tensor or over the given dimensions.
///
/// Examples:
///     >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), dim=0)
///     tensor([1, 2])
#[operator(function, method, unrecorded, overloads((0, 1), (1, 1)))]
pub fn count_nonzero(input: &Tensor, dim: Option<Ints>) -> Result<Tensor> {
    mode::with_grad(false, || Sum1::call(&arithmetic::ne(input, 0i64)?, dim.unwrap_or_default(), false))
}
