//! The transforms by which a thread differentiates functions (`func.grad`, `jvp` and their like), innermost last. What
//! a function makes belongs to the transform that runs it, and only that may be written in place there.

use crate::base::{Error, Guidance, Result, try_alloc};
use crate::storage::{self, Storage};
use crate::tensor::levels::vmap;
use crate::tensor::{Edge, Kind, Level, Node, NodeRef, Tensor, mode, tangents};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// How a transform differentiates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Reverse,
    Forward,
}

struct Transform {
    /// Ascending in time: what has a smaller one was made before.
    number: u32,
    /// The number of the last node before it.
    since: u64,
    mode: Mode,
    /// The innermost `vmap` when it began.
    inside: Level,
    inputs: Vec<Input>,
    /// The memory of its function's other arguments, which may be written.
    writable: Vec<Storage>,
    /// Whether it guards what it did not make.
    guards: bool,
    /// Whether operators are recorded around it.
    recorded: bool,
    /// Whether the nodes that somebody asked about lead to an input, by address and sequence: a walk ends where another began.
    known: HashMap<(usize, u64), bool>,
}

/// An input by identity, the memory that it shares with what the caller gave, and where its history begins.
struct Input {
    id: usize,
    memory: Storage,
    edge: Option<Edge>,
}

thread_local! {
    static TRANSFORMS: RefCell<Vec<Transform>> = const { RefCell::new(Vec::new()) };
    /// The number of the innermost one that is not to be seen.
    static UNSEEN: Cell<u32> = const { Cell::new(0) };
}

static LAST: AtomicU32 = AtomicU32::new(0);

/// Takes this thread's transforms, `vmap` among them, for the thread that calls what is returned.
pub fn hand_over() -> impl FnOnce() + Send {
    let (transforms, unseen, batches) = (TRANSFORMS.take(), UNSEEN.take(), vmap::hand_over());
    move || {
        TRANSFORMS.set(transforms);
        UNSEEN.set(unseen);
        batches();
    }
}

fn with<R>(act: impl FnOnce(&mut Vec<Transform>) -> R) -> R {
    TRANSFORMS.with(|transforms| act(&mut transforms.borrow_mut()))
}

/// Begins a transform; returns the number of the last node before it.
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

/// What is made in `act` is in no transform.
pub fn outside<R>(act: impl FnOnce() -> R) -> R {
    let inside = storage::label();
    storage::set_label(0);
    let made = act();
    storage::set_label(inside);
    made
}

/// Whether any is under way in this thread, seen or not.
#[inline]
pub fn is_inside() -> bool {
    storage::label() != 0
}

/// Whether any is under way in this thread, and to be seen.
pub fn any() -> bool {
    storage::label() > UNSEEN.get()
}

/// How many that guard what they did not make are under way, and to be seen.
pub fn depth() -> usize {
    with(|all| all.iter().filter(|transform| transform.guards && transform.is_seen()).count())
}

/// While it lives this thread sees no transform that began before, and operators carry no tangents on: a custom
/// Function's forward works on plain tensors.
pub struct HideTransforms {
    unseen: u32,
    moving: bool,
}

impl HideTransforms {
    pub fn start() -> HideTransforms {
        HideTransforms { unseen: UNSEEN.replace(storage::label()), moving: tangents::set_enabled(false) }
    }

    pub fn show_transforms(&self) {
        UNSEEN.set(self.unseen);
    }
}

impl Drop for HideTransforms {
    fn drop(&mut self) {
        self.show_transforms();
        tangents::set_enabled(self.moving);
    }
}

/// Says that these are the innermost transform's inputs, and what else its function was given.
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

    /// Whether it began outside of a [`HideTransforms`].
    fn is_seen(&self) -> bool {
        self.number > UNSEEN.get()
    }

    fn is_input(&self, node: &Node) -> bool {
        self.inputs.iter().filter_map(|input| input.edge.as_ref()).any(|edge| std::ptr::eq(&*edge.node, node))
    }

    /// Whether the graph behind a node, which was made inside, leads to an input, or to a leaf that was made inside, too.
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

/// Whether the graph behind these nodes has one that is `wanted`. It is not searched behind those that are known not to
/// be.
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

/// Whether a node is one behind which what was there before node number `since` begins.
pub fn is_beyond(node: &Node, since: u64) -> Option<bool> {
    match &node.kind {
        Kind::Leaf(leaf) => Some(!leaf.is_retired()),
        // A node without edges: views that were made unrecorded seem to want gradients.
        _ => (node.sequence <= since || node.edges.iter().all(Option::is_none)).then_some(true),
    }
}

/// What the transforms show of a tensor's history.
#[derive(PartialEq, Eq)]
enum Shown {
    All,
    /// That it is an input.
    Input,
    Nothing,
}

/// A transform shows what leads to its own inputs, of what was made in it; the rest is the business of those around it.
fn shown(t: &Tensor) -> Shown {
    if !is_inside() && !t.is_batched() { Shown::All } else { shown_inside(t) }
}

#[cold]
fn shown_inside(t: &Tensor) -> Shown {
    if is_sample(t) {
        return Shown::Nothing;
    }
    let Some(Edge { node, .. }) = t.edge() else { return Shown::All };
    with(|all| {
        for transform in all.iter_mut().rev().take_while(|transform| transform.is_seen()) {
            let reverse = transform.mode == Mode::Reverse;
            if transform.inputs.iter().any(|input| input.id == t.id()) {
                return if reverse { Shown::Input } else { Shown::Nothing };
            }
            if !node.is_leaf() && node.sequence > transform.since {
                return if reverse && transform.is_reached(node) { Shown::All } else { Shown::Nothing };
            }
        }
        // In a Function's forward: as it is outside of all transforms.
        let Some(outermost) = all.first().filter(|outermost| !outermost.is_seen()) else { return Shown::All };
        if leads_outside(all, outermost, vec![node]) { Shown::All } else { Shown::Nothing }
    })
}

/// Whether the graph behind these nodes goes beyond all transforms.
fn leads_outside(all: &[Transform], outermost: &Transform, from: Vec<NodeRef>) -> bool {
    let own = |node: &Node| node.is_leaf() && all.iter().any(|transform| transform.is_input(node));
    leads(from, |node| if own(node) { Some(false) } else { is_beyond(node, outermost.since) })
}

/// Whether somebody around all transforms records what this node leads to: there tensors of inference mode are known.
#[cold]
pub fn is_recorded_outside(node: &Node) -> bool {
    let edges = node.edges.iter().flatten().map(|edge| edge.node.clone()).collect();
    with(|all| match (all.first(), all.last()) {
        (Some(outermost), Some(innermost)) => innermost.recorded && leads_outside(all, outermost, edges),
        _ => true,
    })
}

/// Whether a tensor wants gradients, as the innermost transform that knows of it sees it.
pub fn requires_grad(t: &Tensor) -> bool {
    t.requires_grad() && shown(t) != Shown::Nothing
}

/// A tensor's history, as the innermost transform that knows of it sees it.
pub fn history(t: &Tensor) -> Option<Edge> {
    t.history().filter(|_| shown(t) == Shown::All)
}

/// Whether a tensor is a leaf, as the innermost transform that knows of it sees it.
pub fn is_leaf(t: &Tensor) -> bool {
    t.is_leaf() || shown(t) != Shown::All
}

/// Refuses to write what the innermost transform was not given and did not make; `others` are written into it.
#[cold]
pub fn check_write(target: &Tensor, others: &[&Tensor], operator: impl FnOnce() -> String) -> Result<()> {
    let memory = memory_of(target);
    let found = with(|all| {
        let innermost = all.last()?;
        // A vmap inside of the transform has its own word before.
        let own = target.as_batched().map(|b| b.levels.clone()).unwrap_or_default();
        let foreign = |t: &&Tensor| {
            t.as_batched().is_some_and(|b| b.levels.iter().any(|l| *l > innermost.inside && !own.contains(l)))
        };
        let given = innermost.takes(&memory);
        // Samples of an input are the whole of it.
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

/// An input of a transform inside of another one: for the inner one it is a leaf, though it has a history.
fn refuse_input(itself: bool) -> Error {
    let what = if itself { "a leaf" } else { "a view of a leaf" };
    Error::runtime(format!("{what} Variable that requires grad is being used in an in-place operation."))
}

/// A layer that transforms put around a tensor.
pub enum Layer {
    /// Differentiated at this depth.
    Tracked(usize),
    /// A sample of a `vmap` at this depth.
    Sample(usize),
}

/// The outermost layer of a tensor at a depth of less than `below`, of which 1 is the outermost call.
pub fn layer(t: &Tensor, below: usize) -> Option<Layer> {
    let vmaps: Vec<Level> = vmap::frames().iter().map(|f| f.level).collect();
    let memory = memory_of(t);
    let mut layers: Vec<(usize, Layer)> = with(|all| {
        let depth = |at: usize, t: &Transform| at + 1 + vmaps.iter().filter(|&&l| l <= t.inside).count();
        let mine = |t: &Transform| t.is_seen() && (t.takes(&memory) || memory.label() >= t.number);
        let tracked = all.iter().enumerate().filter(|(_, t)| mine(t)).map(|(at, t)| depth(at, t));
        tracked.map(|depth| (depth, Layer::Tracked(depth))).collect()
    });
    if let Some(batched) = t.as_batched()
        && let Some(&innermost) = batched.levels.last()
    {
        let around = with(|all| all.iter().filter(|t| t.inside < innermost).count());
        let depth = vmaps.iter().position(|&l| l == innermost).map_or(1, |at| at + 1 + around);
        // A level that was left is printed before all that is under way.
        layers.push((depth, Layer::Sample(depth)));
    }
    layers
        .into_iter()
        .filter(|(depth, _)| *depth < below)
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, layer)| layer)
}

/// Whether a tensor shows one sample of many, and no transform inside of that `vmap` differentiates it.
pub fn is_sample(t: &Tensor) -> bool {
    t.is_batched() && matches!(layer(t, usize::MAX), Some(Layer::Sample(_)))
}

/// Whether a transform that is under way differentiates this tensor, or a `vmap` shows it as a sample.
pub fn is_layered(t: &Tensor) -> bool {
    (any() || t.is_batched()) && layer(t, usize::MAX).is_some()
}
