//! Ranges. Each element depends only on its index.

use crate::base::{Result, Scalar};
use crate::gpu::device::gpu;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::pointwise::{PointwiseMap, run};
use crate::gpu::shader::stored::{Stored, Value, compute};

/// Fills `out` with an expression of the index of each element, computed as `value`.
fn from_number(
    name: &'static str,
    body: &'static str,
    value: Value,
    inputs: &[&str],
    out: View<'_>,
    ins: &[Source<'_>],
) -> Result<()> {
    let gpu = gpu()?;
    gpu.supports(name, out.dtype)?;
    let text = || body.to_owned();
    let map = PointwiseMap {
        family: "create",
        name,
        inputs,
        body: &text,
        compute: value,
        result: value,
        words: &[],
        bits: false,
    };
    run(gpu, &map, out, Stored::of(out.dtype), ins)
}

/// `start + i * step`.
pub fn arange(out: View<'_>, start: Scalar, step: Scalar) -> Result<()> {
    let ins = [Source::Scalar(start), Source::Scalar(step)];
    from_number("arange", "return start_ + T(at) * step_;", compute(out.dtype), &["start", "step"], out, &ins)
}

/// Fills `out` with evenly spaced numbers, exact at both ends: the second half is computed backwards from
/// `end`.
pub fn linspace(out: View<'_>, start: f64, end: f64) -> Result<()> {
    let last = out.numel().saturating_sub(1);
    let step = if last == 0 { 0.0 } else { (end - start) / last as f64 };
    let ins = [start, end, step, last as f64].map(|x| Source::Scalar(Scalar::Float(x)));
    let inputs = ["start", "end", "step", "last"];
    if out.dtype.is_float() {
        let body = "if (T(at) + T(at) < last_ || last_ == T(0)) { return start_ + T(at) * step_; } \
                    return end_ - (last_ - T(at)) * step_;";
        return from_number("linspace", body, compute(out.dtype), &inputs, out, &ins);
    }
    // Integers are truncated only after the float arithmetic.
    let body = "if (2.0 * f32(at) < last_ || last_ == 0.0) { return start_ + f32(at) * step_; } \
         return end_ - (last_ - f32(at)) * step_;";
    from_number("linspace", body, Value::F32, &inputs, out, &ins)
}
