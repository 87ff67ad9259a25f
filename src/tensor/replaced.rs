//! Tensors that are no longer what they were born as: other memory was put under them, they came to want gradients, they
//! were detached in place. What a derivative saved of an input is that tensor as it is now.

use crate::base::{Error, Guidance, Result};
use crate::storage::{Known, Member, Storage};
use crate::tensor::{
    BATCHED, Body, CONJ_NEG, DUAL, Edge, GradType, Inner, Kept, Kind, LATE, NodeRef, REQUIRES, Saved, Tensor,
    WeakTensor, lock, snapshot,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Tensor {
    /// Replaces what this tensor shows (`squeeze_`, `t_`).
    pub fn set_body(&self, body: Body) {
        let extra = self.extra();
        // A leaf's end of the graph takes gradients of one kind: for another dtype or device the next use makes a new one, for
        // another shape only when nothing that was computed leads to the old one any more.
        let end = extra.leaf_end();
        let mut late = lock(&extra.late);
        if let Some(node) = end
            && let Kind::Leaf(leaf) = &node.kind
        {
            let stays = node.has_hooks() || node.outputs.first().is_some_and(|meta| meta.is_kind_of(&body));
            if stays {
                *lock(&leaf.body) = body.clone();
            }
            late.leaf = Some(stays.then(|| node.clone()));
        }
        let lazy = !body.lazy.is_nothing();
        let body = Arc::new(body);
        let first = late.body.replace(body.clone()).is_none();
        self.0.flags.fetch_or(if lazy { LATE | CONJ_NEG } else { LATE }, Ordering::AcqRel);
        if !lazy {
            self.0.flags.fetch_and(!CONJ_NEG, Ordering::AcqRel);
        }
        let since = snapshot::changed();
        if first {
            late.since = since;
        }
        drop(late);
        snapshot::gave(self, &body);
    }

    /// Has the next use of this leaf make a new end of the graph, unless hooks hang on the one that there is.
    pub fn leave_end(&self) {
        let extra = self.extra();
        let mut late = lock(&extra.late);
        let end = late.leaf.clone().unwrap_or_else(|| extra.leaf.get().cloned());
        if end.is_some_and(|node| !node.has_hooks()) {
            late.leaf = Some(None);
            drop(late);
            self.0.flags.fetch_or(LATE, Ordering::AcqRel);
        }
    }

    /// Puts a history in the place of the old one, which it returns where that was not the first. A tensor that keeps its
    /// gradient goes on doing so at the old one.
    pub fn put_history(&self, edge: Option<Edge>) -> Option<Option<Edge>> {
        let recorded = edge.is_some();
        let old = lock(&self.extra().late).edge.replace(edge);
        // Views of a tensor that was detached in place keep the history that they have.
        self.0.flags.fetch_or(LATE, Ordering::AcqRel);
        if recorded {
            self.0.flags.fetch_and(!REQUIRES, Ordering::AcqRel);
        }
        old
    }

    /// Shows other memory from now on (`x.data = y`, `set_`, `resize_`); the count of writes goes on, and stays one with that
    /// of views and of what was detached.
    pub fn show(&self, mut body: Body) {
        let old = self.body();
        if !body.storage.is(&old.storage) {
            self.may_be_saved(false);
            body.storage = body.storage.in_place_of(&old.storage);
        }
        drop(old);
        self.set_body(body);
    }

    /// Two tensors become each other: values, history, `.grad`. Gives the ends of the graph that they had as leaves, which no
    /// new graph leads to.
    pub fn swap(&self, other: &Tensor) -> Result<SmallVec<[NodeRef; 2]>> {
        for (tensor, name) in [(self, "t1"), (other, "t2")] {
            tensor.check_swappable(name)?;
        }
        let (own, others) = (Content::of(self), Content::of(other));
        let ends = [self, other].iter().filter_map(|t| t.0.extra.get()?.leaf_end()).collect();
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
        let end = self.0.extra.get().and_then(|extra| extra.leaf_end());
        let trouble = if self.as_view().is_some() {
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

    /// Cuts this tensor off from what it was computed of (`detach_`).
    pub fn cut_history(&self) {
        self.may_be_saved(true);
        self.put_history(None);
    }

    /// Lets derivatives that may have saved this tensor know that it is about to be another, or just became one.
    pub(super) fn may_be_saved(&self, cut: bool) {
        let storage = &self.body().storage;
        if storage.is_shared() {
            self.join_family(Known { cut, wants: self.flags() & REQUIRES != 0 });
        }
    }

    /// Lets who saves a view find it again that was made unrecorded of what wants gradients: it seems to want them, too.
    #[cold]
    pub(super) fn seen_by_savers(&self) {
        if self.as_view().is_some() && self.edge().is_none() && self.requires_grad() {
            self.join_family(Known { cut: false, wants: true });
        }
    }

    fn join_family(&self, known: Known) {
        let member: Arc<Inner> = self.0.clone();
        self.body().storage.join(Arc::downgrade(&(member as Arc<Member>)), known);
    }
}

/// All that makes one tensor another.
struct Content {
    body: Body,
    edge: Option<Edge>,
    wants: bool,
    grad: Option<Tensor>,
    grad_type: GradType,
}

impl Content {
    fn of(tensor: &Tensor) -> Content {
        Content {
            body: tensor.body().clone(),
            edge: tensor.last_edge(),
            wants: tensor.flags() & REQUIRES != 0,
            grad: tensor.grad(),
            grad_type: tensor.0.extra.get().map_or(GradType::Own, |extra| extra.grad_type.get()),
        }
    }

    fn into_tensor(self, tensor: &Tensor) {
        tensor.set_body(self.body);
        tensor.put_history(self.edge);
        tensor.extra().grad_type.set(self.grad_type);
        lock(&tensor.extra().late).leaf = Some(None);
        tensor.set_grad(self.grad);
        if self.wants {
            tensor.0.flags.fetch_or(REQUIRES, Ordering::AcqRel);
        } else {
            tensor.0.flags.fetch_and(!REQUIRES, Ordering::AcqRel);
        }
    }
}

impl Saved {
    /// The tensor that this was saved of when its gradient flowed to `edge`: while that lives, and where it became another
    /// since also later.
    #[inline]
    pub(super) fn renewed(&self, edge: Option<&Edge>) -> Result<Option<Tensor>> {
        let (Some(tensor), Some(body), false) = (&self.tensor, self.body(), self.is_output()) else {
            return Ok(None);
        };
        let recorded = edge.is_some_and(|edge| !edge.node.is_leaf());
        let changed = body.storage.has_family();
        match tensor.upgrade() {
            // What a write in place saved of its target is a copy; what belongs to a transform is seen as it was inside of it.
            Some(tensor)
                if !changed && (tensor.flags() & (DUAL | BATCHED) != 0 || !tensor.shows(&body.storage)) =>
            {
                Ok(None)
            }
            Some(tensor) if recorded && !tensor.has_history() => Err(detached_in_place()),
            Some(tensor) => Ok(Some(tensor)),
            None if changed => self.remembered(tensor, body, edge, recorded),
            None => Ok(None),
        }
    }

    /// What is known of the tensor although it is gone.
    #[cold]
    fn remembered(
        &self,
        tensor: &WeakTensor,
        body: &Body,
        edge: Option<&Edge>,
        recorded: bool,
    ) -> Result<Option<Tensor>> {
        let Some(known) = body.storage.member(tensor.address()) else { return Ok(None) };
        if recorded && known.cut {
            return Err(detached_in_place());
        }
        // A leaf that nobody can ask for its gradient any more is one all the same.
        let gone = known.wants && edge.is_none();
        Ok(gone.then(|| Tensor::showing(body.clone(), None, REQUIRES, None)))
    }

    /// Takes on what its tensor shows now.
    #[inline]
    pub(super) fn renew(&mut self, node: &NodeRef) -> Result<()> {
        match self.body() {
            Some(body) if body.storage.has_family() => self.look_again(node),
            _ => Ok(()),
        }
    }

    #[cold]
    fn look_again(&mut self, node: &NodeRef) -> Result<()> {
        let edge = node.edges.get(usize::from(self.source)).and_then(Option::as_ref);
        // What a Function saved may be detached.
        let recorded = edge.filter(|edge| edge.node.is_leaf() || !matches!(node.kind, Kind::Custom(_)));
        let now = match (self.renewed(recorded)?, edge.map(|edge| &edge.node.kind)) {
            (Some(tensor), _) => tensor.body().clone(),
            // The leaf is gone, but what it showed last is kept where its gradient would have gone.
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
