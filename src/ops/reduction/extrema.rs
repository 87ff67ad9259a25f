//! Maxima and minima: their values, their indices, and both at once.

use crate::base::{Put, Reduction, dims_or_all};
use crate::operator::batch;
use crate::operator::pointwise::dtype_checks;
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{constant, detached};
use crate::ops::elementwise::arithmetic::{maximum, minimum};
use crate::ops::indexing::index::Gather;
use crate::ops::indexing::scatter::scatter_into;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::reduce_dims;
use crate::ops::shape::squeeze::{squeeze_one, unsqueeze};

/// Rejects a maximum or minimum over no elements.
pub fn check_not_empty(op: &str, x: &Body, dim: Option<&[i64]>) -> Result<()> {
    if x.numel() > 0 {
        return Ok(());
    }
    let dims = dims_or_all(dim, x.layout.ndim())?;
    match dim {
        None | Some([]) => {
            let message = format!(
                "{op}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
                 'dim' argument."
            );
            Err(if op.starts_with("arg") { Error::index(message) } else { Error::runtime(message) })
        }
        Some(_) => match dims.iter().find(|&&d| x.shape()[d] == 0) {
            Some(d) => {
                let called = if op == "aminmax" { "" } else { "()" };
                Err(Error::index(format!("{op}{called}: Expected reduction dim {d} to have non-zero size.")))
            }
            None => Ok(()),
        },
    }
}

/// The gradient of a maximum or minimum `y`, divided evenly among the elements equal to it.
pub fn divide_gradient(g: V, x: V, y: V, at: &Meta, dim: &Option<Ints>, keepdim: bool) -> V {
    let y = y.unreduce(at, dim, keepdim);
    let winners = either(eq(&x, &y), both(is_nan(&x), is_nan(&y)));
    let count = winners.clone().sum(dim.as_deref().unwrap_or_default(), true).cast(at.dtype);
    select(0.0, g.unreduce(at, dim, keepdim) / count, winners)
}

/// The gradient of the maximum or minimum of all elements; it is contiguous.
pub fn shared_by_all(g: V, x: V, y: V, at: &Meta) -> V {
    in_order(divide_gradient(g, x, y, at, &None, false))
}

/// Like `shared`, but multiplies instead of selecting: a gradient that is not finite gives NaN for all other elements, as in
/// PyTorch.
fn scale_gradient(g: V, x: V, y: V, at: &Meta, dim: &Option<Ints>, keepdim: bool) -> V {
    let winners = eq(y.unreduce(at, dim, keepdim), &x).cast(at.dtype);
    let count = winners.clone().sum(dim.as_deref().unwrap_or_default(), true);
    g.unreduce(at, dim, keepdim) * winners / count
}

fn check_ordered(op: &str, dtype: DType) -> Result<()> {
    if !dtype.is_complex() {
        return Ok(());
    }
    Err(Error::unordered(format!("{op}(): does not support complex input")))
}

fn place(op: &str, fold: Reduction, input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Body> {
    let body = input.body();
    if body.dtype == DType::Bool {
        return Err(Error::not_implemented(format!("{op}(): does not support bool input")));
    }
    let dim = dim.map(|d| [d]);
    let dim = dim.as_ref().map(<[i64; 1]>::as_slice);
    check_not_empty(op, &body, dim)?;
    check_ordered(op, body.dtype)?;
    reduce_dims(fold, &body, dim, keepdim, DType::I64)
}

/// The gradient of values picked along `dim`: puts `g` at the positions of the values.
pub fn scatter_gradient(g: Tensor, indices: Tensor, at: &Meta, dim: i64, kept: bool) -> Result<Tensor> {
    let (mut g, mut indices) = (g, indices);
    if !kept && !at.shape.is_empty() {
        (g, indices) = (unsqueeze(&g, dim)?, unsqueeze(&indices, dim)?);
    }
    let zeros = constant::zeros(&at.shape, g.dtype(), at.device)?;
    scatter_into(&zeros, &g, dim, &indices, Put::Add)
}

/// The elements of `t` at the picked indices.
pub fn pick(t: &Tensor, indices: &Tensor, dim: i64, kept: bool) -> Result<Tensor> {
    let indices = detached::shallow(indices);
    if kept || t.ndim() == 0 {
        return Gather::call(t, dim, &indices);
    }
    squeeze_one(&Gather::call(t, dim, &unsqueeze(&indices, dim)?)?, dim)
}

/// The maximum or minimum along a dimension, and its index.
fn along(input: &Tensor, dim: i64, keepdim: bool, largest: bool) -> Result<[Body; 2]> {
    let x = input.body();
    let name = if largest { "max" } else { "min" };
    let at = wrap_dim(dim, x.layout.ndim())?;
    check_ordered(name, x.dtype)?;
    check_not_empty(name, &x, Some(&[dim]))?;
    if x.layout.ndim() == 0 {
        let zero = crate::operator::bodies::filled(&[], Scalar::Int(0), DType::I64, x.device())?;
        return Ok([crate::operator::bodies::duplicate(&x)?, zero]);
    }
    let kept = kept_shape(x.shape(), &[at]);
    let values = Body::new(&kept, x.dtype, x.device())?;
    let indices = Body::new(&kept, DType::I64, x.device())?;
    if values.numel() > 0 {
        fork!(over [values, x], with [indices, at, largest],
            cpu: done(crate::cpu::reduce::max_with_index(values.host()?, indices.host()?, x.host()?, at, largest)),
            gpu: crate::gpu::max_with_index(values.gpu()?, indices.gpu()?, x.gpu()?, at, largest))?;
    }
    Ok([values, indices].map(|body| if keepdim { body } else { drop_dims(body, &[at]) }))
}

/// The maximum or minimum over the dimensions `dim`, or over all elements.
fn over(fold: Reduction, input: &Tensor, dim: &Ints, keepdim: bool) -> Result<Body> {
    let body = input.body();
    let (name, kernel) =
        if fold == Reduction::Max { ("amax", "max_values_cpu") } else { ("amin", "min_values_cpu") };
    dtype_checks::order(kernel, body.dtype)?;
    check_not_empty(name, &body, Some(dim))?;
    reduce_dims(fold, &body, Some(dim), keepdim, body.dtype)
}

fn of_all(fold: Reduction, input: &Tensor) -> Result<Body> {
    let body = input.body();
    check_not_empty(if fold == Reduction::Max { "max" } else { "min" }, &body, None)?;
    reduce_dims(fold, &body, None, false, body.dtype)
}

/// The batching rule of `argmax` and `argmin`.
fn places_of_samples(
    b: &Batch,
    input: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    find: fn(&Tensor, Option<i64>, bool) -> Result<Tensor>,
) -> Result<Tensor> {
    let x = b.full(input)?;
    if let Some(dim) = dim {
        return batch::along(b, &x, (dim, keepdim), |x, (dim, keepdim)| find(x, Some(dim), keepdim));
    }
    let line = reshape(&x, &b.shape(&[x.shape()[b.k()..].iter().product()]))?;
    let kept = if keepdim { b.rank(&x) } else { 0 };
    reshape(&find(&line, Some(-1), false)?, &b.shape(&vec![1; kept])).map(|t| b.wrap(t))
}

#[primitive(
    batch = along(dim, keepdim),
    tangent = fn,
    results(values, indices),
    shows(self_sym_sizes = sizes(input))
)]
impl Max {
    fn forward(input: &Tensor, dim: i64, keepdim: bool) -> Result<[Body; 2]> {
        along(input, dim, keepdim, true)
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, keepdim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64, keepdim: bool) -> Result<Tensor> {
        pick(t_input, indices, dim, keepdim)
    }
}

#[primitive(
    batch = along(dim, keepdim),
    tangent = fn,
    results(values, indices),
    shows(self_sym_sizes = sizes(input))
)]
impl Min {
    fn forward(input: &Tensor, dim: i64, keepdim: bool) -> Result<[Body; 2]> {
        along(input, dim, keepdim, false)
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, keepdim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64, keepdim: bool) -> Result<Tensor> {
        pick(t_input, indices, dim, keepdim)
    }
}

#[primitive]
impl Max1 {
    fn forward(input: &Tensor) -> Result<Body> {
        of_all(Reduction::Max, input)
    }
    fn d_input(g: V, input: V, result: V, at: Meta) -> V {
        shared_by_all(g, input, result, &at)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        batch::over(b, &b.full(input)?, (None, false), |x, (dim, keepdim)| {
            Amax::call(x, dim.unwrap_or_default(), keepdim)
        })
    }
}

#[primitive]
impl Min1 {
    fn forward(input: &Tensor) -> Result<Body> {
        of_all(Reduction::Min, input)
    }
    fn d_input(g: V, input: V, result: V, at: Meta) -> V {
        shared_by_all(g, input, result, &at)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        batch::over(b, &b.full(input)?, (None, false), |x, (dim, keepdim)| {
            Amin::call(x, dim.unwrap_or_default(), keepdim)
        })
    }
}

#[primitive(batch = over(dim, keepdim))]
impl Amax {
    fn forward(input: &Tensor, dim: Ints, keepdim: bool) -> Result<Body> {
        over(Reduction::Max, input, &dim, keepdim)
    }
    fn d_input(g: V, input: V, result: V, at: Meta, dim: Ints, keepdim: bool) -> V {
        scale_gradient(g, input, result, &at, &Some(dim), keepdim)
    }
}

#[primitive(batch = over(dim, keepdim))]
impl Amin {
    fn forward(input: &Tensor, dim: Ints, keepdim: bool) -> Result<Body> {
        over(Reduction::Min, input, &dim, keepdim)
    }
    fn d_input(g: V, input: V, result: V, at: Meta, dim: Ints, keepdim: bool) -> V {
        scale_gradient(g, input, result, &at, &Some(dim), keepdim)
    }
}

#[primitive]
impl Argmax {
    fn forward(input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Body> {
        place("argmax", Reduction::ArgMax, input, dim, keepdim)
    }
    fn batch(b: &Batch, input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        places_of_samples(b, input, dim, keepdim, Argmax::call)
    }
}

#[primitive]
impl Argmin {
    fn forward(input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Body> {
        place("argmin", Reduction::ArgMin, input, dim, keepdim)
    }
    fn batch(b: &Batch, input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        places_of_samples(b, input, dim, keepdim, Argmin::call)
    }
}

#[primitive(results(min, max))]
impl Aminmax {
    fn forward(input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<[Body; 2]> {
        let (body, dims) = (input.body(), dim.map(|d| [d]));
        let dims = dims.as_ref().map(<[i64; 1]>::as_slice);
        let low = reduce_dims(Reduction::Min, &body, dims, keepdim, body.dtype)?;
        Ok([low, reduce_dims(Reduction::Max, &body, dims, keepdim, body.dtype)?])
    }
    fn d_input(
        g: [Option<V>; 2],
        input: V,
        min: V,
        max: V,
        at: Meta,
        dim: Option<i64>,
        keepdim: bool,
    ) -> Option<V> {
        let dim = dim.map(|d| smallvec::smallvec![d]);
        let [low, high] = g;
        let low = low.map(|g| divide_gradient(g, input.clone(), min, &at, &dim, keepdim));
        let high = high.map(|g| divide_gradient(g, input, max, &at, &dim, keepdim));
        match (low, high) {
            (Some(low), Some(high)) => Some(low + high),
            (low, high) => low.or(high),
        }
    }
    fn batch(_b: &Batch, input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<[Tensor; 2]> {
        let Some(dim) = dim else { return Ok([Min1::call(input)?, Max1::call(input)?]) };
        let dims: Ints = smallvec::smallvec![dim];
        Ok([Amin::call(input, dims.clone(), keepdim)?, Amax::call(input, dims, keepdim)?])
    }
}

/// Return the maximum of all elements, or with `dim` the maxima along it and their indices.
///
/// With a second tensor, return the element-wise maximum, as `torch.maximum` does. NaN counts as the largest value.
///
/// Args:
///     other: a tensor to compare with, element by element.
///     dim: dimension to reduce.
///     keepdim: whether the reduced dimension stays in the result, with size 1. Default: `False`
///     out: tensor to write the result into; with `dim` two, for values and indices.
///
/// Returns:
///     A tensor, or with `dim` a named tuple `(values, indices)`.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
///     >>> torch.max(x)
///     tensor(7.)
///     >>> values, indices = torch.max(x, dim=1)
///     >>> values, indices
///     (tensor([5., 7.]), tensor([1, 0]))
#[operator(function, method, out, sample = "extreme(name)")]
pub fn max(input: &Tensor) -> Result<Tensor> {
    Max1::call(input)
}

/// Return the element-wise maximum of two tensors.
#[overload(max.other)]
pub fn max_of_two(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    maximum(input, other)
}

/// Return the maxima along `dim` and their indices.
#[overload(max.dim, out(declared), returns(values, indices))]
pub fn max_along(input: &Tensor, dim: i64, #[default(false)] keepdim: bool) -> Result<[Tensor; 2]> {
    Max::call(input, dim, keepdim)
}

/// Return the minimum of all elements, or with `dim` the minima along it and their indices.
///
/// With a second tensor, return the element-wise minimum, as `torch.minimum` does. NaN counts as the smallest value.
///
/// Args:
///     other: a tensor to compare with, element by element.
///     dim: dimension to reduce.
///     keepdim: whether the reduced dimension stays in the result, with size 1. Default: `False`
///     out: tensor to write the result into; with `dim` two, for values and indices.
///
/// Returns:
///     A tensor, or with `dim` a named tuple `(values, indices)`.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
///     >>> torch.min(x)
///     tensor(1.)
///     >>> torch.min(x, dim=1).indices
///     tensor([0, 1])
#[operator(function, method, out, sample = "extreme(name)")]
pub fn min(input: &Tensor) -> Result<Tensor> {
    Min1::call(input)
}

/// Return the element-wise minimum of two tensors.
#[overload(min.other)]
pub fn min_of_two(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    minimum(input, other)
}

/// Return the minima along `dim` and their indices.
#[overload(min.dim, out(declared), returns(values, indices))]
pub fn min_along(input: &Tensor, dim: i64, #[default(false)] keepdim: bool) -> Result<[Tensor; 2]> {
    Min::call(input, dim, keepdim)
}

/// Return the maximum over one or several dimensions.
///
/// Unlike `torch.max` it gives no indices, and equal maxima share the gradient evenly.
///
/// Examples:
///     >>> torch.amax(torch.tensor([[1.0, 5.0], [7.0, 3.0]]), dim=1)
///     tensor([5., 7.])
#[operator(
    function,
    method,
    out(
        message = "Expected the dtype for input and out to match, but got {result} for input's dtype and {target} for out's dtype."
    ),
    sample = "reduction(name, shapes=FULL)"
)]
pub fn amax(input: &Tensor, dim: Option<Ints>, #[default(false)] keepdim: bool) -> Result<Tensor> {
    Amax::call(input, dim.unwrap_or_default(), keepdim)
}

/// Return the minimum over one or several dimensions.
///
/// Unlike `torch.min` it gives no indices, and equal minima share the gradient evenly.
///
/// Examples:
///     >>> torch.amin(torch.tensor([[1.0, 5.0], [7.0, 3.0]]), dim=1)
///     tensor([1., 3.])
#[operator(
    function,
    method,
    out(
        message = "Expected the dtype for input and out to match, but got {result} for input's dtype and {target} for out's dtype."
    ),
    sample = "reduction(name, shapes=FULL)"
)]
pub fn amin(input: &Tensor, dim: Option<Ints>, #[default(false)] keepdim: bool) -> Result<Tensor> {
    Amin::call(input, dim.unwrap_or_default(), keepdim)
}

/// Return the index of the maximum, of all elements or along a dimension.
///
/// Args:
///     dim: dimension to reduce; without it, the index is that in the flattened tensor.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
///     >>> torch.argmax(x), torch.argmax(x, dim=1)
///     (tensor(2), tensor([1, 0]))
#[operator(function, method, out(declared), unrecorded)]
pub fn argmax(input: &Tensor, dim: Option<i64>, #[default(false)] keepdim: bool) -> Result<Tensor> {
    Argmax::call(input, dim, keepdim)
}

/// Return the index of the minimum, of all elements or along a dimension.
///
/// Args:
///     dim: dimension to reduce; without it, the index is that in the flattened tensor.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
///     >>> torch.argmin(x), torch.argmin(x, dim=1)
///     (tensor(0), tensor([0, 1]))
#[operator(function, method, out(declared), unrecorded)]
pub fn argmin(input: &Tensor, dim: Option<i64>, #[default(false)] keepdim: bool) -> Result<Tensor> {
    Argmin::call(input, dim, keepdim)
}

/// Return both the minimum and the maximum, of all elements or along a dimension.
///
/// Args:
///     dim: dimension to reduce; all elements if not given.
///
/// Returns:
///     A named tuple `(min, max)`.
///
/// Examples:
///     >>> low, high = torch.aminmax(torch.tensor([3.0, 1.0, 2.0]))
///     >>> low, high
///     (tensor(1.), tensor(3.))
#[operator(function, method, out(declared), returns(min, max), sample = "extreme_pair()")]
pub fn aminmax(
    input: &Tensor,
    #[keyword] dim: Option<i64>,
    #[default(false)] keepdim: bool,
) -> Result<[Tensor; 2]> {
    if input.dtype().is_complex() {
        return Err(Error::type_error(format!(
            "aminmax not implemented for {}",
            input.dtype().scalar_name()
        )));
    }
    let body = input.body();
    match dim {
        None if body.numel() == 0 => {
            return Err(Error::runtime(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
            ));
        }
        None => {}
        Some(dim) => check_not_empty("aminmax", &body, Some(&[dim]))?,
    }
    Aminmax::call(input, dim, keepdim)
}
