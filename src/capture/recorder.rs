//! Captures the kernels of a thread, in the order in which they run.

use crate::base::{Error, Result};
use crate::capture::memory::Lifetime;
use crate::capture::program::{Captured, Unit};
use crate::storage::access::{self, Permit};
use crate::storage::{Storage, WeakStorage, set_capture};
use crate::tensor::Body;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of the next capture; 0 stands for none.
static CAPTURES: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// The list of kernels of a capture that is going on.
pub struct Recorder {
    /// True if kernels also run while they are captured; otherwise only replays run them.
    runs: bool,
    number: u32,
    slots: Vec<Slot>,
    /// The slot of each storage, by its id.
    slot_of: HashMap<usize, usize>,
    units: Vec<Unit>,
}

/// A storage that captured kernels reach.
pub(super) struct Slot {
    pub original: Original,
    /// What kernels get in its place; the original itself if that is on a GPU.
    pub stand_in: Storage,
    /// From the first to the last unit that reaches it.
    pub lifetime: Lifetime,
}

pub(super) enum Original {
    /// It is older than the capture.
    Older(Storage),
    /// It was made in the capture. It is not held, because operators ask whether others hold it.
    Made(WeakStorage),
}

impl Recorder {
    /// The body that a replay uses in place of this one.
    pub fn stand_in(&mut self, body: &Body) -> Result<Body> {
        let memory = body.storage.of_memory();
        let (unit, count) = (self.units.len(), self.slots.len());
        let slot = *self.slot_of.entry(memory.id()).or_insert(count);
        if slot == count {
            let on_host = memory.device().is_cpu();
            let stand_in = if on_host { Storage::stand_in(memory.len()) } else { memory.clone() };
            let lifetime = Lifetime { bytes: memory.len(), first: unit, last: unit };
            let original = match memory.is_made_in(self.number) {
                true => Original::Made(memory.downgrade()),
                false => Original::Older(memory.clone()),
            };
            self.slots.push(Slot { original, stand_in, lifetime });
        }
        let slot_now = &mut self.slots[slot];
        if slot_now.lifetime.bytes != memory.len() {
            return Err(Error::runtime(
                "operation not permitted when stream is capturing: the storage of a tensor was resized",
            ));
        }
        slot_now.lifetime.last = unit;
        Ok(Body { storage: slot_now.stand_in.clone(), ..body.clone() })
    }
}

/// Adds a kernel to this thread's capture: `keep` makes a function of what the kernel keeps. The permit to run the
/// kernel now is `None` if only replays run it.
#[cold]
pub fn record<F>(keep: impl FnOnce(&mut Recorder) -> Result<F>) -> Result<Option<Permit>>
where
    F: Fn() -> Result<()> + Send + Sync + 'static,
{
    RECORDER.with_borrow_mut(|recorder| {
        let Some(recorder) = recorder else { return Err(access::refuse()) };
        let kernel = keep(recorder)?;
        recorder.units.push(Unit::new(Box::new(kernel)));
        Ok(recorder.runs.then(Permit::new))
    })
}

/// Ends the state of this thread; true if elements were reached outside of kernels.
fn leave() -> bool {
    set_capture(0);
    access::end()
}

/// A capture of this thread; dropping it discards what was captured.
pub struct Capture(());

impl Capture {
    /// Begins to capture. If `runs`, kernels run while they are captured.
    pub fn begin(runs: bool) -> Result<Capture> {
        RECORDER.with_borrow_mut(|current| {
            if current.is_some() {
                return Err(Error::runtime("this thread is capturing already"));
            }
            let number = CAPTURES.fetch_add(1, Ordering::Relaxed);
            *current = Some(Recorder {
                runs,
                number,
                slots: Vec::new(),
                slot_of: HashMap::new(),
                units: Vec::new(),
            });
            access::begin();
            set_capture(number);
            Ok(Capture(()))
        })
    }

    /// Ends the capture and places its memory.
    pub fn end(self) -> Result<Captured> {
        let recorder = RECORDER.take();
        let violated = leave();
        std::mem::forget(self);
        match recorder {
            Some(recorder) if !violated => Captured::new(recorder.units, recorder.slots),
            _ => Err(access::refuse()),
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        leave();
        drop(RECORDER.take());
    }
}
