//! Rules of reading and writing by index. Along one dimension the index gets the batch dimensions too; an advanced index
//! gets a number for every sample beside it.

use super::rules::{Rules, rules};
use super::{Batch, Ints};
use crate::base::{DType, Dims, Error, Put, Result, Scalar, broadcast};
use crate::ops::index::{gather, index_add_scaled, index_select, numbers, scatter_into};
use crate::ops::pointwise::apply as choose;
use crate::ops::view::{expand, ints, permute, reshape, squeeze_one, unsqueeze};
use crate::ops::{arithmetic as a, create, index as single, scatter, scatter_reduce};
use crate::tensor::Tensor;

/// The physical index of a row whose index has the rank of its input.
fn whole(b: &Batch, index: &Tensor) -> Result<Tensor> {
    b.full(index)
}

/// Something along `dim`, with samples of no dimensions taken as vectors of one.
fn along(
    b: &Batch,
    x: &Tensor,
    others: &[&Tensor],
    dim: i64,
    f: impl FnOnce(&Tensor, &[Tensor], i64) -> Result<Tensor>,
) -> Result<Tensor> {
    let rank = b.rank(x);
    let at = b.dim(dim, rank)?;
    let raised = |t: &Tensor| if b.rank(t) == 0 { unsqueeze(t, -1) } else { Ok(t.clone()) };
    let others = others.iter().map(|t| raised(t)).collect::<Result<Vec<_>>>()?;
    f(&raised(x)?, &others, at)
}

fn gathered(b: &Batch, x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let by = whole(b, index)?;
    if b.rank(x).max(1) != b.rank(&by).max(1) {
        return Err(Error::runtime("Index tensor must have the same number of dimensions as input tensor"));
    }
    let made = along(b, x, &[&by], dim, |x, by, at| gather(x, at, by[0].clone()))?;
    if index.ndim() == 0 { squeeze_one(&made, -1) } else { Ok(made) }
}

fn scattered(b: &Batch, x: &Tensor, src: &Tensor, dim: i64, index: &Tensor, how: Put) -> Result<Tensor> {
    let by = whole(b, index)?;
    let made =
        along(b, x, &[src, &by], dim, |x, rest, at| scatter_into(x, &rest[0], at, rest[1].clone(), how))?;
    if b.rank(x) == 0 { squeeze_one(&made, -1) } else { Ok(made) }
}

/// A vector of positions for each sample, stretched over the dimensions beside `dim` of `shape` (with the batch in front).
fn positions(b: &Batch, index: &Tensor, at: i64, shape: &[usize]) -> Result<Tensor> {
    let mut narrow: Dims = smallvec::smallvec![1; shape.len()];
    narrow[..b.k()].copy_from_slice(&b.sizes);
    narrow[at as usize] = index.numel();
    let by = reshape(&b.full(index)?, &narrow)?;
    let mut wide = Dims::from_slice(shape);
    wide[at as usize] = index.numel();
    expand(&create::to_dtype(&by, DType::I64)?, ints(&wide))
}

fn check_vector(op: &str, index: &Tensor) -> Result<()> {
    match index.ndim() {
        0 | 1 => Ok(()),
        _ => Err(Error::index(format!("{op}(): Index is supposed to be a vector"))),
    }
}

fn selected(b: &Batch, x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    check_vector("index_select", index)?;
    let made = along(b, x, &[], dim, |x, _, at| {
        if !index.is_batched() {
            return index_select(x, at, index.clone());
        }
        gather(x, at, positions(b, index, at, &x.shape())?)
    })?;
    if b.rank(x) == 0 { squeeze_one(&made, -1) } else { Ok(made) }
}

/// Slices of `source` put or added where a vector of positions says.
fn placed(b: &Batch, x: &Tensor, source: &Tensor, dim: i64, index: &Tensor, how: Put) -> Result<Tensor> {
    check_vector("index_add", index)?;
    let made = along(b, x, &[source], dim, |x, source, at| {
        if !index.is_batched() && how == Put::Add {
            return index_add_scaled(x, &source[0], at, index.clone(), Scalar::Int(1));
        }
        let by = positions(b, index, at, &x.shape())?;
        let source = reshape(&source[0], &by.shape())?;
        scatter_into(x, &source, at, by, how)
    })?;
    if b.rank(x) == 0 { squeeze_one(&made, -1) } else { Ok(made) }
}

fn slices_filled(b: &Batch, x: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<Tensor> {
    check_vector("index_fill", index)?;
    let made = along(b, x, &[], dim, |x, _, at| {
        if !index.is_batched() {
            return scatter::index_fill_number(x, at, index.clone(), value);
        }
        // Negative positions count from the end.
        let by = positions(b, index, at, &x.shape())?;
        let by = a::remainder(&by, x.shape()[at as usize] as i64)?;
        scatter::scatter_number(x, at, by, value)
    })?;
    if b.rank(x) == 0 { squeeze_one(&made, -1) } else { Ok(made) }
}

/// `x` where the mask is false, `value` where it is true, in the dtype of `x`.
fn masked(x: &Tensor, mask: &Tensor, value: crate::ops::Operand) -> Result<Tensor> {
    let shape = x.shape();
    if !broadcast(&mask.shape(), &shape).is_ok_and(|s| s == shape) {
        broadcast(&mask.shape(), &shape)?;
    }
    create::to_dtype(&choose(&a::choose::ROW, &[value, x.into(), mask.into()])?, x.dtype())
}

fn slices_filled_with(x: &Tensor, value: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let zeros = create::zeros(&x.shape(), DType::F32, x.device())?;
    let hit = scatter::index_fill_number(&zeros, dim, index.clone(), Scalar::Int(1))?;
    masked(x, &a::ne(&hit, 0i64)?, value.into())
}

fn taken(b: &Batch, x: &Tensor, index: &Tensor) -> Result<Tensor> {
    let flat = reshape(x, &b.shape(&[x.shape()[b.k()..].iter().product()]))?;
    if !index.is_batched() {
        let line = reshape(index, &[index.numel()])?;
        let n = flat.shape()[b.k()].max(1) as i64;
        let picked = index_select(&flat, b.k() as i64, a::remainder(&line, n)?)?;
        return reshape(&picked, &b.shape(&index.shape()));
    }
    let by = reshape(&b.full(index)?, &b.shape(&[index.numel()]))?;
    let by = a::remainder(&by, flat.shape()[b.k()].max(1) as i64)?;
    reshape(&gather(&flat, b.k() as i64, by)?, &b.shape(&index.shape()))
}

fn put(b: &Batch, x: &Tensor, source: &Tensor, index: &Tensor, how: Put) -> Result<Tensor> {
    let (shape, count) = (x.shape(), index.numel());
    let n = shape[b.k()..].iter().product();
    let flat = reshape(x, &b.shape(&[n]))?;
    let line = a::remainder(&reshape(index, &[count])?, n.max(1) as i64)?;
    let source = reshape(source, &b.shape(&[count]))?;
    reshape(&placed(b, &flat, &source, 0, &line, how)?, &shape)
}

pub const PHYSICAL: Rules = rules! { physical b;
    index::gather(x; dim, index) => gathered(b, x, dim, &index);
    index::scatter_into(x, src; dim, index, how) => scattered(b, x, src, dim, &index, how);
    index::index_select(x; dim, index) => selected(b, x, dim, &index);
    index::index_add_scaled(x, source; dim, index, alpha) => {
        let source = if alpha.is_one() { source.clone() } else { a::mul(source, alpha)? };
        placed(b, x, &source, dim, &index, Put::Add)
    };
    scatter::index_copied(x, source; dim, index) => placed(b, x, source, dim, &index, Put::Assign);
    scatter::index_fill_number(x; dim, index, value) => slices_filled(b, x, dim, &index, value);
    scatter::scatter_number(x; dim, index, value) => {
        let by = whole(b, &index)?;
        let made = along(b, x, &[&by], dim, |x, by, at| scatter::scatter_number(x, at, by[0].clone(), value))?;
        if b.rank(x) == 0 { squeeze_one(&made, -1) } else { Ok(made) }
    };
    scatter::scatter_added(x, src; dim, index) => scattered(b, x, src, dim, &index, Put::Add);
    scatter_reduce::scatter_reduced(x, src; dim, index, how, own) => {
        let by = whole(b, &index)?;
        let made = along(b, x, &[src, &by], dim, |x, rest, at| scatter_reduce::scatter_reduced(x, &rest[0], at, rest[1].clone(), how, own))?;
        if b.rank(x) == 0 { squeeze_one(&made, -1) } else { Ok(made) }
    };
    scatter::take(x; index) => taken(b, x, &index);
    scatter::put_in(x, source; index, accumulate) => {
        put(b, x, source, &index, if accumulate { Put::Add } else { Put::Assign })
    };
};

pub const SEEN: Rules = rules! { seen b;
    scatter::masked_fill_number(x; mask, value) => masked(x, &mask, value.into());
    scatter::masked_fill_tensor(x, value; mask) => masked(x, &mask, value.into());
    scatter::index_fill_tensor(x, value; dim, index) => slices_filled_with(x, value, dim, &index);
};

/// An advanced index over samples, as one over physical tensors; and how the result's dimensions lie.
struct Advanced {
    indices: Vec<Option<Tensor>>,
    /// The dimensions of the physical result in the order that the function sees.
    order: Ints,
}

/// What an advanced index gives: the shape of the index, where it goes, and the dimensions beside it.
struct Seen {
    block: usize,
    before: usize,
    regular: usize,
}

fn seen(rank: usize, indices: &[Option<Tensor>]) -> Result<Seen> {
    let used: Vec<usize> = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
    let mut block = Dims::new();
    for index in indices.iter().flatten() {
        block = broadcast(&block, &index.shape())
            .map_err(|_| Error::index("shape mismatch: indexing tensors could not be broadcast together"))?;
    }
    let adjacent = used.windows(2).all(|w| w[1] == w[0] + 1);
    Ok(Seen {
        block: block.len(),
        before: if adjacent { used.first().copied().unwrap_or(0) } else { 0 },
        regular: rank.saturating_sub(used.len()),
    })
}

fn advanced(b: &Batch, rank: usize, indices: &[Option<Tensor>]) -> Result<Advanced> {
    let Seen { block, before, regular } = seen(rank, indices)?;
    let k = b.k();
    let batched = indices.iter().flatten().any(Tensor::is_batched);
    let mut all: Vec<Option<Tensor>> = Vec::new();
    if !batched {
        all.resize(k, None);
        all.extend(indices.iter().cloned());
        let used: Vec<usize> = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
        let adjacent = used.windows(2).all(|w| w[1] == w[0] + 1);
        // Side by side the index stays in place, behind the batch; apart it comes first, before the batch.
        let order = if adjacent {
            (0..(k + block + regular) as i64).collect()
        } else {
            let (block, k) = (block as i64, k as i64);
            (block..block + k).chain(0..block).chain(block + k..block + k + regular as i64).collect()
        };
        return Ok(Advanced { indices: all, order });
    }
    let device = indices.iter().flatten().next().map_or(crate::base::Device::Cpu, Tensor::device);
    for (at, &size) in b.sizes.iter().enumerate() {
        let mut shape: Dims = smallvec::smallvec![1; k + block];
        shape[at] = size;
        all.push(Some(reshape(&Tensor::new(numbers(0, 1, size, device)?), &shape)?));
    }
    for index in indices {
        all.push(index.as_ref().map(|t| b.aligned(t, block)).transpose()?);
    }
    // The batch and the index come first, the other dimensions in their order.
    let (k, block, before) = (k as i64, block as i64, before as i64);
    let rest = k + block;
    let order = (0..k)
        .chain(rest..rest + before)
        .chain(k..rest)
        .chain(rest + before..rest + regular as i64)
        .collect();
    Ok(Advanced { indices: all, order })
}

fn in_order(order: &[i64]) -> bool {
    order.iter().enumerate().all(|(i, &d)| i as i64 == d)
}

fn operands<'a>(t: &'a Tensor, indices: &'a [Option<Tensor>], values: Option<&'a Tensor>) -> Batch {
    Batch::of(std::iter::once(t).chain(indices.iter().flatten()).chain(values))
}

pub fn index(t: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    let b = operands(t, indices, None);
    let how = advanced(&b, t.ndim(), indices)?;
    let made = single::index(&b.full(t)?, &how.indices)?;
    Ok(b.wrap(if in_order(&how.order) { made } else { permute(&made, how.order)? }))
}

/// The values of a write as they lie in the physical index's result.
fn arranged(b: &Batch, how: &Advanced, values: &Tensor) -> Result<Tensor> {
    let values = b.aligned(values, how.order.len() - b.k())?;
    if in_order(&how.order) {
        return Ok(values);
    }
    let mut back: Ints = smallvec::smallvec![0; how.order.len()];
    for (i, &d) in how.order.iter().enumerate() {
        back[d as usize] = i as i64;
    }
    permute(&values, back)
}

pub fn index_put(
    t: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    let b = operands(t, indices, Some(values));
    let how = advanced(&b, t.ndim(), indices)?;
    let values = arranged(&b, &how, values)?;
    Ok(b.wrap(single::index_put(&b.full(t)?, &how.indices, &values, accumulate)?))
}

pub fn index_put_into(
    whole: &Tensor,
    part: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    let mut others: Vec<&Tensor> = indices.iter().flatten().collect();
    others.push(values);
    super::write::check_target(part, &others)?;
    let b = operands(part, &[], None);
    let how = advanced(&b, part.ndim(), indices)?;
    let values = arranged(&b, &how, values)?;
    single::index_put_into(whole.physical(), part.physical(), &how.indices, &values, accumulate)
}
