//! The order in which a capture's units run once pointwise kernels have joined groups, and what is known of memory that
//! was filled with one number.

use crate::capture::group::{Facts, Group, Member, accesses};
use crate::capture::pointwise::{Access, Argument, ColumnSum, Counted, Space};
use crate::capture::program::Unit;
use crate::capture::shader::{Language, max_operands};
use crate::cpu::group::code::{Arg, Element, Formula, Instruction, fold};
use std::collections::HashMap;

/// A unit that stays where it is, or a group.
pub(super) enum Item {
    Unit(usize),
    Group(Group),
    /// Sums of columns, with their units.
    Sums(Vec<(usize, ColumnSum)>),
    /// What stood here has moved to a later place.
    Gone,
}

/// Sums in one launch, and groups that are tried to be moved.
const MAX_SUMS: usize = 8;
const MAX_MOVED: usize = 8;
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
    /// The places of groups that fold rows.
    by_rows: Vec<usize>,
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
            by_rows: Vec::new(),
            fence: 0,
            constants: HashMap::new(),
        }
    }

    /// Adds a unit that stays where it is. It may read all that it reaches.
    pub fn pass(&mut self, at: usize, unit: &Unit) {
        let sum = unit.pointwise.as_ref().and_then(|pointwise| pointwise.column_sum());
        let item = match sum {
            Some(sum) => Item::Sums(self.sums_before(at, sum)),
            None => Item::Unit(at),
        };
        self.items.push(item);
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
        let is_fold = counted.fold.is_some();
        let resolved = !is_fold && self.resolve(&mut counted)
            || unit.pointwise.as_ref().is_some_and(|pointwise| pointwise.is_moved);
        let language = if self.slots[counted.out.slot].stand_in.device().is_gpu() {
            let Some(language) = Language::of(&counted) else { return self.pass(at, unit) };
            Some(language)
        } else {
            None
        };
        // A shader may round otherwise than the host, which computes numbers for both.
        let is_known = language.is_none() || space.n == 1;
        let constant = constant_result(&mut counted, is_known);
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
        let (mut member, mut space) = (Member { unit: at, counted, resolved, language }, space);
        let place = match self.find_rows(&member, earliest) {
            Some((place, lifted)) => {
                space = Space::of(&lifted.shape);
                member.counted = lifted;
                Some(place)
            }
            None => self.find(&space, &member, earliest).or_else(|| self.sink(&space, &member)),
        };
        let at = place.unwrap_or(self.items.len());
        if place.is_none() {
            self.items.push(Item::Group(Group::new(space.clone(), language)));
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
            if group.rows().is_some() && !self.by_rows.contains(&at) {
                self.by_rows.push(at);
            }
        }
    }

    /// True if an item could as well run now: nothing after it writes what it reaches, or reads what it writes.
    fn is_last(&self, place: usize, mut reached: impl Iterator<Item = (usize, bool)>) -> bool {
        reached.all(|(class, writes)| {
            self.last_write[class] <= place + 1 && (!writes || self.last_read[class] <= place + 1)
        })
    }

    /// Moves an item that could as well run now to the end.
    fn take(&mut self, place: usize, reached: &[(usize, bool)]) -> Item {
        let end = self.items.len() + 1;
        for &(class, writes) in reached {
            let last = if writes { &mut self.last_write[class] } else { &mut self.last_read[class] };
            *last = end;
        }
        std::mem::replace(&mut self.items[place], Item::Gone)
    }

    /// Moves a group on the GPU that this kernel could join if it came later to the end, and returns its new place.
    fn sink(&mut self, space: &Space, member: &Member) -> Option<usize> {
        member.language?;
        let places = self.groups.get(&space.n)?;
        let fits = |place: usize| {
            let Item::Group(group) = &self.items[place] else { return None };
            let is_free = group.rows().is_none()
                && group.joined(space, member, &self.classes, self.slots).is_some()
                && self.is_last(place, group.reached());
            is_free.then(|| group.reached().collect::<Vec<_>>())
        };
        let (place, reached) =
            places.iter().rev().take(MAX_MOVED).find_map(|&place| Some((place, fits(place)?)))?;
        let group = self.take(place, &reached);
        let end = self.items.len();
        self.items.push(group);
        if let Some(places) = self.groups.get_mut(&space.n) {
            places.retain(|&other| other != place);
            places.push(end);
        }
        Some(end)
    }

    /// Sums of columns that can run together with this one, and this one.
    fn sums_before(&mut self, at: usize, sum: ColumnSum) -> Vec<(usize, ColumnSum)> {
        let reached_by = |sums: &[(usize, ColumnSum)]| -> Vec<(usize, bool)> {
            sums.iter()
                .flat_map(|(_, sum)| [(self.classes[sum.out.slot], true), (self.classes[sum.x.slot], false)])
                .collect()
        };
        let own = [self.classes[sum.out.slot], self.classes[sum.x.slot]];
        let fits = |place: usize| {
            let Item::Sums(sums) = &self.items[place] else { return None };
            let reached = reached_by(sums);
            let meets = reached.iter().any(|&(class, writes)| own[0] == class || writes && own[1] == class);
            let is_free = !meets
                && sums.len() < MAX_SUMS.min(max_operands() / 2)
                && self.is_last(place, reached.iter().copied());
            is_free.then_some(reached)
        };
        let found = (0..self.items.len()).rev().find_map(|place| Some((place, fits(place)?)));
        let mut sums = match found.map(|(place, reached)| self.take(place, &reached)) {
            Some(Item::Sums(sums)) => sums,
            _ => Vec::new(),
        };
        sums.push((at, sum));
        sums
    }

    /// The first group over rows that a kernel with one value for each of them can join, and the kernel over the rows'
    /// elements.
    fn find_rows(&self, member: &Member, earliest: usize) -> Option<(usize, Counted)> {
        if member.language.is_none() || member.counted.fold.is_some() {
            return None;
        }
        let n: usize = member.counted.shape.iter().product();
        self.by_rows.iter().copied().filter(|place| place + 1 >= earliest).find_map(|place| {
            let Item::Group(group) = &self.items[place] else { return None };
            let rows = group.rows().filter(|rows| rows.count == n)?;
            let counted = member.counted.lifted(rows.length);
            let space = Space::of(&counted.shape);
            let lifted = Member { counted, ..*member };
            let fits = group.joined(&space, &lifted, &self.classes, self.slots).is_some();
            fits.then_some((place, lifted.counted))
        })
    }

    /// The first group from place `earliest - 1` on that the kernel can join.
    fn find(&self, space: &Space, member: &Member, earliest: usize) -> Option<usize> {
        let places = self.groups.get(&space.n)?;
        let from = places.partition_point(|&place| place + 1 < earliest);
        let takes = |&&place: &&usize| match &self.items[place] {
            Item::Group(group) => group.joined(space, member, &self.classes, self.slots).is_some(),
            _ => false,
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
                    Formula::Copy | Formula::Fold(_) => true,
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

/// The element that fills the result, if it is known: copies of numbers, and what the host `computes` of them. The kernel
/// then only fills.
fn constant_result(counted: &mut Counted, computes: bool) -> Option<Element> {
    if counted.fold.is_some() {
        return None;
    }
    let dtype = counted.out.dtype;
    let is_copy = matches!(counted.formula, Formula::Copy);
    let arg = |arg: &Argument| match *arg {
        Argument::Number(number) if is_copy => Some(Arg::Constant(Element::new(number, dtype))),
        Argument::Number(number) => Some(Arg::Number(number)),
        Argument::Constant(element) => Some(Arg::Constant(element)),
        Argument::Memory(_) => None,
    };
    if !is_copy && !computes {
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
        .filter_map(|(slot, facts)| facts.span.map(|(start, end)| (start, end, slot)))
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
