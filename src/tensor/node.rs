//! The graph: nodes in the arena, edges to their outputs, saved values. It holds values and edges, never tensors,
//! so that no cycle can be made on the Rust side.

use super::{Body, Tensor, WeakTensor, anomaly, mode};
use crate::arena::{self, Ref};
use crate::base::{DType, Device, Dims, Error, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub type NodeRef = Ref<Node>;

/// Where a gradient flows to: output `output` of `node`.
#[derive(Clone)]
pub struct Edge {
    pub node: NodeRef,
    pub output: u32,
}

/// The gradients that a node's derivative returns, one per edge.
pub type Grads = SmallVec<[Option<Tensor>; 3]>;

/// The derivative of an operator's row: what a node of it does in a backward.
pub struct Derivative {
    /// PyTorch's name: `MulBackward0`.
    pub name: &'static str,
    pub apply: fn(&Step) -> Result<Grads>,
}

/// A derivative that is not a row's: a Python `Function`.
pub trait Custom: Send + Sync {
    fn name(&self) -> String;
    fn apply(&self, step: &Step) -> Result<Grads>;
    /// The graph is being freed.
    fn release(&self) {}
    /// The Python object that this node keeps alive, for the collector.
    fn host(&self) -> *mut c_void;
}

/// A user's callback on a tensor or a node. What the two lists mean depends on where it hangs.
pub trait Hook: Send + Sync {
    fn call(&self, inputs: &[Option<Tensor>], outputs: &[Option<Tensor>]) -> Result<Option<Grads>>;
    fn host(&self) -> *mut c_void;
}

pub enum Kind {
    Op(&'static Derivative),
    Leaf(Leaf),
    Custom(Box<dyn Custom>),
}

/// The end of an edge at a tensor that the user made: strong on its values and hooks, weak on its `.grad`.
pub struct Leaf {
    pub tensor: WeakTensor,
    pub body: Body,
}

/// What the engine checks a gradient against.
#[derive(Clone)]
pub struct Meta {
    pub shape: Dims,
    pub dtype: DType,
    pub device: Device,
}

pub struct Node {
    pub sequence: u64,
    pub kind: Kind,
    pub edges: SmallVec<[Option<Edge>; 3]>,
    pub outputs: SmallVec<[Meta; 1]>,
    saved: Mutex<Saves>,
    /// The operator's other arguments, as the row's own tuple.
    pub params: Option<Box<dyn Any + Send + Sync>>,
    hooks: OnceLock<Box<Mutex<Hooks>>>,
    /// Where the forward call stood, in anomaly mode.
    pub trace: Option<Box<str>>,
    /// The Python object that shows this node, while there is one.
    pub host: AtomicPtr<c_void>,
}

#[derive(Default)]
pub struct Saves {
    pub values: SmallVec<[Saved; 2]>,
    pub freed: bool,
}

/// One saved value. `source` names the input (or, from [`Saved::OUTPUT`] on, the output) that it is.
pub struct Saved {
    pub body: Body,
    pub version: u32,
    pub source: u16,
    /// Whether it was saved of a view, whose history follows its base's.
    pub view: bool,
}

#[derive(Default)]
pub struct Hooks {
    next: u64,
    pub list: Vec<(u64, When, Arc<dyn Hook>)>,
    /// Outputs whose tensors keep their `.grad` (retain_grad).
    pub retain: Vec<(u32, WeakTensor)>,
}

/// When a hook is called, in a node's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// With the gradient of one output, before the node runs.
    Output(u32),
    /// With the gradients of all outputs, before the node runs.
    Before,
    /// With the gradients of inputs and outputs, after it ran.
    After,
    /// With the leaf, after its `.grad` was updated.
    Accumulated,
}

arena::pool!(Node, reaped);

/// What a long graph held is scattered over the heap; the system gets it back when that is worth the walk.
fn reaped(count: usize) {
    if count > 50_000 {
        crate::storage::host::trim_heap();
    }
}

/// How many live nodes hold Python objects; the collector's walk is skipped while there are none.
static HOSTED: AtomicUsize = AtomicUsize::new(0);

pub fn any_hosted() -> bool {
    HOSTED.load(Ordering::Relaxed) > 0
}

fn namespaced(name: &str) -> String {
    if matches!(name, "AccumulateGrad" | "CopySlices") {
        format!("torch::autograd::{name}")
    } else {
        name.into()
    }
}

/// `Mul` for `MulBackward0`.
fn operator_of(name: &str) -> &str {
    match name.rfind("Backward") {
        Some(at) if name[at + 8..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}

impl Saved {
    pub const OUTPUT: u16 = 1 << 15;
    /// A value that is neither an input nor an output.
    pub const DETACHED: u16 = (1 << 15) - 1;

    pub fn input(body: &Body, index: usize) -> Saved {
        Saved { body: body.clone(), version: body.storage.version(), source: index as u16, view: false }
    }

    pub fn output(body: &Body, index: usize) -> Saved {
        Saved {
            body: body.clone(),
            version: body.storage.version(),
            source: Saved::OUTPUT + index as u16,
            view: false,
        }
    }

    /// Refuses a value that was written over since it was saved.
    fn check(&self, node: &Node) -> Result<()> {
        let now = self.body.storage.version();
        if now == self.version {
            return Ok(());
        }
        let is_output = self.source >= Saved::OUTPUT;
        let from = if is_output {
            Some((node.operator(), u32::from(self.source - Saved::OUTPUT)))
        } else {
            match node.edges.get(usize::from(self.source)) {
                // The tensor is known by who wrote it last; a view's history starts anew with such a write.
                Some(Some(edge)) if !edge.node.is_leaf() => Some(match self.body.storage.last_writer() {
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
            type_string(self.body.dtype, self.body.storage.device()),
            self.body.layout.shape.as_slice(),
            self.version
        )))
    }
}

/// `torch.FloatTensor`, `torch.cuda.LongTensor`.
pub fn type_string(dtype: DType, device: Device) -> String {
    let place = if device.is_cpu() { "" } else { "cuda." };
    format!("torch.{place}{}Tensor", dtype.scalar_name())
}

/// Everything a new node is made of, for [`Node::publish`].
pub struct Parts {
    pub kind: Kind,
    pub edges: SmallVec<[Option<Edge>; 3]>,
    pub outputs: SmallVec<[Meta; 1]>,
    pub saved: SmallVec<[Saved; 2]>,
    pub params: Option<Box<dyn Any + Send + Sync>>,
}

impl Node {
    /// Puts a node into the arena. From here on it does not change, but for saved values and hooks.
    pub fn publish(parts: Parts) -> NodeRef {
        let above = parts.edges.iter().flatten().map(|e| e.node.sequence).max().unwrap_or(0);
        if matches!(parts.kind, Kind::Custom(_)) {
            HOSTED.fetch_add(1, Ordering::Relaxed);
        }
        arena::insert(Node {
            sequence: mode::next_sequence(above),
            kind: parts.kind,
            edges: parts.edges,
            outputs: parts.outputs,
            saved: Mutex::new(Saves { values: parts.saved, freed: false }),
            params: parts.params,
            hooks: OnceLock::new(),
            trace: anomaly::trace(),
            host: AtomicPtr::new(std::ptr::null_mut()),
        })
    }

    pub fn name(&self) -> String {
        match &self.kind {
            Kind::Op(d) => d.name.into(),
            Kind::Leaf(_) => "AccumulateGrad".into(),
            Kind::Custom(c) => c.name(),
        }
    }

    /// The operator as error messages name it: `Mul` for `MulBackward0`.
    pub fn operator(&self) -> String {
        match self.kind {
            Kind::Op(_) => operator_of(&self.full_name()).into(),
            _ => self.full_name(),
        }
    }

    /// `name()` as Python sees it: the engine's own nodes carry their namespace.
    pub fn full_name(&self) -> String {
        namespaced(&self.name())
    }

    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Leaf(_))
    }

    pub fn saves(&self) -> MutexGuard<'_, Saves> {
        self.saved.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds saved values after publishing: outputs are known only then (a custom Function's).
    pub fn save(&self, saved: Saved) {
        self.saves().values.push(saved);
    }

    pub fn has_hooks(&self) -> bool {
        self.hooks.get().is_some()
    }

    pub fn hooks(&self) -> MutexGuard<'_, Hooks> {
        let cell = self.hooks.get_or_init(|| {
            HOSTED.fetch_add(1, Ordering::Relaxed);
            Box::default()
        });
        cell.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Hangs a hook on this node; the number takes it off again.
    pub fn add_hook(&self, when: When, hook: Arc<dyn Hook>) -> u64 {
        let mut hooks = self.hooks();
        hooks.next += 1;
        let id = hooks.next;
        hooks.list.push((id, when, hook));
        id
    }

    pub fn remove_hook(&self, id: u64) {
        let taken = {
            let mut hooks = self.hooks();
            let at = hooks.list.iter().position(|h| h.0 == id);
            at.map(|at| hooks.list.remove(at))
        };
        // Dropped outside the lock: a hook's closure may own anything.
        drop(taken);
    }

    /// The hooks of one moment, in the order in which they were hung.
    pub fn hooks_at(&self, when: impl Fn(When) -> bool) -> Vec<(When, Arc<dyn Hook>)> {
        if !self.has_hooks() {
            return Vec::new();
        }
        self.hooks().list.iter().filter(|h| when(h.1)).map(|h| (h.1, h.2.clone())).collect()
    }

    /// Drops the saved values; later attempts to use them say so.
    pub fn release(&self) {
        let old = {
            let mut saves = self.saves();
            saves.freed = true;
            std::mem::take(&mut saves.values)
        };
        drop(old);
        if let Kind::Custom(custom) = &self.kind {
            custom.release();
        }
    }

    /// Calls `see` with each Python object that this node alone keeps alive.
    pub fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void)) {
        if let Kind::Custom(custom) = &self.kind {
            see(custom.host());
        }
        if let Some(Ok(hooks)) = self.hooks.get().map(|h| h.try_lock()) {
            hooks.list.iter().for_each(|h| see(h.2.host()));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let hosted =
            usize::from(matches!(self.kind, Kind::Custom(_))) + usize::from(self.hooks.get().is_some());
        if hosted > 0 {
            HOSTED.fetch_sub(hosted, Ordering::Relaxed);
        }
    }
}

impl Hooks {
    pub fn retained(&self) -> Vec<(u32, WeakTensor)> {
        self.retain.clone()
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
    /// Takes the node's saved values, for good unless `keep`.
    pub fn new(
        node: &'a NodeRef,
        grads: &'a [Option<Tensor>],
        create_graph: bool,
        wanted: u64,
        keep: bool,
    ) -> Result<Step<'a>> {
        let mut saves = node.saves();
        let freed = saves.freed;
        let values = if keep {
            saves.values.iter().map(Saved::share).collect()
        } else {
            saves.freed = true;
            std::mem::take(&mut saves.values)
        };
        drop(saves);
        Ok(Step { node, grads, create_graph, wanted, values, freed })
    }

    pub fn wants(&self, edge: usize) -> bool {
        self.wanted >> edge & 1 == 1
    }

    /// The gradient of an output, if one arrived.
    pub fn grad(&self, output: usize) -> Option<&Tensor> {
        self.grads.get(output)?.as_ref()
    }

    /// The bytes of a saved value, for a kernel that does not record.
    pub fn body(&self, source: u16) -> Result<&Body> {
        match self.values.iter().find(|s| s.source == source) {
            Some(saved) => saved.check(self.node).map(|()| &saved.body),
            None if self.freed => Err(freed_error()),
            None => Err(Error::runtime(format!("{} did not save value {source}", self.node.name()))),
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
        Ok(Tensor::from_saved(body, edge))
    }

    pub fn params<P: 'static>(&self) -> Result<&P> {
        self.node
            .params
            .as_ref()
            .and_then(|p| p.downcast_ref())
            .ok_or_else(|| Error::runtime(format!("{} lost its arguments", self.node.name())))
    }
}

impl Saved {
    fn share(&self) -> Saved {
        Saved { body: self.body.clone(), version: self.version, source: self.source, view: self.view }
    }

    /// This saved value as a tensor, checked; `node` is the one that saved it.
    pub fn unpack(&self, node: &NodeRef) -> Result<Tensor> {
        self.check(node)?;
        let edge = if self.source >= Saved::OUTPUT {
            Some(Edge { node: node.clone(), output: u32::from(self.source - Saved::OUTPUT) })
        } else {
            node.edges.get(usize::from(self.source)).cloned().flatten()
        };
        Ok(Tensor::from_saved(self.body.clone(), edge))
    }
}

impl Step<'_> {
    /// Whether a value from this source was saved.
    pub fn has(&self, source: u16) -> bool {
        self.values.iter().any(|s| s.source == source)
    }
}
