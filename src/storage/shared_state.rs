//! What storages share that have the same bytes but are not one: a count of writes, and the tensors that changed after a
//! derivative may have saved them. Few storages need that; the others keep their count themselves.

use super::{Bytes, COUNTED, Storage, UNTRACKED};
use crate::base::lock;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// A storage whose own count is this or more counts in the shared state.
pub(super) const ELSEWHERE: u32 = 1 << 31;

/// A tensor that changed, known by its address.
pub type Member = dyn Any + Send + Sync;

#[derive(Default)]
pub(super) struct SharedState {
    version: AtomicU32,
    members: Mutex<Members>,
    /// Storages with the memory that the storage had before it was resized: somebody may be reading there.
    replaced: Mutex<Vec<Storage>>,
}

/// What is known of a tensor that changed, even when it is gone.
#[derive(Clone, Copy)]
pub struct Known {
    /// Whether its history was cut off.
    pub detached: bool,
    /// Whether it is a leaf that wants gradients.
    pub requires_grad: bool,
}

#[derive(Default)]
struct Members {
    by_address: HashMap<usize, (Weak<Member>, Known)>,
    /// The dead are taken out when there are so many.
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

    /// Where writes are counted.
    #[cold]
    pub(super) fn counter(&self) -> &AtomicU32 {
        let own = self.0.version.load(Ordering::Relaxed);
        match self.0.shared_state.get() {
            Some(shared_state) if own >= ELSEWHERE && own != UNTRACKED => &shared_state.version,
            _ => &self.0.version,
        }
    }

    /// Counts writes although the bytes are those of inference mode.
    pub(super) fn count_apart(&self) {
        self.shared_state();
        self.0.version.store(ELSEWHERE, Ordering::Relaxed);
    }

    /// An alias for a tensor that has shown `old` until now: it goes on counting writes together with whoever else
    /// shows that.
    pub fn in_place_of(&self, old: &Storage) -> Storage {
        let mut now = Storage::from_bytes(Bytes::Alias(self.root().clone()), self.len(), self.0.device);
        if let (COUNTED, Some(inner)) = (self.0.label, Arc::get_mut(&mut now.0)) {
            inner.label = COUNTED;
        }
        if old.is_shared() || self.is_untracked() {
            let shared_state = old.shared_state();
            if old.0.version.load(Ordering::Relaxed) < ELSEWHERE {
                shared_state.version.store(old.version(), Ordering::Relaxed);
                old.0.version.store(ELSEWHERE, Ordering::Relaxed);
            } else if old.version() == UNTRACKED {
                shared_state.version.store(UNTRACKED, Ordering::Relaxed);
            }
            now.0.version.store(ELSEWHERE, Ordering::Relaxed);
            // A storage that was made just now has no shared state yet.
            let _ = now.0.shared_state.set(shared_state.clone());
        } else {
            now.0.version.store(old.version(), Ordering::Relaxed);
        }
        now
    }

    /// Whether anybody else may know this storage.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || self.0.shared_state.get().is_some()
    }

    /// Notes that `member` is no longer what it was when somebody may have saved it.
    pub fn join(&self, member: Weak<Member>, known: Known) {
        let mut members = self.shared_state().members();
        if members.by_address.len() >= members.full {
            members.by_address.retain(|_, (member, _)| member.strong_count() > 0);
            members.full = members.by_address.len() * 2 + 8;
        }
        let address = member.as_ptr().cast::<()>() as usize;
        // An address is not used again while it is known here: it is the same tensor.
        let detached =
            known.detached || members.by_address.get(&address).is_some_and(|(_, before)| before.detached);
        members.by_address.insert(address, (member, Known { detached, ..known }));
    }

    /// What is known of the member at this address, if it has joined.
    pub fn member(&self, address: usize) -> Option<Known> {
        let members = self.0.shared_state.get()?.members();
        members.by_address.get(&address).map(|(_, known)| *known)
    }

    /// Whether anybody has joined.
    #[inline]
    pub fn has_shared_state(&self) -> bool {
        self.0.shared_state.get().is_some()
    }
}
