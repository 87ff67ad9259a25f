//! Advanced indexing with several index tensors, `x[i, :, j]`: reading and writing.

use crate::base::broadcast;
use crate::operator::bodies::index::{Bounds, By, get};
use crate::operator::primitives::constant;
use crate::operator::primitives::views::reshape;
use crate::ops::indexing::index::numbers;
use crate::ops::indexing::index_put::IndexPut;
use crate::ops::indexing::scatter::into_zeros;
use crate::ops::prelude::*;
use crate::ops::shape::view::permute;

/// The addressing of an advanced index: the shape of the result, the layout of the source in it, and the indices broadcast to it.
pub(super) struct Plan {
    pub(super) shape: Dims,
    source: Layout,
    indices: Vec<(usize, Body)>,
    /// The dimensions of the result that come from the indices.
    block: std::ops::Range<usize>,
}

pub(super) fn plan(layout: &Layout, indices: &[Option<Tensor>]) -> Result<Plan> {
    let used: Vec<(usize, &Tensor)> =
        indices.iter().enumerate().filter_map(|(d, i)| i.as_ref().map(|i| (d, i))).collect();
    let mut block = Dims::new();
    for (_, index) in &used {
        block = broadcast(&block, &index.shape()).map_err(|_| {
            let shapes: Vec<String> =
                used.iter().map(|(_, i)| format!("{:?}", i.shape().as_slice())).collect();
            Error::index(format!(
                "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                shapes.join(", ")
            ))
        })?;
    }
    if !block.contains(&0) && used.iter().any(|(d, _)| layout.shape[*d] == 0) {
        return Err(Fault::Beyond { index: None, size: 0, along: false }.into());
    }
    // The dimensions of adjacent indices stay in place; otherwise they come first.
    let first = used[0].0;
    let adjacent = used.windows(2).all(|w| w[1].0 == w[0].0 + 1);
    let at = if adjacent { first } else { 0 };
    let regular: Vec<usize> = (0..layout.ndim()).filter(|d| !used.iter().any(|(u, _)| u == d)).collect();
    let mut shape = Dims::new();
    let mut strides = Dims::new();
    let before = regular.iter().take_while(|&&d| adjacent && d < first).count();
    for &d in &regular[..before] {
        shape.push(layout.shape[d]);
        strides.push(layout.strides[d]);
    }
    for &n in &block {
        shape.push(n);
        strides.push(0);
    }
    for &d in &regular[before..] {
        shape.push(layout.shape[d]);
        strides.push(layout.strides[d]);
    }
    debug_assert!(before <= at || at == 0);
    let indices = used
        .iter()
        .map(|(d, index)| {
            let body = index.body().clone();
            // Aligned to the right end of the block, which regular dimensions may follow.
            let wide = body.layout.broadcast_to(&block);
            let mut full = Layout {
                shape: shape.clone(),
                strides: smallvec::smallvec![0; shape.len()],
                offset: wide.offset,
            };
            for (i, &s) in wide.strides.iter().enumerate() {
                full.strides[before + i] = s;
            }
            (*d, body.with_layout(full))
        })
        .collect();
    let source = Layout { shape: Dims::new(), strides, offset: layout.offset };
    Ok(Plan { shape, source, indices, block: before..before + block.len() })
}

/// Rejects indices that do not broadcast, or that point into an empty dimension.
pub fn check_places(t: &Tensor, indices: &[Option<Tensor>]) -> Result<()> {
    plan(&t.body().layout, indices).map(drop)
}

impl Plan {
    pub(super) fn by<'a>(&'a self, layout: &Layout) -> Vec<By<'a>> {
        self.indices
            .iter()
            .enumerate()
            .map(|(at, (dim, index))| By {
                index,
                size: layout.shape[*dim],
                stride: layout.strides[*dim],
                dim: at,
            })
            .collect()
    }

    /// The strides of PyTorch's result: its dimensions are ordered as those of the source, and then those of the indices. For
    /// dimensions of size 1, an index counts by the stride of its outermost dimension before them, and of its innermost one
    /// behind.
    fn strides(&self) -> Dims {
        let widened = |index: &Body| {
            let mut strides = index.layout.strides.clone();
            let (start, end) = (self.block.start, self.block.end);
            let outer = if start < end { strides[start] * self.shape[start] } else { 1 };
            let inner = if start < end { strides[end - 1] } else { 1 };
            for d in (0..strides.len()).filter(|&d| self.shape[d] == 1 && !self.block.contains(&d)) {
                strides[d] = if d < start { outer } else { inner };
            }
            strides
        };
        let indices: Vec<Dims> = self.indices.iter().map(|(_, index)| widened(index)).collect();
        let operands: Vec<&[usize]> =
            std::iter::once(&self.source.strides).chain(&indices).map(|strides| strides.as_slice()).collect();
        crate::base::views::ordered_strides(&self.shape, &operands)
    }

    pub(super) fn source(&self, of: &Body) -> Body {
        of.with_layout(Layout { shape: self.shape.clone(), ..self.source.clone() })
    }
}

pub(super) fn any_batched(indices: &[Option<Tensor>]) -> bool {
    indices.iter().flatten().any(Tensor::is_batched)
}

fn gather(body: &Body, indices: &[Option<Tensor>]) -> Result<Body> {
    let plan = plan(&body.layout, indices)?;
    let mut out = Body::new(&plan.shape, body.dtype, body.device())?;
    // In a contiguous tensor, dimensions of size 1 may have any stride.
    if out.device().is_cpu() && (!body.layout.is_contiguous() || body.shape().contains(&1)) {
        out.layout.strides = plan.strides();
    }
    if out.numel() > 0 {
        get("index", &out, &plan.source(body), &plan.by(&body.layout), Bounds::Wrapped)?;
    }
    Ok(out)
}

#[primitive(tangent = linear, devices = any, shows(self_sym_sizes = sizes(input)))]
impl Index {
    fn forward(input: &Tensor, indices: &[Option<Tensor>]) -> Result<Body> {
        gather(&input.body(), indices)
    }
    fn d_input(g: &Tensor, indices: Vec<Option<Tensor>>, at: Meta) -> Result<Tensor> {
        if indices.iter().flatten().any(Tensor::is_special) {
            let zeros = constant::zeros(&at.shape, at.dtype, at.device)?;
            return IndexPut::call(&zeros, &indices, g, true);
        }
        into_zeros!(at, [g], IndexPut(&indices, g, true))
    }
    fn batch(_b: &Batch, input: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
        let b = samples_of(input, indices, None);
        let how = over_samples(&b, input.ndim(), indices)?;
        let made = index(&b.full(input)?, &how.indices)?;
        Ok(b.wrap(if in_order(&how.order) { made } else { permute(&made, how.order)? }))
    }
}

/// `x[i, :, j]`: the indexed elements, in a new tensor.
pub fn index(t: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    Index::call(t, indices)
}

/// An advanced index under `vmap`, translated to physical tensors.
pub(super) struct OverSamples {
    pub(super) indices: Vec<Option<Tensor>>,
    /// The permutation from the dimensions of the physical result to those that the mapped function sees.
    order: Ints,
}

/// The shape of an indexing result as the mapped function sees it: the number of dimensions of the index, and those before and
/// after it.
struct IndexedShape {
    block: usize,
    before: usize,
    regular: usize,
}

fn infer_shape(rank: usize, indices: &[Option<Tensor>]) -> Result<IndexedShape> {
    let used: Vec<usize> = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
    let mut block = Dims::new();
    for index in indices.iter().flatten() {
        block = broadcast(&block, &index.shape())
            .map_err(|_| Error::index("shape mismatch: indexing tensors could not be broadcast together"))?;
    }
    let adjacent = used.windows(2).all(|w| w[1] == w[0] + 1);
    Ok(IndexedShape {
        block: block.len(),
        before: if adjacent { used.first().copied().unwrap_or(0) } else { 0 },
        regular: rank.saturating_sub(used.len()),
    })
}

pub(super) fn over_samples(b: &Batch, rank: usize, indices: &[Option<Tensor>]) -> Result<OverSamples> {
    let IndexedShape { block, before, regular } = infer_shape(rank, indices)?;
    let k = b.k();
    let batched = indices.iter().flatten().any(Tensor::is_batched);
    let mut all: Vec<Option<Tensor>> = Vec::new();
    if !batched {
        all.resize(k, None);
        all.extend(indices.iter().cloned());
        let used: Vec<usize> = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
        let adjacent = used.windows(2).all(|w| w[1] == w[0] + 1);
        // Adjacent indices stay in place, behind the batch dimensions; others come first, even before the batch dimensions.
        let order = if adjacent {
            (0..(k + block + regular) as i64).collect()
        } else {
            let (block, k) = (block as i64, k as i64);
            (block..block + k).chain(0..block).chain(block + k..block + k + regular as i64).collect()
        };
        return Ok(OverSamples { indices: all, order });
    }
    let device = indices.iter().flatten().next().map_or(Device::Cpu, Tensor::device);
    for (at, &size) in b.sizes.iter().enumerate() {
        let mut shape: Dims = smallvec::smallvec![1; k + block];
        shape[at] = size;
        all.push(Some(reshape(&Tensor::new(numbers(0, 1, size, device)?), &shape)?));
    }
    for index in indices {
        all.push(index.as_ref().map(|t| b.aligned(t, block)).transpose()?);
    }
    // The batch dimensions and the index come first, then the other dimensions in order.
    let (k, block, before) = (k as i64, block as i64, before as i64);
    let rest = k + block;
    let order = (0..k)
        .chain(rest..rest + before)
        .chain(k..rest)
        .chain(rest + before..rest + regular as i64)
        .collect();
    Ok(OverSamples { indices: all, order })
}

fn in_order(order: &[i64]) -> bool {
    order.iter().enumerate().all(|(i, &d)| i as i64 == d)
}

pub(super) fn samples_of<'a>(
    t: &'a Tensor,
    indices: &'a [Option<Tensor>],
    values: Option<&'a Tensor>,
) -> Batch {
    Batch::of(std::iter::once(t).chain(indices.iter().flatten()).chain(values))
}

/// Permutes the values of a write to the dimensions of the physical result.
pub(super) fn arrange(b: &Batch, how: &OverSamples, values: &Tensor) -> Result<Tensor> {
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
