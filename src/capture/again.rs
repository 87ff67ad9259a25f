//! Values that a later group computes again rather than reads. Some simple instructions cost less than a pass over memory
//! that writes a value, and one that reads it.

use crate::capture::group::{Facts, Member, accesses};
use crate::capture::order::Item;
use crate::capture::pointwise::{Access, Argument};
use crate::capture::program::Unit;
use crate::cpu::group::code::{Formula, Reach};
use smallvec::SmallVec;

/// Smaller values stay in the caches.
const LARGE: usize = 1 << 20;
/// The instructions that a value may cost.
const MOST: usize = 3;

/// The places of what reaches a class of slots.
#[derive(Clone, Default)]
struct Uses {
    /// The writers, and whether each is a kernel of a group.
    writes: SmallVec<[(usize, bool); 2]>,
    reads: SmallVec<[(usize, bool); 2]>,
}

/// Adds kernels to groups that come after the ones where they are, if what they read is the same there.
pub(super) fn compute_again(items: &mut [Item], units: &[Option<Unit>], slots: &[Facts], classes: &[usize]) {
    if slots.iter().all(|facts| facts.bytes < LARGE || facts.outside) {
        return;
    }
    let uses = uses(items, units, slots.len(), classes);
    for place in 0..items.len() {
        let Item::Group(group) = &items[place] else { continue };
        for at in 0..group.members().len() {
            let values = Values { items, place, uses: &uses, slots, classes };
            for (reader, members) in values.readers(at).unwrap_or_default() {
                if let Item::Group(group) = &mut items[reader] {
                    group.compute_first(members, classes, slots);
                }
            }
        }
    }
}

fn uses(items: &[Item], units: &[Option<Unit>], count: usize, classes: &[usize]) -> Vec<Uses> {
    let mut uses = vec![Uses::default(); count];
    for (place, item) in items.iter().enumerate() {
        let mut unit = |at: usize| {
            if let Some(unit) = &units[at] {
                unit.reaches.iter().for_each(|&slot| uses[classes[slot]].reads.push((place, false)));
                unit.writes.iter().for_each(|&slot| uses[classes[slot]].writes.push((place, false)));
            }
        };
        match item {
            Item::Unit(at) => unit(*at),
            Item::Sums(sums) => sums.iter().for_each(|(at, _)| unit(*at)),
            Item::Group(group) => {
                for (access, writes) in group.members().iter().flat_map(|own| accesses(&own.counted)) {
                    let own = &mut uses[classes[access.slot]];
                    if writes { own.writes.push((place, true)) } else { own.reads.push((place, true)) }
                }
            }
            Item::Gone => {}
        }
    }
    uses
}

/// The values of the group at `place`.
struct Values<'a> {
    items: &'a [Item],
    place: usize,
    uses: &'a [Uses],
    slots: &'a [Facts],
    classes: &'a [usize],
}

impl Values<'_> {
    fn members(&self, place: usize) -> &[Member] {
        match &self.items[place] {
            Item::Group(group) if !group.is_shader() => group.members(),
            _ => &[],
        }
    }

    /// The later groups that read what member `at` computes, and the members that they need for it, if all of them can and
    /// memory is passed over less often.
    fn readers(&self, at: usize) -> Option<Vec<(usize, Vec<Member>)>> {
        let member = self.members(self.place).get(at)?;
        let out = &member.counted.out;
        if self.slots[out.slot].bytes < LARGE || !self.is_only_write(out) {
            return None;
        }
        let mut places: SmallVec<[usize; 4]> = SmallVec::new();
        for &(place, in_group) in &self.uses[self.classes[out.slot]].reads {
            if !in_group {
                return None;
            }
            if place != self.place && !places.contains(&place) {
                places.push(place);
            }
        }
        let last = *places.iter().max()?;
        let mut needed = SmallVec::new();
        self.need(at, last, &mut needed)?;
        needed.sort_unstable();
        needed.dedup();
        let own = self.members(self.place);
        let (mut all, mut passes) = (Vec::new(), 0);
        for &place in &places {
            let Item::Group(group) = &self.items[place] else { return None };
            let made = |access: &Access| needed.iter().any(|&at| own[at].counted.out.slot == access.slot);
            let is_same = |(access, _): (&Access, bool)| access.slot != out.slot || access.is_same(out);
            if !group.members().iter().all(|member| accesses(&member.counted).all(is_same)) {
                return None;
            }
            let reads = |access: &Access| {
                let mut all = group.members().iter().flat_map(|member| accesses(&member.counted));
                all.any(|(other, _)| other == access)
            };
            let mut more: SmallVec<[&Access; 4]> = SmallVec::new();
            for (access, writes) in needed.iter().flat_map(|&at| accesses(&own[at].counted)) {
                let is_new = !writes && access.reach == Reach::Dense && !made(access) && !reads(access);
                if is_new && !more.contains(&access) {
                    more.push(access);
                }
            }
            passes += more.len();
            let members: Vec<Member> = needed.iter().map(|&at| own[at].again()).collect();
            if !group.can_compute_first(&members, self.classes, self.slots) {
                return None;
            }
            all.push((place, members));
        }
        (passes <= places.len()).then_some(all)
    }

    /// True if nothing else writes the whole slot of an access, which only the program reaches.
    fn is_only_write(&self, out: &Access) -> bool {
        let (facts, class) = (&self.slots[out.slot], self.classes[out.slot]);
        let is_whole = out.start == 0 && out.end == facts.bytes && out.reach == Reach::Dense;
        is_whole && !facts.outside && facts.span.is_none() && self.uses[class].writes.len() == 1
    }

    /// Adds the members that compute the value of member `at` from memory that is the same until `last`.
    fn need(&self, at: usize, last: usize, needed: &mut SmallVec<[usize; 4]>) -> Option<()> {
        let own = self.members(self.place);
        let counted = &own[at].counted;
        let is_simple = match counted.formula {
            Formula::Copy => true,
            Formula::Row { loops, .. } => loops.fused.is_some(),
            Formula::Fold(_) => false,
        };
        if !is_simple || needed.len() >= MOST {
            return None;
        }
        needed.push(at);
        for arg in &counted.args {
            let Argument::Memory(access) = arg else { continue };
            let uses = &self.uses[self.classes[access.slot]];
            let made = |member: &Member| member.counted.out.is_same(access);
            match own[..at].iter().rposition(made) {
                Some(before) if self.is_only_write(access) => self.need(before, last, needed)?,
                _ if uses.writes.iter().any(|(place, _)| (self.place..=last).contains(place)) => return None,
                _ => {}
            }
        }
        Some(())
    }
}
