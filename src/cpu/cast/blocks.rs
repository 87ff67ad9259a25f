//! Walks over several strided operands of one shape: as few dimensions as their layouts allow, in the memory order of
//! the first operand, in blocks of rows × columns that stay in the first cache.

use super::tile::splat;
use crate::cpu::par::GRAIN;
use crate::cpu::simd::{simd_fn, transpose_square};
use smallvec::SmallVec;
use std::array::from_fn;
use std::ops::Range;

/// One output and up to six inputs.
pub const MAX_OPERANDS: usize = 7;

/// A number of bytes for each operand.
pub type Bytes = [usize; MAX_OPERANDS];

/// Number of rows in a block if an operand is transposed: its rows are read a few cache lines at a time.
const ACROSS: usize = 32;

/// A dimension of the walk: its size, and the step of each operand.
#[derive(Clone, Copy)]
pub struct Dim {
    pub size: usize,
    pub step: Bytes,
}

/// The layout of an operand: strides in elements (none for a scalar), and the size of an element in bytes.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    pub strides: &'a [usize],
    pub size: usize,
}

pub struct Walk {
    /// The dimensions around the blocks, outermost first.
    outer: SmallVec<[Dim; 6]>,
    pub rows: Dim,
    pub cols: Dim,
    /// Rows and columns of the largest block.
    pub block: (usize, usize),
}

impl Walk {
    /// `tile` is the largest number of elements in a block.
    pub fn new(shape: &[usize], operands: &[Operand], tile: usize) -> Walk {
        let mut outer = coalesced(shape, operands);
        let unit = Dim { size: 1, step: [0; MAX_OPERANDS] };
        let cols = outer.pop().unwrap_or(unit);
        let across = (0..operands.len())
            .filter(|&k| cols.step[k] > 0)
            .find_map(|k| (0..outer.len()).rev().find(|&d| (1..cols.step[k]).contains(&outer[d].step[k])));
        let (rows, block) = match across {
            Some(d) => {
                let rows = outer.remove(d);
                let height = rows.size.min(ACROSS);
                (rows, (height, cols.size.min(tile / height)))
            }
            None if 2 * cols.size <= tile => {
                let rows = outer.pop().unwrap_or(unit);
                (rows, (rows.size.min(tile / cols.size), cols.size))
            }
            None => (unit, (1, tile)),
        };
        Walk { outer, rows, cols, block }
    }

    /// Returns true if every block of operand `k`, with elements of `size` bytes, is contiguous.
    pub fn is_dense(&self, k: usize, size: usize) -> bool {
        let (rows, cols) = self.block;
        (self.cols.step[k] == size || self.cols.size == 1)
            && (rows == 1 || (cols == self.cols.size && self.rows.step[k] == cols * size))
    }

    pub fn blocks(&self) -> usize {
        let around: usize = self.outer.iter().map(|d| d.size).product();
        around * self.rows.size.div_ceil(self.block.0) * self.cols.size.div_ceil(self.block.1)
    }

    /// Number of blocks that are worth a thread.
    pub fn grain(&self) -> usize {
        (GRAIN / (self.block.0 * self.block.1)).max(1)
    }

    /// The block of operand `k` that starts at `at`.
    pub fn place(&self, k: usize, at: *mut u8) -> Place {
        Place { at, row: self.rows.step[k], col: self.cols.step[k] }
    }

    /// Calls `body` for the blocks in `range`, with each operand's offset in bytes and the block's rows and columns.
    pub fn visit(&self, range: Range<usize>, mut body: impl FnMut(&Bytes, usize, usize)) {
        let mut levels: SmallVec<[Dim; 8]> = SmallVec::from_slice(&self.outer);
        levels.push(self.rows.in_blocks(self.block.0));
        levels.push(self.cols.in_blocks(self.block.1));
        let mut index: SmallVec<[usize; 8]> = SmallVec::from_elem(0, levels.len());
        let mut offset = [0; MAX_OPERANDS];
        let mut rest = range.start;
        for (level, i) in levels.iter().zip(&mut index).rev() {
            *i = rest % level.size;
            rest /= level.size;
            advance(&mut offset, level, *i);
        }
        let last = levels.len() - 1;
        for _ in range {
            let rows = (self.rows.size - index[last - 1] * self.block.0).min(self.block.0);
            let cols = (self.cols.size - index[last] * self.block.1).min(self.block.1);
            body(&offset, rows, cols);
            for (level, i) in levels.iter().zip(&mut index).rev() {
                *i += 1;
                if *i < level.size {
                    advance(&mut offset, level, 1);
                    break;
                }
                *i = 0;
                advance(&mut offset, level, 1usize.wrapping_sub(level.size));
            }
        }
    }
}

/// Moves every operand by `n` steps (backwards if `n` has wrapped).
#[inline(always)]
fn advance(offset: &mut Bytes, level: &Dim, n: usize) {
    for (offset, step) in offset.iter_mut().zip(&level.step) {
        *offset = offset.wrapping_add(n.wrapping_mul(*step));
    }
}

impl Dim {
    /// This dimension, walked `n` steps at a time.
    fn in_blocks(self, n: usize) -> Dim {
        Dim { size: self.size.div_ceil(n), step: self.step.map(|s| s * n) }
    }
}

/// The dimensions without those of size 1, sorted by the stride of the first operand. Neighbouring dimensions are
/// joined if they can be stepped through as one in every operand.
fn coalesced(shape: &[usize], operands: &[Operand]) -> SmallVec<[Dim; 6]> {
    let mut sorted: SmallVec<[Dim; 6]> = SmallVec::new();
    for (d, &size) in shape.iter().enumerate().filter(|&(_, &size)| size != 1) {
        let step = from_fn(|k| operands.get(k).map_or(0, |o| o.strides.get(d).map_or(0, |s| s * o.size)));
        sorted.push(Dim { size, step });
    }
    sorted.sort_by(|a, b| b.step[0].cmp(&a.step[0]));
    let mut joined: SmallVec<[Dim; 6]> = SmallVec::new();
    for dim in sorted {
        match joined.last_mut() {
            Some(last) if (0..MAX_OPERANDS).all(|k| last.step[k] == dim.size * dim.step[k]) => {
                *last = Dim { size: last.size * dim.size, step: dim.step };
            }
            _ => joined.push(dim),
        }
    }
    joined
}

/// The block of an operand: its first byte, and its row and column strides in bytes.
#[derive(Clone, Copy)]
pub struct Place {
    pub at: *mut u8,
    pub row: usize,
    pub col: usize,
}

impl Place {
    /// A contiguous block with `cols` columns of elements of `size` bytes.
    pub fn dense(at: *mut u8, cols: usize, size: usize) -> Place {
        Place { at, row: cols * size, col: size }
    }
}

/// Copies a block of elements of `size` bytes (1, 2, 4, 8 or 16).
///
/// # Safety
/// Both blocks are valid for `rows` × `cols` elements and do not overlap.
pub unsafe fn copy_block(size: usize, rows: usize, cols: usize, from: Place, to: Place) {
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => copy_elements::<u8>(rows, cols, from, to),
            2 => copy_elements::<u16>(rows, cols, from, to),
            4 => copy_elements::<u32>(rows, cols, from, to),
            8 => copy_elements::<u64>(rows, cols, from, to),
            _ => copy_elements::<[u64; 2]>(rows, cols, from, to),
        }
    }
}

unsafe fn copy_elements<E: Copy>(rows: usize, cols: usize, from: Place, to: Place) {
    let size = size_of::<E>();
    // SAFETY: the caller's contract: every element addressed below belongs to its block.
    unsafe {
        if from.col == size && to.col == size {
            for r in 0..rows {
                from.at.add(r * from.row).copy_to_nonoverlapping(to.at.add(r * to.row), cols * size);
            }
        } else if from.col == 0 && to.col == size && size <= 8 && cols * size >= LINE {
            repeat_element(rows, cols * size, size, from, to);
        } else if from.col == 0 && to.col == size {
            for r in 0..rows {
                splat(from.at.add(r * from.row).cast::<E>().read_unaligned(), cols, to.at.add(r * to.row));
            }
        } else if from.row == size && to.col == size && from.col > size {
            transpose::<E>(rows, cols, from, to);
        } else {
            copy_corner::<E>(0..rows, 0..cols, from, to);
        }
    }
}

/// Number of bytes that are written at once.
const LINE: usize = 64;

simd_fn! {
    /// Fills rows of `bytes` bytes, at least a line, with copies of one element per row, which has at most eight bytes.
    unsafe fn repeat_element(rows: usize, bytes: usize, size: usize, from: Place, to: Place) {
        for r in 0..rows {
            let (from, to) = (from.at.add(r * from.row), to.at.add(r * to.row));
            let word = match size {
                1 => u64::from(*from) * 0x0101_0101_0101_0101,
                2 => u64::from(from.cast::<u16>().read_unaligned()) * 0x0001_0001_0001_0001,
                4 => u64::from(from.cast::<u32>().read_unaligned()) * 0x0000_0001_0000_0001,
                _ => from.cast::<u64>().read_unaligned(),
            };
            let line = [word; LINE / 8];
            for at in (0..bytes - LINE).step_by(LINE) {
                to.add(at).cast::<[u64; LINE / 8]>().write_unaligned(line);
            }
            // The last line may overlap the one before.
            to.add(bytes - LINE).cast::<[u64; LINE / 8]>().write_unaligned(line);
        }
    }
}

/// Transposes squares of 4 × 4 in registers, and the edges element by element.
unsafe fn transpose<E: Copy>(rows: usize, cols: usize, from: Place, to: Place) {
    let (whole_rows, whole_cols) = (rows & !3, cols & !3);
    // SAFETY: the caller's contract: the squares and the edges are parts of the blocks.
    unsafe {
        for r in (0..whole_rows).step_by(4) {
            for c in (0..whole_cols).step_by(4) {
                let (from_at, to_at) =
                    (from.at.add(r * from.row + c * from.col), to.at.add(r * to.row + c * to.col));
                transpose_square::<E>(from_at, from.col, to_at, to.row);
            }
        }
        copy_corner::<E>(0..whole_rows, whole_cols..cols, from, to);
        copy_corner::<E>(whole_rows..rows, 0..cols, from, to);
    }
}

/// Copies elements with any strides one at a time, along the longer side.
unsafe fn copy_corner<E: Copy>(rows: Range<usize>, cols: Range<usize>, from: Place, to: Place) {
    // SAFETY: the caller's contract.
    unsafe {
        if rows.len() > cols.len() {
            for c in cols {
                let (from_at, to_at) = (from.at.add(c * from.col), to.at.add(c * to.col));
                copy_line::<E>(rows.clone(), (from_at, from.row), (to_at, to.row));
            }
        } else {
            for r in rows {
                let (from_at, to_at) = (from.at.add(r * from.row), to.at.add(r * to.row));
                copy_line::<E>(cols.clone(), (from_at, from.col), (to_at, to.col));
            }
        }
    }
}

#[inline(always)]
unsafe fn copy_line<E: Copy>(range: Range<usize>, from: (*mut u8, usize), to: (*mut u8, usize)) {
    for i in range {
        // SAFETY: the caller's contract.
        unsafe {
            let element = from.0.add(i * from.1).cast::<E>().read_unaligned();
            to.0.add(i * to.1).cast::<E>().write_unaligned(element);
        }
    }
}
