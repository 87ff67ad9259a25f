//! Binary search, one invocation per value.

use crate::base::{DType, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};

/// Like [`crate::cpu::search::search`]; all operands are contiguous.
pub fn search(
    out: View<'_>,
    sorted: View<'_>,
    x: View<'_>,
    sorter: Option<View<'_>>,
    right: bool,
) -> Result<()> {
    let gpu = gpu()?;
    gpu.supports("searchsorted", x.dtype)?;
    for view in [&out, &sorted, &x].into_iter().chain(&sorter) {
        check(view)?;
    }
    let n = x.numel();
    if n == 0 {
        return Ok(());
    }
    let length = sorted.shape.last().copied().unwrap_or(0);
    let own = x.shape.last().copied().unwrap_or(1);
    let stride = if sorted.shape.len() > 1 { length } else { 0 };
    let mut words = Words::from_slice(&[n as u32, own as u32, length as u32, stride as u32]);
    words.extend([out.offset as u32, sorted.offset as u32, x.offset as u32]);
    let mut buffers = vec![out.buffer, sorted.buffer, x.buffer];
    if let Some(sorter) = &sorter {
        words.push(sorter.offset as u32);
        buffers.push(sorter.buffer);
    }
    let kind =
        SearchKind { x: Stored::of(x.dtype), wide: out.dtype == DType::I64, sorter: sorter.is_some(), right };
    gpu.launch(&kind, &buffers, &words, groups(n, GROUP))
}

#[derive(Clone, Copy, Hash)]
struct SearchKind {
    x: Stored,
    /// True if the resulting indices are int64.
    wide: bool,
    sorter: bool,
    right: bool,
}

impl ShaderKind for SearchKind {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(self.x.value());
        code.bind("o", if self.wide { "vec2<u32>" } else { "i32" }, true);
        code.operand("sorted", self.x, false, false);
        code.operand("x", self.x, false, false);
        if self.sorter {
            code.bind("sorter", "vec2<u32>", false);
        }
        let order = if self.right { "seen <= value" } else { "seen < value" };
        let nan = match self.x.value() {
            Value::F32 | Value::F64 => "is_nan(seen) || is_nan(value) || ",
            _ => "",
        };
        code.main_by_item();
        let [n, own, length, stride] = [code.word(), code.word(), code.word(), code.word()];
        let [o_at, sorted_at, x_at] = [code.word(), code.word(), code.word()];
        let middle = match self.sorter {
            true => format!("sorter[{} + line + middle].x", code.word()),
            false => "middle".into(),
        };
        let place = if self.wide { "vec2<u32>(low, 0u)" } else { "i32(low)" };
        code.push(&format!(
            "  if (i >= {n}) {{ return; }}\n  let line = (i / {own}) * {stride};\n  let value = x_get({x_at} + i);\n  \
             var low = 0u;\n  var high = {length};\n  while (low < high) {{\n    \
             let middle = low + (high - low) / 2u;\n    let seen = sorted_get({sorted_at} + line + {middle});\n    \
             // If either is NaN, the search continues to the right.\n    \
             if ({nan}{order}) {{ low = middle + 1u; }} else {{ high = middle; }}\n  }}\n  o[{o_at} + i] = {place};\n}}\n"
        ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(SearchKind, |check| {
    for x in [
        Stored::U8,
        Stored::I16,
        Stored::F16,
        Stored::BF16,
        Stored::I32,
        Stored::F32,
        Stored::I64,
        Stored::F64,
    ] {
        for (wide, sorter, right) in [(true, true, true), (false, false, false)] {
            check(&SearchKind { x, wide, sorter, right });
        }
    }
});
