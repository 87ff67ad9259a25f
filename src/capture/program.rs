//! A captured program, and its replay.

use crate::base::{Error, Result, lock, signals};
use crate::capture::group::{Compiled, Counts, Facts, fuse};
use crate::capture::memory::{self, Lifetime};
use crate::capture::pointwise::Pointwise;
use crate::capture::recorder::{Original, Slot};
use crate::storage::Storage;
use smallvec::SmallVec;
use std::sync::{Mutex, TryLockError};

type Kernel = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// One kernel with its arguments.
pub(super) struct Unit {
    run: Kernel,
    /// The slots that it reaches, and the bytes of its arguments there.
    pub reaches: SmallVec<[usize; 4]>,
    pub bytes: usize,
    /// What it computes, if groups can compute it.
    pub pointwise: Option<Pointwise>,
}

impl Unit {
    pub fn new(
        run: Kernel,
        reaches: SmallVec<[usize; 4]>,
        bytes: usize,
        pointwise: Option<Pointwise>,
    ) -> Unit {
        Unit { run, reaches, bytes, pointwise }
    }

    pub fn run(&self) -> Result<()> {
        (self.run)()
    }

    /// A group in place of this unit, which is its first.
    pub fn replaced(self, group: Compiled) -> Unit {
        Unit { run: group.run, reaches: group.reaches, bytes: group.bytes, pointwise: None, ..self }
    }
}

/// Kernels between two checks for Ctrl-C.
const PATIENCE: usize = 256;

/// Captured kernels, with the memory that they reach.
pub struct Captured {
    units: Vec<Unit>,
    /// Storages of the host that outlive a replay, and what stands for them.
    outside: Vec<(Storage, Storage)>,
    /// The memory that only these kernels reach.
    inside: Option<Storage>,
    /// Held by the thread that replays.
    running: Mutex<()>,
    kernels: usize,
    counts: Counts,
}

impl Captured {
    pub(super) fn new(units: Vec<Unit>, slots: Vec<Slot>) -> Result<Captured> {
        let kernels = units.len();
        let (mut facts, mut originals) = (Vec::new(), Vec::new());
        for slot in slots {
            let original = match slot.original {
                Original::Older(storage) => Some(storage),
                Original::Made(storage) => storage.upgrade(),
            };
            facts.push(Facts {
                outside: original.is_some() || !slot.stand_in.device().is_cpu(),
                bytes: slot.bytes,
                address: original.as_ref().and_then(Storage::address),
                stand_in: slot.stand_in,
            });
            originals.push(original);
        }
        let (units, counts) = fuse(units, &facts);
        let lifetimes = lifetimes(&units, &facts);
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for ((facts, original), lifetime) in facts.into_iter().zip(originals).zip(lifetimes) {
            match (original, lifetime) {
                _ if !facts.stand_in.device().is_cpu() => {}
                (Some(original), _) => outside.push((facts.stand_in, original)),
                (None, Some(lifetime)) => inside.push((facts.stand_in, lifetime)),
                (None, None) => {}
            }
        }
        let lifetimes: Vec<_> = inside.iter().map(|(_, lifetime)| *lifetime).collect();
        let (places, bytes) = memory::place(&lifetimes);
        let block = if bytes > 0 { Some(Storage::new(bytes, crate::base::Device::Cpu)?) } else { None };
        if let Some(start) = block.as_ref().and_then(Storage::host) {
            for ((stand_in, _), place) in inside.iter().zip(places) {
                // SAFETY: a new stand-in, which no kernel uses yet; its place lies in the block, which lives as long
                // as the units that reach it.
                unsafe { stand_in.set_start(start.add(place)) };
            }
        }
        Ok(Captured { units, outside, inside: block, running: Mutex::new(()), kernels, counts })
    }

    /// The number of kernels that were captured.
    pub fn kernels(&self) -> usize {
        self.kernels
    }

    /// The number of kernels and groups that a replay runs.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// What joining kernels to groups did.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The bytes of memory that only these kernels reach.
    pub fn bytes(&self) -> usize {
        self.inside.as_ref().map_or(0, Storage::len)
    }

    /// Runs all kernels again.
    pub fn replay(&self) -> Result<()> {
        let _running = match self.running.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(_)) => lock(&self.running),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::runtime("this graph is being replayed by another thread"));
            }
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
        for (at, unit) in self.units.iter().enumerate() {
            if at % PATIENCE == PATIENCE - 1 {
                signals::check()?;
            }
            unit.run()?;
        }
        Ok(())
    }
}

/// For each slot, when units reach it.
fn lifetimes(units: &[Unit], slots: &[Facts]) -> Vec<Option<Lifetime>> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; slots.len()];
    for (at, unit) in units.iter().enumerate() {
        for &slot in &unit.reaches {
            let first = Lifetime { bytes: slots[slot].bytes, first: at, last: at };
            lifetimes[slot].get_or_insert(first).last = at;
        }
    }
    lifetimes
}
