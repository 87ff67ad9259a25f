//! Tensors and the graph that they record. A tensor is a body (storage, layout, dtype) and the edge that it was born
//! with; what may change later (a leaf's `.grad`, an in-place write's new history) lives in a slower cell.

mod body;
mod graph;
mod host_state;
mod inplace;
mod item;
mod leaf;
pub mod mode;
mod node;
pub mod node_hooks;
mod replaced;
mod sample;
mod snapshot;
pub mod tangents;
mod view;

pub use body::Body;
pub use graph::describe::in_turn;
pub use graph::recorder::{RECORDED_OUTSIDE, Recorder, any_requires_grad, inference_error, records};
pub use graph::saved::{Kept, Packed, Saved, Saves, Step, Unpack, freed_error};
pub use graph::{anomaly, facts, saved_hooks};
pub use inplace::{check_counted, check_inplace, finish_inplace, is_counted};
pub use item::Held;
pub use leaf::grad::GradType;
pub(crate) use node::no_derivative;
pub use node::{
    Custom, Derivative, Edge, Grads, Hook, Hooks, HostObject, Kind, Leaf, Meta, Node, NodeRef, Part, Slices,
    When, any_hosted, kind_in_words, type_string,
};
pub use sample::{Batched, Level, Levels};
pub use snapshot::steady;
pub use view::{View, ViewRules, Viewing};

use crate::base::{DType, Device, Dims, Error, Guidance, Result};
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A handle; cloning shares the tensor.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

#[derive(Clone)]
pub struct WeakTensor(Weak<Inner>);

struct Inner {
    body: Body,
    /// The node that made this tensor, when one did and nothing was written over it since (see `LATE`).
    edge: Option<Edge>,
    flags: AtomicU8,
    view: Option<View>,
    extra: OnceLock<Box<Extra>>,
    /// The Python object that shows this tensor, while there is one.
    host: AtomicPtr<c_void>,
}

/// Takes what this thread has set, modes and hooks, for the thread that calls what is returned.
pub fn hand_over() -> impl FnOnce() + Send {
    let (modes, dual, packing) = (mode::hand_over(), tangents::hand_over(), saved_hooks::hand_over());
    let (created, anomaly, storage) =
        (node_hooks::hand_over(), anomaly::hand_over(), crate::storage::hand_over());
    move || {
        modes();
        dual();
        packing();
        created();
        anomaly();
        storage();
    }
}

/// A leaf that wants a gradient.
const REQUIRES: u8 = 1;
/// Body or edge were replaced: look in `Extra`.
const LATE: u8 = 2;
const RETAINS: u8 = 4;
/// Carries tangents of forward mode.
const DUAL: u8 = 8;
/// One sample of a batch that `vmap` runs over; its values lie in another tensor.
const BATCHED: u8 = 16;
/// A view, whose base may have become dual since.
const VIEW: u8 = 32;
/// A view that has nothing to do with its base's tangents.
const ALOOF: u8 = 64;
/// Its bytes are not its values.
const LAZY: u8 = 128;

/// What the operands of a call are beside bytes with a history, in one word.
#[derive(Clone, Copy, Default)]
pub struct Marks(u8);

impl Marks {
    #[inline]
    pub fn is_batched(self) -> bool {
        self.0 & BATCHED != 0
    }

    #[inline]
    pub fn is_lazy(self) -> bool {
        self.0 & LAZY != 0
    }

    /// The same of operands whose elements nobody reads yet.
    pub fn unread(self) -> Marks {
        Marks(self.0 & !LAZY)
    }

    /// Whether there may be tangents: views are to be asked.
    #[inline]
    pub fn may_be_dual(self) -> bool {
        self.0 & DUAL != 0 || (self.0 & VIEW != 0 && tangents::any_level())
    }
}

impl std::ops::BitOrAssign for Marks {
    #[inline]
    fn bitor_assign(&mut self, other: Marks) {
        self.0 |= other.0;
    }
}

/// What few tensors have.
#[derive(Default)]
struct Extra {
    late: Mutex<Late>,
    grad: Mutex<Option<Tensor>>,
    grad_type: leaf::grad::GradTypeCell,
    /// The leaf's end of the graph, once something was computed from it (see `Late::leaf`).
    leaf: OnceLock<NodeRef>,
    tangents: tangents::Tangents,
    /// Where the values of a batched tensor lie.
    batched: OnceLock<Batched>,
    hung: Mutex<host_state::Slot>,
}

impl Extra {
    /// The leaf's end of the graph, where there is one.
    fn leaf_end(&self) -> Option<NodeRef> {
        lock(&self.late).leaf.clone().unwrap_or_else(|| self.leaf.get().cloned())
    }

    /// Whether an end of the graph that only its tensor holds takes gradients of another shape than that has by now.
    fn is_outgrown(&self, end: &NodeRef, body: &Body) -> bool {
        let own = 1 + usize::from(self.leaf.get().is_some_and(|first| first.ptr_eq(end)));
        let outgrown = end.outputs.first().is_none_or(|meta| meta.shape != body.layout.shape);
        outgrown && end.count() <= own && !end.has_hooks()
    }
}

#[derive(Default)]
struct Late {
    body: Option<Arc<Body>>,
    /// Which change the first of these was.
    since: u64,
    /// `Some(None)`: the history was cut off.
    edge: Option<Option<Edge>>,
    /// The leaf's end of the graph for a new body; `Some(None)`: to be made.
    leaf: Option<Option<NodeRef>>,
}

/// A tensor's body, borrowed where it is the one it was born with.
pub enum BodyRef<'a> {
    Birth(&'a Body),
    Late(Arc<Body>),
}

impl Deref for BodyRef<'_> {
    type Target = Body;
    fn deref(&self) -> &Body {
        match self {
            BodyRef::Birth(body) => body,
            BodyRef::Late(body) => body,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tensor {
    #[inline]
    fn make(body: Body, edge: Option<Edge>, flags: u8, view: Option<View>) -> Tensor {
        Tensor(Arc::new(Inner {
            body,
            edge,
            flags: AtomicU8::new(flags),
            view,
            extra: OnceLock::new(),
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
        debug_assert!(body.lazy.is_nothing(), "a kernel's result is values");
        Tensor::make(body, edge, 0, None)
    }

    /// The same for whatever the body may be.
    pub fn of(body: Body, edge: Option<Edge>) -> Tensor {
        Tensor::showing(body, edge, 0, None)
    }

    #[inline]
    fn showing(body: Body, edge: Option<Edge>, flags: u8, view: Option<View>) -> Tensor {
        let lazy = if body.lazy.is_nothing() { 0 } else { LAZY };
        Tensor::make(body, edge, flags | lazy, view)
    }

    pub fn body(&self) -> BodyRef<'_> {
        if self.flags() & LATE != 0
            && let Some(extra) = self.0.extra.get()
        {
            return snapshot::look(self, &lock(&extra.late));
        }
        BodyRef::Birth(&self.0.body)
    }

    /// The body this tensor was born with, unless it was replaced since; nothing for what needs more than its bytes.
    #[inline]
    pub fn birth_body(&self) -> Option<&Body> {
        let said = self.flags() & (LATE | DUAL | BATCHED | VIEW | LAZY);
        (said == 0 || (said == VIEW && !tangents::any_level())).then_some(&self.0.body)
    }

    /// Whether more than kernels on its bytes has a say in what an operator does to this tensor: forward mode, `vmap`, what is
    /// still to be done to its elements.
    #[inline]
    pub fn is_special(&self) -> bool {
        let flags = self.flags();
        flags & (DUAL | BATCHED | LAZY) != 0 || (flags & VIEW != 0 && tangents::any_level())
    }

    /// Whether the values are the bytes conjugated or negated.
    #[inline]
    pub fn is_lazy(&self) -> bool {
        self.flags() & LAZY != 0
    }

    /// The same, or one sample of many.
    #[inline]
    pub fn is_apart(&self) -> bool {
        self.flags() & (BATCHED | LAZY) != 0
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
        self.0.extra.get_or_init(Box::default)
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
        if let Some(view) = &self.0.view {
            self.refresh_view(view);
        }
        if self.flags() & LATE == 0 { self.0.edge.clone() } else { self.late_history() }
    }

    fn late_history(&self) -> Option<Edge> {
        match self.as_batched() {
            Some(batched) => batched.value.history(),
            None => self.last_edge(),
        }
    }

    /// The history as it was when somebody last asked for it.
    fn last_edge(&self) -> Option<Edge> {
        let late = self.0.extra.get().filter(|_| self.flags() & LATE != 0);
        late.and_then(|extra| lock(&extra.late).edge.clone()).unwrap_or_else(|| self.0.edge.clone())
    }

    /// Whether a history exists, without counting a handle.
    fn has_history(&self) -> bool {
        if self.0.view.is_none() && self.flags() & LATE == 0 {
            return self.0.edge.is_some();
        }
        self.history().is_some()
    }

    pub fn requires_grad(&self) -> bool {
        let flags = self.flags();
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
        if let Some(edge) = self.history() {
            return Some(edge);
        }
        let leaf = self.physical();
        if leaf.flags() & REQUIRES == 0 {
            return None;
        }
        Some(Edge { node: leaf.leaf(), output: 0 })
    }

    /// As [`Tensor::edge`], but a view that was made unrecorded of a tensor that wants gradients, and so seems to want
    /// them too, has one as well, which nothing leads to: hooks may hang there.
    pub fn edge_for_hooks(&self) -> Option<Edge> {
        let seems = || self.requires_grad().then(|| Edge { node: self.physical().leaf(), output: 0 });
        self.edge().or_else(seems)
    }

    /// The leaf's end of the graph.
    fn leaf(&self) -> NodeRef {
        let extra = self.extra();
        let late = self.flags() & LATE != 0;
        if let (Some(leaf), false) = (extra.leaf.get(), late) {
            return leaf.clone();
        }
        // Asked for now, since it wants the interpreter, which nobody may wait for under a lock.
        let trace = anomaly::trace();
        if late {
            let body = self.body().clone();
            if let Some(leaf) = &mut lock(&extra.late).leaf {
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
        if self.last_edge().is_some() {
            self.check_view()?;
        }
        if let Some(edge) = self.history()
            && self.0.flags.fetch_or(RETAINS, Ordering::AcqRel) & RETAINS == 0
        {
            edge.node.hooks().retain.push((edge.output, self.downgrade()));
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
            Some(Kind::Slices(_)) => self.body().storage.written_by(&Slices::NAME),
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
