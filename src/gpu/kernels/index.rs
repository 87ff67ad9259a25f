//! Indexing: gather, scatter, and what is built from them. The position of an element is its regular
//! strided offset plus, for each index, a wrapped value times a stride. Indices are checked in the kernel:
//! a bad one touches no memory, leaves a record, and becomes an IndexError at the next read.

use crate::base::{DType, Error, Put, Result};
use crate::gpu::device::fault::{self, Origin};
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::segments;
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// An index operand with the shape of the elements. Each value `v`, wrapped into `0..size`, adds `v *
/// stride` elements to the offset. `dim` is for the message.
#[derive(Clone, Copy, Debug)]
pub struct IndexBy<'a> {
    pub index: View<'a>,
    pub size: usize,
    pub stride: usize,
    pub dim: usize,
}

/// `out[i] = src[regular offset + sum of index(i) * stride]`. `src` has the shape of `out`, and stride 0 in
/// indexed dimensions. If `negative`, indices may count from the end.
pub fn index_get(
    origin: Origin,
    out: View<'_>,
    src: View<'_>,
    by: &[IndexBy<'_>],
    negative: bool,
) -> Result<()> {
    if out.dtype != src.dtype {
        return Err(Error::runtime(format!(
            "index: the result has dtype {} but the source has {}",
            out.dtype.name(),
            src.dtype.name()
        )));
    }
    let kind = IndexKind { stored: Stored::bits(out.dtype), ..IndexKind::of(by, negative) };
    run(gpu()?, origin, kind, out, src, by)
}

/// Combines `dst[regular offset + sum of index(i) * stride]` with `src[i]` by the operation `mode`. `dst`
/// has the shape of `src`, and stride 0 in indexed dimensions. If several values are assigned to one
/// element, it is undefined which remains.
pub fn index_put(
    origin: Origin,
    dst: View<'_>,
    src: View<'_>,
    by: &[IndexBy<'_>],
    mode: Put,
    negative: bool,
) -> Result<()> {
    let gpu = gpu()?;
    if dst.dtype != src.dtype {
        return Err(Error::type_error("index_put: the source must have the dtype of the destination"));
    }
    gpu.supports("index_put_", dst.dtype)
        .or_else(|error| if mode == Put::Assign || dst.dtype == DType::I64 { Ok(()) } else { Err(error) })?;
    let wide = dst.dtype.size() == 8;
    // Float sums depend on their order, and the only 64-bit atomic operation is our own addition.
    if mode != Put::Assign && (dst.dtype.is_float() || (wide && mode != Put::Add)) {
        gpu.supports("index_put_", dst.dtype)?;
        check_reach(&dst, by)?;
        check(&src)?;
        by.iter().try_for_each(|by| check(&by.index))?;
        return if dst.numel() == 0 { Ok(()) } else { segments::put(origin, dst, src, by, mode, negative) };
    }
    let stored = if mode == Put::Assign || wide { Stored::bits(dst.dtype) } else { Stored::of(dst.dtype) };
    run(gpu, origin, IndexKind { put: Some(mode), stored, ..IndexKind::of(by, negative) }, dst, src, by)
}

/// Checks that the regular part plus the largest index stays inside the buffer. Only the caller knows what
/// the indices can reach.
fn check_reach(indexed: &View<'_>, by: &[IndexBy<'_>]) -> Result<()> {
    check(indexed)?;
    if indexed.numel() == 0 {
        return Ok(());
    }
    let reach = by.iter().try_fold(indexed.offset, |end, by| {
        by.size.saturating_sub(1).checked_mul(by.stride).and_then(|step| end.checked_add(step))
    });
    let regular: usize = indexed.shape.iter().zip(indexed.strides).map(|(n, s)| (n - 1) * s).sum();
    let end = reach.and_then(|at| (at + regular + 1).checked_mul(indexed.dtype.size()));
    if by.iter().all(|by| by.size > 0) && end.is_none_or(|end| end > indexed.buffer.len()) {
        return Err(Error::runtime("GPU error: an indexed view exceeds its GPU memory"));
    }
    Ok(())
}

/// The parameters of a kernel that begins with [`Code::indexed`]. `space` walks `views`, then the indices.
pub(in crate::gpu) fn indexed_words(
    origin: Origin,
    n: usize,
    space: &Space,
    views: &[View<'_>],
    by: &[IndexBy<'_>],
) -> Words {
    let mut words = Words::from_slice(&[n as u32, fault::ticket(origin)]);
    space.push_dims(&mut words);
    for (k, view) in views.iter().chain(by.iter().map(|by| &by.index)).enumerate() {
        words.push(view.offset as u32);
        space.push_strides(k, &mut words);
        if let Some(by) = k.checked_sub(views.len()).map(|k| by[k]) {
            words.extend([by.size as u32, by.stride as u32, by.dim as u32]);
        }
    }
    words
}

/// The storage formats of indices. Those of 64 bits are read as two words, so that no 64-bit integers are needed.
pub(in crate::gpu) fn index_formats(by: &[IndexBy<'_>]) -> SmallVec<[Stored; 4]> {
    let format = |by: &IndexBy<'_>| match by.index.dtype {
        DType::I64 => Stored::Bits64,
        other => Stored::of(other),
    };
    by.iter().map(format).collect()
}

/// Launches the kernel. `regular` is the indexed view; `other` is the view that has the shape of the
/// indices.
fn run(
    gpu: &Gpu,
    origin: Origin,
    mut kind: IndexKind,
    out: View<'_>,
    src: View<'_>,
    by: &[IndexBy<'_>],
) -> Result<()> {
    check(&out)?;
    check(&src)?;
    let n = out.numel();
    if n == 0 {
        return Ok(());
    }
    check_reach(if kind.put.is_some() { &out } else { &src }, by)?;
    let mut operands: SmallVec<[&[usize]; 8]> = SmallVec::new();
    operands.extend([out.strides, src.strides]);
    for by in by {
        check(&by.index)?;
        operands.push(by.index.strides);
    }
    let space = Space::new(out.shape, &operands);
    kind.rank = space.rank();
    kind.shared = out.buffer.same(src.buffer);

    let words = indexed_words(origin, n, &space, &[out, src], by);
    let mut buffers: SmallVec<[&Buffer; 8]> = [out.buffer, src.buffer].into_iter().collect();
    for (k, by) in by.iter().enumerate() {
        buffers.push(by.index.buffer);
        kind.shared_index |= u32::from(by.index.buffer.same(out.buffer)) << k;
    }
    gpu.launch(&kind, &buffers, &words, groups(n, GROUP))
}

/// Distinguishes one indexing kernel from another.
#[derive(Clone, Hash)]
struct IndexKind {
    put: Option<Put>,
    stored: Stored,
    negative: bool,
    rank: usize,
    shared: bool,
    shared_index: u32,
    indices: SmallVec<[Stored; 4]>,
}

impl IndexKind {
    fn of(by: &[IndexBy<'_>], negative: bool) -> IndexKind {
        IndexKind {
            put: None,
            stored: Stored::I32,
            negative,
            rank: 1,
            shared: false,
            shared_index: 0,
            indices: index_formats(by),
        }
    }

    /// Returns true if the destination is changed by atomic operations on its words.
    fn atomic(&self) -> bool {
        self.put.is_some_and(|put| put != Put::Assign || self.stored.packed())
    }

    /// Returns the WGSL function `o_update(i, v)`, which combines element `i` with `v` atomically.
    fn update(&self) -> String {
        let put = self.put.unwrap_or(Put::Assign);
        if self.stored == Stored::Bits64 {
            // The carry of each addition is added exactly once, whatever the order.
            return "fn o_update(i: u32, v: vec2<u32>) {\n  let old = atomicAdd(&o[2u * i], v.x);\n  \
                    let carry = select(0u, 1u, old + v.x < old);\n  atomicAdd(&o[2u * i + 1u], v.y + carry);\n}\n"
                .to_owned();
        }
        if self.stored == Stored::I32 && put == Put::Add {
            return "fn o_update(i: u32, v: i32) { atomicAdd(&o[i], bitcast<u32>(v)); }\n".to_owned();
        }
        let value = self.stored.value();
        let combined = match put {
            Put::Assign => "v",
            Put::Add => "old + v",
            Put::Mul => "old * v",
            Put::Max => "maximum(old, v)",
            Put::Min => "minimum(old, v)",
        };
        let next = value.convert_to_stored(self.stored, &format!("({combined})"));
        let (find, old, word) = self.stored.lane("i", "next");
        format!(
            "fn o_update(i: u32, v: {t}) {{\n  {find}\n  loop {{\n    let word = atomicLoad(&o[at]);\n    \
             let old = {old};\n    let next = {next};\n    \
             if (atomicCompareExchangeWeak(&o[at], word, {word}).exchanged) {{ break; }}\n  }}\n}}\n",
            t = value.name()
        )
    }
}

impl ShaderKind for IndexKind {
    fn name(&self) -> &'static str {
        "index"
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(Value::I32);
        if self.atomic() {
            code.bind("o", "atomic<u32>", true);
            code.push(&self.update());
        } else {
            code.operand("o", self.stored, true, false);
        }
        code.operand("x", self.stored, false, self.shared);
        for (k, stored) in self.indices.iter().enumerate() {
            code.operand(&format!("index{k}"), *stored, false, self.shared_index >> k & 1 == 1);
        }
        let moved = if self.put.is_some() { "o_at" } else { "x_at" };
        code.indexed((self.rank, &self.indices, self.negative), ["o_at", "x_at"], moved, "");
        code.push(if self.atomic() {
            "  o_update(o_at, x_get(x_at));\n}\n"
        } else {
            "  o_set(o_at, x_get(x_at));\n}\n"
        });
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(IndexKind, |check| {
    for stored in [Stored::Bool, Stored::U8, Stored::I16, Stored::I32, Stored::Bits64] {
        for put in [None, Some(Put::Assign), Some(Put::Add), Some(Put::Mul), Some(Put::Max), Some(Put::Min)] {
            if stored == Stored::Bits64 && !matches!(put, None | Some(Put::Assign | Put::Add)) {
                continue;
            }
            for (rank, indices) in [(1, &[Stored::Bits64][..]), (3, &[Stored::I32, Stored::U8]), (6, &[])] {
                let kind = IndexKind {
                    put,
                    stored,
                    negative: rank == 1,
                    rank,
                    shared: rank == 3,
                    shared_index: 1,
                    indices: indices.into(),
                };
                check(&kind);
            }
        }
    }
});
