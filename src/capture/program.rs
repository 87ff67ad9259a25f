//! Captured kernels with their memory, and the graph of `torch.cuda.CUDAGraph`, which replays them on the same tensors.

use crate::base::{Device, Error, Result, SourceLine, lock, signals};
use crate::capture::memory::{self, Lifetime};
use crate::capture::recorder::{Original, Slot};
use crate::storage::Storage;
use std::sync::{Mutex, MutexGuard, TryLockError};

type Kernel = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// One kernel with its arguments.
pub(super) struct Unit {
    run: Kernel,
    /// The line of the user's program that captured it.
    line: Option<SourceLine>,
}

impl Unit {
    pub fn new(run: Kernel, line: Option<SourceLine>) -> Unit {
        Unit { run, line }
    }
}

/// A slot of a finished capture.
pub(super) struct Place {
    pub stand_in: Storage,
    /// True if only kernels of the capture reach it, so that its memory is placed here.
    pub is_inside: bool,
    pub lifetime: Lifetime,
}

/// Kernels between two checks for Ctrl-C.
const PATIENCE: usize = 256;

/// Kernels in their order, and the memory that only they reach.
pub(super) struct Kernels {
    units: Vec<Unit>,
    arena: Option<Storage>,
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
        let inside: Vec<&Place> = slots.iter().filter(|slot| slot.is_inside).collect();
        let lifetimes: Vec<_> = inside.iter().map(|slot| slot.lifetime).collect();
        let (places, bytes) = memory::place(&lifetimes);
        let arena = if bytes > 0 { Some(Storage::new(bytes, Device::Cpu)?) } else { None };
        if let Some(start) = arena.as_ref().and_then(Storage::host) {
            for (slot, place) in inside.iter().zip(places) {
                // SAFETY: a new stand-in, which no kernel uses yet; its place lies in the block, which lives as long
                // as the units that reach it.
                unsafe { slot.stand_in.set_start(start.add(place)) };
            }
        }
        Ok(Kernels { units, arena })
    }

    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// The bytes of memory that only these kernels reach.
    pub fn bytes(&self) -> usize {
        self.arena.as_ref().map_or(0, Storage::len)
    }

    /// Runs all kernels.
    pub fn run(&self) -> std::result::Result<(), Failed> {
        for (at, unit) in self.units.iter().enumerate() {
            if at % PATIENCE == PATIENCE - 1 {
                signals::check()?;
            }
            (unit.run)().map_err(|error| Failed { error, line: unit.line.clone() })?;
        }
        Ok(())
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
        for Slot { original, stand_in, lifetime, .. } in slots {
            let original = match original {
                Original::Held(storage) => Some(storage),
                Original::Older(storage) | Original::Made(storage) => storage.upgrade(),
            };
            let is_on_host = stand_in.device().is_cpu();
            places.push(Place {
                stand_in: stand_in.clone(),
                is_inside: is_on_host && original.is_none(),
                lifetime,
            });
            outside.extend(original.filter(|_| is_on_host).map(|original| (stand_in, original)));
        }
        Ok(Captured { kernels: Kernels::new(units, &places)?, running: Mutex::new(()), outside })
    }

    /// The number of kernels.
    pub fn kernels(&self) -> usize {
        self.kernels.len()
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
        self.kernels.run().map_err(|failed| failed.error)
    }
}
