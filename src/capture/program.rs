//! Captured kernels with their memory, and the graph of `torch.cuda.CUDAGraph`, which replays them on the same tensors.

use crate::base::{Device, Error, Result, SourceLine, lock, signals};
use crate::capture::decision::Decision;
use crate::capture::group::{Compiled, Counts, Facts, fuse};
use crate::capture::memory::{self, Lifetime};
use crate::capture::pointwise::Pointwise;
use crate::capture::recorder::{Original, Slot};
use crate::storage::Storage;
use smallvec::SmallVec;
use std::sync::{Mutex, MutexGuard, TryLockError};

type Kernel = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// One kernel with its arguments.
pub(super) struct Unit {
    pub run: Kernel,
    /// The line of the user's program that captured it.
    pub line: Option<SourceLine>,
    /// The slots that it reaches, those of them that it may write, and the bytes of its arguments there.
    pub reaches: SmallVec<[usize; 4]>,
    pub writes: SmallVec<[usize; 2]>,
    pub bytes: usize,
    /// What it computes, if groups can compute it.
    pub pointwise: Option<Pointwise>,
    /// What the call decided there; the unit does nothing else.
    pub decision: Option<Decision>,
}

impl Unit {
    pub fn run(&self) -> Result<()> {
        (self.run)()
    }

    /// A group in place of this unit, which is its first.
    pub fn replaced(self, group: Compiled) -> Unit {
        Unit { run: group.run, reaches: group.reaches, bytes: group.bytes, pointwise: None, ..self }
    }
}

/// A slot of a finished capture.
pub(super) struct Place {
    pub stand_in: Storage,
    /// True if only kernels of the capture reach it, so that its memory is placed here.
    pub is_inside: bool,
    pub bytes: usize,
    /// The address of memory that another slot's may overlap in each replay.
    pub address: Option<usize>,
}

/// How far a run came.
#[derive(PartialEq, Eq)]
pub(super) enum Ran {
    All,
    /// Until a decision that went another way than in the captured call.
    UntilDecision,
}

/// Kernels between two checks for Ctrl-C.
const PATIENCE: usize = 256;

/// Kernels in their order, and the memory that only they reach.
pub(super) struct Kernels {
    units: Vec<Unit>,
    arena: Option<Storage>,
    /// The number of kernels that were captured, and what joining them to groups did.
    captured: usize,
    counts: Counts,
}

/// An error of a kernel, and the line that captured the kernel.
pub struct Failed {
    pub error: Error,
    pub line: Option<SourceLine>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { error, line: None }
    }
}

impl Kernels {
    /// Places the storages that only these kernels reach in one block. `slots` are all that they reach, in the order of
    /// the capture.
    pub fn new(units: Vec<Unit>, slots: &[Place]) -> Result<Kernels> {
        let captured = units.iter().filter(|unit| unit.decision.is_none()).count();
        let facts = |slot: &Place| Facts {
            outside: !slot.is_inside,
            bytes: slot.bytes,
            address: slot.address,
            stand_in: slot.stand_in.clone(),
        };
        let facts: Vec<Facts> = slots.iter().map(facts).collect();
        let (units, counts) = fuse(units, &facts);
        let (mut inside, mut lifetimes) = (Vec::new(), Vec::new());
        for (slot, lifetime) in slots.iter().zip(when_reached(&units, &facts)) {
            if let (true, Some(lifetime)) = (slot.is_inside, lifetime) {
                inside.push(slot);
                lifetimes.push(lifetime);
            }
        }
        let (places, bytes) = memory::place(&lifetimes);
        let arena = if bytes > 0 { Some(Storage::new(bytes, Device::Cpu)?) } else { None };
        if let Some(start) = arena.as_ref().and_then(Storage::host) {
            for (slot, place) in inside.iter().zip(places) {
                // SAFETY: a new stand-in, which no kernel uses yet; its place lies in the block, which lives as long
                // as the units that reach it.
                unsafe { slot.stand_in.set_start(start.add(place)) };
            }
        }
        Ok(Kernels { units, arena, captured, counts })
    }

    /// The number of kernels that were captured.
    pub fn len(&self) -> usize {
        self.captured
    }

    /// The number of decisions.
    pub fn decisions(&self) -> usize {
        self.units.iter().filter(|unit| unit.decision.is_some()).count()
    }

    /// The number of kernels and groups that run.
    pub fn units(&self) -> usize {
        self.units.len() - self.decisions()
    }

    /// What joining kernels to groups did.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The bytes of memory that only these kernels reach.
    pub fn bytes(&self) -> usize {
        self.arena.as_ref().map_or(0, Storage::len)
    }

    /// Runs all kernels.
    pub fn run(&self) -> std::result::Result<Ran, Failed> {
        for (at, unit) in self.units.iter().enumerate() {
            if at % PATIENCE == PATIENCE - 1 {
                signals::check()?;
            }
            let failed = |error| Failed { error, line: unit.line.clone() };
            match &unit.decision {
                None => unit.run().map_err(failed)?,
                Some(decision) if decision.holds().map_err(failed)? => {}
                Some(_) => return Ok(Ran::UntilDecision),
            }
        }
        Ok(Ran::All)
    }
}

/// Locks for one run what only one thread may have; `None` while another one has it.
pub(super) fn enter<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(_)) => Some(lock(mutex)),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A captured graph: kernels that run again on the same tensors.
pub struct Captured {
    kernels: Kernels,
    /// Held by the thread that replays.
    running: Mutex<()>,
    /// Storages of the host that outlive a replay, and what stands for them.
    outside: Vec<(Storage, Storage)>,
}

impl Captured {
    pub(super) fn new(units: Vec<Unit>, slots: Vec<Slot>) -> Result<Captured> {
        let (mut outside, mut places) = (Vec::new(), Vec::new());
        for Slot { original, stand_in, bytes, .. } in slots {
            let original = match original {
                Original::Held(storage) => Some(storage),
                Original::Older(storage) | Original::Made(storage) => storage.upgrade(),
            };
            let is_on_host = stand_in.device().is_cpu();
            places.push(Place {
                stand_in: stand_in.clone(),
                is_inside: is_on_host && original.is_none(),
                bytes,
                address: original.as_ref().and_then(Storage::address),
            });
            outside.extend(original.filter(|_| is_on_host).map(|original| (stand_in, original)));
        }
        Ok(Captured { kernels: Kernels::new(units, &places)?, running: Mutex::new(()), outside })
    }

    /// The number of kernels.
    pub fn kernels(&self) -> usize {
        self.kernels.len()
    }

    /// The number of kernels and groups that a replay runs.
    pub fn units(&self) -> usize {
        self.kernels.units()
    }

    /// What joining kernels to groups did.
    pub fn counts(&self) -> Counts {
        self.kernels.counts()
    }

    /// The bytes of memory that only these kernels reach.
    pub fn bytes(&self) -> usize {
        self.kernels.bytes()
    }

    /// Runs all kernels again.
    pub fn replay(&self) -> Result<()> {
        let Some(_running) = enter(&self.running) else {
            return Err(Error::runtime("this graph is being replayed by another thread"));
        };
        for (stand_in, original) in &self.outside {
            let start =
                original.host().ok_or_else(|| Error::runtime("a captured tensor has left the host"))?;
            if original.len() < stand_in.len() {
                return Err(Error::runtime("a tensor of a captured graph has been made smaller"));
            }
            // SAFETY: a stand-in of this program, which only this thread replays; the original is held, and as long.
            unsafe { stand_in.set_start(start) };
        }
        // A call that kernels do not run in decides nothing.
        self.kernels.run().map(|_| ()).map_err(|failed| failed.error)
    }
}

/// For each slot, when units reach it.
fn when_reached(units: &[Unit], slots: &[Facts]) -> Vec<Option<Lifetime>> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; slots.len()];
    for (at, unit) in units.iter().enumerate() {
        for &slot in &unit.reaches {
            let first = Lifetime { bytes: slots[slot].bytes, first: at, last: at };
            lifetimes[slot].get_or_insert(first).last = at;
        }
    }
    lifetimes
}
