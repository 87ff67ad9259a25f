//! Turns pointwise kernels of a capture into groups, which run in one pass over memory. A kernel joins a group that comes
//! before it if nothing in between reads or writes what it would be moved past. Values that nobody reads after the group
//! are never stored.

use crate::base::{DType, Dims, Error, Result};
use crate::capture::again::compute_again;
use crate::capture::order::{Item, Order};
use crate::capture::pointwise::{Access, Argument, ColumnSum, Counted, Rows, Space};
use crate::capture::program::Unit;
use crate::capture::shader::{self, Language, Level, Shaders};
use crate::cpu::group::code::{Arg, Code, Instruction, Operand, Reach};
use crate::cpu::group::{Single, Tiles};
#[cfg(feature = "gpu")]
use crate::gpu::{self, View};
use crate::storage::Storage;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ptr::null_mut;

/// What fusion needs to know of a slot.
pub(super) struct Facts {
    /// True if its memory outlives a run of the kernels.
    pub outside: bool,
    pub bytes: usize,
    /// The span of memory that is older than the capture.
    pub span: Option<(usize, usize)>,
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
/// On the GPU, kernels over so many elements join groups that have no tensor of theirs.
const FEW: usize = 64 << 10;
/// Up to this many elements, all operands are in the caches.
const SMALL: usize = 4096;

/// A kernel in a group.
pub(super) struct Member {
    pub unit: usize,
    pub counted: Counted,
    /// True if constants stand for tensors that the kernel itself reads.
    pub resolved: bool,
    /// What a shader needs for it; `None` on the host.
    pub language: Option<Language>,
}

impl Member {
    /// The same kernel in another group.
    pub fn again(&self) -> Member {
        Member { counted: self.counted.clone(), resolved: true, ..*self }
    }
}

/// What a member reads or writes (true), and the member's dimensions.
type Reached = (Access, bool, Dims);

/// Kernels that run in one pass.
pub(super) struct Group {
    space: Space,
    language: Option<Language>,
    /// The rows that members fold, or have one value for each of.
    rows: Option<Rows>,
    members: Vec<Member>,
    /// What the members read and write (true) and their dimensions, by class of slots.
    accesses: HashMap<usize, SmallVec<[Reached; 2]>>,
    /// Operands in memory, as far as they are known before the end of the program.
    operands: HashSet<(usize, usize)>,
}

impl Group {
    pub fn new(space: Space, language: Option<Language>) -> Group {
        let (accesses, operands) = (HashMap::new(), HashSet::new());
        Group { space, language, rows: None, members: Vec::new(), accesses, operands }
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn is_shader(&self) -> bool {
        self.language.is_some()
    }

    /// True if the group can begin with these kernels.
    pub fn can_compute_first(&self, members: &[Member], classes: &[usize], slots: &[Facts]) -> bool {
        let mut space = Some(self.space.clone());
        let mut more = self.operands.clone();
        for member in members {
            space = space.and_then(|space| space.refined(&Space::of(&member.counted.shape)));
            more.extend(self.new_operands(&member.counted, slots));
            if !self.is_free(member, None, classes) {
                return false;
            }
        }
        let fits = self.members.len() + members.len() <= MAX_MEMBERS && more.len() <= MAX_OPERANDS;
        space.is_some() && fits
    }

    /// Begins the group with these kernels, unless it does so already.
    pub fn compute_first(&mut self, members: Vec<Member>, classes: &[usize], slots: &[Facts]) {
        let writes = |slot: usize| self.members.iter().any(|own| own.counted.out.slot == slot);
        let mut members: Vec<Member> =
            members.into_iter().filter(|member| !writes(member.counted.out.slot)).collect();
        let Some(unit) = self.members.first().map(|first| first.unit) else { return };
        let own = std::mem::take(&mut self.members);
        // What runs in place of the group takes the place of its first kernel.
        members.iter_mut().for_each(|member| member.unit = unit);
        for member in members {
            let refined = self.space.refined(&Space::of(&member.counted.shape));
            self.add(refined.unwrap_or(self.space.clone()), member, classes, slots);
        }
        self.members.extend(own);
    }

    /// What a shader needs for the group with this kernel.
    fn language_with(&self, member: &Member) -> Option<Option<Language>> {
        match (&self.language, &member.language) {
            (None, None) => Some(None),
            (Some(own), Some(other)) => own.joined(other).map(Some),
            _ => None,
        }
    }

    /// The rows of the group, if its kernels fold rows.
    pub fn rows(&self) -> Option<Rows> {
        self.rows
    }

    /// The rows of the group with this kernel.
    fn rows_with(&self, member: &Member) -> Option<Option<Rows>> {
        match (self.rows, member.counted.rows) {
            (Some(own), Some(other)) if own != other => None,
            (own, other) => Some(own.or(other)),
        }
    }

    /// True if the access of a kernel with these dimensions has one value for each row.
    fn is_by_row(&self, access: &Access, shape: &[usize], rows: Option<Rows>) -> bool {
        // On the host, the values of rows are known once the group has run.
        rows.filter(|_| self.language.is_some()).is_some_and(|rows| {
            let space = self.space.refined(&Space::of(&[rows.count, rows.length]));
            space.is_some_and(|space| {
                space
                    .refined(&Space::of(shape))
                    .is_some_and(|space| space.is_by_row(shape, &access.reach, rows))
            })
        })
    }

    /// What the members reach and whether they write it, by class of slots.
    pub fn reached(&self) -> impl Iterator<Item = (usize, bool)> {
        self.accesses.iter().flat_map(|(&class, all)| all.iter().map(move |(_, writes, _)| (class, *writes)))
    }

    /// The space of the group with this kernel; `None` if it cannot join.
    pub fn joined(&self, own: &Space, member: &Member, classes: &[usize], slots: &[Facts]) -> Option<Space> {
        let space = self.space.refined(own)?;
        if self.language_with(member)?.is_some() {
            let more = self.new_operands(&member.counted, slots).count();
            let is_full = self.members.len() >= shader::MAX_MEMBERS
                || !self.members.is_empty() && self.operands.len() + more > shader::max_operands();
            if is_full {
                return None;
            }
        }
        let rows = self.rows_with(member)?;
        if self.members.is_empty() || own.n == 1 {
            return self.is_free(member, rows, classes).then_some(space);
        }
        let shares = accesses(&member.counted).any(|(own, _)| self.accesses.contains_key(&classes[own.slot]));
        let more = self.new_operands(&member.counted, slots).count();
        let fits = self.members.len() < MAX_MEMBERS
            && (own.n <= SMALL || self.operands.len() + more <= MAX_OPERANDS);
        // A launch costs as much as a pass over some thousands of elements.
        let is_near = shares || member.language.is_some() && own.n <= FEW;
        (is_near && fits && self.is_free(member, rows, classes)).then_some(space)
    }

    /// True if what the kernel writes meets nothing else, and nothing that is written meets what it reads.
    fn is_free(&self, member: &Member, rows: Option<Rows>, classes: &[usize]) -> bool {
        let shape = &member.counted.shape;
        accesses(&member.counted).all(|(own, writes)| {
            let Some(others) = self.accesses.get(&classes[own.slot]) else { return true };
            others.iter().all(|(other, written, other_shape)| {
                let is_row = || {
                    own.is_within(other)
                        && other.is_within(own)
                        && self.is_by_row(own, shape, rows)
                        && self.is_by_row(other, other_shape, rows)
                };
                let in_order =
                    || own.slot == other.slot && (own.is_apart(other) || own.is_same(other) || is_row());
                !(writes || *written) || in_order()
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
        let is_limited = space.n > SMALL || member.language.is_some();
        let more: Vec<_> =
            if is_limited { self.new_operands(&member.counted, slots).collect() } else { Vec::new() };
        self.operands.extend(more);
        self.space = space;
        self.language = self.language_with(&member).unwrap_or(self.language);
        self.rows = self.rows.or(member.counted.rows);
        for (own, writes) in accesses(&member.counted) {
            let all = self.accesses.entry(classes[own.slot]).or_default();
            let shape = &member.counted.shape;
            let is_known = |(other, written, of): &Reached| *written == writes && other == own && of == shape;
            if !all.iter().any(is_known) {
                all.push((own.clone(), writes, shape.clone()));
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
    let (mut items, classes) = order.end();
    let (mut live, mut sharers) = (vec![false; slots.len()], vec![0; slots.len()]);
    for (facts, &class) in slots.iter().zip(&classes) {
        live[class] |= facts.outside;
        sharers[class] += 1;
    }
    let mut memory = Memory { slots, classes, sharers, live };
    let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    compute_again(&mut items, &units, slots, &memory.classes);
    let mut fused: Vec<Unit> = Vec::with_capacity(items.len());
    // From the end on, so that it is known which values are read later.
    for item in items.into_iter().rev() {
        let lowered = match item {
            Item::Unit(at) => {
                units[at].iter().for_each(|unit| unit.reaches.iter().for_each(|&slot| memory.read(slot)));
                vec![Lowered::Alone(at)]
            }
            Item::Group(group) => memory.lower(&group),
            Item::Sums(sums) => {
                for at in sums.iter().map(|(at, _)| *at) {
                    units[at].iter().for_each(|unit| unit.reaches.iter().for_each(|&slot| memory.read(slot)));
                }
                vec![Lowered::Sums(sums)]
            }
            Item::Gone => continue,
        };
        for part in lowered {
            match part {
                Lowered::Sums(sums) => {
                    let first = sums[0].0;
                    let unit = units[first].take();
                    fused.extend(match sums.len() {
                        1 => unit,
                        _ => unit.map(|unit| unit.replaced(compile_sums(sums))),
                    });
                }
                Lowered::Alone(at) => {
                    fused.extend(units[at].take());
                }
                Lowered::Code(code, first) => {
                    counts.groups += 1;
                    counts.instructions += code.code.instructions.len();
                    fused.extend(units[first].take().map(|unit| unit.replaced(compile(*code, slots))));
                }
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
    /// Code, and the first unit of the group.
    Code(Box<Placed>, usize),
    /// Sums of columns, with their units.
    Sums(Vec<(usize, ColumnSum)>),
}

/// The code of a group.
struct Placed {
    code: Code,
    /// The places of its operands: slots, and bytes from their start.
    places: Vec<(usize, usize)>,
    shaders: Shaders,
    language: Option<Language>,
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

    /// What runs in place of a group, the last part first: several parts if the device binds fewer operands at a time.
    fn lower(&mut self, group: &Group) -> Vec<Lowered> {
        let most = if group.language.is_some() { shader::max_operands() } else { usize::MAX };
        let (mut lowered, mut members) = (Vec::new(), group.members.as_slice());
        while !members.is_empty() {
            let live = self.live.clone();
            let mut from = 0;
            loop {
                match self.lower_part(group, &members[from..]) {
                    Some(Lowered::Code(placed, _))
                        if placed.code.operands.len() > most && from + 1 < members.len() =>
                    {
                        self.live.clone_from(&live);
                        from += (members.len() - from).div_ceil(8);
                    }
                    part => {
                        lowered.extend(part);
                        break;
                    }
                }
            }
            members = &members[..from];
        }
        lowered
    }

    /// Chooses what neighbouring members of a group compute and store; `None` if nobody reads any of it.
    fn lower_part(&mut self, group: &Group, members: &[Member]) -> Option<Lowered> {
        let first = members.first()?;
        let mut current: HashMap<(usize, usize, usize, DType), usize> = HashMap::new();
        let mut symbols: Vec<SmallVec<[Symbol; 4]>> = Vec::with_capacity(members.len());
        let key = |own: &Access| (own.slot, own.start, own.end, own.dtype);
        let has_rows = group.rows.is_some();
        for (at, member) in members.iter().enumerate() {
            let symbol = |arg| match arg {
                &Argument::Number(number) => Symbol::Known(Arg::Number(number)),
                &Argument::Constant(element) => Symbol::Known(Arg::Constant(element)),
                Argument::Memory(access) => match current.get(&key(access)) {
                    Some(&value)
                        if access.reach == Reach::Dense
                            || has_rows && group.is_by_row(access, &member.counted.shape, group.rows) =>
                    {
                        Symbol::Value(value)
                    }
                    _ => Symbol::Memory(access, &member.counted),
                },
            };
            symbols.push(member.counted.args.iter().map(symbol).collect());
            current.insert(key(&member.counted.out), at);
        }
        let mut stored: Vec<usize> = current.into_values().collect();
        stored.retain(|&value| self.is_live(members[value].counted.out.slot));
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
        stored.iter().for_each(|&value| self.write(&members[value].counted.out));
        let is_kernel = only && (group.space.n > 1 || group.language.is_some());
        if let (true, &[value]) = (is_kernel, stored.as_slice())
            && !members[value].resolved
        {
            let own = &members[value];
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
        let (mut shaders, mut levels) = (Vec::new(), Vec::new());
        for (at, member) in members.iter().enumerate().filter(|&(at, _)| needed[at]) {
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
            shaders.push(member.counted.shader);
            levels.push(match (member.counted.fold, member.counted.rows) {
                (Some(fold), _) => Level::Fold(fold),
                (None, Some(_)) => Level::Row,
                (None, None) => Level::Element,
            });
        }
        for &value in &stored {
            let counted = &members[value].counted;
            code.stores.push((place_of[value], places.operand(&counted.out, &counted.shape)));
        }
        code.operands = places.operands;
        let shaders = Shaders { of: shaders, levels, rows: group.rows };
        let placed = Placed { code, places: places.at, shaders, language: group.language };
        Some(Lowered::Code(Box::new(placed), first.unit))
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

type Run = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// A compiled group, the slots that it reaches, and the bytes that it reads and writes.
pub(super) struct Compiled {
    pub run: Run,
    pub reaches: SmallVec<[usize; 4]>,
    pub writes: SmallVec<[usize; 2]>,
    pub bytes: usize,
    pub is_steady: bool,
}

fn compile(placed: Placed, slots: &[Facts]) -> Compiled {
    let Placed { code, places, shaders, language } = placed;
    let reaches: SmallVec<[usize; 4]> = places.iter().map(|&(slot, _)| slot).collect();
    let writes = code.stores.iter().map(|&(_, k)| places[k].0).collect();
    let size = |operand: &Operand| {
        operand.dtype.size()
            * match &operand.reach {
                Reach::Single => 1,
                Reach::Dense => code.numel(),
                Reach::Rows(strides) => {
                    let moves = |(&n, &stride): (&usize, &usize)| if stride == 0 { 1 } else { n };
                    code.shape.iter().zip(strides).map(moves).product()
                }
            }
    };
    let bytes = code.operands.iter().map(size).sum();
    let memory: Vec<(Storage, usize)> =
        places.into_iter().map(|(slot, start)| (slots[slot].stand_in.clone(), start)).collect();
    if let Some(language) = &language {
        let run = compile_shader(&code, &shaders, language, memory);
        return Compiled { run, reaches, writes, bytes, is_steady: true };
    }
    let address =
        |(storage, start): &(Storage, usize)| storage.host().unwrap_or(null_mut()).wrapping_add(*start);
    let run: Run = if code.numel() == 1 {
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
    Compiled { run, reaches, writes, bytes, is_steady: false }
}

fn compile_shader(code: &Code, shaders: &Shaders, language: &Language, memory: Vec<(Storage, usize)>) -> Run {
    #[cfg(feature = "gpu")]
    if let Some(run) = shader::compile(code, shaders, language, memory) {
        return Box::new(run);
    }
    #[cfg(not(feature = "gpu"))]
    let _ = (code, shaders, language, memory);
    Box::new(no_loop)
}

/// Sums of the columns of several matrices, as one launch.
fn compile_sums(sums: Vec<(usize, ColumnSum)>) -> Compiled {
    let all = || sums.iter().flat_map(|(_, sum)| [&sum.out, &sum.x]);
    let reaches = all().map(|at| at.slot).collect();
    let writes = sums.iter().map(|(_, sum)| sum.out.slot).collect();
    let bytes = all().map(|at| at.body.numel() * at.body.dtype.size()).sum();
    #[cfg(feature = "gpu")]
    let run: Run = Box::new(move || {
        let shapes: SmallVec<[([usize; 2], [usize; 2]); 8]> =
            sums.iter().map(|(_, sum)| ([sum.rows, sum.columns], [sum.columns, 1])).collect();
        let mut items: SmallVec<[(View, View); 8]> = SmallVec::new();
        for ((_, sum), (shape, strides)) in sums.iter().zip(&shapes) {
            let out = View { shape: &shape[1..], strides: &strides[1..], ..sum.out.body.gpu()? };
            items.push((out, View { shape, strides, ..sum.x.body.gpu()? }));
        }
        gpu::sum_columns(&items)
    });
    #[cfg(not(feature = "gpu"))]
    let run: Run = Box::new(no_loop);
    Compiled { run, reaches, writes, bytes, is_steady: true }
}

fn no_loop() -> Result<()> {
    Err(Error::runtime("a captured group has an instruction without a loop"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Device, Layout, Reduction, Scalar};
    use crate::capture::pointwise::{At, Fold, Pointwise, Source};
    use crate::cpu::group::code::Formula;
    use crate::cpu::pointwise::fused::Fused;
    use crate::cpu::pointwise::{Loops, pointwise_loop};
    use crate::tensor::Body;

    static FUSED: Fused = Fused {
        f32: pointwise_loop!(@fused f32; T; (a, b) a * b),
        f64: pointwise_loop!(@fused f64; T; (a, b) a * b),
    };
    static MUL: Loops =
        Loops { f32: Some(pointwise_loop!(f32; (a, b) a * b)), fused: Some(&FUSED), ..Loops::NONE };

    fn facts(count: usize, bytes: usize) -> Vec<Facts> {
        let slot =
            |_| Facts { outside: false, bytes, span: None, stand_in: Storage::stand_in(bytes, Device::Cpu) };
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
        Unit {
            run: Box::new(|| Ok(())),
            line: None,
            reaches,
            writes,
            bytes: 1,
            pointwise,
            is_steady: false,
            decision: None,
        }
    }

    /// A product of two whole slots of `n` elements.
    fn product(slots: &[Facts], n: usize, out: usize, a: usize, b: usize) -> Unit {
        let body = |slot| at(slots, slot, Layout::contiguous(&[n]));
        let inputs = smallvec::smallvec![Source::Body(body(a)), Source::Body(body(b))];
        let formula = Formula::Row { loops: &MUL, compute: DType::F32 };
        unit(Pointwise { formula, shader: None, out: body(out), inputs, fold: None, is_moved: false })
    }

    /// A unit that may write all that it reaches but `reads`.
    fn opaque(reaches: &[usize], reads: &[usize]) -> Unit {
        let writes = reaches.iter().copied().filter(|slot| !reads.contains(slot)).collect();
        let run = Box::new(|| Ok(()));
        Unit {
            run,
            line: None,
            reaches: reaches.into(),
            writes,
            bytes: 1,
            pointwise: None,
            is_steady: false,
            decision: None,
        }
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

    /// The sum of a slot of `n` elements.
    fn sum(slots: &[Facts], n: usize, out: usize, x: usize) -> Unit {
        let fold = Fold { reduction: Reduction::Sum, dims: smallvec::smallvec![0], over: None };
        let inputs = smallvec::smallvec![Source::Body(at(slots, x, Layout::contiguous(&[n])))];
        unit(Pointwise {
            formula: Formula::Copy,
            shader: None,
            out: at(slots, out, Layout::contiguous(&[1])),
            inputs,
            fold: Some(fold),
            is_moved: false,
        })
    }

    #[test]
    fn a_sum_joins_the_group_that_makes_what_it_adds() -> Result<()> {
        let mut slots = facts(4, 400);
        slots[2] = facts(1, 4).remove(0);
        [0, 2, 3].into_iter().for_each(|slot| slots[slot].outside = true);
        // The sum; what reads it is another group.
        let units =
            vec![product(&slots, 100, 1, 0, 0), sum(&slots, 100, 2, 1), product(&slots, 100, 3, 1, 0)];
        let (fused, counts) = fuse(units, &slots);
        assert_eq!(reaches(&fused), [[0, 2, 3]]);
        assert_eq!((counts.groups, counts.bytes), (1, 804));
        let mut elements: Vec<f32> = (0..100u8).map(f32::from).collect();
        let (mut total, mut cubes) = ([0f32], [0f32; 100]);
        // SAFETY: the vectors outlive the run.
        unsafe {
            slots[0].stand_in.set_start(elements.as_mut_ptr().cast());
            slots[2].stand_in.set_start(total.as_mut_ptr().cast());
            slots[3].stand_in.set_start(cubes.as_mut_ptr().cast());
        }
        fused[0].run()?;
        assert_eq!((total[0], cubes[3]), (328_350.0, 27.0));
        Ok(())
    }

    #[test]
    fn large_values_are_computed_again_where_that_saves_a_pass() {
        let n = 1 << 18;
        let program = |between: Vec<Unit>| {
            let mut slots = facts(5, 4 * n);
            [0, 1, 4].into_iter().for_each(|slot| slots[slot].outside = true);
            let mut units = vec![product(&slots, n, 2, 0, 1)];
            units.extend(between);
            units.push(product(&slots, n, 4, 2, 0));
            fuse(units, &slots).0
        };
        // What stands between reads all of the value's memory, or none of it.
        assert_eq!(program(vec![opaque(&[2, 3, 4], &[2, 4])]).len(), 3);
        let fused = program(vec![opaque(&[4, 3], &[4])]);
        assert_eq!(reaches(&fused), [vec![3, 4], vec![0, 1, 4]]);
        // What it is computed from has changed.
        assert_eq!(program(vec![opaque(&[4, 1], &[4])]).len(), 3);
        assert_eq!(program(vec![opaque(&[4, 0], &[4])]).len(), 3);
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
                    shader: None,
                    out: part(slots, out, to),
                    inputs: smallvec::smallvec![input(), input()],
                    fold: None,
                    is_moved: false,
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
        (slots[0].span, slots[1].span) = (Some((4096, 4096 + 400)), Some((4096 + 200, 4096 + 600)));
        // Slot 0 is read by a unit in between, and slot 1 has a part of its memory.
        let units = vec![product(&slots, 100, 3, 1, 2), opaque(&[0], &[]), product(&slots, 100, 1, 2, 3)];
        assert_eq!(fuse(units, &slots).0.len(), 3);
        slots[1].span = Some((9000, 9400));
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
            unit(Pointwise {
                formula: Formula::Copy,
                shader: None,
                out: body(slot),
                inputs,
                fold: None,
                is_moved: false,
            })
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
