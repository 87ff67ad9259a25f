//! Captures the kernels of a thread, in the order in which they run.

use crate::base::{Error, Result};
use crate::capture::pointwise::{At, Input, Pointwise, Source};
use crate::capture::program::{Captured, Unit};
use crate::cpu::group::code::Formula;
use crate::storage::access::{self, Permit};
use crate::storage::{Storage, WeakStorage, set_capture};
use crate::tensor::Body;
use smallvec::SmallVec;
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
    /// What the next unit reaches, the bytes of its arguments there, and what it computes.
    reaches: SmallVec<[usize; 4]>,
    bytes: usize,
    described: Option<Pointwise>,
}

/// A storage that captured kernels reach.
pub(super) struct Slot {
    pub original: Original,
    /// What kernels get in its place; the original itself if that is on a GPU.
    pub stand_in: Storage,
    pub bytes: usize,
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
        self.bytes += body.numel() * body.dtype.size();
        self.at(body).map(|at| at.body)
    }

    fn at(&mut self, body: &Body) -> Result<At> {
        let (memory, count) = (body.storage.of_memory(), self.slots.len());
        let slot = *self.slot_of.entry(memory.id()).or_insert(count);
        if slot == count {
            let on_host = memory.device().is_cpu();
            let stand_in = if on_host { Storage::stand_in(memory.len()) } else { memory.clone() };
            let original = match memory.is_made_in(self.number) {
                true => Original::Made(memory.downgrade()),
                false => Original::Older(memory.clone()),
            };
            self.slots.push(Slot { original, stand_in, bytes: memory.len() });
        }
        let slot_now = &self.slots[slot];
        if slot_now.bytes != memory.len() {
            return Err(Error::runtime(
                "operation not permitted when stream is capturing: the storage of a tensor was resized",
            ));
        }
        if !self.reaches.contains(&slot) {
            self.reaches.push(slot);
        }
        Ok(At { slot, body: Body { storage: slot_now.stand_in.clone(), ..body.clone() } })
    }

    /// Says what the kernel that is recorded next computes, so that it can join a group.
    fn describe(&mut self, formula: Formula, out: &Body, inputs: &[Input]) -> Result<()> {
        let on_host = |input: &Input| !matches!(input, Input::Body(body) if !body.device().is_cpu());
        if out.device().is_cpu() && inputs.iter().all(on_host) {
            let source = |input: &Input| match input {
                Input::Body(body) => self.at(body).map(Source::Body),
                Input::Number(number) => Ok(Source::Number(*number)),
            };
            let inputs = inputs.iter().map(source).collect::<Result<_>>()?;
            self.described = Some(Pointwise { formula, out: self.at(out)?, inputs });
        }
        Ok(())
    }
}

/// Says what the kernel that this thread captures next computes, so that it can join a group.
#[cold]
pub fn describe(formula: Formula, out: &Body, inputs: &[Input]) -> Result<()> {
    RECORDER.with_borrow_mut(|recorder| match recorder {
        Some(recorder) => recorder.describe(formula, out, inputs),
        None => Ok(()),
    })
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
        let kernel = keep(recorder);
        let (reaches, bytes) = (std::mem::take(&mut recorder.reaches), std::mem::take(&mut recorder.bytes));
        let pointwise = recorder.described.take();
        recorder.units.push(Unit::new(Box::new(kernel?), reaches, bytes, pointwise));
        Ok(recorder.runs.then(Permit::new))
    })
}

/// Runs a kernel. If this thread captures, the kernel is added to the capture: `keep` makes a function of its arguments
/// that a replay calls.
#[inline]
pub fn run<F>(
    keep: impl FnOnce(&mut Recorder) -> Result<F>,
    kernel: impl FnOnce() -> Result<()>,
) -> Result<()>
where
    F: Fn() -> Result<()> + Send + Sync + 'static,
{
    let _permit = if access::is_captured() {
        match record(keep)? {
            Some(permit) => Some(permit),
            None => return Ok(()),
        }
    } else {
        None
    };
    kernel()
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
                reaches: SmallVec::new(),
                bytes: 0,
                described: None,
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
