//! Sums (products, extrema) of the values that indices send to one position, in a fixed order, so that the
//! same program gives the same bits: entries are sorted by position, and the values of each position are
//! combined in their original order.
//!
//! An entry is a combination of indices; its value may have columns, the dimensions in which no index
//! varies. Sorted entries are walked in chunks. A position that lies entirely inside a chunk is written at
//! once; the partial results at both ends of a chunk become the entries of the next, much shorter round.

use crate::base::{Dims, Put, Result, contiguous_strides};
use crate::gpu::device::fault::Origin;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::index::{IndexBy, index_formats, indexed_words};
use crate::gpu::kernels::pointwise::copy;
use crate::gpu::kernels::sort::sort_pairs;
use crate::gpu::launch::index_space::{Space, Words, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// The number of sorted entries that one invocation walks.
const CHUNK: usize = 64;
/// The position of an entry that has none: its index is out of bounds, or a chunk has no partial result
/// there.
const NONE: &str = "0xffffffffu";

/// Like `index_put`, for views that are already checked.
pub(in crate::gpu) fn put(
    origin: Origin,
    dst: View<'_>,
    src: View<'_>,
    by: &[IndexBy<'_>],
    mode: Put,
    negative: bool,
) -> Result<()> {
    let gpu = gpu()?;
    if dst.buffer.same(src.buffer) {
        let aside = alloc(src.numel() * src.dtype.size())?;
        let strides = contiguous_strides(src.shape);
        let copied = View { buffer: &aside, strides: &strides, offset: 0, ..src };
        copy(copied, src)?;
        return put(origin, dst, copied, by, mode, negative);
    }
    let varies = |d: &usize| by.iter().any(|by| by.index.strides[*d] != 0 && by.index.shape[*d] > 1);
    let pick = |of: &[usize], entries: bool| -> Dims {
        (0..dst.shape.len()).filter(|d| varies(d) == entries).map(|d| of[d]).collect()
    };
    let entry_strides: Vec<Dims> = [dst.strides, src.strides]
        .into_iter()
        .chain(by.iter().map(|by| by.index.strides))
        .map(|strides| pick(strides, true))
        .collect();
    let operands: Vec<&[usize]> = entry_strides.iter().map(|s| s.as_slice()).collect();
    let entries = Space::new(&pick(dst.shape, true), &operands);
    let columns =
        Space::new(&pick(dst.shape, false), &[&pick(dst.strides, false), &pick(src.strides, false)]);
    let (n, width) = (entries.dims.iter().product::<usize>(), columns.dims.iter().product::<usize>());
    let (places, sources) = find(gpu, origin, (dst, src), by, negative, &entries, n)?;
    join(gpu, dst, src, mode, &columns, (places, sources, n, width))
}

/// Computes the position of each entry's first column in `dst`, sorted, and the position of its value in
/// `src`.
fn find(
    gpu: &Gpu,
    origin: Origin,
    (dst, src): (View<'_>, View<'_>),
    by: &[IndexBy<'_>],
    negative: bool,
    entries: &Space,
    n: usize,
) -> Result<(Buffer, Buffer)> {
    let (places, sources) = (alloc(4 * n)?, alloc(4 * n)?);
    let words = indexed_words(origin, n, entries, &[dst, src], by);
    let buffers: SmallVec<[&Buffer; 8]> =
        [&places, &sources].into_iter().chain(by.iter().map(|by| by.index.buffer)).collect();
    let kind = SegmentFind { rank: entries.rank(), negative, indices: index_formats(by) };
    gpu.launch(&kind, &buffers, &words, groups(n, GROUP))?;
    drop(buffers);
    sort_pairs(gpu, places, sources, n)
}

/// Combines the values of sorted entries into `dst`, round by round.
fn join(
    gpu: &Gpu,
    dst: View<'_>,
    src: View<'_>,
    mode: Put,
    columns: &Space,
    (mut places, sources, mut n, width): (Buffer, Buffer, usize, usize),
) -> Result<()> {
    let stored = Stored::of(dst.dtype);
    let size = if stored.size() == 8 { 8 } else { 4 };
    let mut values: Option<Buffer> = None;
    loop {
        let chunks = n.div_ceil(CHUNK);
        let shared = if chunks > 1 { 2 * chunks } else { 0 };
        let (next_places, next_values) = (alloc(4 * shared)?, alloc(size * shared * width)?);
        let kind = SegmentJoin { mode, stored, rank: columns.rank(), first: values.is_none() };
        let mut words = Words::new();
        words.extend([n as u32, chunks as u32, width as u32]);
        columns.push_dims(&mut words);
        columns.push_strides(0, &mut words);
        columns.push_strides(1, &mut words);
        let from = values.as_ref().unwrap_or(src.buffer);
        let buffers = [dst.buffer, from, &places, &sources, &next_places, &next_values];
        gpu.launch(&kind, &buffers, &words, groups(chunks * width, GROUP))?;
        if chunks == 1 {
            return Ok(());
        }
        (places, values, n) = (next_places, Some(next_values), shared);
    }
}

#[derive(Hash)]
struct SegmentFind {
    rank: usize,
    negative: bool,
    indices: SmallVec<[Stored; 4]>,
}

impl ShaderKind for SegmentFind {
    fn name(&self) -> &'static str {
        "index_put_find"
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(Value::I32);
        code.bind("places", "u32", true);
        code.bind("sources", "u32", true);
        for (k, stored) in self.indices.iter().enumerate() {
            code.operand(&format!("index{k}"), *stored, false, false);
        }
        let missing = format!("sources[i] = read_at; places[i] = {NONE};");
        let by = (self.rank, self.indices.as_slice(), self.negative);
        code.indexed(by, ["put_at", "read_at"], "put_at", &missing);
        code.push("  sources[i] = read_at;\n  places[i] = put_at;\n}\n");
        code.finish()
    }
}

#[derive(Hash)]
struct SegmentJoin {
    mode: Put,
    /// The storage format of the destination; in the first round that of the source, too.
    stored: Stored,
    rank: usize,
    first: bool,
}

impl ShaderKind for SegmentJoin {
    fn name(&self) -> &'static str {
        "index_put_join"
    }

    fn shader(&self) -> Shader {
        let value = self.stored.value();
        let mut code = Code::new(value);
        code.operand("o", self.stored, true, false);
        if self.first {
            code.operand("x", self.stored, false, false);
        } else {
            code.bind("x", value.name(), false);
        }
        for (name, element, write) in [
            ("places", "u32", false),
            ("sources", "u32", false),
            ("next_places", "u32", true),
            ("next_values", value.name(), true),
        ] {
            code.bind(name, element, write);
        }
        let (join, nothing) = match self.mode {
            Put::Assign => ("b", "acc"),
            Put::Add => ("a + b", "T(0)"),
            Put::Mul => ("a * b", "T(1)"),
            // An extremum may be combined twice without harm.
            Put::Max => ("maximum(a, b)", "acc"),
            Put::Min => ("minimum(a, b)", "acc"),
        };
        let joined = value.convert_to_stored(self.stored, "joined(o_get(at), v)");
        code.push(&format!(
            "fn joined(a: T, b: T) -> T {{ return {join}; }}\n\
             fn arrive(at: u32, v: T) {{ o_set(at, {joined}); }}\n"
        ));
        code.main_by_item();
        let [n, chunks, width] = [code.word(), code.word(), code.word()];
        code.push(&format!(
            "  let n = {n};\n  let width = {width};\n  let chunk = i / width;\n  if (chunk >= {chunks}) {{ return; }}\n  \
             let column = i - chunk * width;\n"
        ));
        let dims = code.words(self.rank - 1);
        code.push(&Code::split("column", "c", &dims));
        let (to, from) = (code.words(self.rank), code.words(self.rank));
        let read = if self.first { "x_get(sources[p] + read_at)" } else { "x[p * width + column]" };
        code.push(&format!(
            "  let put_at = {};\n  let read_at = {};\n  let start = chunk * {CHUNK}u;\n  let end = min(start + {CHUNK}u, n);\n  \
             var p = start;\n  var run = places[p];\n  var acc = {read};\n  \
             var begun = start > 0u && places[max(start, 1u) - 1u] == run;\n  \
             var low_place = {NONE};\n  var low = acc;\n  var high_place = {NONE};\n  var high = acc;\n  \
             for (p = start + 1u; p < end; p++) {{\n    let place = places[p];\n    \
             if (place == run) {{ acc = joined(acc, {read}); continue; }}\n    \
             if (begun) {{ low_place = run; low = acc; }} else if (run != {NONE}) {{ arrive(run + put_at, acc); }}\n    \
             begun = false;\n    run = place;\n    acc = {read};\n  }}\n  \
             let goes_on = end < n && places[min(end, n - 1u)] == run;\n  \
             if (run != {NONE}) {{\n    \
             if (begun) {{\n      low_place = run;\n      low = acc;\n      \
             if (goes_on) {{ high_place = run; high = {nothing}; }}\n    \
             }} else if (goes_on) {{\n      high_place = run;\n      high = acc;\n    \
             }} else {{\n      arrive(run + put_at, acc);\n    }}\n  }}\n  \
             if ({chunks} == 1u) {{ return; }}\n  \
             if (column == 0u) {{\n    next_places[2u * chunk] = low_place;\n    next_places[2u * chunk + 1u] = high_place;\n  }}\n  \
             next_values[2u * chunk * width + column] = low;\n  \
             next_values[(2u * chunk + 1u) * width + column] = high;\n}}\n",
            Code::dot("c", &to),
            Code::dot("c", &from),
        ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(SegmentFind, |check| {
    for (rank, indices) in [(1, &[Stored::Bits64][..]), (3, &[Stored::I32, Stored::U8]), (6, &[])] {
        check(&SegmentFind { rank, negative: rank == 1, indices: indices.into() });
    }
});

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(SegmentJoin, |check| {
    for stored in [Stored::U8, Stored::F16, Stored::BF16, Stored::I32, Stored::F32, Stored::I64, Stored::F64]
    {
        for mode in [Put::Assign, Put::Add, Put::Mul, Put::Max, Put::Min] {
            for (rank, first) in [(1, true), (1, false), (3, true)] {
                check(&SegmentJoin { mode, stored, rank, first });
            }
        }
    }
});
