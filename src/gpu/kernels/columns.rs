//! Sums of the columns of several dense matrices in one launch. A workgroup takes 32 columns, which neighbouring invocations
//! read side by side, and eight invocations share a column.

use crate::base::{Error, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// Longer columns are better summed in parts.
pub const LONGEST: usize = 2048;

const SIDE: usize = 32;

/// Sums the columns of each matrix `x`, of shape `[rows, columns]`, into the vector `out`. Both are dense.
pub fn sum_columns(items: &[(View<'_>, View<'_>)]) -> Result<()> {
    let gpu = gpu()?;
    let mut kind = SumColumns { items: SmallVec::new() };
    let (mut words, mut buffers): (Words, SmallVec<[&Buffer; 16]>) = (Words::new(), SmallVec::new());
    let mut count = 0;
    for (out, x) in items {
        for view in [out, x] {
            check(view)?;
            gpu.supports("sum", view.dtype)?;
        }
        let [rows, columns] = *x.shape else {
            return Err(Error::runtime("sums of columns are those of matrices"));
        };
        kind.items.push((Stored::of(out.dtype), Stored::of(x.dtype)));
        words.extend([rows, columns, out.offset, x.offset].map(|word| word as u32));
        buffers.extend([out.buffer, x.buffer]);
        count += columns.div_ceil(SIDE);
    }
    if items.is_empty() {
        return Ok(());
    }
    gpu.launch(&kind, &buffers, &words, groups(count, 1))
}

#[derive(Hash)]
struct SumColumns {
    /// How the results and the elements are stored.
    items: SmallVec<[(Stored, Stored); 8]>,
}

impl ShaderKind for SumColumns {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn shader(&self) -> Shader {
        let lanes = GROUP / SIDE;
        let mut code = Code::new(Value::F32);
        for (at, (out, x)) in self.items.iter().enumerate() {
            code.operand(&format!("o{at}_"), *out, true, false);
            code.operand(&format!("x{at}_"), *x, false, false);
        }
        code.push(&format!("var<workgroup> seen: array<T, {GROUP}>;\n"));
        code.main_by_group();
        code.push(&format!(
            "  let lane = me / {SIDE}u;\n  var rest = row;\n  var acc = T(0);\n  var item = 0u;\n  var column = 0u;\n  \
             var to = 0u;\n"
        ));
        for (at, (_, x)) in self.items.iter().enumerate() {
            let [rows, columns, out, from] = [(); 4].map(|()| code.word());
            let number = at + 1;
            let value = x.value().convert(Value::F32, &format!("x{at}__get({from} + r * {columns} + c)"));
            code.push(&format!(
                "  if (item == 0u) {{\n    let blocks = ({columns} + {SIDE}u - 1u) / {SIDE}u;\n    if (rest < blocks) {{\n      \
                 item = {number}u;\n      let c = rest * {SIDE}u + me % {SIDE}u;\n      column = select(0xffffffffu, c, c < {columns});\n      \
                 to = {out};\n      if (c < {columns}) {{\n        for (var r = lane; r < {rows}; r += {lanes}u) {{ acc += {value}; }}\n      \
                 }}\n    }} else {{\n      rest -= blocks;\n    }}\n  }}\n"
            ));
        }
        code.push(&format!(
            "  seen[me] = acc;\n  workgroupBarrier();\n  if (lane > 0u || column == 0xffffffffu) {{ return; }}\n  \
             var total = T(0);\n  for (var j = 0u; j < {lanes}u; j++) {{ total += seen[me + j * {SIDE}u]; }}\n"
        ));
        for (at, (out, _)) in self.items.iter().enumerate() {
            let value = Value::F32.convert_to_stored(*out, "total");
            code.push(&format!("  if (item == {}u) {{ o{at}__set(to + column, {value}); }}\n", at + 1));
        }
        code.push("}\n");
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(SumColumns, |check| {
    for items in [1, 2, 8] {
        for stored in [Stored::F32, Stored::F16, Stored::BF16] {
            check(&SumColumns { items: (0..items).map(|_| (stored, stored)).collect() });
        }
    }
});
