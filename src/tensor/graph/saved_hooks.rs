//! Pack hooks: functions of a thread that replace the values that its operators save. The values of a node
//! are packed right after it is published; those of an in-place write in two steps, inputs before the write
//! and outputs after it.

use crate::base::{Error, try_alloc};
use crate::tensor::graph::saved::{Kept, Packed, Saved, Unpack};
use crate::tensor::node::{Derivative, Kind, NodeRef};
use crate::tensor::{Body, Tensor, mode, node_hooks};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A pair of hooks. The unpack hook is part of the value that `pack` returns.
pub trait Pack: Send + Sync {
    fn pack(&self, tensor: &Tensor) -> Result<Box<dyn Unpack>, Error>;
    fn as_any(&self) -> &dyn Any;
}

/// Selective activation checkpointing: keeps the results of chosen operators and supplies them when the
/// operators run again.
pub trait Chooser: Send + Sync {
    /// The kept result of the next operator with this derivative, if there is one.
    fn supply(&self, kind: &'static Derivative) -> Result<Option<Tensor>, Error>;
    /// Called when an operator was recorded, with its input tensors and its result (`None` if that shares
    /// memory with an input).
    fn made(
        &self,
        kind: &'static Derivative,
        inputs: Vec<Tensor>,
        result: Option<Tensor>,
    ) -> Result<(), Error>;
}

/// A function that is called before each in-place write.
pub type Watcher = Arc<dyn Fn(&Tensor) -> Result<(), Error> + Send + Sync>;

#[derive(Default)]
struct ThreadHooks {
    hooks: Vec<Arc<dyn Pack>>,
    /// If set, hooks may not be set, and this is the message.
    disabled: Option<String>,
    /// The nodes of an in-place write that is in progress.
    waiting: Option<Vec<Waiting>>,
    watcher: Option<Watcher>,
    choosers: Vec<Arc<dyn Chooser>>,
    /// True if views are recorded with the derivatives of their in-place forms.
    inplace: bool,
    /// The node whose values are being packed.
    packing: Option<NodeRef>,
}

/// A node whose outputs are about to be written; `begun` once its inputs are packed.
struct Waiting {
    node: NodeRef,
    begun: bool,
}

/// The part of a node's saved values that is packed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PackedPart {
    All,
    Inputs,
}

impl ThreadHooks {
    fn is_needed(&self) -> bool {
        !self.hooks.is_empty() || !self.choosers.is_empty() || self.inplace || node_hooks::active()
    }
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static STATE: RefCell<ThreadHooks> = RefCell::new(ThreadHooks::default());
}

/// Moves this thread's hooks into the returned closure, which sets them in the thread that calls it.
pub(in crate::tensor) fn hand_over() -> impl FnOnce() + Send {
    let (active, watched, state) = (ACTIVE.take(), WATCHED.take(), STATE.take());
    move || {
        ACTIVE.set(active);
        WATCHED.set(watched);
        STATE.set(state);
    }
}

/// True if something in this thread must see each new node.
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

/// Recomputes `ACTIVE` after node creation hooks were added or removed.
pub(in crate::tensor) fn refresh() {
    ACTIVE.set(STATE.with_borrow(ThreadHooks::is_needed));
}

/// Runs `act`; view operators in it are recorded with the derivatives of their in-place forms.
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

/// The derivative that a node gets in place of `derivative`; called while [`active`].
pub fn instead_of(derivative: &'static Derivative) -> &'static Derivative {
    let inplace = STATE.with_borrow(|state| state.inplace).then(|| derivative.facts?.inplace).flatten();
    inplace.unwrap_or(derivative)
}

fn chooser() -> Option<Arc<dyn Chooser>> {
    STATE.with_borrow(|state| state.choosers.last().cloned().filter(|_| state.waiting.is_none()))
}

/// The result that a chooser kept for the operator about to be recorded.
#[inline]
pub fn supply(derivative: &'static Derivative) -> Result<Option<Body>, Error> {
    if active() { supply_from(derivative) } else { Ok(None) }
}

#[cold]
fn supply_from(derivative: &'static Derivative) -> Result<Option<Body>, Error> {
    let Some(chooser) = chooser() else { return Ok(None) };
    Ok(chooser.supply(derivative)?.map(|tensor| tensor.body().clone()))
}

fn pass_to_chooser<'a>(
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

/// The innermost pair of hooks.
pub fn top() -> Option<Arc<dyn Pack>> {
    STATE.with_borrow(|state| state.hooks.last().cloned())
}

/// The hooks at the time it was made; restored on drop, so that a backward leaves them as it found them.
pub struct RestoreHooks(Vec<Arc<dyn Pack>>);

impl RestoreHooks {
    #[inline]
    pub fn now() -> RestoreHooks {
        RestoreHooks(if active() { STATE.with_borrow(|state| state.hooks.clone()) } else { Vec::new() })
    }
}

impl Drop for RestoreHooks {
    #[inline]
    fn drop(&mut self) {
        if active() || !self.0.is_empty() {
            self.restore();
        }
    }
}

impl RestoreHooks {
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

/// Forbids hooks, with a message, or allows them again. Returns an error if some are set already.
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

/// Sets the function that is called before each in-place write of this thread.
pub fn watch_writes(watcher: Option<Watcher>) {
    WATCHED.set(watcher.is_some());
    let old = STATE.with_borrow_mut(|state| std::mem::replace(&mut state.watcher, watcher));
    drop(old);
}

/// Calls the watcher, if one is set, before `target` is written.
#[inline]
pub fn before_write(target: &Tensor) -> Result<(), Error> {
    if WATCHED.get() { call_watcher(target) } else { Ok(()) }
}

#[cold]
fn call_watcher(target: &Tensor) -> Result<(), Error> {
    let watcher = STATE.with_borrow(|state| state.watcher.clone());
    watcher.map_or(Ok(()), |watcher| watcher(target))
}

/// Passes the values that `node` has just saved to the innermost pack hook. `input` returns its input
/// tensors, `outputs` are the bodies of its results.
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
        pass_to_chooser(node, input, outputs)?;
    }
    pack_now(node, input, PackedPart::All)
}

/// Packs the inputs that the nodes of an in-place write saved, because the write is about to overwrite them.
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
        // The input tensors may share memory with the target, so the node's saved bodies are used.
        pack_now(&node, &|_| None, PackedPart::Inputs)?;
    }
    Ok(())
}

/// Runs an in-place write, then packs what its nodes saved. If the write fails, only the inputs are packed.
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
        // An error of a hook takes precedence over that of the write.
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
    which: PackedPart,
) -> Result<(), Error> {
    let Some(hooks) = top() else { return Ok(()) };
    let count = node.saves().values.len();
    for at in 0..count {
        let (body, edge, source) = {
            let saves = node.saves();
            let Some((saved, Kept::Body(body))) = saves.values.get(at).map(|s| (s, &s.kept)) else {
                continue;
            };
            if which == PackedPart::Inputs && saved.source >= Saved::OUTPUT {
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

/// Packs one tensor. If a hook keeps an `output`, that tensor loses its edge: it would otherwise keep the
/// node alive that keeps it.
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
