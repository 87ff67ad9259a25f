//! The general path of a pointwise expression: operands of any layout and dtype, in blocks, on several threads.
//! Operands that do not have the layout or dtype of the loop pass through tiles.

use super::rows::{InputRows, RowsLoop, SHORTEST};
use super::{Each, Loop, MAX_IN, Source, constant, splat_scalar};
use crate::base::{DType, Scalar, Strided};
use crate::cpu::cast::blocks::{MAX_OPERANDS, Operand, Place, Walk, copy_block};
use crate::cpu::cast::convert::{Conversion, Convert, widen};
use crate::cpu::cast::tile::{Tile, tile_len};
use crate::cpu::par::{self, GRAIN};
use crate::cpu::simd::{STREAMED_FROM, stream, streamed};
use smallvec::SmallVec;
use std::array::from_fn;
use std::ops::Range;
use std::ptr::{null, null_mut};

/// How the blocks of an input are passed to the loop.
#[derive(Clone, Copy)]
enum Feed {
    /// The loop reads them in place.
    Direct,
    /// The input has one value for all elements; a tile is filled with it once.
    Constant(Scalar),
    /// Blocks are copied to a tile: gathered if they have gaps, and converted if they have another dtype.
    Packed { gather: bool, convert: Option<Convert> },
}

/// An input, and how it is passed to the loop.
#[derive(Clone, Copy)]
struct Input {
    at: *mut u8,
    /// Size of an element in memory, in bytes.
    size: usize,
    feed: Feed,
}

struct BlocksJob<'a> {
    each: Each,
    /// The loop to use instead if an input has one value for each row, or gaps between rows.
    rows_loop: Option<RowsLoop>,
    compute: DType,
    walk: Walk,
    /// The largest number of columns that are processed at once.
    piece: usize,
    ins: SmallVec<[Input; MAX_IN]>,
    out: Strided<'a>,
    /// True if the loop is called for each row of a block, because blocks have gaps that rows do not have.
    by_rows: bool,
    /// True if results go through a tile, because the output has gaps.
    scatter: bool,
    /// True if results are written past the caches.
    streams: bool,
    /// Size in bytes of the loop's result for one element.
    result_size: usize,
    convert: Option<Conversion>,
}
// SAFETY: the pointers are those of the operands, of whose blocks each thread has its own.
unsafe impl Sync for BlocksJob<'_> {}

/// The general path: walks the operands in blocks; those with another layout or dtype than the loop's pass through
/// tiles.
///
/// # Safety
/// See [`super::run`]: the views are live and share a shape, and the loop is the one for `compute`.
#[inline(never)]
pub unsafe fn blocks(element_loop: &Loop, result: DType, compute: DType, out: Strided, ins: &[Source]) {
    let mut operands = [Operand { strides: &[], size: 0 }; MAX_OPERANDS];
    operands[0] = Operand { strides: out.strides, size: out.dtype.size() };
    let mut inputs: SmallVec<[Input; MAX_IN]> = SmallVec::new();
    for (source, operand) in ins.iter().zip(&mut operands[1..]) {
        // SAFETY: sources are valid, and there is at least one element.
        let value = unsafe { constant(source) };
        let unused = Input { at: null_mut(), size: 0, feed: Feed::Direct };
        inputs.push(match (source, value) {
            (_, Some(value)) => Input { feed: Feed::Constant(value), ..unused },
            (Source::Strided(s), None) => {
                *operand = Operand { strides: s.strides, size: s.dtype.size() };
                Input { at: s.ptr, size: s.dtype.size(), ..unused }
            }
            (Source::Scalar(_), None) => unused,
        });
    }
    let as_they_are = out.dtype == compute
        && ins.iter().all(|source| {
            matches!(source, Source::Scalar(_)) || matches!(source, Source::Strided(s) if s.dtype == compute)
        });
    // Conversions may go through wider types.
    let most = if as_they_are { size_of::<Tile>() / compute.size() } else { tile_len(compute.is_complex()) };
    let mut walk = Walk::new(out.shape, &operands[..=ins.len()], most);
    let mut in_place = false;
    let in_rows = |k: usize| operands[k].size > 0 && walk.cols.step[k] == operands[k].size;
    let has_gaps = |k: usize| operands[k].size > 0 && !walk.is_dense(k, operands[k].size);
    let large = !has_gaps(0) && out.numel() * out.dtype.size() >= STREAMED_FROM;
    let stays = |k: usize| operands[k].size > 0 && walk.cols.step[k] == 0;
    let apart = |source: &Source| !matches!(source, Source::Strided(s) if overlap(s, &out));
    let rows_loop = element_loop.rows.filter(|_| {
        as_they_are
            && !large
            && walk.block.1 >= SHORTEST
            && in_rows(0)
            && (1..=ins.len()).any(|k| stays(k) || walk.block.0 > 1 && has_gaps(k))
            && (1..=ins.len()).all(|k| stays(k) || in_rows(k))
            && ins.iter().all(apart)
    });
    let by_rows = rows_loop.is_none()
        && walk.block.0 > 1
        && walk.block.1 >= WORTH_A_CALL
        && (0..=ins.len()).any(|k| in_rows(k) && has_gaps(k));
    let fits = |k: usize| if by_rows { in_rows(k) } else { rows_loop.is_some() || !has_gaps(k) };
    for (k, (source, input)) in ins.iter().zip(inputs.iter_mut()).enumerate() {
        if let (&Source::Strided(s), Feed::Direct) = (source, input.feed) {
            let convert = (s.dtype != compute).then(|| widen(s.dtype, compute));
            let overlaps = overlap(&s, &out);
            in_place |= overlaps;
            if !fits(k + 1) || convert.is_some() || overlaps && element_loop.over.is_none() {
                input.feed = Feed::Packed { gather: has_gaps(k + 1), convert };
            }
        }
    }
    let convert = (out.dtype != result).then(|| Conversion::new(result, out.dtype));
    let scatter = if convert.is_some() { has_gaps(0) } else { !fits(0) };
    let large = large && !by_rows && !in_place;
    let fed = inputs.iter().filter(|i| matches!(i.feed, Feed::Direct)).count();
    let direct = !scatter && convert.is_none() && fed == inputs.len();
    // A single operand can be read as fast through a tile.
    let past = element_loop.past.filter(|_| large && convert.is_none() && fed > 1);
    let over = element_loop.over.filter(|_| in_place);
    let each = past.or(over).unwrap_or(element_loop.each);
    let streams = large && past.is_none();
    // Blocks of one row can be long, so they pass through the tiles in pieces.
    let piece = if direct && !streams { usize::MAX } else { walk.block.1 };
    let (n, share) = (out.numel(), share(out.numel()));
    if walk.block.0 == 1 {
        walk.block.1 = share;
    } else if rows_loop.is_some() {
        walk.block.0 = (share / walk.block.1).clamp(1, walk.rows.size);
    }
    let job = BlocksJob {
        each,
        rows_loop,
        compute,
        walk,
        piece,
        ins: inputs,
        out,
        by_rows,
        scatter,
        streams,
        result_size: result.size(),
        convert,
    };
    let blocks = job.walk.blocks();
    let grain = if n < 2 * GRAIN { blocks } else { (share / (job.walk.block.0 * job.walk.block.1)).max(1) };
    par::ranges(blocks, grain, |range| {
        // SAFETY: the caller's contract; ranges do not overlap.
        unsafe { job.run(range) }
        if large {
            streamed();
        }
    });
}

/// Number of elements that a thread takes at a time: few enough that all threads end together.
fn share(n: usize) -> usize {
    const LEAST: usize = GRAIN / 8;
    (n / (4 * par::threads())).clamp(LEAST, GRAIN).next_multiple_of(LEAST)
}

impl BlocksJob<'_> {
    /// # Safety
    /// The operands are valid, and nobody else works on the blocks in `range`.
    unsafe fn run(&self, range: Range<usize>) {
        let mut tiles = [const { Tile::empty() }; MAX_IN];
        let (mut computed, mut converted, mut spare) = (Tile::empty(), Tile::empty(), Tile::empty());
        let mut pointers = [null(); MAX_IN];
        let (rows, cols) = self.walk.block;
        for (input, tile) in self.ins.iter().zip(&mut tiles) {
            if let Feed::Constant(value) = input.feed {
                // SAFETY: a tile has room for a piece: pieces are larger only if no tile is used.
                unsafe { splat_scalar(value, self.compute, rows * cols.min(self.piece), tile.at()) };
            }
        }
        let size = self.out.dtype.size();
        self.walk.visit(range, |offset, rows, cols| {
            for start in (0..cols).step_by(self.piece) {
                let cols = self.piece.min(cols - start);
                let n = rows * cols;
                let at =
                    |k: usize, from: *mut u8| from.wrapping_add(offset[k] + start * self.walk.cols.step[k]);
                // SAFETY: the walk stays within the operands, and a piece fits a tile if one is used.
                unsafe {
                    for (k, input) in self.ins.iter().enumerate() {
                        pointers[k] = match input.feed {
                            Feed::Direct => at(k + 1, input.at),
                            Feed::Constant(_) => tiles[k].at(),
                            Feed::Packed { gather, convert } => {
                                let place = self.walk.place(k + 1, at(k + 1, input.at));
                                pack(
                                    input.size,
                                    rows,
                                    cols,
                                    place,
                                    gather,
                                    convert,
                                    &mut tiles[k],
                                    &mut spare,
                                )
                            }
                        };
                    }
                    let place = self.walk.place(0, at(0, self.out.ptr));
                    let dense = if self.scatter || self.streams { converted.at() } else { place.at };
                    let result = if self.convert.is_some() { computed.at() } else { dense };
                    if let Some(rows_loop) = self.rows_loop {
                        let (row, col) = (&self.walk.rows.step, &self.walk.cols.step);
                        let line = |k: usize| InputRows {
                            at: pointers[k],
                            row: row[k + 1],
                            constant: col[k + 1] == 0,
                        };
                        rows_loop(rows, cols, result, row[0], &from_fn(line));
                    } else if self.by_rows {
                        self.rows(rows, cols, result, pointers);
                    } else {
                        (self.each)(n, result, &pointers);
                    }
                    if let Some(convert) = &self.convert {
                        convert.run(n, result, dense, &mut spare);
                    }
                    if self.streams {
                        stream(n * size, dense, place.at);
                    } else if self.scatter {
                        copy_block(size, rows, cols, Place::dense(dense, cols, size), place);
                    }
                }
            }
        });
    }

    /// Calls the loop for each row of a block.
    ///
    /// # Safety
    /// The same as the loop's, for all rows.
    unsafe fn rows(&self, rows: usize, cols: usize, mut out: *mut u8, mut ins: [*const u8; MAX_IN]) {
        let packed = cols * self.compute.size();
        let direct = self.convert.is_none() && !self.scatter;
        let out_step = if direct { self.walk.rows.step[0] } else { cols * self.result_size };
        let steps: [usize; MAX_IN] = from_fn(|k| match self.ins.get(k).map(|input| input.feed) {
            Some(Feed::Direct) => self.walk.rows.step[k + 1],
            Some(Feed::Packed { .. }) => packed,
            _ => 0,
        });
        for _ in 0..rows {
            // SAFETY: the caller's contract.
            unsafe { (self.each)(cols, out, &ins) };
            out = out.wrapping_add(out_step);
            for k in 0..self.ins.len() {
                ins[k] = ins[k].wrapping_add(steps[k]);
            }
        }
    }
}

/// Blocks with shorter rows are gathered first.
const WORTH_A_CALL: usize = 16;

/// Copies a block into `tile`, through `spare` if it is both gathered and converted.
#[allow(clippy::too_many_arguments, reason = "a struct of them would be made for each block")]
unsafe fn pack(
    size: usize,
    rows: usize,
    cols: usize,
    from: Place,
    gather: bool,
    convert: Option<Convert>,
    tile: &mut Tile,
    spare: &mut Tile,
) -> *const u8 {
    // SAFETY: the caller's contract: the block is valid and fits a tile.
    unsafe {
        match convert {
            Some(convert) if gather => {
                copy_block(size, rows, cols, from, Place::dense(spare.at(), cols, size));
                convert(rows * cols, spare.at(), tile.at());
            }
            Some(convert) => convert(rows * cols, from.at, tile.at()),
            None if gather => copy_block(size, rows, cols, from, Place::dense(tile.at(), cols, size)),
            None => from.at.copy_to_nonoverlapping(tile.at(), rows * cols * size),
        }
    }
    tile.at()
}

/// Returns true if two operands may share memory.
#[inline]
fn overlap(a: &Strided, b: &Strided) -> bool {
    let end = |s: &Strided| {
        let last: usize = s.shape.iter().zip(s.strides).map(|(n, stride)| (n - 1) * stride).sum();
        s.ptr as usize + (last + 1) * s.dtype.size()
    };
    (a.ptr as usize) < end(b) && (b.ptr as usize) < end(a)
}
