//! The graph: nodes in the arena, edges to their outputs, saved values. It holds bodies and edges, not
//! tensors, so that Rust objects form no reference cycle.

use crate::arena::{self, Draft, Ref};
use crate::base::lock;
use crate::base::{ConjNeg, DType, Device, Result, try_alloc};
use crate::storage::{access, epoch};
use crate::tensor::graph::facts::{DerivativeFlops, Facts};
use crate::tensor::graph::saved::{Kept, Saved, Saves, Step};
use crate::tensor::host::{HostObject, count_hosted, uncount_hosted};
use crate::tensor::leaf::grad_type::{GradType, GradTypeCell};
use crate::tensor::part::Part;
use crate::tensor::{Body, Meta, Tensor, WeakTensor, anomaly, changes, mode};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub type NodeRef = Ref<Node>;

/// The destination of a gradient: output `output` of `node`.
#[derive(Clone)]
pub struct Edge {
    pub node: NodeRef,
    pub output: u32,
}

/// The gradients that a node's derivative returns, one for each edge.
pub type Grads = SmallVec<[Option<Tensor>; 3]>;

/// The derivative of an operator's row, which a node runs in a backward.
pub struct Derivative {
    /// PyTorch's name: `MulBackward0`.
    pub name: &'static str,
    pub apply: fn(&Step) -> Result<Grads>,
    /// Further facts about the operator, if it is a primitive.
    pub facts: Option<&'static Facts>,
    /// The amount of work, for the profiler.
    pub flops: Option<DerivativeFlops>,
}

/// A derivative that raises an error if a gradient reaches its node.
macro_rules! no_derivative {
    ($name:literal, $message:literal) => {
        $crate::tensor::Derivative {
            facts: None,
            flops: None,
            name: $name,
            apply: |_| Err($crate::base::Error::runtime($message)),
        }
    };
}
pub(crate) use no_derivative;

/// A derivative that does not come from a row: that of a Python `Function`.
pub trait Custom: Send + Sync {
    fn name(&self) -> String;
    fn apply(&self, step: &Step) -> Result<Grads>;
    /// True if the argument is a tensor. Hooks see the gradients of tensors only.
    fn is_tensor(&self, input: usize) -> bool;
    /// Called when the saved values of the node are freed.
    fn release(&self) {}
    /// The declared dtype of an output's gradient, if it differs from the output's.
    fn dtype(&self, _output: usize) -> Option<DType> {
        None
    }
    /// True if the gradient of an output may have any dtype.
    fn takes_any(&self, _output: usize) -> bool {
        false
    }
    /// Edges for saved tensors that are neither inputs nor outputs.
    fn others(&self) -> &[Edge];
    /// The Python object of this node, which the node keeps alive. Null while the object keeps the node alive
    /// instead.
    fn host(&self) -> *mut c_void;
    /// True if others also hold the Python object.
    fn is_shown(&mut self) -> bool;
    /// Reverses the ownership: from now on the Python object keeps the node alive.
    fn give_to_host(&self, node: &NodeRef);
    /// Calls `see` with each Python object that this node keeps alive, for the garbage collector.
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void));
    fn as_any(&self) -> &dyn Any;
}

/// A user's callback on a tensor or a node. The meaning of the two lists depends on when it is called (see
/// `When`).
pub trait Hook: Send + Sync {
    fn call(&self, inputs: &[Option<Tensor>], outputs: &[Option<Tensor>]) -> Result<Option<Grads>>;
    fn host(&self) -> *mut c_void;
}

pub enum Kind {
    Op(&'static Derivative),
    Leaf(Box<Leaf>),
    Custom(Box<dyn Custom>),
    CopySlices(Box<CopySlices>),
}

/// The node of a write through a view, in the graph of the view's base. It runs the node of the write
/// (`writer`) with the gradient of the view's part. Its first edge leads to the base before the write; the
/// others are the writer's.
pub struct CopySlices {
    pub place: Part,
    /// The lazy conjugation and negation of the view relative to its base.
    pub conj_neg: ConjNeg,
    pub writer: NodeRef,
}

impl CopySlices {
    pub const NAME: &'static str = "CopySlices";
}

/// The node of a leaf tensor. It keeps the tensor's values and hooks alive, but not the tensor.
pub struct Leaf {
    pub(super) tensor: WeakTensor,
    pub(super) body: Mutex<Body>,
    pub(super) orphan: Mutex<Orphan>,
    /// True if the leaf is an input of a transform that has ended.
    retired: AtomicBool,
    pub(super) grad_type: GradTypeCell,
}

/// The properties of a leaf's tensor that outlive the tensor.
#[derive(Default)]
pub(super) struct Orphan {
    /// A gradient with an edge is not kept, because its graph could keep this node alive.
    pub grad: Option<Tensor>,
    /// True if the tensor no longer required gradients.
    pub frozen: bool,
    /// The new tensor that took its place.
    pub successor: Option<WeakTensor>,
}

impl Leaf {
    pub(super) fn new(tensor: WeakTensor, body: Body, grad_type: GradType) -> Leaf {
        Leaf {
            tensor,
            body: Mutex::new(body),
            orphan: Mutex::default(),
            retired: AtomicBool::new(false),
            grad_type: GradTypeCell::new(grad_type),
        }
    }

    #[inline]
    pub fn grad_type(&self) -> GradType {
        self.grad_type.get()
    }

    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    pub fn body(&self) -> Body {
        crate::tensor::lock(&self.body).clone()
    }
}

/// The operator's non-tensor arguments, as the tuple type of its row. A node that a replay makes again shares them.
pub type Params = Arc<dyn Any + Send + Sync>;

/// The nodes of one replay.
pub struct ReplayedNodes {
    /// The lowest of their sequence numbers. No other node with edges of its own has a number between theirs.
    lowest: AtomicU64,
    pub count: usize,
    pub backward: Arc<dyn Together>,
}

/// What runs the nodes of a replay together.
pub trait Together: Send + Sync {
    /// Returns the gradients that leave the nodes, in the order in which they would if the nodes ran one by one; `None` if the
    /// nodes must do that. `one_by_one` runs them, and frees nothing.
    fn run(
        &self,
        start: &Start,
        one_by_one: &mut dyn FnMut() -> Result<Vec<LeavingGrad>>,
    ) -> Result<Option<Vec<LeavingGrad>>>;
}

/// Where a backward enters the nodes of a replay.
pub struct Start<'a> {
    /// The nodes that will run, at their numbers.
    pub nodes: &'a [Option<&'a NodeRef>],
    pub grads: &'a [EnteringGrad<'a>],
    /// True if leaves take over their first gradients.
    pub is_for_leaves: bool,
}

/// The gradient of an output of the node of this number.
pub struct EnteringGrad<'a> {
    pub node: usize,
    pub output: usize,
    pub grad: Option<&'a Tensor>,
}

/// A gradient that the node of this number delivers along this edge, which leads out of the replay.
pub struct LeavingGrad {
    pub node: usize,
    pub edge: usize,
    pub grad: Option<Tensor>,
}

impl ReplayedNodes {
    pub fn new(count: usize, backward: Arc<dyn Together>) -> Arc<ReplayedNodes> {
        Arc::new(ReplayedNodes { lowest: AtomicU64::new(u64::MAX), count, backward })
    }

    /// Notes a node of this replay.
    pub fn note(&self, node: &Node) {
        self.lowest.fetch_min(node.sequence, Ordering::Relaxed);
    }

    pub fn lowest(&self) -> u64 {
        self.lowest.load(Ordering::Relaxed)
    }

    /// The number of a node among those of this replay.
    pub fn number(self: &Arc<ReplayedNodes>, node: &Node) -> Option<usize> {
        let (replayed, number) = node.replayed.as_ref()?;
        Arc::ptr_eq(self, replayed).then_some(*number as usize)
    }
}

pub struct Node {
    pub sequence: u64,
    pub kind: Kind,
    pub edges: SmallVec<[Option<Edge>; 3]>,
    pub outputs: SmallVec<[Meta; 1]>,
    saved: Mutex<Saves>,
    pub params: Option<Params>,
    /// The replay that made this node, and the node's number there.
    pub replayed: Option<(Arc<ReplayedNodes>, u32)>,
    hooks: OnceLock<Box<Mutex<Hooks>>>,
    /// The place of the forward call, in the modes that record it.
    pub trace: Option<Arc<anomaly::Trace>>,
    /// The Python object of this node, while there is one.
    pub host: AtomicPtr<c_void>,
}

/// The sequence number of a node, and the numbers of its hooks.
pub type HookNumbers = (u64, SmallVec<[u64; 2]>);

#[derive(Default)]
pub struct Hooks {
    next: u64,
    /// Hooks by number, in the order in which they were added.
    pub list: BTreeMap<u64, (When, Arc<dyn Hook>)>,
    /// The dict that the user attached to this node.
    pub metadata: Option<Arc<dyn HostObject>>,
    /// Outputs whose tensors retain their `.grad`.
    pub retain: Vec<(u32, WeakTensor)>,
}

/// The moment of a node's run at which a hook is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Before the node runs, with the gradient of one output.
    Output(u32),
    /// Before the node runs, with the gradients of all outputs.
    Before,
    /// After the node ran, with the gradients of inputs and outputs.
    After,
    /// After the leaf's `.grad` was updated, with the leaf.
    Accumulated,
}

arena::pool!(Node, on_dropped, last_owner);

/// Returns the memory of a long graph to the system: its many small blocks would stay with the allocator.
fn on_dropped(count: usize) {
    if count > 50_000 {
        crate::storage::host::trim_heap();
    }
}

/// When the last handle to a custom Function's node is dropped while others hold its Python object, that
/// object takes the node over.
#[inline]
fn last_owner(node: &mut Node) -> Option<fn(NodeRef)> {
    let Kind::Custom(custom) = &mut node.kind else { return None };
    custom.is_shown().then_some(give_to_host)
}

#[cold]
fn give_to_host(node: NodeRef) {
    if let Kind::Custom(custom) = &node.kind {
        custom.give_to_host(&node);
    }
}

pub(super) fn namespaced(name: &str) -> String {
    if matches!(name, "AccumulateGrad" | "CopySlices" | "CopyBackwards" | "NotImplemented") {
        format!("torch::autograd::{name}")
    } else {
        name.into()
    }
}

/// Removes the suffix: `Mul` for `MulBackward0`.
pub(super) fn operator_of(name: &str) -> &str {
    match name.rfind("Backward") {
        Some(at) if name[at + 8..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}

/// PyTorch's type name: `torch.FloatTensor`, `torch.cuda.LongTensor`.
pub fn type_string(dtype: DType, device: Device) -> String {
    let place = match device {
        Device::Cpu => "",
        Device::Meta => "meta.",
        Device::Gpu(..) => "cuda.",
    };
    format!("torch.{place}{}Tensor", dtype.scalar_name())
}

/// The type name in errors of backward, where dtypes that PyTorch added late have another form.
pub fn kind_in_words(dtype: DType, device: Device) -> String {
    if !matches!(dtype, DType::Bool | DType::BF16 | DType::C64 | DType::C128) {
        return type_string(dtype, device);
    }
    format!("{}{}Type", device.kind().to_uppercase(), dtype.scalar_name())
}

impl Node {
    /// Allocates a node in the arena, to be filled in.
    #[inline]
    pub fn draft(kind: Kind) -> Draft<Node> {
        if matches!(kind, Kind::Custom(_)) {
            count_hosted();
        }
        arena::draft(Node {
            sequence: 0,
            kind,
            edges: SmallVec::new(),
            outputs: SmallVec::new(),
            saved: Mutex::new(Saves::default()),
            params: None,
            replayed: None,
            hooks: OnceLock::new(),
            trace: None,
            host: AtomicPtr::new(std::ptr::null_mut()),
        })
    }

    /// Publishes a node with a sequence number above those of its inputs. Afterwards only saved values and
    /// hooks change.
    #[inline]
    pub fn publish(node: Draft<Node>) -> NodeRef {
        if anomaly::is_idle() { Node::publish_traced(node, None) } else { Node::publish_watched(node) }
    }

    #[cold]
    #[inline(never)]
    fn publish_watched(node: Draft<Node>) -> NodeRef {
        let made = Node::publish_unseen(node);
        Node::announce(&made);
        made
    }

    /// Publishes a node without telling node creation hooks, for nodes that no user's operator made.
    pub fn publish_unseen(node: Draft<Node>) -> NodeRef {
        Node::publish_traced(node, anomaly::trace())
    }

    #[inline]
    pub(super) fn publish_traced(mut node: Draft<Node>, trace: Option<Arc<anomaly::Trace>>) -> NodeRef {
        let above = node.edges.iter().flatten().map(|e| e.node.sequence).max().unwrap_or(0);
        node.sequence = mode::next_sequence(above);
        node.trace = trace;
        node.publish()
    }

    /// The saved values of an unpublished node.
    #[inline]
    pub fn saves_mut(&mut self) -> &mut Saves {
        self.saved.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn name(&self) -> String {
        match &self.kind {
            Kind::Op(d) => d.name.into(),
            Kind::Leaf(_) => "AccumulateGrad".into(),
            Kind::Custom(c) => c.name(),
            Kind::CopySlices(_) => CopySlices::NAME.into(),
        }
    }

    /// The operator's name in error messages: `Mul` for `MulBackward0`.
    pub fn operator(&self) -> String {
        match self.kind {
            Kind::Op(_) | Kind::Custom(_) => operator_of(&self.full_name()).into(),
            _ => self.full_name(),
        }
    }

    /// The name that Python shows: the engine's own nodes have a namespace prefix.
    pub fn full_name(&self) -> String {
        namespaced(&self.name())
    }

    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Leaf(_))
    }

    /// All nodes that this node keeps alive, once for each handle.
    pub fn held(&self) -> impl Iterator<Item = &NodeRef> {
        let (writer, others) = match &self.kind {
            Kind::CopySlices(slices) => (Some(&slices.writer), &[][..]),
            Kind::Custom(custom) => (None, custom.others()),
            _ => (None, &[][..]),
        };
        self.edges.iter().flatten().chain(others).map(|edge| &edge.node).chain(writer)
    }

    pub fn saves(&self) -> MutexGuard<'_, Saves> {
        lock(&self.saved)
    }

    /// Adds a saved value to a published node: a custom Function's outputs are known only then.
    pub fn save(&self, saved: Saved) {
        self.saves().values.push(saved);
    }

    pub fn has_hooks(&self) -> bool {
        self.hooks.get().is_some()
    }

    pub fn hooks(&self) -> MutexGuard<'_, Hooks> {
        let cell = self.hooks.get_or_init(|| {
            count_hosted();
            Box::default()
        });
        lock(cell)
    }

    /// The numbers of the hooks, which no other hooks of this node ever have, with the sequence number of the node.
    pub fn hook_numbers(&self) -> Option<HookNumbers> {
        let numbers: SmallVec<[u64; 2]> = lock(self.hooks.get()?).list.keys().copied().collect();
        (!numbers.is_empty()).then_some((self.sequence, numbers))
    }

    /// Adds a hook to this node; the returned number serves to remove it.
    pub fn add_hook(&self, when: When, hook: Arc<dyn Hook>) -> u64 {
        self.note_hooks();
        let mut hooks = self.hooks();
        hooks.next += 1;
        let id = hooks.next;
        hooks.list.insert(id, (when, hook));
        epoch::next();
        id
    }

    /// Notes in a capture that hooks change which outlive the call.
    fn note_hooks(&self) {
        if changes::are_noted() && (self.is_leaf() || changes::is_older(self.sequence)) {
            access::note(|| "the hooks of a tensor that is older than the call change".into());
        }
    }

    pub fn remove_hook(&self, id: u64) {
        self.note_hooks();
        let taken = self.hooks().list.remove(&id);
        epoch::next();
        // Dropped outside the lock, because a hook's closure may own anything.
        drop(taken);
    }

    /// Removes the hooks and metadata of the node itself, and keeps the hooks of its tensor.
    pub(super) fn forget_notes(&self) {
        if !self.has_hooks() {
            return;
        }
        let gone = {
            let mut hooks = self.hooks();
            let of_node = |when: When| matches!(when, When::Before | When::After);
            let (gone, kept) =
                std::mem::take(&mut hooks.list).into_iter().partition(|hook| of_node(hook.1.0));
            hooks.list = kept;
            let gone: BTreeMap<_, _> = gone;
            epoch::next();
            (gone, hooks.metadata.take())
        };
        // Dropped outside the lock, because a hook's closure may own anything.
        drop(gone);
    }

    /// The hooks of the given moments, in the order in which they were added.
    pub fn hooks_at(&self, when: impl Fn(When) -> bool) -> Result<Vec<(When, Arc<dyn Hook>)>> {
        if !self.has_hooks() {
            return Ok(Vec::new());
        }
        try_alloc::all(self.hooks().list.values().filter(|hook| when(hook.0)).cloned())
    }

    /// Frees the saved values; using them later is an error.
    pub fn release(&self) {
        let old = {
            let mut saves = self.saves();
            saves.freed = true;
            saves.lost |= !saves.values.is_empty() || saves.number;
            std::mem::take(&mut saves.values)
        };
        drop(old);
        if let Kind::Custom(custom) = &self.kind {
            custom.release();
        }
    }

    /// Gives up the Python objects that this node keeps, when the garbage collector found it unreachable.
    pub fn give_up(&self) -> (Hooks, Saves) {
        let hooks = self
            .hooks
            .get()
            .and_then(|hooks| hooks.try_lock().ok())
            .map(|mut hooks| std::mem::take(&mut *hooks));
        let saves = self
            .saved
            .try_lock()
            .ok()
            .map(|mut saves| std::mem::replace(&mut *saves, Saves { freed: true, ..Saves::default() }));
        (hooks.unwrap_or_default(), saves.unwrap_or_default())
    }

    /// Calls `see` with each Python object that this node keeps alive. If not `shared`, objects that a
    /// running backward also holds are left out.
    pub fn visit_hosts(&self, shared: bool, see: &mut dyn FnMut(*mut c_void)) {
        if let Kind::Custom(custom) = &self.kind {
            custom.visit_hosts(see);
        }
        if let Some(Ok(hooks)) = self.hooks.get().map(|h| h.try_lock()) {
            hooks
                .list
                .values()
                .filter(|hook| shared || Arc::strong_count(&hook.1) == 1)
                .for_each(|hook| see(hook.1.host()));
            hooks.metadata.iter().for_each(|m| see(m.host()));
        }
        if let Ok(saves) = self.saved.try_lock() {
            for saved in &saves.values {
                if let Kept::Packed(packed) = &saved.kept
                    && (shared || Arc::strong_count(packed) == 1)
                {
                    packed.hook.visit_hosts(see);
                }
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let hosted =
            usize::from(matches!(self.kind, Kind::Custom(_))) + usize::from(self.hooks.get().is_some());
        if hosted > 0 {
            uncount_hosted(hosted);
        }
    }
}

impl Hooks {
    pub fn retained(&self) -> Result<Vec<(u32, WeakTensor)>> {
        try_alloc::all(self.retain.iter().cloned())
    }
}
