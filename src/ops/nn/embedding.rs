//! `embedding`: rows of a table, looked up by index. `embedding_bag` is in `bag.rs`.

use crate::operator::bodies::{fill, filled};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{constant, detached};
use crate::ops::indexing::index::index_select;
use crate::ops::indexing::index_put::IndexPut;
use crate::ops::indexing::nonzero::nonzero_vectors;
use crate::ops::indexing::scatter::{IndexAdd, add_slices};
#[cfg(feature = "gpu")]
use crate::ops::nn::norm::dense;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::reduction::variance;
use crate::ops::sparse;
use crate::tensor::mode;

/// Flattens the indices.
pub(super) fn flat(indices: &Tensor) -> Result<Tensor> {
    reshape(indices, &[indices.numel()])
}

/// The rows of a table at `indices`, in the shape of the indices plus the row.
pub(super) fn rows(weight: &Tensor, indices: &Tensor) -> Result<Tensor> {
    let picked = index_select(weight, 0, &flat(indices)?)?;
    let mut shape = indices.shape();
    shape.extend_from_slice(&weight.shape()[1..]);
    reshape(&picked, &shape)
}

/// Options of the gradient of a table: the row that gets none (-1: every row gets one), and whether a row's gradient is divided
/// by the number of its lookups.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub padding_idx: i64,
    pub by_frequency: bool,
}

/// The reciprocal of the number of lookups of each row.
fn rarity(indices: &Tensor, count: usize, dtype: DType) -> V {
    let found = || {
        let zeros = constant::zeros(&[count], dtype, indices.device())?;
        let ones = constant::ones(&[indices.numel()], dtype, indices.device())?;
        IndexAdd::call(&zeros, 0, &flat(indices)?, &ones, Scalar::Int(1))
    };
    recip(maximum(V::from(found()), 1.0)).reshape(&[count, 1])
}

/// The gradient of a table with `count` rows, from that of the looked up rows.
pub(super) fn table_gradient(g: &Tensor, indices: &Tensor, count: usize, way: Way) -> V {
    let width = g.shape().last().copied().unwrap_or(0);
    let mut g = V::from(g).reshape(&[indices.numel(), width]);
    if way.padding_idx >= 0 {
        let counts = ne(V::from(indices).reshape(&[indices.numel(), 1]), way.padding_idx as f64);
        g = select(0.0, g, counts);
    }
    let total = g.then(|g| {
        let zeros = constant::zeros(&[count, width], g.dtype(), g.device())?;
        IndexAdd::call(&zeros, 0, &flat(indices)?, &g, Scalar::Int(1))
    });
    match (&total, way.by_frequency) {
        (V::Tensor(t), true) => &total * rarity(indices, count, t.dtype()),
        _ => total,
    }
}

/// The gradient of the table by one kernel, which cannot be differentiated again.
fn table_gradient_by_kernel(g: &Body, indices: &Tensor, count: usize, way: Way) -> Result<Body> {
    let width = g.shape().last().copied().unwrap_or(0);
    let g = reshape(&Tensor::new(g.clone()), &[indices.numel(), width])?;
    let total = match table_gradient_on_gpu(&g.body(), indices, count, way)? {
        Some(total) => total,
        None => table_gradient_by_index(&g, indices, count, way)?,
    };
    if !way.by_frequency {
        return Ok(total);
    }
    no_grad(|| (V::from(Tensor::new(total.clone())) * rarity(indices, count, total.dtype)).tensor())
}

/// The gradient of the table by one GPU kernel, in which each row searches all indices. `None` if there are too many.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "there is no such kernel then"))]
fn table_gradient_on_gpu(g: &Body, indices: &Tensor, count: usize, way: Way) -> Result<Option<Body>> {
    #[cfg(feature = "gpu")]
    if g.device().is_gpu() && g.dtype.is_float() && crate::gpu::is_few(count, indices.numel()) {
        let (g, indices) = (dense(g, g.dtype)?, dense(&indices.body(), indices.dtype())?);
        let out = Body::new(&[count, g.shape()[1]], g.dtype, g.device())?;
        let skipped = usize::try_from(way.padding_idx).ok();
        crate::gpu::add_rows(out.gpu()?, g.gpu()?, indices.gpu()?, skipped)?;
        return Ok(Some(out));
    }
    Ok(None)
}

/// The gradient of the table by `index_add`.
fn table_gradient_by_index(g: &Tensor, indices: &Tensor, count: usize, way: Way) -> Result<Body> {
    let width = g.shape()[1];
    let total = filled(&[count, width], Scalar::Int(0), g.dtype(), g.device())?;
    add_slices(&total, &g.body(), 0, &flat(indices)?)?;
    if (0..count as i64).contains(&way.padding_idx) {
        fill(&total.with_layout(total.layout.select(0, way.padding_idx)?), Scalar::Int(0))?;
    }
    Ok(total)
}

/// The sparse gradient of a table with `count` rows, from that of the looked up rows.
pub(super) fn sparse_table_gradient(g: &Tensor, indices: &Tensor, count: usize, way: Way) -> Result<Tensor> {
    if way.by_frequency {
        return Err(Error::runtime(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients",
        ));
    }
    if g.is_batched() || indices.is_batched() {
        return Err(Error::not_implemented(
            "vmap: sparse gradients have no batching rule; pass sparse=False to the embedding",
        ));
    }
    let width = g.shape().last().copied().unwrap_or(0);
    let mut rows = reshape(g, &[indices.numel(), width])?;
    let mut which = to_dtype(&flat(indices)?, DType::I64)?;
    if way.padding_idx >= 0 {
        let counts = ne(V::from(&which), way.padding_idx as f64).tensor()?;
        for kept in nonzero_vectors(&counts)? {
            rows = index_select(&rows, 0, &kept)?;
            which = index_select(&which, 0, &kept)?;
        }
    }
    sparse::from_rows(count, &which, &rows)
}

#[primitive(tangent = linear, shows(sparse = false, weight_sym_argsize_0 = size(weight, 0)))]
impl Embedding {
    fn forward(
        weight: &Tensor,
        #[constant] indices: &Tensor,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<Body> {
        let _ = (padding_idx, scale_grad_by_freq);
        no_grad(|| rows(weight, indices))
    }
    fn d_weight(g: &Tensor, indices: Tensor, at: Meta, padding_idx: i64, scale_grad_by_freq: bool) -> V {
        let way = Way { padding_idx, by_frequency: scale_grad_by_freq };
        table_gradient(g, &indices, at.shape[0], way)
    }
    fn fast_d_weight(
        g: Body,
        indices: Tensor,
        at: Meta,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<Body> {
        table_gradient_by_kernel(
            &g,
            &indices,
            at.shape[0],
            Way { padding_idx, by_frequency: scale_grad_by_freq },
        )
    }
    fn batch(
        _b: &Batch,
        weight: &Tensor,
        indices: &Tensor,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<Tensor> {
        if padding_idx < 0 && !scale_grad_by_freq {
            return rows(weight, indices);
        }
        Err(Error::not_implemented("vmap: embedding does not support padding_idx and scale_grad_by_freq"))
    }
}

/// [`Embedding`] whose gradient is sparse.
#[primitive(node = "EmbeddingBackward0", tangent = linear, shows(sparse = true, weight_sym_argsize_0 = size(weight, 0)))]
impl SparseEmbedding {
    fn forward(
        weight: &Tensor,
        #[constant] indices: &Tensor,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<Body> {
        let _ = (padding_idx, scale_grad_by_freq);
        no_grad(|| rows(weight, indices))
    }
    fn d_weight(
        g: &Tensor,
        indices: Tensor,
        at: Meta,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<Tensor> {
        let way = Way { padding_idx, by_frequency: scale_grad_by_freq };
        sparse_table_gradient(g, &indices, at.shape[0], way)
    }
    fn batch(
        _b: &Batch,
        weight: &Tensor,
        indices: &Tensor,
        _padding_idx: i64,
        _scale_grad_by_freq: bool,
    ) -> Result<Tensor> {
        rows(weight, indices)
    }
}

/// Rejects indices that are not integers.
pub(super) fn check_indices(op: &str, argument: usize, indices: &Tensor) -> Result<()> {
    if matches!(indices.dtype(), DType::I64 | DType::I32) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "Expected tensor for argument #{argument} 'indices' to have one of the following scalar types: Long, Int; but got \
         torch.{}Tensor instead (while checking arguments for {op})",
        indices.dtype().scalar_name()
    )))
}

/// Look up embeddings: the rows of `weight` that `indices` name.
///
/// Args:
///     weight: the embeddings, one per row.
///     indices: row numbers, a tensor of any shape.
///     padding_idx: row that gets no gradient; -1 for none.
///     scale_grad_by_freq: whether gradients are divided by how often a row occurs.
///     sparse: whether the gradient of `weight` is a sparse tensor.
///
/// Examples:
///     >>> torch.embedding(torch.eye(3), torch.tensor([2, 0]))
///     tensor([[0., 0., 1.],
///             [1., 0., 0.]])
#[operator(function, sample = "looked_up()")]
pub fn embedding(
    weight: &Tensor,
    indices: &Tensor,
    #[default(-1)] padding_idx: i64,
    #[default(false)] scale_grad_by_freq: bool,
    #[default(false)] sparse: bool,
) -> Result<Tensor> {
    if weight.ndim() != 2 {
        return Err(Error::runtime("'weight' must be 2-D"));
    }
    check_indices("embedding", 1, indices)?;
    if sparse {
        return SparseEmbedding::call(weight, indices, padding_idx, scale_grad_by_freq);
    }
    Embedding::call(weight, indices, padding_idx, scale_grad_by_freq)
}

/// Scale down the rows that `indices` name, in place, so that their norm is at most `max_norm`.
///
/// Args:
///     input: the embeddings, one per row.
///     indices: row numbers.
///     max_norm: the largest norm.
///     norm_type: order of the norm.
///
/// Examples:
///     >>> torch.embedding_renorm_(torch.tensor([[3.0, 4.0]]), torch.tensor([0]), 1.0, 2.0)
///     tensor([[0.6000, 0.8000]])
#[operator(function, sample = "random")]
pub fn embedding_renorm_(input: &Tensor, indices: &Tensor, max_norm: f64, norm_type: f64) -> Result<Tensor> {
    if input.ndim() != 2 {
        return Err(Error::runtime(format!(
            "Expected 2-dimensional tensor, but got {}-dimensional tensor for argument #1 'self' (while checking arguments \
             for embedding_renorm_)",
            input.ndim()
        )));
    }
    check_indices("embedding_renorm_", 2, indices)?;
    if indices.numel() == 0 {
        return Ok(input.clone());
    }
    let which = flat(indices)?;
    let short = no_grad(|| {
        let all = index_select(&detached::shallow(input), 0, &which)?;
        let order = Some(Arg::Float(norm_type));
        let norm = V::from(variance::norm(&all, order, Some(Ints::from_slice(&[1])), true, None)?);
        // PyTorch's constant, which avoids a division by zero.
        let scale = select(1.0, max_norm / (&norm + 1e-7), gt(&norm, max_norm));
        (V::from(&all) * scale).tensor()
    })?;
    // Tangents stay as they are. A leaf that requires a gradient is rejected.
    let target = if mode::grad_enabled() { input.clone() } else { detached::shallow(input) };
    // A row that is named twice is written twice with the same values.
    IndexPut::over(&target, &[Some(which)], &Tensor::new(short), false)?;
    Ok(input.clone())
}
