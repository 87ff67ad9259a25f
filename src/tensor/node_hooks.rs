//! Node creation hooks: called with each node that this thread makes, once it is complete, with its edges and
//! saved values. For an in-place write that is after the new edges are set.

use crate::arena::Ref;
use crate::base::{Error, Result};
use crate::tensor::node::{CopySlices, Kind, Node, NodeRef};
use crate::tensor::{anomaly, saved_hooks};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A node creation hook.
pub type NodeHook = Arc<dyn Fn(&NodeRef) -> Result<()> + Send + Sync>;

#[derive(Default)]
struct State {
    hooks: Vec<NodeHook>,
    /// Nodes that wait for the end of an in-place write.
    held: Option<Vec<NodeRef>>,
    /// An error of a hook whose operator could not raise it. The next operator that can raises it, or else
    /// `pop`.
    failed: Option<Error>,
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static TELLING: Cell<bool> = const { Cell::new(false) };
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Moves this thread's hooks into the returned closure, which sets them in the thread that calls it.
pub(super) fn hand_over() -> impl FnOnce() + Send {
    let (active, telling, state) = (ACTIVE.take(), TELLING.take(), STATE.take());
    move || {
        ACTIVE.set(active);
        TELLING.set(telling);
        STATE.set(state);
    }
}

/// True if this thread has node creation hooks.
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

/// Removes the last hook.
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
        return Err(Error::runtime("there is no node creation hook to remove"));
    }
    failed.map_or(Ok(()), Err)
}

/// Raises an error that a hook has left.
pub fn check() -> Result<()> {
    STATE.with_borrow_mut(|state| state.failed.take()).map_or(Ok(()), Err)
}

impl Node {
    /// Calls the hooks for a published node. The node of a custom Function is not complete yet and is
    /// announced later.
    #[cold]
    pub(super) fn announce(node: &NodeRef) {
        if active() {
            announce_with_leaves(node);
        }
    }
}

fn announce_with_leaves(node: &NodeRef) {
    for (i, edge) in node.edges.iter().enumerate() {
        let Some(leaf) = edge.as_ref().map(|edge| &edge.node).filter(|leaf| leaf.is_leaf()) else { continue };
        let same = |edge: &&Option<crate::tensor::Edge>| edge.as_ref().is_some_and(|e| e.node.ptr_eq(leaf));
        let first = !node.edges[..i].iter().any(|edge| same(&edge));
        // Only its tensor holds this leaf's node, so the hooks have not seen it.
        if first && Ref::count(leaf) == 1 + node.edges.iter().filter(same).count() {
            leaf.forget_notes();
            tell(leaf);
        }
    }
    if !matches!(node.kind, Kind::Custom(_)) {
        tell(node);
    }
}

/// Calls the hooks for a complete node: now, or after the in-place write in progress.
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
    struct EndTelling;
    impl Drop for EndTelling {
        fn drop(&mut self) {
            TELLING.set(false);
        }
    }
    TELLING.set(true);
    let _ends = EndTelling;
    let hooks = STATE.with_borrow(|state| state.hooks.clone());
    hooks.iter().try_for_each(|hook| hook(node))
}

/// Runs a write that consists of several operators; the hooks see its nodes when it is done.
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

/// Holds nodes back until the write that makes them is done.
pub fn hold() -> Option<Vec<NodeRef>> {
    STATE.with_borrow_mut(|state| state.held.replace(Vec::new()))
}

/// Ends [`hold`] and calls the hooks. For a write through a view they see only the node of the base.
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
