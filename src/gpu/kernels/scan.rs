//! Scans: running sums, products, extrema and sums of exponentials. A long row is scanned in blocks in
//! parallel, then the totals of the blocks are scanned, and every element is combined with the total before
//! its block.

use crate::base::{DType, Error, Fault, Result, contiguous_strides};
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::pointwise::copy;
use crate::gpu::launch::index_space::{Words, groups};
use crate::gpu::launch::row_walk::RowWalk;
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::{SmallVec, smallvec};

/// The operation of a scan.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub enum Scan {
    Sum,
    Prod,
    Max,
    Min,
    LogSumExp,
}

impl Scan {
    fn name(self) -> &'static str {
        match self {
            Scan::Sum => "cumsum",
            Scan::Prod => "cumprod",
            Scan::Max => "cummax",
            Scan::Min => "cummin",
            Scan::LogSumExp => "logcumsumexp",
        }
    }

    /// Returns true if the state of the scan is the index of an element rather than a number.
    fn is_extreme(self) -> bool {
        matches!(self, Scan::Max | Scan::Min)
    }
}

/// The elements of a block: four per invocation.
const BLOCK: usize = 4 * GROUP;
/// Rows longer than this are never scanned by a single invocation: that would take too long, and Mesa's
/// software driver ends loops after 65,535 iterations.
const LONG: usize = 16_384;

/// `out[i] = x[0] + ... + x[i]` along `dim`, or the product, or the logarithm of the sum of exponentials.
pub fn scan(kind: Scan, out: View<'_>, x: View<'_>, dim: usize) -> Result<()> {
    let gpu = gpu()?;
    gpu.supports(kind.name(), x.dtype)?;
    gpu.supports(kind.name(), out.dtype)?;
    let dtype = match Stored::of(out.dtype).value() {
        Value::F32 => DType::F32,
        Value::F64 => DType::F64,
        Value::I64 => DType::I64,
        _ => DType::I32,
    };
    if kind.is_extreme() || (kind == Scan::LogSumExp && !out.dtype.is_float()) {
        return Err(Fault::NoShader { op: kind.name(), dtype: x.dtype }.into());
    }
    if out.dtype == dtype {
        return run(gpu, kind, &[out, x], dim);
    }
    // Narrow types are accumulated in wide ones.
    let strides = contiguous_strides(out.shape);
    let aside = alloc(out.numel() * dtype.size())?;
    let wide = View { buffer: &aside, dtype, shape: out.shape, strides: &strides, offset: 0 };
    run(gpu, kind, &[wide, x], dim)?;
    copy(out, wide)
}

/// The maximum (or minimum) so far along `dim`, and its last index (`indices`, int64). A NaN persists.
pub fn cum_extreme(
    values: View<'_>,
    indices: View<'_>,
    x: View<'_>,
    dim: usize,
    largest: bool,
) -> Result<()> {
    if indices.dtype != DType::I64 || values.dtype != x.dtype {
        return Err(Error::runtime(
            "cummax: indices must be int64, and values must have the dtype of the input",
        ));
    }
    let gpu = gpu()?;
    let scan = if largest { Scan::Max } else { Scan::Min };
    gpu.supports(scan.name(), x.dtype)?;
    if !values.buffer.same(x.buffer) && !indices.buffer.same(x.buffer) {
        return run(gpu, scan, &[values, indices, x], dim);
    }
    // Elements are read again after others were written.
    let strides = contiguous_strides(x.shape);
    let aside = alloc(x.numel() * x.dtype.size())?;
    let copied = View { buffer: &aside, strides: &strides, offset: 0, ..x };
    copy(copied, x)?;
    run(gpu, scan, &[values, indices, copied], dim)
}

/// Runs a scan whose output dtype is also that of the accumulator; the input is the last view.
fn run(gpu: &Gpu, scan: Scan, views: &[View<'_>], dim: usize) -> Result<()> {
    let (out, x) = (views[0], views[views.len() - 1]);
    let rows = RowWalk::new(views, dim)?;
    if rows.count == 0 || rows.length == 0 {
        return Ok(());
    }
    let many = rows.count >= 4096 || (rows.stride(views.len() - 1) > 1 && rows.count >= 256);
    let single = rows.length <= 32 || (many && rows.length <= LONG);
    let blocks = rows.length.div_ceil(BLOCK);
    let kind = ScanKind {
        scan,
        o: Stored::of(out.dtype),
        x: Stored::of(x.dtype),
        rank: rows.rank(),
        shared: out.buffer.same(x.buffer),
        step: if single { ScanStep::Single } else { ScanStep::Block },
    };
    let mut words = Words::new();
    rows.push(&mut words);
    words.push(blocks as u32);
    let state = if scan.is_extreme() { 4 } else { out.dtype.size() };
    let totals = alloc(if single { 0 } else { rows.count * blocks * state })?;
    let mut buffers: SmallVec<[&Buffer; 4]> = views.iter().map(|view| view.buffer).collect();
    buffers.push(&totals);
    let launch = |step: ScanStep, groups: [u32; 3]| {
        let kind = ScanKind { step, ..kind };
        gpu.launch(&kind, &buffers, &words, groups)
    };
    if single {
        return launch(ScanStep::Single, groups(rows.count, GROUP));
    }
    launch(ScanStep::Block, groups(rows.count * blocks, 1))?;
    if blocks == 1 {
        return Ok(());
    }
    if blocks > 2 {
        launch(ScanStep::Totals, groups(rows.count, 1))?;
    }
    launch(ScanStep::Shift, groups(rows.count * rows.length, GROUP))
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ScanStep {
    /// One invocation scans a row.
    Single,
    /// One workgroup scans a block, and writes its total.
    Block,
    /// One workgroup scans the totals of a row.
    Totals,
    /// Each element is combined with the total of the blocks before its own.
    Shift,
}

/// Distinguishes one kernel from another. The state of a scan is a number of the output's type, or the
/// index of an extremum (all bits set if there is none yet).
#[derive(Clone, Copy, Hash)]
struct ScanKind {
    scan: Scan,
    o: Stored,
    x: Stored,
    rank: usize,
    shared: bool,
    step: ScanStep,
}

impl ScanKind {
    fn value(&self) -> Value {
        if self.scan.is_extreme() { self.x.value() } else { self.o.value() }
    }

    /// Returns the WGSL of `joined(a, b, …)`, the state after the elements of `b`, which follow those of
    /// `a`. For an index as state it also gets the position of the row.
    fn join(&self) -> String {
        let body = match self.scan {
            Scan::Sum => "return a + b;".to_owned(),
            Scan::Prod => "return a * b;".to_owned(),
            Scan::LogSumExp => "let high = maximum(a, b);\n  let low = minimum(a, b);\n  \
                return select(high, high + log1p(exp(low - high)), !(low == high) || is_finite(low));"
                .to_owned(),
            Scan::Max | Scan::Min => {
                let beats = if self.scan == Scan::Max { "y >= x" } else { "y <= x" };
                let better = match self.x.value() {
                    Value::F32 | Value::F64 => format!("is_nan(y) || (!is_nan(x) && {beats})"),
                    _ => beats.to_owned(),
                };
                format!(
                    "if (a == {NONE} || b == {NONE}) {{ return min(a, b); }}\n  let x = x_get(x_at + a * x_step);\n  \
                     let y = x_get(x_at + b * x_step);\n  return select(a, b, {better});"
                )
            }
        };
        format!("fn joined(a: State, b: State, x_at: u32, x_step: u32) -> State {{\n  {body}\n}}\n")
    }

    /// Returns the state of element `k` alone.
    fn element(&self) -> String {
        if self.scan.is_extreme() {
            return "k".to_owned();
        }
        self.x.value().convert(self.value(), "x_get(x_at + k * x_step)")
    }

    /// Returns statements that write the state `s` as element `k` of the result.
    fn store(&self) -> String {
        if !self.scan.is_extreme() {
            return "o_set(o_at + k * o_step, s);".to_owned();
        }
        let value = self.x.value().convert_to_stored(self.o, "x_get(x_at + s * x_step)");
        format!("o_set(o_at + k * o_step, {value}); w[w_at + k * w_step] = vec2<u32>(s, 0u);")
    }
}

/// The place of an extreme where there is none yet: the largest number, so that of two the smaller one is a place.
const NONE: &str = "0xffffffffu";

/// From each invocation's `run` to `runs`, scanned over the workgroup, and `before`, what came before this one.
fn across(start: &str, join: &str) -> String {
    format!(
        "  runs[me] = run;\n  workgroupBarrier();\n  for (var step = 1u; step < {GROUP}u; step *= 2u) {{\n    \
         var v = runs[me];\n    if (me >= step) {{ v = {join}; }}\n    workgroupBarrier();\n    runs[me] = v;\n    \
         workgroupBarrier();\n  }}\n  var before: State = {start};\n  if (me > 0u) {{ before = runs[me - 1u]; }}\n"
    )
}

impl ShaderKind for ScanKind {
    fn name(&self) -> &'static str {
        self.scan.name()
    }

    fn shader(&self) -> Shader {
        let extreme = self.scan.is_extreme();
        let names: SmallVec<[&str; 3]> = if extreme { smallvec!["o", "w", "x"] } else { smallvec!["o", "x"] };
        let mut code = Code::new(self.value());
        code.operand("o", self.o, true, false);
        if extreme {
            code.bind("w", "vec2<u32>", true);
        }
        code.operand("x", self.x, false, self.shared);
        code.push(&format!("alias State = {};\n", if extreme { "u32" } else { "T" }));
        code.bind("totals", "State", true);
        let start = match self.scan {
            Scan::Sum => "T(0)",
            Scan::Prod => "T(1)",
            Scan::LogSumExp => "-inf()",
            Scan::Max | Scan::Min => NONE,
        };
        code.push(&self.join());
        let join = |a: &str, b: &str| format!("joined({a}, {b}, x_at, x_step)");
        let (element, store) = (self.element(), self.store());
        match self.step {
            ScanStep::Single => {
                code.main_by_item();
                RowWalk::code(&mut code, self.rank, &names, "i");
                let _blocks = code.word();
                code.push(&format!(
                    "  var s: State = {start};\n  for (var k = 0u; k < length; k++) {{\n    s = {};\n    {store}\n  }}\n}}\n",
                    join("s", &element)
                ));
            }
            ScanStep::Block => {
                code.push(&format!("var<workgroup> runs: array<State, {GROUP}>;\n"));
                code.main_by_group();
                let (count, length) = (code.word(), code.word());
                // The number of blocks is the last parameter, but is needed first.
                let blocks = format!("((length + {}u) / {BLOCK}u)", BLOCK - 1);
                code.push(&format!(
                    "  let length = {length};\n  if (row >= {count} * {blocks}) {{ return; }}\n  \
                     let line = row / {blocks};\n  let first = (row - line * {blocks}) * {BLOCK}u + 4u * me;\n"
                ));
                RowWalk::find(&mut code, self.rank, &names, "line");
                let _blocks = code.word();
                code.push(&format!(
                    "  var own = array<State, 4>();\n  var run: State = {start};\n  for (var j = 0u; j < 4u; j++) {{\n    \
                     let k = first + j;\n    if (k < length) {{ run = {}; }}\n    own[j] = run;\n  }}\n{}  \
                     for (var j = 0u; j < 4u; j++) {{\n    let k = first + j;\n    \
                     if (k < length) {{ let s = {}; {store} }}\n  }}\n  if (me == {}u) {{ totals[row] = runs[me]; }}\n}}\n",
                    join("run", &element),
                    across(start, &join("runs[me - step]", "v")),
                    join("before", "own[j]"),
                    GROUP - 1
                ));
            }
            ScanStep::Totals => {
                code.push(&format!("var<workgroup> runs: array<State, {GROUP}>;\n"));
                code.main_by_group();
                RowWalk::code(&mut code, self.rank, &names, "row");
                let blocks = code.word();
                let total = format!("totals[row * {blocks} + k]");
                code.push(&format!(
                    "  let chunk = ({blocks} + {}u) / {GROUP}u;\n  let first = me * chunk;\n  \
                     let end = min(first + chunk, {blocks});\n  var run: State = {start};\n  \
                     for (var k = first; k < end; k++) {{ run = {}; }}\n{}  \
                     for (var k = first; k < end; k++) {{\n    before = {};\n    {total} = before;\n  }}\n}}\n",
                    GROUP - 1,
                    join("run", &total),
                    across(start, &join("runs[me - step]", "v")),
                    join("before", &total),
                ));
            }
            ScanStep::Shift => {
                code.main_by_item();
                let (count, length) = (code.word(), code.word());
                code.push(&format!(
                    "  let length = {length};\n  if (i >= {count} * length) {{ return; }}\n  let line = i / length;\n  \
                     let k = i - line * length;\n"
                ));
                RowWalk::find(&mut code, self.rank, &names, "line");
                let blocks = code.word();
                let so_far = if extreme { "w[w_at + k * w_step].x" } else { "o_get(o_at + k * o_step)" };
                code.push(&format!(
                    "  let block = k / {BLOCK}u;\n  if (block == 0u) {{ return; }}\n  let s = {};\n  {store}\n}}\n",
                    join(&format!("totals[line * {blocks} + block - 1u]"), so_far)
                ));
            }
        }
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(ScanKind, |check| {
    let sums = [
        (Stored::F32, Stored::F16),
        (Stored::I64, Stored::Bool),
        (Stored::I32, Stored::I32),
        (Stored::F64, Stored::F64),
    ];
    let same = [Stored::Bool, Stored::F16, Stored::I32, Stored::F32, Stored::I64, Stored::F64]
        .map(|stored| (stored, stored));
    let logs = [(Stored::F32, Stored::F32), (Stored::F32, Stored::BF16), (Stored::F64, Stored::F64)];
    let jobs = [
        (&[Scan::Sum, Scan::Prod][..], &sums[..]),
        (&[Scan::Max, Scan::Min][..], &same[..]),
        (&[Scan::LogSumExp][..], &logs[..]),
    ];
    for (scans, stored) in jobs {
        for (&scan, &(o, x)) in scans.iter().flat_map(|scan| stored.iter().map(move |stored| (scan, stored)))
        {
            for step in [ScanStep::Single, ScanStep::Block, ScanStep::Totals, ScanStep::Shift] {
                for rank in [1, 4] {
                    check(&ScanKind { scan, o, x, rank, shared: rank == 4, step });
                }
            }
        }
    }
});
