//! A pool of slots for shared values that are made and freed all the time: the nodes of a graph.
//!
//! A value needs no call of the system allocator, lies in memory next to values made at the same time, and is
//! freed without recursion, however long the chain of values that hold one another. Each thread makes values
//! in chunks of its own, so the only atomic read-modify-write of a value is on its reference count. A slot
//! that another thread frees goes to the owner's remote stack; the heap of an ended thread is adopted by the
//! next thread that starts or that frees one of its values. All of the arena's unsafe code is in this folder,
//! and loom checks it (`--cfg loom`).

mod heap;
mod local;
mod sync;
#[cfg(test)]
mod tests;

pub use local::Local;

use heap::{Chunk, Heap, NO_OWNER, Slot};
use local::ExitedThreads;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
pub use sync::LocalKey;
use sync::{AtomicUsize, Mutex, Ordering, fence, lock};

/// A type whose values live in an arena; `pool!` implements it.
///
/// # Safety
/// Both functions always return the same object.
pub unsafe trait Pooled: Send + Sync + Sized + 'static {
    fn arena() -> &'static Arena<Self>;
    fn local() -> &'static LocalKey<Local<Self>>;
    /// Called when this thread has dropped `count` values in one run.
    fn on_dropped(_count: usize) {}
    /// A function that takes over a value whose last handle was dropped; usually there is none.
    fn last_owner(_value: &mut Self) -> Option<fn(Ref<Self>)> {
        None
    }
}

/// `pool!(Node);` gives the type its arena. `pool!(Node, on_dropped, last_owner);` also sets two functions:
/// `on_dropped` is called with the number of values that each run dropped, and `last_owner` with each value whose
/// last handle was dropped; it may return a function that takes the value over.
macro_rules! pool {
    ($type:ty $(, $on_dropped:path, $last_owner:path)?) => {
        // SAFETY: each function returns one static.
        unsafe impl $crate::arena::Pooled for $type {
            $(fn on_dropped(count: usize) {
                $on_dropped(count);
            }

            #[inline]
            fn last_owner(value: &mut Self) -> Option<fn($crate::arena::Ref<Self>)> {
                $last_owner(value)
            })?

            #[cfg(not(loom))]
            fn arena() -> &'static $crate::arena::Arena<Self> {
                static ARENA: $crate::arena::Arena<$type> = $crate::arena::Arena::new();
                &ARENA
            }

            #[cfg(not(loom))]
            fn local() -> &'static $crate::arena::LocalKey<$crate::arena::Local<Self>> {
                thread_local! {
                    static LOCAL: $crate::arena::Local<$type> = const { $crate::arena::Local::new() };
                }
                &LOCAL
            }

            #[cfg(loom)]
            fn arena() -> &'static $crate::arena::Arena<Self> {
                loom::lazy_static! {
                    static ref ARENA: $crate::arena::Arena<$type> = $crate::arena::Arena::new();
                }
                &ARENA
            }

            #[cfg(loom)]
            fn local() -> &'static $crate::arena::LocalKey<$crate::arena::Local<Self>> {
                loom::thread_local! {
                    static LOCAL: $crate::arena::Local<$type> = $crate::arena::Local::new();
                }
                &LOCAL
            }
        }
    };
}
pub(crate) use pool;

/// Puts a value into a slot of this thread.
#[inline]
pub fn insert<T: Pooled>(value: T) -> Ref<T> {
    draft(value).publish()
}

/// Puts a value into a slot of this thread, to be changed before it is shared.
#[inline]
pub fn draft<T: Pooled>(value: T) -> Draft<T> {
    let slot =
        T::local().try_with(Local::take).unwrap_or_else(|_| T::arena().exited_threads.take(T::arena()));
    // SAFETY: a free slot is ours alone.
    unsafe { (*slot.as_ref().value.get()).write(value) };
    Draft { slot, owns: PhantomData }
}

/// A value that is being built: it is in its slot, but has no handle, and no id finds it.
pub struct Draft<T: Pooled> {
    slot: NonNull<Slot<T>>,
    owns: PhantomData<T>,
}

impl<T: Pooled> Draft<T> {
    #[inline]
    pub fn publish(self) -> Ref<T> {
        let slot = ManuallyDrop::new(self).slot;
        // SAFETY: the slot is in use; its count is published with the value written.
        unsafe { slot.as_ref() }.count.store(1, Ordering::Release);
        Ref { slot, owns: PhantomData }
    }
}

impl<T: Pooled> Deref for Draft<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value was written when the draft was made, and is ours alone.
        unsafe { (*self.slot.as_ref().value.get()).assume_init_ref() }
    }
}

impl<T: Pooled> DerefMut for Draft<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { (*self.slot.as_ref().value.get()).assume_init_mut() }
    }
}

impl<T: Pooled> Drop for Draft<T> {
    fn drop(&mut self) {
        retire(self.slot);
    }
}

/// A counted handle, one pointer wide. Dropping the last one drops the value, without recursion, unless the
/// value has a last owner.
pub struct Ref<T: Pooled> {
    slot: NonNull<Slot<T>>,
    owns: PhantomData<T>,
}

// SAFETY: as for `Arc`: handles share the value, and any of them may drop it.
unsafe impl<T: Pooled> Send for Ref<T> {}
// SAFETY: as above.
unsafe impl<T: Pooled> Sync for Ref<T> {}

// A panic leaves the arena consistent, so only the value matters.
impl<T: Pooled + RefUnwindSafe> UnwindSafe for Ref<T> {}
impl<T: Pooled + RefUnwindSafe> RefUnwindSafe for Ref<T> {}

impl<T: Pooled> Ref<T> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: our count keeps the slot in use, and so its chunk alive.
        unsafe { self.slot.as_ref() }
    }

    /// The current number of handles.
    pub fn count(&self) -> usize {
        self.slot().count.load(Ordering::Acquire)
    }

    #[inline]
    pub fn ptr_eq(&self, other: &Ref<T>) -> bool {
        self.slot == other.slot
    }

    /// The value's address, which identifies it while it lives.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.slot().value.get().cast()
    }

    /// The value's id, which outlives it.
    pub fn id(&self) -> Id<T> {
        let chunk = self.slot().chunk;
        // SAFETY: our count keeps the chunk alive, and the slot is one of its slots.
        let place = unsafe { chunk.as_ref().first + Chunk::index(chunk, self.slot) as u64 };
        Id { place, generation: self.slot().generation.load(Ordering::Relaxed), names: PhantomData }
    }

    /// Turns the handle into a pointer to its value, for an `AtomicPtr` or a capsule. `from_raw` turns it
    /// back.
    #[inline]
    pub fn into_raw(self) -> NonNull<T> {
        let slot = ManuallyDrop::new(self).slot;
        // SAFETY: the offset is inside the slot.
        unsafe { slot.byte_add(offset_of!(Slot<T>, value)) }.cast()
    }

    /// # Safety
    /// The pointer comes from `into_raw`, and its count passes to the new handle.
    #[inline]
    pub unsafe fn from_raw(value: NonNull<T>) -> Ref<T> {
        // SAFETY: `into_raw` added the same offset.
        Ref { slot: unsafe { value.byte_sub(offset_of!(Slot<T>, value)) }.cast(), owns: PhantomData }
    }
}

impl<T: Pooled> Deref for Ref<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is alive while a handle is.
        unsafe { (*self.slot().value.get()).assume_init_ref() }
    }
}

impl<T: Pooled> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Ref<T> {
        if self.slot().count.fetch_add(1, Ordering::Relaxed) > usize::MAX / 2 {
            std::process::abort(); // As `Arc` does: only handles leaked in a loop get here.
        }
        Ref { slot: self.slot, owns: PhantomData }
    }
}

impl<T: Pooled> Drop for Ref<T> {
    #[inline]
    fn drop(&mut self) {
        if self.slot().count.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            retire(self.slot);
        }
    }
}

fn retire<T: Pooled>(slot: NonNull<Slot<T>>) {
    // SAFETY: the last handle came here, after an acquire fence.
    unsafe {
        if T::local().try_with(|local| local.retire(slot)).is_err() {
            T::arena().exited_threads.retire(slot);
        }
    }
}

impl<T: Pooled + fmt::Debug> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A value's id. It keeps nothing alive, and is never reused for another value.
pub struct Id<T> {
    place: u64,
    generation: u64,
    names: PhantomData<fn() -> T>,
}

impl<T: Pooled> Id<T> {
    /// The value, if it still lives.
    pub fn upgrade(self) -> Option<Ref<T>> {
        let index = self.place % Chunk::<T>::SLOTS as u64;
        let found = {
            let chunks = lock(&T::arena().chunks);
            let chunk = chunks.alive.get(&(self.place - index))?.0;
            // SAFETY: a chunk is unregistered, under this lock, before it is freed; and the slot was used
            // before.
            let slot = unsafe { Chunk::slot(chunk, index as usize) };
            // SAFETY: as above.
            let count = unsafe { &slot.as_ref().count };
            let more = |count: usize| (count > 0).then_some(count + 1);
            count.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
            Ref { slot, owns: PhantomData }
        };
        // The slot may hold a newer value. Then this handle is dropped, which must happen outside the lock.
        (found.slot().generation.load(Ordering::Relaxed) == self.generation).then_some(found)
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Id<T> {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Id<T>) -> bool {
        (self.place, self.generation) == (other.place, other.generation)
    }
}

impl<T> Eq for Id<T> {}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.place, self.generation).hash(state);
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.place, self.generation)
    }
}

/// The number of values and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Values alive, on all threads.
    pub live: usize,
    /// The number of values for which the chunks have slots.
    pub capacity: usize,
    pub chunks: usize,
    pub bytes: usize,
}

/// Statistics over all threads; exact if no other thread is active.
pub fn stats<T: Pooled>() -> Stats {
    let live = lock(&T::arena().heaps).iter().map(|heap| heap.alive()).sum();
    let chunks = lock(&T::arena().chunks).alive.len();
    Stats { live, capacity: chunks * Chunk::<T>::SLOTS, chunks, bytes: chunks * Chunk::<T>::BYTES }
}

/// Releases this thread's empty chunks beyond its reserve, including those that other threads emptied.
pub fn trim<T: Pooled>() {
    // A thread without a `Local` has no chunks.
    let _ = T::local().try_with(Local::trim);
}

/// The state shared by all threads: the chunks by number, and all heaps.
pub struct Arena<T: 'static> {
    chunks: Mutex<Chunks<T>>,
    heaps: Mutex<Vec<&'static Heap<T>>>,
    exited_threads: ExitedThreads<T>,
    tokens: AtomicUsize,
}

struct Chunks<T: 'static> {
    alive: BTreeMap<u64, Shared<T>>,
    next: u64,
}

struct Shared<T: 'static>(NonNull<Chunk<T>>);

// SAFETY: the map only finds chunks; the rules for using one are those of `Heap`.
unsafe impl<T: Send + Sync + 'static> Send for Shared<T> {}

macro_rules! new_arena {
    ($($constness:ident)?) => {
        #[doc(hidden)]
        pub $($constness)? fn new() -> Arena<T> {
            Arena {
                chunks: Mutex::new(Chunks { alive: BTreeMap::new(), next: 0 }),
                heaps: Mutex::new(Vec::new()),
                exited_threads: ExitedThreads::new(),
                tokens: AtomicUsize::new(local::FIRST),
            }
        }
    };
}

#[allow(clippy::new_without_default, reason = "not for use but by `pool!`")]
impl<T: Pooled> Arena<T> {
    #[cfg(not(loom))]
    new_arena!(const);
    #[cfg(loom)]
    new_arena!();

    /// A heap without an owner, or a new one. Heaps are never freed: there are as many as the greatest number
    /// of simultaneous threads.
    #[cold]
    fn heap(&self, token: usize) -> &'static Heap<T> {
        let mut heaps = lock(&self.heaps);
        if let Some(heap) = heaps.iter().find(|heap| heap.is_owned_by(NO_OWNER) && heap.adopt(token)) {
            return heap;
        }
        let heap = Box::leak(Box::new(Heap::new(token)));
        heaps.push(heap);
        heap
    }

    fn new_token(&self) -> usize {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    fn register(&self, create: impl FnOnce(u64) -> NonNull<Chunk<T>>) -> NonNull<Chunk<T>> {
        let mut chunks = lock(&self.chunks);
        let first = chunks.next;
        chunks.next += Chunk::<T>::SLOTS as u64;
        let chunk = create(first);
        chunks.alive.insert(first, Shared(chunk));
        chunk
    }

    fn unregister(&self, first: u64) {
        lock(&self.chunks).alive.remove(&first);
    }
}
