//! Copies between layouts with different contiguous dimensions, tile by tile through shared memory, so that
//! neighbouring invocations both read and write neighbouring memory.

use super::View;
use super::code::{Code, GROUP, Shader};
use super::device::Gpu;
use super::index_space::{Space, Words};
use super::pipeline::Key;
use super::stored::Stored;
use super::stream::Launch;
use crate::base::Result;

/// The side of a tile.
const SIDE: usize = 32;

/// Copies `src` to `out`, of the same dtype and shape, if tiles help; returns true if it did.
pub(super) fn transpose(gpu: &Gpu, out: View<'_>, src: View<'_>) -> Result<bool> {
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
    let key = Key::new("transpose", "copy_").with(stored as u8).with(rank as u8);
    let kernel = gpu.kernel(&key, || Ok(shader(stored, rank)))?;
    let groups = super::index_space::groups(across * down * batch, 1);
    let buffers = [out.buffer, src.buffer];
    gpu.stream()
        .launch(gpu, &Launch { kernel: &kernel, buffers: &buffers, words: &words, groups, flags: false })?;
    Ok(true)
}

/// `rank` is the number of dimensions in addition to the two of the tiles.
fn shader(stored: Stored, rank: usize) -> Shader {
    let mut code = Code::new(9 + rank.saturating_sub(1) + 2 * rank, stored.value());
    let element = stored.single();
    code.bind("o", element, true);
    code.bind("x", element, false);
    // One more column than needed, so that the elements of a column lie in different banks.
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

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for stored in [Stored::I32, Stored::Bits64] {
            for rank in [0, 1, 2, 12] {
                validate(&shader(stored, rank));
            }
        }
    }
}
