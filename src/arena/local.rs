//! A thread's part of the arena: the heaps that it owns, and the worklist that drops values without
//! recursion.

use super::heap::{Heap, NO_OWNER, Slot};
use super::sync::{Cell, Mutex, Ordering, lock};
use super::{Arena, Pooled, Ref};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// The number of empty chunks that a thread keeps (8 MiB), so that a loop does not ask the system each time.
const RESERVE: usize = if cfg!(loom) { 1 } else { 128 };

/// The token of all threads whose `Local` is gone. It owns a heap only while the state of [`ExitedThreads`]
/// is locked.
const EXITED: usize = NO_OWNER + 1;

/// The token of a thread that has not owned a heap.
const UNNAMED: usize = EXITED + 1;

/// The first thread's token. Tokens are never reused, so an outdated `Heap::owner` is never mistaken for a
/// thread's own.
pub const FIRST: usize = UNNAMED + 1;

/// A thread's part of the arena. Only `pool!` makes it, as a thread-local.
pub struct Local<T: Pooled> {
    /// The thread's token in [`Heap`].
    token: Cell<usize>,
    /// The heap that allocates new values, one of `heaps`.
    current: Cell<Option<&'static Heap<T>>>,
    /// All heaps of this thread: its own, and those of ended threads whose values it freed.
    heaps: RefCell<Vec<&'static Heap<T>>>,
    /// Slots whose values are to be dropped.
    work: Cell<*mut Slot<T>>,
    draining: Cell<bool>,
}

macro_rules! new_local {
    ($($constness:ident)?) => {
        #[doc(hidden)]
        pub $($constness)? fn new() -> Local<T> {
            Local {
                token: Cell::new(UNNAMED),
                current: Cell::new(None),
                heaps: RefCell::new(Vec::new()),
                work: Cell::new(ptr::null_mut()),
                draining: Cell::new(false),
            }
        }
    };
}

#[allow(clippy::new_without_default, reason = "not for use but by `pool!`")]
impl<T: Pooled> Local<T> {
    #[cfg(not(loom))]
    new_local!(const);
    #[cfg(loom)]
    new_local!();

    #[cold]
    fn token_or_new(&self) -> usize {
        if self.token.get() == UNNAMED {
            self.token.set(T::arena().new_token());
        }
        self.token.get()
    }

    #[inline]
    pub fn take(&self) -> NonNull<Slot<T>> {
        // SAFETY: the current heap is ours.
        self.current.get().and_then(|heap| unsafe { heap.take() }).unwrap_or_else(|| self.refill())
    }

    /// A slot when the current heap is full: first from slots that others freed, then from another heap, then
    /// from the system.
    #[cold]
    fn refill(&self) -> NonNull<Slot<T>> {
        let current = self.current.get().unwrap_or_else(|| {
            let heap = T::arena().heap(self.token_or_new());
            self.heaps.borrow_mut().push(heap);
            heap
        });
        for &heap in self.heaps.borrow().iter() {
            // SAFETY: we own all of these heaps.
            if let Some(slot) = unsafe {
                heap.drain();
                heap.take()
            } {
                self.serve_from(heap);
                return slot;
            }
        }
        self.serve_from(current);
        // SAFETY: we own the heap.
        unsafe {
            current.grow(T::arena());
            current.take().unwrap_unchecked()
        }
    }

    fn serve_from(&self, heap: &'static Heap<T>) {
        let before = self.current.replace(Some(heap));
        // SAFETY: we own both heaps.
        unsafe {
            if let Some(before) = before.filter(|&before| !ptr::eq(before, heap)) {
                before.keep(0);
            }
            heap.keep(RESERVE);
        }
    }

    /// Drops the value of a slot whose count fell to zero: now, or after those that are being dropped.
    ///
    /// # Safety
    /// The caller held the last handle, and has synchronized with the drops of all others.
    #[inline]
    pub unsafe fn retire(&self, slot: NonNull<Slot<T>>) {
        // SAFETY: the slot is the caller's.
        unsafe { slot.as_ref() }.next.set(self.work.replace(slot.as_ptr()));
        if !self.draining.get() {
            self.drop_waiting();
        }
    }

    fn drop_waiting(&self) {
        /// Ends the draining even if a value's `drop` panics; the rest is dropped next time.
        struct Draining<'a>(&'a Cell<bool>);
        impl Drop for Draining<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        self.draining.set(true);
        let _draining = Draining(&self.draining);
        let mut count = 0;
        while let Some(slot) = NonNull::new(self.work.get()) {
            // SAFETY: slots on the worklist are reachable only from it, and their values are alive.
            unsafe {
                self.work.set(slot.as_ref().next.get());
                if pass_to_last_owner(slot) {
                    continue;
                }
                drop_value(slot);
                self.free(slot);
            }
            count += 1;
        }
        T::on_dropped(count);
    }

    #[inline]
    unsafe fn free(&self, slot: NonNull<Slot<T>>) {
        // SAFETY: a slot in use keeps its chunk alive, and each branch runs on the owner that it needs.
        unsafe {
            let heap = slot.as_ref().chunk.as_ref().heap;
            if !heap.is_owned_by(self.token.get()) {
                if heap.give(slot) && heap.adopt(self.token_or_new()) {
                    self.heaps.borrow_mut().push(heap);
                    heap.drain();
                    self.disown_if_empty(heap);
                }
                return;
            }
            heap.free(slot);
            if heap.in_use() == 0 {
                self.disown_if_empty(heap);
            }
        }
    }

    /// Gives an adopted heap up again once it is empty.
    fn disown_if_empty(&self, heap: &'static Heap<T>) {
        if heap.in_use() == 0 && !self.current.get().is_some_and(|current| ptr::eq(current, heap)) {
            self.heaps.borrow_mut().retain(|&other| !ptr::eq(other, heap));
            // SAFETY: we owned the heap until here.
            unsafe { heap.disown(self.token.get()) };
        }
    }

    /// Takes back the slots that other threads freed, and releases the reserve.
    pub fn trim(&self) {
        for &heap in self.heaps.borrow().iter() {
            // SAFETY: we own all of these heaps.
            unsafe {
                heap.drain();
                heap.keep(0);
            }
        }
        if let Some(heap) = self.current.get() {
            // SAFETY: we own the current heap.
            unsafe { heap.keep(RESERVE) };
        }
    }
}

impl<T: Pooled> Drop for Local<T> {
    fn drop(&mut self) {
        self.drop_waiting();
        for heap in self.heaps.take() {
            // SAFETY: we own the heap; a thread that frees one of its slots or starts next adopts it.
            unsafe { heap.disown(self.token.get()) };
        }
    }
}

/// Passes a value to its last owner, if it has one, with a new first handle.
///
/// # Safety
/// The value is alive, and no other thread can reach the slot.
#[inline]
unsafe fn pass_to_last_owner<T: Pooled>(slot: NonNull<Slot<T>>) -> bool {
    // SAFETY: by contract.
    let (value, count) = unsafe { ((*slot.as_ref().value.get()).assume_init_mut(), &slot.as_ref().count) };
    let Some(take) = T::last_owner(value) else { return false };
    count.store(1, Ordering::Release);
    take(Ref { slot, owns: PhantomData });
    true
}

/// # Safety
/// The value is alive, and no other thread can reach the slot.
unsafe fn drop_value<T: Pooled>(slot: NonNull<Slot<T>>) {
    // SAFETY: by contract. The new generation makes old ids find nothing.
    unsafe {
        let slot = slot.as_ref();
        let generation = slot.generation.load(Ordering::Relaxed);
        slot.generation.store(generation + 1, Ordering::Relaxed);
        (*slot.value.get()).assume_init_drop();
    }
}

/// The worklist of threads that are ending and whose `Local` is gone.
pub struct ExitedThreads<T: 'static> {
    state: Mutex<State<T>>,
}

struct State<T: 'static> {
    work: *mut Slot<T>,
    draining: bool,
}

// SAFETY: slots on the list have no other holder, and their values are `Send`.
unsafe impl<T: Send + 'static> Send for State<T> {}

macro_rules! new_exited_threads {
    ($($constness:ident)?) => {
        pub $($constness)? fn new() -> ExitedThreads<T> {
            ExitedThreads { state: Mutex::new(State { work: ptr::null_mut(), draining: false }) }
        }
    };
}

impl<T: Pooled> ExitedThreads<T> {
    #[cfg(not(loom))]
    new_exited_threads!(const);
    #[cfg(loom)]
    new_exited_threads!();

    #[cold]
    pub fn take(&self, arena: &'static Arena<T>) -> NonNull<Slot<T>> {
        let _only = lock(&self.state);
        let heap = arena.heap(EXITED);
        // SAFETY: `EXITED` owns the heap, and the lock makes this the only thread with that token.
        unsafe {
            heap.keep(1);
            let slot = heap.take().unwrap_or_else(|| {
                heap.grow(arena);
                heap.take().unwrap_unchecked()
            });
            heap.disown(EXITED);
            slot
        }
    }

    /// # Safety
    /// As for [`Local::retire`].
    #[cold]
    pub unsafe fn retire(&self, slot: NonNull<Slot<T>>) {
        {
            let mut state = lock(&self.state);
            // SAFETY: the slot is the caller's.
            unsafe { slot.as_ref() }.next.set(state.work);
            state.work = slot.as_ptr();
            if std::mem::replace(&mut state.draining, true) {
                return;
            }
        }
        while let Some(slot) = self.next() {
            // SAFETY: as in `Local::drop_waiting`.
            unsafe {
                if pass_to_last_owner(slot) {
                    continue;
                }
                drop_value(slot);
                let heap = slot.as_ref().chunk.as_ref().heap;
                let _only = lock(&self.state);
                if heap.give(slot) && heap.adopt(EXITED) {
                    heap.disown(EXITED);
                }
            }
        }
    }

    fn next(&self) -> Option<NonNull<Slot<T>>> {
        let mut state = lock(&self.state);
        let slot = NonNull::new(state.work);
        match slot {
            // SAFETY: slots on the list are alive.
            Some(slot) => state.work = unsafe { slot.as_ref() }.next.get(),
            None => state.draining = false,
        }
        slot
    }
}
