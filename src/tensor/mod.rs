//! Tensors and the graph that they record. A tensor is a body (storage, layout, dtype) and the edge that it was born
//! with; what may change later (a leaf's `.grad`, an in-place write's new history) lives in a slower cell.

mod body;
mod dual_levels;
mod flags;
mod graph;
mod host;
mod host_state;
mod item;
mod leaf;
pub mod levels;
pub mod mode;
mod node;
pub mod node_hooks;
mod part;
mod replaced;
mod sample;
mod snapshot;
pub mod tangents;
mod thread;
mod view;

pub use body::{Body, BodyRef, Meta};
pub use flags::Marks;
pub use graph::describe::in_turn;
pub use graph::recorder::{Recorder, any_requires_grad, inference_error, records};
pub use graph::saved::{Kept, Packed, Saved, Saves, Step, Unpack, freed_error};
pub use graph::{anomaly, facts, saved_hooks};
pub use host::{HostObject, any_hosted};
pub use item::Referents;
pub use leaf::grad_type::GradType;
pub(crate) use node::no_derivative;
pub use node::{
    CopySlices, Custom, Derivative, Edge, Grads, Hook, Hooks, Kind, Leaf, Node, NodeRef, When, kind_in_words,
    type_string,
};
pub use part::Part;
pub use snapshot::with_snapshot;
pub use thread::hand_over;

use dual_levels::{DualLevel, any_level};
use flags::{BATCHED, CONJ_NEG, DUAL, OWN_TANGENTS, REPLACED, REQUIRES, RETAINS, VIEW};
use host::HostState;
use leaf::grad_type::GradTypeCell;

use crate::base::{DType, Device, Dims, Error, Guidance, OnceBox, Result, try_alloc};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

pub(crate) use crate::base::lock;

/// A handle; cloning shares the tensor.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

#[derive(Clone)]
pub struct WeakTensor(Weak<Inner>);

struct Inner {
    body: Body,
    /// The node that made this tensor, when one did and nothing was written over it since (see `REPLACED`).
    edge: Option<Edge>,
    flags: AtomicU8,
    view: Option<View>,
    extra: OnceBox<Extra>,
    /// The Python object that shows this tensor, while there is one.
    host: AtomicPtr<c_void>,
}

/// What few tensors have.
#[derive(Default)]
struct Extra {
    replaced: Mutex<Replacement>,
    grad: Mutex<Option<Tensor>>,
    grad_type: GradTypeCell,
    /// The leaf's end of the graph, once something was computed from it (see `Replacement::leaf`).
    leaf: OnceLock<NodeRef>,
    tangents: Tangents,
    /// The physical tensor of a batched one.
    batched: OnceLock<Batched>,
    host_state: Mutex<Option<HostState>>,
}

impl Extra {
    /// The leaf's end of the graph, where there is one.
    fn leaf_node(&self) -> Option<NodeRef> {
        lock(&self.replaced).leaf.clone().unwrap_or_else(|| self.leaf.get().cloned())
    }

    /// Whether a leaf's node takes gradients of another shape than the tensor has by now, and only the tensor holds the node.
    fn is_outgrown(&self, end: &NodeRef, body: &Body) -> bool {
        let own = 1 + usize::from(self.leaf.get().is_some_and(|first| first.ptr_eq(end)));
        let outgrown = end.outputs.first().is_none_or(|meta| meta.shape != body.layout.shape);
        outgrown && end.count() <= own && !end.has_hooks()
    }
}

#[derive(Default)]
struct Replacement {
    body: Option<Arc<Body>>,
    /// The number of the first change (see `snapshot`).
    since: u64,
    /// `Some(None)`: it was detached.
    edge: Option<Option<Edge>>,
    /// The leaf's node for the new body; `Some(None)`: to be made at the next use.
    leaf: Option<Option<NodeRef>>,
}

/// What a tensor keeps when it is a view.
pub struct View {
    /// The tensor that owns the history; never a view itself.
    pub base: Tensor,
    /// How the view was made, which decides whether it may be written in place.
    made: AtomicU8,
    /// Makes it again.
    func: &'static ViewFunc,
    /// The version of the bytes when this view's history was last brought up to date; of a view whose history cannot follow its
    /// base's, the version when it was made.
    seen: AtomicU32,
    /// The tensor to ask for tangents, where it is not the base.
    tangent_base: Option<Tensor>,
}

/// The circumstances in which a view was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CreationMeta {
    Plain,
    NoGrad,
    Inference,
    /// One of several outputs of one call (`unbind`, `split`).
    Multi,
    /// By a custom Function, whose backward a rewritten history would pass by.
    Function,
}

/// Makes a view again, of what its base has become: PyTorch's ViewFunc. The operator that makes a view hands it in, as a row hands
/// in its derivative. It cannot be a call: a history or a tangent is brought up to date when somebody looks at it, this room
/// looks itself (a node's edges, a saved value, an error's words), and making a view is an operator, above this room, which looks
/// at histories and tangents in turn.
pub struct ViewFunc {
    /// The history of a view with this body, given its base's present one.
    pub history: fn(base: &Tensor, view: &Body) -> Option<Edge>,
    /// What a view with this body shows of a tensor with the layout of its base: of the base's tangent.
    pub values: fn(base: &Tensor, view: &Body) -> Result<Tensor>,
}

/// Which `vmap` a dimension belongs to; an inner one has a higher number than those around it.
pub type Level = u32;
pub type Levels = SmallVec<[Level; 2]>;

/// The physical tensor behind a batched one.
pub struct Batched {
    /// One dimension for each of `levels`, in their order, then those that the function sees.
    pub value: Tensor,
    pub levels: Levels,
    /// Among the dimensions seen where the innermost level was entered, the one that holds its samples.
    pub place: usize,
    /// The tensor whose dimension `place` was taken for the innermost level.
    pub given: Option<Tensor>,
}

/// A tensor's tangents, by ascending level. `None`: the tangent was taken away, and a view is not to ask its base.
type Tangents = Mutex<SmallVec<[(DualLevel, Option<Tensor>); 1]>>;

impl Tensor {
    #[inline]
    fn make(body: Body, edge: Option<Edge>, flags: u8, view: Option<View>) -> Tensor {
        Tensor(Arc::new(Inner {
            body,
            edge,
            flags: AtomicU8::new(flags),
            view,
            extra: OnceBox::default(),
            host: AtomicPtr::new(std::ptr::null_mut()),
        }))
    }

    /// A tensor without history.
    pub fn new(body: Body) -> Tensor {
        Tensor::showing(body, None, 0, None)
    }

    /// A tensor that `edge` made, of values that were computed just now.
    #[inline]
    pub fn made_by(body: Body, edge: Option<Edge>) -> Tensor {
        debug_assert!(body.conj_neg.is_none(), "a kernel's result is values");
        Tensor::make(body, edge, 0, None)
    }

    /// A tensor that `edge` made, whose body may be conjugated or negated.
    pub fn of(body: Body, edge: Option<Edge>) -> Tensor {
        Tensor::showing(body, edge, 0, None)
    }

    #[inline]
    fn showing(body: Body, edge: Option<Edge>, flags: u8, view: Option<View>) -> Tensor {
        let conj_neg = if body.conj_neg.is_none() { 0 } else { CONJ_NEG };
        Tensor::make(body, edge, flags | conj_neg, view)
    }

    #[inline]
    pub fn body(&self) -> BodyRef<'_> {
        if self.flags() & REPLACED == 0 { BodyRef::Original(&self.0.body) } else { self.body_now() }
    }

    #[inline(never)]
    fn body_now(&self) -> BodyRef<'_> {
        match self.0.extra.get() {
            Some(extra) => self.replaced_body(&lock(&extra.replaced)),
            None => BodyRef::Original(&self.0.body),
        }
    }

    /// The body that this tensor was made with, unless it was replaced since; nothing where an operator needs more than the bytes.
    #[inline]
    pub fn original_body(&self) -> Option<&Body> {
        let said = self.flags() & (REPLACED | DUAL | BATCHED | VIEW | CONJ_NEG);
        (said == 0 || (said == VIEW && !any_level())).then_some(&self.0.body)
    }

    /// Whether an operator on this tensor is more than a kernel over its bytes: in forward mode, under `vmap`, or where its
    /// elements are conjugated or negated.
    #[inline]
    pub fn is_special(&self) -> bool {
        let flags = self.flags();
        flags & (DUAL | BATCHED | CONJ_NEG) != 0 || (flags & VIEW != 0 && any_level())
    }

    /// Whether the values are the bytes conjugated or negated.
    #[inline]
    pub fn is_conj_or_neg(&self) -> bool {
        self.flags() & CONJ_NEG != 0
    }

    /// Whether the values are not the bytes: conjugated, negated, or one sample of a batch.
    #[inline]
    pub fn is_batched_or_conj_neg(&self) -> bool {
        self.flags() & (BATCHED | CONJ_NEG) != 0
    }

    #[inline]
    fn flags(&self) -> u8 {
        self.0.flags.load(Ordering::Acquire)
    }

    /// What has a say, beside kernels, in a call on this tensor.
    #[inline]
    pub fn marks(&self) -> Marks {
        Marks(self.flags())
    }

    fn extra(&self) -> &Extra {
        self.0.extra.get_or_default()
    }

    pub fn shape(&self) -> Dims {
        self.body().layout.shape.clone()
    }

    pub fn ndim(&self) -> usize {
        self.body().layout.ndim()
    }

    pub fn numel(&self) -> usize {
        self.body().numel()
    }

    pub fn dtype(&self) -> DType {
        self.body().dtype
    }

    pub fn device(&self) -> Device {
        self.body().device()
    }

    pub fn version(&self) -> u32 {
        self.physical().body().storage.version()
    }

    /// Whether this tensor's bytes were made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.physical().body().storage.is_untracked()
    }

    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether this handle is the only one.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::weak_count(&self.0) == 0
    }

    /// How many handles share this tensor.
    pub fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    pub fn downgrade(&self) -> WeakTensor {
        WeakTensor(Arc::downgrade(&self.0))
    }

    pub fn host_object(&self) -> &AtomicPtr<c_void> {
        &self.0.host
    }

    /// The node that made this tensor; nothing for leaves.
    #[inline]
    pub fn history(&self) -> Option<Edge> {
        if let Some(view) = self.as_view() {
            self.refresh_view(view);
        }
        if self.flags() & REPLACED == 0 { self.0.edge.clone() } else { self.replaced_history() }
    }

    fn replaced_history(&self) -> Option<Edge> {
        match self.as_batched() {
            Some(batched) => batched.value.history(),
            None => self.last_history(),
        }
    }

    /// The history as it was when somebody last asked for it.
    pub fn last_history(&self) -> Option<Edge> {
        let replaced = self.0.extra.get().filter(|_| self.flags() & REPLACED != 0);
        replaced.and_then(|extra| lock(&extra.replaced).edge.clone()).unwrap_or_else(|| self.0.edge.clone())
    }

    /// Whether a history exists, without counting a handle.
    fn has_history(&self) -> bool {
        if self.0.view.is_none() && self.flags() & REPLACED == 0 {
            return self.0.edge.is_some();
        }
        self.history().is_some()
    }

    #[inline]
    pub fn requires_grad(&self) -> bool {
        let flags = self.flags();
        match flags & (VIEW | REPLACED | BATCHED) {
            0 => flags & REQUIRES != 0 || self.0.edge.is_some(),
            _ => self.requires_grad_now(flags),
        }
    }

    #[inline(never)]
    fn requires_grad_now(&self, flags: u8) -> bool {
        let wanted = |flags| flags & REQUIRES != 0;
        wanted(flags)
            || self.has_history()
            || (flags & BATCHED != 0 && wanted(self.physical().flags()))
            || self.as_view().is_some_and(|view| view.base.requires_grad())
    }

    pub fn is_leaf(&self) -> bool {
        !self.has_history()
    }

    /// Where the gradient of this tensor flows: its node, or the leaf's end of the graph.
    pub fn edge(&self) -> Option<Edge> {
        let flags = self.flags();
        if flags & (VIEW | REPLACED | BATCHED) == 0 {
            let leaf = || (flags & REQUIRES != 0).then(|| Edge { node: self.leaf(), output: 0 });
            return self.0.edge.clone().or_else(leaf);
        }
        if let Some(edge) = self.history() {
            return Some(edge);
        }
        let leaf = self.physical();
        if leaf.flags() & REQUIRES == 0 {
            return None;
        }
        Some(Edge { node: leaf.leaf(), output: 0 })
    }

    /// As [`Tensor::edge`], for each of a list of the caller's: refused where there is no memory for one more leaf's end.
    pub fn edge_of_many(&self) -> Result<Option<Edge>> {
        crate::storage::reserve::check()?;
        Ok(self.edge())
    }

    /// As [`Tensor::edge`]. But a view that was made without recording, of a tensor that requires gradients, gets a node of its
    /// own for hooks, although no gradient will ever reach it.
    pub fn edge_for_hooks(&self) -> Option<Edge> {
        let seems = || self.requires_grad().then(|| Edge { node: self.physical().leaf(), output: 0 });
        self.edge().or_else(seems)
    }

    /// The leaf's end of the graph.
    fn leaf(&self) -> NodeRef {
        let extra = self.extra();
        let replaced = self.flags() & REPLACED != 0;
        if let (Some(leaf), false) = (extra.leaf.get(), replaced) {
            return leaf.clone();
        }
        // Asked for now, since it wants the interpreter, which nobody may wait for under a lock.
        let trace = anomaly::trace();
        if replaced {
            let body = self.body().clone();
            if let Some(leaf) = &mut lock(&extra.replaced).leaf {
                leaf.take_if(|end| extra.is_outgrown(end, &body));
                return leaf.get_or_insert_with(|| self.new_leaf(body, trace)).clone();
            }
        }
        extra.leaf.get_or_init(|| self.new_leaf(self.body().clone(), trace)).clone()
    }

    fn new_leaf(&self, body: Body, trace: Option<Arc<anomaly::Trace>>) -> NodeRef {
        let meta = body.meta();
        let leaf = Leaf::new(self.downgrade(), body, self.extra().grad_type.get());
        let mut node = Node::draft(Kind::Leaf(Box::new(leaf)));
        node.outputs.push(meta);
        Node::publish_traced(node, trace)
    }

    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if !on && !self.is_leaf() {
            let message = "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
                 subgraph that doesn't require differentiation use var_no_grad = var.detach().";
            let (text, line) = self.describe();
            return Err(Guidance::new(message).note("tensor", text, line).done());
        }
        if on && !self.dtype().is_differentiable() {
            return Err(Error::runtime("only Tensors of floating point dtype can require gradients"));
        }
        if on && self.is_inference() && !mode::inference() {
            return Err(Error::runtime(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
            ));
        }
        let flags = &self.physical().0.flags;
        if on && self.is_leaf() {
            if flags.fetch_or(REQUIRES, Ordering::AcqRel) & REQUIRES == 0 {
                self.may_be_saved(false);
            }
            if anomaly::keeps_lines() {
                self.edge();
            }
        } else if !on {
            flags.fetch_and(!REQUIRES, Ordering::AcqRel);
        }
        Ok(())
    }

    pub fn retains_grad(&self) -> bool {
        self.flags() & RETAINS != 0
    }

    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            let (text, line) = self.describe();
            let message = "can't retain_grad on Tensor that has requires_grad=False";
            let advice = "call requires_grad_() on it, or on what it is computed from, first";
            return Err(Guidance::new(message).note("tensor", text, line).advice(advice).done());
        }
        if self.0.flags.load(Ordering::Acquire) & RETAINS != 0 {
            return Ok(());
        }
        if self.last_history().is_some() {
            self.check_view()?;
        }
        if let Some(edge) = self.history()
            && self.0.flags.fetch_or(RETAINS, Ordering::AcqRel) & RETAINS == 0
        {
            let kept = try_alloc::push(&mut edge.node.hooks().retain, (edge.output, self.downgrade()));
            return kept.inspect_err(|_| {
                self.0.flags.fetch_and(!RETAINS, Ordering::AcqRel);
            });
        }
        Ok(())
    }

    /// Replaces this tensor's history (in-place writes, `detach_`).
    pub fn set_history(&self, edge: Option<Edge>) {
        if let Some(batched) = self.as_batched() {
            return batched.value.set_history(edge);
        }
        match edge.as_ref().map(|edge| &edge.node.kind) {
            Some(Kind::Op(derivative)) => self.body().storage.written_by(&derivative.name),
            Some(Kind::CopySlices(_)) => self.body().storage.written_by(&CopySlices::NAME),
            _ => {}
        }
        let old = self.put_history(edge.clone());
        self.keep_retaining(old, edge);
    }

    /// A tensor that keeps its gradient does so at its new history, not at its `old` one.
    fn keep_retaining(&self, old: Option<Option<Edge>>, new: Option<Edge>) {
        if !self.retains_grad() {
            return;
        }
        if let Some(before) = old.flatten().or_else(|| self.0.edge.clone()) {
            before.node.hooks().retain.retain(|(_, t)| !t.is(self));
        }
        if let Some(now) = new {
            now.node.hooks().retain.push((now.output, self.downgrade()));
        }
    }
}

impl WeakTensor {
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }

    pub fn is(&self, tensor: &Tensor) -> bool {
        self.address() == tensor.id()
    }

    /// What the tensor's `id` is or was; no other has it while this handle lives.
    fn address(&self) -> usize {
        self.0.as_ptr().cast::<()>() as usize
    }
}
