//! The state of the backward that a thread runs, for callbacks: its id, the nodes it will run, and functions
//! to call at its end.

use super::ready_queue::key;
use crate::base::{Error, Result, try_alloc};
use crate::tensor::{Edge, NodeRef, Tensor};
use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

type Callback = Box<dyn FnOnce() -> Result<()>>;

pub struct Task {
    pub id: u64,
    /// True if every leaf gets its `.grad`: the call has no `inputs` and is not `autograd.grad`.
    pub whole: bool,
    /// True if gradients are returned, as by `autograd.grad`.
    collects: bool,
    roots: Vec<NodeRef>,
    /// The nodes that lead to needed inputs, or all reachable nodes; computed when first asked for.
    runs: OnceCell<HashSet<usize>>,
    callbacks: RefCell<Vec<Callback>>,
}

thread_local! {
    static TASKS: RefCell<Vec<Rc<Task>>> = const { RefCell::new(Vec::new()) };
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The innermost backward of this thread.
pub fn current() -> Option<Rc<Task>> {
    TASKS.with_borrow(|tasks| tasks.last().cloned())
}

impl Task {
    /// True if this backward will run the node, or give the leaf its gradient.
    pub fn will_run(&self, node: &NodeRef) -> Result<bool> {
        if self.runs.get().is_none() {
            let _ = self.runs.set(reachable(&self.roots)?);
        }
        let runs = self.runs.get().is_some_and(|runs| runs.contains(&key(node)));
        if runs && self.collects && node.is_leaf() {
            return Err(Error::runtime(
                "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is \
                 currently not supported.",
            ));
        }
        Ok(runs)
    }

    /// Adds a function to call when the backward has succeeded.
    pub fn then(&self, callback: Callback) {
        self.callbacks.borrow_mut().push(callback);
    }

    fn finish(&self) -> Result<()> {
        // A callback may add another one.
        while !self.callbacks.borrow().is_empty() {
            let callbacks = std::mem::take(&mut *self.callbacks.borrow_mut());
            callbacks.into_iter().try_for_each(|callback| callback())?;
        }
        Ok(())
    }
}

/// The reachable nodes. As in PyTorch, a single root is not counted unless it is reachable from itself.
fn reachable(roots: &[NodeRef]) -> Result<HashSet<usize>> {
    let mut seen: HashSet<usize> = HashSet::new();
    let mut stack: Vec<&NodeRef> = Vec::new();
    match roots {
        [root] => behind(root).try_for_each(|node| try_alloc::push(&mut stack, node))?,
        roots => roots.iter().try_for_each(|node| try_alloc::push(&mut stack, node))?,
    }
    while let Some(node) = stack.pop() {
        if try_alloc::insert(&mut seen, key(node))? {
            behind(node).try_for_each(|node| try_alloc::push(&mut stack, node))?;
        }
    }
    Ok(seen)
}

fn behind(node: &NodeRef) -> impl Iterator<Item = &NodeRef> {
    node.edges.iter().flatten().map(|edge| &edge.node)
}

/// Marks the thread as running a backward, until dropped.
pub struct TaskGuard(Option<Rc<Task>>);

impl TaskGuard {
    /// Begins a backward. `leads` are the nodes on paths to the needed inputs, if only some are needed.
    pub fn new(
        roots: &[(Edge, Tensor)],
        accumulates: bool,
        leads: Option<&HashSet<usize>>,
    ) -> Result<TaskGuard> {
        let reached = |leads: &HashSet<usize>| -> Result<OnceCell<_>> {
            let mut reached = HashSet::new();
            leads.iter().try_for_each(|&key| try_alloc::insert(&mut reached, key).map(drop))?;
            if let [(root, _)] = roots {
                reached.remove(&key(&root.node));
            }
            Ok(OnceCell::from(reached))
        };
        let runs = leads.map_or_else(|| Ok(OnceCell::new()), reached)?;
        let task = Rc::new(Task {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            whole: accumulates && leads.is_none(),
            collects: !accumulates,
            roots: try_alloc::all(roots.iter().map(|(edge, _)| edge.node.clone()))?,
            runs,
            callbacks: RefCell::default(),
        });
        TASKS.with_borrow_mut(|tasks| tasks.push(task.clone()));
        Ok(TaskGuard(Some(task)))
    }

    /// For a backward without callbacks that could ask for it.
    pub fn without_task() -> TaskGuard {
        TaskGuard(None)
    }

    /// Calls the functions that were queued.
    pub fn finish(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |task| task.finish())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.0.is_some() {
            TASKS.with_borrow_mut(|tasks| tasks.pop());
        }
    }
}

/// Queues a function to call after this thread's current backward.
pub fn queue(callback: Callback) -> Result<()> {
    match current() {
        Some(task) => {
            task.then(callback);
            Ok(())
        }
        None => Err(Error::runtime("Final callbacks can only be installed during backward pass.")),
    }
}
