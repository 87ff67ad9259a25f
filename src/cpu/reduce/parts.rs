//! Reductions of dense rows whose elements come part by part, as the tiles of a group rather than from memory. The order of
//! all steps is that of [`super::reduce`], whatever the parts are.

use super::loops::{self, CHUNK, Columns, Lanes, ReduceInput};
use super::plan::{LONG_BLOCK, are_side_by_side};
use super::steps::Wide;
use crate::base::{DType, Reduction};
use crate::cpu::cast::convert::narrow;
use crate::cpu::strided_run::{TILE, compute_type};
use std::array::from_fn;

/// A reduction of each of some rows, which lie one after another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowFold {
    reduction: Reduction,
    /// What results are divided by.
    over: Option<f64>,
    /// The dtypes of elements and of results.
    from: DType,
    to: DType,
    rows: usize,
    length: usize,
}

impl RowFold {
    /// `None` if parts of rows cannot be reduced in the order of [`super::reduce`].
    pub fn new(
        reduction: Reduction,
        over: Option<f64>,
        [from, to]: [DType; 2],
        rows: usize,
        length: usize,
    ) -> Option<RowFold> {
        let is_known = matches!(reduction, Reduction::Sum | Reduction::Max | Reduction::Min)
            && from.is_float()
            && to.is_float();
        let is_by_row = length > 1 && !are_side_by_side(rows, length, length, 1);
        (is_known && is_by_row).then_some(RowFold { reduction, over, from, to, rows, length })
    }

    /// The dtype in which elements are given.
    pub fn compute(&self) -> DType {
        compute_type(self.from)
    }

    /// The elements of a row.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The blocks of a row, which may be reduced at the same time.
    pub fn blocks_of_row(&self) -> usize {
        self.length.div_ceil(LONG_BLOCK)
    }

    /// The blocks of all rows.
    pub fn blocks(&self) -> usize {
        self.rows * self.blocks_of_row()
    }

    /// The first element of a block.
    pub fn start(&self, block: usize) -> usize {
        let of_row = self.blocks_of_row();
        block / of_row * self.length + block % of_row * LONG_BLOCK
    }

    /// The elements that are reduced before their value is combined with that of others.
    fn piece(&self) -> usize {
        if self.from == self.compute() { LONG_BLOCK } else { TILE }
    }

    /// The value of a row, from those of its blocks.
    pub fn join(&self, blocks: &[f64]) -> f64 {
        let joined = blocks.iter().copied().reduce(|a, b| f64::join(self.reduction, a, b));
        joined.unwrap_or(f64::first(self.reduction))
    }

    /// Stores the result of a row.
    ///
    /// # Safety
    /// `out` has a result for each row.
    pub unsafe fn store(&self, row: usize, value: f64, out: *mut u8) {
        let finished = self.over.map_or(value, |over| value.over(over, false));
        let to = out.wrapping_add(row * self.to.size());
        // SAFETY: the caller's contract.
        unsafe {
            match self.to {
                DType::F64 => to.cast::<f64>().write_unaligned(finished),
                dtype => narrow(DType::F64, dtype)(1, (&raw const finished).cast(), to),
            }
        }
    }
}

/// Rows of which some elements are reduced.
pub enum RowParts {
    Single(Box<Parts<f32>>),
    Double(Box<Parts<f64>>),
}

impl RowParts {
    pub fn new(fold: RowFold) -> RowParts {
        match fold.compute() {
            DType::F64 => RowParts::Double(Box::new(Parts::new(fold))),
            _ => RowParts::Single(Box::new(Parts::new(fold))),
        }
    }

    /// Reduces the elements `start..start + n`, which follow the last ones, or begin a block. `sink` gets the blocks that
    /// end there and their values.
    ///
    /// # Safety
    /// `x` has `n` elements.
    pub unsafe fn add(&mut self, start: usize, n: usize, x: *const u8, sink: impl FnMut(usize, f64)) {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                RowParts::Single(parts) => parts.add(start, n, x.cast(), sink),
                RowParts::Double(parts) => parts.add(start, n, x.cast(), sink),
            }
        }
    }
}

/// Rows that are reduced at once.
const ROWS: usize = 64;

pub struct Parts<S: ReduceInput<Wide = f64>> {
    fold: RowFold,
    lanes: Lanes<S>,
    /// Elements that are no whole chunk yet, and how many there are.
    kept: [S; CHUNK],
    count: usize,
    /// The value of the pieces of the block so far.
    block: Option<f64>,
    /// The element that is expected next, its row, its place there, and where its piece begins.
    next: usize,
    row: usize,
    col: usize,
    first: usize,
}

impl<S: ReduceInput<Wide = f64>> Parts<S> {
    fn new(fold: RowFold) -> Parts<S> {
        let lanes = Lanes::new(fold.reduction);
        let kept = from_fn(|_| S::LOWEST);
        Parts { fold, lanes, kept, count: 0, block: None, next: 0, row: 0, col: 0, first: 0 }
    }

    unsafe fn add(&mut self, start: usize, n: usize, mut x: *const S, mut sink: impl FnMut(usize, f64)) {
        let RowFold { reduction, length, .. } = self.fold;
        let (piece, of_row) = (self.fold.piece(), self.fold.blocks_of_row());
        if start != self.next {
            (self.row, self.col) = (start / length, start % length);
            self.first = self.col / piece * piece;
        }
        self.next = start + n;
        let Parts { mut row, mut col, mut first, .. } = *self;
        let mut left = n;
        // SAFETY: the caller's `n` elements.
        unsafe {
            while left > 0 {
                if col == 0 && left >= length && length <= piece {
                    let mut values = [0.0; ROWS];
                    let count = (left / length).min(ROWS);
                    let mut tile = Columns { values: &mut values[..count], indices: &mut [], shift: &[] };
                    loops::rows::<S>(reduction, &mut tile, x, length, length, 0);
                    values[..count].iter().enumerate().for_each(|(k, &value)| sink(row + k, value));
                    (row, left, x) = (row + count, left - count * length, x.add(count * length));
                    continue;
                }
                let end = length.min(first + piece);
                let part = left.min(end - col);
                self.take(x, part);
                (col, left, x) = (col + part, left - part, x.add(part));
                if col < end {
                    continue;
                }
                let value = loops::end_of_row::<S>(
                    reduction,
                    &self.lanes,
                    self.kept.as_ptr(),
                    self.count,
                    end - first,
                );
                let block = self.block.map_or(value, |block| f64::join(reduction, block, value));
                (self.lanes, self.count, self.block) = (Lanes::new(reduction), 0, Some(block));
                if end == length || end.is_multiple_of(LONG_BLOCK) {
                    sink(row * of_row + first / LONG_BLOCK, block);
                    self.block = None;
                }
                first = end;
                if end == length {
                    (row, col, first) = (row + 1, 0, 0);
                }
            }
        }
        (self.row, self.col, self.first) = (row, col, first);
    }

    /// Reduces more elements of a piece.
    unsafe fn take(&mut self, mut x: *const S, mut n: usize) {
        let reduction = self.fold.reduction;
        // SAFETY: the caller's `n` elements.
        unsafe {
            if self.count > 0 {
                let more = n.min(CHUNK - self.count);
                self.kept.as_mut_ptr().add(self.count).copy_from_nonoverlapping(x, more);
                (self.count, n, x) = (self.count + more, n - more, x.add(more));
                if self.count < CHUNK {
                    return;
                }
                loops::add_to_row::<S>(reduction, &mut self.lanes, self.kept.as_ptr(), CHUNK);
            }
            let whole = n - n % CHUNK;
            if whole > 0 {
                loops::add_to_row::<S>(reduction, &mut self.lanes, x, whole);
            }
            self.count = n - whole;
            self.kept.as_mut_ptr().copy_from_nonoverlapping(x.add(whole), self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{mean, reduce};
    use super::*;
    use crate::base::Strided;

    /// The results of kernels over memory.
    fn over_memory(fold: &RowFold, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0f64; fold.rows];
        let (shape, strides) = ([fold.rows, fold.length], [fold.length, 1]);
        let from = Strided {
            ptr: x.as_ptr().cast_mut().cast(),
            dtype: DType::F64,
            shape: &shape,
            strides: &strides,
        };
        let singles: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let from = match fold.from {
            DType::F64 => from,
            dtype => Strided { ptr: singles.as_ptr().cast_mut().cast(), dtype, ..from },
        };
        let out_shape = [fold.rows, 1];
        let to =
            Strided { ptr: out.as_mut_ptr().cast(), dtype: DType::F64, shape: &out_shape, strides: &[1, 1] };
        // SAFETY: the views cover the vectors above.
        unsafe {
            match fold.over {
                Some(_) => mean(to, from, &[1]),
                None => reduce(fold.reduction, to, from, &[1]),
            }
        }
        out
    }

    /// The results of parts of these lengths, in turn.
    fn by_parts(fold: RowFold, x: &[f64], lengths: &[usize]) -> Vec<f64> {
        let singles: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let mut out = vec![0f64; fold.rows];
        let mut values = vec![f64::NAN; fold.blocks()];
        for range in [0..fold.blocks() / 2, fold.blocks() / 2..fold.blocks()] {
            let end = if range.end == fold.blocks() { x.len() } else { fold.start(range.end) };
            let mut parts = RowParts::new(fold);
            let (mut at, mut lengths) = (fold.start(range.start), lengths.iter().cycle());
            while at < end {
                let n = (*lengths.next().unwrap_or(&1)).min(end - at);
                let start: *const u8 = match fold.from {
                    DType::F64 => x[at..].as_ptr().cast(),
                    _ => singles[at..].as_ptr().cast(),
                };
                // SAFETY: the vectors have the elements.
                unsafe { parts.add(at, n, start, |block, value| values[block] = value) };
                at += n;
            }
        }
        for (row, blocks) in values.chunks(fold.blocks_of_row()).enumerate() {
            // SAFETY: there is a result for each row.
            unsafe { fold.store(row, fold.join(blocks), out.as_mut_ptr().cast()) };
        }
        out
    }

    #[test]
    fn parts_have_the_bits_of_whole_rows() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bits = state >> 33;
            // Zeros of both signs, infinities and NaNs, now and then.
            match bits % 97 {
                0 => 0.0,
                1 => -0.0,
                _ => bits as f64 / 1e9 - 1.0,
            }
        };
        let sizes =
            [(1, 2), (3, 31), (40, 8), (5, 127), (4, 128), (2, 700), (3, 5000), (1, 131_073), (2, 400_000)];
        for (rows, length) in sizes {
            let mut x: Vec<f64> = (0..rows * length).map(|_| random()).collect();
            for odd in [0.0, f64::NEG_INFINITY, f64::NAN] {
                x[rows * length / 3] = odd;
                for (reduction, over) in [
                    (Reduction::Sum, None),
                    (Reduction::Sum, Some(length as f64)),
                    (Reduction::Max, None),
                    (Reduction::Min, None),
                ] {
                    for from in [DType::F32, DType::F64] {
                        let Some(fold) = RowFold::new(reduction, over, [from, DType::F64], rows, length)
                        else {
                            panic!("{reduction:?} of rows of {length}")
                        };
                        let bits = |all: Vec<f64>| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                        let expected = bits(over_memory(&fold, &x));
                        for lengths in [&[2048][..], &[1], &[500, 1, 77], &[128, 1000]] {
                            let got = bits(by_parts(fold, &x, lengths));
                            assert_eq!(got, expected, "{reduction:?} {from:?} {rows} {length} {lengths:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn short_rows_are_not_reduced_by_parts() {
        assert!(RowFold::new(Reduction::Sum, None, [DType::F32; 2], 100, 7).is_none());
        assert!(RowFold::new(Reduction::Prod, None, [DType::F32; 2], 1, 70).is_none());
    }
}
