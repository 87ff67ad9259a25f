//! What a capture knows of a pointwise kernel: enough to compute it in a group instead.

use crate::base::{DType, Dims, Reduction, Scalar};
use crate::capture::shader::Shader;
use crate::cpu::group::code::{Element, Formula, Reach};
use crate::cpu::par::{self, GRAIN};
use crate::cpu::reduce::RowFold;
use crate::tensor::Body;
use smallvec::SmallVec;

/// What a kernel reads or writes, before it is known where that is.
pub enum Input<'a> {
    Body(&'a Body),
    Number(Scalar),
}

/// A body over the memory of a slot.
#[derive(Clone)]
pub struct At {
    pub slot: usize,
    /// The body over the slot's stand-in.
    pub body: Body,
}

/// An input of a described kernel.
#[derive(Clone)]
pub enum Source {
    Body(At),
    Number(Scalar),
}

/// How a kernel folds a tensor over dimensions, and what it divides the results by.
#[derive(Clone)]
pub struct Fold {
    pub reduction: Reduction,
    pub dims: Dims,
    pub over: Option<f64>,
}

/// A kernel that computes each element of a result from the same element of its inputs.
#[derive(Clone)]
pub struct Pointwise {
    pub formula: Formula,
    /// The same on the GPU, if that is an expression.
    pub shader: Option<Shader>,
    pub out: At,
    pub inputs: SmallVec<[Source; 4]>,
    /// How the only input is folded.
    pub fold: Option<Fold>,
    /// True if the kernel itself would write elsewhere, so that only a group can compute it.
    pub is_moved: bool,
}

/// The elements of a body, as a group reaches them.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    pub slot: usize,
    pub dtype: DType,
    /// The first byte, and one past the last.
    pub start: usize,
    pub end: usize,
    /// The strides of rows count dimensions of the kernel's own.
    pub reach: Reach,
}

impl Access {
    /// True if no byte is in both.
    pub fn is_apart(&self, other: &Access) -> bool {
        self.end <= other.start || other.end <= self.start
    }

    /// True if all bytes are among those of the other, which has the same dtype.
    pub fn is_within(&self, other: &Access) -> bool {
        self.dtype == other.dtype && other.start <= self.start && self.end <= other.end
    }

    /// True if both are the same dense elements.
    pub fn is_same(&self, other: &Access) -> bool {
        let key = |own: &Access| (own.slot, own.dtype, own.start, own.end);
        key(self) == key(other) && self.reach == Reach::Dense && other.reach == Reach::Dense
    }
}

/// An argument of a kernel in a group.
#[derive(Clone)]
pub enum Argument {
    Memory(Access),
    Number(Scalar),
    Constant(Element),
}

/// Rows of elements: how many, and the length of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    pub count: usize,
    pub length: usize,
}

/// Longer rows, and fewer than this, would leave most of a GPU idle.
const LONGEST: usize = 16 << 10;
const FEWEST: usize = 64;

impl Rows {
    fn fit(&self) -> bool {
        let is_spread = self.count >= FEWEST || self.count * self.length <= 2 * LONGEST;
        self.length > 1 && self.length <= LONGEST && is_spread
    }

    /// True if the blocks of all rows keep the threads of this process as busy as other kernels would.
    fn busy(&self, blocks: usize) -> bool {
        let threads = par::threads();
        threads == 1 || blocks >= 2 * threads || self.count * self.length <= GRAIN / 4
    }
}

/// A kernel as a group computes it: over elements that are counted in the order of the result's memory.
#[derive(Clone)]
pub struct Counted {
    pub formula: Formula,
    pub shader: Option<Shader>,
    /// The sizes of the dimensions, of which neighbours are joined where all operands allow it.
    pub shape: Dims,
    pub args: SmallVec<[Argument; 4]>,
    pub out: Access,
    /// The rows that it folds, or has one value for each of.
    pub rows: Option<Rows>,
    /// How it folds each row.
    pub fold: Option<Reduction>,
}

impl Counted {
    /// A kernel with one value for each row, over the elements of rows of this length.
    pub fn lifted(&self, length: usize) -> Counted {
        let mut lifted = self.clone();
        let count: usize = self.shape.iter().product();
        lifted.shape.push(length);
        lifted.rows = Some(Rows { count, length });
        let lift = |reach: &Reach| match reach {
            _ if count == 1 => Reach::Single,
            Reach::Single => Reach::Single,
            Reach::Dense => Reach::Rows(dense_strides(&self.shape).into_iter().chain([0]).collect()),
            Reach::Rows(strides) => Reach::Rows(strides.iter().copied().chain([0]).collect()),
        };
        for arg in &mut lifted.args {
            if let Argument::Memory(access) = arg {
                access.reach = lift(&access.reach);
            }
        }
        lifted.out.reach = lift(&lifted.out.reach);
        lifted
    }
}

/// A transposition of so many elements is as fast in any order.
const FEW: usize = 64 << 10;
/// Shorter rows are not worth being gathered on the host.
const SHORTEST: usize = 8;

/// A sum of the columns of a dense matrix.
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only shaders read it"))]
#[derive(Clone)]
pub struct ColumnSum {
    pub out: At,
    pub x: At,
    pub rows: usize,
    pub columns: usize,
}

/// More rows are better summed in parts.
const MANY_ROWS: usize = 2048;

impl Pointwise {
    /// The sum of columns that this kernel is.
    pub fn column_sum(&self) -> Option<ColumnSum> {
        let (Some(Fold { reduction: Reduction::Sum, dims: folded, over: None }), [Source::Body(x)]) =
            (&self.fold, self.inputs.as_slice())
        else {
            return None;
        };
        let (of, to) = (&x.body.layout, &self.out.body.layout);
        let dims: SmallVec<[usize; 6]> = (0..of.shape.len()).filter(|&d| of.shape[d] != 1).collect();
        let (outer, inner) = dims.split_at(dims.iter().take_while(|d| folded.contains(d)).count());
        let kept = |d: &usize| !folded.contains(d);
        let is_single = |dtype: DType| matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        let fits = x.body.device().is_gpu()
            && of.is_contiguous()
            && to.is_contiguous()
            && inner.iter().all(kept)
            && is_single(x.body.dtype)
            && is_single(self.out.body.dtype);
        let count = |dims: &[usize]| dims.iter().map(|&d| of.shape[d]).product::<usize>();
        let (rows, columns) = (count(outer), count(inner));
        let is_short = (1..=MANY_ROWS).contains(&rows) && columns > 0;
        (fits && is_short).then(|| ColumnSum { out: self.out.clone(), x: x.clone(), rows, columns })
    }

    /// The kernel in the order of its result's memory; `None` if an operand does not suit groups.
    pub fn counted(&self) -> Option<Counted> {
        if let Some(fold) = &self.fold {
            return self.counted_fold(fold);
        }
        let shape = &self.out.body.layout.shape;
        let mut dims: SmallVec<[usize; 6]> = (0..shape.len()).filter(|&d| shape[d] != 1).collect();
        let own = &self.out.body.layout.strides;
        dims.sort_by_key(|&d| std::cmp::Reverse(own[d]));
        let mut strides: SmallVec<[Dims; 5]> = SmallVec::new();
        let pick = |strides: &[usize]| dims.iter().map(|&d| strides[d]).collect::<Dims>();
        strides.push(pick(own));
        for input in &self.inputs {
            if let Source::Body(at) = input {
                let layout = &at.body.layout;
                strides.push(pick(&match layout.shape == *shape {
                    true => layout.strides.clone(),
                    false => layout.broadcast_to(shape).strides,
                }));
            }
        }
        let (shape, strides) = joined(dims.iter().map(|&d| shape[d]), &strides);
        let on_gpu = self.out.body.device().is_gpu();
        // Transposing has a kernel of its own, which is faster for large matrices.
        let is_gathered =
            on_gpu && (self.out.body.numel() <= FEW || matches!(self.formula, Formula::Row { .. }));
        let suits = |strides: &Dims| strides.last().is_some_and(|&stride| stride <= 1);
        let access = |at: &At, strides: &Dims| {
            let body = &at.body;
            let dense = dense_strides(&shape);
            let reach = match strides {
                strides if *strides == dense => Reach::Dense,
                strides if strides.iter().all(|&stride| stride == 0) => Reach::Single,
                strides if is_gathered || suits(strides) && (on_gpu || *shape.last()? >= SHORTEST) => {
                    Reach::Rows(strides.clone())
                }
                _ => return None,
            };
            let (start, end) = body.byte_range();
            Some(Access { slot: at.slot, dtype: body.dtype, start, end, reach })
        };
        let mut strides = strides.iter();
        let out = access(&self.out, strides.next()?)?;
        if out.reach != Reach::Dense {
            return None;
        }
        let mut args = SmallVec::new();
        for input in &self.inputs {
            args.push(match input {
                Source::Body(at) => Argument::Memory(access(at, strides.next()?)?),
                Source::Number(number) => Argument::Number(*number),
            });
        }
        Some(Counted { formula: self.formula, shader: self.shader, shape, args, out, rows: None, fold: None })
    }

    /// A fold of rows that lie one after another in memory.
    fn counted_fold(&self, fold: &Fold) -> Option<Counted> {
        let (Some(Source::Body(x)), folded) = (self.inputs.first(), &fold.dims) else { return None };
        let (of, to) = (&x.body.layout, &self.out.body.layout);
        let mut dims: SmallVec<[usize; 6]> = (0..of.shape.len()).filter(|&d| of.shape[d] != 1).collect();
        dims.sort_by_key(|&d| std::cmp::Reverse(of.strides[d]));
        let outer = dims.iter().position(|d| folded.contains(d)).unwrap_or(dims.len());
        let (outer, inner) = dims.split_at(outer);
        let pick = |dims: &[usize], of: &[usize]| dims.iter().map(|&d| of[d]).collect::<Dims>();
        let all = pick(&dims, &of.shape);
        let outer_shape = pick(outer, &of.shape);
        let rows = Rows {
            count: outer_shape.iter().product(),
            length: inner.iter().map(|&d| of.shape[d]).product(),
        };
        let is_dense = pick(&dims, &of.strides) == dense_strides(&all)
            && pick(outer, &to.strides) == dense_strides(&outer_shape)
            && inner.iter().all(|d| folded.contains(d));
        let is_known = matches!(fold.reduction, Reduction::Sum | Reduction::Max | Reduction::Min)
            && x.body.dtype.is_float()
            && self.out.body.dtype.is_float();
        if !(is_dense && is_known) {
            return None;
        }
        let formula = if x.body.device().is_gpu() {
            rows.fit().then_some(self.formula)?
        } else {
            let dtypes = [x.body.dtype, self.out.body.dtype];
            let own = RowFold::new(fold.reduction, fold.over, dtypes, rows.count, rows.length)?;
            rows.busy(own.blocks()).then_some(Formula::Fold(own))?
        };
        let access = |at: &At, reach| {
            let (start, end) = at.body.byte_range();
            Access { slot: at.slot, dtype: at.body.dtype, start, end, reach }
        };
        let (shape, reach) = match rows.count {
            1 => (smallvec::smallvec![rows.length], Reach::Single),
            count => (smallvec::smallvec![count, rows.length], Reach::Rows(smallvec::smallvec![1, 0])),
        };
        let mut args: SmallVec<[Argument; 4]> =
            smallvec::smallvec![Argument::Memory(access(x, Reach::Dense))];
        if let (Formula::Copy, Some(over)) = (formula, fold.over) {
            args.push(Argument::Number(Scalar::Float(1.0 / over)));
        }
        let out = access(&self.out, reach);
        Some(Counted {
            formula,
            shader: self.shader,
            shape,
            args,
            out,
            rows: Some(rows),
            fold: Some(fold.reduction),
        })
    }
}

/// The strides of a dense operand.
fn dense_strides(shape: &[usize]) -> Dims {
    crate::base::contiguous_strides(shape)
}

/// Joins neighbouring dimensions that all operands step through as one.
fn joined(sizes: impl Iterator<Item = usize>, strides: &[Dims]) -> (Dims, Vec<Dims>) {
    let (mut shape, mut joined) = (Dims::new(), vec![Dims::new(); strides.len()]);
    for (d, size) in sizes.enumerate() {
        let fits = |(own, all): (&Dims, &Dims)| own.last().is_some_and(|&last| last == size * all[d]);
        if !shape.is_empty() && joined.iter().zip(strides).all(fits) {
            let last = shape.len() - 1;
            shape[last] *= size;
            joined.iter_mut().zip(strides).for_each(|(own, all)| own[last] = all[d]);
        } else {
            shape.push(size);
            joined.iter_mut().zip(strides).for_each(|(own, all)| own.push(all[d]));
        }
    }
    (shape, joined)
}

/// The sizes of dimensions, as the number of elements that are inside of each, from the innermost on. Groups count the
/// elements of kernels whose dimensions differ, as long as one division of the whole suits all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    pub n: usize,
    inside: SmallVec<[usize; 6]>,
}

impl Space {
    pub fn of(shape: &[usize]) -> Space {
        let (mut inside, mut n) = (SmallVec::new(), 1);
        for &size in shape.iter().rev() {
            inside.push(n);
            n *= size;
        }
        Space { n, inside }
    }

    /// The space whose dimensions divide those of both, if there is one.
    pub fn refined(&self, other: &Space) -> Option<Space> {
        if self.inside == other.inside && self.n == other.n {
            return Some(self.clone());
        }
        let mut inside: SmallVec<[usize; 6]> = self.inside.iter().chain(&other.inside).copied().collect();
        inside.sort_unstable();
        inside.dedup();
        let n = self.n;
        let divides = (1..inside.len()).all(|k| inside[k].is_multiple_of(inside[k - 1]));
        (divides && other.n == n).then_some(Space { n, inside })
    }

    /// True if the operand of a kernel with dimensions `shape` has one value for each row, one after another. The rows divide
    /// the space.
    pub fn is_by_row(&self, shape: &[usize], reach: &Reach, rows: Rows) -> bool {
        match reach {
            Reach::Dense => false,
            Reach::Single => rows.count == 1,
            Reach::Rows(strides) => {
                let own = self.strides(shape, strides);
                let step = |inside: usize| if inside < rows.length { 0 } else { inside / rows.length };
                rows.count > 1
                    && self
                        .inside
                        .iter()
                        .zip(own.iter().rev())
                        .all(|(&inside, &stride)| stride == step(inside))
            }
        }
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> Dims {
        let outer = self.inside.iter().skip(1).chain([&self.n]);
        let mut shape: Dims = self.inside.iter().zip(outer).map(|(own, outer)| outer / own).collect();
        shape.reverse();
        shape
    }

    /// The strides of an operand of a kernel with dimensions `shape`, in the dimensions of this space.
    pub fn strides(&self, shape: &[usize], strides: &[usize]) -> Dims {
        let mut restrided = Dims::new();
        let (mut d, mut inner) = (shape.len(), 1);
        for &inside in &self.inside {
            while d > 0 && inside >= inner * shape[d - 1] {
                d -= 1;
                inner *= shape[d];
            }
            restrided.push(if d > 0 { strides[d - 1] * (inside / inner) } else { 0 });
        }
        restrided.reverse();
        restrided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_refined_and_strides_follow() {
        let (rows, flat, halves) = (Space::of(&[4, 6]), Space::of(&[24]), Space::of(&[8, 3]));
        assert_eq!(rows.refined(&flat), Some(rows.clone()));
        let both = rows.refined(&halves).map(|space| space.shape().to_vec());
        assert_eq!(both, Some(vec![4, 2, 3]));
        assert_eq!(rows.refined(&Space::of(&[6, 4])), None);
        assert_eq!(rows.refined(&Space::of(&[4, 3])), None);
        let space = Space::of(&[4, 2, 3]);
        assert_eq!(space.strides(&[4, 6], &[0, 1]).as_slice(), [0, 3, 1]);
        assert_eq!(space.strides(&[8, 3], &[1, 0]).as_slice(), [2, 1, 0]);
        assert_eq!(space.strides(&[24], &[0]).as_slice(), [0, 0, 0]);
        assert_eq!(flat.shape().as_slice(), [24]);
    }

    #[test]
    fn dimensions_are_joined_where_all_operands_allow_it() {
        let dims = |all: &[usize]| Dims::from_slice(all);
        let (shape, strides) = joined([2, 3, 4].into_iter(), &[dims(&[12, 4, 1]), dims(&[0, 0, 1])]);
        assert_eq!((shape.as_slice(), strides[1].as_slice()), (&[6, 4][..], &[0, 1][..]));
        let (shape, _) = joined([2, 3, 4].into_iter(), &[dims(&[12, 4, 1]), dims(&[3, 1, 0])]);
        assert_eq!(shape.as_slice(), [6, 4]);
        let (shape, _) = joined([2, 3, 4].into_iter(), &[dims(&[12, 4, 1]), dims(&[0, 1, 0])]);
        assert_eq!(shape.as_slice(), [2, 3, 4]);
    }
}
