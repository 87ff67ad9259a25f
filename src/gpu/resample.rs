//! Weighted sums along one dimension, as `cpu::resample` has them: an invocation is an element of the result.

use super::cell::{Cell, Value};
use super::code::{Code, GROUP};
use super::device::gpu;
use super::pipeline::{Key, Shader};
use super::pool::Buffer;
use super::space::{Words, check, groups};
use super::stream::Launch;
use super::{View, alloc, upload};
use crate::base::{DType, Error, Fault, Result, Taps};

/// `out[o, i, :]` is the sum of `weight * x[o, from, :]` over the taps of `i`; both are dense float32.
pub fn resample(out: View<'_>, x: View<'_>, outer: usize, inner: usize, taps: &Taps) -> Result<()> {
    let gpu = gpu()?;
    for view in [&out, &x] {
        if view.dtype != DType::F32 {
            return Err(Fault::NoShader { op: "interpolate", dtype: view.dtype }.into());
        }
        check(view)?;
    }
    let n = taps.places();
    if out.numel() != outer * n * inner || x.numel() != outer * taps.length * inner {
        return Err(Error::runtime("CUDA error: a resized tensor has another size than its taps"));
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let numbers: Vec<u32> = taps.starts.iter().chain(&taps.from).copied().collect();
    let weights: Vec<f32> = taps.weights.iter().map(|w| *w as f32).collect();
    let table = uploaded(bytemuck::cast_slice(&numbers))?;
    let weights = uploaded(bytemuck::cast_slice(&weights))?;
    let mut words = Words::new();
    words.extend([out.numel(), n, taps.length, inner, out.offset, x.offset].map(|n| n as u32));
    let kernel = gpu.kernel(&Key::new("resample", "resample"), || Ok(shader()))?;
    let buffers = [out.buffer, x.buffer, &table, &weights];
    let launch = Launch {
        kernel: &kernel,
        buffers: &buffers,
        words: &words,
        groups: groups(out.numel(), GROUP),
        flags: false,
    };
    gpu.stream().launch(gpu, &launch)
}

fn uploaded(bytes: &[u8]) -> Result<Buffer> {
    // A binding has at least one word.
    let buffer = alloc(bytes.len().max(4))?;
    upload(&buffer, 0, bytes)?;
    Ok(buffer)
}

fn shader() -> Shader {
    let mut code = Code::new(6, Value::F32);
    code.operand("o", Cell::F32, true, false);
    code.operand("x", Cell::F32, false, false);
    code.operand("table", Cell::I32, false, false);
    code.operand("weights", Cell::F32, false, false);
    code.main_by_item();
    let [total, n, length, inner, to, from] = [(); 6].map(|()| code.word());
    code.push(&format!(
        "  if (i >= {total}) {{ return; }}
  let row = i / {inner};
  let place = row % {n};
  let start = (row / {n}) * {length};
  let end = u32(table_get(place + 1u));
  var sum = 0.0;
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_is_valid() {
        super::super::pipeline::validate(&super::shader());
    }
}
