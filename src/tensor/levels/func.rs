//! The active transforms of a thread that differentiate functions (`func.grad`, `jvp` and the like),
//! innermost last. Tensors made while a transform runs belong to it, and only those may be written in place
//! there.

use crate::base::{Error, Guidance, Result, try_alloc};
use crate::storage::{self, Storage};
use crate::tensor::levels::tangents;
use crate::tensor::levels::vmap;
use crate::tensor::{Edge, Kind, Level, Node, NodeRef, Tensor, mode};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// The direction in which a transform differentiates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Reverse,
    Forward,
}

struct Transform {
    /// Numbers grow with time: a transform or storage with a smaller one was made earlier.
    number: u32,
    /// The sequence number of the last node before the transform.
    since: u64,
    mode: Mode,
    /// The innermost `vmap` level when the transform began.
    inside: Level,
    inputs: Vec<Input>,
    /// The memory of the function's other arguments, which may be written.
    writable: Vec<Storage>,
    /// True if writes to tensors made outside are refused.
    guards: bool,
    /// True if operators are recorded outside of the transform.
    recorded: bool,
    /// For nodes that were asked about, by address and sequence: true if they lead to an input. A later graph
    /// walk stops there.
    known: HashMap<(usize, u64), bool>,
}

/// An input: the tensor's id, the memory that it shares with the caller's tensor, and its edge.
struct Input {
    id: usize,
    memory: Storage,
    edge: Option<Edge>,
}

thread_local! {
    static TRANSFORMS: RefCell<Vec<Transform>> = const { RefCell::new(Vec::new()) };
    /// Levels with numbers up to this one are hidden.
    static HIDDEN_UP_TO: Cell<u32> = const { Cell::new(0) };
}

static LAST: AtomicU32 = AtomicU32::new(0);

/// Moves this thread's transforms, including `vmap`, into the returned closure, which sets them in the thread
/// that calls it.
pub fn hand_over() -> impl FnOnce() + Send {
    let (transforms, hidden_up_to, batches) = (TRANSFORMS.take(), HIDDEN_UP_TO.take(), vmap::hand_over());
    move || {
        TRANSFORMS.set(transforms);
        HIDDEN_UP_TO.set(hidden_up_to);
        batches();
    }
}

fn with<R>(act: impl FnOnce(&mut Vec<Transform>) -> R) -> R {
    TRANSFORMS.with(|transforms| act(&mut transforms.borrow_mut()))
}

/// Begins a transform. Returns the sequence number of the last node before it.
pub fn begin(mode: Mode, guards: bool) -> u64 {
    let since = mode::latest_sequence();
    let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    let inside = vmap::frames().last().map_or(0, |f| f.level);
    with(|all| {
        let recorded = mode::grad_enabled() && all.last().is_none_or(|around| around.recorded);
        let (inputs, writable, known) = (Vec::new(), Vec::new(), HashMap::new());
        all.push(Transform { number, since, mode, inside, inputs, writable, guards, recorded, known });
    });
    storage::set_label(number);
    since
}

pub fn end() {
    let (left, number) = with(|all| (all.pop(), all.last().map_or(0, |t| t.number)));
    storage::set_label(number);
    drop(left);
}

/// Runs `act`; tensors made in it belong to no transform.
pub fn outside<R>(act: impl FnOnce() -> R) -> R {
    let inside = storage::label();
    storage::set_label(0);
    let made = act();
    storage::set_label(inside);
    made
}

/// True if any transform is active in this thread, visible or hidden.
#[inline]
pub fn is_inside() -> bool {
    storage::label() != 0
}

/// True if any visible transform is active in this thread.
pub fn any() -> bool {
    storage::label() > HIDDEN_UP_TO.get()
}

/// The number of active, visible transforms that refuse writes to outside tensors.
pub fn depth() -> usize {
    with(|all| all.iter().filter(|transform| transform.guards && transform.is_visible()).count())
}

/// Hides the active transforms from this thread and turns tangents off until it is dropped: the forward of a
/// custom Function works on plain tensors.
pub struct HideTransforms {
    hidden_up_to: u32,
    tangents_on: bool,
}

impl HideTransforms {
    pub fn start() -> HideTransforms {
        HideTransforms {
            hidden_up_to: HIDDEN_UP_TO.replace(storage::label()),
            tangents_on: tangents::set_enabled(false),
        }
    }

    pub fn show_transforms(&self) {
        HIDDEN_UP_TO.set(self.hidden_up_to);
    }
}

impl Drop for HideTransforms {
    fn drop(&mut self) {
        self.show_transforms();
        tangents::set_enabled(self.tangents_on);
    }
}

/// Sets the inputs of the innermost transform, and the other tensors that its function was given.
pub fn set_inputs<'a>(
    inputs: impl Iterator<Item = &'a Tensor>,
    others: impl Iterator<Item = &'a Tensor>,
) -> Result<()> {
    let input = |t: &Tensor| Ok(Input { id: t.id(), memory: memory_of(t), edge: t.edge_of_many()? });
    let inputs = try_alloc::collect(inputs.map(input))?;
    with(|all| {
        if let Some(innermost) = all.last_mut() {
            innermost.inputs.extend(inputs);
            innermost.writable.extend(others.map(memory_of));
        }
    });
    Ok(())
}

fn memory_of(t: &Tensor) -> Storage {
    t.physical().body().storage.clone()
}

impl Transform {
    fn takes(&self, memory: &Storage) -> bool {
        self.inputs.iter().any(|input| input.memory.same(memory))
    }

    /// True unless a [`HideTransforms`] hides this transform.
    fn is_visible(&self) -> bool {
        self.number > HIDDEN_UP_TO.get()
    }

    fn is_input(&self, node: &Node) -> bool {
        self.inputs.iter().filter_map(|input| input.edge.as_ref()).any(|edge| std::ptr::eq(&*edge.node, node))
    }

    /// True if the graph behind `from`, a node made inside the transform, leads to an input or to a leaf that
    /// was also made inside.
    fn is_reached(&mut self, from: NodeRef) -> bool {
        let name = |node: &Node| (std::ptr::from_ref(node) as usize, node.sequence);
        let asked = name(&from);
        let reached = leads(vec![from], |node| match &node.kind {
            _ if self.is_input(node) => Some(true),
            Kind::Leaf(leaf) => Some(leaf.body().storage.label() >= self.number),
            _ if node.sequence <= self.since => Some(false),
            _ => self.known.get(&name(node)).copied(),
        });
        self.known.insert(asked, reached);
        reached
    }
}

/// True if the graph behind these nodes has a node for which `wanted` is `Some(true)`. The search stops at
/// nodes for which it is `Some(false)`.
pub fn leads(mut left: Vec<NodeRef>, wanted: impl Fn(&Node) -> Option<bool>) -> bool {
    let mut seen: HashSet<usize> = HashSet::new();
    while let Some(node) = left.pop() {
        if !seen.insert(std::ptr::from_ref::<Node>(&node) as usize) {
            continue;
        }
        match wanted(&node) {
            Some(true) => return true,
            Some(false) => {}
            None => left.extend(node.edges.iter().flatten().map(|edge| edge.node.clone())),
        }
    }
    false
}

/// For [`leads`]: `Some(true)` if this node leads out of the graph made after node number `since`.
pub fn is_beyond(node: &Node, since: u64) -> Option<bool> {
    match &node.kind {
        Kind::Leaf(leaf) => Some(!leaf.is_retired()),
        // A node without edges: views that were made without recording only seem to require gradients.
        _ => (node.sequence <= since || node.edges.iter().all(Option::is_none)).then_some(true),
    }
}

/// The part of a tensor's place in the graph that is visible inside the transforms.
#[derive(PartialEq, Eq)]
enum Visibility {
    Full,
    /// The tensor is an input of the transform.
    AsInput,
    Hidden,
}

/// A transform shows the graph from the nodes made inside it to its own inputs; the rest is left to the
/// transforms around it.
fn visibility(t: &Tensor) -> Visibility {
    if !is_inside() && !t.is_batched() { Visibility::Full } else { visibility_inside(t) }
}

#[cold]
fn visibility_inside(t: &Tensor) -> Visibility {
    if is_sample(t) {
        return Visibility::Hidden;
    }
    let Some(Edge { node, .. }) = t.edge() else { return Visibility::Full };
    with(|all| {
        for transform in all.iter_mut().rev().take_while(|transform| transform.is_visible()) {
            let reverse = transform.mode == Mode::Reverse;
            if transform.inputs.iter().any(|input| input.id == t.id()) {
                return if reverse { Visibility::AsInput } else { Visibility::Hidden };
            }
            if !node.is_leaf() && node.sequence > transform.since {
                return if reverse && transform.is_reached(node) {
                    Visibility::Full
                } else {
                    Visibility::Hidden
                };
            }
        }
        // In the forward of a custom Function: as visible as outside of all transforms.
        let Some(outermost) = all.first().filter(|outermost| !outermost.is_visible()) else {
            return Visibility::Full;
        };
        if leads_outside(all, outermost, vec![node]) { Visibility::Full } else { Visibility::Hidden }
    })
}

/// True if the graph behind these nodes leads out of all transforms.
fn leads_outside(all: &[Transform], outermost: &Transform, from: Vec<NodeRef>) -> bool {
    let own = |node: &Node| node.is_leaf() && all.iter().any(|transform| transform.is_input(node));
    leads(from, |node| if own(node) { Some(false) } else { is_beyond(node, outermost.since) })
}

/// True if this node leads to tensors that are recorded outside of all transforms. Only then are tensors of
/// inference mode refused.
#[cold]
pub fn is_recorded_outside(node: &Node) -> bool {
    let edges = node.edges.iter().flatten().map(|edge| edge.node.clone()).collect();
    with(|all| match (all.first(), all.last()) {
        (Some(outermost), Some(innermost)) => innermost.recorded && leads_outside(all, outermost, edges),
        _ => true,
    })
}

/// True if the tensor requires a gradient, as seen by the innermost transform that knows it.
pub fn requires_grad(t: &Tensor) -> bool {
    t.requires_grad() && visibility(t) != Visibility::Hidden
}

/// The tensor's edge, as seen by the innermost transform that knows it.
pub fn history(t: &Tensor) -> Option<Edge> {
    t.history().filter(|_| visibility(t) == Visibility::Full)
}

/// True if the tensor is a leaf, as seen by the innermost transform that knows it.
pub fn is_leaf(t: &Tensor) -> bool {
    t.is_leaf() || visibility(t) != Visibility::Full
}

/// Returns an error if `target` was neither made in the innermost transform nor given to it. `others` are the
/// tensors whose values are written.
#[cold]
pub fn check_write(target: &Tensor, others: &[&Tensor], operator: impl FnOnce() -> String) -> Result<()> {
    let memory = memory_of(target);
    let found = with(|all| {
        let innermost = all.last()?;
        // A vmap inside the transform has done its own check before.
        let own = target.as_batched().map(|b| b.levels.clone()).unwrap_or_default();
        let foreign = |t: &&Tensor| {
            t.as_batched().is_some_and(|b| b.levels.iter().any(|l| *l > innermost.inside && !own.contains(l)))
        };
        let given = innermost.takes(&memory);
        // An example of a batched input stands for the whole input.
        let whole = |input: &Storage| {
            target.is_batched() && input.len() == target.physical().numel() * target.dtype().size()
        };
        let itself = innermost
            .inputs
            .iter()
            .any(|input| input.id == target.id() || (input.memory.same(&memory) && whole(&input.memory)));
        let writable = innermost.writable.iter().any(|own| own.same(&memory));
        let refused =
            innermost.guards && memory.label() < innermost.number && !writable && !others.iter().any(foreign);
        (given || refused).then_some((given, itself, innermost.mode))
    });
    match found {
        None => Ok(()),
        Some((true, _, Mode::Forward)) => Ok(()),
        Some((true, itself, Mode::Reverse)) => match mode::grad_enabled() && target.requires_grad() && !target.is_leaf() {
            true => Err(refuse_input(itself)),
            false => Ok(()),
        },
        Some((false, ..)) => Err(Guidance::new(format!(
            "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation \
             ({}) that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed \
             to explicitly accept the mutated Tensor(s) as inputs.",
            operator()
        ))
        .done()),
    }
}

/// The error for writing an input of a nested transform. The inner transform sees it as a leaf although it
/// has an edge.
fn refuse_input(itself: bool) -> Error {
    let what = if itself { "a leaf" } else { "a view of a leaf" };
    Error::runtime(format!("{what} Variable that requires grad is being used in an in-place operation."))
}

/// A wrapper of a transform around a tensor, as PyTorch prints it.
pub enum Layer {
    /// The tensor is differentiated by the transform at this depth.
    Tracked(usize),
    /// The tensor is an example of the `vmap` at this depth.
    Sample(usize),
}

/// The outermost wrapper of a tensor at a depth less than `below`. The outermost call has depth 1.
pub fn layer(t: &Tensor, below: usize) -> Option<Layer> {
    let vmaps: Vec<Level> = vmap::frames().iter().map(|f| f.level).collect();
    let memory = memory_of(t);
    let mut layers: Vec<(usize, Layer)> = with(|all| {
        let depth = |at: usize, t: &Transform| at + 1 + vmaps.iter().filter(|&&l| l <= t.inside).count();
        let mine = |t: &Transform| t.is_visible() && (t.takes(&memory) || memory.label() >= t.number);
        let tracked = all.iter().enumerate().filter(|(_, t)| mine(t)).map(|(at, t)| depth(at, t));
        tracked.map(|depth| (depth, Layer::Tracked(depth))).collect()
    });
    if let Some(batched) = t.as_batched()
        && let Some(&innermost) = batched.levels.last()
    {
        let around = with(|all| all.iter().filter(|t| t.inside < innermost).count());
        let depth = vmaps.iter().position(|&l| l == innermost).map_or(1, |at| at + 1 + around);
        // A level that has ended is printed inside all active ones.
        layers.push((depth, Layer::Sample(depth)));
    }
    layers
        .into_iter()
        .filter(|(depth, _)| *depth < below)
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, layer)| layer)
}

/// True if the tensor is an example of a `vmap` and no transform inside that `vmap` differentiates it.
pub fn is_sample(t: &Tensor) -> bool {
    t.is_batched() && matches!(layer(t, usize::MAX), Some(Layer::Sample(_)))
}

/// True if an active transform differentiates this tensor, or if it is an example of a `vmap`.
pub fn is_layered(t: &Tensor) -> bool {
    (any() || t.is_batched()) && layer(t, usize::MAX).is_some()
}
