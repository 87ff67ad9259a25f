//! Pack hooks: what a thread does with the values that its operators save. A node is packed right after it was published,
//! or, for a write in place, when the write is done.

use super::node::NodeRef;
use super::saved::{Kept, Packed, Saved, Unpack};
use super::{Tensor, mode};
use crate::base::Error;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A pair of hooks; the second half lives in what the first one returns.
pub trait Pack: Send + Sync {
    /// Packs a tensor; true when it is a node's `output` and the hook returned just that.
    fn pack(&self, tensor: &Tensor, output: bool) -> Result<(Box<dyn Unpack>, bool), Error>;
}

#[derive(Default)]
struct State {
    hooks: Vec<Arc<dyn Pack>>,
    /// Why hooks may not be set now.
    disabled: Option<String>,
    /// Nodes that wait for the end of a write in place.
    waiting: Option<Vec<NodeRef>>,
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Whether this thread packs what it saves.
#[inline]
pub fn active() -> bool {
    ACTIVE.with(Cell::get)
}

pub fn push(hooks: Arc<dyn Pack>) -> Result<(), Error> {
    STATE.with_borrow_mut(|state| {
        if let Some(message) = &state.disabled {
            return Err(Error::runtime(message.clone()));
        }
        state.hooks.push(hooks);
        ACTIVE.set(true);
        Ok(())
    })
}

pub fn pop() {
    let gone = STATE.with_borrow_mut(|state| {
        let gone = state.hooks.pop();
        ACTIVE.set(!state.hooks.is_empty());
        gone
    });
    drop(gone);
}

/// The hooks in force: the innermost pair.
pub fn top() -> Option<Arc<dyn Pack>> {
    STATE.with_borrow(|state| state.hooks.last().cloned())
}

/// Forbids hooks, with a message, or allows them again; an error when some are set already.
pub fn disable(message: Option<String>) -> Result<(), Error> {
    STATE.with_borrow_mut(|state| {
        state.disabled = message;
        match &state.disabled {
            Some(message) if !state.hooks.is_empty() => Err(Error::runtime(message.clone())),
            _ => Ok(()),
        }
    })
}

pub fn disabled_message() -> Option<String> {
    STATE.with_borrow(|state| state.disabled.clone())
}

/// Lets the hooks in force have the values that `node` has just saved; `input` gives its input tensors.
#[inline]
pub fn pack<'a>(node: &NodeRef, input: impl Fn(usize) -> Option<&'a Tensor>) -> Result<(), Error> {
    if active() { pack_or_wait(node, &input) } else { Ok(()) }
}

#[cold]
fn pack_or_wait<'a>(node: &NodeRef, input: &dyn Fn(usize) -> Option<&'a Tensor>) -> Result<(), Error> {
    let waits = STATE.with_borrow_mut(|state| match &mut state.waiting {
        Some(waiting) => {
            waiting.push(node.clone());
            true
        }
        None => false,
    });
    if waits { Ok(()) } else { pack_now(node, input) }
}

/// Runs a write in place; what its nodes save is packed when the write is done.
#[inline]
pub fn after<R, E: From<Error>>(write: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    if active() { wait_for(write) } else { write() }
}

#[cold]
fn wait_for<R, E: From<Error>>(write: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    let outer = STATE.with_borrow_mut(|state| state.waiting.replace(Vec::new()));
    let done = write();
    let nodes = STATE.with_borrow_mut(|state| std::mem::replace(&mut state.waiting, outer));
    let done = done?;
    for node in nodes.into_iter().flatten() {
        // The tensors were written over meanwhile: the nodes' own values count.
        pack_or_wait(&node, &|_| None)?;
    }
    Ok(done)
}

fn pack_now<'a>(node: &NodeRef, input: &dyn Fn(usize) -> Option<&'a Tensor>) -> Result<(), Error> {
    let Some(hooks) = top() else { return Ok(()) };
    for at in 0..node.saves().values.len() {
        let (body, edge, source) = {
            let saves = node.saves();
            let Some((saved, Kept::Body(body))) = saves.values.get(at).map(|s| (s, &s.kept)) else { continue };
            (body.clone(), saved.edge(node), saved.source)
        };
        let original = (source < Saved::DETACHED).then(|| input(usize::from(source))).flatten();
        let tensor = match original {
            Some(t) if t.body().storage.same(&body.storage) && t.body().layout == body.layout => t.clone(),
            _ => Tensor::from_saved(body.clone(), edge),
        };
        let packed = pack_tensor(&*hooks, &tensor, source >= Saved::OUTPUT)?;
        let old = match node.saves().values.get_mut(at) {
            Some(saved) => std::mem::replace(&mut saved.kept, Kept::Packed(Arc::new(packed))),
            None => continue,
        };
        drop(old);
    }
    Ok(())
}

/// Packs one tensor. An `output` that comes back as it is must not keep its own node alive: its bytes are kept.
pub fn pack_tensor(hooks: &dyn Pack, tensor: &Tensor, output: bool) -> Result<Packed, Error> {
    let version = tensor.version();
    let (hook, same) = mode::with_grad(false, || hooks.pack(tensor, output))?;
    if tensor.version() != version {
        return Err(Error::runtime(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be \
             modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you \
             need to perform in-place operations on the input to a pack hook.",
        ));
    }
    Ok(Packed::new(hook, same.then(|| tensor.body().clone())))
}
