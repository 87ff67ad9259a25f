//! Index tensors on several dimensions at once: `x[i, :, j]`, read and written.

use crate::base::{Put, broadcast};
use crate::operator::prelude::*;
use crate::ops::indexing::index::{By, get, put};
use crate::ops::indexing::scatter::INDEX_PUT;

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
        return Err(Fault::Beyond { index: None, size: 0, along: false }.into());
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

fn picked(body: &Body, indices: &[Option<Tensor>]) -> Result<Body> {
    let plan = plan(&body.layout, indices)?;
    let mut out = Body::new(&plan.shape, body.dtype, body.device())?;
    // What is contiguous may yet have any stride over single elements.
    if out.device().is_cpu() && (!body.layout.is_contiguous() || body.shape().contains(&1)) {
        out.layout.strides = plan.strides();
    }
    if out.numel() > 0 {
        get("index", &out, &plan.source(body), &plan.by(&body.layout), true)?;
    }
    Ok(out)
}

#[primitive(tangent = linear, devices = any, shows(self_sym_sizes = sizes(input)))]
impl Index {
    fn forward(input: &Tensor, indices: &[Option<Tensor>]) -> Result<Body> {
        picked(&input.body(), indices)
    }
    fn d_input(g: &Tensor, indices: Vec<Option<Tensor>>, at: Meta) -> Result<Tensor> {
        let zeros = crate::ops::creation::create::zeros(&at.shape, at.dtype, at.device)?;
        index_put(&zeros, &indices, g, true)
    }
    fn batch(_b: &Batch, input: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
        crate::transforms::vmap::index(input, indices)
    }
}

/// `x[i, :, j]`: a new tensor of what the index tensors point at.
pub fn index(t: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    Index::call(t, indices)
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
        index_put(g, &indices, &crate::ops::creation::create::zeros(&[], g.dtype(), g.device())?, false)
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
        crate::transforms::vmap::index_put(input, indices, values, accumulate)
    }
}

/// A copy of `t` with `values` put (or added) where the index points.
pub fn index_put(
    t: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    IndexPut::call(t, indices, values, accumulate)
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
    crate::ops::indexing::index::same_dtype(out, &values)?;
    let values = values.with_layout(values.layout.broadcast_to(&plan.shape));
    if values.numel() == 0 {
        return Ok(());
    }
    let mode = if accumulate { Put::Add } else { Put::Assign };
    put(INDEX_PUT.name, &plan.source(out), &values, &plan.by(&out.layout), mode, true)
}

/// `x[i] = value` with index tensors; `part` is `whole` or a view of it.
pub fn index_put_into(
    whole: &Tensor,
    part: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    if crate::transforms::vmap::any(&[part, values]) || any_batched(indices) {
        return crate::transforms::vmap::index_put_into(whole, part, indices, values, accumulate);
    }
    let target = if part.same(whole) { whole } else { part };
    IndexPut::over(target, indices, &crate::operator::devices::beside(values, target)?, accumulate)
}
