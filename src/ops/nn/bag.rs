//! `embedding_bag`: the sum, mean or maximum over bags of rows of a table.

use crate::base::Put;
use crate::cpu::bag::{self, BagOptions, BagResults};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::{constant, views};
use crate::ops::indexing::index::{index_select, numbers};
use crate::ops::indexing::scatter::{IndexAdd, scatter_into};
use crate::ops::nn::embedding::{Way, check_indices, flat, rows, sparse_table_gradient, table_gradient};
use crate::ops::prelude::*;
use crate::ops::shape::{slices, view};
use crate::ops::sorting::search::searchsorted;
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::mode;

/// The reduction over a bag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BagMode {
    Sum,
    Mean,
    Max,
}

impl Keep for BagMode {
    fn shown(&self) -> Shown {
        Shown::Int(*self as i64)
    }
}

/// The bag that each index belongs to.
fn bags(offsets: &Tensor, count: usize, last: bool) -> Result<Tensor> {
    let positions = Tensor::new(numbers(0, 1, count, offsets.device())?);
    // Counts the bags that begin at or before each position, without the first, which begins before all positions.
    let begun = offsets.numel() as i64 - 1 - i64::from(last);
    let starts = to_dtype(&slices::narrow(offsets, 0, 1, begun.max(0))?, DType::I64)?;
    searchsorted(&starts, &positions, false, true, None, None)
}

/// A column with 1 for each index, and 0 for those that are `padding_idx`.
fn mask_padding(indices: &Tensor, padding_idx: i64) -> V {
    ne(V::from(indices).reshape(&[indices.numel(), 1]), padding_idx as f64)
}

/// The sizes of the bags as a column, at least 1.
fn size_column(bag_size: &Tensor, dtype: DType) -> V {
    maximum(V::from(bag_size).cast(dtype), 1.0).reshape(&[bag_size.numel(), 1])
}

/// The sums of the bags of rows.
fn sum_bags(rows: V, bag: &Tensor, count: usize) -> V {
    rows.then(|rows| {
        let zeros = constant::zeros(&[count, rows.shape()[1]], rows.dtype(), rows.device())?;
        IndexAdd::call(&zeros, 0, bag, &rows, Scalar::Int(1))
    })
}

/// The largest elements of each bag, and the rows of the table that they came from; zeros for empty bags.
fn largest(
    rows: &V,
    indices: &Tensor,
    bag: &Tensor,
    bag_size: &Tensor,
    padding_idx: i64,
) -> Result<[Tensor; 2]> {
    let (n, width, count) = (indices.numel(), rows.shape()[1], bag_size.numel());
    let device = indices.device();
    let taken = select(f64::NEG_INFINITY, rows, mask_padding(indices, padding_idx)).tensor()?;
    let column = view::expand(&views::reshape(bag, &[n, 1])?, smallvec::smallvec![n as i64, width as i64])?;
    let lowest = constant::full(&[count, width], Scalar::Float(f64::NEG_INFINITY), taken.dtype(), device)?;
    let top = scatter_into(&lowest, &taken, 0, &column, Put::Max)?;
    // The first of equal maxima counts. A NaN is a maximum.
    let there = V::from(index_select(&top, 0, bag)?);
    let taken = V::from(taken);
    let same = either(eq(&taken, &there), is_nan(&taken));
    let place = Tensor::new(numbers(0, 1, n, device)?);
    let place = V::from(place).reshape(&[n, 1]).cast(DType::I32);
    let place = select(n as f64, place.expand(&[n, width]), both(same, mask_padding(indices, padding_idx)));
    let none = constant::full(&[count, width], Scalar::Int(n as i64), DType::I32, device)?;
    let first = scatter_into(&none, &place.cast(DType::I32).tensor()?, 0, &column, Put::Min)?;
    let full = gt(V::from(bag_size).reshape(&[count, 1]), 0.0);
    let first = select(0.0, V::from(&first), &full).cast(DType::I64).tensor()?;
    let which = if n == 0 {
        constant::zeros(&[count, width], DType::I64, device)?
    } else {
        index_select(&to_dtype(&flat(indices)?, DType::I64)?, 0, &flat(&first)?)?
    };
    let which = select(0.0, V::from(which).reshape(&[count, width]), &full).cast(DType::I64).tensor()?;
    Ok([select(0.0, V::from(top), full).tensor()?, which])
}

/// The result, and what the gradient needs, by one kernel; `None` if the kernel does not support the operands.
fn at_once(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    share: Option<&Tensor>,
    count: usize,
    (mode, padding): (BagMode, i64),
) -> Result<Option<[Body; 4]>> {
    let (table, numbers, starts) = (weight.body(), indices.body(), offsets.body());
    let share = share.map(Tensor::body);
    if [&table, &numbers, &starts].into_iter().chain(&share).any(|b| !b.device().is_cpu()) {
        return Ok(None);
    }
    let out = Body::new(&[count, table.shape()[1]], table.dtype, Device::Cpu)?;
    let bags = Body::new(&[numbers.numel()], DType::I64, Device::Cpu)?;
    let sizes = Body::new(&[count], DType::I64, Device::Cpu)?;
    let which = match mode {
        BagMode::Max => Some(Body::new(out.shape(), DType::I64, Device::Cpu)?),
        BagMode::Sum | BagMode::Mean => None,
    };
    let made = BagResults {
        rows: out.host()?,
        bags: bags.host()?,
        sizes: sizes.host()?,
        which: which.as_ref().map(|which| which.host()).transpose()?,
    };
    let share = share.as_ref().map(|share| share.host()).transpose()?;
    let kept = BagOptions { padding, mean: mode == BagMode::Mean };
    // SAFETY: the views describe these bodies; the results are new.
    let done = unsafe { bag::reduce(&made, table.host()?, numbers.host()?, starts.host()?, share, kept) };
    let last = which.unwrap_or_else(|| sizes.clone());
    Ok(done.then_some([out, bags, sizes, last]))
}

/// Names the index that is out of range. PyTorch has two messages for it; `quick` selects that of its fast path.
fn outside(indices: &Tensor, count: usize, quick: bool, error: Error) -> Error {
    let find = || -> Result<Option<(i64, i64)>> {
        for i in 0..indices.numel() as i64 {
            let value = slices::select(indices, 0, i)?.item()?.as_i64();
            if !(0..count as i64).contains(&value) {
                return Ok(Some((i, value)));
            }
        }
        Ok(None)
    };
    match find() {
        Ok(Some((_, value))) if !quick => Error::runtime(format!(
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}"
        )),
        Ok(Some((i, value))) => Error::runtime(format!(
            "Index {i} of input takes value {value} which is not in the valid range [0, {count})"
        )),
        _ => error,
    }
}

#[primitive(batch = each, results(result0, result1, result2, result3), shows(weight_sym_argsize_0 = size(weight, 0)))]
impl EmbeddingBag {
    fn forward(
        weight: &Tensor,
        #[constant] indices: &Tensor,
        #[constant] offsets: &Tensor,
        per_sample_weights: Option<&Tensor>,
        scale_grad_by_freq: bool,
        mode: BagMode,
        sparse: bool,
        #[hidden] include_last_offset: bool,
        padding_idx: i64,
    ) -> Result<[Body; 4]> {
        let _ = (scale_grad_by_freq, sparse);
        let make = || -> Result<[Tensor; 4]> {
            let (n, count) = (indices.numel(), offsets.numel() - usize::from(include_last_offset));
            if count == 0 {
                let none = || constant::zeros(&[0], DType::I64, weight.device());
                let out = constant::zeros(&[0, weight.shape()[1]], weight.dtype(), weight.device())?;
                return Ok([out, none()?, none()?, none()?]);
            }
            let kept = (mode, padding_idx);
            if let Some(made) = at_once(weight, indices, offsets, per_sample_weights, count, kept)? {
                return Ok(made.map(Tensor::new));
            }
            let quick = mode != BagMode::Max && padding_idx < 0;
            let picked = rows(weight, indices).map_err(|e| outside(indices, weight.shape()[0], quick, e))?;
            let bag = bags(offsets, n, include_last_offset)?;
            let ones = mask_padding(indices, padding_idx).cast(DType::I64);
            let sizes = sum_bags(ones, &bag, count).reshape(&[count]).tensor()?;
            let mut picked = V::from(picked);
            if mode == BagMode::Max {
                let [top, which] = largest(&picked, indices, &bag, &sizes, padding_idx)?;
                return Ok([top, bag, sizes, which]);
            }
            if let Some(share) = per_sample_weights {
                picked = picked * V::from(share).reshape(&[n, 1]);
            }
            if padding_idx >= 0 {
                picked = select(0.0, picked, mask_padding(indices, padding_idx));
            }
            let mut out = sum_bags(picked, &bag, count);
            if mode == BagMode::Mean {
                out = out / size_column(&sizes, weight.dtype());
            }
            Ok([out.tensor()?, bag, sizes.clone(), sizes])
        };
        let made = mode::with_grad(false, make)?;
        Ok(made.map(|t| t.body().clone()))
    }
    fn derivative(
        g: V,
        weight: &Tensor,
        indices: Tensor,
        offsets: Unread,
        per_sample_weights: Option<V>,
        result1: Tensor,
        result2: Tensor,
        result3: Tensor,
        scale_grad_by_freq: bool,
        mode: BagMode,
        sparse: bool,
        padding_idx: i64,
        wants: [bool; 2],
    ) -> [Option<V>; 2] {
        let Unread = offsets;
        let (n, table) = (indices.numel(), weight.shape());
        if result2.numel() == 0 {
            let none = |shape: &[usize]| V::from(constant::zeros(shape, weight.dtype(), weight.device()));
            return [wants[0].then(|| none(&table)), wants[1].then(|| none(&indices.shape()))];
        }
        if mode == BagMode::Max {
            let full = gt(V::from(&result2).reshape(&[result2.numel(), 1]), 0.0);
            let sent = select(0.0, g, full);
            let back = sent.then(|g| {
                let zeros = constant::zeros(&table, g.dtype(), g.device())?;
                scatter_into(&zeros, &g, 0, &result3, Put::Add)
            });
            return [wants[0].then_some(back), None];
        }
        let g = if mode == BagMode::Mean { g / size_column(&result2, weight.dtype()) } else { g };
        let of_rows = g.then(|g| index_select(&g, 0, &result1));
        let of_weight = wants[0].then(|| {
            let share = per_sample_weights.map(|share| share.reshape(&[n, 1]));
            let sent = share.map_or_else(|| of_rows.clone(), |share| &of_rows * share);
            let way = Way { padding_idx, by_frequency: scale_grad_by_freq };
            match sent.tensor() {
                Ok(sent) if sparse => V::from(sparse_table_gradient(&sent, &indices, table[0], way)),
                Ok(sent) => table_gradient(&sent, &indices, table[0], way),
                failed => V::from(failed),
            }
        });
        let of_share = wants[1].then(|| {
            let all = of_rows * V::from(rows(weight, &indices));
            select(0.0, all, mask_padding(&indices, padding_idx)).sum(&[1], false).reshape(&indices.shape())
        });
        [of_weight, of_share]
    }
}

fn check_offsets(indices: &Tensor, offsets: &Tensor, last: bool) -> Result<()> {
    if last && offsets.numel() == 0 {
        return Err(Error::runtime("include_last_offset: number of offset should be at least 1"));
    }
    // Checking values on the GPU would have to wait for it.
    if offsets.numel() == 0 || !offsets.device().is_cpu() || offsets.is_batched() {
        return Ok(());
    }
    let at = |i: i64| -> Result<i64> { Ok(slices::select(offsets, 0, i)?.item()?.as_i64()) };
    let (first, end, n) = (at(0)?, at(-1)?, indices.numel());
    if first != 0 {
        return Err(Error::runtime(format!(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got \
             {first}"
        )));
    }
    if end > n as i64 {
        return Err(Error::runtime(format!(
            "offsets[-1] can not be greater than input's length {n} but got offsets[-1] of {end}"
        )));
    }
    Ok(())
}

/// Look up bags of embeddings and reduce each bag to its sum, mean or maximum.
///
/// `torch.nn.functional.embedding_bag` is the more convenient form.
///
/// Args:
///     weight: the embeddings, one per row.
///     indices: vector of row numbers, one bag after the other.
///     offsets: where each bag begins in `indices`.
///     scale_grad_by_freq: whether gradients are divided by how often a row occurs.
///     mode: 0 for sums, 1 for means, 2 for maxima.
///     sparse: whether the gradient of `weight` is a sparse tensor; not for maxima.
///     per_sample_weights: weights of the embeddings, for sums.
///     include_last_offset: whether `offsets` ends with the length of `indices`.
///     padding_idx: row number that is left out of the bags.
///
/// Returns:
///     The reduced bags, and three tensors that the gradient needs.
///
/// Examples:
///     >>> torch.embedding_bag(torch.eye(3), torch.tensor([0, 1, 2]), torch.tensor([0, 2]))[0]
///     tensor([[1., 1., 0.],
///             [0., 0., 1.]])
#[operator(function, sample = "bagged()")]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn embedding_bag(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    #[default(false)] scale_grad_by_freq: bool,
    #[default(0)] mode: i64,
    #[default(false)] sparse: bool,
    per_sample_weights: Option<&Tensor>,
    #[default(false)] include_last_offset: bool,
    padding_idx: Option<i64>,
) -> Result<[Tensor; 4]> {
    check_indices("embedding_bag", 1, indices)?;
    check_indices("embedding_bag", 1, offsets)?;
    if weight.ndim() != 2 || indices.ndim() != 1 || offsets.ndim() != 1 {
        return Err(Error::runtime("embedding_bag: weight has to be a matrix, indices and offsets vectors"));
    }
    if !weight.dtype().is_float() {
        return Err(Error::runtime(format!(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, \
             Double; but got torch.{}Tensor instead (while checking arguments for embedding_bag)",
            weight.dtype().scalar_name()
        )));
    }
    let mode = match mode {
        0 => BagMode::Sum,
        1 => BagMode::Mean,
        2 => BagMode::Max,
        _ => return Err(Error::runtime(format!("embedding_bag: mode has to be 0, 1 or 2, but got {mode}"))),
    };
    let rows = weight.shape()[0] as i64;
    let padding = match padding_idx {
        None => -1,
        Some(at) if (-rows..rows).contains(&at) => at.rem_euclid(rows.max(1)),
        Some(at) => {
            return Err(Error::runtime(format!(
                "padding_idx must be within the number of embeddings, -{rows} through {}, but got {at}",
                rows - 1
            )));
        }
    };
    if let Some(share) = per_sample_weights {
        if mode != BagMode::Sum {
            return Err(Error::runtime(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'",
            ));
        }
        if share.dtype() != weight.dtype() {
            return Err(Error::runtime(format!(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 \
                 'per_sample_weights'; but type torch.{}Tensor does not equal torch.{}Tensor (while checking arguments for \
                 embedding_bag)",
                weight.dtype().scalar_name(),
                share.dtype().scalar_name()
            )));
        }
        if share.ndim() != 1 || share.numel() != indices.numel() {
            return Err(Error::runtime(
                "expected per_sample_weights to be a vector with a number for each index",
            ));
        }
    }
    check_offsets(indices, offsets, include_last_offset)?;
    EmbeddingBag::call(
        weight,
        indices,
        offsets,
        per_sample_weights,
        scale_grad_by_freq,
        mode,
        sparse,
        include_last_offset,
        padding,
    )
}
