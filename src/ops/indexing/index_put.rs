//! `index_put`: writes or adds values at the positions of index tensors.

use crate::base::{Put, broadcast};
use crate::operator::bodies::index::{Bounds, put, same_dtype};
use crate::operator::inplace;
use crate::operator::inplace::warn_expanded;
use crate::operator::primitives::constant;
use crate::ops::indexing::advanced::{
    any_batched, arrange, check_places, index, over_samples, plan, samples_of,
};
use crate::ops::indexing::index::expand_masks;
use crate::ops::prelude::*;

fn too_many(input: &Tensor, count: usize) -> Error {
    Error::index(format!("too many indices for tensor of dimension {} (got {count})", input.ndim()))
}

/// Expands the index tensors and masks, and checks that they fit `input` and `values`.
fn places(input: &Tensor, indices: &[Tensor], values: &Tensor) -> Result<(Vec<Option<Tensor>>, Tensor)> {
    if indices.is_empty() {
        return Err(Error::index("At least one index should be provided"));
    }
    if indices.len() > input.ndim() {
        return Err(too_many(input, indices.len()));
    }
    let mut by = Vec::new();
    for index in indices {
        by.extend(expand_masks(input, by.len(), index.clone())?.into_iter().map(Some));
    }
    if by.len() > input.ndim() {
        return Err(too_many(input, by.len()));
    }
    if by.is_empty() {
        return Err(Error::index("index_put: masks must have at least one dimension"));
    }
    check_places(input, &by)?;
    if values.dtype() != input.dtype() {
        return Err(Error::runtime(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            input.dtype().scalar_name(),
            values.dtype().scalar_name()
        )));
    }
    Ok((by, crate::ops::creation::create::on_device_of(values, input)?))
}

#[primitive(tangent = linear, devices = any)]
impl IndexPut {
    fn write(input: &Body, indices: &[Option<Tensor>], values: &Tensor, accumulate: bool) -> Result<()> {
        write(input, indices, values, accumulate)
    }
    fn d_input(g: &Tensor, indices: Vec<Option<Tensor>>, accumulate: bool) -> Result<Tensor> {
        if accumulate {
            return Ok(g.clone());
        }
        IndexPut::call(g, &indices, &constant::zeros(&[], g.dtype(), g.device())?, false)
    }
    fn d_values(g: &Tensor, indices: Vec<Option<Tensor>>) -> Result<Tensor> {
        index(g, &indices)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        indices: &[Option<Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        let b = samples_of(input, indices, Some(values));
        let how = over_samples(&b, input.ndim(), indices)?;
        let values = arrange(&b, &how, values)?;
        Ok(b.wrap(IndexPut::call(&b.full(input)?, &how.indices, &values, accumulate)?))
    }
}

pub(crate) fn write(out: &Body, indices: &[Option<Tensor>], values: &Tensor, accumulate: bool) -> Result<()> {
    let plan = plan(&out.layout, indices)?;
    let values = values.body();
    let fits = broadcast(values.shape(), &plan.shape).is_ok_and(|s| s == plan.shape);
    if !fits {
        return Err(Error::runtime(format!(
            "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
            values.shape(),
            plan.shape.as_slice()
        )));
    }
    same_dtype(out, &values)?;
    let values = values.with_layout(values.layout.broadcast_to(&plan.shape));
    if values.numel() == 0 {
        return Ok(());
    }
    let mode = if accumulate { Put::Add } else { Put::Assign };
    put(INDEX_PUT.name, &plan.source(out), &values, &plan.by(&out.layout), mode, Bounds::Wrapped)
}

/// `x[i] = value` with index tensors; `part` is `whole` or a view of it.
pub fn index_put_into(
    whole: &Tensor,
    part: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    if crate::operator::batch::any(&[part, values]) || any_batched(indices) {
        return put_samples(whole, part, indices, values, accumulate);
    }
    let target = if part.same(whole) { whole } else { part };
    IndexPut::over(target, indices, &crate::ops::creation::create::on_device_of(values, target)?, accumulate)
}

/// Writes values if some of the operands are batched.
fn put_samples(
    whole: &Tensor,
    part: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    let mut others: Vec<&Tensor> = indices.iter().flatten().collect();
    others.push(values);
    crate::operator::batch::check_target(part, &others)?;
    let b = samples_of(part, &[], None);
    let how = over_samples(&b, part.ndim(), indices)?;
    let values = arrange(&b, &how, values)?;
    index_put_into(whole.physical(), part.physical(), &how.indices, &values, accumulate)
}

/// The name of the in-place form.
pub const WRITTEN: &str = "index_put_";

/// Warns about `x[indices] = tensor` if elements of `x` share memory.
pub fn warn_put(target: &Tensor) -> Result<()> {
    warn_expanded(target, INDEX_PUT.name, "tensor[indices] = tensor")
}

/// Return a copy of `input` with `values` at the places that tensors of indices name: `input[indices] = values`.
///
/// Args:
///     indices: a tuple with a tensor of indices for each of the first dimensions.
///     values: the values to write, which can be broadcast to the places.
///     accumulate: whether to add to the elements rather than to replace them.
///
/// Examples:
///     >>> torch.index_put(torch.zeros(3), (torch.tensor([0, 2]),), torch.tensor([1.0, 2.0]))
///     tensor([1., 0., 2.])
#[operator(
    function,
    method,
    sample = "fixed([(3, 2), (2,)], lambda x, v: x.index_put((T.tensor([2, 0], device=x.device),), v))"
)]
pub fn index_put(
    input: &Tensor,
    #[elsewhere] indices: &[Tensor],
    #[elsewhere] values: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<Tensor> {
    let (by, values) = places(input, indices, values)?;
    IndexPut::call(input, &by, &values, accumulate)
}

/// Write `values` into the places that tensors of indices name, in place: `x[indices] = values`.
#[inplace(index_put)]
pub fn index_put_(
    input: &Tensor,
    #[elsewhere] indices: &[Tensor],
    #[elsewhere] values: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<()> {
    warn_put(input)?;
    inplace::begin(input, [values])?;
    let (by, values) = places(input, indices, values)?;
    index_put_into(input, input, &by, &values, accumulate)
}
