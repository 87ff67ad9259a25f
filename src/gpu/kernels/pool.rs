//! Pooling over contiguous planes: the maximum of each window and its index, or the mean; and their
//! gradients, for which each element gathers from the windows that contain it.

use crate::base::kernel_args::pool::{PoolDivisor, PoolWindows};
use crate::base::{DType, Error, Fault, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// The maximum of each window, and its index in the plane.
pub fn max_pool(pool: &PoolWindows, values: View<'_>, indices: View<'_>, x: View<'_>) -> Result<()> {
    run(pool, PoolTask::Max, &[values, x, indices], values.numel())
}

/// The gradient of the input, from the gradients of the maxima and their indices.
pub fn max_pool_backward(pool: &PoolWindows, out: View<'_>, grad: View<'_>, indices: View<'_>) -> Result<()> {
    run(pool, PoolTask::MaxBack, &[out, grad, indices], out.numel())
}

/// The mean of each window; or, if `back`, the gradient of the input from that of the means.
pub fn avg_pool(pool: &PoolWindows, out: View<'_>, x: View<'_>, back: bool) -> Result<()> {
    run(pool, if back { PoolTask::MeanBack } else { PoolTask::Mean }, &[out, x], out.numel())
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PoolTask {
    Max,
    MaxBack,
    Mean,
    MeanBack,
}

fn run(pool: &PoolWindows, task: PoolTask, views: &[View<'_>], count: usize) -> Result<()> {
    let gpu = gpu()?;
    for view in &views[..2] {
        check(view)?;
        gpu.supports("pool", view.dtype)?;
        if !matches!(Stored::of(view.dtype).value(), Value::F32 | Value::F64) {
            return Err(Fault::NoShader { op: "pool", dtype: view.dtype }.into());
        }
    }
    if let Some(indices) = views.get(2) {
        check(indices)?;
        if indices.dtype != DType::I64 {
            return Err(Error::runtime("max_pool: the indices must be int64"));
        }
    }
    if count == 0 {
        return Ok(());
    }
    let mut words = Words::new();
    words.push(count as u32);
    words.extend(views.iter().map(|view| view.offset as u32));
    let w = &pool.windows;
    for sizes in [w.image, w.kernel, w.result, w.stride, w.padding, w.dilation] {
        words.extend(sizes.map(|n| n as u32));
    }
    if let PoolDivisor::Given(n) = pool.count {
        words.push((n as f32).to_bits());
    }
    let kind = PoolKind {
        task,
        stored: [Stored::of(views[0].dtype), Stored::of(views[1].dtype)],
        shared: views[1..].iter().map(|v| v.buffer.same(views[0].buffer)).collect(),
        adaptive: pool.adaptive,
        divisor: match pool.count {
            PoolDivisor::Inside => DivisorKind::Inside,
            PoolDivisor::Padded => DivisorKind::Padded,
            PoolDivisor::Given(_) => DivisorKind::Given,
        },
    };
    let buffers: SmallVec<[&Buffer; 3]> = views.iter().map(|v| v.buffer).collect();
    gpu.launch(&kind, &buffers, &words, groups(count, GROUP))
}

#[derive(Hash)]
struct PoolKind {
    task: PoolTask,
    /// The storage formats of the output and the input.
    stored: [Stored; 2],
    shared: SmallVec<[bool; 2]>,
    adaptive: bool,
    divisor: DivisorKind,
}

/// What the sum of a window is divided by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DivisorKind {
    Inside,
    Padded,
    Given,
}

/// Returns a loop over the elements, or the windows, from `low` to `high`.
fn each(name: &str, step: &str, body: &str) -> String {
    let line = |d: &str| {
        format!("  for (var {name}{d} = low.{d}; {name}{d} < high.{d}; {name}{d} += {step}.{d}) {{\n")
    };
    format!("{}{}{}{body}  }}\n  }}\n  }}\n", line("x"), line("y"), line("z"))
}

impl PoolKind {
    /// Returns the WGSL that computes `start` and `end` of the windows `o`, an expression.
    fn window(&self, o: &str) -> String {
        if self.adaptive {
            return format!(
                "  let start = ({o} * image) / result;\n  let end = (({o} + 1) * image + result - 1) / result;\n  \
                 let step = vec3<i32>(1);\n"
            );
        }
        format!(
            "  let raw = {o} * stride - padding;\n  \
             let start = raw + max(vec3<i32>(0), (dilation - 1 - raw) / dilation) * dilation;\n  \
             let end = min(raw + (kernel - 1) * dilation + 1, image);\n  let step = dilation;\n"
        )
    }

    /// Returns the WGSL that computes the divisor of a window's mean.
    fn divisor(&self, given: &str) -> String {
        let sizes = match self.divisor {
            DivisorKind::Given => return format!("  let divisor = T(bitcast<f32>({given}));\n"),
            DivisorKind::Padded if !self.adaptive => "min(raw + kernel, image + padding) - raw",
            _ => "end - start",
        };
        format!("  let sizes = {sizes};\n  let divisor = T(sizes.x * sizes.y * sizes.z);\n")
    }
}

impl ShaderKind for PoolKind {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn shader(&self) -> Shader {
        let places = matches!(self.task, PoolTask::Max | PoolTask::MaxBack);
        let back = matches!(self.task, PoolTask::MaxBack | PoolTask::MeanBack);
        let given = self.divisor == DivisorKind::Given;
        let value = self.stored[0].value();
        let mut code = Code::new(value);
        code.operand("o", self.stored[0], true, false);
        code.operand("x", self.stored[1], false, self.shared[0]);
        if places {
            let shared = self.shared.get(1).copied().unwrap_or(false);
            code.operand("index", Stored::Bits64, self.task == PoolTask::Max, shared);
        }
        code.main_by_item();
        let count = code.word();
        code.push(&format!("  if (i >= {count}) {{ return; }}\n"));
        let (o_at, x_at) = (code.word(), code.word());
        let index_at = if places { code.word() } else { String::new() };
        for name in ["image", "kernel", "result", "stride", "padding", "dilation"] {
            let [d, h, w] = [(); 3].map(|()| code.word());
            code.push(&format!("  let {name} = vec3<i32>(vec3<u32>({d}, {h}, {w}));\n"));
        }
        let given = if given { code.word() } else { String::new() };
        let of = if back { "image" } else { "result" };
        code.push(&format!(
            "  let per = u32({of}.x * {of}.y * {of}.z);\n  let plane = i / per;\n  let r = i32(i - plane * per);\n  \
             let at = vec3<i32>(r / ({of}.y * {of}.z), r / {of}.z % {of}.y, r % {of}.z);\n  \
             let inside = plane * u32(image.x * image.y * image.z);\n  \
             let among = plane * u32(result.x * result.y * result.z);\n"
        ));
        let read = self.stored[1].value().convert(value, "x_get(x_place)");
        let store = value.convert_to_stored(self.stored[0], "found");
        let element = "    let p = u32((kx * image.y + ky) * image.z + kz);\n";
        let text = match self.task {
            PoolTask::Max => {
                let body = format!(
                    "{element}    let x_place = {x_at} + inside + p;\n    let v = {read};\n    \
                     if (v > found || is_nan(v)) {{ found = v; best = p; }}\n"
                );
                format!(
                    "{}  let low = start;\n  let high = end;\n  var found = -inf();\n  \
                     var best = u32((start.x * image.y + start.y) * image.z + start.z);\n{}  \
                     index_set({index_at} + i, vec2<u32>(best, 0u));\n",
                    self.window("at"),
                    each("k", "step", &body)
                )
            }
            PoolTask::Mean => {
                let body = format!("{element}    let x_place = {x_at} + inside + p;\n    found += {read};\n");
                format!(
                    "{}  let low = start;\n  let high = end;\n  var found = T(0);\n{}{}  found /= divisor;\n",
                    self.window("at"),
                    each("k", "step", &body),
                    self.divisor(&given),
                )
            }
            PoolTask::MaxBack | PoolTask::MeanBack => {
                let range = if self.adaptive {
                    "  let low = (at * result) / image;\n  let high = ((at + 1) * result + image - 1) / image;\n"
                } else {
                    "  let reach = (kernel - 1) * dilation;\n  \
                     let low = max(vec3<i32>(0), (at + padding - reach + stride - 1) / stride);\n  \
                     let high = min((at + padding) / stride + 1, result);\n"
                };
                let window = "    let from_window = u32((kx * result.y + ky) * result.z + kz) + among;\n    \
                     let x_place = from_window + "
                    .to_owned()
                    + &x_at
                    + ";\n";
                let body = if self.task == PoolTask::MaxBack {
                    format!(
                        "{window}    if (index_get({index_at} + from_window).x == u32(r)) {{ found += {read}; }}\n"
                    )
                } else {
                    format!(
                        "{window}    let to = vec3<i32>(kx, ky, kz);\n{}{}    found += {read} / divisor;\n",
                        self.window("to"),
                        self.divisor(&given)
                    )
                };
                format!("{range}  let by = vec3<i32>(1);\n  var found = T(0);\n{}", each("k", "by", &body))
            }
        };
        code.push(&text);
        code.push(&format!("  o_set({o_at} + i, {store});\n}}\n"));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(PoolKind, |check| {
    use smallvec::smallvec;
    for stored in [Stored::F32, Stored::F64] {
        for task in [PoolTask::Max, PoolTask::MaxBack, PoolTask::Mean, PoolTask::MeanBack] {
            for divisor in [DivisorKind::Inside, DivisorKind::Padded, DivisorKind::Given] {
                for adaptive in [false, true] {
                    let kind = PoolKind {
                        task,
                        stored: [stored; 2],
                        shared: smallvec![adaptive; 2],
                        adaptive,
                        divisor,
                    };
                    check(&kind);
                }
            }
        }
    }
});
