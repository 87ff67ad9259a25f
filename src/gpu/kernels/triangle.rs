//! `tril` and `triu`.

use crate::base::{Fault, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::pointwise::{PointwiseMap, run};
use crate::gpu::shader::stored::Stored;

/// The triangular part of each matrix of `x` on and below (`lower`) or on and above its `diagonal`; the
/// rest is zero.
pub fn triangle(out: View<'_>, x: View<'_>, diagonal: i64, lower: bool) -> Result<()> {
    let gpu = gpu()?;
    let [.., rows, columns] = *out.shape else {
        return Err(crate::base::Error::runtime("tril: input tensor must have at least 2 dimensions"));
    };
    let shift = diagonal.clamp(-(1 << 30), 1 << 30) as i32;
    let stored = Stored::bits(out.dtype);
    let text = || {
        let keep =
            if lower { "column - row <= bitcast<i32>(p2)" } else { "column - row >= bitcast<i32>(p2)" };
        format!(
            "let column = i32(at % p1); let row = i32((at / p1) % p0); if ({keep}) {{ return x_; }} return T();"
        )
    };
    let map = PointwiseMap {
        family: "create",
        name: if lower { "tril" } else { "triu" },
        inputs: &["x"],
        body: &text,
        compute: stored.value(),
        result: stored.value(),
        words: &[rows as u32, columns as u32, shift as u32],
        bits: true,
    };
    if x.dtype != out.dtype {
        return Err(Fault::NoShader { op: map.name, dtype: x.dtype }.into());
    }
    run(gpu, &map, out, stored, &[Source::View(x)])
}
