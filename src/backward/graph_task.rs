//! The backward that a thread is in, for callbacks that ask: its number, what it will run, what is to be done after it.

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
    /// Whether every leaf gets its `.grad`: no `inputs`, and not `autograd.grad`.
    pub whole: bool,
    /// Whether gradients are returned, as `autograd.grad` does.
    collects: bool,
    roots: Vec<NodeRef>,
    /// What leads to wanted inputs, or everything that can be reached, found when somebody asks.
    runs: OnceCell<HashSet<usize>>,
    callbacks: RefCell<Vec<Callback>>,
}

thread_local! {
    static TASKS: RefCell<Vec<Rc<Task>>> = const { RefCell::new(Vec::new()) };
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The innermost backward that this thread is in.
pub fn current() -> Option<Rc<Task>> {
    TASKS.with_borrow(|tasks| tasks.last().cloned())
}

impl Task {
    /// Whether this backward will run a node, or give a leaf its gradient.
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

    /// Calls `callback` when the backward has ended well.
    pub fn then(&self, callback: Callback) {
        self.callbacks.borrow_mut().push(callback);
    }

    fn finish(&self) -> Result<()> {
        // A callback may ask for another one.
        while !self.callbacks.borrow().is_empty() {
            let callbacks = std::mem::take(&mut *self.callbacks.borrow_mut());
            callbacks.into_iter().try_for_each(|callback| callback())?;
        }
        Ok(())
    }
}

/// What can be reached. A single root is not counted, as PyTorch does not, unless something leads back to it.
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

/// Tells the thread that it is in a backward, while this lives.
pub struct Entered(Option<Rc<Task>>);

impl Entered {
    /// `leads`: the nodes on a way to wanted inputs, when only some are wanted.
    pub fn new(
        roots: &[(Edge, Tensor)],
        accumulates: bool,
        leads: Option<&HashSet<usize>>,
    ) -> Result<Entered> {
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
        Ok(Entered(Some(task)))
    }

    /// For a run in which no callback can ask.
    pub fn unseen() -> Entered {
        Entered(None)
    }

    /// Does what was asked to be done after the run.
    pub fn finish(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |task| task.finish())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.0.is_some() {
            TASKS.with_borrow_mut(|tasks| tasks.pop());
        }
    }
}

/// What to do after the backward that this thread is in.
pub fn queue(callback: Callback) -> Result<()> {
    match current() {
        Some(task) => {
            task.then(callback);
            Ok(())
        }
        None => Err(Error::runtime("Final callbacks can only be installed during backward pass.")),
    }
}
