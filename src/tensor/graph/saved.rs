//! Values that nodes save for their derivatives: tensor bodies, or the results of a pack hook.

use crate::base::{Error, Guidance, Result};
use crate::tensor::dual_levels::{DualLevel, any_level};
use crate::tensor::host::{count_hosted, uncount_hosted};
use crate::tensor::node::{Edge, Kind, Node, NodeRef, kind_in_words, namespaced, operator_of};
use crate::tensor::{Body, REPLACED, REQUIRES, Tensor, WeakTensor, anomaly, lock};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Default)]
pub struct Saves {
    pub values: SmallVec<[Saved; 2]>,
    pub freed: bool,
    /// True if the node had something to free when it was freed.
    pub lost: bool,
    /// True if a number among the node's params counts as a saved value.
    pub number: bool,
}

/// The edge for the gradient of a saved output. An output with integers, such as indices, has none.
fn output_edge(node: &NodeRef, source: u32) -> Option<Edge> {
    let output = source - Saved::OUTPUT;
    let flows = node.outputs.get(output as usize).is_some_and(|meta| meta.dtype.is_differentiable());
    flows.then(|| Edge { node: node.clone(), output })
}

/// One saved value. `source` is the number of the input or, from [`Saved::OUTPUT`] on, of the output that was
/// saved.
pub struct Saved {
    pub kept: Kept,
    pub version: u32,
    pub source: u32,
    /// The tensor that was saved, while it lives. It may have been replaced by the time the derivative runs
    /// (see `replaced.rs`).
    pub(in crate::tensor) tensor: Option<WeakTensor>,
    /// True if the tensor was a view, whose edge is rebuilt after a write to its base.
    pub view: bool,
}

#[derive(Clone)]
pub enum Kept {
    Body(Body),
    Packed(Arc<Packed>),
}

/// The result of a pack hook, with the hook that unpacks it.
pub trait Unpack: Send + Sync {
    fn unpack(&self) -> Result<Tensor>;
    /// Calls `see` with each object of the host language that this value keeps alive.
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void));
    fn as_any(&self) -> &dyn std::any::Any;
}

pub struct Packed {
    pub hook: Box<dyn Unpack>,
}

impl Packed {
    pub fn new(hook: Box<dyn Unpack>) -> Packed {
        count_hosted();
        Packed { hook }
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        uncount_hosted(1);
    }
}

impl Saved {
    pub const OUTPUT: u32 = 1 << 31;
    /// From here on `source` counts tensors without an edge: arguments of an operator, or extra tensors that
    /// a custom Function saved.
    pub const ARGUMENT: u32 = 1 << 30;
    /// The source of a value that is neither an input nor an output.
    pub const DETACHED: u32 = (1 << 31) - 1;

    #[inline]
    pub fn new(body: &Body, source: u32) -> Saved {
        Saved {
            kept: Kept::Body(body.clone()),
            version: body.storage.version(),
            source,
            tensor: None,
            view: false,
        }
    }

    /// Records that `tensor` is the tensor that was saved.
    #[inline]
    pub fn of(self, tensor: &Tensor) -> Saved {
        if tensor.as_view().is_some() {
            tensor.note_unrecorded_view();
        }
        Saved { tensor: Some(tensor.downgrade()), ..self }
    }

    #[inline]
    pub fn input(body: &Body, index: usize) -> Saved {
        Saved::new(body, index as u32)
    }

    #[inline]
    pub fn output(body: &Body, index: usize) -> Saved {
        Saved::new(body, Saved::OUTPUT + index as u32)
    }

    pub fn is_output(&self) -> bool {
        self.source >= Saved::OUTPUT
    }

    /// True if the tensor of a saved input is gone.
    pub fn is_orphan(&self) -> bool {
        !self.is_output()
            && self.body().is_some()
            && self.tensor.as_ref().is_none_or(|tensor| !tensor.is_alive())
    }

    /// From now on `tensor`, which was made from this value, counts as the saved tensor.
    pub fn set_tensor(&mut self, tensor: &Tensor) {
        self.tensor = Some(tensor.downgrade());
    }

    /// The body, unless a pack hook took the value.
    #[inline]
    pub fn body(&self) -> Option<&Body> {
        match &self.kept {
            Kept::Body(body) => Some(body),
            Kept::Packed(_) => None,
        }
    }

    /// The edge to which the gradient of this value flows.
    pub fn edge(&self, node: &NodeRef) -> Option<Edge> {
        if self.is_output() {
            return output_edge(node, self.source);
        }
        match (node.edges.get(self.source as usize), &node.kind) {
            (Some(edge), _) => edge.clone(),
            (None, Kind::Custom(custom)) => {
                custom.others().get(self.source.checked_sub(Saved::ARGUMENT)? as usize).cloned()
            }
            _ => None,
        }
    }

    /// Returns an error if the value was written after it was saved.
    fn check(&self, node: &Node, body: &Body) -> Result<()> {
        let now = body.storage.version();
        if now == self.version {
            return Ok(());
        }
        let from = if self.is_output() {
            Some((node.operator(), self.source - Saved::OUTPUT))
        } else {
            match node.edges.get(self.source as usize) {
                // PyTorch names the last writer; a write through a view gives the view a new node,
                // `AsStrided`.
                Some(Some(edge)) if !edge.node.is_leaf() => Some(match body.storage.last_writer() {
                    Some(_) if self.view => ("AsStrided".into(), 0),
                    Some(name) => (operator_of(&namespaced(name)).into(), 0),
                    None => (edge.node.operator(), edge.output),
                }),
                _ => None,
            }
        };
        let which = from.map(|(name, n)| format!(", which is output {n} of {name},")).unwrap_or_default();
        let hint = if anomaly::enabled() {
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was \
             changed in there or anywhere later. Good luck!"
        } else {
            "enable anomaly detection to find the operation that failed to compute its gradient, with \
             torch.autograd.set_detect_anomaly(True, check_nan=False)."
        };
        let message = format!(
            "one of the variables needed for gradient computation has been modified by an inplace operation: \
             [{} {:?}]{which} is at version {now}; expected version {} instead. Hint: {hint}",
            kind_in_words(body.dtype, body.storage.device()),
            body.layout.shape.as_slice(),
            self.version
        );
        let mut guidance = Guidance::new(message).node("operator", node);
        let maker = node.edges.get(self.source as usize).and_then(Option::as_ref);
        guidance = match maker {
            Some(edge) => guidance.node("changed value", &edge.node),
            None => guidance.note("changed value", self.describe(node), None),
        };
        if let Some(line) = anomaly::written_at(&body.storage, self.version) {
            guidance = guidance.note("written", "in place", Some(line));
        }
        if let Some(writer) = body.storage.last_writer() {
            guidance = guidance.note("last recorded write", operator_of(writer), None);
        }
        Err(guidance.advice("use the out-of-place form of the operator, or write to a clone()").done())
    }

    /// A second handle to the same value, because hooks must run without the node's lock.
    pub fn share(&self) -> Saved {
        Saved { kept: self.kept.clone(), tensor: self.tensor.clone(), ..*self }
    }

    /// Checks this saved value and returns it as a tensor; `node` is the node that saved it.
    pub fn unpack(&self, node: &NodeRef) -> Result<Tensor> {
        match &self.kept {
            Kept::Body(body) => {
                self.check(node, body)?;
                // A custom Function may have saved a detached tensor.
                let custom = matches!(node.kind, Kind::Custom(_));
                let recorded = self.edge(node).filter(|edge| edge.node.is_leaf() || !custom);
                if let Some(tensor) = self.current_tensor(recorded.as_ref())? {
                    return Ok(tensor);
                }
                Ok(self.restore(body.clone(), self.edge(node), &Node::tangents(node, true)))
            }
            Kept::Packed(packed) => {
                let tensor = packed.hook.unpack()?;
                match self.edge(node) {
                    None if !tensor.requires_grad() => Ok(tensor),
                    edge => Ok(Tensor::from_saved(tensor.body().clone(), edge)),
                }
            }
        }
    }
}

impl Tensor {
    /// Makes a tensor from a saved value. With a leaf's edge, its gradient flows to that leaf.
    pub fn from_saved(body: Body, edge: Option<Edge>) -> Tensor {
        if let Some(edge) = &edge
            && let Kind::Leaf(leaf) = &edge.node.kind
            && let Some(tensor) = leaf.tensor()
            && tensor.body().storage.same(&body.storage)
            && tensor.body().layout == body.layout
        {
            return tensor;
        }
        if edge.as_ref().is_some_and(|e| e.node.is_leaf()) {
            return Tensor::other_leaf(body, edge.map(|e| e.node));
        }
        Tensor::of(body, edge)
    }

    /// Makes a tensor whose edge `set_history` can remove. (The edge that a tensor is born with cannot be
    /// removed.)
    pub fn with_removable_history(body: Body, edge: Option<Edge>) -> Tensor {
        let tensor = Tensor::new(body);
        lock(&tensor.extra().replaced).edge = Some(edge);
        tensor.0.flags.fetch_or(REPLACED, Ordering::AcqRel);
        tensor
    }

    /// Makes a leaf with other values, whose gradient flows to the same node as that of the first leaf.
    #[cold]
    fn other_leaf(body: Body, node: Option<NodeRef>) -> Tensor {
        let tensor = Tensor::with_flags(body, None, REQUIRES, None);
        if let Some(node) = node {
            let _ = tensor.extra().leaf.set(node);
        }
        tensor
    }
}

/// Tangents of saved values: source of the value, level, tangent.
pub type SavedTangents = Vec<(u32, DualLevel, Tensor)>;

/// The run of one node in a backward: what its derivative gets.
pub struct Step<'a> {
    pub node: &'a NodeRef,
    pub grads: &'a [Option<Tensor>],
    /// True if the derivative itself is recorded.
    pub create_graph: bool,
    /// One bit for each edge: set if its gradient is needed.
    pub wanted: u64,
    values: SmallVec<[Saved; 2]>,
    tangents: SavedTangents,
    freed: bool,
}

const FREED: &str = "Trying to backward through the graph a second time (or directly access saved tensors after they \
    have already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
    autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need \
    to access saved tensors after calling backward.";

/// The error for using the saved values of `node` after they were freed.
pub fn freed_error(node: Option<&Node>) -> Error {
    let guidance = Guidance::new(FREED);
    let guidance = if let Some(node) = node { guidance.node("operator", node) } else { guidance };
    guidance
        .advice("pass retain_graph=True to the first backward, or compute the forward pass again; call detach() on values \
            that are kept from an earlier iteration")
        .done()
}

impl<'a> Step<'a> {
    /// A step without saved values; `take` fetches them.
    #[inline]
    pub fn new(node: &'a NodeRef, grads: &'a [Option<Tensor>], create_graph: bool, wanted: u64) -> Step<'a> {
        let (values, tangents) = (SmallVec::new(), SavedTangents::new());
        Step { node, grads, create_graph, wanted, values, tangents, freed: false }
    }

    /// Fetches the node's saved values and, unless `keep`, frees them in the node. Packed values are unpacked
    /// once each, in order.
    pub fn take(&mut self, keep: bool) -> Result<()> {
        let (node, values) = (self.node, &mut self.values);
        let mut saves = node.saves();
        let (freed, lost) = (saves.freed, saves.lost);
        if keep {
            values.extend(saves.values.iter().map(Saved::share));
        } else {
            saves.freed = true;
            saves.lost |= saves.number;
            if !saves.values.is_empty() {
                saves.lost = true;
                *values = std::mem::take(&mut saves.values);
            }
        }
        drop(saves);
        let packed = values.iter().any(|s| s.body().is_none());
        let before: Option<SmallVec<[Saved; 2]>> =
            (packed && !keep).then(|| values.iter().map(Saved::share).collect());
        if let Err(error) = make_ready(node, values, packed, lost) {
            if !keep {
                // No derivative was computed: give the node its values back.
                let mut saves = node.saves();
                (saves.freed, saves.lost) = (freed, lost);
                saves.values = before.unwrap_or_else(|| std::mem::take(values));
            }
            return Err(error);
        }
        if any_level() {
            self.tangents = Node::tangents(node, keep);
        }
        self.freed = freed;
        Ok(())
    }

    pub fn wants(&self, edge: usize) -> bool {
        self.wanted >> edge & 1 == 1
    }

    /// Returns an error if an earlier backward has freed the node.
    pub fn check_alive(&self) -> Result<()> {
        if self.freed { Err(freed_error(Some(self.node))) } else { Ok(()) }
    }

    /// The gradient of an output, if there is one.
    pub fn grad(&self, output: usize) -> Option<&Tensor> {
        self.grads.get(output)?.as_ref()
    }

    /// True if a value with this source was saved.
    pub fn has(&self, source: u32) -> bool {
        self.values.iter().any(|s| s.source == source)
    }

    /// The body of a saved value, for a kernel that does not record. The conj or neg bit may be set.
    pub fn body(&self, source: u32) -> Result<&Body> {
        Ok(self.saved(source)?.1)
    }

    fn saved(&self, source: u32) -> Result<(&Saved, &Body)> {
        match self.values.iter().find(|s| s.source == source) {
            Some(saved @ Saved { kept: Kept::Body(body), .. }) => Ok((saved, body)),
            None if self.freed => Err(freed_error(Some(self.node))),
            _ => Err(Error::runtime(format!("{} did not save value {source}", self.node.name()))),
        }
    }

    /// A saved value as a tensor, with its edge.
    pub fn tensor(&self, source: u32) -> Result<Tensor> {
        let edge = if source >= Saved::OUTPUT {
            output_edge(self.node, source)
        } else {
            self.node.edges.get(source as usize).cloned().flatten()
        };
        self.restored(source, edge)
    }

    fn restored(&self, source: u32, edge: Option<Edge>) -> Result<Tensor> {
        let (saved, body) = self.saved(source)?;
        match saved.current_tensor(edge.as_ref())? {
            Some(tensor) => Ok(tensor),
            None => Ok(saved.restore(body.clone(), edge, &self.tangents)),
        }
    }

    /// A saved tensor that has no edge in this node, with the given edge.
    pub fn argument(&self, at: usize, history: Option<Edge>) -> Result<Tensor> {
        let source = Saved::ARGUMENT + at as u32;
        self.restored(source, history)
    }

    /// A saved value that is not a tensor of the user, without an edge.
    pub fn value(&self, source: u32) -> Result<Tensor> {
        self.restored(source, None)
    }

    /// True if forward mode applies: a gradient or a saved value has tangents.
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

/// Unpacks and checks all saved values of a node, whichever gradients are needed. A custom Function's values
/// are checked only when it asks for them.
#[inline]
fn make_ready(node: &NodeRef, values: &mut [Saved], packed: bool, lost: bool) -> Result<()> {
    values.iter_mut().try_for_each(|saved| saved.update(node))?;
    if packed {
        unpack_all(node, values)?;
    }
    if let Kind::Op(_) = node.kind {
        if lost {
            return Err(freed_error(Some(node)));
        }
        for saved in values.iter() {
            if let Kept::Body(body) = &saved.kept {
                saved.check(node, body)?;
            }
        }
    }
    Ok(())
}

/// Calls the unpack hooks of packed values. A custom Function unpacks its values itself, when it asks for
/// them.
#[cold]
fn unpack_all(node: &NodeRef, values: &mut [Saved]) -> Result<()> {
    if matches!(node.kind, Kind::Custom(_)) {
        return Ok(());
    }
    for saved in values {
        if let Kept::Packed(packed) = &saved.kept {
            let body = packed.hook.unpack()?.body().clone();
            saved.version = body.storage.version();
            saved.kept = Kept::Body(body);
        }
    }
    Ok(())
}
