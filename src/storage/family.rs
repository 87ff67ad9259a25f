//! What a tensor, its views and what was detached of it have in common beside their bytes: one count of writes, and the names
//! of those that are no longer what a derivative saved. Few storages need that; the others hold their count themselves.

use super::{Bytes, COUNTED, Storage, UNTRACKED};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A storage's own count at and above this is none, but says that its family counts.
pub(super) const ELSEWHERE: u32 = 1 << 31;

/// Whoever joins a family, known by its address.
pub type Member = dyn Any + Send + Sync;

#[derive(Default)]
pub(super) struct Family {
    version: AtomicU32,
    members: Mutex<Members>,
    /// Storages with the memory that the storage had before it was resized: somebody may be reading there.
    replaced: Mutex<Vec<Storage>>,
}

/// What is known of a member even when it is gone.
#[derive(Clone, Copy)]
pub struct Known {
    /// Whether its history was cut off.
    pub cut: bool,
    /// Whether it is a leaf that wants gradients.
    pub wants: bool,
}

#[derive(Default)]
struct Members {
    by_address: HashMap<usize, (Weak<Member>, Known)>,
    /// The dead are taken out when there are so many.
    full: usize,
}

impl Family {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn replaced(&self) -> MutexGuard<'_, Vec<Storage>> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage {
    pub(super) fn family(&self) -> &Arc<Family> {
        self.0.family.get_or_init(Arc::default)
    }

    /// Where writes are counted.
    #[cold]
    pub(super) fn counter(&self) -> &AtomicU32 {
        let own = self.0.version.load(Ordering::Relaxed);
        match self.0.family.get() {
            Some(family) if own >= ELSEWHERE && own != UNTRACKED => &family.version,
            _ => &self.0.version,
        }
    }

    /// Counts writes although the bytes are those of inference mode.
    pub(super) fn count_apart(&self) {
        self.family();
        self.0.version.store(ELSEWHERE, Ordering::Relaxed);
    }

    /// The same bytes for a tensor that has shown `old` until now: it goes on counting writes together with whoever else
    /// shows that.
    pub fn in_place_of(&self, old: &Storage) -> Storage {
        let mut now = Storage::from_bytes(Bytes::Alias(self.root().clone()), self.len(), self.0.device);
        if let (COUNTED, Some(inner)) = (self.0.birth, Arc::get_mut(&mut now.0)) {
            inner.birth = COUNTED;
        }
        if old.is_shared() || self.is_untracked() {
            let family = old.family();
            if old.0.version.load(Ordering::Relaxed) < ELSEWHERE {
                family.version.store(old.version(), Ordering::Relaxed);
                old.0.version.store(ELSEWHERE, Ordering::Relaxed);
            } else if old.version() == UNTRACKED {
                family.version.store(UNTRACKED, Ordering::Relaxed);
            }
            now.0.version.store(ELSEWHERE, Ordering::Relaxed);
            // A storage that was made just now has no family yet.
            let _ = now.0.family.set(family.clone());
        } else {
            now.0.version.store(old.version(), Ordering::Relaxed);
        }
        now
    }

    /// Whether anybody else may know this storage.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || self.0.family.get().is_some()
    }

    /// Notes that `member` is no longer what it was when somebody may have saved it.
    pub fn join(&self, member: Weak<Member>, known: Known) {
        let mut members = self.family().members();
        if members.by_address.len() >= members.full {
            members.by_address.retain(|_, (member, _)| member.strong_count() > 0);
            members.full = members.by_address.len() * 2 + 8;
        }
        let address = member.as_ptr().cast::<()>() as usize;
        // An address is not used again while it is known here: it is the same tensor.
        let cut = known.cut || members.by_address.get(&address).is_some_and(|(_, before)| before.cut);
        members.by_address.insert(address, (member, Known { cut, ..known }));
    }

    /// What is known of the member at this address, if it has joined.
    pub fn member(&self, address: usize) -> Option<Known> {
        let members = self.0.family.get()?.members();
        members.by_address.get(&address).map(|(_, known)| *known)
    }

    /// Whether anybody has joined.
    #[inline]
    pub fn has_family(&self) -> bool {
        self.0.family.get().is_some()
    }
}
