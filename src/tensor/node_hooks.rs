//! Hooks that are told of each node that this thread makes, once the node is complete: its edges, its saved values, and for a
//! write in place the history that came of it.

use crate::arena::Ref;
use crate::base::{Error, Result};
use crate::tensor::node::{CopySlices, Kind, Node, NodeRef};
use crate::tensor::{anomaly, saved_hooks};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Told of a node.
pub type NodeHook = Arc<dyn Fn(&NodeRef) -> Result<()> + Send + Sync>;

#[derive(Default)]
struct State {
    hooks: Vec<NodeHook>,
    /// Nodes that wait for the end of a write in place.
    held: Option<Vec<NodeRef>>,
    /// What a hook raised where its operator could not; the next one that can does, or the end of the hooks.
    failed: Option<Error>,
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static TELLING: Cell<bool> = const { Cell::new(false) };
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Takes this thread's hooks for the thread that calls what is returned.
pub(super) fn hand_over() -> impl FnOnce() + Send {
    let (active, telling, state) = (ACTIVE.take(), TELLING.take(), STATE.take());
    move || {
        ACTIVE.set(active);
        TELLING.set(telling);
        STATE.set(state);
    }
}

/// Whether this thread's nodes have hooks.
pub fn active() -> bool {
    ACTIVE.get()
}

pub fn push(hook: NodeHook) {
    STATE.with_borrow_mut(|state| state.hooks.push(hook));
    if !ACTIVE.replace(true) {
        anomaly::watch_nodes(true);
    }
    saved_hooks::refresh();
}

/// Goes back to the hooks before the last one.
pub fn pop() -> Result<()> {
    let (gone, failed, left) = STATE.with_borrow_mut(|state| {
        let gone = state.hooks.pop();
        (gone, state.failed.take(), !state.hooks.is_empty())
    });
    if ACTIVE.replace(left) && !left {
        anomaly::watch_nodes(false);
    }
    saved_hooks::refresh();
    if gone.is_none() {
        return Err(Error::runtime("there is no node creation hook to take off"));
    }
    failed.map_or(Ok(()), Err)
}

/// Raises what a hook raised.
pub fn check() -> Result<()> {
    STATE.with_borrow_mut(|state| state.failed.take()).map_or(Ok(()), Err)
}

impl Node {
    /// Tells the hooks of a node that was published. A custom Function's is not complete yet.
    #[cold]
    pub(super) fn announce(node: &NodeRef) {
        if active() {
            published(node);
        }
    }
}

fn published(node: &NodeRef) {
    for (i, edge) in node.edges.iter().enumerate() {
        let Some(leaf) = edge.as_ref().map(|edge| &edge.node).filter(|leaf| leaf.is_leaf()) else { continue };
        let same = |edge: &&Option<crate::tensor::Edge>| edge.as_ref().is_some_and(|e| e.node.ptr_eq(leaf));
        let first = !node.edges[..i].iter().any(|edge| same(&edge));
        // Nobody but its tensor has had it: to who looks at nodes it is new.
        if first && Ref::count(leaf) == 1 + node.edges.iter().filter(same).count() {
            leaf.forget_notes();
            tell(leaf);
        }
    }
    if !matches!(node.kind, Kind::Custom(_)) {
        tell(node);
    }
}

/// Tells the hooks of a complete node, now or when the write in place is done.
pub fn tell(node: &NodeRef) {
    let held =
        STATE.with_borrow_mut(|state| state.held.as_mut().map(|held| held.push(node.clone())).is_some());
    if !held && let Err(error) = call(node) {
        STATE.with_borrow_mut(|state| {
            state.failed.get_or_insert(error);
        });
    }
}

fn call(node: &NodeRef) -> Result<()> {
    if TELLING.get() {
        return Err(Error::runtime(format!(
            "Creating a new autograd node from inside a node creation hook is not supported. Node creation hooks should only \
             observe the node (e.g. record it, stash metadata, or register backward hooks on it); got a new node of type {} \
             while a hook was running.",
            node.name()
        )));
    }
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            TELLING.set(false);
        }
    }
    TELLING.set(true);
    let _ends = Ends;
    let hooks = STATE.with_borrow(|state| state.hooks.clone());
    hooks.iter().try_for_each(|hook| hook(node))
}

/// A write that is put together of several operators: its nodes are told of when it is done.
#[inline]
pub fn writing<E: From<Error>>(
    write: impl FnOnce() -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    if !active() {
        return write();
    }
    let outer = hold();
    let done = write();
    let told = release(outer, done.is_ok());
    done?;
    Ok(told?)
}

/// Keeps nodes back until the write that makes them is done.
pub fn hold() -> Option<Vec<NodeRef>> {
    STATE.with_borrow_mut(|state| state.held.replace(Vec::new()))
}

/// Ends what [`hold`] began; of a write through a view the hooks see the node of the base alone.
pub fn release(outer: Option<Vec<NodeRef>>, done: bool) -> Result<()> {
    let nodes = STATE.with_borrow_mut(|state| std::mem::replace(&mut state.held, outer)).unwrap_or_default();
    let written = |node: &&NodeRef| !nodes.iter().any(|other| writer(other).is_some_and(|w| w.ptr_eq(node)));
    if done {
        nodes.iter().filter(written).for_each(tell);
    }
    check()
}

fn writer(node: &Node) -> Option<&NodeRef> {
    match &node.kind {
        Kind::CopySlices(slices) => Some(&slices.writer),
        Kind::Op(derivative) if derivative.name == CopySlices::NAME => {
            node.edges.get(1)?.as_ref().map(|edge| &edge.node)
        }
        _ => None,
    }
}
