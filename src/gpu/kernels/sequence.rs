//! Ranges: each element from its number alone.

use crate::base::{DType, Result, Scalar};
use crate::gpu::device::gpu;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::pointwise::{Map, run};
use crate::gpu::shader::stored::{Stored, Value};

/// The type that numbers of `dtype` are made in.
pub fn compute(dtype: DType) -> Value {
    match dtype {
        DType::I64 => Value::I64,
        DType::F64 => Value::F64,
        dtype if dtype.is_float() => Value::F32,
        _ => Value::I32,
    }
}

fn from_number(
    name: &'static str,
    body: &'static str,
    inputs: &[&str],
    out: View<'_>,
    ins: &[Source<'_>],
) -> Result<()> {
    let gpu = gpu()?;
    gpu.supports(name, out.dtype)?;
    let value = compute(out.dtype);
    let text = || body.to_owned();
    let map = Map {
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
    from_number("arange", "return start_ + T(at) * step_;", &["start", "step"], out, &ins)
}

/// As many numbers as `out` holds, evenly from `start` to `end`, and symmetric: exact at both ends.
pub fn linspace(out: View<'_>, start: f64, end: f64) -> Result<()> {
    let last = out.numel().saturating_sub(1);
    let step = if last == 0 { 0.0 } else { (end - start) / last as f64 };
    let ins = [start, end, step, last as f64].map(|x| Source::Scalar(Scalar::Float(x)));
    let inputs = ["start", "end", "step", "last"];
    if out.dtype.is_float() {
        let body = "if (T(at) + T(at) < last_ || last_ == T(0)) { return start_ + T(at) * step_; } \
                    return end_ - (last_ - T(at)) * step_;";
        return from_number("linspace", body, &inputs, out, &ins);
    }
    // Whole numbers are rounded towards zero only after the float arithmetic.
    let gpu = gpu()?;
    gpu.supports("linspace", out.dtype)?;
    let text = || {
        "if (2.0 * f32(at) < last_ || last_ == 0.0) { return start_ + f32(at) * step_; } \
         return end_ - (last_ - f32(at)) * step_;"
            .to_owned()
    };
    let map = Map {
        family: "create",
        name: "linspace",
        inputs: &inputs,
        body: &text,
        compute: Value::F32,
        result: Value::F32,
        words: &[],
        bits: false,
    };
    run(gpu, &map, out, Stored::of(out.dtype), &ins)
}
