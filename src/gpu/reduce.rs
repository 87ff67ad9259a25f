//! Reductions: a fixed tree in one or two stages, so the same input gives the same bits. A workgroup shares a row
//! when the reduced elements lie side by side; otherwise each invocation has a row of its own, since then its
//! neighbours' elements lie side by side.

use super::cell::{Cell, Value};
use super::code::{Code, GROUP};
use super::device::{Gpu, gpu};
use super::index::{IndexBy, index_get};
use super::map::{number, push_number};
use super::pipeline::{Key, Shader};
use super::pool::Buffer;
use super::space::{Space, Words, check, groups};
use super::stream::Launch;
use super::{View, alloc, fill};
use crate::base::{DType, Dims, Error, Fold, Result, Scalar, contiguous_strides};
use smallvec::SmallVec;

/// What is done to the result of the last stage.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Finish {
    Plain,
    Scale(f64),
    /// The square root of the scaled result.
    Root(f64),
}

/// One stage. `K` elements a row, in `parts` parts of `chunk` elements; each part becomes one element of the output.
struct Stage<'a> {
    fold: Fold,
    /// The type that is accumulated in.
    sum: Value,
    x: View<'a>,
    /// Positions in the reduced dimensions to choose among, per row, instead of all: `count` of them, `step` apart.
    candidates: Option<(&'a Buffer, usize, usize)>,
    /// Per row, what is subtracted before squaring.
    center: Option<&'a Buffer>,
    finish: Finish,
}

/// Where the dimensions go: rows and their elements.
struct Split {
    rows: Space,
    elements: Space,
}

const ROW: usize = 0;
const OUT: usize = 1;

/// Reduces `x` over `dims` into `out`, which has the shape of `x` with those dimensions set to 1.
pub fn reduce(fold: Fold, out: View<'_>, x: View<'_>, dims: &[usize]) -> Result<()> {
    let sum = accumulator(fold, x.dtype);
    run(Stage { fold, sum, x, candidates: None, center: None, finish: Finish::Plain }, out, dims)
}

/// The mean over `dims`, accumulated in the type that a sum of `x` accumulates in.
pub fn mean(out: View<'_>, x: View<'_>, dims: &[usize]) -> Result<()> {
    let sum = accumulator(Fold::Sum, out.dtype);
    let count: usize = dims.iter().map(|&d| x.shape[d]).product();
    let finish = Finish::Scale(1.0 / count as f64);
    run(Stage { fold: Fold::Sum, sum, x, candidates: None, center: None, finish }, out, dims)
}

/// The variance over `dims` (or its root), divided by the count less `correction`: the mean first, then the squares.
pub fn var(out: View<'_>, x: View<'_>, dims: &[usize], correction: f64, sqrt: bool) -> Result<()> {
    let sum = accumulator(Fold::Sum, x.dtype);
    let dtype = if sum == Value::F64 { DType::F64 } else { DType::F32 };
    let strides = contiguous_strides(out.shape);
    let middle = alloc(out.numel() * dtype.size())?;
    mean(View { buffer: &middle, dtype, shape: out.shape, strides: &strides, offset: 0 }, x, dims)?;
    let count: usize = dims.iter().map(|&d| x.shape[d]).product();
    let scale = 1.0 / (count as f64 - correction).max(0.0);
    let finish = if sqrt { Finish::Root(scale) } else { Finish::Scale(scale) };
    run(Stage { fold: Fold::SumSq, sum, x, candidates: None, center: Some(&middle), finish }, out, dims)
}

/// The largest (or smallest) element along `dim` and where it first is; `indices` are int64.
pub fn max_with_index(
    values: View<'_>,
    indices: View<'_>,
    x: View<'_>,
    dim: usize,
    largest: bool,
) -> Result<()> {
    reduce(if largest { Fold::ArgMax } else { Fold::ArgMin }, indices, x, &[dim])?;
    let mut strides = Dims::from_slice(x.strides);
    strides[dim] = 0;
    let row = View { shape: values.shape, strides: &strides, ..x };
    let by = IndexBy { index: indices, size: x.shape[dim], stride: x.strides[dim], dim };
    index_get(values, row, &[by], false)
}

/// The type that a fold over `dtype` accumulates in.
fn accumulator(fold: Fold, dtype: DType) -> Value {
    let natural = Cell::of(dtype).value();
    match fold {
        Fold::All | Fold::Any => Value::I32,
        Fold::Sum | Fold::Prod | Fold::SumSq | Fold::SumAbs if natural == Value::I32 => Value::I64,
        _ => natural,
    }
}

fn name(fold: Fold) -> &'static str {
    match fold {
        Fold::Sum => "sum",
        Fold::Prod => "prod",
        Fold::Max => "max",
        Fold::Min => "min",
        Fold::ArgMax => "argmax",
        Fold::ArgMin => "argmin",
        Fold::All => "all",
        Fold::Any => "any",
        Fold::SumSq => "norm",
        Fold::SumAbs => "norm_1",
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

/// What no elements amount to.
fn empty(stage: &Stage<'_>, out: View<'_>) -> Result<()> {
    let value = match (stage.fold, stage.finish) {
        (_, Finish::Scale(_) | Finish::Root(_)) => Scalar::Float(f64::NAN),
        (Fold::Sum | Fold::SumSq | Fold::SumAbs, _) => Scalar::Int(0),
        (Fold::Prod, _) => Scalar::Int(1),
        (Fold::All, _) => Scalar::Bool(true),
        (Fold::Any, _) => Scalar::Bool(false),
        _ => {
            return Err(Error::runtime(format!(
                "{}(): the reduction of no elements is not defined",
                name(stage.fold)
            )));
        }
    };
    fill(out, value)
}

/// One launch, or two when rows are so few and long that parts of them are better reduced side by side.
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
    let single = count <= 32 || (beside && rows >= 32);
    let (least, most, wanted) = if single { (64, 1024, 65_536) } else { (2048, 65_536, 512) };
    let parts = (wanted / rows).clamp(1, count.div_ceil(least)).max(count.div_ceil(most));
    let parts = if stage.candidates.is_some() { 1 } else { parts };
    if parts == 1 {
        return launch(gpu, &stage, split, out, (rows, count, 1), single);
    }

    let arg = stage.fold.is_arg();
    let dtype = if arg { DType::I32 } else { dtype_of(stage.sum) };
    let partial = alloc(rows * parts * dtype.size())?;
    let shape = [parts, rows];
    let strides = [rows, 1];
    let between = View { buffer: &partial, dtype, shape: &shape, strides: &strides, offset: 0 };
    let first = Stage { finish: Finish::Plain, ..stage };
    launch(gpu, &first, split, between, (rows, count, parts), single)?;

    if arg {
        let last = Stage { candidates: Some((&partial, parts, rows)), ..first };
        return launch(gpu, &last, split, out, (rows, count, 1), rows >= 4096);
    }
    let fold = match first.fold {
        Fold::SumSq | Fold::SumAbs => Fold::Sum,
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
    single: bool,
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
    if let Finish::Scale(scale) | Finish::Root(scale) = stage.finish {
        push_number(stage.sum, Scalar::Float(scale), &mut words);
    }
    let kind = Kind {
        fold: stage.fold,
        sum: stage.sum,
        x: Cell::of(stage.x.dtype),
        out: Cell::of(out.dtype),
        row_rank: split.rows.rank(),
        rank: split.elements.rank(),
        single,
        parted: parts > 1,
        candidates: stage.candidates.is_some(),
        center: stage.center.is_some(),
        shared: out.buffer.same(stage.x.buffer),
        finish: match stage.finish {
            Finish::Plain => 0,
            Finish::Scale(_) => 1,
            Finish::Root(_) => 2,
        },
    };
    debug_assert_eq!(kind.words(), words.len());
    let kernel = gpu.kernel(&kind.key(), || Ok(kind.shader()))?;
    let groups = groups(rows * parts, if single { GROUP } else { 1 });
    gpu.stream()
        .launch(gpu, &Launch { kernel: &kernel, buffers: &buffers, words: &words, groups, flags: false })
}

/// What tells one reduction kernel from another.
#[derive(Clone, Copy)]
struct Kind {
    fold: Fold,
    sum: Value,
    x: Cell,
    out: Cell,
    row_rank: usize,
    rank: usize,
    /// One invocation a row, rather than one workgroup.
    single: bool,
    parted: bool,
    candidates: bool,
    center: bool,
    shared: bool,
    finish: u8,
}

impl Kind {
    fn key(&self) -> Key {
        let flag = u8::from;
        let choices = flag(self.single)
            | flag(self.parted) << 1
            | flag(self.candidates) << 2
            | flag(self.center) << 3
            | flag(self.shared) << 4
            | self.finish << 5;
        Key::new("reduce", name(self.fold))
            .with(self.sum as u8)
            .with(self.x as u8)
            .with(self.out as u8)
            .with(self.row_rank as u8)
            .with(self.rank as u8)
            .with(choices)
    }

    fn words(&self) -> usize {
        let wide = usize::from(matches!(self.sum, Value::I64 | Value::F64));
        let row = 2 * self.row_rank + if self.parted { 0 } else { self.row_rank };
        let scale = if self.finish == 0 { 0 } else { 1 + wide };
        5 + row + (2 * self.rank - 1) + usize::from(self.candidates) + scale
    }

    /// `Acc`, `nothing()`, `join(a, b)`: how two partial results become one.
    fn algebra(&self) -> String {
        let t = self.sum.name();
        if self.fold.is_arg() {
            let better = if self.fold == Fold::ArgMax { ">" } else { "<" };
            let nan = if matches!(self.sum, Value::F32 | Value::F64) {
                "if (is_nan(a.v) != is_nan(b.v)) { if (is_nan(a.v)) { return a; } return b; }\n  \
                 if (!is_nan(a.v) && !(a.v == b.v)) {"
            } else {
                "if (a.v != b.v) {"
            };
            return format!(
                "struct Acc {{ v: {t}, i: u32 }}\n\
                 fn nothing() -> Acc {{ return Acc(T(0), 0xffffffffu); }}\n\
                 fn join(a: Acc, b: Acc) -> Acc {{\n  if (a.i == 0xffffffffu) {{ return b; }}\n  \
                 if (b.i == 0xffffffffu) {{ return a; }}\n  {nan}\n    \
                 if (a.v {better} b.v) {{ return a; }}\n    return b;\n  }}\n  \
                 if (a.i < b.i) {{ return a; }}\n  return b;\n}}\n"
            );
        }
        let (start, join) = match self.fold {
            Fold::Prod => ("T(1)".to_owned(), "a * b"),
            Fold::Max => (self.least(), "maximum(a, b)"),
            Fold::Min => (self.most(), "minimum(a, b)"),
            Fold::All => ("1".to_owned(), "min(a, b)"),
            Fold::Any => ("0".to_owned(), "max(a, b)"),
            _ => ("T(0)".to_owned(), "a + b"),
        };
        format!(
            "alias Acc = {t};\nfn nothing() -> Acc {{ return {start}; }}\n\
             fn join(a: Acc, b: Acc) -> Acc {{ return {join}; }}\n"
        )
    }

    fn least(&self) -> String {
        match self.sum {
            Value::F32 | Value::F64 => "-inf()".to_owned(),
            Value::I64 => "i64(0x8000000000000000lu)".to_owned(),
            _ => "bitcast<i32>(0x80000000u)".to_owned(),
        }
    }

    fn most(&self) -> String {
        match self.sum {
            Value::F32 | Value::F64 => "inf()".to_owned(),
            Value::I64 => "0x7fffffffffffffffli".to_owned(),
            _ => "0x7fffffff".to_owned(),
        }
    }

    /// An element, read as `x` at position `k`, as a partial result.
    fn lift(&self) -> String {
        let value = self.x.value();
        if matches!(self.fold, Fold::All | Fold::Any) {
            return Value::Bool.convert(Value::I32, &value.convert(Value::Bool, "x"));
        }
        let x = value.convert(self.sum, "x");
        match self.fold {
            Fold::ArgMax | Fold::ArgMin => format!("Acc({x}, k)"),
            Fold::SumSq if self.center => format!("square({x} - middle)"),
            Fold::SumSq => format!("square({x})"),
            Fold::SumAbs => format!("abs({x})"),
            _ => x,
        }
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(self.words(), self.sum);
        code.operand("o", self.out, true, false);
        code.operand("x", self.x, false, self.shared);
        if self.candidates {
            code.bind("chosen", "i32", false);
        }
        if self.center {
            code.bind("centers", self.sum.name(), false);
        }
        code.push(&self.algebra());
        if self.single {
            code.main_by_item();
        } else {
            code.push(&format!("var<workgroup> shared_acc: array<Acc, {GROUP}>;\n"));
            code.main_by_group();
        }
        self.main(&mut code);
        code.finish()
    }

    fn main(&self, code: &mut Code) {
        let [rows, count, parts, chunk] = [code.word(), code.word(), code.word(), code.word()];
        let job = if self.single { "i" } else { "row" };
        // Neighbouring invocations take neighbouring rows, so that they read neighbouring memory.
        code.push(&format!(
            "  if ({job} >= {rows} * {parts}) {{ return; }}\n  let m = {job} % {rows};\n  let part = {job} / {rows};\n  \
             let low = part * {chunk};\n  let high = min(low + {chunk}, {count});\n"
        ));
        let dims = code.words(self.row_rank - 1);
        code.push(&Code::split("m", "r", &dims));
        let offset = code.word();
        let strides = code.words(self.row_rank);
        code.push(&format!("  let x_row = {offset} + {};\n", Code::dot("r", &strides)));
        let out = code.word();
        let out_at = if self.parted {
            format!("{out} + part * {rows} + m")
        } else {
            let strides = code.words(self.row_rank);
            format!("{out} + {}", Code::dot("r", &strides))
        };
        let dims = code.words(self.rank - 1);
        let strides = code.words(self.rank);
        let find = format!(
            "{}    let x = x_get(x_row + {});\n",
            Code::split("k", "c", &dims).replace("\n  ", "\n    "),
            Code::dot("c", &strides)
        );
        let position = if self.candidates {
            format!("    let k = u32(chosen[q * {} + m]);\n", code.word())
        } else {
            "    let k = q;\n".to_owned()
        };
        if self.center {
            code.push("  let middle = centers[m];\n");
        }
        let (start, step) = if self.single { ("low", 1) } else { ("low + me", GROUP) };
        code.push(&format!(
            "  var acc = nothing();\n  for (var q = {start}; q < high; q += {step}u) {{\n{position}{find}    \
             acc = join(acc, {});\n  }}\n",
            self.lift()
        ));
        if !self.single {
            code.push(&format!(
                "  shared_acc[me] = acc;\n  workgroupBarrier();\n  \
                 for (var width = {}u; width > 0u; width /= 2u) {{\n    \
                 if (me < width) {{ shared_acc[me] = join(shared_acc[me], shared_acc[me + width]); }}\n    \
                 workgroupBarrier();\n  }}\n  if (me > 0u) {{ return; }}\n  acc = shared_acc[0];\n",
                GROUP / 2
            ));
        }
        let (result, from) = match self.finish {
            _ if self.fold.is_arg() => ("i32(acc.i)".to_owned(), Value::I32),
            1 => (format!("acc * {}", number(self.sum, code)), self.sum),
            2 => (format!("sqrt(acc * {})", number(self.sum, code)), self.sum),
            _ => ("acc".to_owned(), self.sum),
        };
        code.push(&format!("  let result = {result};\n"));
        code.push(&format!("  o_set({out_at}, {});\n}}\n", from.convert_to_cell(self.out, "result")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;

    #[test]
    fn kernels_are_valid() {
        use Fold::{All, Any, ArgMax, ArgMin, Max, Min, Prod, Sum, SumAbs, SumSq};
        for fold in [Sum, Prod, Max, Min, ArgMax, ArgMin, All, Any, SumSq, SumAbs] {
            for dtype in [DType::Bool, DType::F16, DType::I32, DType::F32, DType::I64, DType::F64] {
                let sum = accumulator(fold, dtype);
                for bits in 0..8 {
                    let kind = Kind {
                        fold,
                        sum,
                        x: Cell::of(dtype),
                        out: if fold.is_arg() { Cell::I64 } else { Cell::Bool },
                        row_rank: 1 + bits,
                        rank: 1 + 2 * bits,
                        single: bits & 1 > 0,
                        parted: bits & 2 > 0,
                        candidates: fold.is_arg() && bits & 4 > 0,
                        center: fold == SumSq && bits & 4 > 0,
                        shared: bits & 4 > 0,
                        finish: if matches!(sum, Value::F32 | Value::F64) && !fold.is_arg() {
                            bits as u8 % 3
                        } else {
                            0
                        },
                    };
                    validate(&kind.shader());
                }
            }
        }
    }
}
