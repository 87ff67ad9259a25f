//! The largest and the smallest: their values, their places, both at once.

use super::formal::{both, either, eq, is_nan, select};
use super::index::scatter_into;
use super::kernel::{done, drop_dims, fork, kept_shape};
use super::macros::{compose, ops};
use super::record::{begin, end_many};
use super::reduce::folded;
use super::row::{Arg, Ints, Out};
use super::value::V;
use crate::base::{DType, Error, Fold, Put, Result, wrap_dim};
use crate::tensor::{Body, Derivative, Grads, Meta, Saved, Step, Tensor};

/// Refuses to look for an extremum among no elements.
pub fn check_not_empty(op: &str, x: &Body, dim: Option<&[i64]>) -> Result<()> {
    if x.numel() > 0 {
        return Ok(());
    }
    let dims = super::reduce::dims_or_all(dim, x.layout.ndim())?;
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

/// The gradient of an extremum `y`, shared evenly among the elements that are equal to it.
pub fn shared(g: V, x: V, y: V, at: &Meta, dim: &Option<Ints>, keepdim: bool) -> V {
    let y = y.unreduce(at, dim, keepdim);
    let winners = either(eq(&x, &y), both(is_nan(&x), is_nan(&y)));
    let count = winners.clone().sum(dim.as_deref().unwrap_or_default(), true).cast(at.dtype);
    select(0.0, g.unreduce(at, dim, keepdim) / count, winners)
}

/// The same of all elements, whose gradients lie in their order.
pub fn shared_by_all(g: V, x: V, y: V, at: &Meta) -> V {
    super::loss_formula::in_order(shared(g, x, y, at, &None, false))
}

/// The same by a product: what is not finite reaches all elements.
fn scaled(g: V, x: V, y: V, at: &Meta, dim: &Option<Ints>, keepdim: bool) -> V {
    let winners = eq(y.unreduce(at, dim, keepdim), &x).cast(at.dtype);
    let count = winners.clone().sum(dim.as_deref().unwrap_or_default(), true);
    g.unreduce(at, dim, keepdim) * winners / count
}

ops! { "reduce";
    /// The largest elements over dimensions; equal ones share the gradient.
    [out] fn amax(input; dim: Ints = Ints::new(), keepdim: bool = false) -> y {
        let body = input.body();
        super::refuse::order("max_values_cpu", body.dtype)?;
        check_not_empty("amax", &body, Some(&dim))?;
        folded(Fold::Max, &body, Some(&dim), keepdim, body.dtype)
    }
    input: |g, input, y, at, dim, keepdim| scaled(g, input, y, &at, &Some(dim), keepdim);
    /// The smallest elements over dimensions; equal ones share the gradient.
    [out] fn amin(input; dim: Ints = Ints::new(), keepdim: bool = false) -> y {
        let body = input.body();
        super::refuse::order("min_values_cpu", body.dtype)?;
        check_not_empty("amin", &body, Some(&dim))?;
        folded(Fold::Min, &body, Some(&dim), keepdim, body.dtype)
    }
    input: |g, input, y, at, dim, keepdim| scaled(g, input, y, &at, &Some(dim), keepdim);
    /// The largest of all elements.
    [hidden] fn max_all(input) -> y {
        let body = input.body();
        check_not_empty("max", &body, None)?;
        folded(Fold::Max, &body, None, false, body.dtype)
    }
    input: |g, input, y, at| shared_by_all(g, input, y, &at);
    /// The smallest of all elements.
    [hidden] fn min_all(input) -> y {
        let body = input.body();
        check_not_empty("min", &body, None)?;
        folded(Fold::Min, &body, None, false, body.dtype)
    }
    input: |g, input, y, at| shared_by_all(g, input, y, &at);
    /// Where the largest element is: along `dim`, or among all.
    [out] fn argmax(input; dim: Option<i64> = None, keepdim: bool = false) -> y { place("argmax", Fold::ArgMax, input, dim, keepdim) }
    /// Where the smallest element is: along `dim`, or among all.
    [out] fn argmin(input; dim: Option<i64> = None, keepdim: bool = false) -> y { place("argmin", Fold::ArgMin, input, dim, keepdim) }
}

fn place(op: &str, fold: Fold, input: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Body> {
    let body = input.body();
    if body.dtype == DType::Bool {
        return Err(Error::not_implemented(format!("{op}(): does not support bool input")));
    }
    let dim = dim.map(|d| [d]);
    let dim = dim.as_ref().map(<[i64; 1]>::as_slice);
    check_not_empty(op, &body, dim)?;
    folded(fold, &body, dim, keepdim, DType::I64)
}

/// Operators that pick values and say where save the second output, the indices.
pub const SAVE_INDICES: &[(usize, u64)] = &[(0, 1 << 62)];
/// Running extrema save their input, too.
pub const SAVE_INPUT_AND_INDICES: &[(usize, u64)] = &[(0, 1 | 1 << 62)];

/// Their derivative: the gradient goes to where the values were. `params` are the dimension and whether it was kept.
pub fn put_back(step: &Step) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None];
    if let (Some(g), true) = (step.grad(0), step.wants(0)) {
        let &(dim, kept) = step.params::<(i64, bool)>()?;
        let at = super::meta_of(step, 0)?;
        let mut index = step.tensor(Saved::OUTPUT + 1)?;
        let mut g = g.clone();
        if !kept && !at.shape.is_empty() {
            (g, index) = (super::view::unsqueeze(&g, dim)?, super::view::unsqueeze(&index, dim)?);
        }
        let zeros = super::create::zeros(&at.shape, g.dtype(), at.device)?;
        grads[0] = Some(scatter_into(&zeros, &g, dim, index, Put::Add)?);
    }
    Ok(grads)
}

static MAX: Derivative = Derivative { facts: None, name: "MaxBackward0", apply: put_back };
static MIN: Derivative = Derivative { facts: None, name: "MinBackward0", apply: put_back };

/// The extremum along a dimension and its index.
fn along(input: &Tensor, dim: i64, keepdim: bool, largest: bool) -> Result<Vec<Tensor>> {
    let x = input.body();
    let (name, derivative) = if largest { ("max", &MAX) } else { ("min", &MIN) };
    let at = wrap_dim(dim, x.layout.ndim())?;
    super::refuse::order(name, x.dtype)?;
    check_not_empty(name, &x, Some(&[dim]))?;
    if input.is_batched() {
        return super::batch::picked(input, dim, |value, at| along(value, at, keepdim, largest));
    }
    let recorder = begin(derivative, &[input], || Some(Box::new((dim, keepdim))));
    if x.layout.ndim() == 0 {
        let zero = super::kernel::filled(&[], crate::base::Scalar::Int(0), DType::I64, x.device())?;
        let made = end_many(recorder, SAVE_INDICES, &[input], vec![super::kernel::duplicate(&x)?, zero])?;
        return super::tangent::picked(made, input, dim, true);
    }
    let kept = kept_shape(x.shape(), &[at]);
    let values = Body::new(&kept, x.dtype, x.device())?;
    let indices = Body::new(&kept, DType::I64, x.device())?;
    if values.numel() > 0 {
        fork!([&values, &x],
            cpu: done(crate::cpu::reduce::max_with_index(values.host()?, indices.host()?, x.host()?, at, largest)),
            gpu: crate::gpu::max_with_index(values.gpu()?, indices.gpu()?, x.gpu()?, at, largest))?;
    }
    let finish = |body: Body| if keepdim { body } else { drop_dims(body, &[at]) };
    let made = end_many(recorder, SAVE_INDICES, &[input], vec![finish(values), finish(indices)])?;
    super::tangent::picked(made, input, dim, keepdim)
}

static AMINMAX: Derivative = Derivative {
    facts: None,
    name: "AminmaxBackward0",
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None];
        if !step.wants(0) {
            return Ok(grads);
        }
        let &(dim, keepdim) = step.params::<(Option<i64>, bool)>()?;
        let dim: Option<Ints> = dim.map(|d| smallvec::smallvec![d]);
        let (x, at) = (V::from(step.tensor(0)?), super::meta_of(step, 0)?);
        let mut total: Option<V> = None;
        for output in 0..2u16 {
            if let Some(g) = step.grad(usize::from(output)) {
                let y = V::from(step.tensor(Saved::OUTPUT + output)?);
                let part = shared(g.into(), x.clone(), y, &at, &dim, keepdim);
                total = Some(total.map_or(part.clone(), |sum| sum + part));
            }
        }
        grads[0] = total.map(V::tensor).transpose()?;
        Ok(grads)
    },
};

mod more {
    use super::*;
    use crate::ops::arithmetic::{maximum, minimum};
    use crate::ops::tangent;

    /// The three meanings of `max(input, …)`: of all, along a dimension, of two tensors.
    fn overloaded(name: &'static str, input: &Tensor, dim: Option<Arg>, keepdim: bool) -> Result<Out> {
        let largest = name == "max";
        match dim {
            None if largest => max_all(input).map(Out::Tensor),
            None => min_all(input).map(Out::Tensor),
            Some(Arg::Tensor(other)) if largest => maximum(input, &other).map(Out::Tensor),
            Some(Arg::Tensor(other)) => minimum(input, &other).map(Out::Tensor),
            Some(Arg::Int(dim)) => {
                Ok(Out::Tuple(name, &["values", "indices"], along(input, dim, keepdim, largest)?))
            }
            _ => Err(Error::type_error(format!("{name}() received an invalid combination of arguments"))),
        }
    }

    compose! { "reduce";
        /// The largest element; along `dim` its index, too; or the larger elements of two tensors.
        [out] fn max(input: Tensor, dim: Option<Arg> = None, keepdim: bool = false) -> Out {
            overloaded("max", &input, dim, keepdim)
        }
        /// The smallest element; along `dim` its index, too; or the smaller elements of two tensors.
        [out] fn min(input: Tensor, dim: Option<Arg> = None, keepdim: bool = false) -> Out {
            overloaded("min", &input, dim, keepdim)
        }
        /// The smallest and the largest element.
        [out] fn aminmax(input: Tensor, dim: Option<i64> = None, keepdim: bool = false) -> Out {
            crate::ops::refuse::order("aminmax", input.dtype())?;
            let dims: Option<Ints> = dim.map(|d| smallvec::smallvec![d]);
            let body = input.body();
            match &dims {
                None if body.numel() == 0 => return Err(Error::runtime(
                    "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
                )),
                _ => check_not_empty("aminmax", &body, dims.as_deref())?,
            }
            if input.is_batched() {
                let (low, high) = match &dims {
                    None => (min_all(&input)?, max_all(&input)?),
                    Some(dims) => (amin(&input, dims.clone(), keepdim)?, amax(&input, dims.clone(), keepdim)?),
                };
                return Ok(Out::Tuple("aminmax", &["min", "max"], vec![low, high]));
            }
            let recorder = begin(&AMINMAX, &[&input], || Some(Box::new((dim, keepdim))));
            let low = folded(Fold::Min, &body, dims.as_deref(), keepdim, body.dtype)?;
            let high = folded(Fold::Max, &body, dims.as_deref(), keepdim, body.dtype)?;
            let saves = &[(0, 1 | 1 << 63 | 1 << 62)];
            let made = end_many(recorder, saves, &[&input], vec![low, high])?;
            if input.is_dual() {
                tangent::attach(&made, &[&input], tangent::Rule::Transposed, &|xs| match aminmax(xs[0].clone(), dim, keepdim)? {
                    Out::Tuple(_, _, both) => Ok(both),
                    _ => Ok(Vec::new()),
                })?;
            }
            Ok(Out::Tuple("aminmax", &["min", "max"], made))
        }
    }
}
pub use more::COMPOSED;
