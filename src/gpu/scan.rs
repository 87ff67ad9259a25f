//! Running sums and products. Long rows are scanned in blocks side by side, then the blocks' totals (by the same
//! scan), then every element takes what came before its block.

use super::cell::{Cell, Value};
use super::code::{Code, GROUP};
use super::device::{Gpu, gpu};
use super::pipeline::{Key, Shader};
use super::pool::Buffer;
use super::rows::Rows;
use super::space::{Words, groups};
use super::stream::Launch;
use super::{View, alloc, copy};
use crate::base::{DType, Result, contiguous_strides};

/// What runs along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    Sum,
    Prod,
}

/// Elements of a block: four an invocation.
const BLOCK: usize = 4 * GROUP;

/// `out[i] = x[0] + ... + x[i]` along `dim`, or the product.
pub fn scan(kind: Scan, out: View<'_>, x: View<'_>, dim: usize) -> Result<()> {
    let gpu = gpu()?;
    let name = if kind == Scan::Sum { "cumsum" } else { "cumprod" };
    gpu.supports(name, x.dtype)?;
    gpu.supports(name, out.dtype)?;
    let dtype = match Cell::of(out.dtype).value() {
        Value::F32 => DType::F32,
        Value::F64 => DType::F64,
        Value::I64 => DType::I64,
        _ => DType::I32,
    };
    if out.dtype == dtype {
        return run(gpu, kind, out, x, dim);
    }
    // Narrow types are accumulated in wide ones.
    let strides = contiguous_strides(out.shape);
    let aside = alloc(out.numel() * dtype.size())?;
    let wide = View { buffer: &aside, dtype, shape: out.shape, strides: &strides, offset: 0 };
    run(gpu, kind, wide, x, dim)?;
    copy(out, wide)
}

/// The same for an output whose type is accumulated in.
fn run(gpu: &Gpu, scan: Scan, out: View<'_>, x: View<'_>, dim: usize) -> Result<()> {
    let views = [out, x];
    let rows = Rows::new(&views, dim)?;
    if rows.count == 0 || rows.length == 0 {
        return Ok(());
    }
    let blocks = rows.length.div_ceil(BLOCK);
    let single = rows.length <= 32 || rows.count >= 4096 || (rows.stride(1) > 1 && rows.count >= 256);
    let sum = Cell::of(out.dtype).value();
    let step = if single { Step::Single } else { Step::Block };
    let kind =
        Kind { scan, sum, x: Cell::of(x.dtype), rank: rows.rank(), shared: out.buffer.same(x.buffer), step };
    let mut words = Words::new();
    rows.push(&mut words);
    words.push(blocks as u32);
    let totals = alloc(rows.count * blocks * out.dtype.size())?;
    launch(
        gpu,
        &kind,
        &[out.buffer, x.buffer, &totals],
        &words,
        if single { groups(rows.count, GROUP) } else { groups(rows.count * blocks, 1) },
    )?;
    if single || blocks == 1 {
        return Ok(());
    }
    let shape = [rows.count, blocks];
    let between = View { buffer: &totals, dtype: out.dtype, shape: &shape, strides: &[blocks, 1], offset: 0 };
    run(gpu, scan, between, between, 1)?;
    let kind = Kind { step: Step::Shift, ..kind };
    launch(gpu, &kind, &[out.buffer, x.buffer, &totals], &words, groups(rows.count * rows.length, GROUP))
}

fn launch(gpu: &Gpu, kind: &Kind, buffers: &[&Buffer], words: &Words, groups: [u32; 3]) -> Result<()> {
    let kernel = gpu.kernel(&kind.key(), || Ok(kind.shader()))?;
    gpu.stream().launch(gpu, &Launch { kernel: &kernel, buffers, words, groups, flags: false })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// An invocation scans a row.
    Single,
    /// A workgroup scans a block, and writes its total.
    Block,
    /// Each element takes the total of the blocks before its own.
    Shift,
}

#[derive(Clone, Copy)]
struct Kind {
    scan: Scan,
    sum: Value,
    x: Cell,
    rank: usize,
    shared: bool,
    step: Step,
}

impl Kind {
    fn key(&self) -> Key {
        Key::new("scan", if self.scan == Scan::Sum { "cumsum" } else { "cumprod" })
            .with(self.sum as u8)
            .with(self.x as u8)
            .with(self.rank as u8)
            .with(u8::from(self.shared))
            .with(self.step as u8)
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(Rows::words(self.rank, 2) + 1, self.sum);
        let cell = match self.sum {
            Value::F32 => Cell::F32,
            Value::F64 => Cell::F64,
            Value::I64 => Cell::I64,
            _ => Cell::I32,
        };
        code.operand("o", cell, true, false);
        code.operand("x", self.x, false, self.shared);
        code.bind("totals", self.sum.name(), true);
        let (start, join) = if self.scan == Scan::Sum { ("T(0)", "+") } else { ("T(1)", "*") };
        let read = self.x.value().convert(self.sum, "x_get(x_at + k * x_step)");
        match self.step {
            Step::Single => {
                code.main_by_item();
                Rows::code(&mut code, self.rank, &["o", "x"], "i");
                let _blocks = code.word();
                code.push(&format!(
                    "  var run = {start};\n  for (var k = 0u; k < length; k++) {{\n    run = run {join} {read};\n    \
                     o_set(o_at + k * o_step, run);\n  }}\n}}\n"
                ));
            }
            Step::Block => {
                code.push(&format!("var<workgroup> runs: array<T, {GROUP}>;\n"));
                code.main_by_group();
                let (count, length) = (code.word(), code.word());
                // The number of blocks is the last parameter, but is needed first.
                let blocks = format!("((length + {}u) / {BLOCK}u)", BLOCK - 1);
                code.push(&format!(
                    "  let length = {length};\n  if (row >= {count} * {blocks}) {{ return; }}\n  \
                     let line = row / {blocks};\n  let first = (row - line * {blocks}) * {BLOCK}u + 4u * me;\n"
                ));
                Rows::find(&mut code, self.rank, &["o", "x"], "line");
                let _blocks = code.word();
                code.push(&format!(
                    "  var own = array<T, 4>();\n  var run = {start};\n  for (var j = 0u; j < 4u; j++) {{\n    \
                     let k = first + j;\n    if (k < length) {{ run = run {join} {read}; }}\n    own[j] = run;\n  }}\n  \
                     runs[me] = run;\n  workgroupBarrier();\n  \
                     for (var step = 1u; step < {GROUP}u; step *= 2u) {{\n    var v = runs[me];\n    \
                     if (me >= step) {{ v = runs[me - step] {join} v; }}\n    workgroupBarrier();\n    runs[me] = v;\n    \
                     workgroupBarrier();\n  }}\n  var before = {start};\n  if (me > 0u) {{ before = runs[me - 1u]; }}\n  \
                     for (var j = 0u; j < 4u; j++) {{\n    let k = first + j;\n    \
                     if (k < length) {{ o_set(o_at + k * o_step, before {join} own[j]); }}\n  }}\n  \
                     if (me == {}u) {{ totals[row] = runs[me]; }}\n}}\n",
                    GROUP - 1
                ));
            }
            Step::Shift => {
                code.main_by_item();
                let (count, length) = (code.word(), code.word());
                code.push(&format!(
                    "  let length = {length};\n  if (i >= {count} * length) {{ return; }}\n  let line = i / length;\n  \
                     let k = i - line * length;\n"
                ));
                Rows::find(&mut code, self.rank, &["o", "x"], "line");
                let blocks = code.word();
                code.push(&format!(
                    "  let block = k / {BLOCK}u;\n  if (block == 0u) {{ return; }}\n  let at = o_at + k * o_step;\n  \
                     o_set(at, totals[line * {blocks} + block - 1u] {join} o_get(at));\n}}\n"
                ));
            }
        }
        code.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (sum, x) in [
            (Value::F32, Cell::F16),
            (Value::I64, Cell::Bool),
            (Value::I32, Cell::I32),
            (Value::F64, Cell::F64),
        ] {
            for step in [Step::Single, Step::Block, Step::Shift] {
                for rank in [1, 4] {
                    let kind = Kind { scan: Scan::Prod, sum, x, rank, shared: rank == 4, step };
                    validate(&kind.shader());
                }
            }
        }
    }
}
