//! Copies between layouts with different contiguous dimensions, tile by tile through shared memory, so that
//! neighbouring invocations both read and write neighbouring memory.

use crate::base::Result;
use crate::gpu::device::Gpu;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Space, Words, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;

/// The side of a tile.
const SIDE: usize = 32;

/// Copies `src` to `out`, of the same dtype and shape, if tiles help; returns true if it did.
pub(in crate::gpu) fn transpose(gpu: &Gpu, out: View<'_>, src: View<'_>) -> Result<bool> {
    let stored = Stored::bits(out.dtype);
    let space = Space::new(out.shape, &[out.strides, src.strides]);
    let last = space.rank() - 1;
    // Elements that share words would need atomic writes, and overlapping views a copy.
    if last == 0 || stored.packed() || out.buffer.same(src.buffer) {
        return Ok(false);
    }
    let Some(dense) = (0..last).find(|&d| space.strides[1][d] == 1) else { return Ok(false) };
    let (rows, columns) = (space.dims[dense], space.dims[last]);
    if space.strides[0][last] != 1 || rows < SIDE / 2 || columns < SIDE / 2 {
        return Ok(false);
    }
    let others: Vec<usize> = (0..last).filter(|&d| d != dense).collect();
    let (across, down) = (columns.div_ceil(SIDE), rows.div_ceil(SIDE));
    let batch: usize = others.iter().map(|&d| space.dims[d]).product();
    let rank = others.len();
    let mut words = Words::new();
    words.extend([rows, columns, across, across * down, batch].map(|x| x as u32));
    words.extend(others.iter().skip(1).map(|&d| space.dims[d] as u32));
    words.extend([out.offset, src.offset, space.strides[0][dense], space.strides[1][last]].map(|x| x as u32));
    for operand in &space.strides {
        words.extend(others.iter().map(|&d| operand[d] as u32));
    }
    let buffers = [out.buffer, src.buffer];
    gpu.launch(&Transpose { stored, rank }, &buffers, &words, groups(across * down * batch, 1))?;
    Ok(true)
}

/// Copies tiles through workgroup memory, with `rank` dimensions beside the two of the tiles.
#[derive(Hash)]
struct Transpose {
    stored: Stored,
    rank: usize,
}

impl ShaderKind for Transpose {
    fn name(&self) -> &'static str {
        "copy_"
    }

    fn shader(&self) -> Shader {
        let Transpose { stored, rank } = *self;
        let mut code = Code::new(stored.value());
        let element = stored.single();
        code.bind("o", element, true);
        code.bind("x", element, false);
        // One column more than needed: a column's elements then lie in different banks.
        code.push(&format!("var<workgroup> tile: array<{element}, {}>;\n", SIDE * (SIDE + 1)));
        code.main_by_group();
        let [rows, columns, across, tiles, batch] = [(); 5].map(|()| code.word());
        code.push(&format!(
        "  if (row >= {tiles} * {batch}) {{ return; }}\n  let which = row / {tiles};\n  let part = row - which * {tiles};\n  \
         let left = (part % {across}) * {SIDE}u;\n  let top = (part / {across}) * {SIDE}u;\n"
    ));
        let dims = code.words(rank.saturating_sub(1));
        if rank > 0 {
            code.push(&Code::split("which", "g", &dims));
        }
        let [out, src, out_down, src_right] = [(); 4].map(|()| code.word());
        for (name, offset) in [("o", out), ("x", src)] {
            let strides = code.words(rank);
            let others = if rank > 0 { format!(" + {}", Code::dot("g", &strides)) } else { String::new() };
            code.push(&format!("  let {name}_at = {offset}{others};\n"));
        }
        let step = GROUP / SIDE;
        let width = SIDE + 1;
        code.push(&format!(
        "  let fast = me % {SIDE}u;\n  let slow = me / {SIDE}u;\n  \
         for (var j = slow; j < {SIDE}u; j += {step}u) {{\n    \
         if (top + fast < {rows} && left + j < {columns}) {{ \
         tile[j * {width}u + fast] = x[x_at + (left + j) * {src_right} + top + fast]; }}\n  }}\n  workgroupBarrier();\n  \
         for (var j = slow; j < {SIDE}u; j += {step}u) {{\n    \
         if (top + j < {rows} && left + fast < {columns}) {{ \
         o[o_at + (top + j) * {out_down} + left + fast] = tile[fast * {width}u + j]; }}\n  }}\n}}\n"
    ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(Transpose, |check| {
    for stored in [Stored::I32, Stored::Bits64] {
        for rank in [0, 1, 2, 12] {
            check(&Transpose { stored, rank });
        }
    }
});
