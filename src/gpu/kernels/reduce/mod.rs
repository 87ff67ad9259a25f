//! Reductions: a fixed tree in one or two stages, so that equal inputs give equal bits. If the reduced
//! elements are adjacent in memory, a workgroup shares a row; otherwise each invocation takes its own row,
//! so that neighbouring invocations read neighbouring elements.

pub mod code;

use crate::base::{DType, Dims, Error, Reduction, Result, Scalar, contiguous_strides};
use crate::gpu::device::fault::{Origin, Wrong};
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::view::View;
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::index::{IndexBy, index_get};
use crate::gpu::kernels::pointwise::code::push_number;
use crate::gpu::kernels::pointwise::fill;
use crate::gpu::kernels::reduce::code::{ReduceFinish, ReduceKind};
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{GROUP, lanes};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// One stage. Each row has `K` elements in `parts` parts of `chunk` elements; each part gives one element
/// of the output.
struct Stage<'a> {
    fold: Reduction,
    /// The type of the accumulator.
    sum: Value,
    x: View<'a>,
    /// Per row, the positions in the reduced dimensions to choose among, instead of all: `count` of them,
    /// `step` apart.
    candidates: Option<(&'a Buffer, usize, usize)>,
    /// Per row, the value to subtract before squaring.
    center: Option<&'a Buffer>,
    finish: ReduceFinish,
    /// The factor of `finish`.
    scale: f64,
}

/// The dimensions, split into rows and the elements of a row.
struct Split {
    rows: Space,
    elements: Space,
}

const ROW: usize = 0;
const OUT: usize = 1;

/// Reduces `x` over `dims` into `out`, which has the shape of `x` with those dimensions set to 1.
pub fn reduce(fold: Reduction, out: View<'_>, x: View<'_>, dims: &[usize]) -> Result<()> {
    let sum = accumulator(fold, x.dtype);
    run(
        Stage { fold, sum, x, candidates: None, center: None, finish: ReduceFinish::Plain, scale: 1.0 },
        out,
        dims,
    )
}

/// The mean over `dims`, with the same accumulator type as a sum of `x`.
pub fn mean(out: View<'_>, x: View<'_>, dims: &[usize]) -> Result<()> {
    let sum = accumulator(Reduction::Sum, out.dtype);
    let count: usize = dims.iter().map(|&d| x.shape[d]).product();
    let (finish, scale) = (ReduceFinish::Scale, 1.0 / count as f64);
    run(Stage { fold: Reduction::Sum, sum, x, candidates: None, center: None, finish, scale }, out, dims)
}

/// The variance over `dims` (or its root), divided by the count minus `correction`: first the means, then
/// the squares.
pub fn var(out: View<'_>, x: View<'_>, dims: &[usize], correction: f64, sqrt: bool) -> Result<()> {
    let sum = accumulator(Reduction::Sum, x.dtype);
    let dtype = if sum == Value::F64 { DType::F64 } else { DType::F32 };
    let strides = contiguous_strides(out.shape);
    let middle = alloc(out.numel() * dtype.size())?;
    mean(View { buffer: &middle, dtype, shape: out.shape, strides: &strides, offset: 0 }, x, dims)?;
    let count: usize = dims.iter().map(|&d| x.shape[d]).product();
    let scale = 1.0 / (count as f64 - correction).max(0.0);
    let finish = if sqrt { ReduceFinish::ScaleAndRoot } else { ReduceFinish::Scale };
    let stage =
        Stage { fold: Reduction::SumSq, sum, x, candidates: None, center: Some(&middle), finish, scale };
    run(stage, out, dims)
}

/// The maximum (or minimum) along `dim` and its first index; `indices` are int64.
pub fn max_with_index(
    values: View<'_>,
    indices: View<'_>,
    x: View<'_>,
    dim: usize,
    largest: bool,
) -> Result<()> {
    reduce(if largest { Reduction::ArgMax } else { Reduction::ArgMin }, indices, x, &[dim])?;
    let mut strides = Dims::from_slice(x.strides);
    strides[dim] = 0;
    let row = View { shape: values.shape, strides: &strides, ..x };
    let by = IndexBy { index: indices, size: x.shape[dim], stride: x.strides[dim], dim };
    let origin = Origin { op: "max", line: None, wrong: Wrong::Index };
    index_get(origin, values, row, &[by], false)
}

/// Returns the accumulator type of a reduction over `dtype`.
pub(in crate::gpu) fn accumulator(fold: Reduction, dtype: DType) -> Value {
    let natural = Stored::of(dtype).value();
    match fold {
        Reduction::All | Reduction::Any => Value::I32,
        Reduction::Sum | Reduction::Prod | Reduction::SumSq | Reduction::SumAbs if natural == Value::I32 => {
            Value::I64
        }
        Reduction::Sum | Reduction::Prod | Reduction::SumSq | Reduction::SumAbs => natural,
        Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin => natural,
    }
}

pub(in crate::gpu) fn name(fold: Reduction) -> &'static str {
    match fold {
        Reduction::Sum => "sum",
        Reduction::Prod => "prod",
        Reduction::Max => "max",
        Reduction::Min => "min",
        Reduction::ArgMax => "argmax",
        Reduction::ArgMin => "argmin",
        Reduction::All => "all",
        Reduction::Any => "any",
        Reduction::SumSq => "norm",
        Reduction::SumAbs => "norm_1",
    }
}

fn dtype_of(value: Value) -> DType {
    match value {
        Value::I64 => DType::I64,
        Value::F64 => DType::F64,
        Value::F32 => DType::F32,
        _ => DType::I32,
    }
}

fn run(stage: Stage<'_>, out: View<'_>, dims: &[usize]) -> Result<()> {
    let gpu = gpu()?;
    let (fold, x) = (stage.fold, stage.x);
    check(&out)?;
    check(&x)?;
    for dtype in [dtype_of(stage.sum), x.dtype, out.dtype] {
        gpu.supports(name(fold), dtype)?;
    }
    let rows = out.numel();
    let count: usize = dims.iter().map(|&d| x.shape[d]).product();
    if rows == 0 {
        return Ok(());
    }
    if count == 0 {
        return empty(&stage, out);
    }
    let reduced = |d: &usize| dims.contains(d);
    let pick = |from: &[usize], which: &dyn Fn(&usize) -> bool| -> Dims {
        (0..x.shape.len()).filter(which).map(|d| from[d]).collect()
    };
    let kept = |d: &usize| !reduced(d);
    let split = Split {
        rows: Space::new(&pick(x.shape, &kept), &[&pick(x.strides, &kept), &pick(out.strides, &kept)]),
        elements: Space::new(&pick(x.shape, &reduced), &[&pick(x.strides, &reduced)]),
    };
    staged(gpu, stage, &split, out, rows, count)
}

/// Fills `out` with the reduction of no elements.
fn empty(stage: &Stage<'_>, out: View<'_>) -> Result<()> {
    let value = match (stage.fold, stage.finish) {
        (_, ReduceFinish::Scale | ReduceFinish::ScaleAndRoot) => Scalar::Float(f64::NAN),
        (Reduction::Sum | Reduction::SumSq | Reduction::SumAbs, _) => Scalar::Int(0),
        (Reduction::Prod, _) => Scalar::Int(1),
        (Reduction::All, _) => Scalar::Bool(true),
        (Reduction::Any, _) => Scalar::Bool(false),
        (Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin, _) => {
            return Err(Error::runtime(format!(
                "{}(): cannot reduce a dimension without elements",
                name(stage.fold)
            )));
        }
    };
    fill(out, value)
}

/// Makes one launch, or two if the rows are so few and long that reducing parts of them in parallel is
/// faster.
fn staged(
    gpu: &Gpu,
    stage: Stage<'_>,
    split: &Split,
    out: View<'_>,
    rows: usize,
    count: usize,
) -> Result<()> {
    let inner = |space: &Space, k: usize| space.strides[k].last().copied().unwrap_or(0);
    let beside = rows > 1 && inner(&split.rows, ROW) < inner(&split.elements, ROW);
    let lanes = match lanes(count) {
        _ if beside && rows >= 32 => 1,
        // There are too few rows to fill the GPU with a few invocations each.
        32 if rows < 256 => GROUP,
        lanes => lanes,
    };
    let (least, most, wanted) = if lanes == 1 { (64, 1024, 65_536) } else { (2048, 65_536, 512) };
    let parts = (wanted / rows).clamp(1, count.div_ceil(least)).max(count.div_ceil(most));
    let parts = if stage.candidates.is_some() { 1 } else { parts };
    if parts == 1 {
        return launch(gpu, &stage, split, out, (rows, count, 1), lanes);
    }

    let arg = stage.fold.is_arg();
    let dtype = if arg { DType::I32 } else { dtype_of(stage.sum) };
    let partial = alloc(rows * parts * dtype.size())?;
    let shape = [parts, rows];
    let strides = [rows, 1];
    let between = View { buffer: &partial, dtype, shape: &shape, strides: &strides, offset: 0 };
    let first = Stage { finish: ReduceFinish::Plain, ..stage };
    launch(gpu, &first, split, between, (rows, count, parts), lanes)?;

    if arg {
        let last = Stage { candidates: Some((&partial, parts, rows)), ..first };
        return launch(gpu, &last, split, out, (rows, count, 1), if rows >= 4096 { 1 } else { GROUP });
    }
    let fold = match first.fold {
        Reduction::SumSq | Reduction::SumAbs => Reduction::Sum,
        other => other,
    };
    let Split { rows: old, .. } = split;
    let out_strides = old.strides[OUT].clone();
    let row_strides = contiguous_strides(&old.dims);
    let again = Split {
        rows: Space::new(&old.dims, &[&row_strides, &out_strides]),
        elements: Space::new(&[parts], &[&[rows]]),
    };
    let last = Stage { fold, x: between, center: None, finish: stage.finish, ..first };
    staged(gpu, last, &again, out, rows, parts)
}

fn launch(
    gpu: &Gpu,
    stage: &Stage<'_>,
    split: &Split,
    out: View<'_>,
    (rows, count, parts): (usize, usize, usize),
    lanes: usize,
) -> Result<()> {
    let chosen = stage.candidates.map_or(count, |(_, chosen, _)| chosen);
    let chunk = chosen.div_ceil(parts);
    let mut words = Words::new();
    words.extend([rows as u32, chosen as u32, parts as u32, chunk as u32]);
    split.rows.push_dims(&mut words);
    words.push(stage.x.offset as u32);
    split.rows.push_strides(ROW, &mut words);
    words.push(out.offset as u32);
    if parts == 1 {
        split.rows.push_strides(OUT, &mut words);
    }
    split.elements.push_dims(&mut words);
    split.elements.push_strides(ROW, &mut words);
    let mut buffers: SmallVec<[&Buffer; 4]> = SmallVec::new();
    buffers.extend([out.buffer, stage.x.buffer]);
    if let Some((buffer, _, step)) = stage.candidates {
        buffers.push(buffer);
        words.push(step as u32);
    }
    buffers.extend(stage.center);
    if stage.finish != ReduceFinish::Plain {
        push_number(stage.sum, Scalar::Float(stage.scale), &mut words);
    }
    let kind = ReduceKind {
        fold: stage.fold,
        sum: stage.sum,
        x: Stored::of(stage.x.dtype),
        out: Stored::of(out.dtype),
        row_rank: split.rows.rank(),
        rank: split.elements.rank(),
        lanes,
        parted: parts > 1,
        candidates: stage.candidates.is_some(),
        center: stage.center.is_some(),
        shared: out.buffer.same(stage.x.buffer),
        finish: stage.finish,
    };
    gpu.launch(&kind, &buffers, &words, groups(rows * parts, GROUP / lanes))
}
