//! Pack hooks: what a thread does with the values that its operators save. A node is packed right after it was published,
//! or, for a write in place, with its inputs before the write and with its outputs after it.

use crate::base::{Error, try_alloc};
use crate::tensor::graph::saved::{Kept, Packed, Saved, Unpack};
use crate::tensor::node::{Derivative, Kind, NodeRef};
use crate::tensor::{Body, Tensor, mode, node_hooks};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A pair of hooks; the second half lives in what the first one returns.
pub trait Pack: Send + Sync {
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Unpack>, Error>;
    fn as_any(&self) -> &dyn Any;
}

/// Keeps what chosen operators make, and hands it out when they are run again.
pub trait Chooser: Send + Sync {
    /// What the next operator with this derivative made, when it was kept.
    fn supply(&self, kind: &'static Derivative) -> Result<Option<Tensor>, Error>;
    /// An operator was recorded: its input tensors, and its result unless that shares its inputs' memory.
    fn made(
        &self,
        kind: &'static Derivative,
        inputs: Vec<Tensor>,
        result: Option<Tensor>,
    ) -> Result<(), Error>;
}

/// Told of a write in place before it happens.
pub type Watcher = Arc<dyn Fn(&Tensor) -> Result<(), Error> + Send + Sync>;

#[derive(Default)]
struct State {
    hooks: Vec<Arc<dyn Pack>>,
    /// Why hooks may not be set now.
    disabled: Option<String>,
    /// Nodes of a write in place that goes on.
    waiting: Option<Vec<Waiting>>,
    watcher: Option<Watcher>,
    choosers: Vec<Arc<dyn Chooser>>,
    /// Whether views are recorded under the names of their in-place forms.
    inplace: bool,
    /// Whose values are being packed.
    packing: Option<NodeRef>,
}

/// A node whose outputs are about to be written, and whether its inputs are packed.
struct Waiting {
    node: NodeRef,
    begun: bool,
}

/// Which of a node's saved values are packed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Inputs,
}

impl State {
    fn is_needed(&self) -> bool {
        !self.hooks.is_empty() || !self.choosers.is_empty() || self.inplace || node_hooks::active()
    }
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Takes this thread's hooks for the thread that calls what is returned.
pub(in crate::tensor) fn hand_over() -> impl FnOnce() + Send {
    let (active, watched, state) = (ACTIVE.take(), WATCHED.take(), STATE.take());
    move || {
        ACTIVE.set(active);
        WATCHED.set(watched);
        STATE.set(state);
    }
}

/// Whether this thread packs what it saves.
#[inline]
pub fn active() -> bool {
    ACTIVE.with(Cell::get)
}

pub fn push(hooks: Arc<dyn Pack>) -> Result<(), Error> {
    STATE.with_borrow_mut(|state| {
        if let Some(message) = &state.disabled {
            return Err(forbidden(message));
        }
        state.hooks.push(hooks);
        ACTIVE.set(true);
        Ok(())
    })
}

pub fn pop() {
    let gone = STATE.with_borrow_mut(|state| {
        let gone = state.hooks.pop();
        ACTIVE.set(state.is_needed());
        gone
    });
    drop(gone);
}

pub fn push_chooser(chooser: Arc<dyn Chooser>) {
    STATE.with_borrow_mut(|state| state.choosers.push(chooser));
    ACTIVE.set(true);
}

pub fn pop_chooser() {
    let gone = STATE.with_borrow_mut(|state| {
        let gone = state.choosers.pop();
        ACTIVE.set(state.is_needed());
        gone
    });
    drop(gone);
}

/// Looks again whether anything wants to see saved values: node creation hooks came or went.
pub(in crate::tensor) fn refresh() {
    ACTIVE.set(STATE.with_borrow(State::is_needed));
}

/// Records what `act` records under the names of in-place forms.
pub fn inplace<R>(act: impl FnOnce() -> R) -> R {
    let set = |on| {
        STATE.with_borrow_mut(|state| {
            let outer = std::mem::replace(&mut state.inplace, on);
            ACTIVE.set(state.is_needed());
            outer
        })
    };
    let outer = set(true);
    let done = act();
    set(outer);
    done
}

/// What a node is to run instead of `derivative`; asked while [`active`].
pub fn instead_of(derivative: &'static Derivative) -> &'static Derivative {
    let inplace = STATE.with_borrow(|state| state.inplace).then(|| derivative.facts?.inplace).flatten();
    inplace.unwrap_or(derivative)
}

fn chooser() -> Option<Arc<dyn Chooser>> {
    STATE.with_borrow(|state| state.choosers.last().cloned().filter(|_| state.waiting.is_none()))
}

/// What the operator that is about to be recorded made when it ran before.
#[inline]
pub fn supply(derivative: &'static Derivative) -> Result<Option<Body>, Error> {
    if active() { supply_from(derivative) } else { Ok(None) }
}

#[cold]
fn supply_from(derivative: &'static Derivative) -> Result<Option<Body>, Error> {
    let Some(chooser) = chooser() else { return Ok(None) };
    Ok(chooser.supply(derivative)?.map(|tensor| tensor.body().clone()))
}

fn tell_made<'a>(
    node: &NodeRef,
    input: &dyn Fn(usize) -> Option<&'a Tensor>,
    outputs: &[&Body],
) -> Result<(), Error> {
    let (Some(chooser), Kind::Op(derivative)) = (chooser(), &node.kind) else { return Ok(()) };
    let inputs: Vec<Tensor> = (0..node.edges.len()).filter_map(|i| input(i).cloned()).collect();
    let fresh = |body: &&&Body| !inputs.iter().any(|t| t.body().storage.same(&body.storage));
    let result = outputs.first().filter(fresh).filter(|_| outputs.len() == 1);
    let result = result.map(|body| Tensor::new((*body).clone()));
    mode::with_grad(false, || chooser.made(derivative, inputs, result))
}

/// The hooks in force: the innermost pair.
pub fn top() -> Option<Arc<dyn Pack>> {
    STATE.with_borrow(|state| state.hooks.last().cloned())
}

/// The hooks in force when it was made, which are again in force when it goes: a backward leaves them as it found them.
pub struct InForce(Vec<Arc<dyn Pack>>);

impl InForce {
    #[inline]
    pub fn now() -> InForce {
        InForce(if active() { STATE.with_borrow(|state| state.hooks.clone()) } else { Vec::new() })
    }
}

impl Drop for InForce {
    #[inline]
    fn drop(&mut self) {
        if active() || !self.0.is_empty() {
            self.restore();
        }
    }
}

impl InForce {
    #[cold]
    fn restore(&mut self) {
        STATE.with_borrow_mut(|state| {
            let same = state.hooks.len() == self.0.len()
                && state.hooks.iter().zip(&self.0).all(|(now, then)| Arc::ptr_eq(now, then));
            if !same {
                std::mem::swap(&mut state.hooks, &mut self.0);
                ACTIVE.set(state.is_needed());
            }
        });
    }
}

/// Forbids hooks, with a message, or allows them again; an error when some are set already.
pub fn disable(message: Option<String>) -> Result<(), Error> {
    STATE.with_borrow_mut(|state| {
        state.disabled = message;
        match &state.disabled {
            Some(message) if !state.hooks.is_empty() => Err(forbidden(message)),
            _ => Ok(()),
        }
    })
}

fn forbidden(message: &str) -> Error {
    try_alloc::check_text(message.len())
        .map_or_else(|refused| refused, |()| Error::runtime(message.to_owned()))
}

pub fn disabled_message() -> Result<Option<String>, Error> {
    STATE.with_borrow(|state| {
        try_alloc::check_text(state.disabled.as_ref().map_or(0, String::len))?;
        Ok(state.disabled.clone())
    })
}

/// Has `watcher` told of each write that this thread is about to do.
pub fn watch_writes(watcher: Option<Watcher>) {
    WATCHED.set(watcher.is_some());
    let old = STATE.with_borrow_mut(|state| std::mem::replace(&mut state.watcher, watcher));
    drop(old);
}

/// `target` is about to be written over.
#[inline]
pub fn before_write(target: &Tensor) -> Result<(), Error> {
    if WATCHED.get() { tell(target) } else { Ok(()) }
}

#[cold]
fn tell(target: &Tensor) -> Result<(), Error> {
    let watcher = STATE.with_borrow(|state| state.watcher.clone());
    watcher.map_or(Ok(()), |watcher| watcher(target))
}

/// Lets the hooks in force have the values that `node` has just saved; `input` gives its input tensors, `outputs` are what
/// it made.
#[inline]
pub fn pack<'a>(
    node: &NodeRef,
    input: impl Fn(usize) -> Option<&'a Tensor>,
    outputs: &[&Body],
) -> Result<(), Error> {
    if active() { pack_or_wait(node, &input, outputs) } else { Ok(()) }
}

#[cold]
fn pack_or_wait<'a>(
    node: &NodeRef,
    input: &dyn Fn(usize) -> Option<&'a Tensor>,
    outputs: &[&Body],
) -> Result<(), Error> {
    node_hooks::check()?;
    let waits = STATE.with_borrow_mut(|state| match &mut state.waiting {
        Some(waiting) => {
            waiting.push(Waiting { node: node.clone(), begun: false });
            true
        }
        None => false,
    });
    if waits {
        return Ok(());
    }
    if !outputs.is_empty() {
        tell_made(node, input, outputs)?;
    }
    pack_now(node, input, Which::All)
}

/// Lets the hooks have what the nodes of a write in place save of its inputs: the values are about to be written over.
#[inline]
pub fn pack_inputs() -> Result<(), Error> {
    if active() { pack_waiting() } else { Ok(()) }
}

#[cold]
fn pack_waiting() -> Result<(), Error> {
    let next = || {
        STATE.with_borrow_mut(|state| {
            let waiting = state.waiting.iter_mut().flatten().find(|waiting| !waiting.begun)?;
            waiting.begun = true;
            Some(waiting.node.clone())
        })
    };
    while let Some(node) = next() {
        // The tensors may share memory with the target: the node's own values count.
        pack_now(&node, &|_| None, Which::Inputs)?;
    }
    Ok(())
}

/// Runs a write in place; what its nodes save is packed by the time the write is done, of one that fails the inputs alone.
#[inline]
pub fn after<R, E: From<Error>>(write: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    if active() { wait_for(write) } else { write() }
}

#[cold]
fn wait_for<R, E: From<Error>>(write: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    let outer = STATE.with_borrow_mut(|state| state.waiting.replace(Vec::new()));
    let held = node_hooks::active().then(node_hooks::hold);
    let mut done = write();
    if done.is_err() {
        // What a hook refuses is told first.
        done = pack_waiting().map_err(E::from).and(done);
    }
    let nodes = STATE.with_borrow_mut(|state| std::mem::replace(&mut state.waiting, outer));
    let told = held.map_or(Ok(()), |outer| node_hooks::release(outer, done.is_ok()));
    let done = done?;
    told?;
    for waiting in nodes.into_iter().flatten() {
        pack_or_wait(&waiting.node, &|_| None, &[])?;
    }
    Ok(done)
}

fn pack_now<'a>(
    node: &NodeRef,
    input: &dyn Fn(usize) -> Option<&'a Tensor>,
    which: Which,
) -> Result<(), Error> {
    let Some(hooks) = top() else { return Ok(()) };
    let count = node.saves().values.len();
    for at in 0..count {
        let (body, edge, source) = {
            let saves = node.saves();
            let Some((saved, Kept::Body(body))) = saves.values.get(at).map(|s| (s, &s.kept)) else {
                continue;
            };
            if which == Which::Inputs && saved.source >= Saved::OUTPUT {
                continue;
            }
            (body.clone(), saved.edge(node), saved.source)
        };
        let original = (source < Saved::DETACHED).then(|| input(source as usize)).flatten();
        let tensor = match original {
            Some(t) if t.body().storage.same(&body.storage) && t.body().layout == body.layout => t.clone(),
            _ if source >= Saved::OUTPUT => Tensor::with_removable_history(body.clone(), edge),
            _ => Tensor::from_saved(body.clone(), edge),
        };
        let outer = set_packing(Some(node.clone()));
        let packed = pack_tensor(&*hooks, &tensor, source >= Saved::OUTPUT);
        drop(set_packing(outer));
        let packed = packed?;
        let old = match node.saves().values.get_mut(at) {
            Some(saved) => std::mem::replace(&mut saved.kept, Kept::Packed(Arc::new(packed))),
            None => continue,
        };
        drop(old);
    }
    Ok(())
}

/// The node whose values this thread is packing.
pub fn packing_node() -> Option<NodeRef> {
    STATE.with_borrow(|state| state.packing.clone())
}

fn set_packing(node: Option<NodeRef>) -> Option<NodeRef> {
    STATE.with_borrow_mut(|state| std::mem::replace(&mut state.packing, node))
}

/// Packs one tensor. A hook that holds on to an `output` keeps its values only: with its history it would keep the very node
/// that keeps it.
pub fn pack_tensor(hooks: &dyn Pack, tensor: &Tensor, output: bool) -> Result<Packed, Error> {
    let version = tensor.version();
    let hook = mode::with_grad(false, || hooks.pack(tensor));
    if output && tensor.handles() > 1 {
        tensor.set_history(None);
    }
    let hook = hook?;
    if tensor.version() != version {
        return Err(Error::runtime(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be \
             modified by in-place operations as this can lead to unexpected side-effects.",
        ));
    }
    Ok(Packed::new(hook))
}
