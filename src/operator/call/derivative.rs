//! The parameters and results of a primitive's derivatives.

use crate::base::Result;
use crate::operator::V;
use crate::operator::bodies::conj_neg::values;
use crate::operator::call::Extent;
use crate::tensor::{Body, Edge, Grads, Meta, Saved, Step, Tensor, facts, mode};

/// The place of an operand or a result in a node: its edges, its arguments, its saved values.
pub struct Slot<'a> {
    source: u32,
    /// The first edge, if the operand has edges.
    edge: usize,
    count: usize,
    /// A saved result that is not returned to the user, so it has no tensor.
    bare: bool,
    extent: Option<&'a Extent>,
}

impl<'a> Slot<'a> {
    #[inline]
    pub fn one(source: u32) -> Slot<'a> {
        Slot { source, edge: source as usize, count: 1, bare: false, extent: None }
    }

    pub fn of(edges: &[bool], extent: Option<&'a Extent>, at: usize) -> Slot<'a> {
        let lengths = extent.map(|e| &e.lengths[..]);
        let (start, count) = facts::place(edges, lengths, at);
        let source = facts::source(edges, start, at);
        Slot { source, edge: start, count, bare: false, extent }
    }

    /// All edges of the node, for a list that is the only operand.
    #[inline]
    pub fn all(step: &Step) -> Slot<'a> {
        Slot { source: 0, edge: 0, count: step.node.edges.len(), bare: false, extent: None }
    }

    #[inline]
    pub fn output(i: u32, returned: usize) -> Slot<'a> {
        Slot { source: Saved::OUTPUT + i, edge: 0, count: 1, bare: i as usize >= returned, extent: None }
    }

    /// The first edge.
    #[inline]
    pub fn start(&self) -> usize {
        self.edge
    }

    /// For each tensor of a list, true if it needs a gradient.
    pub fn each_wanted(&self, step: &Step) -> Vec<bool> {
        (self.edge..self.edge + self.count).map(|edge| is_wanted(step, edge)).collect()
    }

    #[inline]
    pub fn is_wanted(&self, step: &Step) -> bool {
        (self.edge..self.edge + self.count).any(|edge| is_wanted(step, edge))
    }

    fn tensor(&self, step: &Step, i: u32) -> Result<Tensor> {
        let source = self.source + i;
        match source {
            _ if self.bare => step.value(source),
            Saved::ARGUMENT..Saved::DETACHED => {
                let at = (source - Saved::ARGUMENT) as usize;
                let history = self.extent.and_then(|e| e.histories.get(at).cloned().flatten());
                step.argument(at, history)
            }
            _ => step.tensor(source),
        }
    }

    fn maybe(&self, step: &Step, i: u32) -> Result<Option<Tensor>> {
        if step.has(self.source + i) { self.tensor(step, i).map(Some) } else { Ok(None) }
    }
}

/// True if the edge needs a gradient. (The word has 64 bits; edges beyond those always count as needed.)
#[inline]
fn is_wanted(step: &Step, edge: usize) -> bool {
    edge > 63 || step.wants(edge)
}

/// True if a derivative may run kernels on bytes: it is not recorded, and no transform is active.
#[inline]
pub fn is_plain(step: &Step) -> bool {
    !mode::grad_enabled() && !step.is_dual() && !step.grads.iter().flatten().any(Tensor::is_special)
}

/// A saved value that is not read. Its version is checked nevertheless, as in PyTorch.
pub struct Unread;

/// Reads a derivative's parameter from the node.
pub trait Fetch: Sized {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self>;
}
impl Fetch for Unread {
    fn fetch(_: &Step, _: &Slot) -> Result<Self> {
        Ok(Unread)
    }
}
impl Fetch for Tensor {
    #[inline]
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        slot.tensor(step, 0)
    }
}
impl Fetch for V {
    #[inline]
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        slot.tensor(step, 0).map(V::from)
    }
}
impl Fetch for Body {
    #[inline]
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        values(step.body(slot.source)?)
    }
}
impl Fetch for Option<Tensor> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        slot.maybe(step, 0)
    }
}
impl Fetch for Option<V> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        Ok(slot.maybe(step, 0)?.map(V::from))
    }
}
impl Fetch for Option<Body> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        if step.has(slot.source) { Body::fetch(step, slot).map(Some) } else { Ok(None) }
    }
}
impl Fetch for Vec<Option<Tensor>> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        (0..slot.count).map(|i| slot.maybe(step, i as u32)).collect()
    }
}
impl Fetch for Vec<Tensor> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        (0..slot.count).map(|i| slot.tensor(step, i as u32)).collect()
    }
}
impl Fetch for Vec<V> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        (0..slot.count).map(|i| slot.tensor(step, i as u32).map(V::from)).collect()
    }
}
impl Fetch for Vec<Body> {
    fn fetch(step: &Step, slot: &Slot) -> Result<Self> {
        (0..slot.count).map(|i| values(step.body(slot.source + i as u32)?)).collect()
    }
}

/// Shape, dtype and device of an operand, known only if it requires a gradient.
pub trait FetchMeta: Sized {
    fn meta(step: &Step, slot: &Slot) -> Result<Self>;
}
impl FetchMeta for Meta {
    fn meta(step: &Step, slot: &Slot) -> Result<Self> {
        crate::operator::meta_of(step, slot.start())
    }
}
impl FetchMeta for Option<Meta> {
    fn meta(step: &Step, slot: &Slot) -> Result<Self> {
        Ok(Vec::<Option<Meta>>::meta(step, slot)?.pop().flatten())
    }
}
impl FetchMeta for Vec<Option<Meta>> {
    fn meta(step: &Step, slot: &Slot) -> Result<Self> {
        let of = |edge: &Edge| edge.node.outputs.get(edge.output as usize).cloned();
        let start = slot.start();
        let meta = |at: usize| step.node.edges.get(at)?.as_ref().and_then(of);
        Ok((start..start + slot.count).map(meta).collect())
    }
}

/// The incoming gradients: of the single result, or one for each result. `None` if none arrived, so that
/// there is nothing to compute.
pub trait Incoming: Sized {
    fn incoming(step: &Step) -> Result<Option<Self>>;
}
impl Incoming for V {
    #[inline]
    fn incoming(step: &Step) -> Result<Option<V>> {
        Ok(step.grad(0).map(V::from))
    }
}
impl Incoming for Tensor {
    #[inline]
    fn incoming(step: &Step) -> Result<Option<Tensor>> {
        Ok(step.grad(0).cloned())
    }
}
fn bytes(t: &Tensor) -> Result<Body> {
    values(&t.body())
}
impl Incoming for Body {
    #[inline]
    fn incoming(step: &Step) -> Result<Option<Body>> {
        step.grad(0).map(bytes).transpose()
    }
}
impl<const N: usize> Incoming for [Option<V>; N] {
    fn incoming(step: &Step) -> Result<Option<Self>> {
        Ok(Some(std::array::from_fn(|i| step.grad(i).map(V::from))))
    }
}
impl<const N: usize> Incoming for [Option<Tensor>; N] {
    fn incoming(step: &Step) -> Result<Option<Self>> {
        Ok(Some(std::array::from_fn(|i| step.grad(i).cloned())))
    }
}
impl<const N: usize> Incoming for [Option<Body>; N] {
    fn incoming(step: &Step) -> Result<Option<Self>> {
        let mut all: [Option<Body>; N] = std::array::from_fn(|_| None);
        for (i, g) in all.iter_mut().enumerate() {
            *g = step.grad(i).map(bytes).transpose()?;
        }
        Ok(Some(all))
    }
}
impl Incoming for Vec<Option<Tensor>> {
    fn incoming(step: &Step) -> Result<Option<Self>> {
        Ok(Some(step.grads.to_vec()))
    }
}

/// The result of a derivative: the gradient of its operand, or one for each tensor of a list.
pub trait IntoGrads {
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()>;
}
impl IntoGrads for V {
    #[inline]
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()> {
        grads[edge] = Some(self.tensor()?);
        Ok(())
    }
}
impl IntoGrads for Tensor {
    #[inline]
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()> {
        grads[edge] = Some(self);
        Ok(())
    }
}
impl IntoGrads for Body {
    #[inline]
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()> {
        grads[edge] = Some(Tensor::new(self));
        Ok(())
    }
}
impl<T: IntoGrads> IntoGrads for Option<T> {
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()> {
        self.map_or(Ok(()), |g| g.put(grads, edge))
    }
}
impl<T: IntoGrads> IntoGrads for Result<T> {
    #[inline]
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()> {
        self?.put(grads, edge)
    }
}
impl<T: IntoGrads> IntoGrads for Vec<T> {
    fn put(self, grads: &mut Grads, edge: usize) -> Result<()> {
        self.into_iter().enumerate().try_for_each(|(i, g)| g.put(grads, edge + i))
    }
}

/// The result of a derivative for all operands: an array or tuple with one item for each, in order.
pub trait IntoAllGrads: Sized {
    fn place(self, grads: &mut Grads, starts: &[usize]) -> Result<()>;
    /// Drops the gradients that are not needed.
    fn put_all(self, step: &Step, grads: &mut Grads, starts: &[usize]) -> Result<()> {
        self.place(grads, starts)?;
        for (edge, grad) in grads.iter_mut().enumerate().filter(|(edge, _)| !is_wanted(step, *edge)) {
            let _ = edge;
            *grad = None;
        }
        Ok(())
    }
}
impl<T: IntoGrads, const N: usize> IntoAllGrads for [T; N] {
    fn place(self, grads: &mut Grads, starts: &[usize]) -> Result<()> {
        self.into_iter().zip(starts).try_for_each(|(g, &start)| g.put(grads, start))
    }
}
impl<T: IntoAllGrads> IntoAllGrads for Result<T> {
    fn place(self, grads: &mut Grads, starts: &[usize]) -> Result<()> {
        self?.place(grads, starts)
    }
}
macro_rules! into_all {
    ($($T:ident $i:tt),+) => {
        impl<$($T: IntoGrads),+> IntoAllGrads for ($($T,)+) {
            fn place(self, grads: &mut Grads, starts: &[usize]) -> Result<()> {
                $(self.$i.put(grads, starts[$i])?;)+
                Ok(())
            }
        }
    };
}
into_all!(A 0);
into_all!(A 0, B 1);
into_all!(A 0, B 1, C 2);
into_all!(A 0, B 1, C 2, D 3);
into_all!(A 0, B 1, C 2, D 3, E 4);
into_all!(A 0, B 1, C 2, D 3, E 4, F 5);
