//! Tensors and the graph that they record. A tensor is a body (storage, layout, dtype) and the edge that it
//! was born with. What may change later (a leaf's `.grad`, the new edge after an in-place write) is in a
//! separate, slower cell.

mod body;
pub mod changes;
mod coo;
mod dual_levels;
mod flags;
mod graph;
mod host;
mod host_state;
mod item;
pub mod leaf;
pub mod levels;
pub mod mode;
mod node;
pub mod node_hooks;
mod part;
mod replaced;
mod snapshot;
mod thread;
mod view;

pub use body::{Body, BodyRef, Meta};
pub use flags::Marks;
pub use graph::describe::add_failed_node;
pub use graph::recorder::{Recorder, any_requires_grad, inference_error, records};
pub use graph::saved::{Kept, Packed, Saved, Saves, Step, Unpack, freed_error};
pub use graph::{anomaly, facts, saved_hooks};
pub use host::{HostObject, any_hosted};
pub use item::Referents;
pub use leaf::grad_type::GradType;
pub(crate) use node::no_derivative;
pub use node::{
    CopySlices, Custom, Derivative, Edge, EnteringGrad, Grads, Hook, HookNumbers, Hooks, Kind, Leaf,
    LeavingGrad, Node, NodeRef, Params, ReplayedNodes, Start, Together, When, kind_in_words, type_string,
};
pub use part::Part;
pub use snapshot::with_snapshot;
pub use thread::hand_over;
pub use view::ViewRecipe;

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

/// A handle; a clone is the same tensor.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

#[derive(Clone)]
pub struct WeakTensor(Weak<Inner>);

struct Inner {
    body: Body,
    /// The edge to the node that made this tensor. After an in-place write the current one is in `extra` (see
    /// `REPLACED`).
    edge: Option<Edge>,
    flags: AtomicU8,
    view: Option<View>,
    extra: OnceBox<Extra>,
    /// The Python object of this tensor, while there is one.
    host: AtomicPtr<c_void>,
}

/// Fields that few tensors need.
#[derive(Default)]
struct Extra {
    replaced: Mutex<Replacement>,
    grad: Mutex<Option<Tensor>>,
    grad_type: GradTypeCell,
    /// The leaf's node, once something was computed from the leaf (see `Replacement::leaf`).
    leaf: OnceLock<NodeRef>,
    tangents: Tangents,
    /// The physical tensor, if this tensor is batched.
    batched: OnceLock<Batched>,
    /// The parts, if this tensor is sparse.
    coo: Mutex<Option<Box<CooParts>>>,
    host_state: Mutex<Option<HostState>>,
}

impl Extra {
    /// The leaf's current node, if there is one.
    fn leaf_node(&self) -> Option<NodeRef> {
        lock(&self.replaced).leaf.clone().unwrap_or_else(|| self.leaf.get().cloned())
    }

    /// True if a leaf's node expects gradients of an outdated shape, and only the tensor holds that node.
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
    /// `Some(None)` if the tensor was detached in place.
    edge: Option<Option<Edge>>,
    /// The leaf's node for the new body. `Some(None)`: it is made at the next use.
    leaf: Option<Option<NodeRef>>,
}

/// The fields of a tensor that is a view.
pub struct View {
    /// The tensor whose edge is rewritten when the view is written; never itself a view.
    pub base: Tensor,
    /// A [`CreationMeta`]: how the view was made, which decides if it may be written in place.
    made: AtomicU8,
    /// Makes the view again.
    func: &'static ViewFunc,
    /// The storage's version when this view's edge was last updated. For a view that cannot follow its base
    /// in the graph, the version when it was made.
    seen: AtomicU32,
    /// The tensor that provides the tangents, if it is not the base.
    tangent_base: Option<Tensor>,
}

/// The way in which a view was made (PyTorch's `CreationMeta`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CreationMeta {
    Plain,
    NoGrad,
    Inference,
    /// One of several outputs of one call (`unbind`, `split`).
    Multi,
    /// Made by a custom Function. Rebuilding the view's node after a write would bypass the Function's
    /// backward.
    Function,
}

/// Makes a view of its base again after the base changed (PyTorch's ViewFunc). The view operator passes it
/// in, like a row its derivative: edges and tangents of views are updated lazily, by code in this module (a
/// node's edges, a saved value, an error message), and this module cannot call operators.
pub struct ViewFunc {
    /// The edge of a view with this body, from the current edge of its base.
    pub history: fn(base: &Tensor, view: &Body) -> Option<Edge>,
    /// The same view of `base`, a tensor with the layout of the view's base: its tangent.
    pub values: fn(base: &Tensor, view: &Body) -> Result<Tensor>,
}

/// The number of a `vmap` level; an inner level has a higher number than the levels around it.
pub type Level = u32;
pub type Levels = SmallVec<[Level; 2]>;

/// The physical tensor of a batched tensor.
pub struct Batched {
    /// The value: one batch dimension for each of `levels`, in that order, then the dimensions that the
    /// function sees.
    pub value: Tensor,
    pub levels: Levels,
    /// The position of the innermost level's batch dimension among the dimensions visible when it was
    /// entered.
    pub place: usize,
    /// The tensor whose dimension `place` became the innermost batch dimension.
    pub given: Option<Tensor>,
}

/// The parts of a sparse tensor, which are ordinary tensors.
#[derive(Clone)]
pub struct CooParts {
    /// The coordinates of the values, one column for each: an int64 matrix with a row for each sparse dimension.
    pub indices: Tensor,
    /// The values, whose further dimensions are the dense ones.
    pub values: Tensor,
    /// True if the columns of `indices` are sorted and differ from one another.
    pub is_coalesced: bool,
    pub func: &'static CooFunc,
}

/// What the engine does with sparse tensors. It comes in with them, because the engine cannot call operators.
pub struct CooFunc {
    /// The dense tensor of that shape.
    pub to_dense: fn(&CooParts, &[usize]) -> Result<Tensor>,
    /// All values of two sparse tensors of one shape.
    pub join: fn(&CooParts, &CooParts) -> Result<CooParts>,
}

/// A tensor's tangents, by ascending level. `None` means that the tangent was removed, so that a view must
/// not take it from its base.
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

    /// A tensor without an edge.
    pub fn new(body: Body) -> Tensor {
        Tensor::with_flags(body, None, 0, None)
    }

    /// A tensor with newly computed values, made by the node of `edge`.
    #[inline]
    pub fn made_by(body: Body, edge: Option<Edge>) -> Tensor {
        debug_assert!(body.conj_neg.is_none(), "a kernel's result is values");
        Tensor::make(body, edge, 0, None)
    }

    /// A tensor made by the node of `edge`; its body may be conjugated or negated.
    pub fn of(body: Body, edge: Option<Edge>) -> Tensor {
        Tensor::with_flags(body, edge, 0, None)
    }

    #[inline]
    fn with_flags(body: Body, edge: Option<Edge>, flags: u8, view: Option<View>) -> Tensor {
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

    /// The body that this tensor was made with. `None` if it was replaced, or if an operator needs more than
    /// the bytes.
    #[inline]
    pub fn original_body(&self) -> Option<&Body> {
        let said = self.flags() & (REPLACED | DUAL | BATCHED | VIEW | CONJ_NEG);
        (said == 0 || (said == VIEW && !any_level())).then_some(&self.0.body)
    }

    /// True if an operator on this tensor must do more than run a kernel over its bytes: in forward mode,
    /// under `vmap`, or for lazily conjugated or negated tensors.
    #[inline]
    pub fn is_special(&self) -> bool {
        let flags = self.flags();
        flags & (DUAL | BATCHED | CONJ_NEG) != 0 || (flags & VIEW != 0 && any_level())
    }

    /// True if the values are the conjugate or the negative of the bytes.
    #[inline]
    pub fn is_conj_or_neg(&self) -> bool {
        self.flags() & CONJ_NEG != 0
    }

    /// True if the values are not the bytes: the tensor is conjugated, negated or batched.
    #[inline]
    pub fn is_batched_or_conj_neg(&self) -> bool {
        self.flags() & (BATCHED | CONJ_NEG) != 0
    }

    #[inline]
    fn flags(&self) -> u8 {
        self.0.flags.load(Ordering::Acquire)
    }

    /// The flags that decide if a call on this tensor is more than a kernel.
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

    /// True if this tensor was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.physical().body().storage.is_untracked()
    }

    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True if there is no other handle.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::weak_count(&self.0) == 0
    }

    /// The number of handles to this tensor.
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

    /// The edge to the node that made this tensor (PyTorch's `grad_fn`); `None` for leaves.
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

    /// The edge when it was last asked for: a view is not updated.
    pub fn last_history(&self) -> Option<Edge> {
        let replaced = self.0.extra.get().filter(|_| self.flags() & REPLACED != 0);
        replaced.and_then(|extra| lock(&extra.replaced).edge.clone()).unwrap_or_else(|| self.0.edge.clone())
    }

    /// True if there is an edge; does not clone a handle.
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

    /// The edge to which the gradient of this tensor flows: to the node that made it, or to the leaf's node.
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

    /// The hooks at the node to which the gradient of this tensor flows; `None` if there are none.
    pub fn hook_numbers(&self) -> Option<HookNumbers> {
        match self.last_history() {
            Some(edge) => edge.node.hook_numbers(),
            None => self.0.extra.get()?.leaf_node()?.hook_numbers(),
        }
    }

    /// Like [`Tensor::edge`], for the tensors of a user's list: an error if there is no memory for another
    /// leaf's node.
    pub fn edge_of_many(&self) -> Result<Option<Edge>> {
        crate::storage::reserve::check()?;
        Ok(self.edge())
    }

    /// Like [`Tensor::edge`]. If this is an unrecorded view of a tensor that requires gradients, hooks get a
    /// leaf node, although no gradient will reach it.
    pub fn edge_for_hooks(&self) -> Option<Edge> {
        let seems = || self.requires_grad().then(|| Edge { node: self.physical().leaf(), output: 0 });
        self.edge().or_else(seems)
    }

    /// The leaf's node; it is made at the first use.
    fn leaf(&self) -> NodeRef {
        let extra = self.extra();
        let replaced = self.flags() & REPLACED != 0;
        if let (Some(leaf), false) = (extra.leaf.get(), replaced) {
            return leaf.clone();
        }
        // Taken before the lock: it needs the interpreter, and no thread may wait for that under a lock.
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
                changes::note(self.id(), "is made to require gradients");
            }
            if anomaly::keeps_lines() {
                self.edge();
            }
        } else if !on && flags.fetch_and(!REQUIRES, Ordering::AcqRel) & REQUIRES != 0 {
            changes::note(self.id(), "is made to require no gradients");
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
        changes::note(self.id(), "is made to retain its gradient");
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

    /// Replaces this tensor's edge (in-place writes, `detach_`).
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

    /// Moves `retain_grad` from the `old` edge to the `new` one.
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

    /// The tensor's `id`, also after it was freed. It is not reused while this handle lives.
    fn address(&self) -> usize {
        self.0.as_ptr().cast::<()>() as usize
    }
}
