//! Divides a reduction: outputs into groups, and the elements behind each group into blocks.

use super::loops::{self, Columns, ReduceInput};
use super::steps::{Partial, Wide};
use crate::base::{Dims, Reduction, Strided};
use crate::cpu::par;
use crate::cpu::strided_run::{RunBuffers, StridedRun, TILE};
use crate::cpu::walk::Walk;
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::ops::Range;

/// Number of elements that are reduced before the result is combined with that of other blocks.
const BLOCK: usize = 32_768;
/// The same for elements that are one dense row.
pub const LONG_BLOCK: usize = 131_072;
/// Shorter runs are not worth a call of their own.
const SHORT: usize = 32;

/// Rows of few columns are joined to rows of up to this length.
const JOINED: usize = 64;
/// At least this many joined rows must remain.
const WORTH_JOINING: usize = 8;

/// True if outputs, `column` apart, are reduced side by side rather than one after another. Each has `rows` elements behind
/// it, `row` apart.
pub fn are_side_by_side(outputs: usize, column: usize, rows: usize, row: usize) -> bool {
    outputs >= SHORT && (column < row || (rows < SHORT && row != 1) || rows < 8)
}

/// A group of outputs and their values.
pub struct GroupResult<'a, A> {
    /// The linear index of the first output, in the order of the plan.
    pub first: usize,
    /// Its offsets in the two outputs.
    pub at: [usize; 2],
    pub values: &'a [A],
    pub indices: &'a [i64],
}

/// A reduction of elements that are read as `S`. Neighbouring outputs form tiles. A tile is reduced output by output
/// (rows), or side by side (columns) if neighbouring outputs are closer in memory than the elements behind each.
pub struct ReducePlan<S> {
    /// The dimensions that are kept, with the strides of `x` and both outputs, except the last one, which is cut into
    /// tiles.
    kept: Walk<3>,
    outputs: usize,
    pub steps: [usize; 3],
    tile: usize,
    by_columns: bool,
    reduced: Walk<1>,
    /// Number of rows of few columns that are joined to one long row.
    joined_rows: usize,
    block: usize,
    line: StridedRun,
    source: PhantomData<S>,
}

impl<S: ReduceInput> ReducePlan<S> {
    /// `outs` are the strides of both outputs, in the dimensions of `x`.
    pub fn new(reduction: Reduction, x: &Strided, outs: [&[usize]; 2], dims: &[usize]) -> ReducePlan<S> {
        let (mut reduced, mut kept): (Dims, Dims) = (0..x.shape.len()).partition(|d| dims.contains(d));
        let densest_last = |dims: &mut Dims| dims.sort_by_key(|&d| std::cmp::Reverse(x.strides[d]));
        densest_last(&mut kept);
        if !reduction.is_arg() {
            densest_last(&mut reduced);
        }
        let mut kept = Walk::over(&kept, x.shape, [x.strides, outs[0], outs[1]]);
        let reduced = Walk::over(&reduced, x.shape, [x.strides]);
        let (outputs, steps) = kept.pop();
        let (rows, row) =
            (reduced.shape.last().map_or(1, |&n| n), reduced.strides[0].last().map_or(0, |&s| s));
        let column = steps[0];
        let joins = !reduction.is_arg() && column == 1 && row == outputs && x.dtype == S::DTYPE;
        let joined_rows = if joins { (JOINED / outputs.max(1)).min(rows / WORTH_JOINING).max(1) } else { 1 };
        // A power of two, so that joined rows can be halved.
        let joined_rows = 1 << joined_rows.ilog2();
        let by_columns = are_side_by_side(outputs, column, rows, row) || (joined_rows > 1 && outputs > 1);
        let line = StridedRun::reader(x, if by_columns { column } else { row }, S::DTYPE);
        let block = if by_columns { (BLOCK / outputs.clamp(1, TILE)).max(1024) } else { LONG_BLOCK };
        let tile = if by_columns { TILE } else { (BLOCK / reduced.numel().max(1)).clamp(1, TILE) };
        ReducePlan {
            kept,
            outputs,
            steps,
            tile,
            by_columns,
            reduced,
            joined_rows,
            block,
            line,
            source: PhantomData,
        }
    }

    /// Reduces every group, and passes the results to `sink`, which several threads may call. `shift` has an element
    /// per output, in the order of the plan, which sums of squares subtract from the elements.
    pub fn run(
        &self,
        reduction: Reduction,
        shift: Option<&[S::Wide]>,
        sink: &(dyn Fn(GroupResult<S::Wide>) + Sync),
    ) {
        let size = self.reduced.numel();
        let tiles = self.outputs.div_ceil(self.tile);
        let groups = self.kept.numel() * tiles;
        let blocks = size.div_ceil(self.block).max(1);
        let room = self.tile.min(self.outputs) * self.joined_rows;
        let block = |i: usize| i * self.block..size.min((i + 1) * self.block);
        let group = |g: usize| {
            let column = g % tiles * self.tile;
            let at = self.kept.at(g / tiles);
            let at = [0, 1, 2].map(|i| at[i] + column * self.steps[i]);
            Group {
                first: g / tiles * self.outputs + column,
                at,
                width: self.tile.min(self.outputs - column),
            }
        };
        if groups >= 4 || blocks == 1 {
            let work = size.saturating_mul(self.outputs.min(self.tile)).max(1);
            par::ranges(groups, (par::GRAIN / work).max(1), |range| {
                let mut state = State::new(room);
                let mut next = State::new(if blocks > 1 { room } else { 1 });
                for g in range {
                    let group = group(g);
                    self.reduce_block(reduction, &group, shift, block(0), &mut state);
                    for i in 1..blocks {
                        self.reduce_block(reduction, &group, shift, block(i), &mut next);
                        state.join(reduction, &next, group.width);
                    }
                    sink(state.found(&group));
                }
            });
        } else {
            for group in (0..groups).map(group) {
                let part = |i: usize| {
                    let mut state = State::new(room);
                    self.reduce_block(reduction, &group, shift, block(i), &mut state);
                    state
                };
                let mut whole = None;
                par::each(blocks, 1, part, |next| match &mut whole {
                    Some(state) => State::join(state, reduction, &next, group.width),
                    None => whole = Some(next),
                });
                let Some(state) = whole else { return };
                sink(state.found(&group));
            }
        }
    }

    /// Reduces a block for every output of a group.
    fn reduce_block(
        &self,
        reduction: Reduction,
        group: &Group,
        shift: Option<&[S::Wide]>,
        block: Range<usize>,
        state: &mut State<S::Wide>,
    ) {
        if self.by_columns {
            return self.reduce_columns(reduction, group, shift, block, state);
        }
        let State { values, indices, .. } = state;
        let shift = shift.map_or(&[][..], |all| &all[group.first..group.first + group.width]);
        let index = block.start as i64;
        if self.line.is_direct() && self.reduced.shape.len() == 1 {
            let mut tile = Columns { values: &mut values[..group.width], indices, shift };
            let x = self.line.at(group.at[0] + block.start).cast_const().cast();
            // SAFETY: each row's block is inside `x`.
            unsafe { loops::rows::<S>(reduction, &mut tile, x, block.len(), self.steps[0], index) };
            return;
        }
        let mut room = RunBuffers::empty();
        for i in 0..group.width {
            let mut tile = Columns {
                values: &mut values[i..=i],
                indices: &mut indices[i..=i],
                shift: shift.get(i..=i).unwrap_or(&[]),
            };
            self.reduce_row(reduction, group.at[0] + i * self.steps[0], &mut tile, block.clone(), &mut room);
        }
    }

    fn reduce_row(
        &self,
        reduction: Reduction,
        from: usize,
        tile: &mut Columns<S::Wide>,
        block: Range<usize>,
        room: &mut RunBuffers,
    ) {
        let longest = if self.line.is_direct() { usize::MAX } else { TILE };
        let mut index = block.start as i64;
        let mut state: Option<Partial<S::Wide>> = None;
        self.reduced.runs(block, |[start], [step], n| {
            let mut done = 0;
            while done < n {
                let len = longest.min(n - done);
                // SAFETY: the run is inside `x`.
                unsafe {
                    let x = self.line.read(from + start + done * step, len, room);
                    loops::rows::<S>(reduction, tile, x.cast(), len, 0, index);
                }
                let part = Partial { value: tile.values[0], index: tile.indices[0] };
                state = Some(state.map_or(part, |state| Partial::join(reduction, state, part)));
                done += len;
                index += len as i64;
            }
        });
        let found = state.unwrap_or(Partial { value: S::Wide::first(reduction), index: 0 });
        (tile.values[0], tile.indices[0]) = (found.value, found.index);
    }

    fn reduce_columns(
        &self,
        reduction: Reduction,
        group: &Group,
        shift: Option<&[S::Wide]>,
        block: Range<usize>,
        state: &mut State<S::Wide>,
    ) {
        let (width, joined) = (group.width, self.joined_rows);
        let State { values, indices } = state;
        let mut shifts: SmallVec<[S::Wide; TILE]> = SmallVec::new();
        let mut room = RunBuffers::empty();
        let mut index = block.start as i64;
        values[..width * joined].fill(S::Wide::first(reduction));
        indices[..width].fill(index);
        if let Some(all) = shift {
            (0..width * joined).for_each(|i| shifts.push(all[group.first + i % width]));
        }
        let mut columns = |x: *const S, columns: usize, rows: usize, stride: usize, index: i64| {
            let shift = shifts.get(..columns).unwrap_or(&[]);
            let mut tile = Columns { values: &mut values[..columns], indices: &mut indices[..], shift };
            // SAFETY: the rows and columns are inside `x`, or in the buffer that they were read into.
            unsafe { loops::columns::<S>(reduction, &mut tile, x, rows, stride, index) };
        };
        self.reduced.runs(block, |[start], [step], n| {
            let from = group.at[0] + start;
            if self.line.is_direct() {
                let x = self.line.at(from).cast_const().cast::<S>();
                columns(x, width * joined, n / joined, step * joined, index);
                if n % joined > 0 {
                    columns(x.wrapping_add(n / joined * joined * step), n % joined * width, 1, 0, index);
                }
            } else {
                for row in 0..n {
                    // SAFETY: the row is inside `x`.
                    let x = unsafe { self.line.read(from + row * step, width, &mut room) };
                    columns(x.cast(), width, 1, 0, index + row as i64);
                }
            }
            index += n as i64;
        });
        let mut half = width * joined;
        while half > width {
            half /= 2;
            let (sums, others) = values[..2 * half].split_at_mut(half);
            for i in 0..half {
                sums[i] = S::Wide::join(reduction, sums[i], others[i]);
            }
        }
    }
}

/// Neighbouring outputs that are reduced together.
struct Group {
    first: usize,
    at: [usize; 3],
    width: usize,
}

/// The intermediate values of a group; a few outputs need no heap.
struct State<A> {
    values: SmallVec<[A; 8]>,
    indices: SmallVec<[i64; 8]>,
}

impl<A: Wide> State<A> {
    fn new(width: usize) -> State<A> {
        State { values: SmallVec::from_elem(A::ZERO, width), indices: SmallVec::from_elem(0, width) }
    }

    fn join(&mut self, reduction: Reduction, later: &State<A>, width: usize) {
        for i in 0..width {
            let (a, b) = ((self.values[i], self.indices[i]), (later.values[i], later.indices[i]));
            let joined = Partial::join(
                reduction,
                Partial { value: a.0, index: a.1 },
                Partial { value: b.0, index: b.1 },
            );
            (self.values[i], self.indices[i]) = (joined.value, joined.index);
        }
    }

    fn found(&self, group: &Group) -> GroupResult<'_, A> {
        let [_, values, indices] = group.at;
        GroupResult {
            first: group.first,
            at: [values, indices],
            values: &self.values[..group.width],
            indices: &self.indices[..group.width],
        }
    }
}
