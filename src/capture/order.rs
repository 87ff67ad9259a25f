//! The order in which a capture's units run once pointwise kernels have joined groups, and what is known of memory that
//! was filled with one number.

use crate::capture::group::{Facts, Group, Member, accesses};
use crate::capture::pointwise::{Access, Argument, Counted, Space};
use crate::capture::program::Unit;
use crate::cpu::group::code::{Arg, Element, Formula, Instruction, fold};
use std::collections::HashMap;

/// A unit that stays where it is, or a group.
pub(super) enum Item {
    Unit(usize),
    Group(Group),
}

/// Groups that are tried for a kernel.
const MAX_TRIES: usize = 64;

/// The units so far.
pub(super) struct Order<'a> {
    slots: &'a [Facts],
    /// For each slot, a number that it shares with slots whose memory overlaps its own.
    classes: Vec<usize>,
    items: Vec<Item>,
    /// For each class, one more than the place of the last item that reads it, and of the last that writes it.
    last_read: Vec<usize>,
    last_write: Vec<usize>,
    /// The places of groups, by their number of elements.
    groups: HashMap<usize, Vec<usize>>,
    /// One more than the place of the last decision, past which no write to memory that outlives a run may be moved.
    fence: usize,
    /// Parts of memory whose elements are all the same, by class.
    constants: HashMap<usize, Vec<(Access, Element)>>,
}

impl<'a> Order<'a> {
    pub fn new(slots: &'a [Facts]) -> Order<'a> {
        Order {
            slots,
            classes: classes(slots),
            items: Vec::new(),
            last_read: vec![0; slots.len()],
            last_write: vec![0; slots.len()],
            groups: HashMap::new(),
            fence: 0,
            constants: HashMap::new(),
        }
    }

    /// Adds a unit that stays where it is. It may read all that it reaches.
    pub fn pass(&mut self, at: usize, unit: &Unit) {
        self.items.push(Item::Unit(at));
        if unit.decision.is_some() {
            self.fence = self.items.len();
        }
        unit.reaches.iter().for_each(|&slot| self.last_read[self.classes[slot]] = self.items.len());
        for class in unit.writes.iter().map(|&slot| self.classes[slot]) {
            self.constants.remove(&class);
            self.last_write[class] = self.items.len();
        }
    }

    /// Adds a pointwise kernel: to the first group that it can join, or as a new one.
    pub fn add(&mut self, at: usize, mut counted: Counted, unit: &Unit) {
        let space = Space::of(&counted.shape);
        let out = self.classes[counted.out.slot];
        let meets_another =
            |(own, _): (&Access, bool)| own.slot != counted.out.slot && self.classes[own.slot] == out;
        if accesses(&counted).any(meets_another) {
            return self.pass(at, unit);
        }
        let resolved = self.resolve(&mut counted);
        let constant = constant_result(&mut counted, space.n);
        let stays = |(access, _): &(Access, Element)| {
            access.slot == counted.out.slot && access.is_apart(&counted.out)
        };
        let constants = self.constants.entry(out).or_default();
        constants.retain(stays);
        constants.extend(constant.map(|element| (counted.out.clone(), element)));
        let needs = |(own, writes): (&Access, bool)| {
            let class = self.classes[own.slot];
            if writes { self.last_read[class].max(self.last_write[class]) } else { self.last_write[class] }
        };
        let fence = if self.slots[counted.out.slot].outside { self.fence } else { 0 };
        let earliest = accesses(&counted).map(needs).max().unwrap_or(0).max(fence);
        let member = Member { unit: at, counted, resolved };
        let place = self.find(&space, &member, earliest);
        let at = place.unwrap_or(self.items.len());
        if place.is_none() {
            self.items.push(Item::Group(Group::new(space.clone())));
            self.groups.entry(space.n).or_default().push(at);
        }
        for (own, writes) in accesses(&member.counted) {
            let class = self.classes[own.slot];
            let last = if writes { &mut self.last_write[class] } else { &mut self.last_read[class] };
            *last = (*last).max(at + 1);
        }
        if let Item::Group(group) = &mut self.items[at]
            && let Some(space) = group.joined(&space, &member, &self.classes, self.slots)
        {
            group.add(space, member, &self.classes, self.slots);
        }
    }

    /// The first group from place `earliest - 1` on that the kernel can join.
    fn find(&self, space: &Space, member: &Member, earliest: usize) -> Option<usize> {
        let places = self.groups.get(&space.n)?;
        let from = places.partition_point(|&place| place + 1 < earliest);
        let takes = |&&place: &&usize| match &self.items[place] {
            Item::Group(group) => group.joined(space, member, &self.classes, self.slots).is_some(),
            Item::Unit(_) => false,
        };
        places[from..].iter().take(MAX_TRIES).find(takes).copied()
    }

    /// Replaces operands whose elements are known; true if there were any.
    fn resolve(&self, counted: &mut Counted) -> bool {
        let mut resolved = false;
        for arg in &mut counted.args {
            let Argument::Memory(own) = arg else { continue };
            let covers = |access: &Access| {
                access.slot == own.slot
                    && access.dtype == own.dtype
                    && access.start <= own.start
                    && own.end <= access.end
            };
            let known = self.constants.get(&self.classes[own.slot]);
            if let Some((_, element)) =
                known.and_then(|known| known.iter().find(|(access, _)| covers(access)))
            {
                // Kernels read tensors of one value as numbers, and convert the elements of others.
                let is_plain = match counted.formula {
                    Formula::Row { compute, .. } => {
                        element.argument(compute, true) == element.argument(compute, false)
                    }
                    Formula::Copy => true,
                };
                if is_plain {
                    *arg = Argument::Constant(*element);
                    resolved = true;
                }
            }
        }
        resolved
    }

    pub fn end(self) -> (Vec<Item>, Vec<usize>) {
        (self.items, self.classes)
    }
}

/// The element that fills the result, if it is known. The kernel then only fills.
fn constant_result(counted: &mut Counted, n: usize) -> Option<Element> {
    let dtype = counted.out.dtype;
    let is_copy = matches!(counted.formula, Formula::Copy);
    let arg = |arg: &Argument| match *arg {
        Argument::Number(number) if is_copy => Some(Arg::Constant(Element::new(number, dtype))),
        Argument::Number(number) => Some(Arg::Number(number)),
        Argument::Constant(element) => Some(Arg::Constant(element)),
        Argument::Memory(_) => None,
    };
    if !is_copy && n > 1 {
        return None;
    }
    let args = counted.args.iter().map(arg).collect::<Option<_>>()?;
    let element = fold(&Instruction { formula: counted.formula, args, dtype })?;
    counted.formula = Formula::Copy;
    counted.args = smallvec::smallvec![Argument::Constant(element)];
    Some(element)
}

/// A number for each slot that it shares with slots of overlapping memory: several storages may borrow one owner's.
fn classes(slots: &[Facts]) -> Vec<usize> {
    let mut classes: Vec<usize> = (0..slots.len()).collect();
    let mut spans: Vec<(usize, usize, usize)> = (slots.iter().enumerate())
        .filter_map(|(slot, facts)| Some((facts.address?, facts.address? + facts.bytes, slot)))
        .collect();
    spans.sort_unstable();
    let mut reached: Option<(usize, usize)> = None;
    for (start, end, slot) in spans {
        reached = match reached {
            Some((until, class)) if start < until => {
                classes[slot] = class;
                Some((until.max(end), class))
            }
            _ => Some((end, slot)),
        };
    }
    classes
}
