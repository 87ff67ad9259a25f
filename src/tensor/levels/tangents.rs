//! Forward mode: a tensor has at most one tangent at each active dual level. Values that derivatives save
//! keep their tangents, so that a backward has tangents, too. When a level ends, all its tangents go.

use crate::arena::Id;
use crate::base::{Error, Result};
use crate::storage::epoch;
use crate::tensor::dual_levels::count_levels;
pub use crate::tensor::dual_levels::{DualLevel, any_level, enabled, set_enabled};
use crate::tensor::graph::saved::{Saved, SavedTangents};
use crate::tensor::{
    Body, DUAL, Edge, Node, NodeRef, OWN_TANGENTS, Tangents, Tensor, VIEW, WeakTensor, lock,
};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Computes gradients: takes outputs with their gradients, inputs, and `create_graph`. A level gets it from
/// its caller, because the scheduler is above this module: it adds gradients with the operators that make
/// tangents.
pub type Reverse = fn(&[(Tensor, Tensor)], &[Tensor], bool) -> Result<Vec<Option<Tensor>>>;

/// An active level, and the tensors whose tangents it must remove at its end.
struct Level {
    number: DualLevel,
    /// Computes gradients at this level; most tangents are made from them.
    reverse: Reverse,
    tensors: Vec<WeakTensor>,
    /// Handles of freed tensors are removed when the list reaches this length.
    full: usize,
}

struct Levels {
    next: DualLevel,
    live: Vec<Level>,
    saved: HashMap<Id<Node>, SavedTangents>,
    full: usize,
}

static LEVELS: Mutex<Option<Levels>> = Mutex::new(None);

fn levels<R>(act: impl FnOnce(&mut Levels) -> R) -> R {
    let mut levels = lock(&LEVELS);
    act(levels.get_or_insert_with(|| Levels { next: 1, live: Vec::new(), saved: HashMap::new(), full: 1024 }))
}

/// True if the level is active.
pub fn is_live(number: DualLevel) -> bool {
    any_level() && levels(|levels| levels.live.iter().any(|l| l.number == number))
}

/// Enters a new level, inside the active ones; `reverse` computes gradients in it.
pub fn enter(reverse: Reverse) -> DualLevel {
    count_levels(true);
    levels(|levels| {
        let number = levels.next;
        levels.next += 1;
        levels.live.push(Level { number, reverse, tensors: Vec::new(), full: 1024 });
        number
    })
}

/// The function that computes gradients at a level; an error if the level has ended.
pub fn reverse_at(number: DualLevel) -> Result<Reverse> {
    levels(|levels| levels.live.iter().find(|l| l.number == number).map(|l| l.reverse))
        .ok_or_else(level_ended)
}

fn level_ended() -> Error {
    Error::runtime("the dual level of this tangent has already ended")
}

/// Ends a level and removes its tangents everywhere.
pub fn exit(number: DualLevel) {
    let (left, mut dropped) = levels(|levels| {
        let at = levels.live.iter().position(|l| l.number == number);
        let left = at.map(|at| levels.live.remove(at));
        let mut dropped = Vec::new();
        for saved in levels.saved.values_mut() {
            dropped.extend(saved.extract_if(.., |(_, level, _)| *level == number));
        }
        levels.saved.retain(|_, saved| !saved.is_empty());
        (left, dropped)
    });
    if let Some(left) = left {
        count_levels(false);
        // Nothing is dropped under the lock, because a tangent may own anything.
        for tensor in left.tensors.iter().filter_map(WeakTensor::upgrade) {
            dropped.extend(tensor.forget_tangent(number).map(|t| (0, number, t)));
        }
    }
}

impl WeakTensor {
    pub(in crate::tensor) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Tensor {
    /// True if this tensor has tangents.
    #[inline]
    pub fn is_dual(&self) -> bool {
        let flags = self.flags();
        (flags & DUAL != 0 || (flags & VIEW != 0 && any_level())) && self.looks_dual()
    }

    #[cold]
    fn looks_dual(&self) -> bool {
        self.tangent_base().is_some_and(Tensor::is_dual)
            || self.tangents().is_some_and(|t| lock(t).iter().any(|(_, t)| t.is_some()))
    }

    /// The tensor from which this view inherits its tangents.
    pub fn tangent_base(&self) -> Option<&Tensor> {
        let view = self.as_view().filter(|_| self.flags() & OWN_TANGENTS == 0)?;
        Some(view.tangent_base.as_ref().unwrap_or(&view.base))
    }

    /// Gives this new view tangents of its own, independent of its base's.
    pub fn own_tangents(&self) {
        self.0.flags.fetch_or(OWN_TANGENTS, Ordering::AcqRel);
    }

    fn tangents(&self) -> Option<&Tangents> {
        if self.flags() & DUAL != 0 { self.0.extra.get().map(|extra| &extra.tangents) } else { None }
    }

    pub fn tangent(&self, level: DualLevel) -> Option<Tensor> {
        self.ask_base();
        let tangents = lock(self.tangents()?);
        tangents.iter().find(|(l, _)| *l == level).and_then(|(_, t)| t.clone())
    }

    /// The levels at which this tensor has a tangent, ascending.
    pub fn dual_levels(&self) -> SmallVec<[DualLevel; 2]> {
        self.ask_base();
        let present = |t: &Tangents| lock(t).iter().filter(|(_, t)| t.is_some()).map(|(l, _)| *l).collect();
        self.tangents().map(present).unwrap_or_default()
    }

    /// Updates a view's tangents, which are views of its base's tangents. The base may have got them after
    /// the view was made.
    fn ask_base(&self) {
        let (Some(view), Some(base)) = (self.as_view(), self.tangent_base().filter(|base| base.is_dual()))
        else {
            return;
        };
        for level in base.dual_levels() {
            let known = self.tangents().is_some_and(|t| lock(t).iter().any(|(l, _)| *l == level));
            if let (false, Some(whole)) = (known, base.tangent(level))
                && let Ok(part) = (view.func.values)(&whole, &self.body())
            {
                self.inherit(level, Some(part));
            }
        }
    }

    /// Sets or replaces a tangent.
    pub fn set_tangent(&self, level: DualLevel, tangent: Tensor) -> Result<()> {
        levels(|levels| {
            let Some(level) = levels.live.iter_mut().find(|l| l.number == level) else {
                return Err(level_ended());
            };
            if level.tensors.len() >= level.full {
                level.tensors.retain(WeakTensor::is_alive);
                level.full = level.tensors.len() * 2 + 1024;
            }
            level.tensors.push(self.downgrade());
            Ok(())
        })?;
        let old = {
            let mut tangents = lock(&self.extra().tangents);
            match tangents.iter().position(|(l, _)| *l >= level) {
                Some(at) if tangents[at].0 == level => tangents[at].1.replace(tangent),
                Some(at) => {
                    tangents.insert(at, (level, Some(tangent)));
                    None
                }
                None => {
                    tangents.push((level, Some(tangent)));
                    None
                }
            }
        };
        drop(old);
        self.0.flags.fetch_or(DUAL, Ordering::AcqRel);
        epoch::next();
        Ok(())
    }

    /// Removes a tangent; a view will not take it from its base again.
    pub fn take_tangent(&self, level: DualLevel) -> Option<Tensor> {
        let mut tangents = lock(self.tangents()?);
        tangents.iter_mut().find(|(l, _)| *l == level)?.1.take()
    }

    /// Removes the tangent of a level that has ended.
    fn forget_tangent(&self, level: DualLevel) -> Option<Tensor> {
        let mut tangents = lock(self.tangents()?);
        let at = tangents.iter().position(|(l, _)| *l == level)?;
        let (_, taken) = tangents.remove(at);
        if tangents.is_empty() {
            self.0.flags.fetch_and(!DUAL, Ordering::AcqRel);
            epoch::next();
        }
        taken
    }

    /// Removes all tangents.
    pub fn drop_tangents(&self) {
        for level in self.dual_levels() {
            drop(self.take_tangent(level));
        }
    }

    /// The tensor as the levels outside this one see it: without the tangents of this level and of those
    /// inside it.
    pub fn below(&self, level: DualLevel) -> Tensor {
        let kept = self.dual_levels();
        if kept.last().is_none_or(|&last| last < level) {
            return self.clone();
        }
        let bare = Tensor::of(self.body().clone(), self.edge());
        for lower in kept.into_iter().filter(|&l| l < level) {
            bare.inherit(lower, self.tangent(lower));
        }
        bare
    }

    /// The tensor with its edge, without tangents.
    pub fn without_tangents(&self) -> Tensor {
        match self.as_batched() {
            Some(batched) => Tensor::batched(batched.value.without_tangents(), batched.levels.clone()),
            None => self.below(0),
        }
    }

    /// Sets a tangent of a tensor that no other code has seen. The level may have ended meanwhile; then
    /// nothing is set.
    fn inherit(&self, level: DualLevel, tangent: Option<Tensor>) {
        if let Some(tangent) = tangent {
            let _ = self.set_tangent(level, tangent);
        }
    }
}

/// The levels at which any of these has a tangent, ascending; none while forward mode is off.
pub fn levels_of<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> SmallVec<[DualLevel; 2]> {
    let mut found: SmallVec<[DualLevel; 2]> = SmallVec::new();
    if enabled() {
        tensors.into_iter().for_each(|t| found.extend(t.dual_levels()));
        found.sort_unstable();
        found.dedup();
    }
    found
}

/// Keeps the tangents of the values that a node saved.
pub fn remember<'a>(node: &NodeRef, tensor_of: impl Fn(u32) -> Option<&'a Tensor>) {
    let sources: SmallVec<[u32; 4]> = node.saves().values.iter().map(|s| s.source).collect();
    let mut kept = SavedTangents::new();
    for source in sources {
        let Some(tensor) = tensor_of(source) else { continue };
        for level in tensor.dual_levels() {
            kept.extend(tensor.tangent(level).map(|t| (source, level, t)));
        }
    }
    if kept.is_empty() {
        return;
    }
    let (old, known) = levels(|levels| {
        let old = levels.saved.insert(node.id(), kept);
        let full = levels.saved.len() > levels.full;
        (old, full.then(|| levels.saved.keys().copied().collect::<Vec<_>>()))
    });
    drop(old);
    if let Some(known) = known {
        forget(known.into_iter().filter(|id| id.upgrade().is_none()).collect());
    }
}

/// Drops the tangents kept for freed nodes.
fn forget(gone: Vec<Id<Node>>) {
    let dropped: Vec<_> = levels(|levels| {
        let dropped = gone.iter().filter_map(|id| levels.saved.remove(id)).collect();
        levels.full = levels.saved.len() * 2 + 1024;
        dropped
    });
    drop(dropped);
}

impl Node {
    /// The tangents kept for `node`; unless `keep`, they are removed.
    pub(in crate::tensor) fn tangents(node: &NodeRef, keep: bool) -> SavedTangents {
        if !any_level() {
            return SavedTangents::new();
        }
        let id = node.id();
        levels(|levels| if keep { levels.saved.get(&id).cloned() } else { levels.saved.remove(&id) })
            .unwrap_or_default()
    }
}

impl Saved {
    /// This saved value as a tensor with its tangents; `body` is its body.
    pub(in crate::tensor) fn restore(
        &self,
        body: Body,
        edge: Option<Edge>,
        tangents: &SavedTangents,
    ) -> Tensor {
        let mine = || tangents.iter().filter(|(source, ..)| *source == self.source);
        if mine().next().is_none() {
            return Tensor::from_saved(body, edge);
        }
        let tensor = Tensor::of(body, edge);
        for (_, level, tangent) in mine() {
            tensor.inherit(*level, Some(tangent.clone()));
        }
        tensor
    }
}
