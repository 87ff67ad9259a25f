//! Scaled dot product attention. The CPU computes it in tiles; a GPU in blocks of queries if the matrix of all weights would be
//! large. Otherwise, or if the weights themselves are needed, it is composed of matrix products and a softmax.

use crate::base::views::dense_like;
use crate::capture::{Recorder, Retain, Whole};
use crate::cpu::attention as kernel;
use crate::operator::bodies::filled;
use crate::operator::primitives::{detached, views};
use crate::ops::linalg::matmul;
use crate::ops::nn::norm::{dense, wide};
use crate::ops::prelude::*;
use crate::ops::reduction::softmax::softmax;
use crate::ops::shape::triangle::triu;
use crate::ops::shape::{squeeze, view};

/// The largest number of weights that are held in memory at once.
const HELD: usize = 1 << 22;

/// A mask to add, under which queries attend to no later keys. `first` is the position of the first query.
fn causal_mask(first: usize, queries: usize, keys: usize, dtype: DType, device: Device) -> Result<V> {
    let blind = filled(&[queries, keys], Scalar::Float(f64::NEG_INFINITY), dtype, device)?;
    triu(&Tensor::new(blind), 1 + first as i64).map(V::from)
}

/// The attention weights of queries, the first of which is at position `first`. A row whose keys are all masked is zero.
fn weights(first: usize, query: &V, key: &V, mask: Option<V>, causal: bool, scale: f64) -> V {
    let mut scores = (query * scale).matmul(key.mt());
    let shape = scores.shape();
    if causal && let V::Tensor(t) = &scores {
        let [queries, keys] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        scores = match causal_mask(first, queries, keys, t.dtype(), t.device()) {
            Ok(mask) => scores + mask,
            Err(error) => V::from(Err(error)),
        };
    }
    let soft = |scores: V| scores.then(|t| softmax(&t, -1, None));
    // Without a mask, every query sees the first key.
    let Some(mask) = mask else { return soft(scores) };
    scores = scores + mask;
    if scores.shape().last() == Some(&0) {
        return soft(scores);
    }
    let top = scores.clone().then(|t| {
        crate::ops::reduction::extrema::amax(&detached::shallow(&t), Some(smallvec::smallvec![-1]), true)
    });
    let blind = eq(top, f64::NEG_INFINITY);
    select(soft(select(scores, 0.0, &blind)), 0.0, blind)
}

/// The gradient of the unscaled scores, from the gradient of the result and the weights.
fn score_gradient(g: &V, value: &V, weights: &V, scale: f64) -> V {
    let of_weights = g.matmul(value.mt());
    weights * (&of_weights - (&of_weights * weights).sum(&[-1], true)) * scale
}

/// A new body with the layout of `like`, but with a dense last dimension.
fn empty_body_like(like: &Body, dtype: DType) -> Result<Body> {
    let new = Body::new(like.shape(), dtype, like.device())?;
    let (lies, last) = (dense_like(&like.layout), like.layout.ndim() - 1);
    let fits = lies.strides[last] == 1 || lies.shape[last] == 1;
    Ok(if fits { new.with_layout(lies) } else { new })
}

/// Converts to `dtype`, with a dense last dimension.
fn by_rows(body: &Body, dtype: DType) -> Result<Body> {
    let last = body.layout.ndim() - 1;
    let fits = body.layout.strides[last] == 1 || body.shape()[last] == 1;
    if fits && body.dtype == dtype && body.conj_neg.is_none() { Ok(body.clone()) } else { dense(body, dtype) }
}

/// The operands in the dtype and layout that the kernel expects.
struct AttentionOperands {
    query: Body,
    key: Body,
    value: Body,
    mask: Option<Body>,
    causal: bool,
    scale: f64,
}

impl AttentionOperands {
    fn new(
        [query, key, value]: [&Body; 3],
        mask: Option<&Body>,
        causal: bool,
        scale: Option<f64>,
    ) -> Result<AttentionOperands> {
        let dtype = wide(query.dtype);
        let full = [query.shape()[0], query.shape()[1], query.shape()[2], key.shape()[2]];
        let expanded = |mask: &Body| -> Result<Body> {
            let mask = in_dtype(mask.clone(), dtype)?;
            let mask = if mask.conj_neg.is_none() { mask } else { dense(&mask, dtype)? };
            Ok(mask.with_layout(mask.layout.broadcast_to(&full)))
        };
        Ok(AttentionOperands {
            scale: scale_of(scale, query.shape()[3]),
            query: by_rows(query, dtype)?,
            key: by_rows(key, dtype)?,
            value: by_rows(value, dtype)?,
            mask: mask.map(expanded).transpose()?,
            causal,
        })
    }

    fn operands(&self) -> Result<kernel::Operands<'_>> {
        Ok(kernel::Operands {
            query: self.query.host()?,
            key: self.key.host()?,
            value: self.value.host()?,
            mask: super::norm::host(&self.mask)?,
            causal: self.causal,
            scale: self.scale,
        })
    }
}

impl Retain for AttentionOperands {
    type Retained = Whole<AttentionOperands>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Self::Retained> {
        Ok(Whole(AttentionOperands {
            query: recorder.stand_in(&self.query)?,
            key: recorder.stand_in(&self.key)?,
            value: recorder.stand_in(&self.value)?,
            mask: self.mask.as_ref().map(|mask| recorder.stand_in(mask)).transpose()?,
            ..*self
        }))
    }
}

/// Attention on a GPU, one block of queries after the other.
#[cfg(feature = "gpu")]
mod blocks {
    use super::{AttentionOperands, HELD, score_gradient, weights};
    use crate::operator::inplace;
    use crate::operator::primitives::constant;
    use crate::ops::prelude::*;
    use crate::ops::shape::slices::Narrow;
    use crate::tensor::mode;
    use std::ops::Range;

    /// A range of the queries or keys of a tensor.
    fn rows(of: &Tensor, range: &Range<usize>) -> Result<Tensor> {
        Narrow::call(of, 2, range.start as i64, range.len() as i64)
    }

    fn add_rows(to: &Tensor, range: &Range<usize>, made: V) -> Result<()> {
        let part = rows(to, range)?;
        inplace::copy_into(&part, &(V::from(&part) + made).tensor()?)
    }

    /// A block of queries, the keys that it attends to, and their weights.
    struct AttentionBlock {
        queries: Range<usize>,
        keys: Range<usize>,
        query: Tensor,
        key: V,
        value: V,
        weights: V,
    }

    impl AttentionOperands {
        /// Calls `each` for one block of queries after the other. A block is so small that its weights can be held at once.
        fn by_blocks(&self, mut each: impl FnMut(AttentionBlock) -> Result<()>) -> Result<()> {
            let [query, key, value] =
                [&self.query, &self.key, &self.value].map(|body| Tensor::new(body.clone()));
            let mask = self.mask.as_ref().map(|mask| Tensor::new(mask.clone()));
            let [queries, keys] = [query.shape()[2], key.shape()[2]];
            let most = (HELD / (query.shape()[0] * query.shape()[1] * keys)).max(1);
            mode::with_grad(false, || {
                for first in (0..queries).step_by(most) {
                    let own = first..queries.min(first + most);
                    let seen = 0..if self.causal { keys.min(own.end) } else { keys };
                    let (query, key) = (rows(&query, &own)?, V::from(rows(&key, &seen)?));
                    let mask = mask.as_ref().map(|mask| rows(mask, &own)).transpose()?.map(V::from);
                    let weights = weights(first, &V::from(&query), &key, mask, self.causal, self.scale);
                    let value = V::from(rows(&value, &seen)?);
                    each(AttentionBlock { queries: own, keys: seen, query, key, value, weights })?;
                }
                Ok(())
            })
        }

        pub fn attention_by_blocks(&self, out: &Body) -> Result<()> {
            let out = Tensor::new(out.clone());
            self.by_blocks(|block| {
                inplace::copy_into(
                    &rows(&out, &block.queries)?,
                    &block.weights.matmul(&block.value).tensor()?,
                )
            })
        }

        /// Writes the gradients of query, key and value. Those of key and value must start from zero.
        pub fn backward_by_blocks(&self, to: &[Body], g: &Body, wants: [bool; 3]) -> Result<()> {
            let [to_query, to_key, to_value] = [0, 1, 2].map(|i| Tensor::new(to[i].clone()));
            let g = Tensor::new(g.clone());
            for to in [&to_key, &to_value] {
                inplace::copy_into(to, &constant::zeros(&[], to.dtype(), to.device())?)?;
            }
            self.by_blocks(|AttentionBlock { queries, keys, query, key, value, weights: p }| {
                let g = V::from(rows(&g, &queries)?);
                if wants[0] || wants[1] {
                    let score_gradient = score_gradient(&g, &value, &p, self.scale);
                    if wants[0] {
                        inplace::copy_into(
                            &rows(&to_query, &queries)?,
                            &score_gradient.matmul(&key).tensor()?,
                        )?;
                    }
                    if wants[1] {
                        add_rows(&to_key, &keys, score_gradient.mt().matmul(V::from(&query)))?;
                    }
                }
                if wants[2] { add_rows(&to_value, &keys, p.mt().matmul(g)) } else { Ok(()) }
            })
        }
    }
}

fn scale_of(scale: Option<f64>, width: usize) -> f64 {
    scale.unwrap_or(1.0 / (width as f64).sqrt())
}

#[primitive(results(output, logsumexp), scratch(logsumexp))]
impl ScaledDotProductFlashAttentionForCpu {
    fn forward(
        #[shown("query")] query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        dropout_p: f64,
        is_causal: bool,
        #[constant] attn_mask: Option<&Tensor>,
        scale: Option<f64>,
    ) -> Result<[Body; 2]> {
        let _ = dropout_p;
        let mask = attn_mask.map(|mask| mask.body().clone());
        let (query, dtype) = (query.body(), query.dtype());
        let own =
            AttentionOperands::new([&query, &key.body(), &value.body()], mask.as_ref(), is_causal, scale)?;
        let out = empty_body_like(&query, wide(dtype))?;
        let sums = Body::new(&query.shape()[..3], wide(dtype), query.device())?;
        fork!(over [out], with [own, sums],
            cpu: kernel::attention(out.host()?, sums.host()?, own.operands()?),
            gpu: own.attention_by_blocks(&out))?;
        if wide(dtype) == dtype {
            return Ok([out, sums]);
        }
        let narrow = empty_body_like(&query, dtype)?;
        crate::operator::bodies::copy(&narrow, &out)?;
        Ok([narrow, sums])
    }
    #[allow(clippy::too_many_arguments, reason = "they are what is saved")]
    fn derivative(
        g: V,
        query: V,
        key: V,
        value: V,
        dropout_p: f64,
        is_causal: bool,
        attn_mask: Option<V>,
        scale: Option<f64>,
        wants: [bool; 3],
    ) -> [Option<V>; 3] {
        let _ = dropout_p;
        let scale = scale_of(scale, query.shape().last().copied().unwrap_or(1));
        let p = weights(0, &query, &key, attn_mask, is_causal, scale);
        let score_gradient = (wants[0] || wants[1]).then(|| score_gradient(&g, &value, &p, scale));
        [
            score_gradient.as_ref().filter(|_| wants[0]).map(|score_gradient| score_gradient.matmul(&key)),
            score_gradient
                .as_ref()
                .filter(|_| wants[1])
                .map(|score_gradient| score_gradient.mt().matmul(&query)),
            wants[2].then(|| p.mt().matmul(&g)),
        ]
    }
    #[allow(clippy::too_many_arguments, reason = "they are what is saved")]
    fn fast_derivative(
        g: Body,
        query: Body,
        key: Body,
        value: Body,
        output: Body,
        logsumexp: Body,
        is_causal: bool,
        attn_mask: Option<Body>,
        scale: Option<f64>,
        wants: [bool; 3],
    ) -> Result<[Option<Body>; 3]> {
        let dtype = query.dtype;
        let own = AttentionOperands::new([&query, &key, &value], attn_mask.as_ref(), is_causal, scale)?;
        let (g, output) = (by_rows(&g, wide(dtype))?, by_rows(&output, wide(dtype))?);
        let new = |like: &Body| empty_body_like(like, wide(dtype));
        let made = [new(&own.query)?, new(&own.key)?, new(&own.value)?];
        fork!(over [g], with [own, output, logsumexp, made, wants],
            cpu: {
                let to = kernel::Grads { query: made[0].host()?, key: made[1].host()?, value: made[2].host()? };
                kernel::attention_backward(to, g.host()?, output.host()?, logsumexp.host()?, own.operands()?)
            },
            gpu: own.backward_by_blocks(&made, &g, wants))?;
        let [query, key, value] = made;
        let keep = |want: bool, body: Body| want.then(|| in_dtype(body, dtype)).transpose();
        Ok([keep(wants[0], query)?, keep(wants[1], key)?, keep(wants[2], value)?])
    }
    #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
    fn batch(
        _b: &Batch,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        dropout_p: f64,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
    ) -> Result<Tensor> {
        compose(query, key, value, attn_mask, dropout_p, is_causal, scale)
    }
}

/// Attention composed of other operators. Half precision is computed in float32, because a rounded score would change its weight
/// noticeably.
fn compose(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    dropout_p: f64,
    causal: bool,
    scale: Option<f64>,
) -> Result<Tensor> {
    let dtype = query.dtype();
    if wide(dtype) != dtype {
        let [query, key, value] =
            [query, key, value].map(|t| crate::operator::primitives::copies::to_dtype(t, wide(dtype)));
        let mask =
            mask.map(|mask| crate::operator::primitives::copies::to_dtype(mask, wide(dtype))).transpose()?;
        let made = compose(&query?, &key?, &value?, mask.as_ref(), dropout_p, causal, scale)?;
        return crate::operator::primitives::copies::to_dtype(&made, dtype);
    }
    let scale = scale_of(scale, query.shape().last().copied().unwrap_or(1));
    let p = weights(0, &query.into(), &key.into(), mask.map(V::from), causal, scale).tensor()?;
    let p = if dropout_p > 0.0 { super::dropout(&p, dropout_p, true)? } else { p };
    matmul::matmul(&p, value)
}

fn check(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>, causal: bool) -> Result<()> {
    if causal && mask.is_some() {
        return Err(Error::runtime(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
        ));
    }
    let [q, k, v] = [query, key, value].map(|t| t.dtype().c_name());
    if query.dtype() != key.dtype() || query.dtype() != value.dtype() {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {q} key.dtype: {k} and value.dtype: \
             {v} instead."
        )));
    }
    if query.device() != key.device() || query.device() != value.device() {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to have the same device type, but got query.device: {} key.device: {} and \
             value.device: {} instead.",
            query.device(),
            key.device(),
            value.device()
        )));
    }
    let dims = [query, key, value].map(Tensor::ndim);
    if dims.iter().any(|&n| n < 2) {
        return Err(Error::runtime(format!(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and \
             value.dim: {} instead.",
            dims[0], dims[1], dims[2]
        )));
    }
    if !query.dtype().is_float() {
        let name = query.dtype().scalar_name();
        return Err(Error::runtime(format!("expected scalar type Float but found {name}")));
    }
    if let Some(mask) = mask {
        if mask.dtype() != DType::Bool && mask.dtype() != query.dtype() {
            return Err(Error::runtime(format!(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  \
                 query.dtype: {q} instead.",
                mask.dtype().c_name()
            )));
        }
        if mask.ndim() < 2 {
            return Err(Error::index(
                "Dimension out of range (expected to be in range of [-1, 0], but got -2)",
            ));
        }
    }
    Ok(())
}

/// Repeats keys or values, so that there is one head for each head of the query.
fn repeat_heads(query: &Tensor, t: &Tensor) -> Result<Tensor> {
    let (own, wanted) = (t.shape(), query.shape());
    let (dims, at) = (own.len(), own.len().wrapping_sub(3));
    if dims < 3 || wanted.len() < 3 || own[at] == 0 || wanted[wanted.len() - 3] % own[at] != 0 {
        return Err(Error::runtime(
            "Number of heads in key and value must divide the number of heads in query",
        ));
    }
    let times = wanted[wanted.len() - 3] / own[at];
    if times == 1 {
        return Ok(t.clone());
    }
    let mut wide = own.clone();
    wide.insert(at + 1, times);
    let wide = view::expand(&squeeze::unsqueeze(t, at as i64 + 1)?, views::ints(&wide))?;
    let mut joined = own;
    joined[at] *= times;
    views::reshape(&wide, &joined)
}

/// True if the matrix of weights is never held at once: tiles of it are computed where they are needed, and again in the
/// backward.
fn goes_in_tiles(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    dropout_p: f64,
) -> bool {
    let (q, k, v) = (query.shape(), key.shape(), value.shape());
    let full = || [q[0], q[1], q[2], k[2]];
    let stretches = |mask: &Tensor| {
        let (own, full) = (mask.shape(), full());
        own.len() <= 4 && own.iter().rev().zip(full.iter().rev()).all(|(&n, &to)| n == to || n == 1)
    };
    let held = || full().iter().product::<usize>() <= HELD;
    dropout_p == 0.0
        && q.len() == 4
        && k.len() == 4
        && q[..2] == k[..2]
        && q[3] == k[3]
        && k == v
        && q.iter().chain(&k).all(|&n| n > 0)
        && (query.device().is_cpu() || !held())
        && mask.is_none_or(|mask| !mask.requires_grad() && stretches(mask))
}

/// Compute scaled dot product attention: `softmax(scale * query @ key.mT + attn_mask) @ value`.
///
/// Args:
///     query: queries, `(..., L, E)`.
///     key: keys, `(..., S, E)`.
///     value: values, `(..., S, Ev)`.
///     attn_mask: broadcast with `(..., L, S)`: True where to attend, or numbers that are added to the scores.
///     dropout_p: probability with which attention weights are dropped.
///     is_causal: whether each query attends only to keys up to its own position.
///     scale: factor of the scores; `1 / sqrt(E)` if not given.
///     enable_gqa: whether several query heads share a key and value head (grouped query attention).
///
/// Examples:
///     >>> q, k, v = torch.ones(2, 5, 8), torch.ones(2, 7, 8), torch.ones(2, 7, 3)
///     >>> F.scaled_dot_product_attention(q, k, v).shape
///     torch.Size([2, 5, 3])
#[operator(nn, autocast = lower, sample = "attending()")]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    attn_mask: Option<&Tensor>,
    #[default(0.0)] dropout_p: f64,
    #[default(false)] is_causal: bool,
    #[keyword] scale: Option<f64>,
    #[default(false)] enable_gqa: bool,
) -> Result<Tensor> {
    check(query, key, value, attn_mask, is_causal)?;
    super::check_probability(dropout_p, Error::runtime)?;
    let seen = attn_mask.filter(|mask| mask.dtype() == DType::Bool);
    let added = seen.map(|mask| select(f64::NEG_INFINITY, 0.0, V::from(mask)).cast(query.dtype()).tensor());
    let added = added.transpose()?;
    let mask = added.as_ref().or(attn_mask);
    let (own_key, own_value);
    let (key, value) = if enable_gqa {
        (own_key, own_value) = (repeat_heads(query, key)?, repeat_heads(query, value)?);
        (&own_key, &own_value)
    } else {
        (key, value)
    };
    let single = query.ndim() == 3 && key.ndim() == 3 && value.ndim() == 3;
    if single && mask.is_none_or(|mask| mask.ndim() <= 3) {
        let [q, k, v] =
            [squeeze::unsqueeze(query, 0)?, squeeze::unsqueeze(key, 0)?, squeeze::unsqueeze(value, 0)?];
        if goes_in_tiles(&q, &k, &v, mask, dropout_p) {
            let made =
                ScaledDotProductFlashAttentionForCpu::call(&q, &k, &v, dropout_p, is_causal, mask, scale)?;
            return squeeze::squeeze_one(&made, 0);
        }
    }
    if goes_in_tiles(query, key, value, mask, dropout_p) {
        return ScaledDotProductFlashAttentionForCpu::call(
            query, key, value, dropout_p, is_causal, mask, scale,
        );
    }
    compose(query, key, value, mask, dropout_p, is_causal, scale)
}
