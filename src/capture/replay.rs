//! A captured call, and its replay on other tensors.

use crate::base::{Error, Result};
use crate::capture::Counts;
use crate::capture::backward::BackwardCounts;
use crate::capture::call::Plan;
use crate::capture::effects::{GradEffect, Left, Needed};
use crate::capture::origins::{Known, Memory, Source};
use crate::capture::program::{Failed, Kernels, Ran, enter};
use crate::capture::recorder::LiveNumber;
use crate::capture::storages::Found;
use crate::storage::{Storage, access, epoch};
use crate::tensor::leaf::grad_epoch;
use crate::tensor::{Body, Tensor};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Mutex;

/// A call of a function, captured while its kernels ran.
///
/// A replay runs the same kernels on the tensors that it is given and on those that the call read (the "known" ones): it
/// repeats the effects on them, and returns new results.
pub struct Program {
    kernels: Kernels,
    plan: Plan,
    /// The known tensors that a replay is given, by their numbers among all known ones.
    used: Vec<usize>,
    /// The known tensors that are the same in each replay. They are numbered after those that it is given.
    fixed: Vec<Tensor>,
    numbers: Vec<(usize, LiveNumber)>,
    /// For each known tensor, the place of the effect on its `.grad`.
    grad_at: Vec<Option<usize>>,
    /// For each memory that a replay looks for, its place among these.
    varying_at: Vec<Option<usize>>,
    /// The memories that a replay looks for.
    varying: Vec<usize>,
    /// The places in the plan of the known tensors that each replay checks.
    unfixed: Vec<usize>,
    kept: Kept,
    is_long: bool,
    /// True if kernels reach memory on the GPU that replays look for or make.
    is_on_gpu: bool,
    checked: Mutex<Checked>,
}

/// What a replay leaves out that finds the `.grad`s as the last one left them.
struct Kept {
    /// True if there are such replays.
    is_possible: bool,
    /// The storages and the tensors that are made all the same.
    fresh: Vec<usize>,
    made: Vec<usize>,
}

/// What the last replay found of fixed tensors, which holds in one epoch. The thread that replays holds it.
#[derive(Default)]
struct Checked {
    epoch: u64,
    memories: Vec<Option<Place>>,
    /// The addresses of the fixed memories and their ends, in order.
    spans: Vec<(usize, usize)>,
    /// The same of the varying ones, as they were found to overlap nothing.
    varying: Vec<(usize, usize)>,
    /// The epochs of tensors and of `.grad`s in which a replay used all `.grad`s again.
    grads: Option<(u64, u64)>,
}

/// A storage, and how many bytes further than in the captured call the tensor begins that led to it.
type Place = (Storage, isize);

/// What became of a replay.
pub enum Replayed {
    Results(Vec<Tensor>),
    /// Nothing ran; in words why.
    Refused(&'static str),
}

/// Why a replay ends without results.
enum Stop {
    Refused(&'static str),
    Failed(Failed),
}

impl From<&'static str> for Stop {
    fn from(why: &'static str) -> Stop {
        Stop::Refused(why)
    }
}

impl From<Failed> for Stop {
    fn from(failed: Failed) -> Stop {
        Stop::Failed(failed)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error.into())
    }
}

/// The `.grad` of a known tensor when a replay begins.
enum FirstGrad {
    /// It is not looked at.
    Ignored,
    /// It becomes the new one.
    Reused,
    Found(Tensor),
}

/// A replay of more kernels or more bytes lets other Python threads run.
const MANY: usize = 64;
const LARGE: usize = 128 << 10;

const BUSY: &str = "it is being replayed already";
const OTHERS_SHARE: &str = "other tensors share memory";

impl Program {
    pub(super) fn new(
        kernels: Kernels,
        plan: Plan,
        used: Vec<usize>,
        fixed: Vec<Tensor>,
        numbers: Vec<(usize, LiveNumber)>,
    ) -> Program {
        let mut grad_at = vec![None; plan.known.len()];
        for (at, effect) in plan.grads.iter().enumerate() {
            grad_at[effect.number] = Some(at);
        }
        let varies = |at: &usize| match plan.memories[*at].source {
            Source::Known(number) => number < used.len(),
            Source::Grad(_) => true,
        };
        let varying: Vec<usize> = (0..plan.memories.len()).filter(varies).collect();
        let mut varying_at = vec![None; plan.memories.len()];
        for (place, &at) in varying.iter().enumerate() {
            varying_at[at] = Some(place);
        }
        let is_unfixed = |known: &Known| known.number < used.len() || varying_at[known.memory].is_some();
        let unfixed = (0..plan.known.len()).filter(|&at| is_unfixed(&plan.known[at])).collect();
        let kept = Kept::new(&plan, used.len());
        let slots = plan.memories.iter().filter_map(|memory| memory.slot.as_ref()).map(|slot| slot.0.len());
        let bytes = slots.chain(plan.recipes.storages.fresh.iter().map(|fresh| fresh.len)).sum::<usize>();
        let outside = plan.memories.iter().filter_map(|memory| memory.slot.as_ref().map(|slot| &slot.0));
        let is_on_gpu =
            outside.chain(plan.fresh_slots.iter().flatten()).any(|stand_in| stand_in.device().is_gpu());
        // A thread that holds the interpreter must not wait for the lock of a `.grad`.
        let is_long = kernels.len() > MANY || bytes + kernels.bytes() > LARGE || !plan.grads.is_empty();
        Program {
            kernels,
            plan,
            used,
            fixed,
            numbers,
            grad_at,
            varying_at,
            varying,
            unfixed,
            kept,
            is_long,
            is_on_gpu,
            checked: Mutex::default(),
        }
    }

    /// The number of kernels.
    pub fn kernels(&self) -> usize {
        self.kernels.len()
    }

    /// The number of kernels and groups that a replay runs.
    pub fn units(&self) -> usize {
        self.kernels.units()
    }

    /// The number of decisions by elements of tensors.
    pub fn decisions(&self) -> usize {
        self.kernels.decisions()
    }

    /// What joining kernels to groups did.
    pub fn counts(&self) -> Counts {
        self.kernels.counts()
    }

    /// The launches on the GPU of the captured call, and of the last replay.
    pub fn launches(&self) -> (u64, u64) {
        self.kernels.launches()
    }

    /// The bytes of memory that only these kernels reach.
    pub fn bytes(&self) -> usize {
        self.kernels.bytes()
    }

    /// What is known of the captured backwards through the graph of results.
    pub fn backwards(&self) -> BackwardCounts {
        self.plan.recipes.backwards().counts()
    }

    /// True if a replay does more than make results.
    pub(super) fn has_effects(&self) -> bool {
        !self.plan.grads.is_empty() || !self.plan.versions.is_empty()
    }

    /// The known tensors that a replay is given, by their numbers among all known ones.
    pub fn used(&self) -> &[usize] {
        &self.used
    }

    /// The indices of the numbers that each replay uses anew.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.numbers.iter().map(|(at, _)| *at)
    }

    /// True if a replay takes long, or may wait for another thread.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// Runs the kernels again; `given` are the [`used`](Program::used) tensors.
    pub fn replay(&self, given: &[&Tensor], numbers: &[f64]) -> std::result::Result<Replayed, Failed> {
        match self.results(given, numbers) {
            Ok(results) => Ok(Replayed::Results(results)),
            Err(Stop::Refused(why)) => Ok(Replayed::Refused(why)),
            Err(Stop::Failed(failed)) => Err(failed),
        }
    }

    fn results(&self, given: &[&Tensor], numbers: &[f64]) -> std::result::Result<Vec<Tensor>, Stop> {
        if access::captures() {
            return Err("it is called while another call is captured".into());
        }
        if given.len() != self.used.len() || self.numbers.iter().any(|(at, _)| *at >= numbers.len()) {
            return Err(Error::runtime("a replay was given too few tensors or numbers").into());
        }
        let mut checked = enter(&self.checked).ok_or(BUSY)?;
        let results = self.results_alone(given, numbers, &mut checked);
        if self.is_on_gpu {
            self.let_go();
        }
        results
    }

    /// Lets go of memory on the GPU that the next replay looks for. What it may leave where it is stays.
    fn let_go(&self) {
        let keeps = self.kept.is_possible;
        let is_looked_for = |memory: &&Memory| !(keeps && matches!(memory.source, Source::Grad(_)));
        let memories = self.varying.iter().map(|&at| &self.plan.memories[at]).filter(is_looked_for);
        let varying = memories.filter_map(|memory| memory.slot.as_ref().map(|slot| &slot.0));
        let is_made = |at: &usize| !keeps || self.kept.fresh.contains(at);
        let fresh = (0..self.plan.fresh_slots.len()).filter(is_made);
        let fresh = fresh.filter_map(|at| self.plan.fresh_slots[at].as_ref());
        for stand_in in varying.chain(fresh) {
            // SAFETY: a stand-in of a program that only this thread replays.
            unsafe { stand_in.let_go() };
        }
    }

    /// What [`results`](Program::results) gives, in the only thread that replays.
    fn results_alone(
        &self,
        given: &[&Tensor],
        numbers: &[f64],
        checked: &mut Checked,
    ) -> std::result::Result<Vec<Tensor>, Stop> {
        let known = |number: usize| match given.get(number) {
            Some(tensor) => *tensor,
            None => &self.fixed[number - given.len()],
        };
        let epochs = (epoch::now(), grad_epoch::now());
        let keeps_grads = checked.grads == Some(epochs);
        let effects = if keeps_grads { &[] } else { self.plan.grads.as_slice() };
        let mut made = vec![None; self.plan.recipes.len()];
        let mut grads: SmallVec<[FirstGrad; 8]> = SmallVec::with_capacity(effects.len());
        for effect in effects {
            grads.push(self.first_grad(effect, known(effect.number), &mut made)?);
        }
        let grad = |number: usize| match self.grad_at[number].and_then(|at| grads.get(at)) {
            Some(FirstGrad::Found(grad)) => Some(grad),
            _ => None,
        };
        self.check_fixed(checked)?;
        let mut varying: SmallVec<[Option<Place>; 4]> = SmallVec::with_capacity(self.varying.len());
        for &at in &self.varying {
            let memory = &self.plan.memories[at];
            let tensor = match memory.source {
                Source::Known(number) => Some(known(number)),
                Source::Grad(_) if keeps_grads => {
                    varying.push(None);
                    continue;
                }
                Source::Grad(number) => grad(number),
            };
            varying.push(Some(memory.find(tensor.ok_or("a .grad is missing")?)?));
        }
        check_apart(&varying, checked)?;
        let memory = |at: usize| match (&checked.memories[at], self.varying_at[at]) {
            (Some(place), _) => Some(place),
            (None, Some(at)) => varying[at].as_ref(),
            (None, None) => None,
        };
        for &at in &self.unfixed {
            let own = &self.plan.known[at];
            own.check(known(own.number), memory(own.memory))?;
        }
        for &number in self.plan.recipes.ends() {
            let end = known(number);
            if !end.fits_edge() || end.check_view().is_err() {
                return Err("a tensor has another place in the graph".into());
            }
        }
        for effect in effects {
            if let (Needed::Present(_, Some(at)), Some(grad)) = (&effect.needed, grad(effect.number))
                && !memory(*at).is_some_and(|place| place.0.same(&grad.body().storage))
            {
                return Err("a .grad is another tensor".into());
            }
        }
        self.numbers.iter().for_each(|(at, number)| number.set(numbers[*at]));
        let fresh = if keeps_grads {
            self.fresh(self.kept.fresh.iter().copied())?
        } else {
            let is_reused = self.reuse(&grads, &made);
            self.fresh((0..is_reused.len()).filter(|&at| !is_reused[at]))?
        };
        let done = self.kernels.run();
        if matches!(done, Ok(Ran::UntilDecision)) {
            return Err("a decision by the elements of a tensor goes another way".into());
        }
        for effect in &self.plan.versions {
            let tensor = match effect.source {
                Source::Known(number) => Some(known(number)),
                Source::Grad(number) => grad(number),
            };
            if let Some(tensor) = tensor {
                tensor.body().storage.bump_by(effect.writes);
            }
        }
        done?;
        let found = Found { known: &known, grad: &grad, memory: &memory, fresh: &fresh };
        if keeps_grads {
            self.plan.recipes.make(self.kept.made.iter().copied(), &found, &mut made)?;
        } else {
            self.plan.recipes.make(0..made.len(), &found, &mut made)?;
            for (effect, first) in effects.iter().zip(&grads) {
                match (effect.left, first) {
                    (Left::Same, _) | (Left::New(_), FirstGrad::Reused) => {}
                    (Left::Absent, _) => known(effect.number).set_grad(None),
                    (Left::New(recipe), _) => known(effect.number).set_grad(made[recipe].clone()),
                }
            }
            // What this replay changed itself began another epoch.
            checked.grads = self.kept.is_possible.then_some(epochs);
        }
        Ok(self.plan.results.iter().filter_map(|&recipe| made[recipe].clone()).collect())
    }

    /// Finds the `.grad` of a known tensor. If its memory can be used again, it is put among the made tensors.
    fn first_grad(
        &self,
        effect: &GradEffect,
        tensor: &Tensor,
        made: &mut [Option<Tensor>],
    ) -> std::result::Result<FirstGrad, &'static str> {
        // A replay that looks at a `.grad` is nobody who comes to hold it.
        let seen = || tensor.try_see_grad(|grad| grad.cloned());
        match &effect.needed {
            Needed::Nothing => {
                let (Left::New(recipe), Some(fresh)) = (effect.left, effect.again) else {
                    return Ok(FirstGrad::Ignored);
                };
                let (Some(form), len) =
                    (self.plan.recipes.form(recipe), self.plan.recipes.storages.fresh[fresh].len)
                else {
                    return Ok(FirstGrad::Ignored);
                };
                let is_like = |body: &Body| {
                    body.layout == form.layout
                        && body.dtype == form.dtype
                        && body.device() == form.device
                        && body.storage.len() == len
                };
                made[recipe] = tensor.sole_grad(is_like);
                Ok(if made[recipe].is_some() { FirstGrad::Reused } else { FirstGrad::Ignored })
            }
            Needed::Absent => match seen() {
                Some(None) => Ok(FirstGrad::Ignored),
                Some(Some(_)) => Err("a tensor has a .grad that had none"),
                None => Err(BUSY),
            },
            Needed::Present(form, _) => match seen() {
                Some(Some(grad)) if form.matches(&grad.body()) && !grad.requires_grad() => {
                    Ok(FirstGrad::Found(grad))
                }
                Some(Some(_)) => Err("a .grad is of another kind"),
                Some(None) => Err("a tensor has no .grad that had one"),
                None => Err(BUSY),
            },
        }
    }

    /// Checks the fixed tensors and finds their memories, unless that was done in this epoch.
    fn check_fixed(&self, checked: &mut Checked) -> std::result::Result<(), &'static str> {
        let now = epoch::now();
        if checked.epoch == now {
            return Ok(());
        }
        *checked = Checked::default();
        for (memory, varying) in self.plan.memories.iter().zip(&self.varying_at) {
            let fixed = |number: usize| &self.fixed[number - self.used.len()];
            checked.memories.push(match (memory.source, varying) {
                (Source::Known(number), None) => Some(memory.find(fixed(number))?),
                _ => None,
            });
        }
        for own in &self.plan.known[self.used.len()..] {
            if self.varying_at[own.memory].is_none() {
                own.check(&self.fixed[own.number - self.used.len()], checked.memories[own.memory].as_ref())?;
            }
        }
        checked.spans = checked.memories.iter().flatten().map(span).filter(|span| span.0 < span.1).collect();
        checked.spans.sort_unstable();
        if checked.spans.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(OTHERS_SHARE);
        }
        checked.epoch = now;
        Ok(())
    }

    /// Puts the storages of former gradients whose memory is used again in the place of what stands for them in kernels.
    /// Returns for each new storage whether one takes its place.
    fn reuse(&self, grads: &[FirstGrad], made: &[Option<Tensor>]) -> SmallVec<[bool; 16]> {
        let fresh = &self.plan.recipes.storages.fresh;
        let mut is_reused = SmallVec::from_elem(false, fresh.len());
        for (effect, first) in self.plan.grads.iter().zip(grads) {
            if let (FirstGrad::Reused, Left::New(recipe), Some(at)) = (first, effect.left, effect.again)
                && let Some(grad) = &made[recipe]
            {
                let storage = &grad.body().storage;
                if storage.version() != fresh[at].version {
                    storage.set_version(fresh[at].version);
                    grad_epoch::next();
                }
                is_reused[at] = true;
                put(&self.plan.fresh_slots[at], storage);
            }
        }
        is_reused
    }

    /// New storages of these numbers for results and gradients, put in the place of what stands for them in kernels.
    fn fresh(&self, numbers: impl Iterator<Item = usize>) -> Result<SmallVec<[Option<Storage>; 4]>> {
        let all = &self.plan.recipes.storages.fresh;
        let mut fresh = SmallVec::from_elem(None, all.len());
        for at in numbers {
            let storage = all[at].make()?;
            put(&self.plan.fresh_slots[at], &storage);
            fresh[at] = Some(storage);
        }
        Ok(fresh)
    }
}

impl Kept {
    /// `given` tensors differ from replay to replay.
    fn new(plan: &Plan, given: usize) -> Kept {
        let is_kept = |effect: &GradEffect| {
            let stays = match (&effect.needed, effect.left) {
                (Needed::Nothing, Left::New(_)) => effect.again.is_some(),
                (Needed::Present(..), Left::Same) => true,
                _ => false,
            };
            stays && effect.number >= given
        };
        let is_of_grad = |memory: usize| matches!(plan.memories[memory].source, Source::Grad(_));
        let is_asked_for = plan.recipes.need_grads(is_of_grad)
            || plan.known.iter().any(|known| is_of_grad(known.memory))
            || plan.versions.iter().any(|effect| matches!(effect.source, Source::Grad(_)));
        let (mut fresh_kept, mut made_kept) = (HashSet::new(), HashSet::new());
        for effect in &plan.grads {
            if let (Left::New(recipe), Some(at)) = (effect.left, effect.again) {
                fresh_kept.insert(at);
                made_kept.insert(recipe);
            }
        }
        let fresh = (0..plan.recipes.storages.fresh.len()).filter(|at| !fresh_kept.contains(at)).collect();
        let made = (0..plan.recipes.len()).filter(|at| !made_kept.contains(at)).collect();
        Kept { is_possible: !is_asked_for && plan.grads.iter().all(is_kept), fresh, made }
    }
}

/// Checks that no memory overlaps another one, as in the captured call. `None` is where the last replay found it.
fn check_apart(varying: &[Option<Place>], checked: &mut Checked) -> std::result::Result<(), &'static str> {
    let kept = |at: usize| checked.varying.get(at).copied().unwrap_or_default();
    let span_at = |(at, place): (usize, &Option<Place>)| place.as_ref().map_or_else(|| kept(at), span);
    let spans: SmallVec<[(usize, usize); 8]> = varying.iter().enumerate().map(span_at).collect();
    if *spans == *checked.varying {
        return Ok(());
    }
    let mut sorted: SmallVec<[(usize, usize); 8]> =
        spans.iter().copied().filter(|span| span.0 < span.1).collect();
    sorted.sort_unstable();
    let fixed = &checked.spans;
    let meets_fixed = |span: &(usize, usize)| {
        let next = fixed.partition_point(|own| own.0 < span.1);
        next > 0 && fixed[next - 1].1 > span.0
    };
    if sorted.windows(2).any(|pair| pair[0].1 > pair[1].0) || sorted.iter().any(meets_fixed) {
        return Err(OTHERS_SHARE);
    }
    checked.varying = spans.to_vec();
    Ok(())
}

/// Puts a storage in the place of what stands for it in kernels.
fn put(slot: &Option<Storage>, storage: &Storage) {
    if let Some(stand_in) = slot {
        // SAFETY: a stand-in of a program that only this thread replays; the storage is as long, and is held until the
        // kernels have run.
        unsafe { stand_in.stand_for(storage, 0) };
    }
}

/// The address of a memory and its end.
fn span(place: &Place) -> (usize, usize) {
    place.0.span().unwrap_or_default()
}

impl Known {
    /// Checks that a tensor is of this kind, and lies in `place` where it lay in the captured call.
    fn check(&self, tensor: &Tensor, place: Option<&Place>) -> std::result::Result<(), &'static str> {
        if !self.kind.matches(tensor) {
            return Err("a tensor is of another kind");
        }
        let body = tensor.body();
        let start = body.layout.offset * body.dtype.size();
        let is_there = |(storage, shift): &Place| {
            storage.same(&body.storage) && self.kind.form.start().wrapping_add_signed(*shift) == start
        };
        if place.is_some_and(is_there) { Ok(()) } else { Err(OTHERS_SHARE) }
    }
}

impl Memory {
    /// The storage to which a tensor leads; an error if kernels would reach beyond it. It is put in the place of what stands
    /// for it in kernels.
    fn find(&self, tensor: &Tensor) -> std::result::Result<Place, &'static str> {
        let body = tensor.body();
        let storage = body.storage.of_memory();
        let shift = (body.layout.offset * body.dtype.size()).wrapping_sub(self.start).cast_signed();
        if let Some((stand_in, (first, end))) = &self.slot {
            let fits = first.checked_add_signed(shift).is_some()
                && end.checked_add_signed(shift).is_some_and(|end| end <= storage.len());
            if first < end && !fits {
                return Err("the memory of a tensor is smaller");
            }
            // SAFETY: a stand-in of a program that only this thread replays; kernels reach only bytes of the storage, which
            // is held.
            if !unsafe { stand_in.stand_for(storage, shift) } {
                return Err("a tensor is on another device, or begins at another place of its memory there");
            }
        }
        Ok((storage.clone(), shift))
    }
}
