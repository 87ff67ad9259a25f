//! Chunks of slots, and the heap that owns them. A heap belongs to one thread at a time, and only that thread
//! touches its cells; other threads may only push freed slots onto its remote stack.

use super::sync::{AtomicPtr, AtomicU64, AtomicUsize, Cell, Ordering, fence};
use super::{Arena, Pooled};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The size of a chunk: large enough to make system allocations rare, small enough to become empty.
const CHUNK_BYTES: usize = 64 * 1024;

/// The owner of a heap whose thread has ended.
pub const NO_OWNER: usize = 0;

/// One value with its reference count. `next` links the slot into exactly one list: free, work or remote.
#[repr(C)]
pub struct Slot<T: 'static> {
    pub count: AtomicUsize,
    pub generation: AtomicU64,
    pub next: Cell<*mut Slot<T>>,
    pub chunk: NonNull<Chunk<T>>,
    pub value: UnsafeCell<MaybeUninit<T>>,
}

/// The head of an allocation that continues with `Chunk::SLOTS` slots.
pub struct Chunk<T: 'static> {
    pub heap: &'static Heap<T>,
    /// The number of the first slot. Numbers are never reused, so that an id of a freed slot finds nothing.
    pub first: u64,
    free: Cell<*mut Slot<T>>,
    /// Slots from here on have never been written.
    fresh: Cell<usize>,
    used: Cell<usize>,
    /// Neighbours in the heap's list of chunks with free slots.
    previous: Cell<*mut Chunk<T>>,
    next: Cell<*mut Chunk<T>>,
}

impl<T: 'static> Chunk<T> {
    pub const SLOTS: usize = if cfg!(loom) {
        2
    } else {
        let fit = CHUNK_BYTES / size_of::<Slot<T>>();
        if fit < 8 { 8 } else { fit }
    };

    /// The layout of the allocation, and the offset of its first slot.
    const PLACE: (Layout, usize) = {
        let slot = Layout::new::<Slot<T>>();
        let head = Layout::new::<Chunk<T>>();
        let start = head.size().next_multiple_of(slot.align());
        let align = if head.align() > slot.align() { head.align() } else { slot.align() };
        match Layout::from_size_align(start + slot.size() * Self::SLOTS, align) {
            Ok(layout) => (layout, start),
            Err(_) => panic!("a chunk of such values does not fit into memory"),
        }
    };

    /// The bytes of one chunk, slots included.
    pub const BYTES: usize = Self::PLACE.0.size();

    fn create(heap: &'static Heap<T>, first: u64) -> NonNull<Chunk<T>> {
        // SAFETY: the layout is not empty, because the head is not.
        let memory = unsafe { std::alloc::alloc(Self::PLACE.0) }.cast::<Chunk<T>>();
        let Some(chunk) = NonNull::new(memory) else { std::alloc::handle_alloc_error(Self::PLACE.0) };
        let head = Chunk {
            heap,
            first,
            free: Cell::new(ptr::null_mut()),
            fresh: Cell::new(0),
            used: Cell::new(0),
            previous: Cell::new(ptr::null_mut()),
            next: Cell::new(ptr::null_mut()),
        };
        // SAFETY: new memory with the right layout.
        unsafe { chunk.write(head) };
        chunk
    }

    /// # Safety
    /// The chunk and its slots are no longer used.
    unsafe fn destroy(chunk: NonNull<Chunk<T>>) {
        // SAFETY: by contract, and `create` allocated it with this layout.
        unsafe { std::alloc::dealloc(chunk.as_ptr().cast(), Self::PLACE.0) };
    }

    /// # Safety
    /// `chunk` is alive and `index < SLOTS`.
    pub unsafe fn slot(chunk: NonNull<Chunk<T>>, index: usize) -> NonNull<Slot<T>> {
        // SAFETY: inside the allocation, aligned by `PLACE`.
        unsafe { chunk.byte_add(Self::PLACE.1).cast::<Slot<T>>().add(index) }
    }

    /// The index of `slot` in its chunk.
    ///
    /// # Safety
    /// `slot` belongs to `chunk`, which is alive.
    pub unsafe fn index(chunk: NonNull<Chunk<T>>, slot: NonNull<Slot<T>>) -> usize {
        (slot.addr().get() - chunk.addr().get() - Self::PLACE.1) / size_of::<Slot<T>>()
    }
}

/// The chunks of one thread.
pub struct Heap<T: 'static> {
    /// The token of the thread that owns the cells below, or `NO_OWNER`.
    owner: AtomicUsize,
    /// Slots that other threads freed: a stack that is only taken as a whole.
    remote: AtomicPtr<Slot<T>>,
    /// The number of slots that are on the remote stack or about to be pushed.
    pending: AtomicUsize,
    /// Slots in use, including remote ones. Only the owner writes it.
    live: AtomicUsize,
    /// Chunks with free slots. Allocation uses the first.
    with_space: Cell<*mut Chunk<T>>,
    /// The number of empty chunks, and how many of them to keep.
    empty: Cell<usize>,
    reserve: Cell<usize>,
}

// SAFETY: only the owner touches the cells, and ownership is passed on with acquire and release.
unsafe impl<T: Send + 'static> Sync for Heap<T> {}

impl<T: Pooled> Heap<T> {
    pub fn new(owner: usize) -> Heap<T> {
        Heap {
            owner: AtomicUsize::new(owner),
            remote: AtomicPtr::new(ptr::null_mut()),
            pending: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            with_space: Cell::new(ptr::null_mut()),
            empty: Cell::new(0),
            reserve: Cell::new(0),
        }
    }

    /// True if the thread with this token owns the heap. Only for the calling thread's own token does the
    /// answer stay true.
    #[inline]
    pub fn is_owned_by(&self, token: usize) -> bool {
        self.owner.load(Ordering::Relaxed) == token
    }

    /// Takes the heap over if it has no owner.
    pub fn adopt(&self, token: usize) -> bool {
        self.is_owned_by(NO_OWNER)
            && self.owner.compare_exchange(NO_OWNER, token, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the heap up with an empty remote stack, or leaves it to a thread that adopted it meanwhile.
    ///
    /// # Safety
    /// The calling thread owns the heap, under `token`.
    pub unsafe fn disown(&self, token: usize) {
        loop {
            // SAFETY: we own the heap, here and after each `adopt`.
            unsafe {
                self.keep(0);
                self.drain();
            }
            self.owner.store(NO_OWNER, Ordering::Release);
            // Pairs with the fence in `give`: either we see its slot, or it sees that the heap has no owner.
            fence(Ordering::SeqCst);
            if self.remote.load(Ordering::Relaxed).is_null() || !self.adopt(token) {
                return;
            }
        }
    }

    /// Frees a slot of a heap that another thread owns. Returns true if no thread owns it: then the caller
    /// must adopt it.
    ///
    /// # Safety
    /// The slot belongs to this heap, its value is dropped, and no other thread can reach it.
    pub unsafe fn give(&self, slot: NonNull<Slot<T>>) -> bool {
        self.pending.fetch_add(1, Ordering::Relaxed);
        let mut head = ptr::null_mut(); // A guess; the exchange corrects it.
        loop {
            // SAFETY: the slot is ours until the exchange succeeds.
            unsafe { slot.as_ref() }.next.set(head);
            match self.remote.compare_exchange_weak(head, slot.as_ptr(), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        fence(Ordering::SeqCst);
        self.is_owned_by(NO_OWNER)
    }

    /// Takes back the slots that other threads freed.
    ///
    /// # Safety
    /// The calling thread owns the heap.
    pub unsafe fn drain(&self) {
        if self.remote.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut next = self.remote.swap(ptr::null_mut(), Ordering::Acquire);
        let mut count = 0;
        while let Some(slot) = NonNull::new(next) {
            // SAFETY: the slots on the stack are unused and belong to this heap.
            unsafe {
                next = slot.as_ref().next.get();
                self.free(slot);
            }
            count += 1;
        }
        self.pending.fetch_sub(count, Ordering::Relaxed);
    }

    /// A slot for a new value, if a chunk has a free one.
    ///
    /// # Safety
    /// The calling thread owns the heap.
    #[inline]
    pub unsafe fn take(&self) -> Option<NonNull<Slot<T>>> {
        let chunk = NonNull::new(self.with_space.get())?;
        // SAFETY: chunks on the list are alive and have free slots; we own their cells.
        unsafe {
            let head = chunk.as_ref();
            let slot = match NonNull::new(head.free.get()) {
                Some(slot) => {
                    head.free.set(slot.as_ref().next.get());
                    slot
                }
                None => Self::init_slot(chunk),
            };
            let used = head.used.get();
            head.used.set(used + 1);
            if used == 0 {
                self.empty.set(self.empty.get() - 1);
            }
            if used + 1 == Chunk::<T>::SLOTS {
                self.unlink(chunk);
            }
            self.count(1);
            Some(slot)
        }
    }

    /// Initializes a slot at its first use.
    ///
    /// # Safety
    /// The heap is ours, and the chunk has a slot that was never used.
    unsafe fn init_slot(chunk: NonNull<Chunk<T>>) -> NonNull<Slot<T>> {
        // SAFETY: by contract the index is in range.
        unsafe {
            let index = chunk.as_ref().fresh.get();
            chunk.as_ref().fresh.set(index + 1);
            let slot = Chunk::slot(chunk, index);
            slot.write(Slot {
                count: AtomicUsize::new(0),
                generation: AtomicU64::new(0),
                next: Cell::new(ptr::null_mut()),
                chunk,
                value: UnsafeCell::new(MaybeUninit::uninit()),
            });
            slot
        }
    }

    /// Frees a slot. Releases its chunk if that becomes empty and the reserve is full.
    ///
    /// # Safety
    /// The calling thread owns the heap, to which the slot belongs. Its value is dropped, and no other thread
    /// can reach it.
    #[inline]
    pub unsafe fn free(&self, slot: NonNull<Slot<T>>) {
        // SAFETY: a slot in use keeps its chunk alive; we own the chunk's cells.
        unsafe {
            let chunk = slot.as_ref().chunk;
            let head = chunk.as_ref();
            slot.as_ref().next.set(head.free.get());
            head.free.set(slot.as_ptr());
            let used = head.used.get() - 1;
            head.used.set(used);
            self.count(usize::MAX);
            if used + 1 == Chunk::<T>::SLOTS {
                self.link(chunk);
            }
            if used == 0 {
                self.empty.set(self.empty.get() + 1);
                if self.empty.get() > self.reserve.get() {
                    self.release(chunk);
                }
            }
        }
    }

    /// Adds a chunk.
    ///
    /// # Safety
    /// The calling thread owns the heap.
    #[cold]
    pub unsafe fn grow(&'static self, arena: &Arena<T>) {
        let chunk = arena.register(|first| Chunk::create(self, first));
        self.empty.set(self.empty.get() + 1);
        // SAFETY: we own the heap, and the chunk is on no list yet.
        unsafe { self.link(chunk) };
    }

    /// Sets how many empty chunks to keep, and releases the others.
    ///
    /// # Safety
    /// The calling thread owns the heap.
    pub unsafe fn keep(&self, reserve: usize) {
        self.reserve.set(reserve);
        let mut next = self.with_space.get();
        while let Some(chunk) = NonNull::new(next).filter(|_| self.empty.get() > reserve) {
            // SAFETY: chunks on the list are alive, and an empty one is released after its link was read.
            unsafe {
                next = chunk.as_ref().next.get();
                if chunk.as_ref().used.get() == 0 {
                    self.release(chunk);
                }
            }
        }
    }

    #[cold]
    unsafe fn release(&self, chunk: NonNull<Chunk<T>>) {
        self.empty.set(self.empty.get() - 1);
        // SAFETY: the chunk is on our heap's list, all its slots are free, and no id finds it any more.
        unsafe {
            self.unlink(chunk);
            T::arena().unregister(chunk.as_ref().first);
            Chunk::destroy(chunk);
        }
    }

    unsafe fn link(&self, chunk: NonNull<Chunk<T>>) {
        let next = self.with_space.replace(chunk.as_ptr());
        // SAFETY: chunks on the list are alive, and we own their cells.
        unsafe {
            chunk.as_ref().previous.set(ptr::null_mut());
            chunk.as_ref().next.set(next);
            if let Some(next) = next.as_ref() {
                next.previous.set(chunk.as_ptr());
            }
        }
    }

    unsafe fn unlink(&self, chunk: NonNull<Chunk<T>>) {
        // SAFETY: as in `link`.
        unsafe {
            let (previous, next) = (chunk.as_ref().previous.get(), chunk.as_ref().next.get());
            match previous.as_ref() {
                Some(previous) => previous.next.set(next),
                None => self.with_space.set(next),
            }
            if let Some(next) = next.as_ref() {
                next.previous.set(previous);
            }
        }
    }

    /// Adds to `live`, modulo 2⁶⁴. Only the owner writes, so a load and a store suffice.
    #[inline]
    fn count(&self, change: usize) {
        self.live.store(self.live.load(Ordering::Relaxed).wrapping_add(change), Ordering::Relaxed);
    }

    /// The number of slots in use, as far as the owner knows.
    pub fn in_use(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The number of values alive, without those on the remote stack.
    pub fn alive(&self) -> usize {
        self.in_use().saturating_sub(self.pending.load(Ordering::Relaxed))
    }
}
