//! Index tensors on several dimensions at once: `x[i, :, j]`, read and written.

use super::index::{By, get, put};
use super::shape::preserved as as_it_lies;
use crate::base::{Dims, Error, Layout, Put, Result, broadcast};
use crate::tensor::{
    Body, Derivative, Edge, Grads, Recorder, Saved, Step, Tensor, any_requires_grad, check_inplace,
    finish_inplace, packing, records,
};

/// How an advanced index addresses its source: the result's shape, the source's layout in it, the indices stretched to it.
struct Plan {
    shape: Dims,
    source: Layout,
    indices: Vec<(usize, Body)>,
    /// The dimensions of the result that come of the indices.
    block: std::ops::Range<usize>,
}

fn plan(layout: &Layout, indices: &[Option<Tensor>]) -> Result<Plan> {
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
        return Err(Error::index("index is out of bounds for dimension with size 0"));
    }
    // Side by side they stay in place; apart, they come first.
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
            // Right-aligned to the block, which may be followed by regular dimensions.
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

/// Refuses indices that do not go together, or point into nothing.
pub fn check_places(t: &Tensor, indices: &[Option<Tensor>]) -> Result<()> {
    plan(&t.body().layout, indices).map(drop)
}

impl Plan {
    fn by<'a>(&'a self, layout: &Layout) -> Vec<By<'a>> {
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

    /// How what is read lies: in the order of the source's dimensions, then in that of the indices. Among single elements
    /// an index has the strides of its outermost dimension before them, of its innermost behind.
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

    fn source(&self, of: &Body) -> Body {
        of.with_layout(Layout { shape: self.shape.clone(), ..self.source.clone() })
    }
}

fn any_batched(indices: &[Option<Tensor>]) -> bool {
    indices.iter().flatten().any(Tensor::is_batched)
}

/// Which dimensions have index tensors, which are saved, and whether values were added.
type Places = (Vec<bool>, bool);

/// Ends a node that takes or puts values where the index points.
fn publish(mut recorder: Recorder, indices: &[Option<Tensor>], accumulate: bool, out: &Body) -> Result<Edge> {
    recorder.params(Box::new((indices.iter().map(Option::is_some).collect::<Vec<_>>(), accumulate)));
    for (at, index) in indices.iter().enumerate() {
        if let Some(index) = index {
            recorder.save_argument(index, at);
        }
    }
    recorder.check(std::iter::empty())?;
    let node = recorder.publish(&[out]);
    let index = |at: usize| indices.get(at.checked_sub(usize::from(Saved::ARGUMENT))?)?.as_ref();
    packing::pack(&node, index, &[out])?;
    Ok(Edge { node, output: 0 })
}

/// The index tensors when the node's turn comes; an error when one was written over meanwhile.
fn kept(step: &Step) -> Result<(Vec<Option<Tensor>>, bool)> {
    let (places, accumulate) = step.params::<Places>()?;
    let index = |(at, some): (usize, &bool)| some.then(|| step.argument(at, None)).transpose();
    Ok((places.iter().enumerate().map(index).collect::<Result<_>>()?, *accumulate))
}

static INDEX: Derivative = Derivative {
    facts: None,
    name: "IndexBackward0",
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None];
        if let (Some(g), true) = (step.grad(0), step.wants(0)) {
            let (indices, _) = &kept(step)?;
            let at = super::meta_of(step, 0)?;
            let zeros = super::create::zeros(&at.shape, at.dtype, at.device)?;
            grads[0] = Some(index_put(&zeros, indices, g, true)?);
        }
        Ok(grads)
    },
};

fn picked(body: &Body, indices: &[Option<Tensor>]) -> Result<Body> {
    let plan = plan(&body.layout, indices)?;
    let mut out = Body::new(&plan.shape, body.dtype, body.device())?;
    // What is contiguous may yet have any stride over single elements.
    if out.device().is_cpu() && (!body.layout.is_contiguous() || body.shape().contains(&1)) {
        out.layout.strides = plan.strides();
    }
    if out.numel() > 0 {
        get(&out, &plan.source(body), &plan.by(&body.layout), true)?;
    }
    Ok(out)
}

/// `x[i, :, j]`: a new tensor of what the index tensors point at.
pub fn index(t: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    if t.is_batched() || any_batched(indices) {
        return super::batch::index(t, indices);
    }
    let recording = records([t])?;
    let node = |out: &Body| {
        let mut recorder = Recorder::new(&INDEX);
        recorder.input(Some(t));
        publish(recorder, indices, false, out)
    };
    let out = match picked(&t.body(), indices) {
        Ok(out) => out,
        // A hook that gets the indices to keep is asked first.
        Err(error) if recording => return Err(node(&t.body()).err().unwrap_or(error)),
        Err(error) => return Err(error),
    };
    let edge = recording.then(|| node(&out)).transpose()?;
    let made = Tensor::made_by(out, edge);
    super::tangent::joined(made, std::slice::from_ref(t), &|xs| index(&xs[0], indices))
}

static INDEX_PUT: Derivative = Derivative {
    facts: None,
    name: "IndexPutBackward0",
    apply: |step| {
        let mut grads: Grads = smallvec::smallvec![None, None];
        let Some(g) = step.grad(0) else { return Ok(grads) };
        let (indices, accumulate) = &kept(step)?;
        if step.wants(0) {
            grads[0] = Some(if *accumulate {
                g.clone()
            } else {
                let zero = super::create::zeros(&[], g.dtype(), g.device())?;
                index_put(g, indices, &zero, false)?
            });
        }
        if step.wants(1) {
            grads[1] = Some(index(g, indices)?);
        }
        Ok(grads)
    },
};

/// A copy of `t` with `values` put (or added) where the index points.
pub fn index_put(
    t: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    if super::batch::any(&[t, values]) || any_batched(indices) {
        return super::batch::index_put(t, indices, values, accumulate);
    }
    let out = as_it_lies(&t.body())?;
    let recording = records([t, values])?;
    if let Err(error) = write(&out, indices, values, accumulate) {
        let node = recording.then(|| put_node(t, indices, values, accumulate, &out)).transpose();
        return Err(node.err().unwrap_or(error));
    }
    let edge = recording.then(|| put_node(t, indices, values, accumulate, &out)).transpose()?;
    let made = Tensor::made_by(out, edge);
    super::tangent::joined(made, &[t.clone(), values.clone()], &|xs| {
        index_put(&xs[0], indices, &xs[1], accumulate)
    })
}

fn put_node(
    t: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
    out: &Body,
) -> Result<Edge> {
    let mut recorder = Recorder::new(&INDEX_PUT);
    recorder.input(Some(t)).input(Some(values));
    publish(recorder, indices, accumulate, out)
}

pub(super) fn write(out: &Body, indices: &[Option<Tensor>], values: &Tensor, accumulate: bool) -> Result<()> {
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
    super::index::same_dtype(out, &values)?;
    let values = values.with_layout(values.layout.broadcast_to(&plan.shape));
    if values.numel() == 0 {
        return Ok(());
    }
    let mode = if accumulate { Put::Add } else { Put::Assign };
    put(&plan.source(out), &values, &plan.by(&out.layout), mode, true)
}

/// `x[i] = value` with index tensors; `part` is `whole` or a view of it.
pub fn index_put_into(
    whole: &Tensor,
    part: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    if super::batch::any(&[part, values]) || any_batched(indices) {
        return super::batch::index_put_into(whole, part, indices, values, accumulate);
    }
    let target = if part.same(whole) { whole } else { part };
    let recording = any_requires_grad([target, values]);
    check_inplace(target, recording)?;
    for other in indices.iter().flatten().chain([values]) {
        super::inplace::check_disjoint(target, other)?;
    }
    let values = super::devices::beside(values, target)?;
    let edge =
        recording.then(|| put_node(target, indices, &values, accumulate, &target.body())).transpose()?;
    write(&target.body(), indices, &values, accumulate)?;
    target.body().storage.bump();
    finish_inplace(target, edge)?;
    if target.is_dual() || values.is_dual() {
        super::tangent::put(target, &values, &|part, values| {
            index_put_into(part, part, indices, values, accumulate)
        })?;
    }
    Ok(())
}
