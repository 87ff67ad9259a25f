//! Turns pointwise kernels of a capture into groups, which run in one pass over memory. A kernel joins a group that comes
//! before it if nothing in between reads or writes what it would be moved past. Values that nobody reads after the group
//! are never stored.

use crate::base::{DType, Error, Result};
use crate::capture::order::{Item, Order};
use crate::capture::pointwise::{Access, Argument, Counted, Space};
use crate::capture::program::Unit;
use crate::cpu::group::code::{Arg, Code, Instruction, Operand, Reach};
use crate::cpu::group::{Single, Tiles};
use crate::storage::Storage;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ptr::null_mut;

/// What fusion needs to know of a slot.
pub(super) struct Facts {
    /// True if its memory outlives a run of the kernels.
    pub outside: bool,
    pub bytes: usize,
    /// The address of memory that is older than the capture.
    pub address: Option<usize>,
    pub stand_in: Storage,
}

/// What fusion did.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Groups, and the instructions in all of them.
    pub groups: usize,
    pub instructions: usize,
    /// Bytes that kernels read and write, without and with groups.
    pub bytes_apart: usize,
    pub bytes: usize,
}

/// A group of more kernels over many elements would need more tiles than the first cache holds.
const MAX_MEMBERS: usize = 256;
/// More streams of memory at a time are slower than several passes.
const MAX_OPERANDS: usize = 14;
/// Up to this many elements, all operands are in the caches.
const SMALL: usize = 4096;

/// A kernel in a group.
pub(super) struct Member {
    pub unit: usize,
    pub counted: Counted,
    /// True if constants stand for tensors that the kernel itself reads.
    pub resolved: bool,
}

/// Kernels that run in one pass.
pub(super) struct Group {
    space: Space,
    members: Vec<Member>,
    /// What the members read and write (true), by class of slots.
    accesses: HashMap<usize, SmallVec<[(Access, bool); 2]>>,
    /// Operands in memory, as far as they are known before the end of the program.
    operands: HashSet<(usize, usize)>,
}

impl Group {
    pub fn new(space: Space) -> Group {
        Group { space, members: Vec::new(), accesses: HashMap::new(), operands: HashSet::new() }
    }

    /// The space of the group with this kernel; `None` if it cannot join.
    pub fn joined(&self, own: &Space, member: &Member, classes: &[usize], slots: &[Facts]) -> Option<Space> {
        let space = self.space.refined(own)?;
        if self.members.is_empty() || own.n == 1 {
            return self.is_free(member, classes).then_some(space);
        }
        let shares = accesses(&member.counted).any(|(own, _)| self.accesses.contains_key(&classes[own.slot]));
        let more = self.new_operands(&member.counted, slots).count();
        let fits = self.members.len() < MAX_MEMBERS
            && (own.n <= SMALL || self.operands.len() + more <= MAX_OPERANDS);
        (shares && fits && self.is_free(member, classes)).then_some(space)
    }

    /// True if what the kernel writes meets nothing else, and nothing that is written meets what it reads.
    fn is_free(&self, member: &Member, classes: &[usize]) -> bool {
        accesses(&member.counted).all(|(own, writes)| {
            let Some(others) = self.accesses.get(&classes[own.slot]) else { return true };
            others.iter().all(|(other, written)| {
                let in_order = own.slot == other.slot && (own.is_apart(other) || own.is_same(other));
                !(writes || *written) || in_order
            })
        })
    }

    /// The operands in memory that the kernel adds.
    fn new_operands<'a>(
        &'a self,
        counted: &'a Counted,
        slots: &'a [Facts],
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let is_made = |own: &Access| {
            let key = |other: &Access| (other.slot, other.start) == (own.slot, own.start);
            self.members.iter().any(|member| key(&member.counted.out))
        };
        accesses(counted)
            .filter(move |(own, writes)| if *writes { slots[own.slot].outside } else { !is_made(own) })
            .map(|(own, _)| (own.slot, own.start))
            .filter(|key| !self.operands.contains(key))
    }

    pub fn add(&mut self, space: Space, member: Member, classes: &[usize], slots: &[Facts]) {
        let more: Vec<_> =
            if space.n > SMALL { self.new_operands(&member.counted, slots).collect() } else { Vec::new() };
        self.operands.extend(more);
        self.space = space;
        for (own, writes) in accesses(&member.counted) {
            let all = self.accesses.entry(classes[own.slot]).or_default();
            if !all.iter().any(|(other, written)| *written == writes && other == own) {
                all.push((own.clone(), writes));
            }
        }
        self.members.push(member);
    }
}

/// What a kernel reads, and what it writes (true).
pub(super) fn accesses(counted: &Counted) -> impl Iterator<Item = (&Access, bool)> {
    let reads = counted.args.iter().filter_map(|arg| match arg {
        Argument::Memory(access) => Some((access, false)),
        Argument::Number(_) | Argument::Constant(_) => None,
    });
    reads.chain([(&counted.out, true)])
}

/// Fuses the units of a capture. `slots` are the storages that they reach.
pub(super) fn fuse(units: Vec<Unit>, slots: &[Facts]) -> (Vec<Unit>, Counts) {
    let mut counts = Counts { bytes_apart: units.iter().map(|unit| unit.bytes).sum(), ..Counts::default() };
    let mut order = Order::new(slots);
    for (at, unit) in units.iter().enumerate() {
        match unit.pointwise.as_ref().and_then(|pointwise| pointwise.counted()) {
            Some(counted) => order.add(at, counted, unit),
            None => order.pass(at, unit),
        }
    }
    let (items, classes) = order.end();
    let (mut live, mut sharers) = (vec![false; slots.len()], vec![0; slots.len()]);
    for (facts, &class) in slots.iter().zip(&classes) {
        live[class] |= facts.outside;
        sharers[class] += 1;
    }
    let mut memory = Memory { slots, classes, sharers, live };
    let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    let mut fused: Vec<Unit> = Vec::with_capacity(items.len());
    // From the end on, so that it is known which values are read later.
    for item in items.into_iter().rev() {
        let lowered = match item {
            Item::Unit(at) => {
                units[at].iter().for_each(|unit| unit.reaches.iter().for_each(|&slot| memory.read(slot)));
                Some(Lowered::Alone(at))
            }
            Item::Group(group) => memory.lower(&group),
        };
        match lowered {
            None => {}
            Some(Lowered::Alone(at)) => fused.extend(units[at].take()),
            Some(Lowered::Code(code, places, first)) => {
                counts.groups += 1;
                counts.instructions += code.instructions.len();
                fused.extend(units[first].take().map(|unit| unit.replaced(compile(code, places, slots))));
            }
        }
    }
    fused.reverse();
    counts.bytes = fused.iter().map(|unit| unit.bytes).sum();
    (fused, counts)
}

/// What runs in place of a group.
enum Lowered {
    /// The only kernel itself.
    Alone(usize),
    /// Code, the places of its operands (slots and bytes from their start), and the first unit of the group.
    Code(Code, Vec<(usize, usize)>, usize),
}

/// An argument, before it is known which instructions are needed.
enum Symbol<'a> {
    Value(usize),
    Memory(&'a Access, &'a Counted),
    Known(Arg),
}

/// Knows what memory is read later.
struct Memory<'a> {
    slots: &'a [Facts],
    classes: Vec<usize>,
    /// For each class, the number of its slots.
    sharers: Vec<usize>,
    /// For each class, true if a later unit reads it, or if it outlives the program.
    live: Vec<bool>,
}

impl Memory<'_> {
    fn read(&mut self, slot: usize) {
        self.live[self.classes[slot]] = true;
    }

    fn is_live(&self, slot: usize) -> bool {
        self.live[self.classes[slot]]
    }

    /// Notes that all bytes of an access are written.
    fn write(&mut self, access: &Access) {
        let class = self.classes[access.slot];
        if self.sharers[class] == 1 && access.start == 0 && access.end == self.slots[access.slot].bytes {
            self.live[class] = false;
        }
    }

    /// Chooses what a group computes and stores; `None` if nobody reads any of it.
    fn lower(&mut self, group: &Group) -> Option<Lowered> {
        let first = group.members.first()?;
        let mut current: HashMap<(usize, usize, usize, DType), usize> = HashMap::new();
        let mut symbols: Vec<SmallVec<[Symbol; 4]>> = Vec::with_capacity(group.members.len());
        let key = |own: &Access| (own.slot, own.start, own.end, own.dtype);
        for (at, member) in group.members.iter().enumerate() {
            let symbol = |arg| match arg {
                &Argument::Number(number) => Symbol::Known(Arg::Number(number)),
                &Argument::Constant(element) => Symbol::Known(Arg::Constant(element)),
                Argument::Memory(access) => match current.get(&key(access)) {
                    Some(&value) if access.reach == Reach::Dense => Symbol::Value(value),
                    _ => Symbol::Memory(access, &member.counted),
                },
            };
            symbols.push(member.counted.args.iter().map(symbol).collect());
            current.insert(key(&member.counted.out), at);
        }
        let mut stored: Vec<usize> = current.into_values().collect();
        stored.retain(|&value| self.is_live(group.members[value].counted.out.slot));
        stored.sort_unstable();
        let mut needed = vec![false; symbols.len()];
        stored.iter().for_each(|&value| needed[value] = true);
        for at in (0..symbols.len()).rev() {
            if needed[at] {
                for symbol in &symbols[at] {
                    if let Symbol::Value(value) = symbol {
                        needed[*value] = true;
                    }
                }
            }
        }
        if stored.is_empty() {
            return None;
        }
        let only = needed.iter().filter(|&&is_needed| is_needed).count() == 1;
        stored.iter().for_each(|&value| self.write(&group.members[value].counted.out));
        if let (true, &[value]) = (only && group.space.n > 1, stored.as_slice())
            && !group.members[value].resolved
        {
            let own = &group.members[value];
            accesses(&own.counted).filter(|(_, writes)| !writes).for_each(|(own, _)| self.read(own.slot));
            return Some(Lowered::Alone(own.unit));
        }
        let mut places =
            Places { space: &group.space, operands: Vec::new(), at: Vec::new(), known: HashMap::new() };
        let mut code = Code {
            shape: group.space.shape(),
            operands: Vec::new(),
            instructions: Vec::new(),
            stores: Vec::new(),
        };
        let mut place_of: Vec<usize> = vec![0; symbols.len()];
        for (at, member) in group.members.iter().enumerate().filter(|&(at, _)| needed[at]) {
            place_of[at] = code.instructions.len();
            let arg = |symbol: &Symbol| match symbol {
                Symbol::Value(value) => Arg::Value(place_of[*value]),
                Symbol::Known(arg) => *arg,
                Symbol::Memory(access, counted) => {
                    self.read(access.slot);
                    Arg::Memory(places.operand(access, &counted.shape))
                }
            };
            let args = symbols[at].iter().map(arg).collect();
            let (formula, dtype) = (member.counted.formula, member.counted.out.dtype);
            code.instructions.push(Instruction { formula, args, dtype });
        }
        for &value in &stored {
            let counted = &group.members[value].counted;
            code.stores.push((place_of[value], places.operand(&counted.out, &counted.shape)));
        }
        code.operands = places.operands;
        Some(Lowered::Code(code, places.at, first.unit))
    }
}

/// The operands of a group, each once.
struct Places<'a> {
    space: &'a Space,
    operands: Vec<Operand>,
    at: Vec<(usize, usize)>,
    known: HashMap<(usize, usize), SmallVec<[usize; 1]>>,
}

impl Places<'_> {
    fn operand(&mut self, access: &Access, shape: &[usize]) -> usize {
        let reach = match &access.reach {
            Reach::Rows(strides) => Reach::Rows(self.space.strides(shape, strides)),
            other => other.clone(),
        };
        let operand = Operand { dtype: access.dtype, reach };
        let known = self.known.entry((access.slot, access.start)).or_default();
        if let Some(&at) = known.iter().find(|&&at| self.operands[at] == operand) {
            return at;
        }
        known.push(self.operands.len());
        self.operands.push(operand);
        self.at.push((access.slot, access.start));
        self.operands.len() - 1
    }
}

/// A compiled group, the slots that it reaches, and the bytes that it reads and writes.
pub(super) struct Compiled {
    pub run: Box<dyn Fn() -> Result<()> + Send + Sync>,
    pub reaches: SmallVec<[usize; 4]>,
    pub bytes: usize,
}

fn compile(code: Code, places: Vec<(usize, usize)>, slots: &[Facts]) -> Compiled {
    let reaches: SmallVec<[usize; 4]> = places.iter().map(|&(slot, _)| slot).collect();
    let size = |operand: &Operand| match operand.reach {
        Reach::Single => operand.dtype.size(),
        _ => operand.dtype.size() * code.numel(),
    };
    let bytes = code.operands.iter().map(size).sum();
    let memory: Vec<(Storage, usize)> =
        places.into_iter().map(|(slot, start)| (slots[slot].stand_in.clone(), start)).collect();
    let address =
        |(storage, start): &(Storage, usize)| storage.host().unwrap_or(null_mut()).wrapping_add(*start);
    let run: Box<dyn Fn() -> Result<()> + Send + Sync> = if code.numel() == 1 {
        match Single::new(&code) {
            // SAFETY: stand-ins have memory of the host while they are replayed, by one thread at a time; the accesses
            // are within their bytes.
            Some(single) => Box::new(move || Ok(unsafe { single.run(|k| address(&memory[k])) })),
            None => Box::new(no_loop),
        }
    } else {
        match Tiles::new(&code) {
            Some(tiles) => Box::new(move || {
                let operands: SmallVec<[*mut u8; 16]> = memory.iter().map(address).collect();
                // SAFETY: as above; an operand that is written overlaps no other, or its kernel had not joined.
                unsafe { tiles.run(&operands) };
                Ok(())
            }),
            None => Box::new(no_loop),
        }
    };
    Compiled { run, reaches, bytes }
}

fn no_loop() -> Result<()> {
    Err(Error::runtime("a captured group has an instruction without a loop"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Layout, Scalar};
    use crate::capture::pointwise::{At, Pointwise, Source};
    use crate::cpu::group::code::Formula;
    use crate::cpu::pointwise::{Loops, pointwise_loop};
    use crate::tensor::Body;

    static MUL: Loops = Loops { f32: Some(pointwise_loop!(f32; (a, b) a * b)), ..Loops::NONE };

    fn facts(count: usize, bytes: usize) -> Vec<Facts> {
        let slot = |_| Facts { outside: false, bytes, address: None, stand_in: Storage::stand_in(bytes) };
        (0..count).map(slot).collect()
    }

    fn at(slots: &[Facts], slot: usize, layout: Layout) -> At {
        At { slot, body: Body::plain(slots[slot].stand_in.clone(), layout, DType::F32) }
    }

    fn unit(pointwise: Pointwise) -> Unit {
        let mut reaches: SmallVec<[usize; 4]> = smallvec::smallvec![pointwise.out.slot];
        for input in &pointwise.inputs {
            if let Source::Body(at) = input {
                reaches.push(at.slot);
            }
        }
        let writes = smallvec::smallvec![pointwise.out.slot];
        let pointwise = Some(pointwise);
        Unit { run: Box::new(|| Ok(())), line: None, reaches, writes, bytes: 1, pointwise, decision: None }
    }

    /// A product of two whole slots of `n` elements.
    fn product(slots: &[Facts], n: usize, out: usize, a: usize, b: usize) -> Unit {
        let body = |slot| at(slots, slot, Layout::contiguous(&[n]));
        let inputs = smallvec::smallvec![Source::Body(body(a)), Source::Body(body(b))];
        unit(Pointwise { formula: Formula::Row { loops: &MUL, compute: DType::F32 }, out: body(out), inputs })
    }

    /// A unit that may write all that it reaches but `reads`.
    fn opaque(reaches: &[usize], reads: &[usize]) -> Unit {
        let writes = reaches.iter().copied().filter(|slot| !reads.contains(slot)).collect();
        let run = Box::new(|| Ok(()));
        Unit { run, line: None, reaches: reaches.into(), writes, bytes: 1, pointwise: None, decision: None }
    }

    fn reaches(units: &[Unit]) -> Vec<Vec<usize>> {
        let sorted = |unit: &Unit| {
            let mut reaches = unit.reaches.to_vec();
            reaches.sort_unstable();
            reaches.dedup();
            reaches
        };
        units.iter().map(sorted).collect()
    }

    #[test]
    fn a_chain_becomes_one_group_that_stores_only_its_end() {
        let mut slots = facts(5, 400);
        (slots[0].outside, slots[4].outside) = (true, true);
        let units = (1..5).map(|k| product(&slots, 100, k, k - 1, 0)).collect();
        let (fused, counts) = fuse(units, &slots);
        assert_eq!(reaches(&fused), [[0, 4]]);
        assert_eq!((counts.groups, counts.instructions, counts.bytes), (1, 4, 800));
    }

    #[test]
    fn kernels_move_past_what_they_do_not_meet() {
        let mut slots = facts(6, 400);
        [0, 2, 4, 5].into_iter().for_each(|slot| slots[slot].outside = true);
        // The unit in between reads slot 1 and writes slot 2; the last kernel reads neither what it writes nor the reverse.
        let units = vec![product(&slots, 100, 1, 0, 0), opaque(&[1, 2], &[]), product(&slots, 100, 4, 0, 0)];
        assert_eq!(reaches(&fuse(units, &slots).0), [vec![0, 1, 4], vec![1, 2]]);
        // Here it reads what the unit in between may write.
        let units = vec![product(&slots, 100, 1, 0, 0), opaque(&[1, 2], &[]), product(&slots, 100, 4, 0, 2)];
        assert_eq!(reaches(&fuse(units, &slots).0), [vec![0, 1], vec![1, 2], vec![0, 2, 4]]);
        // A kernel that reads what the unit only reads can come before it.
        let units = vec![product(&slots, 100, 1, 0, 0), opaque(&[1, 2], &[1]), product(&slots, 100, 4, 0, 1)];
        assert_eq!(reaches(&fuse(units, &slots).0), [vec![0, 1, 4], vec![1, 2]]);
        // And here it writes what that may read.
        let units = vec![product(&slots, 100, 1, 0, 0), opaque(&[0, 2], &[]), product(&slots, 100, 0, 0, 0)];
        assert_eq!(reaches(&fuse(units, &slots).0), [vec![0, 2], vec![0]]);
    }

    #[test]
    fn what_nobody_reads_goes() {
        let mut slots = facts(4, 400);
        (slots[0].outside, slots[3].outside) = (true, true);
        let units =
            vec![product(&slots, 100, 1, 0, 0), product(&slots, 100, 2, 1, 0), product(&slots, 100, 3, 0, 0)];
        let (fused, counts) = fuse(units, &slots);
        assert_eq!((reaches(&fused), counts.groups), (vec![vec![0, 3]], 0), "the last kernel runs by itself");
    }

    #[test]
    fn parts_of_one_tensor_join_if_they_are_the_same_or_apart() {
        let mut slots = facts(3, 400);
        [0, 1, 2].into_iter().for_each(|slot| slots[slot].outside = true);
        let part =
            |slots: &[Facts], slot, offset| at(slots, slot, Layout { offset, ..Layout::contiguous(&[50]) });
        for (offset, groups) in [(0, 1), (50, 1), (10, 2)] {
            let writes = |slots: &[Facts], out: usize, to: usize, from: usize| {
                let input = || Source::Body(part(slots, 1, from));
                let formula = Formula::Row { loops: &MUL, compute: DType::F32 };
                unit(Pointwise {
                    formula,
                    out: part(slots, out, to),
                    inputs: smallvec::smallvec![input(), input()],
                })
            };
            let units = vec![writes(&slots, 1, 0, 0), writes(&slots, 2, 0, offset)];
            assert_eq!(fuse(units, &slots).0.len(), groups, "{offset}");
        }
    }

    #[test]
    fn storages_of_one_owner_are_one() {
        let mut slots = facts(4, 400);
        (0..4).for_each(|slot| slots[slot].outside = true);
        (slots[0].address, slots[1].address) = (Some(4096), Some(4096 + 200));
        // Slot 0 is read by a unit in between, and slot 1 has a part of its memory.
        let units = vec![product(&slots, 100, 3, 1, 2), opaque(&[0], &[]), product(&slots, 100, 1, 2, 3)];
        assert_eq!(fuse(units, &slots).0.len(), 3);
        slots[1].address = Some(9000);
        let units = vec![product(&slots, 100, 3, 1, 2), opaque(&[0], &[]), product(&slots, 100, 1, 2, 3)];
        assert_eq!(fuse(units, &slots).0.len(), 2);
    }

    #[test]
    fn constants_are_folded_and_their_tensors_are_gone() -> Result<()> {
        let mut slots = facts(3, 4);
        slots[2].outside = true;
        let body = |slot| at(&slots, slot, Layout::contiguous(&[]));
        let fill = |slot, value| {
            let inputs = smallvec::smallvec![Source::Number(Scalar::Float(value))];
            unit(Pointwise { formula: Formula::Copy, out: body(slot), inputs })
        };
        let units = vec![fill(0, 3.0), fill(1, 5.0), product(&slots, 1, 2, 0, 1)];
        let (fused, _) = fuse(units, &slots);
        assert_eq!(reaches(&fused), [[2]]);
        let mut result = [0f32];
        // SAFETY: the number outlives the run.
        unsafe { slots[2].stand_in.set_start(result.as_mut_ptr().cast()) };
        fused[0].run()?;
        assert_eq!(result, [15.0]);
        Ok(())
    }
}
