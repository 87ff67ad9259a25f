//! Groups over many elements: all steps for one tile after another, while the tile stays in the cache. Memory is read and
//! written once, and values that nobody needs later are in tiles only.

use super::code::{Arg, Code, Element, Formula, Instruction, Reach};
use crate::base::{DType, Dims, Scalar};
use crate::cpu::cast::convert::{Conversion, Convert};
use crate::cpu::cast::splat_bytes;
use crate::cpu::par::{GRAIN, Shared, ranges};
use crate::cpu::pointwise::fused::{FusedLoop, has_loop};
use crate::cpu::pointwise::{Each, MAX_IN};
use crate::cpu::reduce::{RowFold, RowParts};
use crate::cpu::simd::{STREAMED_FROM, stream, streamed};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use std::ptr::{null, null_mut};

/// Bytes of tiles and of the operands' parts beside them: half of the first cache.
const CACHED: usize = 16 << 10;

/// The most elements of a tile.
const LONGEST: usize = 2048;

/// Where the elements of a step are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Memory(usize),
    Constant(usize),
    Tile(usize),
}

enum Work {
    Loop(Each),
    /// Some arguments, one bit each, are one value.
    Fused {
        fused: FusedLoop,
        constants: usize,
    },
    Convert(Convert),
    /// Copies elements of this size.
    Copy(usize),
    /// Copies them past the caches.
    Stream(usize),
    /// Gathers the rows of an operand; only `once` if they are the same in each tile.
    Gather {
        operand: usize,
        size: usize,
        once: bool,
    },
    /// Folds elements into the values of rows.
    Fold(usize),
}

struct Step {
    work: Work,
    to: Place,
    args: SmallVec<[Place; 4]>,
}

/// Elements that are all the same.
struct Constant {
    from: From,
    dtype: DType,
    /// True if a loop needs it in each place of a tile.
    in_tile: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum From {
    Element(Element),
    Parameter(usize),
    /// The only element of an operand of this dtype, read as a number.
    Operand(usize, DType),
}

/// A step, with its places as indices into the table of addresses.
struct Placed {
    work: Work,
    to: u16,
    args: [u16; MAX_IN],
    count: u8,
}

/// A group over many elements.
pub struct Tiles {
    n: usize,
    shape: Dims,
    /// For each operand, the size of an element, and whether its address moves from tile to tile.
    operands: Vec<(usize, bool)>,
    /// The strides of operands that are gathered, in bytes.
    strides: Vec<Option<Dims>>,
    constants: Vec<Constant>,
    steps: Vec<Placed>,
    tiles: usize,
    /// The elements of a tile, and its bytes.
    len: usize,
    room: usize,
    grain: usize,
    streams: bool,
    /// True if constants are read from operands.
    reads_constants: bool,
    /// The folds of rows, all of the same length, and the operands that keep their results.
    folds: Vec<(RowFold, usize)>,
}

/// A fold while a thread runs some blocks of its rows.
struct Folding {
    fold: RowFold,
    parts: RowParts,
    /// Where the values of blocks go if a row has several.
    blocks: *mut f64,
}

impl Tiles {
    /// Compiles the code of a group; `None` if an expression has no loop.
    pub fn new(code: &Code) -> Option<Tiles> {
        let mut maker = Maker {
            code,
            steps: Vec::new(),
            constants: Vec::new(),
            values: Vec::with_capacity(code.instructions.len()),
            converted: Vec::new(),
            tiles: 0,
            streams: false,
            deferred: Vec::new(),
            folds: Vec::new(),
        };
        for (at, instruction) in code.instructions.iter().enumerate() {
            let place = maker.instruction(at, instruction)?;
            maker.values.push((place, instruction.dtype));
        }
        for (place, k) in std::mem::take(&mut maker.deferred) {
            maker.store(place, k);
        }
        let period = maker.period();
        let tiles = share_tiles(&mut maker.steps, maker.tiles);
        let widest = maker.widest();
        let in_tiles = maker.constants.iter().filter(|constant| constant.in_tile).count();
        let beside = code.operands.iter().filter(|operand| operand.reach == Reach::Dense).count();
        let fits = CACHED / ((tiles + in_tiles + beside).max(1) * widest);
        let n = code.numel();
        let len = (1usize << fits.max(1).ilog2()).clamp(128, LONGEST);
        // Whole rows, where they are short, are folded at once. One of both lengths divides the other.
        let row = maker.folds.first().map_or(1, |(fold, _)| fold.length());
        let period = if row <= len { period.max(row) } else { period };
        let len = (len - len % period).max(period).min(n.next_multiple_of(8));
        let first = [code.operands.len(), maker.constants.len()];
        let index = |place: Place| {
            let index = match place {
                Place::Memory(k) => k,
                Place::Constant(k) => first[0] + k,
                Place::Tile(k) => first[0] + first[1] + k,
            };
            u16::try_from(index).ok()
        };
        let place = |step: Step| {
            let mut args = [0; MAX_IN];
            for (to, &arg) in args.iter_mut().zip(&step.args) {
                *to = index(arg)?;
            }
            Some(Placed { work: step.work, to: index(step.to)?, args, count: step.args.len() as u8 })
        };
        let steps: Vec<Placed> = maker.steps.into_iter().map(place).collect::<Option<_>>()?;
        // About as much work as eager kernels give a thread at a time.
        let grain = (2 * GRAIN / steps.len().max(1)).clamp(GRAIN / 16, GRAIN).next_multiple_of(len);
        let strides = |(reach, size): (&Reach, usize)| match reach {
            Reach::Rows(strides) => Some(strides.iter().map(|stride| stride * size).collect()),
            _ => None,
        };
        let reads_constants = maker.constants.iter().any(|own| matches!(own.from, From::Operand(..)));
        Some(Tiles {
            n,
            shape: code.shape.clone(),
            operands: code.operands.iter().map(|own| (own.dtype.size(), own.reach == Reach::Dense)).collect(),
            strides: code.operands.iter().map(|own| strides((&own.reach, own.dtype.size()))).collect(),
            constants: maker.constants,
            steps,
            tiles,
            len,
            room: (len * widest).next_multiple_of(64),
            grain,
            streams: maker.streams,
            reads_constants,
            folds: maker.folds,
        })
    }

    /// The number of operands.
    pub fn operands(&self) -> usize {
        self.operands.len()
    }

    /// Runs the group over operands at these addresses.
    ///
    /// # Safety
    /// Each operand is valid for its elements. An operand that is written overlaps no other.
    pub unsafe fn run(&self, operands: &[*mut u8]) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.folds.first() {
                None => self.run_all(operands, &[&[]]),
                Some((first, _)) => self.run_folds(operands, first),
            }
        }
    }

    /// Runs a group that folds rows: blocks of rows at the same time, each from its first to its last element.
    ///
    /// # Safety
    /// See [`Tiles::run`].
    unsafe fn run_folds(&self, operands: &[*mut u8], first: &RowFold) {
        let bases: SmallVec<[Shared<u8>; 16]> = operands.iter().map(|&at| Shared::new(at)).collect();
        let (blocks, of_row) = (first.blocks(), first.blocks_of_row());
        let mut values = vec![0f64; if of_row > 1 { self.folds.len() * blocks } else { 0 }];
        let to = Shared::new(values.as_mut_ptr());
        let grain = (self.grain * blocks / self.n).max(1);
        ranges(blocks, grain, |range| {
            let folding = |(k, &(fold, _)): (usize, &(RowFold, usize))| Folding {
                fold,
                parts: RowParts::new(fold),
                blocks: if of_row > 1 { to.get().wrapping_add(k * blocks) } else { null_mut() },
            };
            let mut folds: Vec<Folding> = self.folds.iter().enumerate().map(folding).collect();
            let end = if range.end == blocks { self.n } else { first.start(range.end) };
            SCRATCH.with_borrow_mut(|lines| {
                let mut table = self.table(lines);
                table.iter_mut().zip(&bases).for_each(|(at, base)| *at = base.get());
                // SAFETY: the caller's contract; ranges do not overlap.
                unsafe {
                    self.fill(&table, &[], self.n.min(self.len));
                    self.run_range(&mut table, first.start(range.start)..end, &mut folds);
                }
            });
            if self.streams {
                streamed();
            }
        });
        for (&(fold, operand), values) in self.folds.iter().zip(values.chunks(blocks)) {
            for (row, values) in values.chunks(of_row).enumerate() {
                // SAFETY: the operand has an element for each row.
                unsafe { fold.store(row, fold.join(values), operands[operand]) };
            }
        }
    }

    /// Runs the group several times, each over its own operands and with its own parameters.
    ///
    /// # Safety
    /// The same as for [`Tiles::run`], and what one run writes overlaps no operand of another.
    pub unsafe fn run_all(&self, operands: &[*mut u8], parameters: &[&[Scalar]]) {
        let bases: SmallVec<[Shared<u8>; 16]> = operands.iter().map(|&at| Shared::new(at)).collect();
        ranges(parameters.len() * self.n, self.grain, |range| {
            SCRATCH.with_borrow_mut(|lines| {
                let mut table = self.table(lines);
                let (mut done, mut filled) = (range.start, null());
                while done < range.end {
                    let (run, start) = (done / self.n, done % self.n);
                    let end = self.n.min(start + range.end - done);
                    for (at, base) in
                        table.iter_mut().zip(&bases[run * self.operands.len()..]).take(self.operands.len())
                    {
                        *at = base.get();
                    }
                    // SAFETY: the caller's contract; ranges do not overlap.
                    unsafe {
                        if self.reads_constants || filled != parameters[run].as_ptr() {
                            self.fill(&table, parameters[run], range.len().min(self.len));
                            filled = parameters[run].as_ptr();
                        }
                        self.run_range(&mut table, start..end, &mut []);
                    }
                    done += end - start;
                }
            });
            if self.streams {
                streamed();
            }
        });
    }

    /// The addresses of operands, which are not set yet, of constants and of tiles.
    fn table(&self, lines: &mut Vec<Line>) -> SmallVec<[*mut u8; 64]> {
        let (own, count) = (self.room / size_of::<Line>(), self.tiles + self.constants.len());
        if lines.len() < count * own {
            lines.resize(count * own, Line([0; 64]));
        }
        let mut table: SmallVec<[*mut u8; 64]> = SmallVec::from_elem(null_mut(), self.operands.len());
        table.extend(lines.chunks_mut(own).take(count).map(|tile| tile.as_mut_ptr().cast::<u8>()));
        table
    }

    /// Fills the constants.
    ///
    /// # Safety
    /// The table has the addresses of the operands.
    unsafe fn fill(&self, table: &[*mut u8], parameters: &[Scalar], n: usize) {
        for (k, constant) in self.constants.iter().enumerate() {
            // SAFETY: the caller's contract; a tile has room for `n` elements of any type in the group.
            unsafe {
                let element = match constant.from {
                    From::Element(element) => element,
                    From::Parameter(at) => Element::of_number(parameters[at], constant.dtype),
                    From::Operand(operand, dtype) => {
                        Element::read(dtype, table[operand]).argument(constant.dtype, true)
                    }
                };
                let count = if constant.in_tile { n } else { 1 };
                splat_bytes(constant.dtype.size(), *element.bytes(), count, table[self.operands.len() + k]);
            }
        }
    }

    /// # Safety
    /// The table has the addresses of the operands, which are moved.
    unsafe fn run_range(&self, table: &mut [*mut u8], range: Range<usize>, folds: &mut [Folding]) {
        let advance = |table: &mut [*mut u8], n: usize| {
            for (at, &(size, moves)) in table.iter_mut().zip(&self.operands) {
                if moves {
                    *at = at.wrapping_add(n * size);
                }
            }
        };
        advance(table, range.start);
        for start in range.clone().step_by(self.len) {
            let n = self.len.min(range.end - start);
            for step in &self.steps {
                if start > range.start && matches!(step.work, Work::Gather { once: true, .. }) {
                    continue;
                }
                // SAFETY: the caller's contract; a tile has room for `n` elements.
                unsafe { self.run_step(step, start, n, table, folds) };
            }
            advance(table, n);
        }
    }

    /// # Safety
    /// The addresses in the table are valid for `n` elements.
    #[inline(always)]
    unsafe fn run_step(
        &self,
        step: &Placed,
        start: usize,
        n: usize,
        table: &[*mut u8],
        folds: &mut [Folding],
    ) {
        let mut args = [null::<u8>(); MAX_IN];
        for k in 0..usize::from(step.count) {
            args[k] = table[usize::from(step.args[k])];
        }
        let to = table[usize::from(step.to)];
        // SAFETY: the caller's contract.
        unsafe {
            match step.work {
                Work::Loop(each) => each(n, to, &args),
                Work::Fused { fused, constants } => {
                    fused(n, to, &args, usize::from(step.count), constants);
                }
                Work::Convert(convert) => convert(n, args[0], to),
                Work::Copy(size) => to.copy_from_nonoverlapping(args[0], n * size),
                Work::Stream(size) => stream(n * size, args[0], to),
                Work::Gather { operand, size, .. } => {
                    if let Some(strides) = &self.strides[operand] {
                        gather(&self.shape, strides, size, args[0], start, n, to);
                    }
                }
                Work::Fold(k) => {
                    let Folding { fold, parts, blocks } = &mut folds[k];
                    parts.add(start, n, args[0], |block, value| match blocks.is_null() {
                        true => fold.store(block, value, to),
                        false => blocks.add(block).write(value),
                    });
                }
            }
        }
    }
}

/// Copies the elements `start..start + n` of rows to `to`.
///
/// # Safety
/// The elements are inside the operand, and `to` has room for them.
unsafe fn gather(
    shape: &[usize],
    strides: &[usize],
    size: usize,
    from: *const u8,
    start: usize,
    n: usize,
    mut to: *mut u8,
) {
    let last = shape.len() - 1;
    let (cols, step) = (shape[last], strides[last]);
    let (mut row, mut col, mut left) = (start / cols, start % cols, n);
    while left > 0 {
        let (mut at, mut rest) = (from.wrapping_add(col * step), row);
        for d in (0..last).rev() {
            at = at.wrapping_add(rest % shape[d] * strides[d]);
            rest /= shape[d];
        }
        let count = left.min(cols - col);
        // SAFETY: the caller's contract.
        unsafe {
            if step == 0 {
                let mut element = [0; 16];
                element.as_mut_ptr().copy_from_nonoverlapping(at, size);
                splat_bytes(size, element, count, to);
            } else {
                to.copy_from_nonoverlapping(at, count * size);
            }
        }
        (to, left) = (to.wrapping_add(count * size), left - count);
        (row, col) = (row + 1, 0);
    }
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code, reason = "elements are written through addresses")] [u8; 64]);

thread_local! {
    /// The tiles of groups that this thread runs.
    static SCRATCH: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

struct Maker<'a> {
    code: &'a Code,
    steps: Vec<Step>,
    constants: Vec<Constant>,
    /// The places and dtypes of the instructions' results.
    values: Vec<(Place, DType)>,
    /// Places that were converted to another dtype before.
    converted: Vec<(Place, DType, Place)>,
    tiles: usize,
    streams: bool,
    /// Results that are written at the end, because the old elements are read until then.
    deferred: Vec<(Place, usize)>,
    folds: Vec<(RowFold, usize)>,
}

impl Maker<'_> {
    fn tile(&mut self) -> Place {
        self.tiles += 1;
        Place::Tile(self.tiles - 1)
    }

    fn push(&mut self, work: Work, to: Place, args: &[Place]) {
        self.steps.push(Step { work, to, args: args.into() });
    }

    /// The largest element in a tile.
    fn widest(&self) -> usize {
        let complex = |dtype: DType| if dtype.is_complex() { 16 } else { 8 };
        let instructions = self.code.instructions.iter().map(|instruction| match instruction.formula {
            // Narrow integers may be converted by way of wider ones.
            Formula::Row { compute: DType::F32, .. } if instruction.dtype.size() <= 4 => 4,
            Formula::Row { compute, .. } => complex(compute).max(complex(instruction.dtype)),
            Formula::Copy => complex(instruction.dtype),
            Formula::Fold(fold) => fold.compute().size(),
        });
        let plain = |dtype: DType| matches!(dtype, DType::F32 | DType::F16 | DType::BF16 | DType::Bool);
        let operands =
            self.code.operands.iter().map(|own| if plain(own.dtype) { 4 } else { complex(own.dtype) });
        instructions.chain(operands).max().unwrap_or(8)
    }

    fn constant(&mut self, from: From, dtype: DType) -> Place {
        let known = |constant: &Constant| constant.from == from && constant.dtype == dtype;
        let at = self.constants.iter().position(known).unwrap_or_else(|| {
            self.constants.push(Constant { from, dtype, in_tile: false });
            self.constants.len() - 1
        });
        Place::Constant(at)
    }

    /// Makes sure that each place of a constant's tile holds it.
    fn spread(&mut self, place: Place) {
        if let Place::Constant(at) = place {
            self.constants[at].in_tile = true;
        }
    }

    /// The elements of an argument as they are in memory; not for numbers.
    fn elements(&mut self, arg: &Arg) -> Option<(Place, DType)> {
        Some(match *arg {
            Arg::Value(at) => self.values[at],
            Arg::Constant(element) => (self.constant(From::Element(element), element.dtype), element.dtype),
            Arg::Memory(k) => {
                let own = &self.code.operands[k];
                match own.reach {
                    Reach::Dense => (Place::Memory(k), own.dtype),
                    Reach::Single => (self.constant(From::Operand(k, own.dtype), own.dtype), own.dtype),
                    Reach::Rows(_) => (self.gathered(k, own.dtype), own.dtype),
                }
            }
            Arg::Number(_) | Arg::Parameter(_) => return None,
        })
    }

    fn gathered(&mut self, k: usize, dtype: DType) -> Place {
        let size = dtype.size();
        let known = |step: &&Step| matches!(step.work, Work::Gather { operand, .. } if operand == k);
        if let Some(step) = self.steps.iter().find(known) {
            return step.to;
        }
        let to = self.tile();
        self.push(Work::Gather { operand: k, size, once: false }, to, &[Place::Memory(k)]);
        to
    }

    /// A number of elements after which operands repeat themselves, so that they are gathered once: 1 if none does.
    fn period(&mut self) -> usize {
        let mut all = 1;
        for step in &mut self.steps {
            let Work::Gather { operand, once, .. } = &mut step.work else { continue };
            let Reach::Rows(strides) = &self.code.operands[*operand].reach else { continue };
            let outer = strides.iter().take_while(|&&stride| stride == 0).count();
            let own: usize = self.code.shape[outer..].iter().product();
            // One of two periods divides the other, since both are made of the innermost dimensions.
            if outer > 0 && own <= LONGEST {
                *once = true;
                all = own.max(all);
            }
        }
        all
    }

    /// An argument of a loop over `compute`.
    fn argument(&mut self, arg: &Arg, compute: DType) -> Option<Place> {
        let (place, dtype) = match *arg {
            Arg::Number(number) => {
                return Some(self.constant(From::Element(Element::of_number(number, compute)), compute));
            }
            Arg::Parameter(at) => return Some(self.constant(From::Parameter(at), compute)),
            Arg::Constant(element) => {
                let argument = element.argument(compute, false);
                return Some(self.constant(From::Element(argument), compute));
            }
            Arg::Memory(k) if self.code.operands[k].reach == Reach::Single => {
                return Some(self.constant(From::Operand(k, self.code.operands[k].dtype), compute));
            }
            _ => self.elements(arg)?,
        };
        let known = |known: &&(Place, DType, Place)| known.0 == place && known.1 == compute;
        if dtype == compute {
            return Some(place);
        }
        if let Some(&(_, _, converted)) = self.converted.iter().find(known) {
            return Some(converted);
        }
        let to = self.tile();
        self.convert(place, dtype, compute, to);
        self.converted.push((place, compute, to));
        Some(to)
    }

    fn convert(&mut self, from: Place, dtype: DType, to_dtype: DType, to: Place) {
        self.spread(from);
        match Conversion::new(dtype, to_dtype).steps() {
            (first, None) => self.push(Work::Convert(first), to, &[from]),
            (first, Some(second)) => {
                let middle = self.tile();
                self.push(Work::Convert(first), middle, &[from]);
                self.push(Work::Convert(second), to, &[middle]);
            }
        }
    }

    /// True if an instruction after `at` reads the old elements of an operand.
    fn is_read_after(&self, at: usize, k: usize) -> bool {
        self.code.instructions[at + 1..].iter().any(|later| later.args.contains(&Arg::Memory(k)))
    }

    /// The operand that keeps the result of instruction `at`, if it can be written there at once.
    fn destination(&self, at: usize) -> Option<usize> {
        let mut own = self.code.stores.iter().filter(|store| store.0 == at).map(|store| store.1);
        own.find(|&k| !self.is_streamed(k) && !self.is_read_after(at, k))
    }

    /// True if an operand is too large for the caches, and is not read.
    fn is_streamed(&self, k: usize) -> bool {
        let bytes = self.code.numel() * self.code.operands[k].dtype.size();
        let is_read = |instruction: &Instruction| instruction.args.contains(&Arg::Memory(k));
        bytes >= STREAMED_FROM && !self.code.instructions.iter().any(is_read)
    }

    /// Writes a result to an operand.
    fn store(&mut self, place: Place, k: usize) {
        if place != Place::Memory(k) {
            self.spread(place);
            let (size, streams) = (self.code.operands[k].dtype.size(), self.is_streamed(k));
            self.streams |= streams;
            self.push(
                if streams { Work::Stream(size) } else { Work::Copy(size) },
                Place::Memory(k),
                &[place],
            );
        }
        self.converted.retain(|(from, _, _)| *from != Place::Memory(k));
    }

    /// Adds the steps of an instruction, and returns the place of its result.
    fn instruction(&mut self, at: usize, instruction: &Instruction) -> Option<Place> {
        let target = self.destination(at);
        let place = match instruction.formula {
            Formula::Copy => self.copy(instruction, target)?,
            Formula::Row { .. } => self.row(instruction, target)?,
            Formula::Fold(fold) => return self.fold(at, instruction, fold),
        };
        let stores: SmallVec<[usize; 2]> =
            self.code.stores.iter().filter(|store| store.0 == at).map(|store| store.1).collect();
        for k in stores {
            if self.is_read_after(at, k) {
                self.deferred.push((place, k));
            } else {
                self.store(place, k);
            }
        }
        Some(place)
    }

    fn copy(&mut self, instruction: &Instruction, target: Option<usize>) -> Option<Place> {
        let arg = match instruction.args[0] {
            Arg::Number(number) => Arg::Constant(Element::new(number, instruction.dtype)),
            Arg::Constant(element) => Arg::Constant(element.converted(instruction.dtype)),
            arg => arg,
        };
        let (place, dtype) = self.elements(&arg)?;
        let is_written = |k: usize| self.code.stores.iter().any(|&(_, stored)| stored == k);
        if dtype != instruction.dtype {
            let to = target.map_or_else(|| self.tile(), Place::Memory);
            self.convert(place, dtype, instruction.dtype, to);
            return Some(to);
        }
        // The old elements of an operand may be needed after it is written.
        if matches!(place, Place::Memory(k) if is_written(k)) && target.is_none() {
            let to = self.tile();
            self.push(Work::Copy(dtype.size()), to, &[place]);
            return Some(to);
        }
        if let (Some(k), Place::Memory(_)) = (target, place) {
            self.push(Work::Copy(dtype.size()), Place::Memory(k), &[place]);
            return Some(Place::Memory(k));
        }
        Some(place)
    }

    fn fold(&mut self, at: usize, instruction: &Instruction, fold: RowFold) -> Option<Place> {
        let from = self.argument(&instruction.args[0], fold.compute())?;
        self.spread(from);
        let &(_, k) = self.code.stores.iter().find(|store| store.0 == at)?;
        self.push(Work::Fold(self.folds.len()), Place::Memory(k), &[from]);
        self.folds.push((fold, k));
        Some(Place::Memory(k))
    }

    fn row(&mut self, instruction: &Instruction, target: Option<usize>) -> Option<Place> {
        let Formula::Row { loops, .. } = instruction.formula else { return None };
        let (compute, own) = self.code.choose_loop(instruction)?;
        let mut args: SmallVec<[Place; 4]> = SmallVec::new();
        for arg in &instruction.args {
            args.push(self.argument(arg, compute)?);
        }
        let result = if loops.predicate { DType::Bool } else { compute };
        let direct = target.filter(|_| result == instruction.dtype).map(Place::Memory);
        let to = direct.unwrap_or_else(|| self.tile());
        let constant = |(k, arg): (usize, &Place)| usize::from(matches!(arg, Place::Constant(_))) << k;
        let constants = args.iter().enumerate().map(constant).sum();
        let is_general = loops.of(compute).is_some_and(|general| std::ptr::eq(general, own));
        let fused = loops.fused.and_then(|fused| fused.of(compute)).filter(|_| {
            is_general && has_loop(args.len(), constants) && !loops.predicate && !args[1..].contains(&to)
        });
        if let Some(fused) = fused {
            self.push(Work::Fused { fused, constants }, to, &args);
        } else {
            args.iter().for_each(|&arg| self.spread(arg));
            match own.over {
                Some(over) if args.contains(&to) => self.push(Work::Loop(over), to, &args),
                None if args.contains(&to) => {
                    let apart = self.tile();
                    self.push(Work::Loop(own.each), apart, &args);
                    self.push(Work::Copy(result.size()), to, &[apart]);
                }
                _ => self.push(Work::Loop(own.each), to, &args),
            }
        }
        if result == instruction.dtype {
            return Some(to);
        }
        let rounded = target.map_or_else(|| self.tile(), Place::Memory);
        self.convert(to, result, instruction.dtype, rounded);
        Some(rounded)
    }
}

/// Gives tiles that are not needed at the same time the same memory, and returns how many are needed.
fn share_tiles(steps: &mut [Step], tiles: usize) -> usize {
    let mut last = vec![0; tiles];
    for (at, step) in steps.iter().enumerate() {
        for place in step.args.iter().chain([&step.to]) {
            if let Place::Tile(tile) = place {
                last[*tile] = at;
            }
        }
    }
    let (mut own, mut free, mut count) = (vec![usize::MAX; tiles], Vec::new(), 0);
    // What is gathered once stays in its tile.
    for step in steps.iter() {
        if let (Work::Gather { once: true, .. }, Place::Tile(tile)) = (&step.work, step.to) {
            (own[tile], last[tile]) = (count, usize::MAX);
            count += 1;
        }
    }
    for (at, step) in steps.iter_mut().enumerate() {
        if let Place::Tile(tile) = step.to
            && own[tile] == usize::MAX
        {
            own[tile] = free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
        }
        let mut ended: SmallVec<[usize; 8]> = SmallVec::new();
        for place in step.args.iter_mut().chain([&mut step.to]) {
            if let Place::Tile(tile) = place {
                if last[*tile] == at && !ended.contains(tile) {
                    ended.push(*tile);
                }
                *place = Place::Tile(own[*tile]);
            }
        }
        free.extend(ended.iter().map(|&tile| own[tile]));
    }
    count
}
