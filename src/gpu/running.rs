//! The scans that carry more than a sum: running extremes with their places, and running sums of exponentials by
//! their logarithms. An invocation walks a row.

use super::View;
use super::cell::{Cell, Value};
use super::code::{Code, GROUP};
use super::device::gpu;
use super::pipeline::{Key, Shader};
use super::pool::Buffer;
use super::rows::Rows;
use super::space::{Words, groups};
use super::stream::Launch;
use crate::base::{DType, Error, Fault, Result};
use smallvec::SmallVec;

/// The largest (or smallest) element so far along `dim`, and where it last was (`indices`, int64); NaN stays.
pub fn cum_extreme(
    values: View<'_>,
    indices: View<'_>,
    x: View<'_>,
    dim: usize,
    largest: bool,
) -> Result<()> {
    if indices.dtype != DType::I64 || values.dtype != x.dtype {
        return Err(Error::runtime("cummax: indices are int64, and values have the dtype of the input"));
    }
    run(if largest { Job::Max } else { Job::Min }, &[values, indices, x], dim)
}

/// `log(exp(x[0]) + ... + exp(x[i]))` along `dim`, without overflow.
pub fn log_cum_sum_exp(out: View<'_>, x: View<'_>, dim: usize) -> Result<()> {
    if Cell::of(x.dtype).value() != Value::F32 || Cell::of(out.dtype).value() != Value::F32 {
        return Err(Fault::NoShader { op: "logcumsumexp", dtype: x.dtype }.into());
    }
    run(Job::LogSumExp, &[out, x], dim)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    Max,
    Min,
    LogSumExp,
}

impl Job {
    fn name(self) -> &'static str {
        match self {
            Job::Max => "cummax",
            Job::Min => "cummin",
            Job::LogSumExp => "logcumsumexp",
        }
    }
}

fn run(job: Job, views: &[View<'_>], dim: usize) -> Result<()> {
    let gpu = gpu()?;
    let (out, x) = (views[0], views[views.len() - 1]);
    gpu.supports(job.name(), x.dtype)?;
    let rows = Rows::new(views, dim)?;
    if rows.count == 0 || rows.length == 0 {
        return Ok(());
    }
    let mut words = Words::new();
    rows.push(&mut words);
    let shared = views[..views.len() - 1].iter().any(|v| v.buffer.same(x.buffer));
    let (to, from, rank) = (Cell::of(out.dtype), Cell::of(x.dtype), rows.rank());
    let key = Key::new("running", job.name())
        .with(to as u8)
        .with(from as u8)
        .with(rank as u8)
        .with(u8::from(shared));
    let kernel = gpu.kernel(&key, || Ok(shader(job, to, from, rank, shared)))?;
    let buffers: SmallVec<[&Buffer; 3]> = views.iter().map(|v| v.buffer).collect();
    let groups = groups(rows.count, GROUP);
    gpu.stream()
        .launch(gpu, &Launch { kernel: &kernel, buffers: &buffers, words: &words, groups, flags: false })
}

fn shader(job: Job, to: Cell, from: Cell, rank: usize, shared: bool) -> Shader {
    let value = from.value();
    let names: &[&str] = if job == Job::LogSumExp { &["o", "x"] } else { &["o", "w", "x"] };
    let mut code = Code::new(Rows::words(rank, names.len()), value);
    code.operand("o", to, true, false);
    if job != Job::LogSumExp {
        code.bind("w", "vec2<u32>", true);
    }
    code.operand("x", from, false, shared);
    code.main_by_item();
    Rows::code(&mut code, rank, names, "i");
    let result = value.convert_to_cell(to, "run");
    let float = matches!(value, Value::F32 | Value::F64);
    code.push(&match job {
        Job::LogSumExp => format!(
            "  var run = -inf();\n  for (var k = 0u; k < length; k++) {{\n    let x = x_get(x_at + k * x_step);\n    \
             let high = maximum(run, x);\n    let low = minimum(run, x);\n    \
             run = select(high, high + log1p(exp(low - high)), !(low == high) || is_finite(low));\n    \
             o_set(o_at + k * o_step, {result});\n  }}\n}}\n"
        ),
        Job::Max | Job::Min => {
            let beats = if job == Job::Max { "x >= run" } else { "x <= run" };
            let better = if float { format!("is_nan(x) || (!is_nan(run) && {beats})") } else { beats.to_owned() };
            format!(
                "  var run = x_get(x_at);\n  var place = 0u;\n  for (var k = 0u; k < length; k++) {{\n    \
                 let x = x_get(x_at + k * x_step);\n    if ({better}) {{ run = x; place = k; }}\n    \
                 o_set(o_at + k * o_step, {result});\n    w[w_at + k * w_step] = vec2<u32>(place, 0u);\n  }}\n}}\n"
            )
        }
    });
    code.finish()
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for cell in [Cell::Bool, Cell::F16, Cell::I32, Cell::F32, Cell::I64, Cell::F64] {
            validate(&shader(Job::Max, cell, cell, 1, false));
            validate(&shader(Job::Min, cell, cell, 12, true));
        }
        validate(&shader(Job::LogSumExp, Cell::F32, Cell::F16, 2, false));
    }
}
