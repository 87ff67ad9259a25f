//! Tensors that changed after they were made: they got other memory, began to require gradients, or were
//! detached in place. A derivative that saved such a tensor sees it in its current state.

use crate::base::{Error, Guidance, Result};
use crate::storage::{Member, MemberFacts, Storage};
use crate::tensor::{
    BATCHED, Body, CONJ_NEG, CooParts, DUAL, Edge, GradType, Inner, Kept, Kind, NodeRef, REPLACED, REQUIRES,
    Saved, Tensor, VIEW, View, WeakTensor, changes, lock, snapshot,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Tensor {
    /// Replaces this tensor's body (`squeeze_`, `t_`).
    pub fn set_body(&self, body: Body) {
        let extra = self.extra();
        // A leaf's node accepts gradients of one dtype and device. If those change, the next use makes a new
        // node. If the shape changes, it does so only once nothing leads to the old node any more.
        let end = extra.leaf_node();
        let mut replaced = lock(&extra.replaced);
        if let Some(node) = end
            && let Kind::Leaf(leaf) = &node.kind
        {
            let stays = node.has_hooks() || node.outputs.first().is_some_and(|meta| meta.is_kind_of(&body));
            if stays {
                *lock(&leaf.body) = body.clone();
            }
            replaced.leaf = Some(stays.then(|| node.clone()));
        }
        let conj_neg = !body.conj_neg.is_none();
        let body = Arc::new(body);
        let first = replaced.body.replace(body.clone()).is_none();
        self.0.flags.fetch_or(if conj_neg { REPLACED | CONJ_NEG } else { REPLACED }, Ordering::AcqRel);
        if !conj_neg {
            self.0.flags.fetch_and(!CONJ_NEG, Ordering::AcqRel);
        }
        let since = snapshot::changed();
        if first {
            replaced.since = since;
        }
        drop(replaced);
        snapshot::note(self, &body);
        changes::note(self.id(), "is given another memory or shape");
    }

    /// Makes the next use of this leaf make a new node, unless the current one has hooks.
    pub fn reset_leaf_node(&self) {
        let extra = self.extra();
        let mut replaced = lock(&extra.replaced);
        let end = replaced.leaf.clone().unwrap_or_else(|| extra.leaf.get().cloned());
        if end.is_some_and(|node| !node.has_hooks()) {
            replaced.leaf = Some(None);
            drop(replaced);
            self.0.flags.fetch_or(REPLACED, Ordering::AcqRel);
        }
    }

    /// Replaces the edge. Returns the former replacement, if there was one. A retained gradient stays with
    /// the old node.
    pub fn put_history(&self, edge: Option<Edge>) -> Option<Option<Edge>> {
        let recorded = edge.is_some();
        let old = lock(&self.extra().replaced).edge.replace(edge);
        // Views of a tensor that was detached in place keep their edges.
        self.0.flags.fetch_or(REPLACED, Ordering::AcqRel);
        if recorded {
            self.0.flags.fetch_and(!REQUIRES, Ordering::AcqRel);
        }
        changes::note(self.id(), "gets another place in the graph (a recorded write in place, or detach_)");
        old
    }

    /// Gives the tensor other memory (`x.data = y`, `set_`, `resize_`). Its version counter goes on, shared
    /// with its views and detached tensors.
    pub fn show(&self, mut body: Body) {
        let old = self.body();
        if !body.storage.is(&old.storage) {
            self.may_be_saved(false);
            body.storage = body.storage.in_place_of(&old.storage);
        }
        drop(old);
        self.set_body(body);
    }

    /// Swaps the values, edges and `.grad` of two tensors. Returns their old leaf nodes, to which no new
    /// graph leads.
    pub fn swap(&self, other: &Tensor) -> Result<SmallVec<[NodeRef; 2]>> {
        for (tensor, name) in [(self, "t1"), (other, "t2")] {
            tensor.check_swappable(name)?;
        }
        let (own, others) = (SwappedFields::of(self), SwappedFields::of(other));
        let ends = [self, other].iter().filter_map(|t| t.0.extra.get()?.leaf_node()).collect();
        others.into_tensor(self);
        own.into_tensor(other);
        Ok(ends)
    }

    fn check_swappable(&self, name: &str) -> Result<()> {
        if self.handles() > 1 {
            return Err(Error::runtime(format!(
                "Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {} make sure you are not \
                 holding references to the tensor in other places.",
                self.handles()
            )));
        }
        let end = self.0.extra.get().and_then(|extra| extra.leaf_node());
        // A base without other handles is not observable, so its view may be swapped.
        let followed = |view: &View| view.base.handles() > 1 || self.has_history();
        let trouble = if self.as_view().is_some_and(followed) {
            "a view"
        } else if self.flags() & (DUAL | BATCHED) != 0 {
            "inside of a transform"
        } else if self.retains_grad() || end.is_some_and(|end| end.has_hooks()) {
            "watched by hooks"
        } else {
            return Ok(());
        };
        Err(Error::not_implemented(format!("swap_tensors: {name} is {trouble}, which is not supported")))
    }

    fn shows(&self, storage: &Storage) -> bool {
        self.body().storage.is(storage)
    }

    /// Removes the edge (`detach_`).
    pub fn detach_history(&self) {
        self.may_be_saved(true);
        self.put_history(None);
    }

    /// Registers this tensor with its storage, because it changes now: derivatives that saved it must look at
    /// it again.
    pub(super) fn may_be_saved(&self, cut: bool) {
        let storage = &self.body().storage;
        if storage.is_shared() {
            self.join_members(MemberFacts { detached: cut, requires_grad: self.flags() & REQUIRES != 0 });
        }
    }

    /// Registers an unrecorded view of a tensor that requires gradients, so that a derivative that saves it
    /// finds it again: such a view also seems to require gradients.
    #[cold]
    pub(super) fn note_unrecorded_view(&self) {
        if self.as_view().is_some() && self.edge().is_none() && self.requires_grad() {
            self.join_members(MemberFacts { detached: false, requires_grad: true });
        }
    }

    fn join_members(&self, known: MemberFacts) {
        let member: Arc<Inner> = self.0.clone();
        self.body().storage.join(Arc::downgrade(&(member as Arc<Member>)), known);
    }
}

/// The fields that two tensors swap.
struct SwappedFields {
    body: Body,
    edge: Option<Edge>,
    wants: bool,
    grad: Option<Tensor>,
    grad_type: GradType,
    coo: Option<CooParts>,
}

impl SwappedFields {
    fn of(tensor: &Tensor) -> SwappedFields {
        SwappedFields {
            body: tensor.body().clone(),
            edge: tensor.last_history(),
            wants: tensor.flags() & REQUIRES != 0,
            grad: tensor.grad(),
            grad_type: tensor.0.extra.get().map_or(GradType::Own, |extra| extra.grad_type.get()),
            coo: tensor.coo_parts(),
        }
    }

    fn into_tensor(self, tensor: &Tensor) {
        tensor.set_body(self.body);
        tensor.put_history(self.edge);
        tensor.0.flags.fetch_and(!VIEW, Ordering::AcqRel);
        tensor.extra().grad_type.set(self.grad_type);
        lock(&tensor.extra().replaced).leaf = Some(None);
        tensor.set_grad(self.grad);
        *lock(&tensor.extra().coo) = self.coo.map(Box::new);
        if self.wants {
            tensor.0.flags.fetch_or(REQUIRES, Ordering::AcqRel);
        } else {
            tensor.0.flags.fetch_and(!REQUIRES, Ordering::AcqRel);
        }
        changes::note(tensor.id(), "is swapped with another one");
    }
}

impl Saved {
    /// The tensor that was saved, if it lives or can be made again; `edge` is the edge for its gradient.
    #[inline]
    pub(super) fn current_tensor(&self, edge: Option<&Edge>) -> Result<Option<Tensor>> {
        let (Some(tensor), Some(body), false) = (&self.tensor, self.body(), self.is_output()) else {
            return Ok(None);
        };
        let recorded = edge.is_some_and(|edge| !edge.node.is_leaf());
        let changed = body.storage.has_shared_state();
        match tensor.upgrade() {
            // An in-place write saves a copy of its target; a tensor of a transform must look as it did
            // inside the transform.
            Some(tensor)
                if !changed && (tensor.flags() & (DUAL | BATCHED) != 0 || !tensor.shows(&body.storage)) =>
            {
                Ok(None)
            }
            Some(tensor) if recorded && !tensor.has_history() => Err(detached_in_place()),
            Some(tensor) => Ok(Some(tensor)),
            None if changed => self.recreate(tensor, body, edge, recorded),
            None => Ok(None),
        }
    }

    /// The saved tensor made again from what its storage knows of it.
    #[cold]
    fn recreate(
        &self,
        tensor: &WeakTensor,
        body: &Body,
        edge: Option<&Edge>,
        recorded: bool,
    ) -> Result<Option<Tensor>> {
        let Some(known) = body.storage.member(tensor.address()) else { return Ok(None) };
        if recorded && known.detached {
            return Err(detached_in_place());
        }
        // The tensor was a leaf, even if no one can ask for its gradient any more.
        let gone = known.requires_grad && edge.is_none();
        Ok(gone.then(|| Tensor::with_flags(body.clone(), None, REQUIRES, None)))
    }

    /// Updates the value to the current body of the saved tensor.
    #[inline]
    pub(super) fn update(&mut self, node: &NodeRef) -> Result<()> {
        match self.body() {
            Some(body) if body.storage.has_shared_state() => self.refresh(node),
            _ => Ok(()),
        }
    }

    #[cold]
    fn refresh(&mut self, node: &NodeRef) -> Result<()> {
        let edge = node.edges.get(self.source as usize).and_then(Option::as_ref);
        // A custom Function may have saved a detached tensor.
        let recorded = edge.filter(|edge| edge.node.is_leaf() || !matches!(node.kind, Kind::Custom(_)));
        let now = match (self.current_tensor(recorded)?, edge.map(|edge| &edge.node.kind)) {
            (Some(tensor), _) => tensor.body().clone(),
            // The leaf's tensor is gone, but its node keeps the last body.
            (None, Some(Kind::Leaf(leaf))) if leaf.tensor().is_none() => leaf.body(),
            _ => return Ok(()),
        };
        self.kept = Kept::Body(now);
        Ok(())
    }
}

fn detached_in_place() -> Error {
    let message = "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please \
        use out-of-place `.detach()` instead";
    Guidance::new(message).advice("take y = x.detach() instead, which leaves x as it is").done()
}
