//! What a thread keeps: the heaps that it owns, and the worklist that frees without recursion.

use super::heap::{Heap, NOBODY, Slot};
use super::sync::{Cell, Mutex, Ordering, lock};
use super::{Arena, Pooled, Ref};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Empty chunks that a thread keeps for its next values (8 MiB), so that a loop does not ask the system each time.
const RESERVE: usize = if cfg!(loom) { 1 } else { 128 };

/// The token of all threads whose `Local` is gone: it owns a heap only while the arena's late list is locked.
const EXITED: usize = NOBODY + 1;

/// The token of a thread that has owned no heap yet.
const UNNAMED: usize = EXITED + 1;

/// The first thread's token. Tokens are not used again, so that a stale `Heap::owner` is never taken for one's own.
pub const FIRST: usize = UNNAMED + 1;

/// A thread's part of the arena. Only `pool!` makes one, as a thread-local.
pub struct Local<T: Pooled> {
    /// The thread's name in [`Heap`].
    token: Cell<usize>,
    /// The heap that new values come from: one of `heaps`.
    current: Cell<Option<&'static Heap<T>>>,
    /// All heaps of this thread: its own, and those of ended threads whose values it freed.
    heaps: RefCell<Vec<&'static Heap<T>>>,
    /// Slots whose values wait to be dropped.
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
    fn named(&self) -> usize {
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

    /// A slot when the current heap is full: from what others gave back, then from another heap, then from the system.
    #[cold]
    fn refill(&self) -> NonNull<Slot<T>> {
        let current = self.current.get().unwrap_or_else(|| {
            let heap = T::arena().heap(self.named());
            self.heaps.borrow_mut().push(heap);
            heap
        });
        for &heap in self.heaps.borrow().iter() {
            // SAFETY: all of these are ours.
            if let Some(slot) = unsafe {
                heap.drain();
                heap.take()
            } {
                self.serve_from(heap);
                return slot;
            }
        }
        self.serve_from(current);
        // SAFETY: the heap is ours.
        unsafe {
            current.grow(T::arena());
            current.take().unwrap_unchecked()
        }
    }

    fn serve_from(&self, heap: &'static Heap<T>) {
        let before = self.current.replace(Some(heap));
        // SAFETY: both are ours.
        unsafe {
            if let Some(before) = before.filter(|&before| !ptr::eq(before, heap)) {
                before.keep(0);
            }
            heap.keep(RESERVE);
        }
    }

    /// Drops the value of a slot whose count fell to zero, now or after those that are being dropped.
    ///
    /// # Safety
    /// The caller held the last count, and has seen what the other holders did.
    #[inline]
    pub unsafe fn retire(&self, slot: NonNull<Slot<T>>) {
        // SAFETY: the slot is the caller's.
        unsafe { slot.as_ref() }.next.set(self.work.replace(slot.as_ptr()));
        if !self.draining.get() {
            self.work_off();
        }
    }

    fn work_off(&self) {
        /// Ends the draining also when a value's `drop` panics; what waits is dropped next time.
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
            // SAFETY: the worklist holds slots that nobody else knows, with their values alive.
            unsafe {
                self.work.set(slot.as_ref().next.get());
                if inherited(slot) {
                    continue;
                }
                drop_value(slot);
                self.free(slot);
            }
            count += 1;
        }
        T::reaped(count);
    }

    #[inline]
    unsafe fn free(&self, slot: NonNull<Slot<T>>) {
        // SAFETY: a slot in use keeps its chunk alive, and each branch has the owner that it needs.
        unsafe {
            let heap = slot.as_ref().chunk.as_ref().heap;
            if !heap.is_owned_by(self.token.get()) {
                if heap.give(slot) && heap.adopt(self.named()) {
                    self.heaps.borrow_mut().push(heap);
                    heap.drain();
                    self.part_with(heap);
                }
                return;
            }
            heap.free(slot);
            if heap.in_use() == 0 {
                self.part_with(heap);
            }
        }
    }

    /// Gives an adopted heap up again once nothing lives in it.
    fn part_with(&self, heap: &'static Heap<T>) {
        if heap.in_use() == 0 && !self.current.get().is_some_and(|current| ptr::eq(current, heap)) {
            self.heaps.borrow_mut().retain(|&other| !ptr::eq(other, heap));
            // SAFETY: it was ours until here.
            unsafe { heap.disown(self.token.get()) };
        }
    }

    /// Takes back what other threads freed, and keeps no reserve.
    pub fn trim(&self) {
        for &heap in self.heaps.borrow().iter() {
            // SAFETY: all of these are ours.
            unsafe {
                heap.drain();
                heap.keep(0);
            }
        }
        if let Some(heap) = self.current.get() {
            // SAFETY: as above.
            unsafe { heap.keep(RESERVE) };
        }
    }
}

impl<T: Pooled> Drop for Local<T> {
    fn drop(&mut self) {
        self.work_off();
        for heap in self.heaps.take() {
            // SAFETY: the thread ends, and hands its heaps to whoever frees their slots or starts next.
            unsafe { heap.disown(self.token.get()) };
        }
    }
}

/// Gives a value to its last owner, if it has one, with a new first handle.
///
/// # Safety
/// The value is alive, and nobody else knows the slot.
#[inline]
unsafe fn inherited<T: Pooled>(slot: NonNull<Slot<T>>) -> bool {
    // SAFETY: by contract.
    let (value, count) = unsafe { ((*slot.as_ref().value.get()).assume_init_mut(), &slot.as_ref().count) };
    let Some(take) = T::last_owner(value) else { return false };
    count.store(1, Ordering::Release);
    take(Ref { slot, owns: PhantomData });
    true
}

/// # Safety
/// The value is alive, and nobody else knows the slot.
unsafe fn drop_value<T: Pooled>(slot: NonNull<Slot<T>>) {
    // SAFETY: by contract. A new generation, so that names of the old value find nothing.
    unsafe {
        let slot = slot.as_ref();
        let generation = slot.generation.load(Ordering::Relaxed);
        slot.generation.store(generation + 1, Ordering::Relaxed);
        (*slot.value.get()).assume_init_drop();
    }
}

/// The worklist of threads that are so far gone that their `Local` is.
pub struct ExitedThreads<T: 'static> {
    state: Mutex<State<T>>,
}

struct State<T: 'static> {
    work: *mut Slot<T>,
    draining: bool,
}

// SAFETY: the slots on the list are held by nobody, and their values may be sent.
unsafe impl<T: Send + 'static> Send for State<T> {}

macro_rules! new_late {
    ($($constness:ident)?) => {
        pub $($constness)? fn new() -> ExitedThreads<T> {
            ExitedThreads { state: Mutex::new(State { work: ptr::null_mut(), draining: false }) }
        }
    };
}

impl<T: Pooled> ExitedThreads<T> {
    #[cfg(not(loom))]
    new_late!(const);
    #[cfg(loom)]
    new_late!();

    #[cold]
    pub fn take(&self, arena: &'static Arena<T>) -> NonNull<Slot<T>> {
        let _only = lock(&self.state);
        let heap = arena.heap(EXITED);
        // SAFETY: `EXITED` owns the heap, and the lock makes us its only bearer.
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
            // SAFETY: as in `Local::work_off`.
            unsafe {
                if inherited(slot) {
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
