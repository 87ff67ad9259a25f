//! Weighted sums along one dimension, like `cpu::resample`; one invocation per element of the result.

use crate::base::{DType, Error, Fault, ResampleWeights, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::kernels::transfer::upload;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;

/// `out[o, i, :]` is the sum of `weight * x[o, from, :]` over the taps of `i`; both are contiguous, in
/// float32 or float64.
pub fn resample(
    out: View<'_>,
    x: View<'_>,
    outer: usize,
    inner: usize,
    taps: &ResampleWeights,
) -> Result<()> {
    let gpu = gpu()?;
    let dtype = out.dtype;
    if !matches!(dtype, DType::F32 | DType::F64) || x.dtype != dtype {
        return Err(Fault::NoShader { op: "interpolate", dtype: x.dtype }.into());
    }
    gpu.supports("interpolate", dtype)?;
    check(&out)?;
    check(&x)?;
    let n = taps.places();
    if out.numel() != outer * n * inner || x.numel() != outer * taps.length * inner {
        return Err(Error::runtime("GPU error: the sizes of a resized tensor do not match its weights"));
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let numbers: Vec<u32> = taps.starts.iter().chain(&taps.from).copied().collect();
    let table = uploaded(bytemuck::cast_slice(&numbers))?;
    let weights = match dtype {
        DType::F64 => uploaded(bytemuck::cast_slice(&taps.weights))?,
        _ => uploaded(bytemuck::cast_slice(&taps.weights.iter().map(|w| *w as f32).collect::<Vec<f32>>()))?,
    };
    let mut words = Words::new();
    words.extend([out.numel(), n, taps.length, inner, out.offset, x.offset].map(|n| n as u32));
    let stored = Stored::of(dtype);
    let buffers = [out.buffer, x.buffer, &table, &weights];
    gpu.launch(&Resample { stored }, &buffers, &words, groups(out.numel(), GROUP))
}

pub(in crate::gpu) fn uploaded(bytes: &[u8]) -> Result<Buffer> {
    // A binding needs at least one element.
    let buffer = alloc(bytes.len().max(8))?;
    upload(&buffer, 0, bytes)?;
    Ok(buffer)
}

/// Sums the weighted neighbours of each resized element.
#[derive(Hash)]
struct Resample {
    stored: Stored,
}

impl ShaderKind for Resample {
    fn name(&self) -> &'static str {
        "interpolate"
    }

    fn shader(&self) -> Shader {
        let stored = self.stored;
        let mut code = Code::new(stored.value());
        code.operand("o", stored, true, false);
        code.operand("x", stored, false, false);
        code.operand("table", Stored::I32, false, false);
        code.operand("weights", stored, false, false);
        code.main_by_item();
        let [total, n, length, inner, to, from] = [(); 6].map(|()| code.word());
        code.push(&format!(
            "  if (i >= {total}) {{ return; }}
  let row = i / {inner};
  let place = row % {n};
  let start = (row / {n}) * {length};
  let end = u32(table_get(place + 1u));
  var sum = T();
  for (var k = u32(table_get(place)); k < end; k++) {{
    let line = start + u32(table_get({n} + 1u + k));
    sum += weights_get(k) * x_get({from} + line * {inner} + i % {inner});
  }}
  o_set({to} + i, sum);
}}
"
        ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(Resample, |check| {
    for stored in [Stored::F32, Stored::F64] {
        check(&Resample { stored });
    }
});
