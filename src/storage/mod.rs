//! Reference-counted bytes on the host or on the GPU, with a version counter for in-place writes. All views
//! of a tensor share one storage; a saved tensor compares versions to detect that it was overwritten.

pub mod access;
pub mod epoch;
pub mod host;
pub mod reserve;
mod resize;
mod shared_state;
mod stand_in;

#[cfg(not(feature = "gpu"))]
use crate::base::Error;
use crate::base::{Device, Result, profile};
#[cfg(feature = "gpu")]
use crate::gpu;
use host::Block;
pub use resize::Exported;
use resize::Replaceable;
#[cfg(feature = "gpu")]
use resize::ReplaceableBuffer;
use shared_state::{IN_SHARED_STATE, SharedState};
pub use shared_state::{Member, MemberFacts};
pub use stand_in::WeakStorage;
use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The version of a storage without a version counter: it was made in inference mode.
pub const UNTRACKED: u32 = u32::MAX;
/// The label of an alias that counts writes although its bytes were made in inference mode. (Labels of
/// aliases are not read otherwise.)
const COUNTED: u32 = u32::MAX;

/// The initial values of a thread's new storages.
#[derive(Clone, Copy)]
struct InitialState {
    version: u32,
    label: u32,
    capture: u32,
}

impl InitialState {
    const DEFAULT: InitialState = InitialState { version: 0, label: 0, capture: 0 };
}

thread_local! {
    static INITIAL: Cell<InitialState> = const { Cell::new(InitialState::DEFAULT) };
}

/// Moves this thread's initial values into the returned closure, which sets them in the thread that calls it.
pub fn hand_over() -> impl FnOnce() + Send {
    let first = INITIAL.replace(InitialState::DEFAULT);
    move || INITIAL.set(first)
}

/// Sets whether this thread's new storages count writes.
pub fn track_versions(on: bool) {
    INITIAL.set(InitialState { version: if on { 0 } else { UNTRACKED }, ..INITIAL.get() });
}

/// Sets the label of this thread's new storages: a number by which the caller recognizes them. It is 0 at
/// first.
pub fn set_label(label: u32) {
    INITIAL.set(InitialState { label, ..INITIAL.get() });
}

/// Sets the capture in which this thread's new storages are made; 0 for none.
pub fn set_capture(capture: u32) {
    INITIAL.set(InitialState { capture, ..INITIAL.get() });
}

/// The label of this thread's new storages.
#[inline]
pub fn label() -> u32 {
    INITIAL.get().label
}

#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    bytes: Bytes,
    /// For an alias, the length when it was made.
    len: AtomicUsize,
    device: Device,
    /// The number of writes; [`IN_SHARED_STATE`] or more if the shared state counts them.
    version: AtomicU32,
    /// The thread's label when the storage was made.
    label: u32,
    shared_state: OnceLock<Arc<SharedState>>,
    /// Flags for code outside that reads or writes these bytes, see [`Exported`].
    exported: AtomicU8,
    /// The capture in which it was made; 0 if none. The elements of such a storage come from captured kernels alone.
    capture: u32,
    /// The name of the derivative of the last recorded in-place write, for errors.
    writer: AtomicPtr<&'static str>,
}

enum Bytes {
    Host(Replaceable),
    /// Memory with another owner (a NumPy array, a DLPack capsule), which is dropped with the storage.
    Borrowed {
        memory: Replaceable,
        _owner: Box<dyn Any + Send + Sync>,
    },
    #[cfg(feature = "gpu")]
    Gpu(ReplaceableBuffer),
    /// The bytes of another storage, with a version counter of its own (`x.data`).
    Alias(Storage),
    /// No memory: the values of a batched tensor are in its physical tensor.
    Nowhere,
    /// No memory, only a length: device `meta`.
    Meta,
}

// SAFETY: the borrowed pointer is kept alive by its owner, which is itself Send and Sync; the rest already
// is.
unsafe impl Send for Inner {}
// SAFETY: as above. Concurrent writes through tensors are the user's race, as in PyTorch, and never affect
// our own metadata.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        match self.bytes {
            Bytes::Host(_) => profile::memory(*self.len.get_mut(), false, false),
            #[cfg(feature = "gpu")]
            Bytes::Gpu(_) => profile::memory(*self.len.get_mut(), false, true),
            Bytes::Borrowed { .. } | Bytes::Alias(_) | Bytes::Nowhere | Bytes::Meta => {}
        }
    }
}

impl Storage {
    /// `len` uninitialised bytes on `device`.
    pub fn new(len: usize, device: Device) -> Result<Storage> {
        let bytes = match device {
            Device::Meta => return Ok(Storage::from_bytes(Bytes::Meta, len, device)),
            Device::Cpu => Bytes::Host(Block::new(len, false)?.into()),
            #[cfg(feature = "gpu")]
            Device::Gpu(_, index) => {
                if index > 0 {
                    gpu::check_ordinal(index)?;
                }
                Bytes::Gpu(gpu::alloc(len)?.into())
            }
            #[cfg(not(feature = "gpu"))]
            Device::Gpu(..) => return Err(Error::runtime("this build of gradiron has no GPU support")),
        };
        profile::memory(len, true, !device.is_cpu());
        Ok(Storage::from_bytes(bytes, len, device))
    }

    /// `len` zero bytes on the host.
    pub fn zeroed(len: usize) -> Result<Storage> {
        let block = Block::new(len, true)?;
        profile::memory(len, true, false);
        Ok(Storage::from_bytes(Bytes::Host(block.into()), len, Device::Cpu).with_elements())
    }

    /// A new storage whose elements no captured kernel wrote.
    fn with_elements(mut self) -> Storage {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.capture = 0;
        }
        self
    }

    /// Host memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `ptr` is valid for reads and writes of `len` bytes for as long as `owner` lives.
    pub unsafe fn borrowed(ptr: *mut u8, len: usize, owner: Box<dyn Any + Send + Sync>) -> Storage {
        let bytes = Bytes::Borrowed { memory: Replaceable::foreign(ptr), _owner: owner };
        Storage::from_bytes(bytes, len, Device::Cpu).with_elements()
    }

    #[cfg(feature = "gpu")]
    pub fn from_gpu(buffer: gpu::Buffer, len: usize, device: Device) -> Storage {
        profile::memory(len, true, true);
        Storage::from_bytes(Bytes::Gpu(buffer.into()), len, device)
    }

    /// A storage without bytes, for a tensor whose values are elsewhere.
    pub fn nowhere(device: Device) -> Storage {
        Storage::from_bytes(Bytes::Nowhere, 0, device)
    }

    pub fn is_nowhere(&self) -> bool {
        matches!(self.root().0.bytes, Bytes::Nowhere)
    }

    #[inline]
    fn from_bytes(bytes: Bytes, len: usize, device: Device) -> Storage {
        let first = INITIAL.get();
        Storage(Arc::new(Inner {
            bytes,
            len: AtomicUsize::new(len),
            device,
            version: AtomicU32::new(first.version),
            label: first.label,
            shared_state: OnceLock::new(),
            exported: AtomicU8::new(0),
            capture: first.capture,
            writer: AtomicPtr::default(),
        }))
    }

    /// An alias with a version counter of its own: saved tensors do not notice writes through it.
    pub fn alias(&self) -> Storage {
        let root = self.root().clone();
        let (untracked, len) = (root.is_untracked(), root.len());
        let alias = Storage::from_bytes(Bytes::Alias(root), len, self.0.device);
        match untracked {
            true if alias.version() == UNTRACKED => {}
            true => alias.count_separately(),
            false => alias.0.version.store(0, Ordering::Relaxed),
        }
        alias
    }

    /// An alias that counts writes, although the bytes were made in inference mode.
    pub fn counted(&self) -> Storage {
        let mut alias = Storage::from_bytes(Bytes::Alias(self.root().clone()), self.len(), self.0.device);
        alias.count_separately();
        if let Some(inner) = Arc::get_mut(&mut alias.0) {
            inner.label = COUNTED;
        }
        alias
    }

    /// These bytes without a version counter, for a view of an inference tensor.
    pub fn uncounted(&self) -> Storage {
        self.root().clone()
    }

    fn root(&self) -> &Storage {
        match &self.0.bytes {
            Bytes::Alias(root) => root,
            _ => self,
        }
    }

    pub fn len(&self) -> usize {
        self.root().0.len.load(Ordering::Relaxed)
    }

    /// The label that the bytes got when they were made.
    pub fn label(&self) -> u32 {
        self.root().0.label
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The start of the host bytes; `None` for GPU storage.
    #[inline]
    pub fn host(&self) -> Option<*mut u8> {
        if access::is_captured() {
            access::note_access();
        }
        match &self.root().0.bytes {
            Bytes::Host(memory) | Bytes::Borrowed { memory, .. } => Some(memory.start()),
            Bytes::Alias(_) | Bytes::Nowhere | Bytes::Meta => None,
            #[cfg(feature = "gpu")]
            Bytes::Gpu(_) => None,
        }
    }

    #[cfg(feature = "gpu")]
    pub fn gpu(&self) -> Option<&gpu::Buffer> {
        if access::is_captured() {
            access::note_access();
        }
        match &self.root().0.bytes {
            Bytes::Gpu(buffer) => Some(buffer.get()),
            _ => None,
        }
    }

    #[inline]
    pub fn version(&self) -> u32 {
        let version = self.0.version.load(Ordering::Relaxed);
        if version < IN_SHARED_STATE { version } else { self.counter().load(Ordering::Relaxed) }
    }

    /// Counts one in-place write.
    #[inline]
    pub fn bump(&self) {
        let counter = if self.0.version.load(Ordering::Relaxed) < IN_SHARED_STATE {
            &self.0.version
        } else {
            self.counter()
        };
        if counter.load(Ordering::Relaxed) != UNTRACKED {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// True if these bytes were made in inference mode.
    #[inline]
    pub fn is_of_inference(&self) -> bool {
        self.0.version.load(Ordering::Relaxed) >= IN_SHARED_STATE
            && self.root().0.version.load(Ordering::Relaxed) == UNTRACKED
    }

    /// True if these bytes were made in inference mode and writes to them are not counted.
    #[inline]
    pub fn is_untracked(&self) -> bool {
        self.is_of_inference() && self.0.label != COUNTED
    }

    pub fn set_version(&self, version: u32) {
        let counter = self.counter();
        if counter.load(Ordering::Relaxed) != UNTRACKED {
            counter.store(version, Ordering::Relaxed);
        }
    }

    /// Records the operator of the last recorded in-place write.
    pub fn written_by(&self, name: &'static &'static str) {
        self.0.writer.store(std::ptr::from_ref(name).cast_mut(), Ordering::Release);
    }

    pub fn last_writer(&self) -> Option<&'static str> {
        // SAFETY: null, or made from a static reference, and never written through.
        unsafe { self.0.writer.load(Ordering::Acquire).as_ref() }.copied()
    }

    /// True if both have the same bytes and the same version counter.
    pub fn is(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True if both have the same bytes.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.root().0, &other.root().0)
    }

    /// True if there is no other handle.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !matches!(self.0.bytes, Bytes::Alias(_))
    }

    /// The number of handles.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// A number that identifies this storage while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.root().0) as usize
    }
}
