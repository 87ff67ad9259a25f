//! Values that nodes keep for their derivatives: as bytes, or as what a pack hook made of them.

use super::node::{Edge, Kind, Node, NodeRef, namespaced, operator_of, type_string};
use super::dual::{self, SavedTangents};
use super::{Body, Tensor};
use crate::base::{Error, Result};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

#[derive(Default)]
pub struct Saves {
    pub values: SmallVec<[Saved; 2]>,
    pub freed: bool,
}

/// One saved value. `source` names the input (or, from [`Saved::OUTPUT`] on, the output) that it is.
pub struct Saved {
    pub kept: Kept,
    pub version: u32,
    pub source: u16,
    /// Whether it was saved of a view, whose history follows its base's.
    pub view: bool,
}

#[derive(Clone)]
pub enum Kept {
    Body(Body),
    Packed(Arc<Packed>),
}

/// What a pack hook returned, with the hook that undoes it.
pub trait Unpack: Send + Sync {
    /// The tensor again. `same` is what was packed, when the hook returned just that.
    fn unpack(&self, same: Option<Tensor>) -> Result<Tensor>;
    /// Calls `see` with each object of the host language that this keeps alive.
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void));
}

pub struct Packed {
    pub hook: Box<dyn Unpack>,
    /// The node's own output, packed as itself: kept as bytes, so that it does not keep its own node alive.
    pub same: Option<Body>,
}

impl Packed {
    pub fn new(hook: Box<dyn Unpack>, same: Option<Body>) -> Packed {
        super::node::count_hosted();
        Packed { hook, same }
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        super::node::uncount_hosted();
    }
}

impl Saved {
    pub const OUTPUT: u16 = 1 << 15;
    /// A value that is neither an input nor an output.
    pub const DETACHED: u16 = (1 << 15) - 1;

    #[inline]
    pub fn new(body: &Body, source: u16) -> Saved {
        Saved { kept: Kept::Body(body.clone()), version: body.storage.version(), source, view: false }
    }

    #[inline]
    pub fn input(body: &Body, index: usize) -> Saved {
        Saved::new(body, index as u16)
    }

    #[inline]
    pub fn output(body: &Body, index: usize) -> Saved {
        Saved::new(body, Saved::OUTPUT + index as u16)
    }

    pub fn is_output(&self) -> bool {
        self.source >= Saved::OUTPUT
    }

    /// The bytes, unless hooks keep the value.
    #[inline]
    pub fn body(&self) -> Option<&Body> {
        match &self.kept {
            Kept::Body(body) => Some(body),
            Kept::Packed(_) => None,
        }
    }

    /// Where the gradient of this value flows to.
    pub fn edge(&self, node: &NodeRef) -> Option<Edge> {
        if self.is_output() {
            return Some(Edge { node: node.clone(), output: u32::from(self.source - Saved::OUTPUT) });
        }
        node.edges.get(usize::from(self.source)).cloned().flatten()
    }

    /// Refuses a value that was written over since it was saved.
    fn check(&self, node: &Node, body: &Body) -> Result<()> {
        let now = body.storage.version();
        if now == self.version {
            return Ok(());
        }
        let from = if self.is_output() {
            Some((node.operator(), u32::from(self.source - Saved::OUTPUT)))
        } else {
            match node.edges.get(usize::from(self.source)) {
                // The tensor is known by who wrote it last; a view's history starts anew with such a write.
                Some(Some(edge)) if !edge.node.is_leaf() => Some(match body.storage.last_writer() {
                    Some(_) if self.view => ("AsStrided".into(), 0),
                    Some(name) => (operator_of(&namespaced(name)).into(), 0),
                    None => (edge.node.operator(), edge.output),
                }),
                _ => None,
            }
        };
        let which = from.map(|(name, n)| format!(", which is output {n} of {name},")).unwrap_or_default();
        Err(Error::runtime(format!(
            "one of the variables needed for gradient computation has been modified by an inplace operation: \
             [{} {:?}]{which} is at version {now}; expected version {} instead. Hint: enable anomaly detection to \
             find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True).",
            type_string(body.dtype, body.storage.device()),
            body.layout.shape.as_slice(),
            self.version
        )))
    }

    /// A second handle: hooks run without the node's lock.
    pub fn share(&self) -> Saved {
        Saved { kept: self.kept.clone(), version: self.version, source: self.source, view: self.view }
    }

    /// This saved value as a tensor, checked; `node` is the one that saved it.
    pub fn unpack(&self, node: &NodeRef) -> Result<Tensor> {
        match &self.kept {
            Kept::Body(body) => {
                self.check(node, body)?;
                let tangents = dual::remembered(node, true);
                Ok(dual::restore(self.source, body.clone(), self.edge(node), &tangents))
            }
            Kept::Packed(packed) => {
                let tensor = self.unpack_hooked(node, packed)?;
                match self.edge(node) {
                    None if !tensor.requires_grad() => Ok(tensor),
                    edge => Ok(Tensor::from_saved(tensor.body().clone(), edge)),
                }
            }
        }
    }

    fn unpack_hooked(&self, node: &NodeRef, packed: &Packed) -> Result<Tensor> {
        let same = packed.same.as_ref().map(|body| Tensor::from_saved(body.clone(), self.edge(node)));
        packed.hook.unpack(same)
    }
}

/// One node's turn in a backward: what its derivative sees.
pub struct Step<'a> {
    pub node: &'a NodeRef,
    pub grads: &'a [Option<Tensor>],
    /// Whether the derivative is recorded itself.
    pub create_graph: bool,
    /// Which edges' gradients are wanted.
    pub wanted: u64,
    values: SmallVec<[Saved; 2]>,
    tangents: SavedTangents,
    freed: bool,
}

const FREED: &str = "Trying to backward through the graph a second time (or directly access saved tensors after they \
    have already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
    autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need \
    to access saved tensors after calling backward.";

pub fn freed_error() -> Error {
    Error::runtime(FREED)
}

impl<'a> Step<'a> {
    /// Takes the node's saved values, for good unless `keep`. Packed ones are unpacked, once each and in order.
    pub fn new(
        node: &'a NodeRef,
        grads: &'a [Option<Tensor>],
        create_graph: bool,
        wanted: u64,
        keep: bool,
    ) -> Result<Step<'a>> {
        let mut saves = node.saves();
        let freed = saves.freed;
        let mut values: SmallVec<[Saved; 2]> = if keep {
            saves.values.iter().map(Saved::share).collect()
        } else {
            saves.freed = true;
            std::mem::take(&mut saves.values)
        };
        drop(saves);
        if values.iter().any(|s| s.body().is_none()) {
            unpack_all(node, &mut values)?;
        }
        let tangents = dual::remembered(node, keep);
        Ok(Step { node, grads, create_graph, wanted, values, tangents, freed })
    }

    pub fn wants(&self, edge: usize) -> bool {
        self.wanted >> edge & 1 == 1
    }

    /// The gradient of an output, if one arrived.
    pub fn grad(&self, output: usize) -> Option<&Tensor> {
        self.grads.get(output)?.as_ref()
    }

    /// Whether a value from this source was saved.
    pub fn has(&self, source: u16) -> bool {
        self.values.iter().any(|s| s.source == source)
    }

    /// The bytes of a saved value, for a kernel that does not record.
    pub fn body(&self, source: u16) -> Result<&Body> {
        match self.values.iter().find(|s| s.source == source) {
            Some(saved @ Saved { kept: Kept::Body(body), .. }) => {
                saved.check(self.node, body).map(|()| body)
            }
            None if self.freed => Err(freed_error()),
            _ => Err(Error::runtime(format!("{} did not save value {source}", self.node.name()))),
        }
    }

    /// A saved value as a tensor, with its place in the graph.
    pub fn tensor(&self, source: u16) -> Result<Tensor> {
        let body = self.body(source)?.clone();
        let edge = if source >= Saved::OUTPUT {
            Some(Edge { node: self.node.clone(), output: u32::from(source - Saved::OUTPUT) })
        } else {
            self.node.edges.get(usize::from(source)).cloned().flatten()
        };
        Ok(dual::restore(source, body, edge, &self.tangents))
    }

    /// Whether forward mode has a say in this turn: a gradient or a saved value carries tangents.
    pub fn is_dual(&self) -> bool {
        !self.tangents.is_empty() || self.grads.iter().flatten().any(Tensor::is_dual)
    }

    pub fn params<P: 'static>(&self) -> Result<&P> {
        self.node
            .params
            .as_ref()
            .and_then(|p| p.downcast_ref())
            .ok_or_else(|| Error::runtime(format!("{} lost its arguments", self.node.name())))
    }
}

/// Lets the hooks of packed values give them back. A Function unpacks its values itself, when it asks for them.
#[cold]
fn unpack_all(node: &NodeRef, values: &mut [Saved]) -> Result<()> {
    if matches!(node.kind, Kind::Custom(_)) {
        return Ok(());
    }
    for saved in values {
        if let Kept::Packed(packed) = &saved.kept {
            let body = saved.unpack_hooked(node, packed)?.body().clone();
            saved.version = body.storage.version();
            saved.kept = Kept::Body(body);
        }
    }
    Ok(())
}
