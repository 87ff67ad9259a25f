//! The gradient of an embedding table: the invocations of each row search all indices, in order, for those
//! that refer to the row.

use crate::base::{DType, Fault, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;

/// The maximal number of indices: some drivers stop a kernel's loops after 65,535 iterations in total.
const MOST: usize = 1 << 15;
/// The maximal number of comparisons for all rows.
const LOOKS: usize = 1 << 25;

/// Returns true if searching all indices for each row is worthwhile.
pub fn is_few(rows: usize, numbers: usize) -> bool {
    numbers <= MOST && rows.saturating_mul(numbers) <= LOOKS
}

/// Adds to each row of `out` the rows of `src` whose `index` refers to it; both are contiguous. The row
/// `skipped` gets nothing.
pub fn add_rows(out: View<'_>, src: View<'_>, index: View<'_>, skipped: Option<usize>) -> Result<()> {
    let gpu = gpu()?;
    for view in [&out, &src] {
        if !view.dtype.is_float() || view.dtype != out.dtype {
            return Err(Fault::NoShader { op: "embedding", dtype: view.dtype }.into());
        }
        gpu.supports("embedding", view.dtype)?;
    }
    [&out, &src, &index].into_iter().try_for_each(check)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let (rows, width) = (out.shape[0], out.shape[1]);
    let pieces = width.div_ceil(GROUP);
    let stored = Stored::of(out.dtype);
    let named = if index.dtype == DType::I64 { Stored::Bits64 } else { Stored::of(index.dtype) };
    let mut words = Words::new();
    words.extend([rows, width, pieces, index.numel(), skipped.unwrap_or(rows)].map(|n| n as u32));
    words.extend([&out, &src, &index].map(|view| view.offset as u32));
    let buffers = [out.buffer, src.buffer, index.buffer];
    gpu.launch(&AddRows { stored, named }, &buffers, &words, groups(rows * pieces, 1))
}

/// Sums rows of one table into those of another, a workgroup a row.
#[derive(Hash)]
struct AddRows {
    stored: Stored,
    named: Stored,
}

impl ShaderKind for AddRows {
    fn name(&self) -> &'static str {
        "embedding_backward"
    }

    fn shader(&self) -> Shader {
        let AddRows { stored, named } = *self;
        let mut code = Code::new(stored.value());
        code.operand("o", stored, true, false);
        code.operand("x", stored, false, false);
        code.operand("t", named, false, false);
        code.push(&format!("var<workgroup> hits: array<atomic<u32>, {}>;\n", GROUP / 32));
        code.main_by_group();
        for name in ["rows", "width", "pieces", "n", "skipped", "o_at", "x_at", "t_at"] {
            let word = code.word();
            code.push(&format!("  let {name} = {word};\n"));
        }
        let is_own = if named == Stored::Bits64 {
            "all(t_get(t_at + base + me) == vec2<u32>(own, 0u))"
        } else {
            "bitcast<u32>(t_get(t_at + base + me)) == own"
        };
        code.push(&format!(
        "  let own = row / pieces;\n  let col = (row % pieces) * {GROUP}u + me;\n  \
         let there = own < rows && col < width;\n  var acc = T(0);\n  \
         for (var base = 0u; base < n; base += {GROUP}u) {{\n    \
         if (me < {words}u) {{ atomicStore(&hits[me], 0u); }}\n    workgroupBarrier();\n    \
         if (base + me < n && own != skipped) {{\n      \
         if ({is_own}) {{ atomicOr(&hits[me / 32u], 1u << (me % 32u)); }}\n    }}\n    workgroupBarrier();\n    \
         if (there) {{\n      for (var w = 0u; w < {words}u; w++) {{\n        var bits = atomicLoad(&hits[w]);\n        \
         while (bits != 0u) {{\n          let k = base + w * 32u + firstTrailingBit(bits);\n          bits &= bits - 1u;\n          \
         acc += x_get(x_at + k * width + col);\n        }}\n      }}\n    }}\n    workgroupBarrier();\n  }}\n  \
         if (there) {{ o_set(o_at + own * width + col, acc); }}\n}}\n",
        words = GROUP / 32
    ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(AddRows, |check| {
    for stored in [Stored::F32, Stored::F16, Stored::BF16, Stored::F64] {
        for named in [Stored::Bits64, Stored::I32] {
            check(&AddRows { stored, named });
        }
    }
});
