//! Captures the kernels of a thread, in the order in which they run.

use crate::base::{Error, Reduction, Result, SourceLine};
use crate::capture::decision::{CHANGED, Decision};
use crate::capture::draws::{Draws, Rewind};
use crate::capture::pointwise::{At, Fold, Input, Pointwise, Source};
use crate::capture::program::{Captured, Unit};
use crate::capture::shader::Shader;
use crate::cpu::group::code::Formula;
use crate::storage::access::{self, Permit};
use crate::storage::{Storage, UNTRACKED, WeakStorage, set_capture};
use crate::tensor::changes::{self, Changes};
use crate::tensor::leaf::grad_changes::{self, GradChanges};
use crate::tensor::{Body, anomaly};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of the next capture; 0 stands for none.
static CAPTURES: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// The list of kernels of a capture that is going on.
pub struct Recorder {
    /// True if kernels also run while they are captured; otherwise only replays run them.
    runs: bool,
    pub(super) number: u32,
    pub(super) slots: Vec<Slot>,
    /// The slot of each storage, by its id.
    slot_of: HashMap<usize, usize>,
    pub(super) units: Vec<Unit>,
    /// Storages that are older than the capture, by the address of their version counter: the version before the first
    /// kernel that reached them.
    pub(super) versions: HashMap<usize, (WeakStorage, u32)>,
    pub(super) numbers: HashMap<u32, LiveNumber>,
    /// The generators from which kernels drew.
    pub(super) draws: Draws,
    /// What the next unit reaches, which of it the unit may write, the bytes of its arguments there, and what it computes.
    reaches: SmallVec<[usize; 4]>,
    writes: SmallVec<[usize; 2]>,
    /// True while what is only read is retained.
    reads: bool,
    bytes: usize,
    described: Option<Pointwise>,
    /// True if the next unit reads what a replay is given beside bodies, such as a live number.
    varies: bool,
    /// The launches of this thread before the capture.
    launches: u64,
}

/// A storage that captured kernels reach.
pub(super) struct Slot {
    pub original: Original,
    /// What kernels get in its place; the original itself if that has no memory.
    pub stand_in: Storage,
    pub bytes: usize,
    /// The first byte that kernels reach, and the one after the last.
    pub reached: (usize, usize),
    /// The shape of the first tensor that reached it, for messages.
    pub shape: String,
}

pub(super) enum Original {
    /// It is older than the capture, and is held because the kernels run on it in each replay.
    Held(Storage),
    /// It is older than the capture. It is not held, because operators ask whether others hold it.
    Older(WeakStorage),
    /// It was made in the capture, and is not held for the same reason.
    Made(WeakStorage),
}

/// A number that each replay is given anew.
#[derive(Clone, Default)]
pub struct LiveNumber(Arc<AtomicU64>);

impl LiveNumber {
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

impl Recorder {
    fn new(runs: bool, number: u32) -> Recorder {
        Recorder {
            runs,
            number,
            slots: Vec::new(),
            slot_of: HashMap::new(),
            units: Vec::new(),
            versions: HashMap::new(),
            numbers: HashMap::new(),
            draws: Draws::default(),
            reaches: SmallVec::new(),
            writes: SmallVec::new(),
            reads: false,
            bytes: 0,
            described: None,
            varies: false,
            launches: launches(),
        }
    }

    /// The body that a replay uses in place of this one.
    pub fn stand_in(&mut self, body: &Body) -> Result<Body> {
        self.bytes += body.numel() * body.dtype.size();
        self.at(body).map(|at| at.body)
    }

    /// Retains what the kernel only reads.
    pub fn reading<T>(&mut self, retain: impl FnOnce(&mut Recorder) -> Result<T>) -> Result<T> {
        self.reads = true;
        let retained = retain(self);
        self.reads = false;
        retained
    }

    fn at(&mut self, body: &Body) -> Result<At> {
        let memory = body.storage.of_memory();
        let count = self.slots.len();
        let device = memory.device();
        if self.runs && device.is_meta() {
            return Err(Error::not_implemented("a kernel on device meta"));
        }
        let is_made = memory.is_made_in(self.number);
        if self.runs && !is_made {
            let version = || (body.storage.downgrade_alias(), body.storage.version());
            self.versions.entry(body.storage.alias_id()).or_insert_with(version);
        }
        let slot = *self.slot_of.entry(memory.id()).or_insert(count);
        if slot == count {
            let original = match (is_made, self.runs) {
                (true, _) => Original::Made(memory.downgrade()),
                (false, true) => Original::Older(memory.downgrade()),
                (false, false) => Original::Held(memory.clone()),
            };
            self.slots.push(Slot {
                original,
                stand_in: if device.is_meta() {
                    memory.clone()
                } else {
                    Storage::stand_in(memory.len(), device)
                },
                bytes: memory.len(),
                reached: (usize::MAX, 0),
                shape: format!("{:?}", body.shape()),
            });
        }
        let slot_now = &mut self.slots[slot];
        if slot_now.bytes != memory.len() {
            return Err(Error::runtime(
                "operation not permitted when stream is capturing: the storage of a tensor was resized",
            ));
        }
        if body.numel() > 0 {
            let ((start, end), reached) = (body.byte_range(), &mut slot_now.reached);
            *reached = (reached.0.min(start), reached.1.max(end));
        }
        if !self.reaches.contains(&slot) {
            self.reaches.push(slot);
        }
        if !self.reads && !self.writes.contains(&slot) {
            self.writes.push(slot);
        }
        Ok(At { slot, body: Body { storage: slot_now.stand_in.clone(), ..body.clone() } })
    }

    /// Says what the kernel that is recorded next computes, so that it can join a group.
    fn describe(
        &mut self,
        formula: Formula,
        shader: Option<Shader>,
        out: &Body,
        inputs: &[Input],
    ) -> Result<()> {
        let is_beside = |input: &Input| !matches!(input, Input::Body(body) if body.device() != out.device());
        if !out.device().is_meta() && inputs.iter().all(is_beside) {
            self.reads = true;
            let source = |input: &Input| match input {
                Input::Body(body) => self.at(body).map(Source::Body),
                Input::Number(number) => Ok(Source::Number(*number)),
            };
            let inputs = inputs.iter().map(source).collect::<Result<_>>();
            self.reads = false;
            let inputs = inputs?;
            self.described =
                Some(Pointwise { formula, shader, out: self.at(out)?, inputs, fold: None, is_moved: false });
        }
        Ok(())
    }

    /// Says that the kernel that is recorded next folds `x` over dimensions, and multiplies by a number.
    fn describe_fold(&mut self, fold: Fold, out: &Body, x: &Body) -> Result<()> {
        if !out.device().is_meta() && x.device() == out.device() && x.conj_neg.is_none() {
            let inputs = smallvec::smallvec![Source::Body(self.reading(|recorder| recorder.at(x))?)];
            let (formula, fold) = (Formula::Copy, Some(fold));
            self.described =
                Some(Pointwise { formula, shader: None, out: self.at(out)?, inputs, fold, is_moved: false });
        }
        Ok(())
    }

    /// The number at this index of those that each replay is given.
    pub fn live_number(&mut self, index: u32) -> LiveNumber {
        self.varies = true;
        self.numbers.entry(index).or_default().clone()
    }

    /// Notes that the next unit reads what a replay may find changed, beside its bodies.
    pub fn varies(&mut self) {
        self.varies = true;
    }

    /// The launches of this thread since the capture began.
    pub(super) fn launches(&self) -> u64 {
        launches() - self.launches
    }

    fn add<F>(
        &mut self,
        keep: impl FnOnce(&mut Recorder) -> Result<F>,
        line: Option<SourceLine>,
    ) -> Result<()>
    where
        F: Fn() -> Result<()> + Send + Sync + 'static,
    {
        let kernel = keep(self);
        let (reaches, writes) = (std::mem::take(&mut self.reaches), std::mem::take(&mut self.writes));
        let (bytes, pointwise) = (std::mem::take(&mut self.bytes), self.described.take());
        let on_gpu = |&slot: &usize| self.slots[slot].stand_in.device().is_gpu();
        let is_steady = !std::mem::take(&mut self.varies) && reaches.iter().all(on_gpu);
        self.units.push(Unit {
            run: Box::new(kernel?),
            line,
            reaches,
            writes,
            bytes,
            pointwise,
            decision: None,
            is_steady,
        });
        Ok(())
    }

    /// Notes that the kernel that is recorded next draws random numbers.
    pub fn draw(&mut self, generator: &impl Rewind) {
        self.draws.add(generator);
        self.varies = true;
    }

    /// Why the call must not decide by an element now; `None` if it may. A replay that gives up there must have changed
    /// nothing.
    pub(super) fn why_no_decision(&self) -> Option<&'static str> {
        let is_as_before = |(storage, version): &(WeakStorage, u32)| {
            storage.upgrade().is_some_and(|storage| storage.version() == *version && *version != UNTRACKED)
        };
        (!self.versions.values().all(is_as_before)).then_some(CHANGED)
    }

    /// Adds a decision by the only element of a body.
    pub(super) fn add_decision(
        &mut self,
        body: &Body,
        line: Option<SourceLine>,
        decision: impl FnOnce(Body) -> Decision,
    ) -> Result<()> {
        let of = self.reading(|recorder| recorder.stand_in(body))?;
        self.add(|_| Ok(|| Ok(())), line)?;
        self.draws.decide();
        if let Some(unit) = self.units.last_mut() {
            unit.is_steady = false;
            unit.decision = Some(decision(of));
        }
        Ok(())
    }
}

/// Does something with this thread's recorder, if it captures.
pub(super) fn with_recorder(act: impl FnOnce(&mut Recorder)) {
    RECORDER.with_borrow_mut(|recorder| recorder.as_mut().map(act));
}

/// The launches of this thread so far.
pub(super) fn launches() -> u64 {
    #[cfg(feature = "gpu")]
    return crate::gpu::launches_here();
    #[cfg(not(feature = "gpu"))]
    0
}

/// Says what the kernel that this thread captures next computes, so that it can join a group.
#[cold]
pub fn describe(formula: Formula, shader: Option<Shader>, out: &Body, inputs: &[Input]) -> Result<()> {
    described(|recorder| recorder.describe(formula, shader, out, inputs))
}

/// Says that the kernel that this thread captures next folds `x` over dimensions, and divides by `over`.
#[cold]
pub fn describe_fold(
    reduction: Reduction,
    dims: &[usize],
    over: Option<f64>,
    out: &Body,
    x: &Body,
) -> Result<()> {
    described(|recorder| recorder.describe_fold(Fold { reduction, dims: dims.into(), over }, out, x))
}

fn described(describe: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<()> {
    if access::is_spoilt() {
        return Ok(());
    }
    RECORDER.with_borrow_mut(|recorder| match recorder {
        // Where kernels run now, one that cannot be captured is noted when it is recorded.
        Some(recorder) if recorder.runs => {
            if describe(recorder).is_err() {
                recorder.described = None;
            }
            Ok(())
        }
        Some(recorder) => describe(recorder),
        None => Ok(()),
    })
}

/// Adds a kernel to this thread's capture. The permit to run the kernel now is `None` if only replays run it.
#[cold]
pub fn record<F>(keep: impl FnOnce(&mut Recorder) -> Result<F>) -> Result<Option<Permit>>
where
    F: Fn() -> Result<()> + Send + Sync + 'static,
{
    // The host language is asked before the recorder is borrowed: it may run any code.
    let line = if access::is_noted() { anomaly::current_line() } else { None };
    RECORDER.with_borrow_mut(|recorder| match recorder {
        None => Err(access::refuse()),
        Some(recorder) if recorder.runs => {
            // A kernel that cannot be captured runs as it would without a capture.
            if !access::is_spoilt()
                && let Err(error) = recorder.add(keep, line)
            {
                access::note(|| error.to_string());
            }
            Ok(Some(Permit::new()))
        }
        Some(recorder) => recorder.add(keep, None).map(|()| None),
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

/// Writes elements that depend on no tensor: `write` gets the start of a new dense body of the host. Where kernels run
/// while they are captured, replays write the same elements again.
pub fn constant<E: From<Error>>(
    body: &Body,
    write: impl FnOnce(*mut u8) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let is_kept =
        access::is_captured() && RECORDER.with_borrow(|recorder| recorder.as_ref().is_some_and(|r| r.runs));
    let permit = is_kept.then(Permit::new);
    let start = body.host_of_any_dtype()?.ptr;
    write(start)?;
    drop(permit);
    if is_kept {
        // SAFETY: the body is dense, and all its elements have been written.
        let bytes = unsafe { std::slice::from_raw_parts(start, body.numel() * body.dtype.size()) }.to_vec();
        let keep = |recorder: &mut Recorder| {
            let out = recorder.stand_in(body)?;
            Ok(move || {
                // SAFETY: the stand-in's memory is as long as that of the body.
                unsafe { out.host_of_any_dtype()?.ptr.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                Ok(())
            })
        };
        run(keep, || Ok(()))?;
    }
    Ok(())
}

/// What a capture leaves behind.
pub(super) struct Ended {
    pub recorder: Recorder,
    pub changes: Changes,
    pub grad_changes: GradChanges,
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
            *current = Some(Recorder::new(runs, number));
            access::begin(runs);
            if runs {
                changes::begin(number);
                grad_changes::begin();
            }
            set_capture(number);
            Ok(Capture(()))
        })
    }

    /// Ends a capture that only replays run, and places its memory.
    pub fn end(self) -> Result<Captured> {
        let Ended { recorder, .. } = self.finish().map_err(|_| access::refuse())?;
        Captured::new(recorder)
    }

    /// Ends the capture; an error gives the reason why it cannot be replayed.
    pub(super) fn finish(self) -> std::result::Result<Ended, String> {
        let (recorder, changes, grad_changes) = (RECORDER.take(), changes::end(), grad_changes::end());
        let reason = leave();
        std::mem::forget(self);
        match (recorder, reason) {
            (Some(recorder), None) => Ok(Ended { recorder, changes, grad_changes }),
            (_, reason) => Err(reason.unwrap_or_else(|| "the capture has ended already".into())),
        }
    }
}

/// Ends the state of this thread; returns the reason why the capture cannot be replayed, if there is one.
fn leave() -> Option<String> {
    set_capture(0);
    access::end()
}

impl Drop for Capture {
    fn drop(&mut self) {
        leave();
        changes::end();
        grad_changes::end();
        drop(RECORDER.take());
    }
}
