//! `index_reduce`: slices sent to the same position are multiplied, averaged, or their maximum or minimum is taken. It is
//! computed as `scatter_reduce`, with the same index for all elements of a slice.

use crate::base::warn_once;
use crate::operator::bodies::overlap;
use crate::operator::inplace;
use crate::operator::pointwise::dtype_checks;
use crate::operator::primitives::views::{ints, reshape};
use crate::ops::indexing::index::IndexSelect;
use crate::ops::indexing::scatter::IndexFill0;
use crate::ops::indexing::scatter_reduce::{Reduced, ScatterReduce, ScatterReduction, reduce_into};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::view::expand;
use crate::tensor::{Derivative, any_requires_grad, no_derivative};
use std::sync::atomic::AtomicBool;

/// Expands the index vector to every element of `source`.
fn everywhere(index: &Tensor, dim: i64, source: &Tensor) -> Result<Tensor> {
    let shape = source.shape();
    if shape.is_empty() {
        return reshape(index, &[]);
    }
    let mut line: Dims = smallvec::smallvec![1; shape.len()];
    line[wrap_dim(dim, shape.len())?] = index.numel();
    expand(&reshape(index, &line)?, ints(&shape))
}

static SEVERAL_ZEROS: Derivative = no_derivative!(
    "torch::autograd::Error",
    "index_reduce(): Double backward is unsupported for source when >1 zeros in source are scattered to the same position \
     in self"
);

/// The operands of `scatter_reduce` for a reduction of slices.
fn as_elements<'a>(
    input: &'a Tensor,
    src: &'a Tensor,
    result: &'a Tensor,
    (dim, index): (i64, &'a Tensor),
    how: ScatterReduction,
    own: bool,
) -> Reduced<'a> {
    Reduced { input, src, result, dim, index, how, own, twice: &SEVERAL_ZEROS }
}

#[primitive]
impl IndexReduce {
    fn forward(
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<Body> {
        no_grad(|| reduce_into(input, source, dim, &everywhere(index, dim, source)?, reduce, include_self))
    }
    fn d_input(
        g: V,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        result: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<V> {
        let all = everywhere(index, dim, source)?;
        let g = as_elements(input, source, result, (dim, &all), reduce, include_self).for_input(g)?;
        Ok(if include_self { g } else { g.then(|g| IndexFill0::call(&g, dim, index, Scalar::Int(0))) })
    }
    fn d_source(
        g: V,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        result: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<V> {
        let all = everywhere(index, dim, source)?;
        as_elements(input, source, result, (dim, &all), reduce, include_self).for_source(g, |g| match source
            .ndim()
        {
            0 => g.reshape(&[1]).then(|g| IndexSelect::call(&g, 0, index)).reshape(&[]),
            _ => g.then(|g| IndexSelect::call(&g, dim, index)),
        })
    }
    fn batch(
        _: &Batch,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<Tensor> {
        ScatterReduce::call(input, dim, &everywhere(index, dim, source)?, source, reduce, include_self)
    }
}

fn check(input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<i64> {
    let at = wrap_dim(dim, input.ndim())?;
    let (to, from) = (input.shape(), source.shape());
    if index.ndim() > 1 {
        return Err(Error::index(format!(
            "index_reduce_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {:?}",
            index.ndim(),
            index.dtype().scalar_name(),
            index.shape().as_slice()
        )));
    }
    if !matches!(index.dtype(), DType::I64 | DType::I32) {
        return Err(Error::runtime(format!(
            "index_reduce_(): Expected dtype int32/int64 for index but got: {}",
            index.dtype().scalar_name()
        )));
    }
    if input.dtype() != source.dtype() {
        return Err(Error::runtime(format!(
            "index_reduce_(): self ({}) and source ({}) must have the same scalar type",
            input.dtype().scalar_name(),
            source.dtype().scalar_name()
        )));
    }
    if at > 0 && at >= from.len() {
        return Err(Error::runtime(format!(
            "index_reduce_(): Indexing dim {at} is out of bounds of the source tensor with dim {}",
            from.len()
        )));
    }
    let count = from.get(at).copied().unwrap_or(1);
    if index.numel() != count {
        return Err(Error::runtime(format!(
            "index_reduce_(): Number of indices ({}) should be equal to source.size(dim): ({count}), for dim: {at}",
            index.numel()
        )));
    }
    let across = |shape: &Dims| -> Dims {
        shape.iter().enumerate().filter(|(d, _)| *d != at).map(|(_, &n)| n).collect()
    };
    if to.len() != from.len() || across(&to) != across(&from) {
        return Err(Error::runtime(format!(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {:?} \
             source.shape = {:?}",
            to.as_slice(),
            from.as_slice()
        )));
    }
    Ok(at as i64)
}

/// Combine the slices of `source` into a copy of `input`, at indices along a dimension.
///
/// Args:
///     index: vector with the place in `input` of each slice of `source`.
///     source: the slices.
///     reduce: how to combine what meets: `"prod"`, `"mean"`, `"amax"` or `"amin"`.
///     include_self: whether the elements of `input` take part.
///
/// Examples:
///     >>> torch.index_reduce(torch.ones(2), 0, torch.tensor([0, 0]), torch.tensor([3.0, 5.0]), "amax")
///     tensor([5., 1.])
#[operator(
    function,
    method,
    out(declared),
    sample = "listed(lambda x, dim, i, y: T.index_reduce(x, dim, i, y, 'mean'), lambda draw, shape, dim, n: [values(replaced(shape, dim, n), draw(SEEDS))])"
)]
pub fn index_reduce(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    reduce: &str,
    #[keyword]
    #[default(true)]
    include_self: bool,
) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    warn_once(&TOLD, "index_reduce() is in beta and the API may change at any time.")?;
    let how = match reduce {
        "prod" => ScatterReduction::Prod,
        "mean" => ScatterReduction::Mean,
        "amax" => ScatterReduction::Max,
        "amin" => ScatterReduction::Min,
        other => {
            return Err(Error::runtime(format!(
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {other}."
            )));
        }
    };
    let at = check(input, dim, index, source)?;
    match how {
        ScatterReduction::Max => dtype_checks::order("maximum_cpu", input.dtype())?,
        ScatterReduction::Min => dtype_checks::order("minimum_cpu", input.dtype())?,
        _ => {}
    }
    if input.dtype().is_complex() && any_requires_grad([input, source]) {
        return Err(Error::not_implemented(
            "index_reduce does not support automatic differentiation for outputs with complex dtype.",
        ));
    }
    IndexReduce::call(input, at, index, source, how, include_self).map_err(|error| match error.fault() {
        Fault::Beyond { .. } => Error::index("index out of range in self"),
        _ => error,
    })
}

/// Combine the slices of `source` into the tensor itself, at indices along a dimension.
#[inplace(index_reduce)]
pub fn index_reduce_(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    reduce: &str,
    #[keyword]
    #[default(true)]
    include_self: bool,
) -> Result<()> {
    for t in [index, source] {
        overlap::check_disjoint(input, t)?;
    }
    let make = |input: &Tensor| index_reduce(input, dim, index, source, reduce, include_self);
    inplace::by_result(input, &[index, source], make, inplace::replace)
}
