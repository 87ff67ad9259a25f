//! Stable merge sort: blocks double in every pass. An element finds its position by a binary search for the
//! number of elements in the neighbouring block that precede it. Keys are unsigned integers in the order of
//! the elements.

use crate::base::Result;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::launch::index_space::{Words, groups};
use crate::gpu::launch::row_walk::RowWalk;
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};

/// Sorts along `dim`, NaN above all numbers; `indices` (int64) receives the original position of each
/// value. Equal elements keep their order.
pub fn sort(values: View<'_>, indices: View<'_>, x: View<'_>, dim: usize, descending: bool) -> Result<()> {
    let gpu = gpu()?;
    for view in [&values, &indices, &x] {
        gpu.supports("sort", view.dtype)?;
    }
    let views = [values, indices, x];
    let rows = RowWalk::new(&views, dim)?;
    let n = rows.count * rows.length;
    if n == 0 {
        return Ok(());
    }
    let kind = SortKind {
        x: Stored::of(x.dtype),
        rank: rows.rank(),
        descending,
        shared: x.buffer.same(values.buffer) || x.buffer.same(indices.buffer),
        step: SortStep::Keys,
    };
    let width = if kind.wide() { 8 } else { 4 };
    let keys = (alloc(n * width)?, alloc(n * width)?);
    let places = (alloc(n * 4)?, alloc(n * 4)?);
    let mut words = Words::new();
    rows.push(&mut words);
    launch(gpu, kind, &[&keys.0, &places.0, x.buffer], &words, n)?;
    let (_, places) = merged(gpu, kind, keys, places, (rows.count, rows.length))?;
    if kind.shared {
        // The output overlaps the input: take the values from a copy.
        let aside = alloc(x.numel() * x.dtype.size())?;
        let strides = crate::base::contiguous_strides(x.shape);
        let copied = View { buffer: &aside, strides: &strides, offset: 0, ..x };
        crate::gpu::kernels::pointwise::copy(copied, x)?;
        let views = [values, indices, copied];
        return finish(gpu, &RowWalk::new(&views, dim)?, &views, &places);
    }
    finish(gpu, &rows, &views, &places)
}

/// Sorts `n` keys of 32 bits with a payload each; equal keys keep their order.
pub(in crate::gpu) fn sort_pairs(
    gpu: &Gpu,
    keys: Buffer,
    others: Buffer,
    n: usize,
) -> Result<(Buffer, Buffer)> {
    let kind = SortKind { x: Stored::I32, rank: 1, descending: false, shared: false, step: SortStep::Merge };
    let room = || alloc(if n > 1 { 4 * n } else { 0 });
    merged(gpu, kind, (keys, room()?), (others, room()?), (1, n))
}

/// Merges rows of keys and payloads until they are sorted; the second of each pair is scratch memory.
fn merged(
    gpu: &Gpu,
    kind: SortKind,
    mut keys: (Buffer, Buffer),
    mut places: (Buffer, Buffer),
    (count, length): (usize, usize),
) -> Result<(Buffer, Buffer)> {
    let n = count * length;
    let mut block = 1;
    while block < length {
        let words = Words::from_slice(&[n as u32, length as u32, block as u32]);
        let merge = SortKind { step: SortStep::Merge, rank: 1, descending: false, shared: false, ..kind };
        launch(gpu, merge, &[&keys.1, &places.1, &keys.0, &places.0], &words, n)?;
        std::mem::swap(&mut keys.0, &mut keys.1);
        std::mem::swap(&mut places.0, &mut places.1);
        block *= 2;
    }
    Ok((keys.0, places.0))
}

/// Writes values and indices in the order of `places`.
fn finish(gpu: &Gpu, rows: &RowWalk<'_>, views: &[View<'_>; 3], places: &Buffer) -> Result<()> {
    let mut words = Words::new();
    rows.push(&mut words);
    let [values, indices, x] = views;
    let kind = SortKind {
        step: SortStep::Finish,
        x: Stored::bits(x.dtype),
        rank: rows.rank(),
        descending: false,
        shared: values.buffer.same(indices.buffer),
    };
    launch(gpu, kind, &[values.buffer, indices.buffer, x.buffer, places], &words, rows.count * rows.length)
}

fn launch(gpu: &Gpu, kind: SortKind, buffers: &[&Buffer], words: &Words, n: usize) -> Result<()> {
    gpu.launch(&kind, buffers, words, groups(n, GROUP))
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum SortStep {
    Keys,
    Merge,
    Finish,
}

#[derive(Clone, Copy, Hash)]
struct SortKind {
    x: Stored,
    rank: usize,
    descending: bool,
    shared: bool,
    step: SortStep,
}

impl SortKind {
    /// Returns true if keys have 64 bits.
    fn wide(&self) -> bool {
        self.x.size() == 8
    }

    /// Returns the WGSL of the key of a value `x`: both zeros are equal, NaN is above all.
    fn rank_of(&self) -> &'static str {
        match self.x.value() {
            Value::F32 => {
                "fn rank(x: f32) -> u32 { let b = bitcast<u32>(x); if (is_nan(x)) { return 0xffffffffu; } \
                 if (b == 0x80000000u) { return b; } return select(b | 0x80000000u, ~b, (b >> 31u) == 1u); }\n"
            }
            Value::F64 => {
                "fn rank(x: f64) -> u64 { let b = bitcast<u64>(x); if (is_nan(x)) { return 0xfffffffffffffffflu; } \
                 if (b == 0x8000000000000000lu) { return b; } \
                 return select(b | 0x8000000000000000lu, ~b, (b >> 63u) == 1lu); }\n"
            }
            Value::I64 => "fn rank(x: i64) -> u64 { return u64(x) ^ 0x8000000000000000lu; }\n",
            _ => "fn rank(x: i32) -> u32 { return bitcast<u32>(x) ^ 0x80000000u; }\n",
        }
    }

    /// Defines `n`, the row `line` and the position `k` of item `i` in it.
    fn place(code: &mut Code) {
        let (count, length) = (code.word(), code.word());
        code.push(&format!(
            "  let length = {length};\n  if (i >= {count} * length) {{ return; }}\n  let line = i / length;\n  \
             let k = i - line * length;\n"
        ));
    }

    fn keys(&self) -> Shader {
        let mut code = Code::new(self.x.value());
        code.bind("keys", if self.wide() { "u64" } else { "u32" }, true);
        code.bind("places", "u32", true);
        code.operand("x", self.x, false, false);
        code.push(self.rank_of());
        code.main_by_item();
        SortKind::place(&mut code);
        RowWalk::find(&mut code, self.rank, &["v", "w", "x"], "line");
        let flip = if self.descending { "~" } else { "" };
        code.push(&format!("  keys[i] = {flip}rank(x_get(x_at + k * x_step));\n  places[i] = k;\n}}\n"));
        code.finish()
    }

    fn merge(&self) -> Shader {
        let mut code = Code::new(Value::I32);
        let key = if self.wide() { "u64" } else { "u32" };
        for (name, element, write) in [
            ("new_keys", key, true),
            ("new_places", "u32", true),
            ("keys", key, false),
            ("places", "u32", false),
        ] {
            code.bind(name, element, write);
        }
        code.main_by_item();
        let [n, length, block] = [code.word(), code.word(), code.word()];
        code.push(&format!(
            "  if (i >= {n}) {{ return; }}\n  let length = {length};\n  let block = {block};\n  let row = (i / length) * length;\n  \
             let k = i - row;\n  let pair = k - k % (2u * block);\n  let middle = min(pair + block, length);\n  \
             let end = min(pair + 2u * block, length);\n  let key = keys[i];\n  let first = k < middle;\n  \
             var low = select(pair, middle, first);\n  var high = select(middle, end, first);\n  let start = low;\n  \
             while (low < high) {{\n    let at = (low + high) / 2u;\n    let other = keys[row + at];\n    \
             // Equal elements of the first block come first.\n    \
             if (other < key || (!first && other == key)) {{ low = at + 1u; }} else {{ high = at; }}\n  }}\n  \
             let own = k - select(middle, pair, first);\n  let place = row + pair + own + (low - start);\n  \
             new_keys[place] = key;\n  new_places[place] = places[i];\n}}\n"
        ));
        code.finish()
    }

    fn gather(&self) -> Shader {
        let mut code = Code::new(Value::I32);
        code.operand("sorted", self.x, true, false);
        code.bind("w", "vec2<u32>", true);
        code.operand("x", self.x, false, false);
        code.bind("places", "u32", false);
        code.main_by_item();
        SortKind::place(&mut code);
        RowWalk::find(&mut code, self.rank, &["sorted", "w", "x"], "line");
        code.push(
            "  let place = places[i];\n  sorted_set(sorted_at + k * sorted_step, x_get(x_at + place * x_step));\n  \
             w[w_at + k * w_step] = vec2<u32>(place, 0u);\n}\n",
        );
        code.finish()
    }
}

impl ShaderKind for SortKind {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn shader(&self) -> Shader {
        match self.step {
            SortStep::Keys => self.keys(),
            SortStep::Merge => self.merge(),
            SortStep::Finish => self.gather(),
        }
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(SortKind, |check| {
    for x in [Stored::Bool, Stored::F16, Stored::I32, Stored::F32, Stored::I64, Stored::F64] {
        for (rank, descending) in [(1, true), (4, false)] {
            check(&SortKind { x, rank, descending, shared: false, step: SortStep::Keys });
            check(&SortKind { x, rank, descending, shared: false, step: SortStep::Merge });
            let stored = if x.size() == 8 { Stored::Bits64 } else { x };
            check(&SortKind { x: stored, rank, descending, shared: false, step: SortStep::Finish });
        }
    }
});
