//! State shared by storages that have the same bytes but are different objects: a version counter, and the
//! tensors that changed after a derivative may have saved them. Few storages need it; the others have their
//! own counter.

use super::{Bytes, COUNTED, Storage, UNTRACKED};
use crate::base::lock;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// A storage whose own version is this or greater counts in the shared state.
pub(super) const IN_SHARED_STATE: u32 = 1 << 31;

/// A tensor that changed, identified by its address.
pub type Member = dyn Any + Send + Sync;

#[derive(Default)]
pub(super) struct SharedState {
    version: AtomicU32,
    members: Mutex<Members>,
    /// Storages with the memory that the storage had before it was resized: other threads may still read it.
    replaced: Mutex<Vec<Storage>>,
}

/// Facts about a tensor that changed, which outlive it.
#[derive(Clone, Copy)]
pub struct MemberFacts {
    /// True if it was detached in place.
    pub detached: bool,
    /// True if it is a leaf that requires gradients.
    pub requires_grad: bool,
}

#[derive(Default)]
struct Members {
    by_address: HashMap<usize, (Weak<Member>, MemberFacts)>,
    /// Entries of freed tensors are removed when there are so many.
    full: usize,
}

impl SharedState {
    fn members(&self) -> MutexGuard<'_, Members> {
        lock(&self.members)
    }

    pub(super) fn replaced(&self) -> MutexGuard<'_, Vec<Storage>> {
        lock(&self.replaced)
    }
}

impl Storage {
    pub(super) fn shared_state(&self) -> &Arc<SharedState> {
        self.0.shared_state.get_or_init(Arc::default)
    }

    /// The counter of writes.
    #[cold]
    pub(super) fn counter(&self) -> &AtomicU32 {
        let own = self.0.version.load(Ordering::Relaxed);
        match self.0.shared_state.get() {
            Some(shared_state) if own >= IN_SHARED_STATE && own != UNTRACKED => &shared_state.version,
            _ => &self.0.version,
        }
    }

    /// Counts writes although the bytes were made in inference mode.
    pub(super) fn count_separately(&self) {
        self.shared_state();
        self.0.version.store(IN_SHARED_STATE, Ordering::Relaxed);
    }

    /// An alias for a tensor whose storage was `old` until now. It shares the version counter of the tensors
    /// that still have `old`.
    pub fn in_place_of(&self, old: &Storage) -> Storage {
        let mut now = Storage::from_bytes(Bytes::Alias(self.root().clone()), self.len(), self.0.device);
        if let (COUNTED, Some(inner)) = (self.0.label, Arc::get_mut(&mut now.0)) {
            inner.label = COUNTED;
        }
        if old.is_shared() || self.is_untracked() {
            let shared_state = old.shared_state();
            if old.0.version.load(Ordering::Relaxed) < IN_SHARED_STATE {
                shared_state.version.store(old.version(), Ordering::Relaxed);
                old.0.version.store(IN_SHARED_STATE, Ordering::Relaxed);
            } else if old.version() == UNTRACKED {
                shared_state.version.store(UNTRACKED, Ordering::Relaxed);
            }
            now.0.version.store(IN_SHARED_STATE, Ordering::Relaxed);
            // A new storage has no shared state yet.
            let _ = now.0.shared_state.set(shared_state.clone());
        } else {
            now.0.version.store(old.version(), Ordering::Relaxed);
        }
        now
    }

    /// True if there may be other holders of this storage.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || self.0.shared_state.get().is_some()
    }

    /// Records that `member` changed after a derivative may have saved it.
    pub fn join(&self, member: Weak<Member>, known: MemberFacts) {
        let mut members = self.shared_state().members();
        if members.by_address.len() >= members.full {
            members.by_address.retain(|_, (member, _)| member.strong_count() > 0);
            members.full = members.by_address.len() * 2 + 8;
        }
        let address = member.as_ptr().cast::<()>() as usize;
        // The entry keeps the address from being reused, so it is the same tensor.
        let detached =
            known.detached || members.by_address.get(&address).is_some_and(|(_, before)| before.detached);
        members.by_address.insert(address, (member, MemberFacts { detached, ..known }));
    }

    /// The facts about the member at this address, if it has joined.
    pub fn member(&self, address: usize) -> Option<MemberFacts> {
        let members = self.0.shared_state.get()?.members();
        members.by_address.get(&address).map(|(_, known)| *known)
    }

    /// True if any tensor has joined.
    #[inline]
    pub fn has_shared_state(&self) -> bool {
        self.0.shared_state.get().is_some()
    }
}
