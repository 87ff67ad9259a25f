//! Softmax and its gradient, each in one kernel: one workgroup per row; 32 invocations if rows are short;
//! one invocation if they are very short or not contiguous.

use crate::base::{DType, Dims, Fault, Reduction, Result, contiguous_strides, numel};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::pointwise::{Expr, pointwise};
use crate::gpu::kernels::reduce::reduce;
use crate::gpu::launch::index_space::{Words, groups};
use crate::gpu::launch::row_walk::RowWalk;
use crate::gpu::shader::code::{Code, GROUP, Shader, lanes};
use crate::gpu::shader::stored::Stored;
use smallvec::SmallVec;

/// `exp(x) / sum(exp(x))` along `dim`, or its logarithm.
pub fn softmax(out: View<'_>, x: View<'_>, dim: usize, log: bool) -> Result<()> {
    run(&[out, x], dim, log)
}

/// The gradient of the input, from the gradient of the result and the result `y`.
pub fn softmax_backward(out: View<'_>, grad: View<'_>, y: View<'_>, dim: usize, log: bool) -> Result<()> {
    run(&[out, grad, y], dim, log)
}

fn run(views: &[View<'_>], dim: usize, log: bool) -> Result<()> {
    let gpu = gpu()?;
    let op = if log { "log_softmax" } else { "softmax" };
    let value = Stored::of(views[0].dtype).value();
    for view in views {
        gpu.supports(op, view.dtype)?;
        if !view.dtype.is_float() || Stored::of(view.dtype).value() != value {
            return Err(Fault::NoShader { op, dtype: view.dtype }.into());
        }
    }
    let rows = RowWalk::new(views, dim)?;
    if rows.count == 0 || rows.length == 0 {
        return Ok(());
    }
    if rows.length > LONG {
        return in_stages(views, dim, log);
    }
    let apart = rows.stride(1) > 1 && rows.count >= 32;
    let lanes = if apart { 1 } else { lanes(rows.length) };
    let kind = SoftmaxKind {
        stored: views.iter().map(|v| Stored::of(v.dtype)).collect(),
        shared: views.iter().map(|v| v.buffer.same(views[0].buffer)).collect(),
        rank: rows.rank(),
        lanes,
        log,
    };
    let mut words = Words::new();
    rows.push(&mut words);
    let buffers: SmallVec<[&Buffer; 3]> = views.iter().map(|v| v.buffer).collect();
    gpu.launch(&kind, &buffers, &words, groups(rows.count, GROUP / lanes))
}

/// Rows longer than this are reduced by many workgroups.
const LONG: usize = 1 << 20;

/// Softmax of long rows: reductions, then one pointwise kernel.
fn in_stages(views: &[View<'_>], dim: usize, log: bool) -> Result<()> {
    let (out, x) = (views[0], views[1]);
    let mut kept = Dims::from_slice(out.shape);
    kept[dim] = 1;
    let (strides, dense) = (contiguous_strides(&kept), contiguous_strides(out.shape));
    let dtype = if out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut spread = strides.clone();
    spread[dim] = 0;
    let row = |buffer| Source::View(View { buffer, dtype, shape: out.shape, strides: &spread, offset: 0 });
    let folded = |fold, of: View<'_>| -> Result<Buffer> {
        let buffer = alloc(numel(&kept) * dtype.size())?;
        reduce(
            fold,
            View { buffer: &buffer, dtype, shape: &kept, strides: &strides, offset: 0 },
            of,
            &[dim],
        )?;
        Ok(buffer)
    };
    let compute = |key, inputs, wgsl, to: View<'_>, from: &[Source<'_>]| {
        pointwise(&Expr { key, inputs, wgsl, predicate: false }, dtype, to, from)
    };
    let whole = alloc(out.numel() * dtype.size())?;
    let aside = View { buffer: &whole, dtype, shape: out.shape, strides: &dense, offset: 0 };
    if let &[_, grad, y] = views {
        let (g, y) = (Source::View(grad), Source::View(y));
        if log {
            let total = folded(Reduction::Sum, grad)?;
            let inputs = &["g", "y", "total"];
            return compute("log_softmax_gradient", inputs, "g - exp(y) * total", out, &[g, y, row(&total)]);
        }
        compute("softmax_term", &["g", "y"], "g * y", aside, &[g, y])?;
        let total = folded(Reduction::Sum, aside)?;
        return compute(
            "softmax_gradient",
            &["g", "y", "total"],
            "y * (g - total)",
            out,
            &[g, y, row(&total)],
        );
    }
    let (x, top) = (Source::View(x), folded(Reduction::Max, x)?);
    compute("softmax_power", &["x", "top"], "exp(x - top)", aside, &[x, row(&top)])?;
    let total = folded(Reduction::Sum, aside)?;
    if log {
        let inputs = &["x", "top", "total"];
        return compute(
            "log_softmax_long",
            inputs,
            "(x - top) - log(total)",
            out,
            &[x, row(&top), row(&total)],
        );
    }
    compute("softmax_long", &["power", "total"], "power / total", out, &[Source::View(aside), row(&total)])
}

#[derive(Hash)]
struct SoftmaxKind {
    /// The storage formats of the output, then of the input, or of the gradient and the result.
    stored: SmallVec<[Stored; 3]>,
    shared: SmallVec<[bool; 3]>,
    rank: usize,
    lanes: usize,
    log: bool,
}

impl ShaderKind for SoftmaxKind {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn shader(&self) -> Shader {
        let backward = self.stored.len() == 3;
        let names: &[&str] = if backward { &["o", "g", "y"] } else { &["o", "x"] };
        let value = self.stored[0].value();
        let mut code = Code::new(value);
        for (k, (name, stored)) in names.iter().zip(&self.stored).enumerate() {
            code.operand(name, *stored, k == 0, self.shared[k]);
        }
        code.lanes_join("all_max", "T", "maximum(acc, next)", self.lanes);
        code.lanes_join("all_sum", "T", "acc + next", self.lanes);
        code.main_by_lanes(self.lanes);
        RowWalk::shared(&mut code, self.rank, names);
        let lanes = self.lanes;
        let each = |body: &str| format!("  for (var k = lane; k < length; k += {lanes}u) {{ {body} }}\n");
        let write = |value: &str| each(&format!("o_set(o_at + k * o_step, {value});"));
        let x = "x_get(x_at + k * x_step)";
        let (g, y) = ("g_get(g_at + k * g_step)", "y_get(y_at + k * y_step)");
        let mut text = String::new();
        if backward {
            let (term, value) = if self.log {
                (g.to_owned(), format!("{g} - exp({y}) * total"))
            } else {
                (format!("{g} * {y}"), format!("{y} * ({g} - total)"))
            };
            text += "  var total = T(0);\n";
            text += &each(&format!("total += {term};"));
            text += "  total = all_sum(total, me);\n";
            text += &write(&value);
        } else {
            text += "  var top = -inf();\n";
            text += &each(&format!("top = maximum(top, {x});"));
            text += "  top = all_max(top, me);\n  var total = T(0);\n";
            text += &each(&format!("total += exp({x} - top);"));
            text += "  total = all_sum(total, me);\n";
            if self.log {
                text += "  let shift = log(total);\n";
                text += &write(&format!("({x} - top) - shift"));
            } else {
                text += &write(&format!("exp({x} - top) / total"));
            }
        }
        code.push(&text);
        code.push("}\n");
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(SoftmaxKind, |check| {
    use smallvec::smallvec;
    for stored in [Stored::F32, Stored::F16, Stored::BF16, Stored::F64] {
        for (bits, lanes) in [1, 32, GROUP, 32].into_iter().enumerate() {
            let (shared, log) = (bits & 1 > 0, bits & 2 > 0);
            let kind = |n: usize| SoftmaxKind {
                stored: SmallVec::from_elem(stored, n),
                shared: smallvec![shared; n],
                rank: 1 + bits,
                lanes,
                log,
            };
            check(&kind(2));
            check(&kind(3));
        }
    }
});
