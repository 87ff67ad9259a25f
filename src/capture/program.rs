//! Captured kernels with their memory, and the graph of `torch.cuda.CUDAGraph`, which replays them on the same tensors.

use crate::base::{Device, Error, Result, SourceLine, lock, signals};
use crate::capture::copies;
use crate::capture::decision::Decision;
use crate::capture::draws::Draws;
use crate::capture::group::{Compiled, Counts, Facts, fuse};
use crate::capture::memory::{self, Lifetime};
use crate::capture::once;
use crate::capture::pointwise::Pointwise;
use crate::capture::recorder::{self, Original, Recorder, Slot};
#[cfg(feature = "gpu")]
use crate::gpu;
use crate::storage::Storage;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// True if it makes the same launches in each replay, apart from the memory that they reach, and does nothing else.
    pub is_steady: bool,
    /// What the call decided there; the unit does nothing else.
    pub decision: Option<Decision>,
}

impl Unit {
    pub fn run(&self) -> Result<()> {
        (self.run)()
    }

    /// A group in place of this unit, which is its first.
    pub fn replaced(self, group: Compiled) -> Unit {
        let Compiled { run, reaches, writes, bytes, is_steady } = group;
        Unit { run, reaches, writes, bytes, pointwise: None, is_steady, ..self }
    }
}

/// The function of a unit that only a group computes.
pub(super) fn no_run() -> Result<()> {
    Err(Error::runtime("a captured kernel that writes elsewhere has not joined a group"))
}

/// A slot of a finished capture.
pub(super) struct Place {
    pub stand_in: Storage,
    /// True if only kernels of the capture reach it, so that its memory is placed here.
    pub is_inside: bool,
    /// True if it was made in the capture.
    pub is_made: bool,
    pub bytes: usize,
    /// The span of memory that another slot's may overlap in each replay.
    pub span: Option<(usize, usize)>,
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
    /// What only these kernels reach on a GPU.
    buffers: Vec<Storage>,
    #[cfg(feature = "gpu")]
    launches: KeptLaunches,
    /// The launches of the captured kernels, and of the last run.
    launched: (u64, AtomicU64),
    /// Stand-ins that share the memory of others in each run.
    shared: Vec<(Storage, Storage)>,
    /// Units whose results are the same in each run, and whether a run has had them.
    once: Vec<bool>,
    has_run: AtomicBool,
    /// The generators from which the kernels draw.
    draws: Draws,
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
    /// the capture. Unless `fuses`, the units stay as they are.
    pub fn new(units: Vec<Unit>, slots: &[Place], launches: u64, fuses: bool) -> Result<Kernels> {
        let captured = units.iter().filter(|unit| unit.decision.is_none()).count();
        let (units, shared) = if fuses { copies::remove(units, slots) } else { (units, Vec::new()) };
        let shared = shared
            .iter()
            .map(|&(from, to)| (slots[from].stand_in.clone(), slots[to].stand_in.clone()))
            .collect();
        let facts = |slot: &Place| Facts {
            outside: !slot.is_inside,
            bytes: slot.bytes,
            span: slot.span,
            stand_in: slot.stand_in.clone(),
        };
        let facts: Vec<Facts> = slots.iter().map(facts).collect();
        let (units, counts) = if fuses {
            fuse(units, &facts)
        } else {
            let bytes = units.iter().map(|unit| unit.bytes).sum();
            (units, Counts { bytes_apart: bytes, bytes, ..Counts::default() })
        };
        let once = once::units(&units, &facts);
        let (mut inside, mut lifetimes) = (Vec::new(), Vec::new());
        let (mut on_gpu, mut lifetimes_on_gpu) = (Vec::new(), Vec::new());
        for (slot, lifetime) in slots.iter().zip(when_reached(&units, &once, &facts)) {
            if let (true, Some(lifetime)) = (slot.is_inside, lifetime) {
                let is_on_gpu = slot.stand_in.device().is_gpu();
                let (slots, lives) = if is_on_gpu {
                    (&mut on_gpu, &mut lifetimes_on_gpu)
                } else {
                    (&mut inside, &mut lifetimes)
                };
                slots.push(slot);
                lives.push(lifetime);
            }
        }
        let mut buffers = Vec::new();
        if let Some(first) = on_gpu.first() {
            let (places, sizes) = memory::share(&lifetimes_on_gpu);
            for size in sizes {
                buffers.push(Storage::new(size, first.stand_in.device())?);
            }
            for (slot, place) in on_gpu.iter().zip(places) {
                // SAFETY: a new stand-in, which no kernel uses yet; the buffer is as long, and lives as long as the units.
                unsafe { slot.stand_in.stand_for(&buffers[place], 0) };
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
        #[cfg(feature = "gpu")]
        let launches_kept = KeptLaunches::new(&units, &facts);
        Ok(Kernels {
            units,
            arena,
            buffers,
            #[cfg(feature = "gpu")]
            launches: launches_kept,
            launched: (launches, AtomicU64::new(0)),
            shared,
            once,
            has_run: AtomicBool::new(false),
            draws: Draws::default(),
            captured,
            counts,
        })
    }

    /// Adds the generators from which the kernels draw.
    pub fn with_draws(self, draws: Draws) -> Kernels {
        Kernels { draws, ..self }
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
        self.arena.iter().chain(&self.buffers).map(Storage::len).sum()
    }

    /// The launches on the GPU of the captured kernels, and of the last run.
    pub fn launches(&self) -> (u64, u64) {
        (self.launched.0, self.launched.1.load(Ordering::Relaxed))
    }

    /// Runs all kernels.
    pub fn run(&self) -> std::result::Result<Ran, Failed> {
        let before = recorder::launches();
        for (from, to) in &self.shared {
            // SAFETY: stand-ins of this program, which only this thread runs, of as many bytes.
            unsafe { from.stand_for(to, 0) };
        }
        let done = self.run_all();
        self.has_run.fetch_or(matches!(done, Ok(Ran::All)), Ordering::Relaxed);
        for (from, _) in &self.shared {
            // SAFETY: as above.
            unsafe { from.let_go() };
        }
        self.launched.1.store(recorder::launches() - before, Ordering::Relaxed);
        done
    }

    fn run_all(&self) -> std::result::Result<Ran, Failed> {
        #[cfg(feature = "gpu")]
        let mut kept = self.launches.0.as_ref().map(lock);
        let has_run = self.has_run.load(Ordering::Relaxed);
        let restores = self.draws.remember();
        for (at, unit) in self.units.iter().enumerate() {
            if has_run && self.once[at] {
                continue;
            }
            if at % PATIENCE == PATIENCE - 1 {
                signals::check()?;
            }
            let failed = |error| Failed { error, line: unit.line.clone() };
            match &unit.decision {
                None => {}
                Some(decision) if decision.holds().map_err(failed)? => continue,
                Some(_) => {
                    restores.into_iter().for_each(|restore| restore());
                    return Ok(Ran::UntilDecision);
                }
            }
            #[cfg(feature = "gpu")]
            let done = match &mut kept {
                Some(kept) if unit.is_steady => kept[at].run(unit),
                _ => unit.run(),
            };
            #[cfg(not(feature = "gpu"))]
            let done = unit.run();
            done.map_err(failed)?;
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
    /// Storages that outlive a replay, and what stands for them.
    outside: Vec<(Storage, Storage)>,
}

impl Captured {
    pub(super) fn new(recorder: Recorder) -> Result<Captured> {
        let Recorder { units, slots, .. } = recorder;
        let (mut outside, mut places) = (Vec::new(), Vec::new());
        for Slot { original, stand_in, bytes, .. } in slots {
            let is_made = matches!(original, Original::Made(_));
            let original = match original {
                Original::Held(storage) => Some(storage),
                Original::Older(storage) | Original::Made(storage) => storage.upgrade(),
            };
            let has_memory = !stand_in.device().is_meta();
            places.push(Place {
                stand_in: stand_in.clone(),
                is_inside: has_memory && original.is_none(),
                is_made,
                bytes,
                span: original.as_ref().and_then(Storage::span),
            });
            outside.extend(original.filter(|_| has_memory).map(|original| (stand_in, original)));
        }
        Ok(Captured { kernels: Kernels::new(units, &places, 0, true)?, running: Mutex::new(()), outside })
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

    /// The launches on the GPU of the last replay.
    pub fn launches(&self) -> u64 {
        self.kernels.launches().1
    }

    /// Runs all kernels again.
    pub fn replay(&self) -> Result<()> {
        let Some(_running) = enter(&self.running) else {
            return Err(Error::runtime("this graph is being replayed by another thread"));
        };
        for (stand_in, original) in &self.outside {
            if original.len() < stand_in.len() {
                return Err(Error::runtime("a tensor of a captured graph has been made smaller"));
            }
            // SAFETY: a stand-in of this program, which only this thread replays; the original is held, and as long.
            if !unsafe { stand_in.stand_for(original, 0) } {
                return Err(Error::runtime("a captured tensor has left its device"));
            }
        }
        // A call that kernels do not run in decides nothing.
        self.kernels.run().map(|_| ()).map_err(|failed| failed.error)
    }
}

/// The launches of steady units, which are kept once a unit has run. Only the thread that runs the kernels locks them.
#[cfg(feature = "gpu")]
struct KeptLaunches(Option<Mutex<Vec<KeptUnit>>>);

#[cfg(feature = "gpu")]
struct KeptUnit {
    /// What stands for the memory that the unit reaches.
    memory: SmallVec<[Storage; 4]>,
    launches: Option<gpu::Launches>,
    /// True if the unit does more than launch, or needs much memory for itself.
    is_refused: bool,
}

#[cfg(feature = "gpu")]
impl KeptLaunches {
    fn new(units: &[Unit], slots: &[Facts]) -> KeptLaunches {
        let keep = |unit: &Unit| KeptUnit {
            memory: unit.reaches.iter().map(|&slot| slots[slot].stand_in.clone()).collect(),
            launches: None,
            is_refused: false,
        };
        let any = units.iter().any(|unit| unit.is_steady);
        KeptLaunches(any.then(|| Mutex::new(units.iter().map(keep).collect())))
    }
}

#[cfg(feature = "gpu")]
impl KeptUnit {
    fn run(&mut self, unit: &Unit) -> Result<()> {
        let buffers: SmallVec<[&gpu::Buffer; 8]> = self.memory.iter().filter_map(Storage::gpu).collect();
        match &mut self.launches {
            Some(launches) => launches.send(&buffers),
            None if self.is_refused => unit.run(),
            None => {
                self.launches = gpu::keep(&buffers, || unit.run())?;
                self.is_refused = self.launches.is_none();
                Ok(())
            }
        }
    }
}

/// For each slot, when units reach it.
fn when_reached(units: &[Unit], once: &[bool], slots: &[Facts]) -> Vec<Option<Lifetime>> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; slots.len()];
    for (at, unit) in units.iter().enumerate() {
        for &slot in &unit.reaches {
            let first = Lifetime { bytes: slots[slot].bytes, first: at, last: at };
            let lifetime = lifetimes[slot].get_or_insert(first);
            lifetime.last = lifetime.last.max(at);
            if once[at] {
                // Later runs find it as it is.
                (lifetime.first, lifetime.last) = (0, units.len());
            }
        }
    }
    lifetimes
}
