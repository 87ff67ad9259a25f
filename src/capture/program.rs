//! A captured program, and its replay.

use crate::base::{Error, Result, lock, signals};
use crate::capture::memory;
use crate::capture::recorder::{Original, Slot};
use crate::storage::Storage;
use std::sync::{Mutex, TryLockError};

type Kernel = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// One kernel with its arguments.
pub(super) struct Unit {
    run: Kernel,
}

impl Unit {
    pub fn new(run: Kernel) -> Unit {
        Unit { run }
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
}

impl Captured {
    pub(super) fn new(units: Vec<Unit>, slots: Vec<Slot>) -> Result<Captured> {
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        for slot in slots.into_iter().filter(|slot| slot.stand_in.device().is_cpu()) {
            let original = match slot.original {
                Original::Older(storage) => Some(storage),
                Original::Made(storage) => storage.upgrade(),
            };
            match original {
                Some(original) => outside.push((slot.stand_in, original)),
                None => inside.push((slot.stand_in, slot.lifetime)),
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
        Ok(Captured { units, outside, inside: block, running: Mutex::new(()) })
    }

    /// The number of kernels.
    pub fn kernels(&self) -> usize {
        self.units.len()
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
            (unit.run)()?;
        }
        Ok(())
    }
}
