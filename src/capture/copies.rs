//! Copies on the GPU that need not run: what is only copied to a new storage is written there in the first place.

use crate::capture::pointwise::{Argument, At, Counted, Pointwise, Source};
use crate::capture::program::{Place, Unit, no_run};
use crate::capture::shader::Language;
use crate::cpu::group::code::{Formula, Reach};

/// Removes copies. Returns the slots that share the memory of others, which are reached instead of them.
pub(super) fn remove(units: Vec<Unit>, slots: &[Place]) -> (Vec<Unit>, Vec<(usize, usize)>) {
    let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    let mut shared = Vec::new();
    for at in 0..units.len() {
        let Some(copy) = units[at].as_ref().and_then(|unit| Copy::of(unit, slots)) else { continue };
        if decides(&units[..at], copy.from) {
            continue;
        }
        if is_renamed(&units, at, &copy, slots) {
            units[at] = None;
            units.iter_mut().flatten().for_each(|unit| unit.rename(copy.from, copy.to.slot));
            shared.push((copy.from, copy.to.slot));
        } else if let Some(writer) = writer(&units, at, &copy) {
            units[at] = None;
            let own = units[writer].take();
            units[writer] = own.map(|own| own.writing_to(copy));
        }
    }
    // A slot that shares another's memory may itself have been shared with.
    let last = |mut slot: usize| {
        while let Some(&(_, to)) = shared.iter().find(|(from, _)| *from == slot) {
            slot = to;
        }
        slot
    };
    let shared = shared.iter().map(|&(from, _)| (from, last(from))).collect();
    (units.into_iter().flatten().collect(), shared)
}

/// True if one of these units decides once the slot has been reached: what a run writes after that must not be written before.
fn decides(units: &[Option<Unit>], slot: usize) -> bool {
    let all = units.iter().flatten();
    all.skip_while(|unit| !unit.reaches.contains(&slot)).any(|unit| unit.decision.is_some())
}

/// A copy from storage that only kernels reach to storage that the call made.
struct Copy {
    from: usize,
    src: At,
    to: At,
    counted: Option<Counted>,
}

impl Copy {
    fn of(unit: &Unit, slots: &[Place]) -> Option<Copy> {
        let pointwise = unit.pointwise.as_ref()?;
        let ([Source::Body(src)], Formula::Copy, None) =
            (pointwise.inputs.as_slice(), pointwise.formula, &pointwise.fold)
        else {
            return None;
        };
        let to = &pointwise.out;
        let is_new = |at: &At| slots[at.slot].is_made && slots[at.slot].stand_in.device().is_gpu();
        let is_move = src.body.dtype == to.body.dtype && src.body.shape() == to.body.shape();
        let fits = src.slot != to.slot && slots[src.slot].is_inside && is_new(src) && is_new(to) && is_move;
        fits.then(|| Copy { from: src.slot, src: src.clone(), to: to.clone(), counted: pointwise.counted() })
    }
}

/// True if a unit that still runs reaches a slot.
fn reaches(unit: &Option<Unit>, slot: usize) -> bool {
    unit.as_ref().is_some_and(|unit| unit.reaches.contains(&slot))
}

/// True if both storages are the same bytes in the same order, the new one is not used before the copy, and the old one not
/// afterwards.
fn is_renamed(units: &[Option<Unit>], at: usize, copy: &Copy, slots: &[Place]) -> bool {
    let bytes = slots[copy.from].bytes;
    let is_whole = copy.counted.as_ref().is_some_and(|counted| {
        let [Argument::Memory(src)] = counted.args.as_slice() else {
            return false;
        };
        let whole = (0, bytes);
        src.reach == Reach::Dense
            && (src.start, src.end) == whole
            && (counted.out.start, counted.out.end) == whole
            && slots[copy.to.slot].bytes == bytes
    });
    is_whole
        && !units[..at].iter().any(|unit| reaches(unit, copy.to.slot))
        && !units[at + 1..].iter().any(|unit| reaches(unit, copy.from))
}

/// The pointwise kernel that could write to the new storage instead: it alone writes what the copy alone reads.
fn writer(units: &[Option<Unit>], at: usize, copy: &Copy) -> Option<usize> {
    let mut users = (0..units.len()).filter(|&other| other != at && reaches(&units[other], copy.from));
    let (Some(writer), None) = (users.next(), users.next()) else { return None };
    let unit = units[writer].as_ref()?;
    let pointwise = unit.pointwise.as_ref()?;
    let own = &pointwise.out;
    let is_written = writer < at
        && own.slot == copy.from
        && own.body.layout == copy.src.body.layout
        && own.body.dtype == copy.src.body.dtype
        && pointwise.fold.is_none()
        && !pointwise.inputs.iter().any(|input| matches!(input, Source::Body(at) if at.slot == copy.from));
    let is_free = !units[writer..at].iter().any(|unit| reaches(unit, copy.to.slot));
    let redirected = Pointwise { out: copy.to.clone(), ..pointwise.clone() };
    let is_known = || redirected.counted().is_some_and(|counted| Language::of(&counted).is_some());
    (is_written && is_free && is_known()).then_some(writer)
}

impl Unit {
    /// Reaches another slot, which has the same memory, in place of this one.
    fn rename(&mut self, from: usize, to: usize) {
        let rename = |slot: &mut usize| {
            if *slot == from {
                *slot = to;
            }
        };
        self.reaches.iter_mut().for_each(rename);
        self.writes.iter_mut().for_each(rename);
        if let Some(pointwise) = &mut self.pointwise {
            rename(&mut pointwise.out.slot);
            for input in &mut pointwise.inputs {
                if let Source::Body(at) = input {
                    rename(&mut at.slot);
                }
            }
        }
    }

    /// The kernel as part of a group that writes to where this copy writes.
    fn writing_to(mut self, copy: Copy) -> Unit {
        self.rename(copy.from, copy.to.slot);
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.out = copy.to;
            pointwise.is_moved = true;
        }
        Unit { run: Box::new(no_run), is_steady: false, ..self }
    }
}
