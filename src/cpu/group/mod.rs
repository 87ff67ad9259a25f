//! Runs a group over the elements of several tensors: all of its instructions for one tile after another, while the tile
//! stays in the cache. Memory is read once, and no intermediate tensor is made.

pub mod code;
mod single;
mod tiles;

use super::cast::convert::{Conversion, narrow, widen};
use super::cast::tile::{Tile, tile_len};
use super::par::{GRAIN, ranges};
use super::pointwise::fused::has_loop;
use super::pointwise::{Loop, Loops, MAX_IN, powers, splat_scalar};
use super::strided_run::{RunBuffers, StridedRun};
use super::walk::Walk;
use crate::base::group::{Argument, Group, Instruction};
use crate::base::{DType, Scalar, Strided};
use smallvec::SmallVec;
use std::array::from_fn;
use std::ops::Range;
use std::ptr::{null, null_mut};

pub use single::Single;
pub use tiles::Tiles;

/// The largest number of operands of a group.
pub const MAX_OPERANDS: usize = 8;
/// The largest number of registers of a group.
pub const MAX_REGISTERS: usize = 24;

/// One run of a group.
pub struct Job<'a> {
    /// The operands, which share a shape.
    pub operands: &'a [Strided<'a>],
    pub numbers: &'a [Scalar],
}

/// Runs the jobs. If they are `apart`, all run at once, on several threads if there is enough work; otherwise they run
/// one after another. Registers of operands have the types of `types`.
///
/// # Safety
/// All operands are valid and of their job's shape. An operand that a job writes overlaps neither itself nor another
/// operand, unless both are written and have the same layout; if the jobs are `apart`, it overlaps no operand of another
/// job either.
pub unsafe fn run(group: &Group<&'static Loops>, types: &[DType], jobs: &[Job], apart: bool) {
    debug_assert!(group.operands <= MAX_OPERANDS && group.registers <= MAX_REGISTERS);
    if !apart {
        // SAFETY: the caller's contract, for each job.
        jobs.iter().for_each(|job| unsafe { run(group, types, std::slice::from_ref(job), true) });
        return;
    }
    let mut starts: SmallVec<[usize; 64]> = SmallVec::new();
    let mut total = 0;
    for job in jobs {
        starts.push(total);
        total += job.operands[0].numel();
    }
    // A group costs about as much as ten operators, with some margin.
    ranges(total, GRAIN / 4, |range| {
        let mut numbers = Numbers::new(group);
        let first = starts.partition_point(|&start| start <= range.start).saturating_sub(1);
        for (job, &start) in jobs[first..].iter().zip(&starts[first..]) {
            if start >= range.end {
                break;
            }
            let n = job.operands[0].numel();
            let part = range.start.saturating_sub(start)..(range.end - start).min(n);
            // SAFETY: the caller's contract; ranges do not overlap.
            unsafe { run_part(group, types, job, part, &mut numbers) };
        }
    });
}

/// Tiles that are filled with the numbers of a job.
struct Numbers<'a> {
    group: &'a Group<&'static Loops>,
    tiles: Vec<Tile>,
    /// The numbers and the count of elements that the tiles are filled with.
    filled: (*const Scalar, usize),
}

impl<'a> Numbers<'a> {
    fn new(group: &'a Group<&'static Loops>) -> Numbers<'a> {
        let mut tiles = Vec::with_capacity(group.numbers.len());
        tiles.resize_with(group.numbers.len(), Tile::empty);
        Numbers { group, tiles, filled: (null(), 0) }
    }

    /// Fills the first `n` elements of the tiles. The jobs of a run often share their numbers.
    fn fill(&mut self, values: &[Scalar], n: usize) {
        if self.filled.0 == values.as_ptr() && self.filled.1 >= n {
            return;
        }
        for ((number, &value), tile) in self.group.numbers.iter().zip(values).zip(&mut self.tiles) {
            // SAFETY: a tile has room for `n` elements of any type.
            unsafe { splat_scalar(value, number.compute, n, tile.at()) };
        }
        self.filled = (values.as_ptr(), n);
    }
}

/// Runs the elements `part` of a job.
unsafe fn run_part(
    group: &Group<&'static Loops>,
    types: &[DType],
    job: &Job,
    part: Range<usize>,
    numbers: &mut Numbers,
) {
    if part.is_empty() {
        return;
    }
    let first = &job.operands[0];
    let alike = first.is_contiguous() && job.operands.iter().all(|x| x.strides == first.strides);
    let is_complex = types.iter().any(|own| own.is_complex())
        || group.instructions.iter().any(|instruction| instruction.compute.is_complex());
    let tile = tile_len(is_complex);
    numbers.fill(job.numbers, part.len().min(tile));
    let mut tiles = [const { Tile::empty() }; MAX_REGISTERS];
    let mut rooms = [const { RunBuffers::empty() }; MAX_OPERANDS];
    let mut spare = Spare::new();
    let is_single_pass = is_single_pass(group, types);
    let mut run = |offsets: [usize; MAX_OPERANDS], steps: [usize; MAX_OPERANDS], n: usize| {
        let lines: SmallVec<[StridedRun; MAX_OPERANDS]> = (job.operands.iter().zip(types))
            .zip(steps)
            .map(|((x, &own), step)| StridedRun::reader(x, step, own))
            .collect();
        // A single instruction without registers of its own needs no tiles.
        let no_tiles = is_single_pass && lines.iter().all(StridedRun::is_direct);
        let most = if no_tiles { n } else { tile };
        let mut done = 0;
        while done < n {
            let len = (n - done).min(most);
            let mut registers = [Register { at: null_mut(), holds: DType::Bool }; MAX_REGISTERS];
            let at = |k: usize| offsets[k].wrapping_add(done.wrapping_mul(steps[k]));
            // SAFETY: the walk stays inside the operands, and a tile has room for `len` elements.
            unsafe {
                for (k, line) in lines.iter().enumerate() {
                    let values = line.read(at(k), len, &mut rooms[k]).cast_mut();
                    registers[k] = Register { at: values, holds: types[k] };
                }
                for (register, tile) in registers[lines.len()..].iter_mut().zip(&mut tiles) {
                    register.at = tile.at();
                }
                for instruction in &group.instructions {
                    run_instruction(instruction, len, &mut registers, job.numbers, numbers, &mut spare);
                }
                for &(k, from) in &group.results {
                    let (k, from) = (usize::from(k), registers[usize::from(from)]);
                    let mut values = from.at.cast_const();
                    if from.holds != types[k] {
                        let convert = Conversion::new(from.holds, types[k]);
                        convert.run(len, values, spare.result.at(), &mut spare.rounded);
                        values = spare.result.at();
                    }
                    StridedRun::writer(&job.operands[k], steps[k], types[k]).write(
                        values,
                        at(k),
                        len,
                        &mut rooms[k],
                    );
                }
            }
            done += len;
        }
    };
    if alike {
        return run([part.start; MAX_OPERANDS], [1; MAX_OPERANDS], part.len());
    }
    // Walk in the memory order of the first operand, which is usually written; the others often have the same.
    let mut dims: SmallVec<[usize; 6]> = (0..first.shape.len()).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(first.strides[d]));
    let strides = from_fn(|k| job.operands.get(k).map_or(first.strides, |x| x.strides));
    Walk::<MAX_OPERANDS>::over(&dims, first.shape, strides).runs(part, run);
}

/// True if the only instruction computes a result from operands in memory, and needs no tiles for its numbers.
fn is_single_pass(group: &Group<&'static Loops>, types: &[DType]) -> bool {
    let [only] = group.instructions.as_slice() else { return false };
    let number = |(k, arg): (usize, &Argument)| usize::from(matches!(arg, Argument::Number(_))) << k;
    let constants: usize = only.args.iter().enumerate().map(number).sum();
    let is_over = |arg: &Argument| *arg == Argument::Register(only.to);
    group.registers == group.operands
        && group.results.len() == 1
        && types.iter().all(|&own| own == only.compute)
        && only.rounds.is_none()
        && (constants == 0
            || has_loop(only.args.len(), constants)
                && !only.args[1..].iter().any(is_over)
                && only.expr.fused.is_some_and(|fused| fused.of(only.compute).is_some()))
}

/// A register's memory, and the dtype of the elements that it holds.
#[derive(Clone, Copy)]
struct Register {
    at: *mut u8,
    holds: DType,
}

/// Tiles for what an instruction converts.
struct Spare {
    args: [Tile; MAX_IN],
    result: Tile,
    rounded: Tile,
}

impl Spare {
    const fn new() -> Spare {
        Spare { args: [const { Tile::empty() }; MAX_IN], result: Tile::empty(), rounded: Tile::empty() }
    }
}

/// Computes `n` elements.
///
/// # Safety
/// The registers that the instruction names have `n` elements, and so have the tiles of numbers.
#[inline]
unsafe fn run_instruction(
    instruction: &Instruction<&'static Loops>,
    n: usize,
    registers: &mut [Register; MAX_REGISTERS],
    values: &[Scalar],
    numbers: &mut Numbers,
    spare: &mut Spare,
) {
    let compute = instruction.compute;
    let to = registers[usize::from(instruction.to)].at;
    let mut ins = [null(); MAX_IN];
    let (mut overlaps, mut constants) = (false, 0usize);
    // SAFETY: the caller's contract; a tile has room for `n` elements of any type.
    unsafe {
        for (k, arg) in instruction.args.iter().enumerate() {
            ins[k] = match *arg {
                Argument::Number(at) => {
                    constants |= 1 << k;
                    numbers.tiles[usize::from(at)].at().cast_const()
                }
                Argument::Register(at) => {
                    let Register { at, holds } = registers[usize::from(at)];
                    if holds == compute {
                        overlaps |= at == to;
                        at.cast_const()
                    } else {
                        Conversion::new(holds, compute).run(n, at, spare.args[k].at(), &mut spare.rounded);
                        spare.args[k].at().cast_const()
                    }
                }
            };
        }
        let Some(element_loop) = choose_loop(instruction, values) else { return };
        let fused = instruction.expr.fused.and_then(|fused| fused.of(compute));
        if !fused.is_some_and(|fused| fused(n, to, &ins, instruction.args.len(), constants)) {
            run_loop(element_loop, overlaps, compute, n, to, &ins, spare);
        }
        if let Some(dtype) = instruction.rounds {
            narrow(compute, dtype)(n, to, spare.rounded.at());
            widen(dtype, compute)(n, spare.rounded.at(), to);
        }
    }
    let holds = if instruction.expr.predicate { DType::Bool } else { compute };
    registers[usize::from(instruction.to)].holds = holds;
}

/// Runs a dense loop, whose output may be one of its inputs if it `overlaps`.
///
/// # Safety
/// See [`run_instruction`].
#[inline(always)]
unsafe fn run_loop(
    element_loop: &Loop,
    overlaps: bool,
    compute: DType,
    n: usize,
    to: *mut u8,
    ins: &[*const u8; MAX_IN],
    spare: &mut Spare,
) {
    // SAFETY: the caller's contract; a tile has room for `n` elements of any type.
    unsafe {
        match element_loop.over {
            Some(over) if overlaps => over(n, to, ins),
            // The loop for a known exponent may not write over its operand, though the general one may.
            None if overlaps => {
                (element_loop.each)(n, spare.result.at(), ins);
                to.copy_from_nonoverlapping(spare.result.at(), n * compute.size());
            }
            _ => (element_loop.each)(n, to, ins),
        }
    }
}

/// The instruction's loop, or the one for a known exponent.
#[inline]
fn choose_loop(instruction: &Instruction<&'static Loops>, values: &[Scalar]) -> Option<&'static Loop> {
    let loops = instruction.expr;
    if let (false, Some(&Argument::Number(at))) = (loops.powers.is_empty(), instruction.args.last())
        && let Some(power) = powers::choose(loops, values[usize::from(at)], instruction.compute)
    {
        return Some(power);
    }
    loops.of(instruction.compute)
}
